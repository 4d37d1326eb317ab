//! `limit adaptive`: how many requests may be in flight, found out from how long they take.
//!
//! The algorithm is pure ([`vegas`]); here it meets the cores. Each adds to sums of its own ([`sums`]); when a window may
//! be whole, one of them adds them up under a lock that is only tried. Which requests are admitted is the
//! limiter's business; this only says how many.

mod sums;
#[cfg(test)]
mod tests;
mod vegas;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, TryLockError};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use self::sums::{Quickest, Sample, Sums, Totals};
use self::vegas::{Seen, Vegas, Verdict, WINDOW_MIN};

/// Cores with sums of their own; those beyond share them.
const SUMS_MAX: usize = 64;

/// A bound that follows what its requests take.
pub struct Adaptive {
    started: Instant,
    /// Read by each request, written once in a window.
    bound: AtomicU32,
    /// In nanoseconds since the start: the latency of a request that was admitted before says nothing about this bound.
    since: AtomicU64,
    /// The same: before this there is nothing to see.
    look_at: AtomicU64,
    /// A request found no room since the last look.
    is_met: AtomicBool,
    sums: Box<[CachePadded<Sums>]>,
    vegas: Mutex<Vegas>,
}

/// Requests in flight, the one that is measured included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlight {
    /// When it was admitted.
    pub at_start: u32,
    /// When it was answered.
    pub now: u32,
}

impl Adaptive {
    /// A bound between these that knows nothing yet: low, until answers show that there is room for more. One that is
    /// its own smallest and largest never changes.
    #[must_use]
    pub fn new(min: u32, max: u32) -> Self {
        let vegas = Vegas::new(min, max);
        let first = vegas.verdict();
        let cores = std::thread::available_parallelism().map_or(1, usize::from).min(SUMS_MAX);
        Self {
            started: Instant::now(),
            bound: AtomicU32::new(first.bound),
            since: AtomicU64::new(nanoseconds(first.since)),
            look_at: AtomicU64::new(nanoseconds(first.look_at)),
            is_met: AtomicBool::new(false),
            sums: (0..cores).map(|_| CachePadded::new(Sums::default())).collect(),
            vegas: Mutex::new(vegas),
        }
    }

    /// How many may be in flight now.
    #[must_use]
    pub fn bound(&self) -> u32 {
        self.bound.load(Ordering::Relaxed)
    }

    /// A request found no room, or still finds none. Where no answers come that could raise the bound, this does. `lag` is
    /// how late the event loop is of the worker that would answer, asked where it matters.
    pub fn is_met(&self, now: Instant, in_flight: u32, lag: impl FnOnce() -> Option<Duration>) {
        if !self.is_met.load(Ordering::Relaxed) {
            self.is_met.store(true, Ordering::Relaxed);
        }
        self.look(now, in_flight, lag);
    }

    /// When one of so many waiting requests calls [`Adaptive::is_met`], although no request comes and none is answered: by
    /// chance, so that together they do so about once in a window, however many they are.
    #[must_use]
    pub fn look_by(&self, waiting: usize) -> Instant {
        let many = u32::try_from(waiting).unwrap_or(u32::MAX).max(1);
        Instant::now() + WINDOW_MIN.saturating_mul(many).mul_f64(2.0 * fastrand::f64())
    }

    /// Adds a request that is over: it `took` so long from its admission (not from when it began to wait for that) until the
    /// head of its answer. One that `was_dropped` got no answer because of an overload: its time ran out, or its worker was
    /// lost. One whose client went away is not reported.
    pub fn sample(
        &self,
        now: Instant,
        core: usize,
        took: Duration,
        in_flight: InFlight,
        was_dropped: bool,
        lag: impl FnOnce() -> Option<Duration>,
    ) {
        let admitted = nanoseconds(now.saturating_duration_since(self.started).saturating_sub(took));
        let sample = if was_dropped {
            Sample::Dropped
        } else if admitted < self.since.load(Ordering::Relaxed) {
            Sample::Stale(took)
        } else {
            Sample::Answered(Quickest { took, in_flight_at_start: in_flight.at_start })
        };
        if let Some(sums) = self.sums.get(core % self.sums.len().max(1)) {
            sums.add(sample);
        }
        self.look(now, in_flight.now, lag);
    }

    /// Adds up where a window may be whole, unless another core is at it.
    fn look(&self, now: Instant, in_flight: u32, lag: impl FnOnce() -> Option<Duration>) {
        let now = now.saturating_duration_since(self.started);
        if nanoseconds(now) < self.look_at.load(Ordering::Relaxed) {
            return;
        }
        let mut vegas = match self.vegas.try_lock() {
            Ok(vegas) => vegas,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let totals = self.sums.iter().fold(Totals::default(), |totals, sums| totals.plus(sums.totals()));
        let is_met = self.is_met.swap(false, Ordering::Relaxed);
        let least = self.sums.iter().filter_map(|sums| sums.take_least()).min();
        let seen = Seen { now, totals, least, in_flight, is_met, lag: lag() };
        let Verdict { bound, since, look_at } =
            vegas.look(seen, || self.sums.iter().filter_map(|sums| sums.take_quickest()).min());
        // Under the lock, so that no thread that looked before writes after. Each means something by itself.
        self.since.store(nanoseconds(since), Ordering::Relaxed);
        self.bound.store(bound, Ordering::Relaxed);
        self.look_at.store(nanoseconds(look_at), Ordering::Relaxed);
    }
}

/// Of more than 584 years, which are left out, nothing is known.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
