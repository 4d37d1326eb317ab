//! The decision about one key: the Generic Cell Rate Algorithm, the leaky bucket as a meter (ITU-T I.371 annex A).
//!
//! Pure: knows no clock, no key and no table. All that is remembered of a key is one time, at which its bucket will
//! be full again; the standard calls it the theoretical arrival time. Each admitted request moves it on by
//! the interval of a steady client. It may be ahead of now by as much as a burst needs, and no further. Nothing has
//! to run while time passes, and what is in the past means the same as never.

use std::time::Duration;

/// The rate as the algorithm has it. Times are nanoseconds since the start of the caller's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rate {
    /// Between two requests of a steady client; at least 1.
    interval: u64,
    /// How far the time of a full bucket may be ahead where one more is admitted: all of a burst but its first.
    tolerance: u64,
}

/// What is decided about one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is admitted; this is to be remembered.
    Admitted {
        /// When the bucket will be full again.
        full_at: u64,
    },
    /// It is rejected, and nothing changes: a client that keeps asking is admitted as often as one that waits.
    Rejected {
        /// Nanoseconds until one would be admitted.
        wait: u64,
    },
}

/// How much is left of a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Left {
    /// Requests that would be admitted now.
    pub(super) requests: u64,
    /// Within this time a client that asks for no more than those keeps to the rate; where there are none, until
    /// there is one.
    pub(super) within: u64,
}

impl Rate {
    /// So many requests in this time, so many of them at once. Nothing counts as one.
    pub(super) fn new(events: u32, window: Duration, burst: u32) -> Self {
        let window = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
        // Rounded up, so that no window ever sees one more.
        let interval = window.div_ceil(u64::from(events.max(1))).max(1);
        let tolerance = interval.saturating_mul(u64::from(burst.max(1) - 1));
        Self { interval, tolerance }
    }

    /// Decides about a request of a key of which this is remembered; 0 for a key that is not known.
    pub(super) fn judge(self, full_at: u64, now: u64) -> Verdict {
        let begin = full_at.max(now);
        let ahead = begin - now;
        if ahead > self.tolerance {
            Verdict::Rejected { wait: ahead - self.tolerance }
        } else {
            Verdict::Admitted { full_at: begin.saturating_add(self.interval) }
        }
    }

    /// What is left to a key of which this is remembered.
    pub(super) fn left(self, full_at: u64, now: u64) -> Left {
        let bucket = self.tolerance.saturating_add(self.interval);
        let room = bucket.saturating_sub(full_at.saturating_sub(now));
        match room / self.interval {
            0 => Left { requests: 0, within: self.interval - room },
            requests => Left { requests, within: requests.saturating_mul(self.interval) },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn rate(events: u32, millis: u64, burst: u32) -> Rate {
        Rate::new(events, Duration::from_millis(millis), burst)
    }

    /// Asks at these times, and gives those at which it was let in.
    fn admitted(rate: Rate, times: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut full_at = 0;
        let mut is_admitted = |now: &u64| match rate.judge(full_at, *now) {
            Verdict::Admitted { full_at: next } => {
                full_at = next;
                true
            }
            Verdict::Rejected { .. } => false,
        };
        times.into_iter().filter(|now| is_admitted(now)).collect()
    }

    #[test]
    fn a_burst_is_admitted_at_once_and_then_one_in_each_interval() {
        let times = admitted(rate(10, 1_000, 3), (0..10_000).map(|milli| SECOND + milli * 1_000_000));
        let gaps: Vec<u64> = times.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000_000).collect();
        assert_eq!(gaps[..3], [1, 1, 98]);
        assert!(gaps[3..].iter().all(|gap| *gap == 100), "{gaps:?}");
        assert_eq!(times.len(), 3 + 99);
    }

    #[test]
    fn a_client_that_keeps_asking_is_admitted_as_often_as_one_that_waits() {
        let rate = rate(2, 1_000, 1);
        let mad = admitted(rate, (0..10_000).map(|milli| milli * 1_000_000));
        let patient = admitted(rate, (0..20).map(|number| number * SECOND / 2));
        assert_eq!(mad, patient);
    }

    #[test]
    fn a_client_that_waits_as_asked_is_admitted_and_not_a_nanosecond_before() {
        let rate = rate(7, 1_000, 4);
        let mut full_at = 0;
        let mut refused = 0;
        let mut now = SECOND;
        for _ in 0..100 {
            match rate.judge(full_at, now) {
                Verdict::Admitted { full_at: next } => full_at = next,
                Verdict::Rejected { wait } => {
                    assert!(matches!(rate.judge(full_at, now + wait - 1), Verdict::Rejected { wait: 1 }));
                    now += wait;
                    assert!(matches!(rate.judge(full_at, now), Verdict::Admitted { .. }));
                    refused += 1;
                }
            }
        }
        assert!(refused > 10);
    }

    #[test]
    fn what_is_left_is_what_would_be_admitted() {
        let rate = rate(10, 1_000, 5);
        let now = SECOND;
        let mut full_at = 0;
        for expected in (0..5).rev() {
            let Verdict::Admitted { full_at: next } = rate.judge(full_at, now) else { panic!("{expected}") };
            full_at = next;
            let left = rate.left(full_at, now);
            assert_eq!(left.requests, expected);
            assert_eq!(left.within, expected.max(1) * SECOND / 10);
        }
        assert_eq!(rate.judge(full_at, now), Verdict::Rejected { wait: SECOND / 10 });
        assert_eq!(rate.left(full_at, now), Left { requests: 0, within: SECOND / 10 });
        assert_eq!(rate.left(full_at, now + SECOND).requests, 5);
    }

    #[test]
    fn senseless_settings_neither_panic_nor_stop_the_clock() {
        for (events, window, burst) in [
            (0, Duration::ZERO, 0),
            (u32::MAX, Duration::from_nanos(1), u32::MAX),
            (1, Duration::MAX, u32::MAX),
            (1, Duration::MAX, 1),
        ] {
            let rate = Rate::new(events, window, burst);
            let mut full_at = 0;
            for now in [0, 1, SECOND, u64::MAX - 1, u64::MAX] {
                if let Verdict::Admitted { full_at: next } = rate.judge(full_at, now) {
                    full_at = next;
                }
                rate.left(full_at, now);
            }
        }
    }

    proptest! {
        #[test]
        fn no_window_of_any_length_sees_more_than_a_burst_and_what_it_regains(
            events in 1_u32..500,
            millis in 1_u64..100_000,
            burst in 1_u32..50,
            gaps in prop::collection::vec(0_u64..200_000_000, 1..300),
        ) {
            let rate = rate(events, millis, burst);
            let times = gaps.iter().scan(SECOND, |now, gap| {
                *now += gap;
                Some(*now)
            });
            let times = admitted(rate, times);
            prop_assert!(!times.is_empty());
            for (first, begin) in times.iter().enumerate() {
                for (count, end) in times[first..].iter().enumerate() {
                    let regained = u128::from(end - begin) * u128::from(events)
                        / (u128::from(millis) * 1_000_000);
                    prop_assert!((count as u128) < u128::from(burst) + regained);
                }
            }
        }

        /// The bucket as a bucket: it holds a burst, runs full with time, and each request takes one out of it.
        #[test]
        fn it_decides_as_a_bucket_of_tokens_does(
            burst in 1_u32..20,
            gaps in prop::collection::vec(0_u64..3_000, 1..300),
        ) {
            let interval = 1_000;
            let rate = Rate::new(1, Duration::from_nanos(interval), burst);
            let capacity = u64::from(burst) * interval;
            let (mut level, mut full_at, mut now) = (capacity, 0, SECOND);
            for gap in gaps {
                now += gap;
                level = (level + gap).min(capacity);
                let is_admitted = level >= interval;
                if is_admitted {
                    level -= interval;
                }
                match rate.judge(full_at, now) {
                    Verdict::Admitted { full_at: next } => {
                        prop_assert!(is_admitted);
                        full_at = next;
                    }
                    Verdict::Rejected { wait } => {
                        prop_assert!(!is_admitted);
                        prop_assert_eq!(wait, interval - level);
                    }
                }
                prop_assert_eq!(rate.left(full_at, now).requests, level / interval);
            }
        }
    }
}
