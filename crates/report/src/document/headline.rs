//! What loads come to in one line.
//!
//! Never calls a load good that the long form warns of.

use onehop_load::outcome::{Run, Tally};
use onehop_load::plan::{Pace, Plan};

use crate::{Load, caveats, figures};

/// Below this share of the rate that was asked for a server is behind.
const BEHIND_SHARE: f64 = 0.95;

/// Rate, p50, p99, verdict.
pub(crate) fn headline(loads: &[Load]) -> String {
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
