//! Pictures before they are drawn: which curve, over what, with which words beside it.
//!
//! Owns the choice of points and its bounds, so that a page stays small however long a run was. Never smooths: a
//! point that is left out lies between two that are shown, and maxima are kept. `text_plot.rs` draws them with letters,
//! `html/plots.rs` as SVG.

use std::time::Duration;

use onehop_load::latency::Latencies;
use onehop_load::outcome::{Run, Stall};
use onehop_statistics::{Interval, Verdict};

use super::figures;

/// Points of a percentile curve: more than a screen has room for.
const PERCENTILE_POINTS_MAX: usize = 240;

/// Moments of a series over time; of more, neighbours become one with the mean rate and the highest latency.
const MOMENTS_MAX: usize = 300;

/// Curves in one picture: more cannot be distinguished without colour.
pub(crate) const CURVES_MAX: usize = 6;

/// Bars in one picture; a collection of more is in its table.
const BARS_MAX: usize = 60;

/// Bins of a histogram: as many lines as are read at a glance.
const BINS: usize = 10;

/// Stalls that are shaded in one picture.
const STALLS_MAX: usize = 50;

/// A picture.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Plot {
    /// Latency by percentile, on an axis of the logarithm of what is left to 100 %.
    Percentiles(Vec<Curve>),
    /// A run over time.
    OverTime(Series),
    /// Ratios with their intervals, beside the line at 1.
    Ratios(Ratios),
    /// Latency against load.
    Against(Against),
    /// Requests beside each other.
    Bars(Vec<Bar>),
}

/// A percentile curve.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Curve {
    /// Whose.
    pub(crate) name: String,
    /// Share of requests (0 to 1) and latency in microseconds, both rising.
    pub(crate) points: Vec<(f64, f64)>,
    /// The same as a histogram, rising; none where all took the same.
    pub(crate) bins: Vec<Bin>,
}

/// Requests that took about the same time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bin {
    /// Longer than this, in microseconds; the first bin holds what is shorter too.
    pub(crate) low: f64,
    /// Not longer than this.
    pub(crate) high: f64,
    /// Their share of all.
    pub(crate) share: f64,
}

/// A run over time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    /// Whose.
    pub(crate) name: String,
    /// Its moments, in order.
    pub(crate) moments: Vec<Moment>,
    /// Times without an answer.
    pub(crate) stalls: Vec<Stall>,
    /// The whole time, seconds.
    pub(crate) seconds: f64,
}

/// A piece of time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Moment {
    /// Its begin, seconds.
    pub(crate) at: f64,
    /// Good answers per second.
    pub(crate) rate: f64,
    /// Everything else, per second.
    pub(crate) bad: f64,
    /// Median latency, microseconds; the highest of the slices that were put together.
    pub(crate) p50: f64,
    /// 99th percentile.
    pub(crate) p99: f64,
    /// Maximum.
    pub(crate) max: f64,
}

/// Ratios with their intervals.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ratios {
    /// What is divided by what.
    pub(crate) title: String,
    /// Metric, ratio, verdict.
    pub(crate) rows: Vec<(String, Interval, Verdict)>,
}

/// Latency against load.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Against {
    /// What grows: `offered requests per second`, `connections`.
    pub(crate) load: String,
    /// The points, by load.
    pub(crate) points: Vec<Under>,
    /// The percentile that `high` is, as a share.
    pub(crate) share: f64,
    /// What it must not exceed, microseconds, where that was asked for.
    pub(crate) limit: Option<f64>,
}

/// One load and what came of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Under {
    /// How much.
    pub(crate) load: f64,
    /// Median latency, microseconds.
    pub(crate) median: f64,
    /// The percentile that is looked at, microseconds.
    pub(crate) high: f64,
    /// It kept within the limit.
    pub(crate) is_within: bool,
}

/// A request beside others.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bar {
    /// Its name.
    pub(crate) name: String,
    /// Latencies in microseconds.
    pub(crate) p50: f64,
    /// 99th percentile.
    pub(crate) p99: f64,
    /// Maximum.
    pub(crate) max: f64,
    /// Requests that failed.
    pub(crate) failed: u64,
}

impl Plot {
    /// Curves of those that have something to show.
    pub(crate) fn percentiles<'latency>(
        of: impl IntoIterator<Item = (String, &'latency Latencies)>,
    ) -> Option<Plot> {
        let curves: Vec<Curve> = of
            .into_iter()
            .filter(|(_, latencies)| !latencies.is_empty())
            .take(CURVES_MAX)
            .map(|(name, latencies)| Curve {
                name,
                points: percentile_points(latencies),
                bins: bins(latencies),
            })
            .collect();
        (!curves.is_empty()).then_some(Plot::Percentiles(curves))
    }

    /// A run over time, where it has pieces enough to be a line.
    pub(crate) fn over_time(name: &str, run: &Run) -> Option<Plot> {
        let length = run.slice_length.as_secs_f64();
        if run.slices.len() < 3 || length <= 0.0 {
            return None;
        }
        let together = run.slices.len().div_ceil(MOMENTS_MAX);
        let moments = run.slices.chunks(together).map(|slices| {
            let span = length * slices.len() as f64;
            let highest = |of: fn(&onehop_load::outcome::Slice) -> Duration| {
                figures::as_micros(slices.iter().map(of).max().unwrap_or_default())
            };
            Moment {
                at: slices.first().map_or(0.0, |slice| slice.at.as_secs_f64()),
                rate: slices.iter().map(|slice| slice.good).sum::<u64>() as f64 / span,
                bad: slices.iter().map(|slice| slice.bad).sum::<u64>() as f64 / span,
                p50: highest(|slice| slice.p50),
                p99: highest(|slice| slice.p99),
                max: highest(|slice| slice.max),
            }
        });
        let moments: Vec<Moment> = moments.collect();
        let end = moments.last().map_or(0.0, |moment| moment.at + length * together as f64);
        Some(Plot::OverTime(Series {
            name: name.to_owned(),
            moments,
            stalls: run.stalls.iter().copied().take(STALLS_MAX).collect(),
            seconds: end.max(run.elapsed.as_secs_f64()),
        }))
    }

    /// Requests beside each other.
    pub(crate) fn bars(bars: Vec<Bar>) -> Option<Plot> {
        (1..=BARS_MAX).contains(&bars.len()).then_some(Plot::Bars(bars))
    }
}

/// Points at equal distances on the axis of the picture, each no less than the true latency there.
fn percentile_points(latencies: &Latencies) -> Vec<(f64, f64)> {
    // One request of all is the least share that can be told: beyond it is the maximum.
    let least = 1.0 / latencies.count().max(1) as f64;
    let decades = -least.log10();
    let steps = PERCENTILE_POINTS_MAX - 1;
    let points = (0..=steps).map(|step| {
        let left = 10f64.powf(-decades * step as f64 / steps as f64);
        let share = if step == steps { 1.0 - least } else { 1.0 - left };
        let latency = if step == steps { latencies.max() } else { latencies.at(share) };
        (share, figures::as_micros(latency))
    });
    let mut points: Vec<(f64, f64)> = points.collect();
    // Of a level piece its ends are enough.
    let mut place = 1;
    while place + 1 < points.len() {
        let level = points[place - 1].1 == points[place].1 && points[place].1 == points[place + 1].1;
        if level {
            points.remove(place);
        } else {
            place += 1;
        }
    }
    points
}

/// Bins of equal width on a logarithmic axis. What is shorter than nearly all begins no bin of its own.
fn bins(latencies: &Latencies) -> Vec<Bin> {
    let low = figures::as_micros(latencies.at(0.001)).max(0.001);
    let high = figures::as_micros(latencies.max());
    // Closer than a percent is the same, as far as the histogram can tell.
    if high / low < 1.01 {
        return Vec::new();
    }
    let bound = |bin: usize| low * (high / low).powf(bin as f64 / BINS as f64);
    let above = |bin: usize| match bin {
        0 => latencies.count(),
        BINS => 0,
        bin => latencies.count_above(Duration::from_secs_f64(bound(bin) / 1e6)),
    };
    let share = |bin: usize| above(bin).saturating_sub(above(bin + 1)) as f64 / latencies.count() as f64;
    (0..BINS).map(|bin| Bin { low: bound(bin), high: bound(bin + 1), share: share(bin) }).collect()
}
