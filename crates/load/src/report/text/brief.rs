//! What a load comes to on one screen: the result in a line, a row for each run or step, what to know first.
//!
//! Owns which of the findings are that important; all of them are in the long form. Never calls a load good that the long
//! form warns of.

use super::{Page, Style, cut};
use crate::caveat::CaveatCode;
use crate::outcome::{Run, Tally};
use crate::plan::{Pace, Plan};
use crate::report::document::{Cell, Table, asked};
use crate::report::{Load, Report, caveats, figures};

/// Rows of the table, runs or steps; of more the first.
const ROWS_MAX: usize = 4;

/// Lines of it all: what a small terminal shows beside the command and the next prompt. As many caveats as fit are shown.
const LINES_MAX: usize = 15;

/// Below this share of the rate that was asked for a server is behind.
const BEHIND_SHARE: f64 = 0.95;

/// At most 15 lines, each within the width.
pub(super) fn write(report: &Report, loads: &[Load], page: &mut Page) {
    let line = |page: &mut Page, text: &str, style: Option<Style>| {
        let text = cut(&figures::visible(text), page.width);
        let text = page.paint(&text, style);
        page.line(&text);
    };
    line(page, &headline(loads), Some(Style::Bold));
    if let Some(load) = loads.first() {
        line(page, &format!("{}.", asked(&load.plan)), None);
    }
    let rows: usize = loads.iter().map(|load| load.runs.len()).sum();
    page.table(&table(loads));
    let mut known: Vec<String> = Vec::new();
    for load in loads {
        let of_load = caveats::of_load(load).into_iter().map(|caveat| match loads.len() {
            1 => caveat,
            _ => caveat.of(&format!("With {}", caveats::step_name(&load.plan))),
        });
        known.extend(of_load.filter(|caveat| caveat.code != CaveatCode::OneRun).map(|one| one.to_string()));
    }
    known.extend(report.caveats.iter().chain(&caveats::steal(report.steal)).map(ToString::to_string));
    // An empty line before them, and the hint behind.
    let room = LINES_MAX.saturating_sub(page.out.lines().count() + 2);
    let shown = known.len().min(room);
    if shown > 0 {
        page.line("");
    }
    for caveat in known.iter().take(shown) {
        let caveat = crate::report::secrets::hide(&figures::sentence(caveat));
        line(page, &format!("! {caveat}"), Some(Style::Yellow));
    }
    let mut more = Vec::new();
    if rows > ROWS_MAX {
        more.push(figures::counted((rows - ROWS_MAX) as u64, "row"));
    }
    if known.len() > shown {
        more.push(figures::counted((known.len() - shown) as u64, "caveat"));
    }
    let more = if more.is_empty() { String::new() } else { format!("{} more; ", figures::listed(&more)) };
    line(page, &format!("{more}--verbose shows all that was found, --html FILE draws it."), Some(Style::Dim));
}

/// Rate, p50, p99, verdict.
fn headline(loads: &[Load]) -> String {
    let (Some(first), Some(last)) = (loads.first(), loads.last()) else {
        return "Nothing was measured.".to_owned();
    };
    let runs = || loads.iter().flat_map(|load| &load.runs);
    if !runs().any(Run::has_good) {
        let all: Vec<Run> = runs().cloned().collect();
        let why = runs().find_map(|run| run.end.given_up());
        return format!("Not one good answer: {}.", why.unwrap_or_else(|| caveats::failures(&all)));
    }
    if loads.len() == 1 {
        return format!("{}: {}", result(&first.runs), verdict(first));
    }
    let verdict = loads.iter().map(verdict).find(|verdict| verdict != AGREE);
    format!(
        "{} ({}) to {} ({}): {}",
        result(&first.runs),
        caveats::step_name(&first.plan),
        result(&last.runs),
        caveats::step_name(&last.plan),
        verdict.unwrap_or_else(|| AGREE.to_owned())
    )
}

/// `48,210/s, p50 1.25 ms, p99 2.87 ms`, of all runs together.
fn result(runs: &[Run]) -> String {
    let mut total = Tally::default();
    runs.iter().for_each(|run| total.merge(&run.total));
    let completed: u64 = runs.iter().map(|run| run.completed).sum();
    let seconds: f64 = runs.iter().map(|run| run.elapsed.as_secs_f64()).sum();
    let at_least = if runs.iter().any(caveats::is_own_limit) { "\u{2265} " } else { "" };
    let rate = figures::rate(completed as f64 / seconds.max(f64::MIN_POSITIVE));
    let percentile = |share: f64| match total.latency.is_empty() {
        true => figures::NOTHING.to_owned(),
        false => figures::duration(total.latency.at(share)),
    };
    format!("{at_least}{rate}, p50 {}, p99 {}", percentile(0.5), percentile(0.99))
}

const AGREE: &str = "the runs agree";

/// The gravest of what may be said.
fn verdict(load: &Load) -> String {
    let runs = &load.runs;
    let failed: u64 = runs.iter().map(|run| run.total.requests() - run.total.good).sum();
    if runs.iter().any(caveats::is_own_limit) {
        return "the load was the limit, not the server".to_owned();
    }
    let seconds: f64 = runs.iter().map(|run| run.elapsed.as_secs_f64()).sum();
    let completed: u64 = runs.iter().map(|run| run.completed).sum();
    if let Some(rate) = rate_asked_for(&load.plan)
        && (completed as f64) < BEHIND_SHARE * rate * seconds
    {
        return format!("the server is behind, {} were asked for", figures::rate(rate));
    }
    if failed > 0 {
        return format!("{} failed", figures::counted(failed, "request"));
    }
    if let Some(omitted) = runs.iter().find_map(|run| run.omitted.as_ref()) {
        return format!("a stall is left out, with it p99 {}", figures::duration(omitted.corrected.at(0.99)));
    }
    match (runs.len(), load.disagreements.is_empty()) {
        (0 | 1, _) => "one run only".to_owned(),
        (_, false) => "the runs disagree".to_owned(),
        (_, true) => AGREE.to_owned(),
    }
}

/// The one rate of an open loop.
fn rate_asked_for(plan: &Plan) -> Option<f64> {
    let Pace::Open { arrivals, .. } = &plan.pace else { return None };
    let [phase] = arrivals.phases.as_slice() else { return None };
    ((phase.from - phase.to).abs() < f64::EPSILON).then_some(phase.from)
}

fn table(loads: &[Load]) -> Table {
    let mut table = Table::of_figures("", "", &["Rate", "Failed", "p50", "p99", "max"]);
    let rows = loads.iter().flat_map(|load| load.runs.iter().enumerate().map(move |run| (load, run)));
    for (load, (place, run)) in rows.take(ROWS_MAX) {
        let name = match (loads.len(), place) {
            (1, _) => format!("Run {}", place + 1),
            (_, 0) => caveats::step_name(&load.plan),
            (_, _) => format!("again, run {}", place + 1),
        };
        let latency = &run.total.latency;
        let times = [latency.at(0.5), latency.at(0.99), latency.max()].map(|took| match latency.is_empty() {
            true => figures::NOTHING.to_owned(),
            false => figures::duration(took),
        });
        let at_least = if caveats::is_own_limit(run) { "\u{2265} " } else { "" };
        let counts = [
            name,
            format!("{at_least}{}", figures::rate(run.rate())),
            figures::count(run.total.requests() - run.total.good),
        ];
        table.row(counts.into_iter().chain(times).map(Cell::from));
    }
    table
}
