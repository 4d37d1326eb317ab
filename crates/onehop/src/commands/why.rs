//! `onehop why`: the slow and failed requests that a running onehop has kept, and why one of them was so.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::control::{ask, ask_about};
use crate::arguments::Why;
use crate::control_client::{list, number, text};
use crate::failure::Failure;
use crate::table::Column::{Left, Right};
use crate::table::table;
use crate::units::{bytes, counted, duration, latency};

/// Characters of the longest bar.
const BAR_WIDTH: f64 = 30.0;

/// Characters of a path in the list; the page of one request has all of it.
const PATH_WIDTH: usize = 40;

/// The parts of a request's time in their order, as `GET /slow` and a person name them.
const PARTS: [(&str, &str); 9] = [
    ("upload_ms", "request body"),
    ("queue_ms", "queue"),
    ("password_ms", "password check"),
    ("connect_ms", "connect"),
    ("retry_ms", "failed attempts"),
    ("lag_ms", "event loop blocked"),
    ("first_byte_ms", "first byte"),
    ("body_ms", "response body"),
    ("write_ms", "slow client"),
];

pub(crate) fn why(arguments: &Why) -> Result<(), Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (body, shown) = match &arguments.id {
        None => {
            let body = ask(&arguments.target, "GET", "/slow")?.body;
            let shown = all(list(&body, "requests"), now);
            (body, shown)
        }
        Some(id) => {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
            if id.is_empty() || !id.chars().all(is_plain) {
                return Err(Failure::wrong(format!(
                    "{id:?} is no id of a request\n  `onehop why` lists the requests that are kept"
                )));
            }
            let body = ask_about(&arguments.target, &format!("/why/{id}"))?.body;
            let shown = one(&body, now);
            (body, shown)
        }
    };
    super::standard_output::print(&if arguments.json { format!("{body}\n") } else { shown });
    Ok(())
}

/// A line for each request, the newest first.
fn all(requests: &[Value], now: u64) -> String {
    if requests.is_empty() {
        return "no request was slow (10 ms or more) or failed in the last minutes\n".to_owned();
    }
    let rows = requests.iter().map(|request| {
        vec![
            text(request, "id").to_owned(),
            ago(request, now),
            number(request, "status").to_string(),
            format!("{} {}", text(request, "method"), shortened(text(request, "path"))),
            text(request, "why").to_owned(),
        ]
    });
    let columns = [Left("ID"), Right("AGO"), Right("STATUS"), Left("REQUEST"), Left("WHY")];
    let rows: Vec<_> = rows.collect();
    let table = table(&columns, &rows);
    format!("{}\n`onehop why ID` explains one of them\n", table.trim_start_matches('\n'))
}

/// The page of one request.
fn one(request: &Value, now: u64) -> String {
    let mut page = format!("{}\n\n", text(request, "why"));
    let mut line = |name: &str, value: String| page.push_str(&format!("{name:<9}  {value}\n"));
    line(
        "request",
        format!(
            "{} {} of {}, {}",
            text(request, "method"),
            text(request, "path"),
            text(request, "site"),
            text(request, "protocol"),
        ),
    );
    line(
        "response",
        format!(
            "{} by {}, {}, {} ago",
            number(request, "status"),
            text(request, "handler"),
            bytes(number(request, "sent_bytes")),
            ago(request, now),
        ),
    );
    page.push_str(&parts(request));
    page.push('\n');
    page.push_str(&context(request));
    page.push_str(&format!("{:<9}  {}\n", "next", text(request, "next")));
    page
}

/// A bar for each part that took any time.
fn parts(request: &Value) -> String {
    let none = Value::Null;
    let parts = request.get("parts").unwrap_or(&none);
    let time = |field: &str| parts.get(field).and_then(Value::as_f64).unwrap_or_default();
    let total = request.get("total_ms").and_then(Value::as_f64).unwrap_or_default().max(f64::MIN_POSITIVE);
    // Parts of no length are left out.
    let rows = PARTS.iter().filter(|(field, _)| time(field) > total / 1_000.0).map(|(field, name)| {
        let length = (time(field) / total * BAR_WIDTH).round().clamp(1.0, BAR_WIDTH);
        vec![(*name).to_owned(), latency(time(field)), "#".repeat(length as usize)]
    });
    table(&[Left("PART"), Right("TIME"), Left("")], &rows.collect::<Vec<_>>())
}

/// Who answered and what was decided on the way, as far as there is anything to say.
fn context(request: &Value) -> String {
    let mut context = String::new();
    let mut line = |name: &str, value: String| context.push_str(&format!("{name:<9}  {value}\n"));
    if let Some(worker) = request.get("worker").filter(|worker| !worker.is_null()) {
        let process = worker.get("pid").and_then(Value::as_u64);
        let process = process.map_or_else(String::new, |pid| format!(", process {pid}"));
        let lag = worker.get("reported_lag_ms").and_then(Value::as_f64);
        let lag = lag.map_or_else(
            || "; it does not report how late its event loop is".to_owned(),
            |lag| format!("; its event loop was late by {} at its last report", latency(lag)),
        );
        line("worker", format!("{} of app {}{process}{lag}", number(worker, "index"), text(request, "app")));
    }
    for (field, name) in [("upstream", "upstream"), ("cause", "cause"), ("detail", "detail")] {
        if !text(request, field).is_empty() {
            line(name, text(request, field).to_owned());
        }
    }
    if let Some(limit) = request.get("limit").filter(|limit| !limit.is_null()) {
        let decision = match text(limit, "decision") {
            "admitted" => "admitted after it had waited",
            "waited" => "it waited, and ended before it was admitted",
            decision => decision,
        };
        line("limit", format!("{}: {decision}", text(limit, "limit")));
    }
    if number(request, "retries") > 0 {
        line("retries", counted(number(request, "retries"), "more attempt"));
    }
    line("id", text(request, "id").to_owned());
    for (field, name) in
        [("trace_id", "trace"), ("uuid", "uuid"), ("error_id", "error id"), ("client_request_id", "client's")]
    {
        if !text(request, field).is_empty() {
            line(name, text(request, field).to_owned());
        }
    }
    context
}

fn ago(request: &Value, now: u64) -> String {
    match now.saturating_sub(number(request, "at")) {
        0 => "0 s".to_owned(),
        seconds => duration(Duration::from_secs(seconds)).replace(".0 s", " s"),
    }
}

fn shortened(path: &str) -> String {
    if path.chars().count() <= PATH_WIDTH {
        return path.to_owned();
    }
    let kept: String = path.chars().take(PATH_WIDTH - 1).collect();
    format!("{kept}\u{2026}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Value {
        serde_json::json!({
            "id": "5f3a00000000002a", "at": 988, "kind": "slow", "site": "http://localhost:8080", "method": "GET",
            "path": "/orders", "protocol": "HTTP/1.1", "status": 200, "handler": "app", "total_ms": 820.4,
            "parts": {
                "upload_ms": 0.0, "queue_ms": 300.2, "connect_ms": 0.0, "retry_ms": 0.0, "lag_ms": 51.5,
                "first_byte_ms": 455.3, "body_ms": 0.0, "write_ms": 13.4,
            },
            "why": "820 ms: 300 ms in the queue of app api, 52 ms while the event loop of worker 1 was blocked, \
                    455 ms until the first byte of app api",
            "next": "look at what the application waits for", "sent_bytes": 12_345, "aborted": false,
            "cold_start": false, "cause": null, "detail": null, "app": "api",
            "worker": {"index": 1, "pid": 4711, "reported_lag_ms": 1.25}, "upstream": null, "retries": 1,
            "limit": {"limit": "app api", "decision": "admitted"},
            "trace_id": "0af7651916cd43dd8448eb211c80319c", "error_id": null, "uuid": null,
            "client_request_id": null,
        })
    }

    #[test]
    fn a_page_explains_one_request() {
        insta::assert_snapshot!(one(&request(), 1_000));
    }

    #[test]
    fn the_list_has_a_line_for_each_request() {
        let failed = serde_json::json!({
            "id": "5f3a00000000002b", "at": 1_000, "kind": "failed", "method": "POST", "status": 503,
            "path": format!("/{}", "a".repeat(60)), "why": "503 limit queue full by limit server after 0.05 ms",
        });
        insta::assert_snapshot!(all(&[failed, request()], 1_000));
        insta::assert_snapshot!(all(&[], 1_000), @"no request was slow (10 ms or more) or failed in the last minutes");
    }
}
