//! How fast requests are answered, and so when asking again makes sense.
//!
//! Numbers in, a number out; knows no clock and no gate.

use std::collections::VecDeque;
use std::time::Instant;

use onehop_message::limits::RETRY_AFTER_SECONDS_MAX;

use crate::limits::{DRAIN_MARK_PERIOD, DRAIN_WINDOW};

/// How many had been answered at some moments of the last seconds. Nothing is noted while nobody is refused.
#[derive(Debug, Default)]
pub(super) struct Drain {
    /// Oldest first; at most DRAIN_WINDOW / DRAIN_MARK_PERIOD + 1.
    marks: VecDeque<(Instant, u64)>,
}

impl Drain {
    /// Seconds after which somebody who comes now would have had his turn: those ahead of him by the answers per
    /// second. `answered` counts those since the start, and may wrap around.
    pub(super) fn retry_after(&mut self, now: Instant, answered: u64, waiting: usize) -> u32 {
        let age = |mark: &(Instant, u64)| now.saturating_duration_since(mark.0);
        while self.marks.front().is_some_and(|mark| age(mark) > DRAIN_WINDOW) {
            self.marks.pop_front();
        }
        let oldest = self.marks.front().copied();
        if self.marks.back().is_none_or(|mark| age(mark) >= DRAIN_MARK_PERIOD) {
            self.marks.push_back((now, answered));
        }
        // Nothing is known at the beginning of an overload.
        let Some(oldest) = oldest.filter(|mark| age(mark) >= DRAIN_MARK_PERIOD) else { return 1 };
        // Where nobody was answered, the first one may be at any moment.
        let answers = (answered.wrapping_sub(oldest.1) & u64::from(u32::MAX)).max(1);
        let ahead = u128::try_from(waiting).unwrap_or(u128::MAX).saturating_add(1);
        let nanos = ahead.saturating_mul(age(&oldest).as_nanos()).div_ceil(u128::from(answers));
        let seconds = u32::try_from(nanos.div_ceil(1_000_000_000)).unwrap_or(u32::MAX);
        seconds.clamp(1, RETRY_AFTER_SECONDS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A hundred answers a second for four seconds, then so many wait.
    fn after_four_seconds(waiting: usize) -> u32 {
        let (mut drain, begun) = (Drain::default(), Instant::now());
        for tenth in 0..40 {
            drain.retry_after(begun + Duration::from_millis(tenth * 100), tenth * 10, 0);
        }
        drain.retry_after(begun + Duration::from_secs(4), 400, waiting)
    }

    #[test]
    fn who_is_refused_comes_back_when_the_queue_would_have_been_emptied() {
        assert_eq!(after_four_seconds(0), 1);
        assert_eq!(after_four_seconds(99), 1);
        assert_eq!(after_four_seconds(100), 2);
        assert_eq!(after_four_seconds(950), 10);
        assert_eq!(after_four_seconds(usize::MAX), 30);
    }

    #[test]
    fn nothing_is_promised_of_what_is_not_known() {
        let (mut drain, begun) = (Drain::default(), Instant::now());
        assert_eq!(drain.retry_after(begun, 7, 1_000), 1);
        assert_eq!(drain.retry_after(begun + Duration::from_millis(400), 7, 1_000), 1);
        // Nobody was answered for a while.
        assert_eq!(drain.retry_after(begun + Duration::from_secs(2), 7, 0), 2);
        assert_eq!(drain.retry_after(begun + Duration::from_secs(2), 7, 1_000), 30);
    }

    #[test]
    fn what_was_long_ago_says_nothing_about_now() {
        let (mut drain, begun) = (Drain::default(), Instant::now());
        drain.retry_after(begun, 0, 0);
        // An hour without a refusal.
        let later = begun + Duration::from_secs(3_600);
        assert_eq!(drain.retry_after(later, 10, 100), 1);
        assert_eq!(drain.retry_after(later + Duration::from_secs(1), 60, 100), 3);
    }

    #[test]
    fn a_count_that_wraps_around_is_a_small_step() {
        let (mut drain, begun) = (Drain::default(), Instant::now());
        let before_the_end = (1 << 40) - 50;
        drain.retry_after(begun, before_the_end, 0);
        assert_eq!(drain.retry_after(begun + Duration::from_secs(1), 50, 250), 3);
    }

    #[test]
    fn few_moments_are_remembered() {
        let (mut drain, begun) = (Drain::default(), Instant::now());
        for milli in 0..20_000 {
            drain.retry_after(begun + Duration::from_millis(milli), milli, 0);
        }
        assert!(drain.marks.len() <= 11, "{}", drain.marks.len());
    }
}
