//! What is said of targets side by side.
//!
//! Owns the table Metric, Control, Test, Difference, Verdict. Never says more than a row's interval carries, keeps
//! cold starts apart, and shows every sample that was left out.

use onehop_bench::compare::{Comparison, Mark, Metric, Row, Sample};
use onehop_load::http2::Http2Seen;
use onehop_load::latency::Latencies;
use onehop_load::plan::{Pace, Reuse};
use onehop_load::tls::Handshakes;
use onehop_statistics::Verdict;

use super::{Block, Cell, Column, Document, Table, Tone, encryption, load, streams};
use crate::plot::{Plot, Ratios};
use crate::{caveats, figures, secrets};

/// Letters of a target's name that stand over its column; of a longer one the caption says which it is.
const HEAD_LETTERS_MAX: usize = 16;

/// Samples that are listed with their marks; of more the first.
const MARKED_MAX: usize = 40;

pub(super) fn write(comparison: &Comparison, document: &mut Document) {
    let names: Vec<String> = comparison.targets.iter().map(|name| target(name)).collect();
    document.title = format!("Comparison of {}", figures::listed(&names));
    document.paragraph(how(comparison));
    figures(comparison, true, document);
    document.table(encryption::table(handshakes(comparison).iter().map(|(name, all)| (name.clone(), all))));
    document.table(streams::table(http2(comparison).iter().map(|(name, all)| (name.clone(), all))));
    spread("Latency of all unmarked samples together", comparison, document);
    marked(comparison, document);
    document.caveats(comparison.caveats.clone());
}

/// Tables and pictures of a comparison's rows, without its caveats.
pub(super) fn figures(comparison: &Comparison, with_summary: bool, document: &mut Document) {
    let control = comparison.targets.first().map(|name| target(name)).unwrap_or_default();
    for (place, name) in comparison.targets.iter().enumerate().skip(1) {
        let name = target(name);
        let rows: Vec<&Row> = comparison.rows.iter().filter(|row| row.test == place).collect();
        if rows.is_empty() {
            document.warning(format!("There are no figures for {name} beside {control}."));
            continue;
        }
        if with_summary {
            document.lead(summary(&control, &name, &rows));
        }
        let (cold, warm): (Vec<&Row>, Vec<&Row>) = rows.into_iter().partition(|row| is_cold(row.metric));
        let title = format!("{name} (test) beside {control} (control)");
        document.table(table(comparison, &title, &control, &name, &warm));
        let is_limited = |row: &&Row| {
            row.metric == Metric::Rate
                && [0, place].iter().any(|&target| shown_rate(comparison, row, target) == Shown::AtLeast)
        };
        if warm.iter().any(is_limited) {
            document.paragraph("\u{2265}: the load reached its own limit; the server can do at least that.");
        }
        document.plot(ratios(format!("{name} divided by {control}"), &warm));
        document.table(table(
            comparison,
            &format!("First answers, each a figure of its own: {title}"),
            &control,
            &name,
            &cold,
        ));
    }
}

/// How the latencies of all rounds spread.
pub(super) fn spread(caption: &str, comparison: &Comparison, document: &mut Document) {
    document.table(per_target(caption, comparison));
    document.plot(Plot::percentiles(latencies(comparison).iter().map(|(name, all)| (name.clone(), all))));
}

/// Those of all rounds, by target.
fn handshakes(comparison: &Comparison) -> Vec<(String, Handshakes)> {
    let of = |place: usize| {
        let mut all = Handshakes::default();
        let own = comparison.samples.iter().filter(|sample| sample.target == place);
        own.for_each(|sample| all.merge(&sample.run.handshakes));
        all
    };
    comparison.targets.iter().enumerate().map(|(place, name)| (target(name), of(place))).collect()
}

/// The streams of all rounds, by target, of those that had some.
fn http2(comparison: &Comparison) -> Vec<(String, Http2Seen)> {
    let of = |place: usize| {
        let own = comparison.samples.iter().filter(|sample| sample.target == place);
        own.filter_map(|sample| sample.run.http2.clone()).reduce(|mut all, other| {
            all.merge(&other);
            all
        })
    };
    let named = comparison.targets.iter().enumerate();
    named.filter_map(|(place, name)| Some((target(name), of(place)?))).collect()
}

/// How it was measured, in sentences.
pub(super) fn how(comparison: &Comparison) -> String {
    let settings = &comparison.settings;
    let streams = comparison.samples.iter().find_map(|sample| Some(sample.run.http2.as_ref()?.streams));
    let streams = streams
        .map(|streams| format!(" with {} each over HTTP/2", figures::counted(u64::from(streams), "stream")));
    let streams = streams.unwrap_or_default();
    let pace = match &settings.pace {
        Pace::Closed { connections, .. } => {
            format!("a closed loop over {}", figures::counted(*connections as u64, "connection"))
        }
        Pace::Open { connections, arrivals } => format!(
            "an open loop at {} over at most {}",
            arrivals
                .phases
                .last()
                .map_or_else(|| figures::NOTHING.to_owned(), |phase| figures::rate(phase.to)),
            figures::counted(*connections as u64, "connection")
        ),
    };
    let reuse = match settings.reuse {
        Reuse::Kept => "kept connections",
        Reuse::New => "a new connection for each request",
        Reuse::Requests(_) => "connections that are changed now and then",
    };
    let idle = match settings.idle_connections {
        0 => String::new(),
        count => format!(", beside {}", figures::counted(count as u64, "idle connection")),
    };
    let cores = match settings.server_cores.is_empty() || settings.load_cores.is_empty() {
        true => "Servers and load shared the cores.".to_owned(),
        false => format!(
            "Servers on core {}, load on core {}.",
            cores(&settings.server_cores),
            cores(&settings.load_cores)
        ),
    };
    format!(
        "{} in random order, each server measured once in each: {} of load after {} of warm-up, {pace}{streams}, {reuse}{idle}. \
         {cores} Ratios are those of pairs within a round, and a difference is claimed where its whole {} interval \
         is more than {} away from none.",
        figures::capital(&figures::counted(settings.rounds as u64, "round")),
        figures::length(settings.time),
        figures::length(settings.warm_up),
        figures::percent(settings.confidence),
        figures::percent(settings.least_difference)
    )
}

/// The name of what is compared.
pub(crate) fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::CpuPerRequest => "CPU per request",
        Metric::Rate => "Requests per second",
        Metric::P50 => "Latency p50",
        Metric::P99 => "Latency p99",
        Metric::MemoryMedian => "Memory, median",
        Metric::MemoryP99 => "Memory, p99",
        Metric::MemoryAtRest => "Memory at rest",
        Metric::MemoryPerIdleConnection => "Memory per idle connection",
        Metric::Switches => "Switches per request",
        Metric::IoBytes => "Bytes per request",
        Metric::ColdStart => "Cold start",
        Metric::AfterIdle => "After idle time",
        Metric::Recovery => "Recovery from overload",
    }
}

/// A value of a metric with its unit.
pub(super) fn metric_value(metric: Metric, value: f64) -> String {
    match metric {
        Metric::CpuPerRequest
        | Metric::P50
        | Metric::P99
        | Metric::ColdStart
        | Metric::AfterIdle
        | Metric::Recovery => figures::micros(value),
        Metric::Rate => figures::rate(value),
        Metric::MemoryMedian
        | Metric::MemoryP99
        | Metric::MemoryAtRest
        | Metric::MemoryPerIdleConnection
        | Metric::IoBytes => figures::bytes(value),
        Metric::Switches => figures::number(value),
    }
}

/// What may be said of a rate.
#[derive(PartialEq)]
enum Shown {
    /// The value.
    Value,
    /// At least the value: the load was the limit, and nothing else is odd.
    AtLeast,
    /// Nothing: the samples are void, or of rounds that were odd in other ways.
    Nothing,
}

/// A row without one pair has the median of all rounds: what that is worth is for the marks to say.
fn shown_rate(comparison: &Comparison, row: &Row, target: usize) -> Shown {
    let samples: Vec<&Sample> = comparison.samples.iter().filter(|sample| sample.target == target).collect();
    let (limited, free): (Vec<&Sample>, Vec<&Sample>) =
        samples.iter().partition(|sample| sample.marks.contains(&Mark::LoadWasTheBottleneck));
    let is_odd = |sample: &&Sample| {
        sample.marks.iter().any(|mark| !matches!(mark, Mark::LoadWasTheBottleneck | Mark::LoadWasLate))
    };
    // Where most are the load's, the few others are those in which the target was slow.
    let is_limited = limited.len() > free.len() || row.pairs == 0 && !limited.is_empty();
    match row.pairs == 0 && samples.iter().any(is_odd) {
        true => Shown::Nothing,
        false if !is_limited => Shown::Value,
        false if limited.iter().all(|sample| caveats::is_own_limit(&sample.run)) => Shown::AtLeast,
        false => Shown::Nothing,
    }
}

/// What is unknown has no value; zero would be one.
fn value(comparison: &Comparison, row: &Row, target: usize) -> String {
    let value = if target == 0 { row.control_value } else { row.test_value };
    let is_known = value.is_finite() && (row.verdict != Verdict::Unknown || value > 0.0);
    let shown = match row.metric {
        _ if !is_known => Shown::Nothing,
        Metric::Rate => shown_rate(comparison, row, target),
        _ => Shown::Value,
    };
    match shown {
        Shown::Value => metric_value(row.metric, value),
        Shown::AtLeast => format!("\u{2265} {}", metric_value(row.metric, value)),
        Shown::Nothing => figures::NOTHING.to_owned(),
    }
}

/// Sentences of others as they may be shown.
pub(super) fn given(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| secrets::hide(&figures::visible(text))).collect()
}

/// A target's name as it may be shown.
pub(super) fn target(name: &str) -> String {
    figures::named(&secrets::hide(name))
}

fn is_cold(metric: Metric) -> bool {
    matches!(metric, Metric::ColdStart | Metric::AfterIdle)
}

fn cores(cores: &[usize]) -> String {
    figures::listed(&cores.iter().map(ToString::to_string).collect::<Vec<_>>())
}

fn summary(control: &str, test: &str, rows: &[&Row]) -> String {
    let of = |metric: Metric| rows.iter().find(|row| row.metric == metric);
    let tell = |row: &Row| {
        let difference = figures::verdict(row.verdict, &row.ratio);
        match row.verdict {
            Verdict::Less | Verdict::More => {
                format!("{difference} (ratio {})", figures::ratio(&row.ratio))
            }
            Verdict::NotShown | Verdict::Unknown => difference,
        }
    };
    let parts: Vec<String> = [(Metric::CpuPerRequest, "CPU per request"), (Metric::P99, "p99 latency")]
        .into_iter()
        .filter_map(|(metric, name)| Some(format!("{name}: {}", tell(of(metric)?))))
        .collect();
    format!("{test} beside {control}. {}.", figures::capital(&parts.join("; ")))
}

fn table(comparison: &Comparison, caption: &str, control: &str, test: &str, rows: &[&Row]) -> Table {
    let head = |name, role| if str::chars(name).count() > HEAD_LETTERS_MAX { role } else { name };
    let [control, test] = [head(control, "Control"), head(test, "Test")];
    let columns =
        [("Metric", false), (control, true), (test, true), ("Difference", true), ("Verdict", false)];
    let columns =
        columns.into_iter().map(|(name, is_figure)| Column { name: name.to_owned(), is_figure }).collect();
    let mut table = Table { caption: caption.to_owned(), columns, rows: Vec::new() };
    for row in rows {
        let tone = match (row.verdict, row.metric == Metric::Rate) {
            (Verdict::Less, false) | (Verdict::More, true) => Tone::Good,
            (Verdict::More, false) | (Verdict::Less, true) => Tone::Bad,
            (Verdict::NotShown | Verdict::Unknown, _) => Tone::Plain,
        };
        table.row([
            Cell::from(metric_name(row.metric)),
            Cell::from(value(comparison, row, 0)),
            Cell::from(value(comparison, row, row.test)),
            Cell::from(figures::difference(&row.ratio)),
            Cell::toned(figures::verdict(row.verdict, &row.ratio), tone),
        ]);
    }
    table
}

fn ratios(title: String, rows: &[&Row]) -> Option<Plot> {
    let is_shown =
        |row: &&&Row| row.ratio.low.is_finite() && row.ratio.high.is_finite() && row.ratio.low > 0.0;
    let rows: Vec<_> = rows
        .iter()
        .filter(is_shown)
        .map(|row| (metric_name(row.metric).to_owned(), row.ratio, row.verdict))
        .collect();
    (!rows.is_empty()).then_some(Plot::Ratios(Ratios { title, rows }))
}

/// Samples that stand in the rows: marked ones are shown, and left out.
fn unmarked(comparison: &Comparison, target: usize) -> impl Iterator<Item = &Sample> {
    comparison.samples.iter().filter(move |sample| sample.target == target && sample.marks.is_empty())
}

fn latencies(comparison: &Comparison) -> Vec<(String, Latencies)> {
    let targets = comparison.targets.iter().enumerate();
    targets
        .map(|(place, name)| {
            let mut all = Latencies::new();
            unmarked(comparison, place).for_each(|sample| all.merge(&sample.run.total.latency));
            (secrets::hide(&figures::visible(name)), all)
        })
        .collect()
}

fn per_target(caption: &str, comparison: &Comparison) -> Table {
    let mut table = Table::of_figures(caption, "Arm", &["p50", "p90", "p95", "p99", "p99.9", "max", "mean"]);
    for (name, all) in latencies(comparison) {
        table.row(std::iter::once(Cell::from(figures::quoted(&name))).chain(load::latency_cells(&all)));
    }
    table
}

/// The samples that are unlike the others.
pub(super) fn marked(comparison: &Comparison, document: &mut Document) {
    let marked: Vec<&Sample> = comparison.samples.iter().filter(|sample| !sample.marks.is_empty()).collect();
    if marked.is_empty() {
        return;
    }
    let mut items: Vec<String> = marked
        .iter()
        .take(MARKED_MAX)
        .map(|sample| {
            let name = comparison.targets.get(sample.target).map(|name| target(name)).unwrap_or_default();
            let marks: Vec<String> = sample.marks.iter().map(mark).collect();
            format!("Round {}, {name}: {}.", sample.round + 1, marks.join("; "))
        })
        .collect();
    if marked.len() > MARKED_MAX {
        items.push(format!("And {} more.", marked.len() - MARKED_MAX));
    }
    document.heading("Samples with something odd");
    document.paragraph(format!(
        "{} of {} are unlike the others. Rows leave out what their marks spoil.",
        marked.len(),
        figures::counted(comparison.samples.len() as u64, "sample")
    ));
    document.blocks.push(Block::Items(items));
}

fn mark(mark: &Mark) -> String {
    match mark {
        Mark::StartUp { lasted } => {
            format!("still starting up for {} of the measurement", figures::duration(*lasted))
        }
        Mark::Pause { at, length } => {
            format!("stood still for {} at {}", figures::duration(*length), figures::duration(*at))
        }
        Mark::Void(why) => format!("void, {}", secrets::hide(&figures::visible(why)).trim_end_matches('.')),
        Mark::LoadWasTheBottleneck => "the load was at its own limit".to_owned(),
        Mark::LoadWasLate => "the load sent some requests late".to_owned(),
        Mark::Restarted => "the server ended or was started anew within the run".to_owned(),
    }
}
