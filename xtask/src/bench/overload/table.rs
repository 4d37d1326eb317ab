//! The figures as lines on a terminal.
//!
//! PURE: results in, text out. A figure that there is none of is a dash, never a zero.

use std::fmt::Write as _;

use super::figures::{Figures, Of, Recovery, Results};
use super::steps::{Application, Step};
use super::targets;

/// A column: its head, and what stands in it.
type Column = (&'static str, fn(&Figures) -> Option<f64>, usize);

/// Heads, figures and digits behind the point.
const COLUMNS: [Column; 10] = [
    ("offered/s", |figures| Some(figures.offered), 0),
    ("good/s", |figures| Some(figures.goodput), 0),
    ("p50 ms", |figures| figures.p50_ms, 1),
    ("p99 ms", |figures| figures.p99_ms, 1),
    ("refused %", |figures| Some(figures.refused * 100.0), 1),
    ("in ms", |figures| figures.refusal_p50_ms, 2),
    ("lost %", |figures| Some(figures.lost * 100.0), 1),
    ("high %", |figures| figures.high_served.map(|share| share * 100.0), 1),
    ("high p99", |figures| figures.high_p99_ms, 1),
    ("file p99", |figures| figures.file_p99_ms, 2),
];

/// The medians of one application, target by target.
pub(super) fn of(results: &Results, application: Application, steps: &[Step]) -> String {
    let mut text = format!("\n{}, medians\n  {:<18} {:<8}", application.name(), "target", "load");
    for (head, _, _) in COLUMNS {
        let _ = write!(text, " {head:>9}");
    }
    text.push('\n');
    for target in targets::ALL.iter().filter(|target| results.has(application, target)) {
        for step in steps {
            let _ = write!(text, "  {target:<18} {:<8}", step.name);
            for (_, figure, digits) in COLUMNS {
                let figure = results.middle(application, target, step.name, figure);
                let _ = write!(text, " {:>9}", number(figure, digits));
            }
            text.push('\n');
        }
        if let Some(alone) = results.middle_idle(application, target) {
            let _ = writeln!(text, "  {target:<18} the file alone: p99 {alone:.2} ms");
        }
        for recovery in results.recoveries_of(application, target) {
            let _ = writeln!(text, "{}", self::recovery(recovery));
        }
    }
    if let Some((capacity, most)) = results.doubtful_capacity(application) {
        let _ = writeln!(
            text,
            "  DOUBTFUL: C is {capacity:.0}, and {most:.0} a second were answered; did something else run?"
        );
    }
    for row in results.rows.iter().filter(|row| row.of.application == application) {
        if let Some(limit) = &row.figures.load_limit {
            let _ =
                writeln!(text, "  the load was a limit at {} of {}: {limit}", row.step.name, row.of.target);
        }
    }
    text
}

/// One load, as soon as it was measured.
pub(super) fn row(of: Of, step: &Step, figures: &Figures) -> String {
    let Figures { offered, goodput, refused, lost, .. } = figures;
    let p99 = number(figures.p99_ms, 1);
    format!(
        "  round {}: {} at {}: {goodput:.0} of {offered:.0} a second good, p99 {p99} ms, refused {:.1} %, lost {:.1} %",
        of.round + 1,
        of.target,
        step.name,
        refused * 100.0,
        lost * 100.0
    )
}

/// The way back.
pub(super) fn recovery(recovery: &Recovery) -> String {
    let Recovery { of, took, slow_ms, .. } = recovery;
    match took {
        Some(took) => {
            let seconds = took.as_secs_f64();
            format!(
                "  {:<18} normal {seconds:.1} s after 10 C (p99 to {slow_ms:.0} ms, nobody refused)",
                of.target
            )
        }
        None => format!("  {:<18} not normal again after 10 C", of.target),
    }
}

fn number(figure: Option<f64>, digits: usize) -> String {
    figure.map_or("-".to_owned(), |figure| format!("{figure:.digits$}"))
}
