//! A plan and what a run of it saw, as JSON.
//!
//! Owns the shape of plans, tallies and latencies. Latencies are microseconds, times of a run seconds.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use onehop_load::caveat::Caveat;
use onehop_load::http2::Http2Seen;
use onehop_load::latency::Latencies;
use onehop_load::outcome::{Bottleneck, End, Run, Tally};
use onehop_load::plan::{Expect, Pace, Plan, Request, Reuse, Spacing};
use onehop_load::tls::Handshakes;
use serde_json::{Map, Value, json};

use crate::{caveats, figures, secrets};

/// Steps of a histogram that are written; of more, neighbours become one under the longer latency of both.
const LATENCY_STEPS_MAX: usize = 2048;

/// Percentiles that are written, with their names.
const PERCENTILES: [(&str, f64); 8] = [
    ("p50_us", 0.5),
    ("p75_us", 0.75),
    ("p90_us", 0.9),
    ("p95_us", 0.95),
    ("p99_us", 0.99),
    ("p99_9_us", 0.999),
    ("p99_99_us", 0.9999),
    ("p99_999_us", 0.99999),
];

/// A plan.
pub(super) fn plan(plan: &Plan) -> Value {
    let (reuse, requests) = match plan.reuse {
        Reuse::Kept => ("kept", None),
        Reuse::New => ("new", Some(1)),
        Reuse::Requests(most) => ("requests", Some(most)),
    };
    json!({
        "requests": plan.requests.iter().map(request).collect::<Vec<_>>(),
        "protocol": plan.protocol().name(),
        "streams": plan.protocol().streams(),
        "pace": pace(&plan.pace),
        "until": {
            "time_s": plan.until.time.map(seconds),
            "requests": plan.until.requests,
            "narrow_share": plan.until.narrow,
        },
        "warm_up_s": seconds(plan.warm_up),
        "threads": plan.threads,
        "cores": plan.cores,
        "reuse": reuse,
        "requests_per_connection": requests,
        "connect_patience_s": seconds(plan.timeouts.connect),
        "answer_patience_s": seconds(plan.timeouts.response),
        "seed": plan.seed,
    })
}

/// When requests begin.
pub(super) fn pace(pace: &Pace) -> Value {
    match pace {
        Pace::Closed { connections, think } => {
            json!({ "loop": "closed", "connections": connections, "think_s": seconds(*think) })
        }
        Pace::Open { connections, arrivals } => {
            let phases = arrivals.phases.iter().map(|phase| {
                json!({
                    "from_per_second": phase.from,
                    "to_per_second": phase.to,
                    "length_s": seconds(phase.length),
                })
            });
            json!({
                "loop": "open",
                "connections": connections,
                "spacing": match arrivals.spacing {
                    Spacing::Constant => "constant",
                    Spacing::Poisson => "poisson",
                },
                "phases": phases.collect::<Vec<_>>(),
            })
        }
    }
}

/// A run, with the caveats that follow from it where its plan is known.
pub(super) fn run(run: &Run, plan: Option<&Plan>) -> Value {
    let slices = run.slices.iter().map(|slice| {
        json!({
            "at_s": seconds(slice.at),
            "good": slice.good,
            "bad": slice.bad,
            "p50_us": figures::as_micros(slice.p50),
            "p99_us": figures::as_micros(slice.p99),
            "max_us": figures::as_micros(slice.max),
        })
    });
    let stalls = run
        .stalls
        .iter()
        .map(|stall| json!({ "at_s": seconds(stall.at), "length_s": seconds(stall.length) }));
    let begun = run.begun.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (end, end_reason) = match &run.end {
        End::Time => ("time", None),
        End::Requests => ("requests", None),
        End::Narrow => ("narrow", None),
        End::Interrupted => ("interrupted", None),
        End::Hopeless(why) => ("hopeless", Some(secrets::hide(why))),
        End::OneStatus { .. } => ("one_status", run.end.given_up()),
    };
    json!({
        "begun_unix_s": begun.as_secs_f64(),
        "elapsed_s": seconds(run.elapsed),
        "completed": run.completed,
        "rate_per_second": run.rate(),
        "rate_is_a_lower_bound": caveats::is_own_limit(run),
        "total": tally(&run.total),
        "by_request": run.by_request.iter().map(tally).collect::<Vec<_>>(),
        "slice_length_s": seconds(run.slice_length),
        "slices": slices.collect::<Vec<_>>(),
        "stalls": stalls.collect::<Vec<_>>(),
        "omitted": run.omitted.as_ref().map(|omitted| {
            json!({ "requests": omitted.requests, "corrected_latency": latency(&omitted.corrected) })
        }),
        "protocol": if run.http2.is_some() { "HTTP/2" } else { "HTTP/1.1" },
        "http2": run.http2.as_ref().map(http2),
        "tls": tls(&run.handshakes),
        "generator": generator(run),
        "end": end,
        "end_reason": end_reason,
        "caveats": plan.map(|plan| self::caveats(&caveats::of_run(plan, run))).unwrap_or_default(),
    })
}

/// Code and text of each; `of` says what it is said of, where there are several.
pub(super) fn caveats(caveats: &[Caveat]) -> Vec<Value> {
    caveats
        .iter()
        .map(|caveat| {
            let of = (!caveat.of.is_empty()).then(|| secrets::hide(&caveat.of));
            json!({ "code": caveat.code.name(), "of": of, "text": secrets::hide(&caveat.text) })
        })
        .collect()
}

/// Percentiles and the histogram.
pub(super) fn latency(latency: &Latencies) -> Value {
    if latency.is_empty() {
        return json!({ "count": 0 });
    }
    let mut fields = Map::new();
    let mut add = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    add("count", json!(latency.count()));
    add("min_us", json!(figures::as_micros(latency.min())));
    add("mean_us", json!(figures::as_micros(latency.mean())));
    add("deviation_us", json!(figures::as_micros(latency.deviation())));
    for (name, share) in PERCENTILES {
        add(name, json!(figures::as_micros(latency.at(share))));
    }
    add("max_us", json!(figures::as_micros(latency.max())));
    let steps: Vec<(Duration, u64)> = latency.steps().collect();
    let together = steps.len().div_ceil(LATENCY_STEPS_MAX).max(1);
    let steps = steps.chunks(together).map(|steps| {
        let longest = steps.last().map(|(took, _)| *took).unwrap_or_default();
        json!([figures::as_micros(longest), steps.iter().map(|(_, count)| count).sum::<u64>()])
    });
    let steps = steps.collect();
    add("steps_us_count", Value::Array(steps));
    Value::Object(fields)
}

/// A duration of minutes or less.
pub(super) fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

fn request(request: &Request) -> Value {
    let fields = request.fields.iter().map(
        |(name, value)| json!({ "name": name, "value": secrets::hide(secrets::field_value(name, value)) }),
    );
    json!({
        "name": secrets::hide(&request.name),
        "method": request.method,
        "url": secrets::hide(&request.url.to_string()),
        "address": request.address.to_string(),
        "fields": fields.collect::<Vec<_>>(),
        "body_bytes": request.body.as_ref().map(Vec::len),
        "weight": request.weight,
        "expected": match &request.expect {
            Expect::Success => json!("2xx"),
            Expect::Exactly(statuses) => json!(statuses),
            Expect::Any => json!("any"),
        },
    })
}

fn tally(tally: &Tally) -> Value {
    let statuses: Map<String, Value> =
        tally.statuses.iter().map(|(status, count)| (status.to_string(), json!(count))).collect();
    let failures = &tally.failures;
    json!({
        "requests": tally.requests(),
        "good": tally.good,
        "unexpected": tally.unexpected,
        "statuses": statuses,
        "faults": {
            "connect": failures.connect,
            "tls": failures.tls,
            "closed": failures.closed,
            "truncated": failures.truncated,
            "reset": failures.reset,
            "goaway": failures.goaway,
            "malformed": failures.malformed,
            "timed_out": failures.timed_out,
            "unsent": failures.unsent,
        },
        "bytes_read": tally.bytes_read,
        "bytes_written": tally.bytes_written,
        "latency": latency(&tally.latency),
        "latency_from_sending": latency(&tally.service),
        "latency_of_unexpected": latency(&tally.unexpected_latency),
    })
}

/// Streams; nothing over HTTP/1.1.
fn http2(seen: &Http2Seen) -> Value {
    let by_code = |codes: &BTreeMap<u32, u64>| -> Map<String, Value> {
        codes.iter().map(|(code, count)| (onehop_load::http2::code_name(*code), json!(count))).collect()
    };
    json!({
        "streams": seen.streams,
        "streams_opened": seen.streams_opened,
        "streams_allowed": seen.streams_allowed,
        "resets": by_code(&seen.resets),
        "goaways": by_code(&seen.goaways),
        "resent": seen.resent,
    })
}

/// Handshakes; nothing over http.
fn tls(handshakes: &Handshakes) -> Value {
    if handshakes.sum() == 0 {
        return Value::Null;
    }
    let negotiated = handshakes.parameters.iter().map(|(parameters, count)| {
        json!({
            "version": parameters.version,
            "cipher_suite": parameters.cipher_suite,
            "group": parameters.group,
            "handshakes": count,
        })
    });
    json!({
        "full": handshakes.full,
        "resumed": handshakes.resumed,
        "negotiated": negotiated.collect::<Vec<_>>(),
    })
}

fn generator(run: &Run) -> Value {
    let generator = &run.generator;
    let bottleneck = generator.bottleneck.map(|bottleneck| match bottleneck {
        Bottleneck::Thread { share } => json!({ "kind": "thread", "share": share }),
        Bottleneck::Core { share } => json!({ "kind": "core", "share": share }),
        Bottleneck::Late { p99, is_in_median } => {
            json!({ "kind": "late", "p99_us": figures::as_micros(p99), "is_in_median": is_in_median })
        }
        Bottleneck::System { refused } => json!({ "kind": "system", "refused": refused }),
        Bottleneck::Connections { arrivals } => json!({ "kind": "connections", "arrivals": arrivals }),
    });
    let cpu = seconds(generator.cpu);
    json!({
        "cpu_s": cpu,
        "requests_per_cpu_second": (cpu > 0.0).then(|| run.total.requests() as f64 / cpu),
        "busiest_thread_share": generator.busiest,
        "waiting_share": generator.waiting,
        "lateness": latency(&generator.lateness),
        "connections_opened": generator.connections_opened,
        "bottleneck": bottleneck,
    })
}
