//! Slow and failed requests, kept for `onehop why`: of each core the slowest ones of each of the last minutes, and the last
//! ones that failed.
//!
//! A request that is neither costs two comparisons. One that is kept takes the lock of its core, which only readers share.
//! [`request`] is what is kept of one, [`explain`] the sentence about it.

mod explain;
mod request;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use request::{LimitMet, Parts, RetainedRequest, WorkerSeen};
pub(crate) use request::{Stalling, milliseconds, text};

use crate::limits::{
    FAILED_KEPT, FAILED_PER_SECOND, FAILED_PERIOD, SLOW_FLOOR, SLOW_MINUTES, SLOW_PER_MINUTE, SLOW_PERIOD,
    STALLS_ARRIVE_WITHIN,
};

/// The slow and failed requests of one core.
pub struct Retained {
    /// Requests that take less need not be kept, in nanoseconds.
    slow_after: AtomicU64,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The slowest of each minute, the newest minute last.
    minutes: VecDeque<Minute>,
    failed: VecDeque<RetainedRequest>,
    /// The second in which requests failed last, and how many of them were kept.
    failing: Option<(Instant, u32)>,
}

struct Minute {
    started: Instant,
    /// The fastest first.
    slowest: Vec<RetainedRequest>,
}

impl Default for Retained {
    fn default() -> Self {
        Self { slow_after: AtomicU64::new(nanos(SLOW_FLOOR)), kept: Mutex::default() }
    }
}

impl Retained {
    /// Whether a request that took so long is among the slowest.
    pub(crate) fn is_slow(&self, took: Duration) -> bool {
        nanos(took) >= self.slow_after.load(Ordering::Relaxed)
    }

    /// Keeps a slow request.
    pub(crate) fn add_slow(&self, now: Instant, request: RetainedRequest) {
        let mut kept = self.lock();
        let minute = kept.minute(now);
        let at = minute.slowest.partition_point(|other| other.total_ms < request.total_ms);
        minute.slowest.insert(at, request);
        if minute.slowest.len() > SLOW_PER_MINUTE {
            minute.slowest.remove(0);
        }
        if minute.slowest.len() == SLOW_PER_MINUTE
            && let Some(fastest) = minute.slowest.first()
        {
            self.slow_after.store((fastest.total_ms * 1_000_000.0) as u64, Ordering::Relaxed);
        }
    }

    /// Keeps a failed request, unless as many of this second are kept as may. `make` is called if it is.
    pub(crate) fn add_failed(&self, now: Instant, make: impl FnOnce() -> RetainedRequest) {
        let mut kept = self.lock();
        let (since, count) = match kept.failing {
            Some((since, count)) if now.saturating_duration_since(since) < FAILED_PERIOD => (since, count),
            _ => (now, 0),
        };
        if count >= FAILED_PER_SECOND {
            return;
        }
        kept.failing = Some((since, count + 1));
        if kept.failed.len() >= FAILED_KEPT {
            kept.failed.pop_front();
        }
        kept.failed.push_back(make());
    }

    /// Forgets minutes that are long over, begins the next one, and looks up what workers have reported meanwhile.
    pub(crate) fn tick(&self, now: Instant) {
        let mut kept = self.lock();
        if kept.minutes.is_empty() && kept.failed.is_empty() {
            return;
        }
        let is_over = |minute: &Minute| now.saturating_duration_since(minute.started) >= SLOW_PERIOD;
        if kept.minutes.back().is_some_and(is_over) {
            self.slow_after.store(nanos(SLOW_FLOOR), Ordering::Relaxed);
        }
        let is_old = |minute: &Minute| {
            now.saturating_duration_since(minute.started) >= SLOW_PERIOD * SLOW_MINUTES as u32
        };
        if kept.minutes.front().is_some_and(is_old) {
            kept.minutes.pop_front();
        }
        let slow = kept.minutes.iter_mut().rev().take(2).flat_map(|minute| &mut minute.slowest);
        slow.for_each(|request| settle(request, now, STALLS_ARRIVE_WITHIN));
        for request in kept.failed.iter_mut().rev().take(FAILED_PER_SECOND as usize * 2) {
            settle(request, now, STALLS_ARRIVE_WITHIN);
        }
    }

    /// Every request that is kept, each once.
    pub(crate) fn all(&self) -> Vec<RetainedRequest> {
        let kept = self.lock();
        let slow = kept.minutes.iter().flat_map(|minute| &minute.slowest);
        let mut all: Vec<_> = slow.chain(&kept.failed).cloned().collect();
        drop(kept);
        let now = Instant::now();
        all.iter_mut().for_each(|request| settle(request, now, Duration::ZERO));
        all
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// The minute that `now` is in.
    fn minute(&mut self, now: Instant) -> &mut Minute {
        let is_current = |minute: &Minute| now.saturating_duration_since(minute.started) < SLOW_PERIOD;
        if !self.minutes.back().is_some_and(is_current) {
            if self.minutes.len() >= SLOW_MINUTES {
                self.minutes.pop_front();
            }
            self.minutes.push_back(Minute { started: now, slowest: Vec::new() });
        }
        let last = self.minutes.len() - 1;
        &mut self.minutes[last]
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Looks up what the worker has reported within so long, and explains the request.
fn settle(request: &mut RetainedRequest, now: Instant, reported_within: Duration) {
    if request.look_up_stalls(now, reported_within) || request.why.is_empty() {
        request.why = explain::sentence(request);
        request.next = explain::next_step(request).to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(total_ms: f64) -> RetainedRequest {
        RetainedRequest { total_ms, ..RetainedRequest::default() }
    }

    fn slowest(retained: &Retained) -> Vec<f64> {
        retained.all().iter().map(|request| request.total_ms).collect()
    }

    #[test]
    fn of_each_minute_the_slowest_requests_stay() {
        let (retained, start) = (Retained::default(), Instant::now());
        assert!(!retained.is_slow(Duration::from_millis(9)));
        for number in 0..50_u32 {
            let took = Duration::from_millis(u64::from(20 + number * 7 % 50));
            if retained.is_slow(took) {
                retained.add_slow(start, request(took.as_secs_f64() * 1_000.0));
            }
        }
        assert_eq!(slowest(&retained), (60..70).map(f64::from).collect::<Vec<_>>());
        assert!(!retained.is_slow(Duration::from_millis(59)));
        retained.tick(start + SLOW_PERIOD);
        assert!(
            retained.is_slow(Duration::from_millis(11)),
            "the next minute has slowest requests of its own"
        );
        retained.add_slow(start + SLOW_PERIOD, request(11.0));
        assert_eq!(slowest(&retained).len(), SLOW_PER_MINUTE + 1);
        retained.tick(start + SLOW_PERIOD * SLOW_MINUTES as u32);
        assert_eq!(slowest(&retained), [11.0]);
    }

    #[test]
    fn an_outage_displaces_little() {
        let (retained, start) = (Retained::default(), Instant::now());
        for number in 0..1_000_u64 {
            retained.add_failed(start + Duration::from_millis(number * 2), || request(number as f64));
        }
        assert_eq!(retained.all().len(), 2 * FAILED_PER_SECOND as usize);
        for number in 10..1_000 {
            retained.add_failed(start + Duration::from_secs(number), || request(1.0));
        }
        assert_eq!(retained.all().len(), FAILED_KEPT);
    }
}
