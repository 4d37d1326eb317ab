//! Metric families: what is shown of counters and gauges, before it is written as text (`exposition.rs`) or exported over OTLP.

use std::time::Duration;

use crate::histogram::Snapshot;
use crate::site::Exemplar;

/// Upper bounds of the buckets of latency histograms, in microseconds. From memory a response takes microseconds, from an
/// application milliseconds to seconds.
const BOUNDS_MICROS: [u64; 20] = [
    5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000,
];

/// All metrics at one time.
#[derive(Debug, Default)]
pub struct Families(Vec<Family>);

/// Samples of one name.
#[derive(Debug)]
pub struct Family {
    /// As Prometheus names it: with its unit, counters with `_total`.
    pub name: String,
    /// How its values change.
    pub kind: Kind,
    /// What it counts; a sentence.
    pub help: &'static str,
    /// In the order in which they are shown.
    pub samples: Vec<Sample>,
}

/// One value of a family.
#[derive(Debug)]
pub struct Sample {
    /// Names are fixed; values come from the configuration.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: Value,
}

/// How the values of a family change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// They only grow, from 0 at the start of the process.
    Counter,
    /// They rise and fall.
    Gauge,
    /// Durations, counted in buckets.
    Histogram,
}

/// A value.
#[derive(Debug)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// A time, in milliseconds.
    Milliseconds(f64),
    /// The durations of a histogram.
    Durations(Durations),
}

/// Durations in the buckets that readers of metrics get.
#[derive(Debug)]
pub struct Durations {
    /// The upper bound of each bucket, and how many durations lie within it, those of the buckets before it included.
    pub buckets: Vec<(Duration, u64)>,
    /// All of them.
    pub count: u64,
    /// Their sum.
    pub nanos: u64,
    /// A traced request in some of the buckets, by the bucket's number; the last bucket has no bound.
    pub exemplars: Vec<(usize, Exemplar)>,
}

/// What is shown of each thing of a kind: one metric family with one sample for each.
pub(crate) struct Series<T> {
    /// What follows the prefix in the name.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) help: &'static str,
    /// `None` where the thing has no such value.
    pub(crate) value: fn(&T) -> Option<Value>,
}

/// The value of a sample that is always there.
#[expect(clippy::unnecessary_wraps, reason = "the value function of a series returns an option")]
pub(crate) fn count(value: u64) -> Option<Value> {
    Some(Value::Count(value))
}

impl Families {
    /// Begins a family.
    pub fn family(&mut self, name: impl Into<String>, kind: Kind, help: &'static str) -> &mut Family {
        self.0.push(Family { name: name.into(), kind, help, samples: Vec::new() });
        let last = self.0.len() - 1;
        &mut self.0[last]
    }

    /// A family of one sample without labels.
    pub fn single(&mut self, name: &'static str, kind: Kind, help: &'static str, value: u64) {
        self.family(name, kind, help).sample(&[], value);
    }

    /// The families of a table, each with a sample for each row.
    pub(crate) fn table<'a, T: 'a>(
        &mut self,
        prefix: &str,
        label: &'static str,
        rows: impl Iterator<Item = (&'a str, &'a T)> + Clone,
        table: &[Series<T>],
    ) {
        for series in table {
            let family = self.family(format!("{prefix}{}", series.name), series.kind, series.help);
            for (row, thing) in rows.clone() {
                if let Some(value) = (series.value)(thing) {
                    family.sample(&[(label, row)], value);
                }
            }
        }
    }

    /// In the order in which they are shown.
    pub fn iter(&self) -> impl Iterator<Item = &Family> {
        self.0.iter()
    }
}

impl Family {
    /// Adds a sample.
    pub fn sample(&mut self, labels: &[(&'static str, &str)], value: impl Into<Value>) {
        let labels = labels.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
        self.samples.push(Sample { labels, value: value.into() });
    }
}

impl Durations {
    /// Of what was counted. Of the exemplars in a bucket the newest is shown.
    pub(crate) fn new(counted: &Snapshot, exemplars: &[Exemplar]) -> Self {
        let bounds = BOUNDS_MICROS.map(Duration::from_micros);
        let mut newest: [Option<&Exemplar>; BOUNDS_MICROS.len() + 1] = [None; BOUNDS_MICROS.len() + 1];
        for exemplar in exemplars {
            let number = bounds.partition_point(|bound| *bound < exemplar.took);
            if let Some(place) = newest.get_mut(number)
                && place.is_none_or(|known| known.at < exemplar.at)
            {
                *place = Some(exemplar);
            }
        }
        let shown = newest.into_iter().enumerate();
        Self {
            buckets: bounds.map(|bound| (bound, counted.count_to(bound))).to_vec(),
            count: counted.count(),
            nanos: counted.nanos(),
            exemplars: shown.filter_map(|(number, found)| Some((number, found?.clone()))).collect(),
        }
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<Durations> for Value {
    fn from(durations: Durations) -> Self {
        Self::Durations(durations)
    }
}
