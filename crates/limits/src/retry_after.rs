//! How fast requests are answered, and so when asking again makes sense.
//!
//! Pure: numbers in, a number out; knows no clock and no limiter.

use std::collections::VecDeque;
use std::time::Instant;

use onehop_message::limits::RETRY_AFTER_SECONDS_MAX;

use crate::limits::{ANSWER_MARK_PERIOD, ANSWER_WINDOW};

/// How many requests had been answered at some moments of the last seconds. Noted only at rejections.
#[derive(Debug, Default)]
pub struct ResponseRate {
    /// Oldest first; at most ANSWER_WINDOW / ANSWER_MARK_PERIOD + 1.
    marks: VecDeque<(Instant, u64)>,
}

impl ResponseRate {
    /// Seconds after which a request that comes now would have been admitted: those ahead of it by the answers per second.
    /// `answered` counts the answers since the start, and may wrap around.
    pub fn retry_after(&mut self, now: Instant, answered: u64, waiting: usize) -> u32 {
        let age = |mark: &(Instant, u64)| now.saturating_duration_since(mark.0);
        while self.marks.front().is_some_and(|mark| age(mark) > ANSWER_WINDOW) {
            self.marks.pop_front();
        }
        let oldest = self.marks.front().copied();
        if self.marks.back().is_none_or(|mark| age(mark) >= ANSWER_MARK_PERIOD) {
            self.marks.push_back((now, answered));
        }
        // Nothing is known at the beginning of an overload.
        let Some(oldest) = oldest.filter(|mark| age(mark) >= ANSWER_MARK_PERIOD) else { return 1 };
        // Where no request was answered, the first one may be at any moment.
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
        let (mut rate, begun) = (ResponseRate::default(), Instant::now());
        for tenth in 0..40 {
            rate.retry_after(begun + Duration::from_millis(tenth * 100), tenth * 10, 0);
        }
        rate.retry_after(begun + Duration::from_secs(4), 400, waiting)
    }

    #[test]
    fn a_rejected_client_returns_when_the_queue_would_have_drained() {
        assert_eq!(after_four_seconds(0), 1);
        assert_eq!(after_four_seconds(99), 1);
        assert_eq!(after_four_seconds(100), 2);
        assert_eq!(after_four_seconds(950), 10);
        assert_eq!(after_four_seconds(usize::MAX), 30);
    }

    #[test]
    fn nothing_is_promised_of_what_is_not_known() {
        let (mut rate, begun) = (ResponseRate::default(), Instant::now());
        assert_eq!(rate.retry_after(begun, 7, 1_000), 1);
        assert_eq!(rate.retry_after(begun + Duration::from_millis(400), 7, 1_000), 1);
        // Nobody was answered for a while.
        assert_eq!(rate.retry_after(begun + Duration::from_secs(2), 7, 0), 2);
        assert_eq!(rate.retry_after(begun + Duration::from_secs(2), 7, 1_000), 30);
    }

    #[test]
    fn what_was_long_ago_says_nothing_about_now() {
        let (mut rate, begun) = (ResponseRate::default(), Instant::now());
        rate.retry_after(begun, 0, 0);
        // An hour without a refusal.
        let later = begun + Duration::from_secs(3_600);
        assert_eq!(rate.retry_after(later, 10, 100), 1);
        assert_eq!(rate.retry_after(later + Duration::from_secs(1), 60, 100), 3);
    }

    #[test]
    fn a_count_that_wraps_around_is_a_small_step() {
        let (mut rate, begun) = (ResponseRate::default(), Instant::now());
        let before_the_end = (1 << 40) - 50;
        rate.retry_after(begun, before_the_end, 0);
        assert_eq!(rate.retry_after(begun + Duration::from_secs(1), 50, 250), 3);
    }

    #[test]
    fn few_moments_are_remembered() {
        let (mut rate, begun) = (ResponseRate::default(), Instant::now());
        for milli in 0..20_000 {
            rate.retry_after(begun + Duration::from_millis(milli), milli, 0);
        }
        assert!(rate.marks.len() <= 11, "{}", rate.marks.len());
    }
}
