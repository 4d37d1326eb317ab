//! What was found on one screen: the result in a line, the most important rows, what to know first.
//!
//! Owns which of the findings are that important; all of them are in the long form.

use onehop_load::caveat::CaveatCode;

use super::{Page, Style, cut, hang, wrap};
use crate::document::{Block, CAVEATS, Cell, Document, FAILED, Table, asked, headline, of_handshakes};
use crate::{Load, Report, caveats, figures};

/// Rows of the table, runs or steps; of more the first.
const ROWS_MAX: usize = 4;

/// Lines of it all: what a small terminal shows beside the command and the next prompt. As many caveats as fit are shown.
const LINES_MAX: usize = 15;

/// Lines of the result, where it is no single one: a sentence for each server that is compared.
const RESULT_LINES_MAX: usize = 4;

/// A load in at most 15 lines, each within the width.
pub(super) fn of_loads(report: &Report, loads: &[Load], page: &mut Page) {
    line(page, &headline(loads), Some(Style::Bold));
    if let Some(load) = loads.first() {
        line(page, &format!("{}.", asked(&load.plan)), None);
    }
    let runs = loads.iter().flat_map(|load| &load.runs);
    if let Some(handshakes) = of_handshakes(runs.map(|run| &run.handshakes)) {
        line(page, &handshakes, None);
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
    let known: Vec<String> = known.iter().map(|one| crate::secrets::hide(&figures::sentence(one))).collect();
    finish(page, rows.saturating_sub(ROWS_MAX), &known);
}

/// Anything else in as many lines: the result, as much of its first table as fits, and what to know first.
pub(super) fn of_document(document: &Document, page: &mut Page) {
    let is_result = |block: &&Block| matches!(block, Block::Lead(_) | Block::Warning(_));
    let results = document.blocks.iter().take_while(is_result).filter_map(|block| match block {
        Block::Lead(text) => Some((text, Style::Bold)),
        Block::Warning(text) => Some((text, Style::Yellow)),
        _ => None,
    });
    let width = page.width;
    let lines =
        results.flat_map(|(text, style)| wrap(text, width).into_iter().map(move |line| (line, style)));
    for (text, style) in lines.take(RESULT_LINES_MAX) {
        line(page, &text, Some(style));
    }
    let of_part = |part: &str| {
        let items = document.blocks.windows(2).find_map(|pair| match pair {
            [Block::Heading(name), Block::Items(items)] if name == part => Some(items.clone()),
            _ => None,
        });
        items.unwrap_or_default()
    };
    let known = [of_part(FAILED), of_part(CAVEATS)].concat();
    let table = document.blocks.iter().find_map(|block| match block {
        Block::Table(table) => Some(table),
        _ => None,
    });
    let of_first = known.first().map_or(0, |caveat| caveat_lines(caveat, page.width).len() + 1);
    let rows_missing = table.map_or(0, |table| first_rows(table, of_first, page));
    finish(page, rows_missing, &known);
}

/// As many of its rows as leave room for so many lines and the hint, and how many are missing.
fn first_rows(table: &Table, lines_behind: usize, page: &mut Page) -> usize {
    let room = LINES_MAX.saturating_sub(page.out.lines().count() + lines_behind + 1);
    let drawn = |rows: usize| {
        let table = Table {
            caption: String::new(),
            columns: table.columns.clone(),
            rows: table.rows.iter().take(rows).cloned().collect(),
        };
        let mut drawn = Page { out: String::new(), ..*page };
        drawn.table(&table);
        drawn.out
    };
    let fits = |rows: &usize| drawn(*rows).lines().count() <= room;
    let rows = (1..=table.rows.len()).rev().find(fits).unwrap_or_default();
    if rows > 0 {
        page.out.push_str(&drawn(rows));
    }
    table.rows.len() - rows
}

/// As many caveats as fit, each whole, and how to see the rest.
fn finish(page: &mut Page, rows_missing: usize, known: &[String]) {
    // An empty line before them, and the hint behind.
    let mut room = LINES_MAX.saturating_sub(page.out.lines().count() + 2);
    let mut shown = 0;
    for caveat in known {
        let lines = caveat_lines(caveat, page.width);
        let Some(left) = room.checked_sub(lines.len()) else { break };
        room = left;
        if shown == 0 {
            page.line("");
        }
        shown += 1;
        page.lines(&lines, Some(Style::Yellow));
    }
    let mut more = Vec::new();
    if rows_missing > 0 {
        more.push(figures::counted(rows_missing as u64, "row"));
    }
    if known.len() > shown {
        more.push(figures::counted((known.len() - shown) as u64, "caveat"));
    }
    let more = if more.is_empty() { String::new() } else { format!("{} more; ", figures::listed(&more)) };
    line(page, &format!("{more}--verbose shows all that was found, --html FILE draws it."), Some(Style::Dim));
}

fn caveat_lines(caveat: &str, width: usize) -> Vec<String> {
    hang("! ", &wrap(&figures::visible(caveat), width.saturating_sub(2)))
}

fn line(page: &mut Page, text: &str, style: Option<Style>) {
    let text = cut(&figures::visible(text), page.width);
    let text = page.paint(&text, style);
    page.line(&text);
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
