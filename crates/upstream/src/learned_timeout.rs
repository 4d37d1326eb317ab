//! The idle timeout of an upstream, learned from the connections that it closed.
//!
//! One close says little: a restart closes connections of any age. The timeout is learned from two that were idle equally
//! long, the second of which became idle after the first was closed. Connections that were closed as soon as they were
//! idle do not count: such an upstream is not there, rather than waiting. What was seen and what was learned is forgotten
//! after a while, so that an upstream with other settings is believed again. Never closes anything.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use onehop_connection::limits::DEADLINE_TICK;

use crate::limits::{CONNECTION_SOUND_AFTER, IDLE_MARGIN, LEARNED_TIMEOUT_KEPT, REPLACEMENT_LEAD_MAX};

/// An upstream's idle timeout for connections of one kind: those that were never used may have another than those that
/// were.
#[derive(Default)]
pub(crate) struct LearnedTimeout {
    /// Milliseconds after which it closes them; 0 where that is not known.
    closes_after: AtomicU64,
    /// Milliseconds for which a connection was seen to be idle without being closed.
    outlived: AtomicU64,
    /// Locked only where a connection was closed.
    last: Mutex<Option<Close>>,
}

#[derive(Clone, Copy)]
struct Close {
    seen: Instant,
    idle: Duration,
    /// What was learned from it counts until then.
    until: Option<Instant>,
}

impl LearnedTimeout {
    /// The upstream has closed a connection that was idle from `since` on and still open after `idle`.
    pub(crate) fn closed(&self, since: Instant, idle: Duration, now: Instant) {
        self.outlived.fetch_min(millis(idle), Ordering::Relaxed);
        if idle < CONNECTION_SOUND_AFTER {
            return;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut until = None;
        if let Some(before) = *last {
            // Connections that were closed together count once.
            if since <= before.seen {
                return;
            }
            let is_lately = since - before.seen <= LEARNED_TIMEOUT_KEPT.saturating_add(idle);
            if is_lately && is_alike(before.idle, idle) {
                let shorter = before.idle.min(idle);
                self.closes_after.store(millis(shorter).max(1), Ordering::Relaxed);
                // At least until some connections have been replaced for it.
                until = now.checked_add(LEARNED_TIMEOUT_KEPT.max(idle.saturating_mul(4)));
            }
        }
        *last = Some(Close { seen: now, idle, until });
    }

    /// A connection has been idle so long and is still open.
    pub(crate) fn outlived(&self, idle: Duration) {
        let idle = millis(idle);
        if self.outlived.load(Ordering::Relaxed) < idle {
            self.outlived.fetch_max(idle, Ordering::Relaxed);
        }
    }

    /// Whether a connection that was idle so long will still be open for a while: others were idle for longer.
    pub(crate) fn is_outlived(&self, idle: Duration) -> bool {
        millis(idle + IDLE_MARGIN) < self.outlived.load(Ordering::Relaxed)
    }

    /// Whether the connection that was closed last was idle about so long: that may be the timeout.
    pub(crate) fn was_closed_around(&self, idle: Duration) -> bool {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_some_and(|close| is_alike(close.idle, idle))
    }

    /// The timeout, if it is known.
    pub(crate) fn closes_after(&self) -> Option<Duration> {
        let learned = self.closes_after.load(Ordering::Relaxed);
        (learned > 0).then(|| Duration::from_millis(learned))
    }

    /// Forgets what was learned too long ago. One more close that is like the last one brings it back.
    pub(crate) fn forget_at(&self, now: Instant) {
        if self.closes_after.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(close) = &mut *last
            && close.until.is_none_or(|until| until <= now)
        {
            close.until = None;
            self.closes_after.store(0, Ordering::Relaxed);
        }
    }
}

/// How long a connection may be idle whose upstream closes it after so long: a request must not cross its close.
pub(crate) fn idle_time_max(closes_after: Duration) -> Duration {
    closes_after.saturating_sub(IDLE_MARGIN.min(closes_after / 4))
}

/// Whether a connection that was idle so long is soon to be closed, so that another one is opened in its place.
pub(crate) fn is_fading(closes_after: Duration, idle: Duration) -> bool {
    idle + REPLACEMENT_LEAD_MAX.min(closes_after / 4) >= idle_time_max(closes_after)
}

/// Ticks are this far apart, and upstreams' own clocks are no finer.
fn is_alike(one: Duration, other: Duration) -> bool {
    let slack = DEADLINE_TICK * 2 + one.min(other) / 8;
    one.abs_diff(other) <= slack
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_close_teaches_nothing_and_two_alike_teach_the_timeout() {
        let (learned, start) = (LearnedTimeout::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let secs = Duration::from_secs;
        learned.closed(at(0), secs(5), at(5));
        let doubtful = [3, 5, 6, 8].map(|idle| learned.was_closed_around(secs(idle)));
        assert_eq!(doubtful, [false, true, true, false]);
        // Closed together with the first.
        learned.closed(at(0), secs(5), at(5));
        learned.closed(at(1), secs(4), at(5));
        assert_eq!(learned.closes_after(), None);
        learned.closed(at(6), secs(5), at(11));
        assert_eq!(learned.closes_after(), Some(secs(5)));
        learned.forget_at(at(12));
        assert_eq!(learned.closes_after(), Some(secs(5)));
    }

    #[test]
    fn closes_of_different_ages_are_restarts() {
        let (learned, start) = (LearnedTimeout::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        for (since, seen) in [(0, 40), (41, 50), (51, 151), (152, 171)] {
            learned.closed(at(since), Duration::from_secs(seen - since), at(seen));
            assert_eq!(learned.closes_after(), None, "after {since}");
        }
    }

    #[test]
    fn what_is_closed_at_once_teaches_nothing() {
        let (learned, start) = (LearnedTimeout::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        for (since, idle) in [(0, 0), (500, 0), (1_000, 1), (2_000, 900), (3_000, 900), (4_000, 999)] {
            learned.closed(at(since), Duration::from_millis(idle), at(since + idle));
            assert_eq!(learned.closes_after(), None, "after {since}");
        }
        learned.closed(at(6_000), Duration::from_secs(1), at(7_000));
        assert_eq!(learned.closes_after(), None, "those before do not count");
        learned.closed(at(8_000), Duration::from_secs(1), at(9_000));
        assert_eq!(learned.closes_after(), Some(Duration::from_secs(1)));
    }

    #[test]
    fn two_restarts_days_apart_teach_nothing() {
        let (learned, start) = (LearnedTimeout::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let day = 86_400;
        for number in 0..5 {
            learned.closed(at(number * day), Duration::from_secs(5), at(number * day + 5));
            assert_eq!(learned.closes_after(), None, "day {number}");
        }
    }

    #[test]
    fn a_long_timeout_is_learned_and_kept_until_it_is_of_use() {
        let (learned, start) = (LearnedTimeout::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        learned.closed(at(0), Duration::from_secs(3_600), at(3_600));
        learned.closed(at(3_601), Duration::from_secs(3_600), at(7_201));
        learned.forget_at(at(7_201 + 3_600));
        assert_eq!(learned.closes_after(), Some(Duration::from_secs(3_600)));
    }

    #[test]
    fn a_learned_timeout_is_forgotten_and_one_close_brings_it_back() {
        let (learned, start) = (LearnedTimeout::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        learned.closed(at(0), Duration::from_secs(5), at(5));
        learned.closed(at(6), Duration::from_secs(5), at(11));
        let later = at(11) + LEARNED_TIMEOUT_KEPT;
        learned.forget_at(later);
        assert_eq!(learned.closes_after(), None);
        learned.closed(later, Duration::from_secs(5), later + Duration::from_secs(5));
        assert_eq!(learned.closes_after(), Some(Duration::from_secs(5)));
    }

    #[test]
    fn what_others_outlived_is_safe_until_one_is_closed() {
        let (learned, start) = (LearnedTimeout::default(), Instant::now());
        assert!(!learned.is_outlived(Duration::from_secs(2)));
        learned.outlived(Duration::from_secs(60));
        assert!(learned.is_outlived(Duration::from_secs(58)));
        assert!(!learned.is_outlived(Duration::from_secs(59)), "too near");
        learned.closed(start, Duration::from_secs(30), start + Duration::from_secs(30));
        assert!(!learned.is_outlived(Duration::from_secs(58)));
    }

    #[test]
    fn a_connection_is_idle_for_a_little_less_than_its_upstream_allows() {
        let rows = [(5_000, 4_000), (75_000, 74_000), (2_000, 1_500), (400, 300), (0, 0)];
        for (theirs, ours) in rows {
            assert_eq!(idle_time_max(Duration::from_millis(theirs)), Duration::from_millis(ours), "{theirs}");
        }
    }
}
