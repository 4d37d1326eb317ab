//! The figures of a picture as a table, for those who do not see it and those who want numbers.
//!
//! Owns which of the points are told: those that people ask for, not all that are drawn.

use crate::document::{Cell, Column, Table, Tone};
use crate::figures;
use crate::plot::{Plot, Series};

/// Rows of a time series.
const MOMENTS_MAX: usize = 20;

/// Shares of the percentile table.
const SHARES: [f64; 8] = [0.0, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999];

/// The table that says the same as the picture.
pub(super) fn table(plot: &Plot) -> Table {
    match plot {
        Plot::Percentiles(curves) => {
            let columns = std::iter::once("Share").chain(curves.iter().map(|curve| curve.name.as_str()));
            let mut rows = Vec::new();
            for share in SHARES {
                let mut row = vec![figures::percentile(share)];
                row.extend(curves.iter().map(|curve| {
                    let found = curve.points.iter().find(|(other, _)| *other >= share);
                    found
                        .map_or_else(|| figures::NOTHING.to_owned(), |(_, latency)| figures::micros(*latency))
                }));
                rows.push(row);
            }
            let mut row = vec!["max".to_owned()];
            row.extend(curves.iter().map(|curve| {
                curve
                    .points
                    .last()
                    .map_or_else(|| figures::NOTHING.to_owned(), |point| figures::micros(point.1))
            }));
            rows.push(row);
            of("Latency by percentile", columns, rows)
        }
        Plot::OverTime(series) => over_time(series),
        Plot::Ratios(ratios) => {
            let rows = ratios.rows.iter().map(|(name, interval, verdict)| {
                vec![name.clone(), figures::ratio(interval), figures::verdict(*verdict, interval)]
            });
            of(&figures::capital(&ratios.title), ["Metric", "Ratio", "Verdict"].into_iter(), rows.collect())
        }
        Plot::Against(against) => {
            let high = figures::percentile(against.share);
            let rows = against.points.iter().map(|point| {
                let within = match (against.limit.is_some(), point.is_within) {
                    (_, true) => "yes",
                    (true, false) => "no",
                    (false, false) => "the load was at its own limit",
                };
                vec![
                    figures::amount(point.load),
                    figures::micros(point.median),
                    figures::micros(point.high),
                    within.to_owned(),
                ]
            });
            let columns = ["Load", "p50", high.as_str(), "Within"].into_iter();
            of(&format!("Latency against {}", against.load), columns, rows.collect())
        }
        Plot::Bars(bars) => {
            let rows = bars.iter().map(|bar| {
                vec![
                    bar.name.clone(),
                    figures::micros(bar.p50),
                    figures::micros(bar.p99),
                    figures::micros(bar.max),
                    figures::count(bar.failed),
                ]
            });
            let columns = ["Request", "p50", "p99", "max", "Failed"].into_iter();
            of("Latency of each request", columns, rows.collect())
        }
    }
}

fn over_time(series: &Series) -> Table {
    let together = series.moments.len().div_ceil(MOMENTS_MAX).max(1);
    let rows = series.moments.chunks(together).map(|moments| {
        let mean = moments.iter().map(|moment| moment.rate).sum::<f64>() / moments.len() as f64;
        let highest =
            |of: fn(&crate::plot::Moment) -> f64| figures::micros(moments.iter().map(of).fold(0.0, f64::max));
        let at = moments.first().map_or(0.0, |moment| moment.at);
        vec![
            format!("from {}", figures::micros(at * 1e6)),
            figures::rate(mean),
            highest(|moment| moment.p50),
            highest(|moment| moment.p99),
            highest(|moment| moment.max),
        ]
    });
    let columns = ["Time", "Good", "p50, highest", "p99, highest", "max"].into_iter();
    let mut table = of(&format!("Over time, {}", series.name), columns, rows.collect());
    for stall in &series.stalls {
        let mut row = vec![Cell::from(format!(
            "no answers for {} from {} on",
            figures::duration(stall.length),
            figures::duration(stall.at)
        ))];
        row.resize(table.columns.len(), Cell::from(figures::NOTHING));
        table.rows.push(row);
    }
    table
}

fn of<'name>(caption: &str, columns: impl Iterator<Item = &'name str>, rows: Vec<Vec<String>>) -> Table {
    Table {
        caption: caption.to_owned(),
        columns: columns
            .enumerate()
            .map(|(place, name)| Column { name: name.to_owned(), is_figure: place > 0 })
            .collect(),
        rows: rows
            .into_iter()
            .map(|row| row.into_iter().map(|text| Cell { text, tone: Tone::Plain }).collect())
            .collect(),
    }
}
