//! The bodies of exports: `ExportTraceServiceRequest` and `ExportMetricsServiceRequest` as JSON. Ids are hexadecimal, as OTLP has it
//! (<https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>). Times are texts. Counts of metrics are numbers: receivers take
//! both (<https://protobuf.dev/programming-guides/json/>), but `opentelemetry-proto` 0.31 takes only numbers there, and no histogram
//! without `flags` and `filteredAttributes`.

use std::time::{SystemTime, UNIX_EPOCH};

use onehop_message::uri::percent_decode;
use onehop_metrics::families::{self, Durations, Families, Family, Kind, Sample};
use onehop_metrics::site::Exemplar;
use serde_json::{Value as Json, json};

use crate::span::{Span, Value};

/// `SPAN_KIND_SERVER`
const SERVER: u8 = 2;
/// `STATUS_CODE_ERROR`
const ERROR: u8 = 2;
/// `AGGREGATION_TEMPORALITY_CUMULATIVE`
const CUMULATIVE: u8 = 2;

/// The body of an export of these spans. `resource` is what all of them have in common, percent-encoded.
pub fn of_spans(resource: &[(String, String)], spans: &[Span]) -> Vec<u8> {
    let spans: Vec<Json> = spans.iter().map(span).collect();
    let scope_spans = json!([{ "scope": scope(), "spans": spans }]);
    let body = json!({ "resourceSpans": [{ "resource": common(resource), "scopeSpans": scope_spans }] });
    body.to_string().into_bytes()
}

/// The same of all metrics; counters count from `start` on.
pub fn of_metrics(
    resource: &[(String, String)],
    families: &Families,
    start: SystemTime,
    now: SystemTime,
) -> Vec<u8> {
    let times = (nanos(start), nanos(now));
    let shown = families.iter().filter(|family| !family.samples.is_empty());
    let metrics: Vec<Json> = shown.map(|family| metric(family, &times)).collect();
    let scope_metrics = json!([{ "scope": scope(), "metrics": metrics }]);
    let body =
        json!({ "resourceMetrics": [{ "resource": common(resource), "scopeMetrics": scope_metrics }] });
    body.to_string().into_bytes()
}

fn common(resource: &[(String, String)]) -> Json {
    let attributes = resource.iter().map(|(key, value)| attribute(key, &Value::Text(decoded(value))));
    json!({ "attributes": attributes.collect::<Vec<_>>() })
}

fn scope() -> Json {
    json!({ "name": "onehop", "version": env!("CARGO_PKG_VERSION") })
}

fn nanos(time: SystemTime) -> String {
    nanos_since_1970(time).to_string()
}

fn nanos_since_1970(time: SystemTime) -> u64 {
    u64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

/// A family, by the name that it has in `/metrics`.
fn metric(family: &Family, times: &(String, String)) -> Json {
    let points: Vec<Json> = family.samples.iter().map(|sample| point(sample, times)).collect();
    let mut metric = json!({ "name": family.name, "description": family.help });
    match family.kind {
        Kind::Counter => {
            metric["sum"] =
                json!({ "aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points });
        }
        Kind::Gauge => metric["gauge"] = json!({ "dataPoints": points }),
        Kind::Histogram => {
            metric["histogram"] = json!({ "aggregationTemporality": CUMULATIVE, "dataPoints": points });
        }
    }
    if family.name.ends_with("_seconds") {
        metric["unit"] = "s".into();
    }
    metric
}

fn point(sample: &Sample, (start, now): &(String, String)) -> Json {
    let labels = sample.labels.iter().map(|(name, text)| attribute(name, &Value::Text(text.clone())));
    let mut point = json!({
        "attributes": labels.collect::<Vec<_>>(), "startTimeUnixNano": start, "timeUnixNano": now,
    });
    match &sample.value {
        families::Value::Count(count) => point["asInt"] = (*count).into(),
        families::Value::Milliseconds(milliseconds) => point["asDouble"] = (milliseconds / 1_000.0).into(),
        families::Value::Durations(durations) => add_durations(durations, &mut point),
    }
    point
}

/// Each bucket has its own durations here, and the last one has no bound.
fn add_durations(durations: &Durations, point: &mut Json) {
    let ends = durations.buckets.iter().map(|(_, count)| *count).chain([durations.count]);
    let begins = [0].into_iter().chain(durations.buckets.iter().map(|(_, count)| *count));
    let counts = ends.zip(begins).map(|(end, begin)| end.saturating_sub(begin));
    let bounds = durations.buckets.iter().map(|(bound, _)| bound.as_secs_f64());
    let exemplars = durations.exemplars.iter().map(|(_, exemplar)| {
        let Exemplar { trace_id, span_id, took, at } = exemplar;
        json!({
            "timeUnixNano": nanos_since_1970(*at), "asDouble": took.as_secs_f64(),
            "traceId": format!("{trace_id:032x}"), "spanId": format!("{span_id:016x}"),
            "filteredAttributes": [],
        })
    });
    point["flags"] = 0.into();
    point["count"] = durations.count.into();
    point["sum"] = (durations.nanos as f64 / 1e9).into();
    point["bucketCounts"] = counts.collect::<Vec<_>>().into();
    point["explicitBounds"] = bounds.collect::<Vec<_>>().into();
    point["exemplars"] = exemplars.collect::<Vec<_>>().into();
}

/// A value of an environment variable, percent-encoded as in W3C Baggage.
pub(crate) fn decoded(value: &str) -> String {
    let decoded = percent_decode(value.as_bytes()).unwrap_or(value.as_bytes().into());
    String::from_utf8_lossy(&decoded).into_owned()
}

fn span(span: &Span) -> Json {
    let start = span.start.duration_since(UNIX_EPOCH).unwrap_or_default();
    let end = start.saturating_add(span.took);
    let mut json = json!({
        "traceId": format!("{:032x}", span.context.trace_id),
        "spanId": format!("{:016x}", span.context.span_id),
        "name": span.name,
        "kind": SERVER,
        "startTimeUnixNano": start.as_nanos().to_string(),
        "endTimeUnixNano": end.as_nanos().to_string(),
        "attributes": span.attributes.iter().map(|(key, value)| attribute(key, value)).collect::<Vec<_>>(),
    });
    if let Some(parent) = span.context.parent {
        json["parentSpanId"] = format!("{parent:016x}").into();
    }
    if span.has_failed {
        json["status"] = json!({ "code": ERROR });
    }
    json
}

fn attribute(key: &str, value: &Value) -> Json {
    let value = match value {
        Value::Text(text) => json!({ "stringValue": text }),
        Value::Number(number) => json!({ "intValue": number.to_string() }),
        Value::Time(time) => json!({ "doubleValue": time }),
    };
    json!({ "key": key, "value": value })
}
