//! What is said of an application today and with onehop.
//!
//! Owns the story: what was found, how it runs, whether the answers are the same, what each request costs, how that was
//! measured and what was not. Never claims a saving where answers differ or an interval does not carry it.

use onehop_bench::compare::{Comparison, Metric, Row};
use onehop_load::caveat::CaveatCode;
use onehop_statistics::Verdict;
use onehop_try::{Compared, SideBySide};

use super::about::noted;
use super::comparison::{self, given, metric_value, target};
use super::{Block, Document};
use crate::{figures, secrets};

/// Requests with differences that are told; of more the first.
const DIFFERENT_MAX: usize = 20;

/// Paths that were not asked and are listed.
const SKIPPED_MAX: usize = 10;

/// Differences of one request that are told.
const DIFFERENCES_MAX: usize = 10;

pub(super) fn write(side_by_side: &SideBySide, document: &mut Document) {
    let same = side_by_side.compared.iter().filter(|one| one.differences.is_empty()).count();
    let all = side_by_side.compared.len();
    document.title =
        format!("{} today and with onehop", figures::quoted(&side_by_side.found.path.display().to_string()));
    result(side_by_side, same, document);
    document.paragraph(format!(
        "Found: {}.",
        secrets::hide(&figures::visible(&side_by_side.found.description)).trim_end_matches('.')
    ));
    document.heading("How it runs");
    let joined = |lines: &[String]| given(lines).join("; ");
    document.blocks.push(Block::Facts(vec![
        ("Today".to_owned(), joined(&side_by_side.today)),
        ("With onehop".to_owned(), joined(&side_by_side.onehop)),
    ]));
    document.heading("Are the answers the same?");
    sameness(&side_by_side.compared, same, document);
    routes(side_by_side, document);
    document.heading(costs_heading(&side_by_side.measured));
    match &side_by_side.comparison {
        Some(figures) => {
            if same < all || all == 0 {
                document.warning(
                    "Not all answers are known to be the same: the figures compare two servers that do different \
                     work, and claim no saving.",
                );
            }
            story(figures, document);
            comparison::figures(figures, false, document);
            let (caption, spread) = match &side_by_side.at_same_load {
                Some(latencies) => ("Latency at the same load, all unmarked samples together", latencies),
                None => ("Latency at full load, all unmarked samples together", figures),
            };
            comparison::spread(caption, spread, document);
            comparison::marked(figures, document);
        }
        None => document.warning(unmeasured(side_by_side)),
    }
    if !side_by_side.own_figures.is_empty() {
        document.heading("What the servers' own figures say");
        document.blocks.push(Block::Items(given(&side_by_side.own_figures)));
    }
    document.heading("The Onehopfile that does it");
    let shown = secrets::hide_in_configuration(&side_by_side.onehopfile);
    if shown.trim_end() != side_by_side.onehopfile.trim_end() {
        document.paragraph("Secrets in it are hidden here: fill them in again before using it.");
    }
    document.blocks.push(Block::Code { name: "Onehopfile".to_owned(), text: shown });
    if let Some(figures) = &side_by_side.comparison {
        document.heading("How it was measured");
        document.paragraph(comparison::how(figures));
    }
    let mut reported = noted(CaveatCode::Note, &side_by_side.caveats);
    reported.extend(side_by_side.comparison.iter().flat_map(|figures| figures.caveats.clone()));
    reported.extend(noted(CaveatCode::Note, &not_measured(side_by_side)));
    document.caveats(reported);
}

/// What it costs, if the answers are the same.
fn result(side_by_side: &SideBySide, same: usize, document: &mut Document) {
    let all = side_by_side.compared.len();
    let answers =
        format!("{same} of {} got the same answer from both", figures::counted(all as u64, "request"));
    let cpu = side_by_side.comparison.as_ref().and_then(|figures| {
        let (control, test) = (figures.targets.first()?, figures.targets.get(1)?);
        let row = figures.rows.iter().find(|row| row.test == 1 && row.metric == Metric::CpuPerRequest)?;
        Some(sentence(row, &target(control), &target(test)))
    });
    match cpu {
        Some(cpu) if same == all && all > 0 => document.lead(format!("{cpu} {answers}.")),
        Some(_) => document.warning(format!("{answers}: no saving is claimed.")),
        None => document.warning(format!("{} {answers}.", unmeasured(side_by_side))),
    }
}

/// That there are no figures, and why.
fn unmeasured(side_by_side: &SideBySide) -> String {
    match &side_by_side.unmeasured {
        Some(reason) => format!("Nothing was measured: {}.", secrets::hide(&figures::visible(reason))),
        None => "Nothing was measured.".to_owned(),
    }
}

/// A reader who reads no further must not take a file of the front for an answer of the application.
fn costs_heading(measured: &[String]) -> String {
    let shown = |path: &String| figures::visible(&secrets::hide(path));
    match measured {
        [] => "What a request costs".to_owned(),
        [path] => format!("What a request costs: GET {}", shown(path)),
        [first, second] => format!("What a request costs: GET {} and {}", shown(first), shown(second)),
        [first, others @ ..] => {
            format!("What a request costs: GET {} and {} others", shown(first), others.len())
        }
    }
}

fn sameness(compared: &[Compared], same: usize, document: &mut Document) {
    let all = compared.len();
    if all == 0 {
        document.warning("No request was asked of both: nothing shows that they answer the same.");
        return;
    }
    let tell =
        format!("{same} of {} got the same answer from both.", figures::counted(all as u64, "request"));
    if same == all {
        document.lead(tell);
        return;
    }
    document.warning(tell);
    let different = compared.iter().filter(|one| !one.differences.is_empty());
    let mut items: Vec<String> = different
        .take(DIFFERENT_MAX)
        .map(|one| {
            let mut differences = given(&one.differences);
            let more = differences.len().saturating_sub(DIFFERENCES_MAX);
            differences.truncate(DIFFERENCES_MAX);
            if more > 0 {
                differences.push(format!("and {more} more"));
            }
            format!("{}: {}", figures::quoted(&secrets::hide(&one.request)), differences.join("; "))
        })
        .collect();
    if all - same > DIFFERENT_MAX {
        items.push(format!("And {} more requests.", all - same - DIFFERENT_MAX));
    }
    document.blocks.push(Block::Items(items));
}

/// What was asked, and what is known and was not.
fn routes(side_by_side: &SideBySide, document: &mut Document) {
    let path = |path: &str| figures::quoted(&secrets::hide(path));
    let said = |words: String| figures::visible(&secrets::hide(&words));
    let asked: Vec<String> = side_by_side
        .routes
        .iter()
        .map(|route| format!("{} ({})", path(&route.path), said(route.origin.to_string())))
        .collect();
    let mut facts = vec![("Asked".to_owned(), asked.join(", "))];
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for skipped in side_by_side.skipped.iter().take(SKIPPED_MAX) {
        let reason = said(skipped.reason.to_string());
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, paths)) => paths.push(path(&skipped.path)),
            None => reasons.push((reason, vec![path(&skipped.path)])),
        }
    }
    let mut not_asked: Vec<String> =
        reasons.into_iter().map(|(reason, paths)| format!("{} ({reason})", paths.join(", "))).collect();
    let more = side_by_side.skipped.len().saturating_sub(SKIPPED_MAX);
    if more > 0 {
        not_asked.push(format!("and {more} more"));
    }
    if !not_asked.is_empty() {
        facts.push(("Not asked".to_owned(), not_asked.join("; ")));
    }
    document.blocks.push(Block::Facts(facts));
}

/// Each figure in a sentence, as far as its interval carries it.
fn story(figures: &Comparison, document: &mut Document) {
    let Some(control) = figures.targets.first() else { return };
    let sentences = |test: usize| -> Vec<String> {
        let metrics =
            [Metric::CpuPerRequest, Metric::P50, Metric::P99, Metric::MemoryMedian, Metric::ColdStart];
        let rows = metrics
            .into_iter()
            .filter_map(|metric| figures.rows.iter().find(|row| row.test == test && row.metric == metric));
        let name = figures.targets.get(test).map(|name| target(name)).unwrap_or_default();
        rows.map(|row| sentence(row, &target(control), &name)).collect()
    };
    let items: Vec<String> = (1..figures.targets.len()).flat_map(sentences).collect();
    if !items.is_empty() {
        document.blocks.push(Block::Items(items));
    }
}

fn sentence(row: &Row, control: &str, test: &str) -> String {
    let (verb, what) = match row.metric {
        Metric::CpuPerRequest => ("used", "CPU per request"),
        Metric::P50 => ("took", "median latency"),
        Metric::P99 => ("took", "p99 latency"),
        Metric::MemoryMedian => ("used", "memory"),
        Metric::ColdStart => ("took", "time from start to first answer"),
        metric => ("took", comparison::metric_name(metric)),
    };
    let [before, after] = [row.control_value, row.test_value].map(|value| metric_value(row.metric, value));
    let [middle, interval] = figures::ratio_and_interval(&row.ratio);
    let pairs = figures::counted(row.pairs as u64, "pair");
    match row.verdict {
        Verdict::Less | Verdict::More => format!(
            "{test} {verb} {middle}{} the {what} of {control} ({interval}): {after} instead of {before}, over {pairs}.",
            if row.verdict == Verdict::Less { " of" } else { " times" }
        ),
        Verdict::NotShown => format!(
            "No difference shown in {what}: {test} {after} and {control} {before}, ratio {middle} ({interval}), over \
             {pairs}."
        ),
        Verdict::Unknown => format!(
            "{} of {test} beside {control}: unknown, there are too few figures or they are void.",
            figures::capital(what)
        ),
    }
}

/// What no side-by-side run measures, so that nobody reads it into the figures.
fn not_measured(side_by_side: &SideBySide) -> Vec<String> {
    let mut reported = vec![
        "Not measured: TLS, HTTP/2, clients far away or slow, uploads, and what happens over hours."
            .to_owned(),
        "The requests were those listed by the trial, on this machine; other requests cost other amounts."
            .to_owned(),
    ];
    if side_by_side.comparison.is_some() {
        reported.push(
            "Load and servers ran on one machine: over a network the same difference in latency is a smaller part of \
             the whole."
                .to_owned(),
        );
    }
    reported
}
