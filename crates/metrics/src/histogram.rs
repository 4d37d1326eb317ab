//! Durations counted in buckets of two significant decimal digits, as OpenHistogram's circllhist has them.
//!
//! Each decade has 90 buckets, so that the width of a bucket is at most a tenth of its lower bound and its middle is within 5 %
//! of every duration in it. Histograms of several cores, sites or intervals merge exactly, and the bounds 1, 2.5 and 5 of
//! each decade, which Prometheus' users expect, are bounds of buckets. A bucket holds its upper bound, as `le` means it.
//!
//! A [`Histogram`] is written by one core; a [`Snapshot`] is what readers take of it and add up.

use std::sync::OnceLock;
use std::time::Duration;

use crate::counter::Counter;
use crate::limits::{HISTOGRAM_LONGEST, HISTOGRAM_SHORTEST};

/// Buckets of a decade: the leading digits 10 to 99.
const DECADE_BUCKETS: usize = 90;

/// The decade of a histogram's first bucket, as a power of ten of nanoseconds.
const FIRST_DECADE: u32 = HISTOGRAM_SHORTEST.as_nanos().ilog10();

const DECADES: usize = (HISTOGRAM_LONGEST.as_nanos().ilog10() - FIRST_DECADE) as usize;

/// Nanoseconds from one bucket to the next, in each decade.
const WIDTHS: [u64; DECADES] = {
    let mut widths = [10_u64.pow(FIRST_DECADE - 1); DECADES];
    let mut decade = 1;
    while decade < DECADES {
        widths[decade] = widths[decade - 1] * 10;
        decade += 1;
    }
    widths
};

/// The decade of the first duration whose highest bit is this one; no power of two and its double are two decades apart.
const DECADE_OF_BIT: [usize; u64::BITS as usize] = {
    let mut decades = [0; u64::BITS as usize];
    let mut bit = 1;
    while bit < decades.len() {
        let last = decades[bit - 1];
        let is_next = last + 1 < DECADES && (1 << bit) >= WIDTHS[last] * 100;
        decades[bit] = last + is_next as usize;
        bit += 1;
    }
    decades
};

/// Durations that one core has counted. A decade takes memory from its first duration on.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    decades: [OnceLock<Box<Decade>>; DECADES],
    nanos: Counter,
}

/// The buckets of a decade; on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
struct Decade([Counter; DECADE_BUCKETS]);

/// The counts of a histogram at one time, or of several that were added up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Bucket and count, in the order of the buckets; none of the counts is 0.
    buckets: Vec<(u16, u64)>,
    nanos: u64,
}

impl Histogram {
    /// Counts a duration; only the owning core calls it.
    pub(crate) fn record(&self, duration: Duration) {
        let nanos = nanos(duration);
        let (decade, bucket) = decade_and_bucket(nanos);
        let Some(counters) = self.decades[decade].get() else { return self.record_first(decade, duration) };
        counters.0[bucket].add(1);
        self.nanos.add(nanos);
    }

    /// Counts the first duration of a decade. Apart, so that no other one pays for it.
    #[cold]
    fn record_first(&self, decade: usize, duration: Duration) {
        self.decades[decade].get_or_init(|| Box::new(Decade(std::array::from_fn(|_| Counter::default()))));
        self.record(duration);
    }

    /// The counts until now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let counted = self.decades.iter().enumerate().filter_map(|(number, decade)| {
            let buckets = decade.get()?.0.iter().enumerate();
            Some(buckets.map(move |(bucket, count)| (number * DECADE_BUCKETS + bucket, count.get())))
        });
        Snapshot::new(counted.flatten().map(|(bucket, count)| (bucket as u16, count)), self.nanos.get())
    }
}

impl Snapshot {
    /// Durations that were counted elsewhere: bucket and count in any order, and their sum in nanoseconds.
    pub fn new(counts: impl IntoIterator<Item = (u16, u64)>, nanos: u64) -> Self {
        let mut buckets: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
        buckets.sort_by_key(|(bucket, _)| *bucket);
        buckets.dedup_by(|(bucket, count), (kept, sum)| {
            let is_same = bucket == kept;
            *sum += if is_same { *count } else { 0 };
            is_same
        });
        Self { buckets, nanos }
    }

    /// Bucket and count, in the order of the buckets, without empty ones.
    pub fn buckets(&self) -> &[(u16, u64)] {
        &self.buckets
    }

    /// The sum of all durations, in nanoseconds.
    pub fn nanos(&self) -> u64 {
        self.nanos
    }

    /// Adds the durations of another histogram.
    pub fn merge(&mut self, other: &Self) {
        let buckets = std::mem::take(&mut self.buckets);
        *self = Self::new(
            buckets.into_iter().chain(other.buckets.iter().copied()),
            self.nanos.wrapping_add(other.nanos),
        );
    }

    /// What came after an earlier snapshot of the same histogram; all of it where the earlier one holds more, because it is
    /// of another process.
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |bucket: u16| {
            let at = earlier.buckets.binary_search_by_key(&bucket, |(bucket, _)| *bucket);
            at.ok().and_then(|at| earlier.buckets.get(at)).map_or(0, |(_, count)| *count)
        };
        let added =
            self.buckets.iter().map(|(bucket, count)| (*bucket, count.saturating_sub(before(*bucket))));
        let since = Self::new(added, self.nanos.wrapping_sub(earlier.nanos));
        if earlier.count() + since.count() == self.count() { since } else { self.clone() }
    }

    /// Durations in all.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// Durations up to this one, exact where it is a bound of a bucket.
    pub fn count_to(&self, bound: Duration) -> u64 {
        let last = bucket_of(nanos(bound));
        let within = self.buckets.iter().take_while(|(bucket, _)| usize::from(*bucket) <= last);
        within.map(|(_, count)| count).sum()
    }

    /// The duration within which this share of all lies, at most 5 % off; `None` where there are no durations.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let rank = (share * self.count() as f64).ceil().max(1.0) as u64;
        let mut counted = 0;
        let reached = self.buckets.iter().find(|(_, count)| {
            counted += count;
            counted >= rank
        });
        let (bucket, _) = reached.or(self.buckets.last())?;
        Some(middle(usize::from(*bucket)))
    }
}

/// The number of a duration's bucket.
fn bucket_of(nanos: u64) -> usize {
    let (decade, bucket) = decade_and_bucket(nanos);
    decade * DECADE_BUCKETS + bucket
}

/// The decade of a duration, and its bucket in it.
fn decade_and_bucket(nanos: u64) -> (usize, usize) {
    const SHORTEST: u64 = HISTOGRAM_SHORTEST.as_nanos() as u64;
    const LONGEST: u64 = HISTOGRAM_LONGEST.as_nanos() as u64;
    // One less, since an upper bound belongs to its bucket.
    let nanos = nanos.saturating_sub(1).clamp(SHORTEST, LONGEST - 1);
    // Every request pays for this: a table takes fewer steps than a logarithm.
    let lowest = DECADE_OF_BIT[nanos.ilog2() as usize];
    let decade = lowest + usize::from(nanos >= WIDTHS[lowest] * 100);
    (decade, (nanos / WIDTHS[decade]) as usize - 10)
}

fn middle(bucket: usize) -> Duration {
    let decade = (bucket / DECADE_BUCKETS).min(DECADES - 1);
    let digits = (bucket - decade * DECADE_BUCKETS + 10) as u64;
    Duration::from_nanos(digits * WIDTHS[decade] + WIDTHS[decade] / 2)
}

fn nanos(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos().into())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn of(nanos: &[u64]) -> Snapshot {
        let histogram = Histogram::default();
        nanos.iter().for_each(|nanos| histogram.record(Duration::from_nanos(*nanos)));
        histogram.snapshot()
    }

    /// Durations of every decade alike.
    fn durations() -> impl Strategy<Value = Vec<u64>> {
        let all = (2_u32..12, 10_000_u64..=100_000);
        vec(all.prop_map(|(decade, digits)| 10_u64.pow(decade) * digits / 10_000), 1..100)
    }

    #[test]
    fn a_bucket_holds_its_upper_bound_and_what_is_outside_goes_to_the_ends() {
        for (nanos, bucket) in
            [(0, 0), (100, 0), (110, 0), (111, 1), (1_000, 89), (1_001, 90), (2_500_000, 374)]
        {
            assert_eq!(bucket_of(nanos), bucket, "{nanos}");
        }
        let last = DECADES * DECADE_BUCKETS - 1;
        assert_eq!((bucket_of(1_000_000_000_000), bucket_of(u64::MAX)), (last, last));
        assert_eq!(of(&[0, u64::MAX]).count(), 2);
        assert_eq!(Snapshot::default().quantile(0.5), None);
    }

    #[test]
    fn the_bounds_of_prometheus_are_exact() {
        for bound in [5_000, 10_000, 25_000_000, 500_000_000, 2_500_000_000, 10_000_000_000] {
            let counted = of(&[bound - 1, bound, bound + 1]);
            assert_eq!(counted.count_to(Duration::from_nanos(bound)), 2, "{bound}");
        }
    }

    #[test]
    fn the_decade_of_a_duration_is_its_logarithm() {
        let powers = (0..u64::BITS).map(|power| 1_u64 << power).chain((0..20).map(|power| 10_u64.pow(power)));
        for nanos in
            powers.flat_map(|power| [power - 1, power, power.saturating_add(1), power.saturating_add(2)])
        {
            let inside = nanos.saturating_sub(1).clamp(100, 999_999_999_999);
            assert_eq!(decade_and_bucket(nanos).0, inside.ilog10() as usize - 2, "{nanos}");
        }
    }

    proptest! {
        /// The durations of each interval, on two cores.
        #[test]
        fn a_quantile_over_cores_and_intervals_is_within_a_twentieth_of_that_of_the_sorted_list(
            intervals in vec([durations(), durations()], 1..4), share in 0.0..=1.0,
        ) {
            let (cores, mut earlier): ([Histogram; 2], _) = (Default::default(), Snapshot::default());
            let mut merged = Snapshot::default();
            for interval in &intervals {
                for (core, durations) in cores.iter().zip(interval) {
                    durations.iter().for_each(|nanos| core.record(Duration::from_nanos(*nanos)));
                }
                let mut later = cores[0].snapshot();
                later.merge(&cores[1].snapshot());
                merged.merge(&later.since(&earlier));
                earlier = later;
            }
            let mut all = intervals.concat().concat();
            let found = merged.quantile(share).expect("counted").as_nanos() as f64;
            all.sort_unstable();
            let rank = ((share * all.len() as f64).ceil() as usize).max(1);
            let exact = all[rank - 1] as f64;
            prop_assert!((found - exact).abs() <= exact * 0.05, "{} instead of {}", found, exact);
        }

        #[test]
        fn histograms_of_cores_merge_to_one(first in durations(), second in durations()) {
            let mut merged = of(&first);
            merged.merge(&of(&second));
            prop_assert_eq!(merged, of(&[first, second].concat()));
        }

        #[test]
        fn an_earlier_snapshot_and_what_came_since_are_the_later_one(first in durations(), second in durations()) {
            let (earlier, later) = (of(&first), of(&[first, second.clone()].concat()));
            let since = later.since(&earlier);
            prop_assert_eq!(&since, &of(&second));
            let mut both = earlier.clone();
            both.merge(&since);
            prop_assert_eq!(&both, &later);
            // Counters that began anew.
            prop_assert_eq!(earlier.since(&later), earlier);
        }
    }
}
