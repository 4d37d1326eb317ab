//! What one core has seen: sums that only grow, so that adding them up loses nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// One core's sums.
pub(super) struct Sums {
    finished: AtomicU64,
    measured: AtomicU64,
    dropped: AtomicU64,
    /// A [`Quickest`], packed; [`NONE`] where there is none.
    quickest: AtomicU64,
    /// The least latency of all answers in nanoseconds; [`NONE`] where there is none.
    least: AtomicU64,
}

/// The measured answer that took the least time, and how many were in flight when it was admitted, itself included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Quickest {
    pub(super) took: Duration,
    pub(super) in_flight_at_start: u32,
}

/// What one request that is over tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sample {
    /// It was answered.
    Answered(Quickest),
    /// It was answered after so long, and admitted under another bound: that says nothing of this one's queue, but no request
    /// takes less than it does without any.
    Stale(Duration),
    /// It was given up. How long it took says nothing: neither a time limit nor a lost worker is a latency.
    Dropped,
}

/// Bits that say how many were in flight: as many as a limiter counts.
const IN_FLIGHT_BITS: u32 = 24;

/// The lowest bits of a latency's nanoseconds are left out, 256 of them, so that it may be some days long.
const NANOSECONDS_LEFT_OUT: u32 = 8;

const NONE: u64 = u64::MAX;

/// Sums at one moment; only differences mean something, and sums may wrap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    finished: u64,
    measured: u64,
    dropped: u64,
}

impl Default for Sums {
    fn default() -> Self {
        let none = || AtomicU64::new(0);
        Self {
            finished: none(),
            measured: none(),
            dropped: none(),
            quickest: AtomicU64::new(NONE),
            least: AtomicU64::new(NONE),
        }
    }
}

impl Sums {
    pub(super) fn add(&self, sample: Sample) {
        // Nothing is read from these but sums, so that their order means nothing.
        let count = |sum: &AtomicU64| sum.fetch_add(1, Ordering::Relaxed);
        match sample {
            Sample::Dropped => {
                count(&self.dropped);
            }
            Sample::Stale(took) => {
                count(&self.finished);
                self.least.fetch_min(nanoseconds(took), Ordering::Relaxed);
            }
            Sample::Answered(quickest) => {
                count(&self.finished);
                count(&self.measured);
                let packed = pack(quickest);
                // Most are not the quickest one, and need not write.
                if packed < self.quickest.load(Ordering::Relaxed) {
                    self.quickest.fetch_min(packed, Ordering::Relaxed);
                    self.least.fetch_min(nanoseconds(quickest.took), Ordering::Relaxed);
                }
            }
        }
    }

    /// Takes the quickest one since this was asked last.
    pub(super) fn take_quickest(&self) -> Option<Quickest> {
        let packed = self.quickest.swap(NONE, Ordering::Relaxed);
        let quickest = || Quickest {
            took: Duration::from_nanos(packed >> IN_FLIGHT_BITS << NANOSECONDS_LEFT_OUT),
            in_flight_at_start: (packed & IN_FLIGHT_MAX) as u32,
        };
        (packed != NONE).then(quickest)
    }

    /// Takes the least latency since this was asked last.
    pub(super) fn take_least(&self) -> Option<Duration> {
        let least = self.least.swap(NONE, Ordering::Relaxed);
        (least != NONE).then(|| Duration::from_nanos(least))
    }

    pub(super) fn totals(&self) -> Totals {
        Totals {
            finished: self.finished.load(Ordering::Relaxed),
            measured: self.measured.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }
}

const IN_FLIGHT_MAX: u64 = (1 << IN_FLIGHT_BITS) - 1;

/// Ordered by latency first.
fn pack(quickest: Quickest) -> u64 {
    let took = u64::try_from(quickest.took.as_nanos() >> NANOSECONDS_LEFT_OUT).unwrap_or(u64::MAX);
    (took.min(u64::MAX >> (IN_FLIGHT_BITS + 1)) << IN_FLIGHT_BITS)
        | u64::from(quickest.in_flight_at_start).min(IN_FLIGHT_MAX)
}

fn nanoseconds(took: Duration) -> u64 {
    u64::try_from(took.as_nanos()).unwrap_or(NONE - 1)
}

impl Totals {
    #[must_use]
    pub(super) fn plus(self, other: Totals) -> Totals {
        Totals {
            finished: self.finished.wrapping_add(other.finished),
            measured: self.measured.wrapping_add(other.measured),
            dropped: self.dropped.wrapping_add(other.dropped),
        }
    }

    /// What came after `before`.
    #[must_use]
    pub(super) fn since(self, before: Totals) -> Totals {
        Totals {
            finished: self.finished.wrapping_sub(before.finished),
            measured: self.measured.wrapping_sub(before.measured),
            dropped: self.dropped.wrapping_sub(before.dropped),
        }
    }

    /// Requests that were answered.
    pub(super) fn finished(&self) -> u64 {
        self.finished
    }

    /// Of those, the ones whose latency counts.
    pub(super) fn measured(&self) -> u64 {
        self.measured
    }

    /// Requests that were given up.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(milliseconds: u64, in_flight_at_start: u32) -> Sample {
        Sample::Answered(Quickest { took: Duration::from_millis(milliseconds), in_flight_at_start })
    }

    #[test]
    fn the_quickest_answer_is_taken_once_with_those_it_found() {
        let sums = Sums::default();
        assert_eq!(sums.take_quickest(), None);
        for (milliseconds, in_flight_at_start) in [(20, 3), (5, 9), (80, 1)] {
            sums.add(answered(milliseconds, in_flight_at_start));
        }
        let quickest = sums.take_quickest().expect("some were answered");
        assert_eq!(quickest.in_flight_at_start, 9);
        assert!(Duration::from_millis(5) - quickest.took < Duration::from_micros(1), "{quickest:?}");
        assert_eq!(sums.take_quickest(), None);
    }

    #[test]
    fn what_was_given_up_or_came_under_another_bound_counts_as_no_latency() {
        let sums = Sums::default();
        for sample in [Sample::Dropped, Sample::Stale(Duration::from_micros(9)), answered(1, 3)] {
            sums.add(sample);
        }
        let totals = sums.totals();
        assert_eq!((totals.finished(), totals.measured(), totals.dropped()), (2, 1, 1));
        assert_eq!(sums.take_quickest().map(|quickest| quickest.in_flight_at_start), Some(3));
        assert_eq!(sums.take_least(), Some(Duration::from_micros(9)));
        assert_eq!(sums.take_least(), None);
    }

    #[test]
    fn sums_that_wrap_have_right_differences() {
        let before = Totals { finished: u64::MAX, measured: u64::MAX - 5, dropped: 0 };
        let after = before.plus(Totals { finished: 2, measured: 40, dropped: 1 });
        assert_eq!(after.since(before), Totals { finished: 2, measured: 40, dropped: 1 });
    }

    #[test]
    fn no_latency_is_too_long() {
        let sums = Sums::default();
        sums.add(Sample::Answered(Quickest { took: Duration::MAX, in_flight_at_start: u32::MAX }));
        assert!(sums.take_quickest().is_some_and(|quickest| quickest.took > Duration::from_secs(86_400)));
    }
}
