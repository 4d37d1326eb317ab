//! How long things took: many durations in little memory.
//!
//! Owns the unit (nanoseconds inside, [`Duration`] outside) and the precision: three significant digits, so
//! that every percentile is within 0.1 % of what was recorded. Never averages percentiles; merge instead.

use std::time::Duration;

use hdrhistogram::Histogram;

/// The longest that is distinguished, in nanoseconds: an hour. Deadlines are far below it.
const LONGEST_NANOSECONDS: u64 = 3_600_000_000_000;
/// Digits that count: a percentile is off by at most 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

/// A histogram of durations.
#[derive(Debug, Clone)]
pub struct Latencies {
    histogram: Histogram<u64>,
}

impl Latencies {
    /// An empty one. It grows with what is recorded, to some 250 KiB at most.
    ///
    /// # Panics
    /// Never: the digits are a constant that the library accepts, as the tests show.
    pub fn new() -> Self {
        Latencies { histogram: Histogram::new(SIGNIFICANT_DIGITS).expect("digits that the library accepts") }
    }

    /// Adds one.
    pub fn record(&mut self, took: Duration) {
        self.record_many(took, 1);
    }

    /// Adds the same one several times.
    pub fn record_many(&mut self, took: Duration, count: u64) {
        // It grows by itself up to the longest, which has its place: the only error there is cannot come.
        let _ = self.histogram.record_n(nanoseconds(took).max(1), count);
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: &Latencies) {
        // Both grow by themselves: the only error there is cannot come.
        let _ = self.histogram.add(&other.histogram);
    }

    /// Forgets all and keeps the memory.
    pub fn clear(&mut self) {
        self.histogram.reset();
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.histogram.is_empty()
    }

    /// The one that this share of all do not exceed; `share` from 0 to 1, 0.99 for p99. Zero where there is none.
    pub fn at(&self, share: f64) -> Duration {
        if self.is_empty() {
            return Duration::ZERO;
        }
        Duration::from_nanos(self.histogram.value_at_quantile(share).min(self.histogram.max()))
    }

    /// The mean. Zero where there is none.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.histogram.mean() as u64)
    }

    /// The standard deviation. Zero where there is none.
    pub fn deviation(&self) -> Duration {
        Duration::from_nanos(self.histogram.stdev() as u64)
    }

    /// The shortest, to the precision. Zero where there is none.
    pub fn min(&self) -> Duration {
        Duration::from_nanos(if self.is_empty() { 0 } else { self.histogram.min() })
    }

    /// The longest, to the precision. Zero where there is none.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(if self.is_empty() { 0 } else { self.histogram.max() })
    }

    /// How many took longer than this.
    pub fn count_above(&self, bound: Duration) -> u64 {
        self.count().saturating_sub(self.histogram.count_between(0, nanoseconds(bound)))
    }

    /// What is recorded, value and count, in rising order: for plots.
    pub fn steps(&self) -> impl Iterator<Item = (Duration, u64)> {
        self.histogram
            .iter_recorded()
            .map(|step| (Duration::from_nanos(step.value_iterated_to()), step.count_since_last_iteration()))
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies::new()
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).min(LONGEST_NANOSECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_thousandth() {
        let mut latencies = Latencies::new();
        for micros in 1..=100_000 {
            latencies.record(Duration::from_micros(micros));
        }
        for (share, micros) in [(0.5, 50_000.0), (0.9, 90_000.0), (0.99, 99_000.0), (1.0, 100_000.0)] {
            let seen = latencies.at(share).as_secs_f64() * 1e6;
            assert!((seen / micros - 1.0).abs() < 0.001, "{share}: {seen}");
        }
        assert_eq!(latencies.count_above(Duration::from_secs(1)), 0);
        assert_eq!(latencies.steps().map(|(_, count)| count).sum::<u64>(), 100_000);
    }

    #[test]
    fn nothing_recorded_is_zero_everywhere_and_no_panic() {
        let empty = Latencies::new();
        assert_eq!(
            (empty.at(0.99), empty.max(), empty.min()),
            (Duration::ZERO, Duration::ZERO, Duration::ZERO)
        );
        let mut one = Latencies::new();
        one.record(Duration::MAX);
        assert!(one.at(0.5) >= Duration::from_secs(3599));
    }
}
