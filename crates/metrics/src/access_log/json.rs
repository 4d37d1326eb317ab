//! Lines as JSON, shaped like Caddy's.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use onehop_http1::RequestHead;
use onehop_message::error::ErrorSource;

use super::Entry;

/// Fields whose values are never logged.
const SECRET: [&str; 4] = ["cookie", "set-cookie", "authorization", "proxy-authorization"];

/// The line of a request.
pub(super) fn line(entry: &Entry<'_>) -> String {
    let mut out = String::with_capacity(512);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (ip, port) = match entry.origin.peer {
        Some(peer) => (peer.ip().to_canonical().to_string(), peer.port().to_string()),
        None => ("@".to_owned(), String::new()),
    };
    // As in Caddy: what a client asks for is information, what fails here is an error.
    let is_ours = entry.error.is_some_and(|error| error.source() != ErrorSource::Client);
    let level = if is_ours { "error" } else { "info" };
    let message = if entry.head.is_some() { "handled request" } else { "refused request" };
    let _ = write!(
        out,
        "{{\"level\":\"{level}\",\"ts\":{}.{:06},\"logger\":\"http.log.access\",\"msg\":\"{message}\",\
         \"request\":{{\"remote_ip\":\"{ip}\",\"remote_port\":\"{port}\",\"client_ip\":\"{ip}\"",
        now.as_secs(),
        now.subsec_micros(),
    );
    if let Some(head) = entry.head {
        push_head(&mut out, head);
    }
    let _ = write!(
        out,
        "}},\"duration\":{:.9},\"size\":{},\"status\":{}",
        entry.took.as_secs_f64(),
        entry.sent,
        entry.response.status,
    );
    if let Some(id) = entry.id {
        let _ = write!(out, ",\"request_id\":\"{id:016x}\"");
    }
    if let Some(upstream) = entry.upstream {
        out.push_str(",\"upstream\":");
        push_json(&mut out, upstream.as_bytes());
    }
    if let Some(error) = entry.error {
        let _ = write!(out, ",\"refused\":\"{}\"", error.name());
        if let Some(detail) = error.detail().or(entry.reason) {
            out.push_str(",\"detail\":");
            push_json(&mut out, detail.as_bytes());
        }
    }
    if let Some(id) = entry.error_id {
        out.push_str(",\"err_id\":");
        push_json(&mut out, &id);
    }
    if entry.aborted {
        out.push_str(",\"aborted\":true");
    }
    out.push_str(",\"resp_headers\":");
    push_fields(&mut out, entry.response.fields.iter());
    out.push_str("}\n");
    out
}

fn push_head(out: &mut String, head: &RequestHead) {
    let version = head.version().name();
    let _ = write!(out, ",\"proto\":\"{version}\",\"method\":");
    push_json(out, head.method_bytes());
    out.push_str(",\"host\":");
    push_json(out, head.host().unwrap_or_default());
    out.push_str(",\"uri\":");
    push_json(out, head.target());
    out.push_str(",\"headers\":");
    push_fields(out, head.fields());
}

/// Fields of one name become one array; a head holds a bounded number of them.
fn push_fields<'a>(out: &mut String, fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) {
    let fields: Vec<_> = fields.collect();
    out.push('{');
    for (number, (name, _)) in fields.iter().enumerate() {
        let same = |other: &[u8]| other.eq_ignore_ascii_case(name);
        if fields.iter().take(number).any(|(earlier, _)| same(earlier)) {
            continue;
        }
        if number > 0 {
            out.push(',');
        }
        push_json(out, name);
        out.push_str(":[");
        let is_secret = SECRET.iter().any(|secret| same(secret.as_bytes()));
        for (place, (_, value)) in fields.iter().filter(|(other, _)| same(other)).enumerate() {
            if place > 0 {
                out.push(',');
            }
            push_json(out, if is_secret { b"REDACTED" } else { value });
        }
        out.push(']');
    }
    out.push('}');
}

/// A JSON string of any bytes; what is not UTF-8 becomes U+FFFD.
fn push_json(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for character in String::from_utf8_lossy(bytes).chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            // C0, DEL and C1: terminals and readers of lines act on all of them.
            control if control.is_control() => {
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
