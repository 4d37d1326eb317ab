//! What a range of time looks like: curves, totals, events. Serialised as docs/control-api.md has it.
//!
//! A curve reads the coarsest level that its step is a multiple of. A total reads whole intervals of the coarsest levels, and
//! finer ones at its ends, so that it reads some two hundred records however long the range is.

use std::collections::BTreeMap;
use std::sync::Arc;

use onehop_metrics::histogram::Snapshot;
use serde::Serialize;

use crate::codec::{ALL, decode_counters, decode_figures};
use crate::history::History;
use crate::limits::{
    EVENTS_SHOWN_MAX, FINEST_KEEP_SECONDS, LEVEL_SECONDS, POINTS_MAX, SCANNED_MAX, SPARKLINE_POINTS_MAX,
};
use crate::sample::{AppFigures, Event, ProcessFigures};

/// Steps that people can read, in seconds; beyond the last one its multiples.
const STEPS: [u64; 13] = [10, 20, 30, 60, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400];

/// A range of time, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The first second.
    pub from: u64,
    /// The second behind the last.
    pub to: u64,
}

/// The curves of a site, or of all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curves {
    /// The first second.
    pub from: u64,
    /// The second behind the last.
    pub to: u64,
    /// Seconds from one point to the next.
    pub step_seconds: u64,
    /// When each step begins.
    pub times: Vec<u64>,
    /// A value for each time; none where the server was down.
    pub series: Series,
    /// The whole range.
    pub total: Total,
    /// The range of the same length before it.
    pub previous: Total,
}

/// A value for each time; rates are per second.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names are those of docs/control-api.md, which explains them")]
pub struct Series {
    pub requests: Vec<Option<f64>>,
    pub errors: Vec<Option<f64>>,
    pub rejected: Vec<Option<f64>>,
    pub bytes: Vec<Option<f64>>,
    pub p50_ms: Vec<Option<f64>>,
    pub p90_ms: Vec<Option<f64>>,
    pub p99_ms: Vec<Option<f64>>,
    pub streams: Vec<Option<f64>>,
    pub cold_starts: Vec<Option<f64>>,
    /// Of the server's process; only of all sites.
    #[serde(flatten)]
    pub process: Option<ProcessSeries>,
}

/// Of the server's process.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names are those of docs/control-api.md, which explains them")]
pub struct ProcessSeries {
    pub cpu_percent: Vec<Option<f64>>,
    pub resident_bytes: Vec<Option<u64>>,
    pub connections: Vec<Option<u64>>,
}

/// A range as one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names are those of docs/control-api.md, which explains them")]
pub struct Total {
    pub requests: u64,
    pub errors: u64,
    pub rejected: u64,
    pub bytes: u64,
    pub p50_ms: Option<f64>,
    pub p90_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub streams: u64,
    pub cold_starts: u64,
    pub slowest_cold_start_ms: Option<f64>,
}

/// Every site of a range.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sites {
    /// The first second.
    pub from: u64,
    /// The second behind the last.
    pub to: u64,
    /// Those that counted something, by name.
    pub sites: Vec<Site>,
}

/// A site of [`Sites`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Site {
    /// Its label.
    pub site: String,
    /// The whole range.
    pub total: Total,
    /// The range of the same length before it.
    pub previous: Total,
    /// Requests per second.
    pub sparkline: Vec<Option<f64>>,
}

/// Every application of a range.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Apps {
    /// When each step begins.
    pub times: Vec<u64>,
    /// Seconds from one point to the next.
    pub step_seconds: u64,
    /// Those that ran, by name.
    pub apps: Vec<App>,
}

/// An application of [`Apps`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct App {
    /// Its name.
    pub app: String,
    /// A value for each time.
    pub series: AppSeries,
}

/// A value for each time; the highest that was seen, except for the CPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names are those of docs/control-api.md, which explains them")]
pub struct AppSeries {
    pub cpu_percent: Vec<Option<f64>>,
    pub resident_bytes: Vec<Option<u64>>,
    pub lag_ms: Vec<Option<f64>>,
    pub in_flight: Vec<Option<u64>>,
    pub queued: Vec<Option<u64>>,
}

/// Figures that are added up from encoded ones, without an allocation for each.
#[derive(Debug, Clone, Default)]
struct Tally {
    total: Total,
    slowest_nanos: u64,
    /// By bucket.
    durations: Vec<u64>,
}

/// The steps of a curve.
#[derive(Debug, Clone, Copy)]
struct Steps {
    from: u64,
    count: usize,
    seconds: u64,
    level: usize,
}

/// The curves and totals of a site; of all without one.
pub fn curves(history: &mut History, site: Option<&str>, range: Range, now: u64) -> Curves {
    let steps = Steps::of(range, POINTS_MAX, now);
    let name = site.unwrap_or(ALL);
    let mut covered = vec![0_u64; steps.count];
    let mut tallies = vec![Tally::default(); steps.count];
    let mut process = vec![ProcessFigures::default(); steps.count];
    history.scan(steps.level, steps.from, steps.to(), &mut |record, names| {
        let at = steps.index(record.at);
        let (Some(covered), Some(tally), Some(process)) =
            (covered.get_mut(at), tallies.get_mut(at), process.get_mut(at))
        else {
            return;
        };
        *covered = covered.saturating_add(record.covered_ms);
        process.merge(&record.process);
        let number = names.number(name);
        let found = record.sites.iter().find(|(site, _)| Some(*site) == number);
        found.into_iter().for_each(|(_, encoded)| tally.add(encoded));
    });
    let mut series = Series::default();
    for (covered, tally) in covered.iter().zip(tallies) {
        series.push(*covered, tally.total());
    }
    series.process = site.is_none().then(|| ProcessSeries::of(&covered, &process));
    let mut total_of = |range| totals(history, range, now, Some(name)).remove(name).unwrap_or_default();
    let (total, previous) = (total_of(range), total_of(range.previous()));
    let Range { from, to } = range;
    Curves { from, to, step_seconds: steps.seconds, times: steps.times(), series, total, previous }
}

/// Every site.
pub fn sites(history: &mut History, range: Range, now: u64) -> Sites {
    let steps = Steps::of(range, SPARKLINE_POINTS_MAX, now);
    let mut covered = vec![0_u64; steps.count];
    let mut requests: BTreeMap<Arc<str>, Vec<u64>> = BTreeMap::new();
    history.scan(steps.level, steps.from, steps.to(), &mut |record, names| {
        let at = steps.index(record.at);
        let Some(covered) = covered.get_mut(at) else { return };
        *covered = covered.saturating_add(record.covered_ms);
        for (number, encoded) in &record.sites {
            let (Some(name), Some(figures)) = (names.get(*number), decode_counters(encoded)) else {
                continue;
            };
            if !requests.contains_key(name) {
                requests.insert(Arc::clone(name), vec![0; steps.count]);
            }
            if let Some(sum) = requests.get_mut(name).and_then(|points| points.get_mut(at)) {
                *sum = sum.saturating_add(figures.requests);
            }
        }
    });
    let total = totals(history, range, now, None);
    let mut previous = totals(history, range.previous(), now, None);
    let sites = total.into_iter().filter(|(site, _)| **site != *ALL).map(|(site, total)| Site {
        total,
        previous: previous.remove(&site).unwrap_or_default(),
        sparkline: match requests.get(&site) {
            Some(points) => points.iter().zip(&covered).map(|(sum, covered)| rate(*sum, *covered)).collect(),
            None => covered.iter().map(|covered| rate(0, *covered)).collect(),
        },
        site: site.to_string(),
    });
    Sites { from: range.from, to: range.to, sites: sites.collect() }
}

/// Every application.
pub fn apps(history: &mut History, range: Range, now: u64) -> Apps {
    let steps = Steps::of(range, POINTS_MAX, now);
    let mut apps: BTreeMap<Arc<str>, Vec<(u64, AppFigures)>> = BTreeMap::new();
    history.scan(steps.level, steps.from, steps.to(), &mut |record, names| {
        for (number, figures) in &record.apps {
            let Some(name) = names.get(*number) else { continue };
            if !apps.contains_key(name) {
                apps.insert(Arc::clone(name), vec![Default::default(); steps.count]);
            }
            let point = apps.get_mut(name).and_then(|points| points.get_mut(steps.index(record.at)));
            if let Some((covered, sum)) = point {
                *covered = covered.saturating_add(record.covered_ms);
                sum.merge(figures);
            }
        }
    });
    let apps =
        apps.into_iter().map(|(app, points)| App { app: app.to_string(), series: AppSeries::of(&points) });
    Apps { times: steps.times(), step_seconds: steps.seconds, apps: apps.collect() }
}

/// Events, the newest first.
pub fn events(history: &mut History, range: Range) -> Vec<Event> {
    let mut found = Vec::new();
    history.events(range.from, range.to, &mut |event| found.push(event));
    // Those of one second in the order in which they came.
    found.reverse();
    found.sort_by_key(|event| std::cmp::Reverse(event.at));
    found.truncate(EVENTS_SHOWN_MAX);
    found
}

/// The totals of a site, or of each and of all.
fn totals(history: &mut History, range: Range, now: u64, only: Option<&str>) -> BTreeMap<Arc<str>, Total> {
    let mut parts = Vec::new();
    let oldest = now.saturating_sub(history.keep_seconds(LEVEL_SECONDS.len() - 1));
    let from = range.from.max(oldest);
    if from < range.to {
        cover(Range { from, to: range.to }, LEVEL_SECONDS.len() - 1, now, &mut parts);
    }
    let mut tallies: BTreeMap<Arc<str>, Tally> = BTreeMap::new();
    for (level, part) in parts {
        history.scan(level, part.from, part.to, &mut |record, names| {
            for (number, encoded) in &record.sites {
                let Some(name) = names.get(*number) else { continue };
                if only.is_some_and(|only| *only != **name) {
                    continue;
                }
                if !tallies.contains_key(name) {
                    tallies.insert(Arc::clone(name), Tally::default());
                }
                tallies.get_mut(name).into_iter().for_each(|tally| tally.add(encoded));
            }
        });
    }
    tallies.into_iter().map(|(name, tally)| (name, tally.total())).collect()
}

/// Whole intervals of this level, and what is left at both ends in finer ones. Where there is no finer one, the ends are
/// rounded outwards.
fn cover(range: Range, level: usize, now: u64, parts: &mut Vec<(usize, Range)>) {
    let step = LEVEL_SECONDS[level];
    let has_finer = level > 1 || (level == 1 && range.from >= now.saturating_sub(FINEST_KEEP_SECONDS));
    if !has_finer {
        let from = range.from - range.from % step;
        return parts.push((level, Range { from, to: range.to.next_multiple_of(step) }));
    }
    let (first, last) = (range.from.next_multiple_of(step), range.to - range.to % step);
    if first >= last {
        return cover(range, level - 1, now, parts);
    }
    if range.from < first {
        cover(Range { from: range.from, to: first }, level - 1, now, parts);
    }
    parts.push((level, Range { from: first, to: last }));
    if last < range.to {
        cover(Range { from: last, to: range.to }, level - 1, now, parts);
    }
}

impl Range {
    /// The range of the same length before this one.
    fn previous(self) -> Self {
        let length = self.to.saturating_sub(self.from);
        Self { from: self.from.saturating_sub(length), to: self.from }
    }
}

impl Steps {
    /// The shortest steps of which there are at most so many.
    fn of(range: Range, points_max: u64, now: u64) -> Self {
        let least = if range.from < now.saturating_sub(FINEST_KEEP_SECONDS) { LEVEL_SECONDS[1] } else { 1 };
        let count = |step: u64| range.to.div_ceil(step).saturating_sub(range.from / step);
        let level_of = |step: u64| {
            LEVEL_SECONDS.iter().rposition(|level| step.is_multiple_of(*level)).unwrap_or_default()
        };
        let scanned = |step: u64| count(LEVEL_SECONDS[level_of(step)]);
        let fits = |step: &u64| *step >= least && count(*step) <= points_max && scanned(*step) <= SCANNED_MAX;
        let days = || {
            LEVEL_SECONDS[3] * (range.to.saturating_sub(range.from) / LEVEL_SECONDS[3] / (points_max - 1) + 1)
        };
        let seconds = STEPS.into_iter().find(fits).unwrap_or_else(days);
        let level = level_of(seconds);
        let from = range.from - range.from % seconds;
        Self {
            from,
            count: usize::try_from(count(seconds).min(points_max)).unwrap_or_default(),
            seconds,
            level,
        }
    }

    fn to(self) -> u64 {
        self.from + self.seconds * self.count as u64
    }

    fn index(self, at: u64) -> usize {
        usize::try_from(at.saturating_sub(self.from) / self.seconds).unwrap_or(usize::MAX)
    }

    fn times(self) -> Vec<u64> {
        (0..self.count as u64).map(|number| self.from + number * self.seconds).collect()
    }
}

impl Tally {
    fn add(&mut self, encoded: &[u8]) {
        let durations = &mut self.durations;
        let figures = decode_figures(encoded, |bucket, count| {
            let bucket = usize::from(bucket);
            if durations.len() <= bucket {
                durations.resize(bucket + 1, 0);
            }
            durations[bucket] = durations[bucket].saturating_add(count);
        });
        let Some(figures) = figures else { return };
        let sum = |total: &mut u64, count: u64| *total = total.saturating_add(count);
        sum(&mut self.total.requests, figures.requests);
        sum(&mut self.total.errors, figures.errors);
        sum(&mut self.total.rejected, figures.rejected);
        sum(&mut self.total.bytes, figures.bytes);
        sum(&mut self.total.streams, figures.streams);
        sum(&mut self.total.cold_starts, figures.cold_starts);
        self.slowest_nanos = self.slowest_nanos.max(figures.slowest_cold_start_nanos);
    }

    fn total(self) -> Total {
        let buckets = self.durations.iter().enumerate();
        let durations = Snapshot::new(buckets.map(|(bucket, count)| (bucket as u16, *count)), 0);
        let percentile = |share| durations.quantile(share).map(|time| time.as_nanos() as f64 / 1e6);
        Total {
            p50_ms: percentile(0.5),
            p90_ms: percentile(0.9),
            p99_ms: percentile(0.99),
            slowest_cold_start_ms: (self.slowest_nanos > 0).then(|| self.slowest_nanos as f64 / 1e6),
            ..self.total
        }
    }
}

impl Series {
    fn push(&mut self, covered_ms: u64, total: Total) {
        self.requests.push(rate(total.requests, covered_ms));
        self.errors.push(rate(total.errors, covered_ms));
        self.rejected.push(rate(total.rejected, covered_ms));
        self.bytes.push(rate(total.bytes, covered_ms));
        self.p50_ms.push(total.p50_ms);
        self.p90_ms.push(total.p90_ms);
        self.p99_ms.push(total.p99_ms);
        self.streams.push(rate(total.streams, covered_ms));
        self.cold_starts.push(rate(total.cold_starts, covered_ms));
    }
}

impl ProcessSeries {
    fn of(covered: &[u64], points: &[ProcessFigures]) -> Self {
        let points = || covered.iter().zip(points);
        let seen = |value: fn(&ProcessFigures) -> u64| {
            points().map(|(covered, point)| (*covered > 0).then(|| value(point))).collect()
        };
        Self {
            cpu_percent: points().map(|(covered, point)| percent(point.cpu_micros, *covered)).collect(),
            resident_bytes: seen(|point| point.resident_bytes),
            connections: seen(|point| point.connections),
        }
    }
}

impl AppSeries {
    fn of(points: &[(u64, AppFigures)]) -> Self {
        let seen = |value: fn(&AppFigures) -> u64| {
            points.iter().map(move |(covered, point)| (*covered > 0).then(|| value(point)))
        };
        Self {
            cpu_percent: points.iter().map(|(covered, point)| percent(point.cpu_micros, *covered)).collect(),
            resident_bytes: seen(|point| point.resident_bytes).collect(),
            lag_ms: seen(|point| point.lag_micros).map(|micros| Some(micros? as f64 / 1e3)).collect(),
            in_flight: seen(|point| point.in_flight).collect(),
            queued: seen(|point| point.queued).collect(),
        }
    }
}

/// Per second; none where the server was down.
fn rate(count: u64, covered_ms: u64) -> Option<f64> {
    (covered_ms > 0).then(|| rounded(count as f64 * 1_000.0 / covered_ms as f64))
}

/// Of one core.
fn percent(micros: u64, covered_ms: u64) -> Option<f64> {
    (covered_ms > 0).then(|| rounded(micros as f64 / 10.0 / covered_ms as f64))
}

/// Thousandths say enough, and take fewer bytes.
fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests;
