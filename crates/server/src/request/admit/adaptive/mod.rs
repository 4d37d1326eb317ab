//! `limit adaptive`: how many requests may be in flight, found out from how long they take.
//!
//! The formula is pure ([`gradient`], in time: [`windows`]); here it meets the cores. Each adds to sums of its own
//! ([`sums`]); when a window may be whole, one of them adds them up under a lock that nobody waits for. Who is let
//! in is the gate's business: this only says how many.

mod gradient;
mod sums;
#[cfg(test)]
mod tests;
mod windows;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, TryLockError};
use std::time::{Duration, Instant};

use self::sums::{Sums, Totals};
pub(crate) use self::windows::EventLoop;
use self::windows::{Control, Verdict};
use crate::request::core::Padded;

/// Cores with sums of their own; those beyond share them.
const SUMS_MAX: usize = 64;

/// One who waits looks no more often than this, …
const LOOK_GAP: Duration = Duration::from_millis(10);

/// … and in that time so many in the mean, however many wait.
const LOOKS_PER_GAP: u32 = 8;

/// A bound that follows what its requests take.
pub struct Adaptive {
    started: Instant,
    /// Read by each request, written once in a window.
    bound: AtomicU32,
    /// In nanoseconds since the start: before this there is nothing to see.
    look_at: AtomicU64,
    /// The same: at this time there is to be a look even if no answer comes.
    look_by: AtomicU64,
    sums: Box<[Padded<Sums>]>,
    control: Mutex<Control>,
}

/// How many were in flight when a request was let in, itself among them, and how many are when it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crowd {
    /// Then.
    pub then: u32,
    /// Now.
    pub now: u32,
}

impl Adaptive {
    /// A bound between these that knows nothing yet: wide, until latency shows a queue. One that
    /// is its own smallest and largest never changes.
    #[must_use]
    pub fn new(min: u32, max: u32) -> Self {
        let control = Control::new(min, max);
        let first = control.first();
        let cores = std::thread::available_parallelism().map_or(1, usize::from).min(SUMS_MAX);
        Self {
            started: Instant::now(),
            bound: AtomicU32::new(first.bound),
            look_at: AtomicU64::new(nanoseconds(first.look_at)),
            look_by: AtomicU64::new(nanoseconds(first.look_by)),
            sums: (0..cores).map(|_| Padded(Sums::default())).collect(),
            control: Mutex::new(control),
        }
    }

    /// How many may be in flight now.
    #[must_use]
    pub fn bound(&self) -> u32 {
        self.bound.load(Ordering::Relaxed)
    }

    /// Somebody comes while so many are in flight, which is as many as may be, or more: where no answers come that
    /// could raise the bound, this does. `event_loop` is that of whoever answers, asked where it matters.
    pub(super) fn is_met(&self, now: Instant, in_flight: u32, event_loop: impl FnOnce() -> EventLoop) {
        let now = now.saturating_duration_since(self.started);
        if nanoseconds(now) >= self.look_by.load(Ordering::Relaxed) {
            self.look(now, in_flight, Some(event_loop()));
        }
    }

    /// When one of so many who wait should look ([`Adaptive::is_met`]), though nobody else comes. Never in the past, so
    /// that who waits for it does not turn in circles while another core is at it; by chance, so that not all do at once.
    pub fn look_by(&self, waiting: usize) -> Instant {
        let many = u32::try_from(waiting).unwrap_or(u32::MAX) / LOOKS_PER_GAP;
        let gap = LOOK_GAP + LOOK_GAP.saturating_mul(many).mul_f64(2.0 * fastrand::f64());
        let at = Duration::from_nanos(self.look_by.load(Ordering::Relaxed)).max(self.started.elapsed() + gap);
        self.started.checked_add(at).unwrap_or(self.started)
    }

    /// A request is over that was let in: it `took` so long from then (not from when it began to wait for that)
    /// until the head of its answer. One that `was_dropped` got no
    /// answer because there was too much to do: its time ran out, or its worker was lost. One whose client went away
    /// is told of in neither way.
    pub fn sample(&self, core: usize, took: Duration, crowd: Crowd, was_dropped: bool) {
        self.sample_at(Instant::now(), core, took, crowd, was_dropped);
    }

    /// The same for who knows what time it is.
    pub fn sample_at(&self, now: Instant, core: usize, took: Duration, crowd: Crowd, was_dropped: bool) {
        if let Some(sums) = self.sums.get(core % self.sums.len().max(1)) {
            sums.0.add(took, crowd.then, was_dropped);
        }
        let now = now.saturating_duration_since(self.started);
        if nanoseconds(now) >= self.look_at.load(Ordering::Relaxed) {
            self.look(now, crowd.now, None);
        }
    }

    /// Adds up, unless another core is at it.
    fn look(&self, now: Duration, in_flight: u32, event_loop: Option<EventLoop>) {
        let mut control = match self.control.try_lock() {
            Ok(control) => control,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        event_loop.into_iter().for_each(|event_loop| control.is_told(event_loop));
        let totals = self.sums.iter().fold(Totals::default(), |totals, sums| totals.plus(sums.0.totals()));
        let Verdict { bound, look_at, look_by } = control.look(now, totals, in_flight, || {
            self.sums.iter().filter_map(|sums| sums.0.take_quickest()).min()
        });
        // Under the lock, so that nobody who looked before writes after. Each means something by itself.
        self.bound.store(bound, Ordering::Relaxed);
        self.look_at.store(nanoseconds(look_at), Ordering::Relaxed);
        self.look_by.store(nanoseconds(look_by), Ordering::Relaxed);
    }
}

/// Of more than 584 years, which are left out, nothing is known.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
