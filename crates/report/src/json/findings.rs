//! What was found, as JSON: loads, comparisons, searches, collections, side-by-side runs.
//!
//! Owns their shapes; runs within them are `run.rs`.

use onehop_bench::collection::CollectionRun;
use onehop_bench::compare::{Comparison, Mark, Metric, Row, Sample, Settings};
use onehop_bench::saturation::Saturation;
use onehop_bench::scenario::{Held, ScenarioRun};
use onehop_load::caveat::CaveatCode;
use onehop_load::measure::Usage;
use onehop_load::plan::Reuse;
use onehop_statistics::Verdict;
use onehop_try::SideBySide;
use serde_json::{Value, json};

use super::run::{self, seconds};
use crate::caveats::step_name;
use crate::{Findings, Load, figures, secrets};

/// The kind, which is the name of its field too, and what was found.
pub(super) fn of(findings: &Findings) -> (&'static str, Value) {
    match findings {
        Findings::Loads(loads) => ("loads", Value::Array(loads.iter().map(load).collect())),
        Findings::Comparison(found) => ("comparison", comparison(found)),
        Findings::Scenario(found) => ("scenario", scenario(found)),
        Findings::Saturation(found) => ("saturation", saturation(found)),
        Findings::Collection(found) => ("collection", collection(found)),
        Findings::SideBySide(found) => ("trial", side_by_side(found)),
    }
}

fn hidden(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| secrets::hide(text)).collect()
}

fn noted(code: CaveatCode, texts: &[String]) -> Vec<Value> {
    run::caveats(&texts.iter().map(|text| code.says(text)).collect::<Vec<_>>())
}

fn load(load: &Load) -> Value {
    json!({
        "step": step_name(&load.plan),
        "plan": run::plan(&load.plan),
        "runs": load.runs.iter().map(|one| run::run(one, Some(&load.plan))).collect::<Vec<_>>(),
        "disagreements": hidden(&load.disagreements),
    })
}

fn comparison(found: &Comparison) -> Value {
    let targets: Vec<String> = hidden(&found.targets);
    json!({
        "arms": targets,
        "settings": settings(&found.settings),
        "rows": found.rows.iter().map(|one| row(one, &targets)).collect::<Vec<_>>(),
        "samples": found.samples.iter().map(|one| sample(one, &targets)).collect::<Vec<_>>(),
        "caveats": run::caveats(&found.caveats),
    })
}

fn scenario(found: &ScenarioRun) -> Value {
    let cases = found
        .cases
        .iter()
        .map(|case| json!({ "name": case.name, "requests": hidden(&case.requests), "comparison": comparison(&case.comparison) }));
    let bounds = found.bounds.iter().map(|one| {
        let ratio = one.ratio.as_ref();
        json!({
            "case": one.bound.case,
            "against": one.bound.against,
            "metric": metric(one.bound.figure.0),
            "at_most": one.bound.at_most,
            "at_least": one.bound.at_least,
            "ratio": ratio.map(|ratio| ratio.middle),
            "ratio_low": ratio.map(|ratio| ratio.low),
            "ratio_high": ratio.map(|ratio| ratio.high),
            "verdict": match one.held {
                Held::Yes => "holds",
                Held::No => "missed",
                Held::NotDecided => "not_decided",
            },
        })
    });
    json!({
        "name": secrets::hide(&found.name),
        "about": secrets::hide(&found.about),
        "cases": cases.collect::<Vec<_>>(),
        "bounds": bounds.collect::<Vec<_>>(),
        "failure": (!found.failures.is_empty()).then(|| secrets::hide(&found.failures.join("\n"))),
        "is_interrupted": found.is_broken_off,
    })
}

fn settings(settings: &Settings) -> Value {
    json!({
        "rounds": settings.rounds,
        "until_decided": settings.until_decided,
        "warm_up_s": seconds(settings.warm_up),
        "warm_up_pace": settings.warm_up_pace.as_ref().map(run::pace),
        "time_s": seconds(settings.time),
        "pace": run::pace(&settings.pace),
        "reuse": match settings.reuse {
            Reuse::Kept => "kept",
            Reuse::New => "new",
            Reuse::Requests(_) => "requests",
        },
        "connect_patience_s": seconds(settings.timeouts.connect),
        "answer_patience_s": seconds(settings.timeouts.response),
        "threads": settings.threads,
        "server_cores": settings.server_cores,
        "load_cores": settings.load_cores,
        "idle_s": settings.idle.map(seconds),
        "idle_connections": settings.idle_connections,
        "is_overload": settings.is_overload,
        "confidence": settings.confidence,
        "least_difference": settings.least_difference,
        "seed": settings.seed,
    })
}

fn row(row: &Row, targets: &[String]) -> Value {
    json!({
        "metric": metric(row.metric),
        "control": targets.first(),
        "test": targets.get(row.test),
        // Without a pair of samples that nothing spoils there is no figure; the samples have theirs beside their marks.
        "control_value": (row.pairs > 0).then_some(row.control_value),
        "test_value": (row.pairs > 0).then_some(row.test_value),
        "ratio": row.ratio.middle,
        "ratio_low": row.ratio.low,
        "ratio_high": row.ratio.high,
        "confidence": row.ratio.confidence,
        "verdict": match row.verdict {
            Verdict::Less => "less",
            Verdict::More => "more",
            Verdict::NotShown => "no_difference_shown",
            Verdict::Unknown => "unknown",
        },
        "pairs": row.pairs,
    })
}

/// The name of a metric says the unit of its values.
fn metric(metric: Metric) -> &'static str {
    match metric {
        Metric::CpuPerRequest => "cpu_us_per_request",
        Metric::Rate => "rate_per_second",
        Metric::P50 => "p50_us",
        Metric::P99 => "p99_us",
        Metric::MemoryMedian => "memory_median_bytes",
        Metric::MemoryP99 => "memory_p99_bytes",
        Metric::MemoryAtRest => "memory_at_rest_bytes",
        Metric::MemoryPerIdleConnection => "memory_per_idle_connection_bytes",
        Metric::Switches => "context_switches_per_request",
        Metric::IoBytes => "io_bytes_per_request",
        Metric::ColdStart => "cold_start_us",
        Metric::AfterIdle => "after_idle_us",
        Metric::Recovery => "recovery_us",
    }
}

fn sample(sample: &Sample, targets: &[String]) -> Value {
    json!({
        "arm": targets.get(sample.target),
        "round": sample.round,
        "run": run::run(&sample.run, None),
        "usage": sample.usage.as_ref().map(|used| usage(used, sample.run.total.good)),
        "cold_start_us": sample.cold_start.map(figures::as_micros),
        "idle_memory": sample.idle_memory.map(|memory| {
            json!({
                "connections": memory.connections,
                "at_rest_bytes": memory.at_rest_bytes,
                "held_bytes": memory.held_bytes,
            })
        }),
        "after_idle_us": sample.after_idle.map(figures::as_micros),
        "recovery_us": sample.recovery.map(figures::as_micros),
        "marks": sample.marks.iter().map(mark).collect::<Vec<_>>(),
    })
}

fn usage(usage: &Usage, good: u64) -> Value {
    json!({
        "cpu_s": seconds(usage.cpu),
        "wall_s": seconds(usage.wall),
        "cpu_us_per_request": (good > 0).then(|| figures::as_micros(usage.cpu) / good as f64),
        "memory_median_bytes": usage.memory_median,
        "memory_p99_bytes": usage.memory_p99,
        "switches_voluntary": usage.switches_voluntary,
        "switches_involuntary": usage.switches_involuntary,
        "io_bytes": usage.io_bytes,
        "processes": usage.processes,
        "threads": usage.threads,
    })
}

fn mark(mark: &Mark) -> Value {
    match mark {
        Mark::StartUp { lasted } => json!({ "kind": "start_up", "lasted_s": seconds(*lasted) }),
        Mark::Pause { at, length } => {
            json!({ "kind": "pause", "at_s": seconds(*at), "length_s": seconds(*length) })
        }
        Mark::Void(why) => json!({ "kind": "void", "reason": secrets::hide(why) }),
        Mark::LoadWasTheBottleneck => json!({ "kind": "load_was_the_bottleneck" }),
        Mark::LoadWasLate => json!({ "kind": "load_was_late" }),
        Mark::Restarted => json!({ "kind": "restarted" }),
    }
}

fn saturation(found: &Saturation) -> Value {
    let points = found.points.iter().map(|point| {
        json!({
            "offered_per_second": point.offered,
            "is_within": point.is_within(),
            "verdict": point.verdict.code(),
            "run": run::run(&point.run, None),
        })
    });
    json!({
        "limit": {
            "percentile_share": found.limit.share,
            "latency_us": figures::as_micros(found.limit.latency),
            "failures_share": found.limit.failures,
        },
        "best_per_second": found.best.ok(),
        "load_was_the_limit": found.load_was_the_limit,
        "points": points.collect::<Vec<_>>(),
        "caveats": noted(CaveatCode::Search, &found.caveats),
    })
}

fn collection(found: &CollectionRun) -> Value {
    let requests = found.requests.iter().map(|request| {
        let complaints = request
            .complaints
            .iter()
            .map(|(complaint, count)| json!({ "complaint": secrets::hide(complaint), "count": count }));
        json!({
            "name": secrets::hide(&request.name),
            "line": secrets::hide(&request.line),
            "passed": request.passed,
            "failed": request.failed,
            "latency": run::latency(&request.latency),
            "complaints": complaints.collect::<Vec<_>>(),
        })
    });
    json!({
        "name": secrets::hide(&found.name),
        "iterations": found.iterations,
        "elapsed_s": seconds(found.elapsed),
        "requests": requests.collect::<Vec<_>>(),
        "latency": run::latency(&found.latency),
        "is_interrupted": found.is_interrupted,
        "caveats": noted(CaveatCode::Note, &found.caveats),
    })
}

fn side_by_side(found: &SideBySide) -> Value {
    let compared = found.compared.iter().map(
        |one| json!({ "request": secrets::hide(&one.request), "differences": hidden(&one.differences) }),
    );
    let routes = found.routes.iter().map(
        |route| json!({ "path": secrets::hide(&route.path), "origin": secrets::hide(&route.origin.to_string()) }),
    );
    let not_asked = found.skipped.iter().map(
        |one| json!({ "path": secrets::hide(&one.path), "reason": secrets::hide(&one.reason.to_string()) }),
    );
    let same = found.compared.iter().filter(|one| one.differences.is_empty()).count();
    json!({
        "path": found.found.path.display().to_string(),
        "description": secrets::hide(&found.found.description),
        "today": hidden(&found.today),
        "onehop": hidden(&found.onehop),
        "onehopfile": secrets::hide_in_configuration(&found.onehopfile),
        "routes": routes.collect::<Vec<_>>(),
        "not_asked": not_asked.collect::<Vec<_>>(),
        "compared_requests": found.compared.len(),
        "same_answers": same,
        "compared": compared.collect::<Vec<_>>(),
        "measured_paths": hidden(&found.measured),
        "comparison": found.comparison.as_ref().map(comparison),
        "unmeasured": found.unmeasured.as_deref().map(secrets::hide),
        "at_same_load": found.at_same_load.as_ref().map(comparison),
        "own_figures": hidden(&found.own_figures),
        "caveats": noted(CaveatCode::Note, &found.caveats),
    })
}
