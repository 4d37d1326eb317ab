//! Whether an upstream is healthy: by what requests meet (passive), and by health checks (active).
//!
//! [`Standing`] is what requests have met at one address, for the whole process: all cores, all directives, over
//! reloads. [`Active`] is what health checks have found. Both are read by every request with a few loads and no lock.
//! Checks nothing itself: that is [`crate::health_check`].

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::epoch::epoch;
use crate::latency::Latency;
use crate::limits::FAILURES_REMEMBERED_MAX;

/// What is known of an upstream's health.
#[derive(Default)]
pub struct Health {
    /// By what requests met at its address, whichever directive sent them.
    pub standing: Arc<Standing>,
    /// By active questions, where there are any.
    pub active: Option<Arc<Active>>,
}

/// What requests have met at one address.
pub struct Standing {
    /// Requests that it was handed and has not finished, of all cores and directives, however they are sent there.
    pub(crate) in_flight: Arc<CachePadded<AtomicUsize>>,
    pub(crate) failures: Failures,
    /// Requests that were tried again after they had failed there.
    pub(crate) retries: AtomicU64,
    /// How long its answers take.
    pub latency: Latency,
}

/// A request that an upstream has in hand, until this is dropped.
pub struct InFlight(pub(crate) Arc<CachePadded<AtomicUsize>>);

/// The last failures, each with the time at which it is forgotten. Bounded; no timer, no lock: what is forgotten is
/// not counted, and its place is taken by a later one.
pub(crate) struct Failures {
    /// Nanoseconds after [`epoch`]; 0 for none yet.
    forgotten_at: Box<[AtomicU64]>,
    next: AtomicUsize,
    /// Nothing is remembered after this. All that a request reads while all is well.
    latest: CachePadded<AtomicU64>,
    /// Since the start.
    total: AtomicU64,
}

/// What active questions have found. Requests only see whether it is down.
#[derive(Default)]
pub struct Active {
    is_down: AtomicBool,
    course: Mutex<Course>,
}

#[derive(Default)]
struct Course {
    good_in_a_row: u32,
    bad_in_a_row: u32,
    down: Option<Down>,
}

/// Since when and why an upstream is down.
#[derive(Debug, Clone)]
pub struct Down {
    /// Since when.
    pub since: Instant,
    /// Why, for a person.
    pub reason: String,
}

/// What one more answer to a question has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It gets no more requests.
    Down,
    /// It gets requests again, after so long.
    Up(Duration),
}

impl Standing {
    /// Of an address that nobody has asked yet; so many failures have to be told apart.
    pub fn new(failures_distinguished: u32) -> Self {
        let failures = Failures::new(failures_distinguished);
        let in_flight = Arc::new(CachePadded::new(AtomicUsize::new(0)));
        Self { in_flight, failures, retries: AtomicU64::new(0), latency: Latency::default() }
    }

    /// The same with room for more failures, where there is too little for so many.
    pub fn widened(&self, failures_distinguished: u32) -> Option<Self> {
        let wider = Failures::new(failures_distinguished);
        if wider.forgotten_at.len() <= self.failures.forgotten_at.len() {
            return None;
        }
        for (to, from) in wider.forgotten_at.iter().zip(&self.failures.forgotten_at) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let filled = self.failures.next.load(Ordering::Relaxed).min(self.failures.forgotten_at.len());
        wider.next.store(filled, Ordering::Relaxed);
        wider.total.store(self.failures.total.load(Ordering::Relaxed), Ordering::Relaxed);
        wider.latest.store(self.failures.latest.load(Ordering::Acquire), Ordering::Release);
        let retries = AtomicU64::new(self.retries());
        let in_flight = Arc::clone(&self.in_flight);
        Some(Self { in_flight, failures: wider, retries, latency: self.latency.clone() })
    }

    /// Requests that were tried again since the start.
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Failures since the start.
    pub fn failures(&self) -> u64 {
        self.failures.total.load(Ordering::Relaxed)
    }

    /// Failures that are remembered.
    pub fn remembered_failures(&self, now: Instant) -> usize {
        let now = nanoseconds(now);
        self.failures.forgotten_at.iter().filter(|at| at.load(Ordering::Relaxed) > now).count()
    }
}

impl Default for Standing {
    fn default() -> Self {
        Self::new(FAILURES_REMEMBERED_MAX)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Failures {
    fn new(distinguished: u32) -> Self {
        let places = distinguished.clamp(1, FAILURES_REMEMBERED_MAX);
        Self {
            forgotten_at: (0..places).map(|_| AtomicU64::new(0)).collect(),
            next: AtomicUsize::new(0),
            latest: CachePadded::new(AtomicU64::new(0)),
            total: AtomicU64::new(0),
        }
    }

    pub(crate) fn remember(&self, time: Duration, now: Instant) {
        self.total.fetch_add(1, Ordering::Relaxed);
        if time.is_zero() {
            return;
        }
        let until = nanoseconds(now).saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(place) = self.forgotten_at.get(number % self.forgotten_at.len().max(1)) {
            place.store(until, Ordering::Relaxed);
        }
        // Whoever sees this sees the place too.
        self.latest.fetch_max(until, Ordering::Release);
    }

    /// Whether there ever was one: without it nobody asks for the time.
    pub(crate) fn may_be_any(&self) -> bool {
        self.latest.load(Ordering::Relaxed) != 0
    }

    /// Whether so many are remembered.
    pub(crate) fn are(&self, most: u32, now: Instant) -> bool {
        let now = nanoseconds(now);
        if self.latest.load(Ordering::Acquire) <= now {
            return false;
        }
        let most = most.clamp(1, FAILURES_REMEMBERED_MAX) as usize;
        let remembered = self.forgotten_at.iter().filter(|at| at.load(Ordering::Relaxed) > now);
        remembered.take(most).count() >= most
    }
}

impl Active {
    /// Whether it gets no requests.
    pub fn is_down(&self) -> bool {
        self.is_down.load(Ordering::Relaxed)
    }

    /// Since when and why.
    pub fn down(&self) -> Option<Down> {
        self.course.lock().unwrap_or_else(PoisonError::into_inner).down.clone()
    }

    /// It was asked, and is well or not: so many answers of one kind in a row change what it counts as.
    pub fn found(&self, found: Result<(), String>, passes: u32, fails: u32, now: Instant) -> Option<Change> {
        let mut course = self.course.lock().unwrap_or_else(PoisonError::into_inner);
        match found {
            Ok(()) => {
                course.bad_in_a_row = 0;
                course.good_in_a_row = course.good_in_a_row.saturating_add(1);
                if course.good_in_a_row < passes {
                    return None;
                }
                let down = course.down.take()?;
                self.is_down.store(false, Ordering::Relaxed);
                Some(Change::Up(now.saturating_duration_since(down.since)))
            }
            Err(reason) => {
                course.good_in_a_row = 0;
                course.bad_in_a_row = course.bad_in_a_row.saturating_add(1);
                if let Some(down) = &mut course.down {
                    // What is told is what is wrong now.
                    down.reason = reason;
                    return None;
                }
                if course.bad_in_a_row < fails {
                    return None;
                }
                course.down = Some(Down { since: now, reason });
                self.is_down.store(true, Ordering::Relaxed);
                Some(Change::Down)
            }
        }
    }
}

/// At least 1, so that 0 can stand for never.
fn nanoseconds(moment: Instant) -> u64 {
    let since = moment.saturating_duration_since(epoch()).as_nanos();
    u64::try_from(since).unwrap_or(u64::MAX).max(1)
}
