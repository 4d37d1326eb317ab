//! Events as JSON, one object per line; the fields are documented in docs/commands.md.

use std::path::Path;
use std::time::Duration;

use onehop_server::Event;
use serde_json::{Value, json};

/// One event.
pub(crate) fn line(event: &Event) -> String {
    let value = match event {
        Event::Reading { root, files, of_files, bytes } => json!({
            "event": "reading", "root": text(root), "files": files, "of_files": of_files, "bytes": bytes,
        }),
        Event::Stored { root, files, bytes, on_disk, packed, took } => json!({
            "event": "stored", "root": text(root), "files": files, "bytes": bytes, "on_disk": on_disk,
            "packed": packed, "took_ms": milliseconds(*took),
        }),
        Event::Unpacked { folder, files, took } => json!({
            "event": "unpacked", "folder": text(folder), "files": files, "took_ms": milliseconds(*took),
        }),
        Event::Compressed { root, compressed_bytes, took } => json!({
            "event": "compressed", "root": text(root), "compressed_bytes": compressed_bytes,
            "took_ms": milliseconds(*took),
        }),
        Event::Listening { url, address } => json!({"event": "listening", "address": address, "url": url}),
        Event::AdminListening { address } => json!({
            "event": "admin_listening", "address": address, "metrics": format!("http://{address}/metrics"),
        }),
        Event::Ready { took } => json!({"event": "ready", "took_ms": milliseconds(*took)}),
        Event::TreePublished { root, changed, files } => {
            json!({"event": "tree_published", "root": text(root), "changed": changed, "files": files})
        }
        Event::Reloaded { sites } => json!({"event": "reloaded", "sites": sites}),
        Event::ReloadFailed { reason } => json!({"event": "reload_failed", "reason": reason}),
        Event::Stopping { in_flight } => json!({"event": "stopping", "in_flight": in_flight}),
        Event::Stopped { cut_off } => json!({"event": "stopped", "cut_off": cut_off}),
        Event::AppReady { app, runtime, workers, took } => json!({
            "event": "app_ready", "app": app, "runtime": runtime, "workers": workers,
            "took_ms": milliseconds(*took),
        }),
        Event::AppSpeaksHttp { app, runtime, is_asked } => json!({
            "event": "app_speaks_http", "app": app, "runtime": runtime, "is_asked": is_asked,
        }),
        Event::WorkerEnded { app, pid, reason, restart_in, failed } => json!({
            "event": "worker_ended", "app": app, "pid": pid, "reason": reason, "failed": failed,
            "restart_in_ms": restart_in.map(milliseconds),
        }),
        Event::AppFailing { app, reason, retry_in } => json!({
            "event": "app_failing", "app": app, "reason": reason, "retry_in_ms": milliseconds(*retry_in),
        }),
        Event::AppRolled { app, workers, took } => json!({
            "event": "app_rolled", "app": app, "workers": workers, "took_ms": milliseconds(*took),
        }),
        Event::WorkerStuck { app, pid, since, stack } => json!({
            "event": "worker_stuck", "app": app, "pid": pid, "since_ms": milliseconds(*since), "stack": stack,
        }),
        Event::AppOutput { app, pid, is_error, line } => {
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
        Event::UpstreamDown { upstream, sites, reason } => json!({
            "event": "upstream_down", "upstream": upstream, "sites": sites, "reason": reason,
        }),
        Event::UpstreamUp { upstream, sites, after } => json!({
            "event": "upstream_up", "upstream": upstream, "sites": sites, "after_ms": milliseconds(*after),
        }),
        Event::Warning { message } => json!({"event": "warning", "message": message}),
    };
    value.to_string()
}

/// The first line of a process.
pub(crate) fn starting(version: &str, reads: &str) -> String {
    json!({"event": "starting", "version": version, "pid": std::process::id(), "what": reads}).to_string()
}

/// The last line of a process that did not do what was asked.
pub(crate) fn failed(reason: &str) -> String {
    json!({"event": "failed", "reason": reason.trim_end()}).to_string()
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
