//! The access log: one JSON line for each request, shaped like Caddy's.
//!
//! A core gathers lines and hands them over in batches to a writer thread (`writer.rs`). A slow writer costs lines,
//! which are counted, and never a request. `sink.rs` is the file, `rotation.rs` its rotation. The values of cookies and
//! credentials are left out.

mod rotation;
mod sink;
mod writer;

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onehop_http1::RequestHead;
use onehop_message::error::{ErrorSource, HttpError};
use onehop_message::origin::Origin;
use onehop_message::response::Response;
use onehop_message::uri::host_without_port;

use crate::limits::LOG_BATCH_BYTES;
use writer::Batch;

pub use writer::{LogWriter, Warn};

/// Fields whose values are never logged.
const SECRET: [&str; 4] = ["cookie", "set-cookie", "authorization", "proxy-authorization"];

/// One access log of a site.
#[derive(Debug, Clone)]
pub struct LogTarget {
    /// The thread that writes it.
    pub writer: Arc<LogWriter>,
    /// Only for these hosts; empty means all.
    pub hosts: Vec<String>,
}

/// A request and what became of it: one line of the log.
#[derive(Debug)]
pub struct Entry<'a> {
    /// `None` where the bytes were no request.
    pub head: Option<&'a RequestHead>,
    /// The client's connection.
    pub origin: &'a Origin,
    /// The response that was sent.
    pub response: &'a Response,
    /// Bytes of its body.
    pub sent: u64,
    /// Since the request's head was complete.
    pub took: Duration,
    /// The upstream that the request was handed to.
    pub upstream: Option<&'a str>,
    /// Why that upstream could not be reached.
    pub reason: Option<&'a str>,
    /// Why no handler answered.
    pub error: Option<HttpError>,
    /// The name of the error in the response of an error route.
    pub error_id: Option<[u8; 9]>,
    /// The client went away, or took nothing, before it had the whole response.
    pub aborted: bool,
}

/// The lines that a core has gathered, by writer.
#[derive(Debug, Default)]
pub struct LogBatches {
    batches: RefCell<Vec<(Arc<LogWriter>, Batch)>>,
}

impl LogTarget {
    fn wants(&self, entry: &Entry<'_>) -> bool {
        let Some(head) = entry.head.filter(|_| !self.hosts.is_empty()) else { return true };
        let host = host_without_port(head.host().unwrap_or_default());
        self.hosts.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(host))
    }
}

impl LogBatches {
    /// Adds a line to every log that wants it.
    pub fn add(&self, targets: &[LogTarget], entry: &Entry<'_>) {
        let mut text = None;
        for target in targets {
            if !target.wants(entry) {
                continue;
            }
            let text = text.get_or_insert_with(|| line(entry));
            let mut batches = self.batches.borrow_mut();
            let number = batches.iter().position(|(writer, _)| Arc::ptr_eq(writer, &target.writer));
            let number = number.unwrap_or_else(|| {
                batches.push((Arc::clone(&target.writer), empty()));
                batches.len() - 1
            });
            if let Some((writer, batch)) = batches.get_mut(number) {
                batch.text.extend_from_slice(text.as_bytes());
                batch.lines += 1;
                if batch.text.len() >= LOG_BATCH_BYTES {
                    writer.hand_over(std::mem::replace(batch, empty()), false);
                }
            }
        }
    }

    /// Hands over every gathered line, and releases the writers.
    pub fn flush(&self) {
        self.hand_over(false);
    }

    /// The same when the core ends: no line is dropped.
    pub fn finish(&self) {
        self.hand_over(true);
    }

    fn hand_over(&self, is_last: bool) {
        for (writer, batch) in self.batches.borrow_mut().drain(..) {
            writer.hand_over(batch, is_last);
        }
    }
}

fn empty() -> Batch {
    Batch { text: Vec::with_capacity(LOG_BATCH_BYTES), lines: 0 }
}

fn line(entry: &Entry<'_>) -> String {
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
