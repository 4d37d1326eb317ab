//! What is known of how long an upstream keeps a connection without a request, learned from those that it closed.
//!
//! One close says little: a restart closes connections of any age. Two that rested equally long, the second of them
//! later than the first was seen, are a habit, if neither was closed as soon as it rested: what closes at once is an
//! upstream that is not there, and not one that waits. What was seen and what was learned is forgotten after a while,
//! so that an upstream that was set up anew is believed again. Never closes anything.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::{
    FLOOR_SOUND_AFTER, UPSTREAM_HABIT_FORGOTTEN_AFTER, UPSTREAM_IDLE_MARGIN, UPSTREAM_LEAD_MAX,
};

/// An upstream's habit with connections of one kind: those that were never used may be kept for another time than
/// the others.
#[derive(Default)]
pub(super) struct Habit {
    /// Milliseconds after which it closes them; 0 where that is not known.
    closes_after: AtomicU64,
    /// Milliseconds that one was seen to rest without being closed.
    outlived: AtomicU64,
    /// Looked at only where something was closed.
    last: Mutex<Option<Close>>,
}

#[derive(Clone, Copy)]
struct Close {
    seen: Instant,
    rested: Duration,
    /// What was learned of it counts until then.
    until: Option<Instant>,
}

impl Habit {
    /// A connection was closed by the upstream; it began to rest at `since` and was still open `rested` later.
    pub(super) fn closed(&self, since: Instant, rested: Duration, now: Instant) {
        self.outlived.fetch_min(millis(rested), Ordering::Relaxed);
        if rested < FLOOR_SOUND_AFTER {
            return;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut until = None;
        if let Some(before) = *last {
            // Those that were closed together tell one thing, and tell it once.
            if since <= before.seen {
                return;
            }
            let is_lately = since - before.seen <= UPSTREAM_HABIT_FORGOTTEN_AFTER.saturating_add(rested);
            if is_lately && is_alike(before.rested, rested) {
                let shorter = before.rested.min(rested);
                self.closes_after.store(millis(shorter).max(1), Ordering::Relaxed);
                // At least until some connections have been replaced for it.
                until = now.checked_add(UPSTREAM_HABIT_FORGOTTEN_AFTER.max(rested.saturating_mul(4)));
            }
        }
        *last = Some(Close { seen: now, rested, until });
    }

    /// One has rested so long and is still open.
    pub(super) fn outlived(&self, rested: Duration) {
        let rested = millis(rested);
        if self.outlived.load(Ordering::Relaxed) < rested {
            self.outlived.fetch_max(rested, Ordering::Relaxed);
        }
    }

    /// Whether one that has rested so long will still be open for a while: others were, that had rested longer.
    pub(super) fn is_outlived(&self, rested: Duration) -> bool {
        millis(rested + UPSTREAM_IDLE_MARGIN) < self.outlived.load(Ordering::Relaxed)
    }

    /// Whether one that had rested about so long was the last to be closed: that may become a habit.
    pub(super) fn was_closed_around(&self, rested: Duration) -> bool {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_some_and(|close| is_alike(close.rested, rested))
    }

    /// After so long it closes them, as far as is known.
    pub(super) fn closes_after(&self) -> Option<Duration> {
        let learned = self.closes_after.load(Ordering::Relaxed);
        (learned > 0).then(|| Duration::from_millis(learned))
    }

    /// Forgets what was learned too long ago. One more close that is like the last one brings it back.
    pub(super) fn forget_at(&self, now: Instant) {
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

/// How long a connection may rest whose upstream closes it after so long: a request must not meet its closing on
/// the way.
pub(super) fn rests_at_most(closes_after: Duration) -> Duration {
    closes_after.saturating_sub(UPSTREAM_IDLE_MARGIN.min(closes_after / 4))
}

/// So long before that another one is opened in its place.
pub(super) fn lead(closes_after: Duration) -> Duration {
    UPSTREAM_LEAD_MAX.min(closes_after / 4)
}

/// Looks are a tick apart, and upstreams' own clocks are no finer.
fn is_alike(one: Duration, other: Duration) -> bool {
    let slack = crate::limits::DEADLINE_TICK * 2 + one.min(other) / 8;
    one.abs_diff(other) <= slack
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_close_is_no_habit_and_two_alike_are() {
        let (habit, start) = (Habit::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let secs = Duration::from_secs;
        habit.closed(at(0), secs(5), at(5));
        let doubtful = [3, 5, 6, 8].map(|rested| habit.was_closed_around(secs(rested)));
        assert_eq!(doubtful, [false, true, true, false]);
        // Closed together with the first.
        habit.closed(at(0), secs(5), at(5));
        habit.closed(at(1), secs(4), at(5));
        assert_eq!(habit.closes_after(), None);
        habit.closed(at(6), secs(5), at(11));
        assert_eq!(habit.closes_after(), Some(secs(5)));
        habit.forget_at(at(12));
        assert_eq!(habit.closes_after(), Some(secs(5)));
    }

    #[test]
    fn closes_of_different_ages_are_restarts() {
        let (habit, start) = (Habit::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        for (since, seen) in [(0, 40), (41, 50), (51, 151), (152, 171)] {
            habit.closed(at(since), Duration::from_secs(seen - since), at(seen));
            assert_eq!(habit.closes_after(), None, "after {since}");
        }
    }

    #[test]
    fn what_is_closed_at_once_is_no_habit() {
        let (habit, start) = (Habit::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        for (since, rested) in [(0, 0), (500, 0), (1_000, 1), (2_000, 900), (3_000, 900), (4_000, 999)] {
            habit.closed(at(since), Duration::from_millis(rested), at(since + rested));
            assert_eq!(habit.closes_after(), None, "after {since}");
        }
        habit.closed(at(6_000), Duration::from_secs(1), at(7_000));
        assert_eq!(habit.closes_after(), None, "those before do not count");
        habit.closed(at(8_000), Duration::from_secs(1), at(9_000));
        assert_eq!(habit.closes_after(), Some(Duration::from_secs(1)));
    }

    #[test]
    fn two_restarts_days_apart_are_no_habit() {
        let (habit, start) = (Habit::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let day = 86_400;
        for number in 0..5 {
            habit.closed(at(number * day), Duration::from_secs(5), at(number * day + 5));
            assert_eq!(habit.closes_after(), None, "day {number}");
        }
    }

    #[test]
    fn the_habit_of_a_patient_upstream_is_learned_and_lasts_until_it_is_of_use() {
        let (habit, start) = (Habit::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        habit.closed(at(0), Duration::from_secs(3_600), at(3_600));
        habit.closed(at(3_601), Duration::from_secs(3_600), at(7_201));
        habit.forget_at(at(7_201 + 3_600));
        assert_eq!(habit.closes_after(), Some(Duration::from_secs(3_600)));
    }

    #[test]
    fn a_habit_is_forgotten_and_one_close_brings_it_back() {
        let (habit, start) = (Habit::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        habit.closed(at(0), Duration::from_secs(5), at(5));
        habit.closed(at(6), Duration::from_secs(5), at(11));
        let later = at(11) + UPSTREAM_HABIT_FORGOTTEN_AFTER;
        habit.forget_at(later);
        assert_eq!(habit.closes_after(), None);
        habit.closed(later, Duration::from_secs(5), later + Duration::from_secs(5));
        assert_eq!(habit.closes_after(), Some(Duration::from_secs(5)));
    }

    #[test]
    fn what_others_outlived_is_safe_until_one_is_closed() {
        let (habit, start) = (Habit::default(), Instant::now());
        assert!(!habit.is_outlived(Duration::from_secs(2)));
        habit.outlived(Duration::from_secs(60));
        assert!(habit.is_outlived(Duration::from_secs(58)));
        assert!(!habit.is_outlived(Duration::from_secs(59)), "too near");
        habit.closed(start, Duration::from_secs(30), start + Duration::from_secs(30));
        assert!(!habit.is_outlived(Duration::from_secs(58)));
    }

    #[test]
    fn a_connection_rests_a_little_shorter_than_its_upstream_keeps_it() {
        let rows = [(5_000, 4_000), (75_000, 74_000), (2_000, 1_500), (400, 300), (0, 0)];
        for (theirs, ours) in rows {
            assert_eq!(rests_at_most(Duration::from_millis(theirs)), Duration::from_millis(ours), "{theirs}");
        }
    }
}
