//! What is said of a scenario: how the first server did in each case, and which bounds hold.
//!
//! Owns the table of all cases; each case is then told as the comparison that it is.

use onehop_bench::compare::{Metric, Row, Sample};
use onehop_bench::scenario::{BoundResult, CaseRun, Held, ScenarioRun};
use onehop_load::latency::Latencies;
use onehop_statistics::{Interval, Verdict};

use super::comparison;
use super::{Cell, Column, Document, Table, Tone};
use crate::plot::{Plot, Ratios};
use crate::{figures, secrets};

pub(super) fn write(run: &ScenarioRun, document: &mut Document) {
    document.title = format!("Scenario {}", figures::named(&run.name));
    document.lead(result(run));
    for why in &run.failures {
        document.warning(figures::sentence(&secrets::hide(&figures::visible(why))));
    }
    for bound in run.bounds.iter().filter(|bound| bound.held == Held::No) {
        document.warning(format!("Missed: {}.", wanted(bound, run)));
    }
    document.plot(picture(run));
    document.introduction = Some(secrets::hide(&figures::sentence(&run.about)));
    // The short form shows the first one.
    let tables = match run.cases.iter().all(is_special) {
        true => [special(run), cases(run)],
        false => [cases(run), special(run)],
    };
    tables.into_iter().for_each(|table| document.table(table));
    if !run.bounds.is_empty() {
        document.table(bounds(run));
    }
    for case in &run.cases {
        document.heading(format!("Case {}", figures::named(&case.name)));
        document.paragraph(comparison::how(&case.comparison));
        comparison::figures(&case.comparison, false, document);
        comparison::spread("Latency of all unmarked samples together", &case.comparison, document);
        document.table(each_request(case));
        comparison::marked(&case.comparison, document);
    }
    document.caveats(run.caveats());
}

/// What it came to, in a sentence.
fn result(run: &ScenarioRun) -> String {
    let of = |held: Held| run.bounds.iter().filter(|bound| bound.held == held).count();
    let begin = match (run.bounds.len(), of(Held::Yes), of(Held::No)) {
        (0, ..) => String::new(),
        (all, held, missed) => {
            format!("Bounds: {held} of {all} held, {missed} missed, {} not decided. ", all - held - missed)
        }
    };
    let rows: Vec<&Row> = run.cases.iter().flat_map(cpu_rows).collect();
    let count = |verdict: Verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let first = run.cases.first().and_then(|case| case.comparison.targets.first());
    let broken_off = if run.is_broken_off { " It was broken off." } else { "" };
    match first {
        None => format!("{begin}Nothing was measured.{broken_off}"),
        // The rows are those of the other servers divided by the first one's.
        Some(first) => format!(
            "{begin}CPU per request of {} is less than the other's in {} of {}, more in {}, and no difference is shown in \
             {}.{broken_off}",
            comparison::target(first),
            count(Verdict::More),
            figures::counted(rows.len() as u64, "comparison"),
            count(Verdict::Less),
            rows.len() - count(Verdict::More) - count(Verdict::Less),
        ),
    }
}

fn cpu_rows(case: &CaseRun) -> impl Iterator<Item = &Row> {
    case.comparison.rows.iter().filter(|row| row.metric == Metric::CpuPerRequest)
}

/// One row for each case and other server.
fn cases(run: &ScenarioRun) -> Table {
    let first = run.cases.iter().find_map(|case| case.comparison.targets.first());
    let first = first.map_or_else(|| "First".to_owned(), |name| comparison::target(name));
    let caption = format!("CPU per request, and that of {first} divided by it; p99 likewise; with intervals");
    let columns = [
        ("Case", false),
        ("Server", false),
        ("CPU", true),
        (first.as_str(), true),
        ("Ratio", true),
        ("p99", true),
    ];
    let columns =
        columns.into_iter().map(|(name, is_figure)| Column { name: name.to_owned(), is_figure }).collect();
    let mut table = Table { caption, columns, rows: Vec::new() };
    for case in &run.cases {
        for row in cpu_rows(case) {
            let other = case.comparison.targets.get(row.test).map(|name| comparison::target(name));
            let is_p99 = |other: &&Row| other.test == row.test && other.metric == Metric::P99;
            let p99 = case.comparison.rows.iter().find(is_p99);
            table.row([
                Cell::from(case.name.as_str()),
                Cell::from(other.unwrap_or_default()),
                Cell::from(shown(row.metric, row.test_value)),
                Cell::from(shown(row.metric, row.control_value)),
                ratio(row),
                p99.map_or_else(|| Cell::from(figures::NOTHING), ratio),
            ]);
        }
    }
    table
}

fn is_special(case: &CaseRun) -> bool {
    case.comparison.settings.idle_connections > 0 || case.comparison.settings.is_overload
}

/// Memory of idle connections, and what is answered beyond capacity, of the cases that measure them.
fn special(run: &ScenarioRun) -> Table {
    let first = run.cases.iter().find_map(|case| case.comparison.targets.first());
    let first = first.map_or_else(|| "First".to_owned(), |name| comparison::target(name));
    let columns = [
        ("Case", false),
        ("Figure", false),
        ("Server", false),
        ("Value", true),
        (&first, true),
        ("Ratio", true),
    ];
    let mut table = Table {
        caption: format!(
            "What the cases are about: the figure of {first} divided by the other's, with intervals"
        ),
        columns: columns.map(|(name, is_figure)| Column { name: name.to_owned(), is_figure }).into(),
        rows: Vec::new(),
    };
    for case in &run.cases {
        let settings = &case.comparison.settings;
        let is_shown = |row: &&Row| match row.metric {
            Metric::MemoryAtRest | Metric::MemoryPerIdleConnection => settings.idle_connections > 0,
            Metric::Rate | Metric::P99 => settings.is_overload,
            Metric::Recovery => true,
            _ => false,
        };
        for row in case.comparison.rows.iter().filter(is_shown) {
            let name = match row.metric {
                Metric::Rate => "Good responses per second",
                metric => comparison::metric_name(metric),
            };
            let server = case.comparison.targets.get(row.test).map(|name| comparison::target(name));
            table.row([
                Cell::from(case.name.as_str()),
                Cell::from(name),
                Cell::from(server.unwrap_or_default()),
                Cell::from(shown(row.metric, row.test_value)),
                Cell::from(shown(row.metric, row.control_value)),
                ratio(row),
            ]);
        }
    }
    table
}

/// CPU per request of the first server divided by that of each other one, all cases in one picture.
fn picture(run: &ScenarioRun) -> Option<Plot> {
    let first = run.cases.iter().find_map(|case| case.comparison.targets.first())?;
    let of_case = |case: &CaseRun| -> Vec<(String, Interval, Verdict)> {
        let others = cpu_rows(case).filter_map(|row| Some((row, case.comparison.targets.get(row.test)?)));
        let drawn = others.filter(|(row, _)| row.ratio.low > 0.0 && row.ratio.high.is_finite());
        let named = |name: &str| secrets::hide(&figures::visible(name));
        drawn
            .map(|(row, other)| {
                (format!("{}, {}", named(&case.name), named(other)), turned(row), opposite(row.verdict))
            })
            .collect()
    };
    let rows: Vec<_> = run.cases.iter().flat_map(of_case).collect();
    let title = format!("CPU per request of {} divided by that of the other", comparison::target(first));
    (!rows.is_empty()).then_some(Plot::Ratios(Ratios { title, rows }))
}

/// The first server's figure divided by the other's: a row has it the other way round.
fn turned(row: &Row) -> Interval {
    let Interval { low, middle, high, .. } = row.ratio;
    Interval { low: 1.0 / high, middle: 1.0 / middle, high: 1.0 / low, ..row.ratio }
}

fn opposite(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Less => Verdict::More,
        Verdict::More => Verdict::Less,
        Verdict::NotShown | Verdict::Unknown => verdict,
    }
}

/// The first server's figure divided by the other's.
fn ratio(row: &Row) -> Cell {
    let turned = turned(row);
    let tone = match row.verdict {
        Verdict::NotShown | Verdict::Unknown => Tone::Plain,
        // The other server's figure is more: good where less is better.
        verdict if (verdict == Verdict::More) == (row.metric != Metric::Rate) => Tone::Good,
        _ => Tone::Bad,
    };
    match turned.middle.is_finite() {
        true => Cell::toned(short(&turned), tone),
        false => Cell::from(figures::NOTHING),
    }
}

/// `0.86 (0.80 to 0.92)`: what the numbers are stands above the table.
fn short(ratio: &Interval) -> String {
    let number = |value: f64| if value < 0.1 { format!("{value:.3}") } else { format!("{value:.2}") };
    if !(ratio.low > 0.0 && ratio.high.is_finite()) {
        return format!("{}, too few rounds", number(ratio.middle));
    }
    format!("{} ({} to {})", number(ratio.middle), number(ratio.low), number(ratio.high))
}

fn shown(metric: Metric, value: f64) -> String {
    if value.is_finite() { comparison::metric_value(metric, value) } else { figures::NOTHING.to_owned() }
}

/// The latencies of each request, where several are asked: one that is slow hides among the others.
fn each_request(case: &CaseRun) -> Table {
    let columns = ["p50", "p99", "max"];
    let mut table =
        Table::of_figures("Latency of each request, unmarked samples together", "Request", &columns);
    if case.requests.len() < 2 {
        return table;
    }
    for (place, request) in case.requests.iter().enumerate() {
        for (target, server) in case.comparison.targets.iter().enumerate() {
            let mut all = Latencies::new();
            let is_own = |sample: &&Sample| sample.target == target && sample.marks.is_empty();
            let tallies = case.comparison.samples.iter().filter(is_own);
            tallies
                .filter_map(|sample| sample.run.by_request.get(place))
                .for_each(|one| all.merge(&one.latency));
            let name = format!("{}, {}", figures::named(&secrets::hide(request)), comparison::target(server));
            let figures = [all.at(0.5), all.at(0.99), all.max()].map(|took| match all.is_empty() {
                true => figures::NOTHING.to_owned(),
                false => figures::duration(took),
            });
            table.row(std::iter::once(name).chain(figures).map(Cell::from));
        }
    }
    table
}

fn bounds(run: &ScenarioRun) -> Table {
    let mut table = Table {
        caption: "Bounds".to_owned(),
        columns: ["What is wanted", "Held"]
            .map(|name| Column { name: name.to_owned(), is_figure: false })
            .into(),
        rows: Vec::new(),
    };
    for bound in &run.bounds {
        let (word, tone) = match bound.held {
            Held::Yes => ("yes", Tone::Good),
            Held::No => ("missed", Tone::Bad),
            Held::NotDecided => ("not decided", Tone::Plain),
        };
        table.row([Cell::from(wanted(bound, run)), Cell::toned(word, tone)]);
    }
    table
}

/// What a bound asks for and what was found.
fn wanted(bound: &BoundResult, run: &ScenarioRun) -> String {
    let case = run.cases.iter().find(|case| case.name == bound.bound.case);
    let first = case.and_then(|case| case.comparison.targets.first());
    let found = match &bound.ratio {
        Some(ratio) if ratio.middle.is_finite() => short(ratio),
        _ => "unknown".to_owned(),
    };
    let limit = match (bound.bound.at_most, bound.bound.at_least) {
        (Some(most), _) => format!("at most {most:.2}"),
        (None, least) => format!("at least {:.2}", least.unwrap_or_default()),
    };
    format!(
        "case {}: {} of {} divided by that of {} is {found}, and has to be {limit}",
        bound.bound.case,
        comparison::metric_name(bound.bound.figure.0),
        first.map(|name| comparison::target(name)).unwrap_or_default(),
        comparison::target(&bound.bound.against)
    )
}
