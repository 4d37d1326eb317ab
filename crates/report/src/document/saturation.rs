//! What is said of a search for the highest rate.
//!
//! Owns the curve's table. Never names a rate that was not confirmed, and says when it is only a lower bound.

use onehop_bench::saturation::{Point, Saturation, Verdict};
use onehop_load::caveat::CaveatCode;

use super::about::noted;
use super::{Cell, Document, Table, Tone, failures};
use crate::plot::{Against, Plot, Under};
use crate::{caveats, figures};

pub(super) fn write(saturation: &Saturation, document: &mut Document) {
    let limit = saturation.limit;
    let percentile = figures::percentile(limit.share);
    let wanted = format!(
        "{percentile} at or under {} and at most {} failed",
        figures::length(limit.latency),
        figures::percent(limit.failures)
    );
    document.title = format!("The highest rate with {percentile} under {}", figures::length(limit.latency));
    document.paragraph(format!("Looked for: the highest rate of an open loop that keeps {wanted}."));
    match (saturation.best, saturation.load_was_the_limit) {
        (Ok(best), false) => document
            .lead(format!("{} requests per second, confirmed by a longer run.", figures::number(best))),
        (Ok(best), true) => document.warning(format!(
            "At least {} requests per second, confirmed by a longer run: beyond that the load reached its own limit, \
             not the server. {}",
            figures::number(best),
            own_limit(saturation)
        )),
        (Err(why), is_load) => document.warning(format!(
            "No rate is confirmed: {why} ({wanted}). {}",
            if is_load {
                own_limit(saturation)
            } else {
                "Allow more latency, or look at a single run to see where the time goes.".to_owned()
            }
        )),
    }
    document.table(points(saturation));
    document.plot(against(saturation));
    document.caveats(noted(CaveatCode::Search, &saturation.caveats));
}

/// What the load's threads measured of themselves at the lowest rate at which they were the limit, and what to do.
fn own_limit(saturation: &Saturation) -> String {
    let is_own = |point: &&Point| point.verdict == Verdict::LoadAtItsLimit;
    let Some(point) = saturation.points.iter().find(is_own) else { return String::new() };
    let generator = &point.run.generator;
    let late = match generator.lateness.is_empty() {
        true => figures::NOTHING.to_owned(),
        false => figures::duration(generator.lateness.at(saturation.limit.share)),
    };
    let advice = if generator.waiting > generator.busiest {
        "Something else runs on its cores: bind server and load to cores of their own (--cores), or run the load on \
         another machine."
    } else {
        "Give the load more threads (-t) and cores, or run it on another machine."
    };
    format!(
        "At {} its busiest thread used {} of a core and waited {} of the time for one, and {} of its lateness was {late}. \
         {advice}",
        figures::rate(point.offered),
        figures::percent(generator.busiest),
        figures::percent(generator.waiting),
        figures::percentile(saturation.limit.share),
    )
}

fn points(saturation: &Saturation) -> Table {
    let percentile = figures::percentile(saturation.limit.share);
    let columns = ["Answered", "p50", percentile.as_str(), "max", "Failed", "Load's cores", "Within"];
    let mut table = Table::of_figures("Rates that were tried, in rising order", "Offered", &columns);
    for point in &saturation.points {
        let latency = &point.run.total.latency;
        let tone = if point.is_within() { Tone::Good } else { Tone::Bad };
        let within = Cell::toned(point.verdict.to_string(), tone);
        let times = [latency.at(0.5), latency.at(saturation.limit.share), latency.max()];
        let times = times.map(|took| match latency.is_empty() {
            true => Cell::from(figures::NOTHING),
            false => Cell::from(figures::duration(took)),
        });
        let begin = [Cell::from(figures::rate(point.offered)), Cell::from(figures::rate(point.run.rate()))];
        let end = [
            failures(point.run.total.unexpected + point.run.total.failures.sum()),
            Cell::from(figures::number(caveats::cores_used(&point.run))),
            within,
        ];
        table.row(begin.into_iter().chain(times).chain(end));
    }
    table
}

fn against(saturation: &Saturation) -> Option<Plot> {
    let points: Vec<Under> = saturation
        .points
        .iter()
        .filter(|point| !point.run.total.latency.is_empty() && point.offered.is_finite())
        .map(|point| Under {
            load: point.offered,
            median: figures::as_micros(point.run.total.latency.at(0.5)),
            high: figures::as_micros(point.run.total.latency.at(saturation.limit.share)),
            is_within: point.is_within(),
        })
        .collect();
    let plot = Against {
        load: "offered requests per second".to_owned(),
        points,
        share: saturation.limit.share,
        limit: Some(figures::as_micros(saturation.limit.latency)),
    };
    (plot.points.len() > 1).then_some(Plot::Against(plot))
}
