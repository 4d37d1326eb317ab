//! What one core has seen: sums that only grow, so that whoever adds them up takes nothing away from anybody.
//!
//! Latencies are added up as logarithms: their mean is the latency of the typical request, which a few slow ones
//! do not move, while a queue that all stand in moves it in full.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Steps of a logarithm to the base 2.
const STEPS: f64 = 65_536.0;

/// One core's sums.
pub(super) struct Sums {
    answers: AtomicU64,
    logarithms: AtomicU64,
    in_flight: AtomicU64,
    dropped: AtomicU64,
    /// A [`Quickest`], packed; [`NONE`] where there is none.
    quickest: AtomicU64,
}

/// The answer that took the least time, and how many were in flight when it was let in, itself among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Quickest {
    pub(super) took: Duration,
    pub(super) crowd: u32,
}

/// Bits that say how many were in flight: as many as a gate counts.
const CROWD_BITS: u32 = 24;

const CROWD_MAX: u64 = (1 << CROWD_BITS) - 1;

/// Of a latency's nanoseconds the lowest bits are left out: 256 of them, so that it may be some days long.
const NANOSECONDS_LEFT_OUT: u32 = 8;

const NONE: u64 = u64::MAX;

/// Sums at one moment; only differences mean something, and sums may wrap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Requests that were answered.
    answers: u64,
    /// Of their latencies in nanoseconds, in steps.
    logarithms: u64,
    /// Requests in flight that each of both saw when it was let in.
    in_flight: u64,
    /// Requests that were given up.
    dropped: u64,
}

impl Default for Sums {
    fn default() -> Self {
        let none = || AtomicU64::new(0);
        Self {
            answers: none(),
            logarithms: none(),
            in_flight: none(),
            dropped: none(),
            quickest: AtomicU64::new(NONE),
        }
    }
}

impl Sums {
    pub(super) fn add(&self, took: Duration, in_flight: u32, was_dropped: bool) {
        // Nothing is read from these but sums, so that their order means nothing.
        self.in_flight.fetch_add(in_flight.into(), Ordering::Relaxed);
        if was_dropped {
            // How long it took says nothing: neither a time limit nor a lost worker is a latency.
            self.dropped.fetch_add(1, Ordering::Relaxed);
        } else {
            self.logarithms.fetch_add(logarithm(took), Ordering::Relaxed);
            self.answers.fetch_add(1, Ordering::Relaxed);
            let packed = pack(took, in_flight);
            // Most are not the quickest one, and need not write.
            if packed < self.quickest.load(Ordering::Relaxed) {
                self.quickest.fetch_min(packed, Ordering::Relaxed);
            }
        }
    }

    /// Takes the quickest one since this was asked last.
    pub(super) fn take_quickest(&self) -> Option<Quickest> {
        let packed = self.quickest.swap(NONE, Ordering::Relaxed);
        let quickest = || Quickest {
            took: Duration::from_nanos(packed >> CROWD_BITS << NANOSECONDS_LEFT_OUT),
            crowd: (packed & CROWD_MAX) as u32,
        };
        (packed != NONE).then(quickest)
    }

    pub(super) fn totals(&self) -> Totals {
        Totals {
            answers: self.answers.load(Ordering::Relaxed),
            logarithms: self.logarithms.load(Ordering::Relaxed),
            in_flight: self.in_flight.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }
}

impl Totals {
    #[must_use]
    pub(super) fn plus(self, other: Totals) -> Totals {
        Totals {
            answers: self.answers.wrapping_add(other.answers),
            logarithms: self.logarithms.wrapping_add(other.logarithms),
            in_flight: self.in_flight.wrapping_add(other.in_flight),
            dropped: self.dropped.wrapping_add(other.dropped),
        }
    }

    /// What came after `before`.
    #[must_use]
    pub(super) fn since(self, before: Totals) -> Totals {
        Totals {
            answers: self.answers.wrapping_sub(before.answers),
            logarithms: self.logarithms.wrapping_sub(before.logarithms),
            in_flight: self.in_flight.wrapping_sub(before.in_flight),
            dropped: self.dropped.wrapping_sub(before.dropped),
        }
    }

    /// Requests that are over.
    pub(super) fn count(&self) -> u64 {
        self.answers.saturating_add(self.dropped)
    }

    pub(super) fn answers(&self) -> u64 {
        self.answers
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The geometric mean of the latencies, in seconds.
    pub(super) fn latency(&self) -> f64 {
        let logarithm = self.logarithms as f64 / STEPS / (self.answers.max(1)) as f64;
        let whole = logarithm.floor();
        // The inverse of `logarithm`, which is straight between the powers of two.
        whole.exp2() * (1.0 + logarithm - whole) / 1e9
    }

    /// Requests in flight, in the mean as those saw it that ended.
    pub(super) fn in_flight(&self) -> f64 {
        self.in_flight as f64 / self.count().max(1) as f64
    }
}

/// Ordered by latency first.
fn pack(took: Duration, crowd: u32) -> u64 {
    let took = u64::try_from(took.as_nanos() >> NANOSECONDS_LEFT_OUT).unwrap_or(u64::MAX);
    (took.min(u64::MAX >> (CROWD_BITS + 1)) << CROWD_BITS) | u64::from(crowd).min(CROWD_MAX)
}

/// The logarithm to the base 2 of the nanoseconds, in steps, straight between the powers of two: some instructions
/// on integers, and never wrong by more than 6 %, which is the same before and after.
fn logarithm(took: Duration) -> u64 {
    let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1);
    let leading = nanoseconds.leading_zeros();
    // The leading one goes out at the top; sixteen bits below it are the part behind the point.
    let fraction = (nanoseconds << leading << 1) >> 48;
    (u64::from(63 - leading) << 16) | fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(latencies: &[Duration]) -> Totals {
        let sums = Sums::default();
        for took in latencies {
            sums.add(*took, 1, false);
        }
        sums.totals()
    }

    #[test]
    fn equal_latencies_come_out_as_they_went_in() {
        let odd = [Duration::from_nanos(1), Duration::from_micros(33), Duration::from_millis(5)];
        for took in odd.into_iter().chain([Duration::from_secs(60), Duration::from_secs(3_600)]) {
            let mean = of(&[took; 100]).latency();
            let off = mean / took.as_secs_f64() - 1.0;
            assert!(off.abs() < 0.001, "{took:?} became {mean}");
        }
    }

    #[test]
    fn a_few_slow_ones_move_the_mean_little_and_what_all_wait_for_moves_it_in_full() {
        let mixed = |wait: u64| {
            let latency = |n: u64| Duration::from_millis(wait + if n.is_multiple_of(10) { 100 } else { 2 });
            of(&(0..100).map(latency).collect::<Vec<_>>()).latency() * 1e3
        };
        assert!((2.5..3.5).contains(&mixed(0)), "{}", mixed(0));
        assert!((22.0..28.0).contains(&mixed(20)), "{}", mixed(20));
    }

    #[test]
    fn what_was_given_up_counts_as_no_latency() {
        let sums = Sums::default();
        sums.add(Duration::from_secs(30), 9, true);
        sums.add(Duration::from_millis(1), 3, false);
        let totals = sums.totals();
        assert_eq!((totals.answers(), totals.dropped(), totals.count()), (1, 1, 2));
        assert!((totals.in_flight() - 6.0).abs() < 1e-9);
        assert!((totals.latency() - 0.001).abs() < 1e-6);
    }

    #[test]
    fn sums_that_wrap_have_right_differences() {
        let before = Totals { answers: u64::MAX, logarithms: u64::MAX - 5, in_flight: 7, dropped: 0 };
        let after = before.plus(Totals { answers: 2, logarithms: 40, in_flight: 2, dropped: 1 });
        assert_eq!(after.since(before), Totals { answers: 2, logarithms: 40, in_flight: 2, dropped: 1 });
    }

    #[test]
    fn no_latency_is_too_short_or_too_long() {
        assert_eq!(logarithm(Duration::ZERO), 0);
        assert!(logarithm(Duration::MAX) < (64 << 16));
    }
}
