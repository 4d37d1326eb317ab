//! The body of an export: an `ExportTraceServiceRequest` as JSON. Ids are hexadecimal and 64-bit numbers are texts, as OTLP has it
//! (<https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>).

use std::time::UNIX_EPOCH;

use onehop_message::uri::percent_decode;
use serde_json::{Value as Json, json};

use crate::span::{Span, Value};

/// `SPAN_KIND_SERVER`
const SERVER: u8 = 2;
/// `STATUS_CODE_ERROR`
const ERROR: u8 = 2;

/// The body of an export of these spans. `resource` is what all of them have in common, percent-encoded.
pub fn body(resource: &[(String, String)], spans: &[Span]) -> Vec<u8> {
    let common = resource.iter().map(|(key, value)| attribute(key, &Value::Text(decoded(value))));
    let scope = json!({ "name": "onehop", "version": env!("CARGO_PKG_VERSION") });
    let spans: Vec<Json> = spans.iter().map(span).collect();
    let body = json!({ "resourceSpans": [{
        "resource": { "attributes": common.collect::<Vec<_>>() },
        "scopeSpans": [{ "scope": scope, "spans": spans }],
    }] });
    body.to_string().into_bytes()
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
