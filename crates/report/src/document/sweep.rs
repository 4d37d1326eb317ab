//! What is said of a sweep: one row for each step.
//!
//! Owns the comparison of steps. Never calls one the best: what is best depends on the latency that is bearable.

use std::time::Duration;

use onehop_load::latency::Latencies;
use onehop_load::outcome::Run;
use onehop_load::plan::Pace;

use super::{Cell, Document, Table, failures, headline, load};
use crate::plot::{Against, Plot, Under};
use crate::{Load, caveats, figures};

pub(super) fn write(loads: &[Load], document: &mut Document) {
    let Some(first) = loads.first() else {
        document.title = "Load".to_owned();
        document.warning("Nothing was measured.");
        return;
    };
    document.title = format!("Load in {} steps", loads.len());
    document.lead(format!("{}.", headline(loads)));
    document.paragraph(format!("The first step is {}.", load::asked(&first.plan)));
    if loads.iter().flat_map(|load| &load.runs).any(caveats::is_own_limit) {
        document.warning(
            "In the steps that are marked with \u{2265} the load reached its own limit: their rates are not the server's, which \
             can do at least that.",
        );
    }
    document.table(steps(loads));
    document.plot(against(loads));
    document.plot(Plot::percentiles(loads.iter().filter_map(|load| {
        let run = load.runs.last()?;
        Some((caveats::step_name(&load.plan), &run.total.latency))
    })));
    let mut reported = Vec::new();
    for load in loads {
        let name = caveats::step_name(&load.plan);
        reported.extend(caveats::of_load(load).into_iter().map(|caveat| caveat.of(&format!("With {name}"))));
    }
    document.caveats(reported);
}

fn steps(loads: &[Load]) -> Table {
    let columns = ["Rate", "Failed", "p50", "p90", "p99", "max", "Load's cores"];
    let mut table = Table::of_figures("One row for each run of each step", "Step", &columns);
    for load in loads {
        for (place, run) in load.runs.iter().enumerate() {
            let name = caveats::step_name(&load.plan);
            let name = if place == 0 { name } else { format!("{name}, run {}", place + 1) };
            let is_limited = caveats::is_own_limit(run);
            let at_least = if is_limited { "\u{2265} " } else { "" };

            let begin = [
                Cell::from(name),
                Cell::from(format!("{at_least}{}", figures::rate(run.rate()))),
                failures(run.total.unexpected + run.total.failures.sum()),
            ];
            let end = [Cell::from(figures::number(caveats::cores_used(run)))];
            let latency = &run.total.latency;
            let times = [latency.at(0.5), latency.at(0.9), latency.at(0.99), latency.max()];
            let times = times.map(|took| match latency.is_empty() {
                true => Cell::from(figures::NOTHING),
                false => Cell::from(figures::duration(took)),
            });
            table.row(begin.into_iter().chain(times).chain(end));
        }
    }
    table
}

fn against(loads: &[Load]) -> Option<Plot> {
    let is_open = matches!(loads.first()?.plan.pace, Pace::Open { .. });
    let mut points: Vec<Under> = Vec::new();
    for load in loads {
        let of_load = match &load.plan.pace {
            Pace::Closed { connections, .. } if !is_open => *connections as f64,
            Pace::Open { arrivals, .. } if is_open => arrivals.phases.last()?.to,
            _ => return None,
        };
        let mut together = Latencies::new();
        load.runs.iter().for_each(|run: &Run| together.merge(&run.total.latency));
        if together.at(1.0) > Duration::ZERO {
            points.push(Under {
                load: of_load,
                median: figures::as_micros(together.at(0.5)),
                high: figures::as_micros(together.at(0.99)),
                is_within: !load.runs.iter().any(|run| run.generator.bottleneck.is_some()),
            });
        }
    }
    points.sort_by(|one, other| one.load.total_cmp(&other.load));
    let load = if is_open { "requests per second" } else { "connections" };
    let plot = Against { load: load.to_owned(), points, share: 0.99, limit: None };
    (plot.points.len() > 1).then_some(Plot::Against(plot))
}
