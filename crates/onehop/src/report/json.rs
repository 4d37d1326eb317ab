//! Events as JSON, one object per line; the fields are documented in docs/commands.md.

use std::path::Path;
use std::time::{Duration, SystemTime};

use onehop_server::Event;
use onehop_server::control::{AppEvent, CertificateEvent};
use onehop_server::request::incidents::{Incident, Origin};
use serde_json::{Value, json};

use crate::units::rfc3339_milliseconds;

/// One event, at this time.
pub(crate) fn line(event: &Event, at: SystemTime) -> String {
    let mut value = value(event);
    if let Some(object) = value.as_object_mut() {
        object.insert("time".to_owned(), rfc3339_milliseconds(at).into());
    }
    let text = value.to_string();
    if text.contains(acts_on_terminals) { escaped(&text) } else { text }
}

fn value(event: &Event) -> Value {
    match event {
        Event::Reading { root, files, of_files, bytes } => json!({
            "event": "reading", "root": text(root), "files": files, "of_files": of_files, "bytes": bytes,
        }),
        Event::Stored { root, files, bytes, on_disk, packed, took } => json!({
            "event": "stored", "root": text(root), "files": files, "bytes": bytes, "on_disk": on_disk,
            "packed": packed, "took_ms": milliseconds(*took),
        }),
        Event::Compressed { root, compressed_bytes, took } => json!({
            "event": "compressed", "root": text(root), "compressed_bytes": compressed_bytes,
            "took_ms": milliseconds(*took),
        }),
        Event::LoadBegan => json!({"event": "load_began"}),
        Event::LoadEnded => json!({"event": "load_ended"}),
        Event::Listening { url, address } => json!({"event": "listening", "address": address, "url": url}),
        Event::AdminListening { address, instead_of } => json!({
            "event": "admin_listening", "address": address, "metrics": format!("http://{address}/metrics"),
            "instead_of": instead_of,
        }),
        Event::Ready { took } => json!({"event": "ready", "took_ms": milliseconds(*took)}),
        Event::TreePublished { root, changed, files } => {
            json!({"event": "tree_published", "root": text(root), "changed": changed, "files": files})
        }
        Event::Reloaded { sites } => json!({"event": "reloaded", "sites": sites}),
        Event::ReloadFailed { reason } => json!({"event": "reload_failed", "reason": reason}),
        Event::Stopping { in_flight } => json!({"event": "stopping", "in_flight": in_flight}),
        Event::Stopped { cut_off } => json!({"event": "stopped", "cut_off": cut_off}),
        Event::App(event) => app_value(event),
        Event::UpstreamDown { upstream, sites, reason } => json!({
            "event": "upstream_down", "upstream": upstream, "sites": sites, "reason": reason,
        }),
        Event::UpstreamUp { upstream, sites, after } => json!({
            "event": "upstream_up", "upstream": upstream, "sites": sites, "after_ms": milliseconds(*after),
        }),
        Event::ResponsesFailed(incident) => {
            let Incident { origin, status, cause, reason, requests } = incident;
            let (kind, name) = match origin {
                Origin::App(name) => ("app", name),
                Origin::Upstream(label) => ("upstream", label),
            };
            json!({
                "event": "responses_failed", kind: name, "status": status, "cause": cause, "reason": reason,
                "requests": requests,
            })
        }
        Event::Certificate(CertificateEvent::Obtained { name, issuer, not_after, is_renewal }) => json!({
            "event": "certificate_obtained", "name": name, "issuer": issuer, "not_after": rfc3339_milliseconds(*not_after),
            "is_renewal": is_renewal,
        }),
        Event::Certificate(CertificateEvent::Revoked { name, issuer }) => {
            json!({ "event": "certificate_revoked", "name": name, "issuer": issuer })
        }
        Event::Certificate(CertificateEvent::Failed { name, issuer, reason, next_try_in }) => json!({
            "event": "certificate_failed", "name": name, "issuer": issuer, "reason": reason,
            "next_try_ms": milliseconds(*next_try_in),
        }),
        Event::Warning { message } => json!({"event": "warning", "message": message}),
    }
}

fn app_value(event: &AppEvent) -> Value {
    match event {
        AppEvent::Unpacked { folder, files, took } => json!({
            "event": "unpacked", "folder": text(folder), "files": files, "took_ms": milliseconds(*took),
        }),
        AppEvent::Ready { app, runtime, workers, took, failures } => json!({
            "event": "app_ready", "app": app, "runtime": runtime, "workers": workers,
            "took_ms": milliseconds(*took), "failures": failures,
        }),
        AppEvent::SpeaksHttp { app, runtime, is_asked } => json!({
            "event": "app_speaks_http", "app": app, "runtime": runtime, "is_asked": is_asked,
        }),
        AppEvent::WorkerEnded { app, pid, reason, restart_in, failed } => json!({
            "event": "worker_ended", "app": app, "pid": pid, "reason": reason, "failed": failed,
            "restart_in_ms": restart_in.map(milliseconds),
        }),
        AppEvent::CrashLoop { app, reason, failures } => json!({
            "event": "crash_loop", "app": app, "reason": reason, "failures": failures,
        }),
        AppEvent::Failing { app, reason, retry_in, failures } => json!({
            "event": "app_failing", "app": app, "reason": reason, "retry_in_ms": milliseconds(*retry_in),
            "failures": failures,
        }),
        AppEvent::Rolled { app, workers, took } => json!({
            "event": "app_rolled", "app": app, "workers": workers, "took_ms": milliseconds(*took),
        }),
        AppEvent::WorkerStuck { app, pid, since, stack } => json!({
            "event": "worker_stuck", "app": app, "pid": pid, "since_ms": milliseconds(*since), "stack": stack,
        }),
        AppEvent::Output { app, pid, is_error, line } => {
            let stream = if *is_error { "stderr" } else { "stdout" };
            match object(line) {
                Some(fields) => {
                    json!({"event": "app_output", "app": app, "pid": pid, "stream": stream, "fields": fields})
                }
                None => {
                    json!({"event": "app_output", "app": app, "pid": pid, "stream": stream, "line": line})
                }
            }
        }
        AppEvent::Warning { message } => json!({"event": "warning", "message": message}),
    }
}

/// DEL and C1, which JSON allows as they are.
fn acts_on_terminals(character: char) -> bool {
    matches!(character, '\u{7f}'..='\u{9f}')
}

/// The same JSON: such characters stand in its strings only.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            character if acts_on_terminals(character) => {
                text.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            character => text.push(character),
        }
    }
    text
}

/// The first line of a process.
pub(crate) fn starting(version: &str, reads: &str) -> String {
    let time = rfc3339_milliseconds(SystemTime::now());
    json!({"event": "starting", "time": time, "version": version, "pid": std::process::id(), "what": reads})
        .to_string()
}

/// The last line of a process that did not do what was asked.
pub(crate) fn failed(reason: &str) -> String {
    let time = rfc3339_milliseconds(SystemTime::now());
    json!({"event": "failed", "time": time, "reason": reason.trim_end()}).to_string()
}

/// What an application logs as a JSON object stays one, so that nobody has to read it twice.
fn object(line: &str) -> Option<Value> {
    // Most lines are seen here to be none.
    if !line.trim_start().starts_with('{') {
        return None;
    }
    serde_json::from_str::<Value>(line).ok().filter(Value::is_object)
}

/// A path that is no text is shown as well as it can be.
fn text(path: &Path) -> Value {
    Value::String(path.display().to_string())
}

/// Microseconds are kept: a start may take less than a millisecond.
fn milliseconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_terminals_act_on_is_escaped_in_the_fields_of_an_application() {
        let line_of = "{\"a\":\"x\u{9b}31m\u{7f}\u{e4}\"}".to_owned();
        let event =
            Event::App(AppEvent::Output { app: "api".into(), pid: 1, is_error: false, line: line_of });
        assert!(
            line(&event, SystemTime::UNIX_EPOCH).contains("x\\u009b31m\\u007f\u{e4}"),
            "{}",
            line(&event, SystemTime::UNIX_EPOCH)
        );
    }
}
