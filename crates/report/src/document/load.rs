//! What is said of one load and its repetitions.
//!
//! Owns the order: what was asked, what came of it, then the figures. Never tells a rate as the server's that the load
//! itself limited.

use onehop_load::latency::Latencies;
use onehop_load::outcome::{Bottleneck, Run};
use onehop_load::plan::{Arrivals, Pace, Plan, Protocol, Reuse, Spacing};

use super::{Cell, Document, Table, encryption, failures, streams};
use crate::plot::Plot;
use crate::{Load, caveats, figures, secrets};

/// The percentiles of latency tables.
const PERCENTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// The place of the percentile that tables with more columns do without.
const P99_9: usize = 4;

/// Requests of a plan that are named in a sentence; more are in the table.
const NAMED_MAX: usize = 3;

pub(super) fn write(load: &Load, document: &mut Document) {
    document.title = format!("Load on {}", urls(&load.plan));
    document.paragraph(capital_sentence(&asked(&load.plan), load.runs.len()));
    if load.runs.is_empty() {
        document.warning("Nothing was measured.");
        return;
    }
    result(load, document);
    document.table(latencies(load));
    document.table(responses(load));
    document.table(own_share(load));
    let runs = load.runs.iter().enumerate();
    document.table(encryption::table(
        runs.map(|(place, run)| (figures::capital(&name_of(place, load.runs.len())), &run.handshakes)),
    ));
    let runs = load.runs.iter().enumerate();
    document.table(streams::table(runs.filter_map(|(place, run)| {
        Some((figures::capital(&name_of(place, load.runs.len())), run.http2.as_ref()?))
    })));
    document.table(by_request(load));
    document.plot(Plot::percentiles(curves(load)));
    for (place, run) in load.runs.iter().enumerate() {
        document.plot(Plot::over_time(&name_of(place, load.runs.len()), run));
    }
    document.caveats(caveats::of_load(load));
}

/// What was asked, and how, without the number of runs.
pub(crate) fn asked(plan: &Plan) -> String {
    let how = match &plan.pace {
        Pace::Closed { connections, think } => {
            let think = match think.is_zero() {
                true => String::new(),
                false => format!(" that think for {} between requests", figures::length(*think)),
            };
            format!("{}{think}, closed loop", of_connections(*connections, plan))
        }
        Pace::Open { connections, arrivals } => format!(
            "{}, open loop over at most {}",
            arrivals_words(arrivals),
            of_connections(*connections, plan)
        ),
    };
    let reuse = match plan.reuse {
        Reuse::Kept => String::new(),
        Reuse::New => ", a new connection for each request".to_owned(),
        Reuse::Requests(most) => {
            format!(", a new connection after every {}", figures::counted(u64::from(most), "request"))
        }
    };
    let warm_up = match plan.warm_up.is_zero() {
        true => ", without warm-up".to_owned(),
        false => format!(", after {} of warm-up", figures::length(plan.warm_up)),
    };
    format!(
        "{}: {how}{reuse}, from {}{}{warm_up}",
        urls(plan),
        figures::counted(plan.threads as u64, "thread"),
        until(plan)
    )
}

/// `64 connections`, or `1 connection with 64 streams over HTTP/2`.
fn of_connections(connections: usize, plan: &Plan) -> String {
    let all = figures::counted(connections as u64, "connection");
    match plan.protocol() {
        Protocol::Http1 => all,
        Protocol::Http2 { streams } => {
            let streams = figures::counted(u64::from(streams), "stream");
            let each = if connections == 1 { "" } else { " each" };
            format!("{all} with {streams}{each} over HTTP/2")
        }
    }
}

/// The latency columns, as a row of a table.
pub(super) fn latency_cells(latency: &Latencies) -> Vec<Cell> {
    if latency.is_empty() {
        return vec![Cell::from(figures::NOTHING); PERCENTILES.len() + 2];
    }
    let percentiles = PERCENTILES.iter().map(|share| latency.at(*share));
    let all = percentiles.chain([latency.max(), latency.mean()]);
    all.map(|took| Cell::from(figures::duration(took))).collect()
}

/// The names of those columns.
pub(super) const LATENCY_COLUMNS: [&str; 7] = ["p50", "p90", "p95", "p99", "p99.9", "max", "mean"];

fn urls(plan: &Plan) -> String {
    let named: Vec<String> = plan
        .requests
        .iter()
        .take(NAMED_MAX)
        .map(|request| figures::quoted(&secrets::line(request)))
        .collect();
    match plan.requests.len().saturating_sub(NAMED_MAX) {
        0 => figures::listed(&named),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

fn arrivals_words(arrivals: &Arrivals) -> String {
    let spacing = match arrivals.spacing {
        Spacing::Constant => "evenly spaced",
        Spacing::Poisson => "at random (Poisson)",
    };
    let phases: Vec<String> = arrivals
        .phases
        .iter()
        .map(|phase| match (phase.from - phase.to).abs() < f64::EPSILON {
            true => format!("{} requests per second", figures::number(phase.from)),
            false => format!(
                "{} to {} requests per second over {}",
                figures::number(phase.from),
                figures::number(phase.to),
                figures::length(phase.length)
            ),
        })
        .collect();
    format!("{} {spacing}", phases.join(", then "))
}

fn until(plan: &Plan) -> String {
    let until = plan.until;
    let mut ends = Vec::new();
    ends.extend(until.time.map(|time| format!(" for {}", figures::length(time))));
    ends.extend(until.requests.map(|requests| format!(" until {}", figures::counted(requests, "request"))));
    ends.extend(
        until
            .narrow
            .map(|share| format!(" until the rate is known to \u{b1}{}", figures::percent(share / 2.0))),
    );
    ends.join(" or")
}

fn capital_sentence(asked: &str, runs: usize) -> String {
    let times = match runs {
        0 | 1 => "once".to_owned(),
        2 => "twice".to_owned(),
        more => format!("{more} times"),
    };
    format!("{asked}. Measured {times}.")
}

fn result(load: &Load, document: &mut Document) {
    let limited: Vec<(&Run, Bottleneck)> = load
        .runs
        .iter()
        .filter(|run| caveats::is_own_limit(run))
        .filter_map(|run| Some((run, run.generator.bottleneck?)))
        .collect();
    let failed: u64 = load.runs.iter().map(|run| run.total.requests() - run.total.good).sum();
    if let Some((run, bottleneck)) = limited.first() {
        document.warn(&caveats::limit(&load.plan, run, *bottleneck));
        if failed > 0 {
            document.warning(format!(
                "{} had no good answer: {}.",
                figures::counted(failed, "request"),
                caveats::failures(&load.runs)
            ));
        }
        return;
    }
    let rates: Vec<String> = load.runs.iter().map(|run| figures::number(run.rate())).collect();
    let failed = match failed {
        0 => "no request failed".to_owned(),
        failed => format!("{} had no good answer", figures::counted(failed, "request")),
    };
    if !load.runs.iter().any(Run::has_good) {
        // Given up in its warm-up, it has counted nothing.
        let came = match caveats::failures(&load.runs) {
            came if came.is_empty() => String::new(),
            came => format!(": {came}"),
        };
        document.warning(format!("Not one good answer{came}."));
        if let Some(why) = load.runs.iter().find_map(|run| caveats::end(&load.plan, run)) {
            document.warn(&why);
        }
        return;
    }
    let offered = match &load.plan.pace {
        Pace::Open { arrivals, .. } => match arrivals.phases.as_slice() {
            [phase] if (phase.from - phase.to).abs() < f64::EPSILON => {
                format!(" of {} asked for", figures::number(phase.from))
            }
            _ => String::new(),
        },
        Pace::Closed { .. } => String::new(),
    };
    document.lead(format!(
        "{} good answers per second{offered}, {}; {failed}.",
        figures::listed(&rates),
        latency_of_due(load)
    ));
    // A p99 that hides a stall is not told without what it hides.
    if let Some(hidden) = load.runs.iter().find_map(caveats::omission) {
        document.warn(&hidden);
    }
}

/// The p99 of each run, of requests that were due in its measured time. A server that is far behind has answered none
/// of them by the end: then there is none.
fn latency_of_due(load: &Load) -> String {
    let latencies = || load.runs.iter().map(|run| &run.total.latency);
    if latencies().all(Latencies::is_empty) {
        return "all to requests that were due before the measured time".to_owned();
    }
    let percentiles: Vec<String> = latencies()
        .map(|latency| match latency.is_empty() {
            true => figures::NOTHING.to_owned(),
            false => figures::duration(latency.at(0.99)),
        })
        .collect();
    format!("p99 {}", figures::listed(&percentiles))
}

fn name_of(place: usize, all: usize) -> String {
    if all > 1 { format!("run {}", place + 1) } else { "the run".to_owned() }
}

fn latencies(load: &Load) -> Table {
    let is_open = matches!(load.plan.pace, Pace::Open { .. });
    let caption = match is_open {
        true => "Latency of good answers, from the moment at which each request was due",
        false => "Latency of good answers, from sending to the last byte",
    };
    let mut table = Table::of_figures(caption, "Latency", &LATENCY_COLUMNS);
    for (place, run) in load.runs.iter().enumerate() {
        let name = name_of(place, load.runs.len());
        let mut add = |name: String, latency: &Latencies| {
            table.row(std::iter::once(Cell::from(figures::capital(&name))).chain(latency_cells(latency)));
        };
        add(name.clone(), &run.total.latency);
        if is_open && !run.total.service.is_empty() {
            add(format!("{name}, from sending"), &run.total.service);
        }
        if let Some(omitted) = &run.omitted {
            add(format!("{name}, with what was left out"), &omitted.corrected);
        }
    }
    table
}

fn responses(load: &Load) -> Table {
    let columns = ["Rate", "Good", "Other status", "No answer", "Read", "Written"];
    let mut table = Table::of_figures("Answers, and bytes with heads and framing", "Answers", &columns);
    for (place, run) in load.runs.iter().enumerate() {
        let total = &run.total;
        let rate = match caveats::is_own_limit(run) {
            true => format!("\u{2265} {}", figures::rate(run.rate())),
            false => figures::rate(run.rate()),
        };
        table.row([
            Cell::from(figures::capital(&name_of(place, load.runs.len()))),
            Cell::from(rate),
            Cell::from(figures::count(total.good)),
            failures(total.unexpected),
            failures(total.failures.sum()),
            Cell::from(figures::bytes(total.bytes_read as f64)),
            Cell::from(figures::bytes(total.bytes_written as f64)),
        ]);
    }
    table
}

fn own_share(load: &Load) -> Table {
    let columns =
        ["Cores used", "Busiest thread", "Waited for a core", "Requests per CPU-second", "Connections"];
    let caption = "What the load itself used: its own limits are to be far from these";
    let mut table = Table::of_figures(caption, "The load", &columns);
    for (place, run) in load.runs.iter().enumerate() {
        let generator = &run.generator;
        let cpu = generator.cpu.as_secs_f64();
        let per_cpu = match cpu > 0.0 {
            true => figures::number(run.total.requests() as f64 / cpu),
            false => figures::NOTHING.to_owned(),
        };
        table.row([
            Cell::from(figures::capital(&name_of(place, load.runs.len()))),
            Cell::from(figures::number(caveats::cores_used(run))),
            Cell::from(figures::percent(generator.busiest)),
            Cell::from(figures::percent(generator.waiting)),
            Cell::from(per_cpu),
            Cell::from(figures::count(generator.connections_opened)),
        ]);
    }
    table
}

fn by_request(load: &Load) -> Table {
    let mut table = Table::of_figures(
        "Each request, all runs together",
        "Request",
        &["Good", "Failed", "p50", "p90", "p95", "p99", "max", "mean"],
    );
    if load.plan.requests.len() < 2 {
        return table;
    }
    for (place, request) in load.plan.requests.iter().enumerate() {
        let mut tally = onehop_load::outcome::Tally::default();
        for run in &load.runs {
            run.by_request.get(place).into_iter().for_each(|one| tally.merge(one));
        }
        let name = Cell::from(figures::named(&secrets::hide(&request.name)));
        let counts =
            [Cell::from(figures::count(tally.good)), failures(tally.unexpected + tally.failures.sum())];
        let mut latency = latency_cells(&tally.latency);
        latency.remove(P99_9);
        table.row(std::iter::once(name).chain(counts).chain(latency));
    }
    table
}

fn curves(load: &Load) -> Vec<(String, &Latencies)> {
    let mut curves = Vec::new();
    for (place, run) in load.runs.iter().enumerate() {
        let name = name_of(place, load.runs.len());
        curves.push((name.clone(), &run.total.latency));
        if let Some(omitted) = &run.omitted {
            curves.push((format!("{name}, with what was left out"), &omitted.corrected));
        }
    }
    curves
}
