//! The access log: one JSON line for each request, shaped like Caddy's.
//!
//! A core gathers lines and hands them over in batches to a writer thread (`writer.rs`). A writer that is slow
//! costs lines, which are counted, and never a request. `sink.rs` is the file, `rotate.rs` its rotation. Cookies and credentials are left out. What
//! reached no site (bytes that are no request, an unknown host) goes to the logs of the listener's first.

mod rotate;
mod sink;
mod writer;

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onehop_http1::{RequestHead, Version};
use onehop_message::error::{ErrorSource, HttpError};
use onehop_message::origin::Origin;
use onehop_message::response::Response;

use crate::limits::LOG_BATCH_BYTES;
use crate::request::error_route::ErrorId;
use crate::request::route::host_without_port;
use writer::Batch;

pub use writer::{LogWriter, Warn};

/// Fields whose values are never logged.
const SECRET: [&str; 4] = ["cookie", "set-cookie", "authorization", "proxy-authorization"];

/// One access log of a site.
#[derive(Debug, Clone)]
pub struct LogTarget {
    /// Who writes it.
    pub writer: Arc<LogWriter>,
    /// Only for these hosts; empty means all.
    pub hosts: Vec<String>,
}

/// A request and what became of it.
pub(crate) struct Exchange<'a> {
    /// `None` where the bytes were no request.
    pub(crate) head: Option<&'a RequestHead>,
    pub(crate) origin: &'a Origin,
    pub(crate) answer: &'a Response,
    /// Bytes of the body.
    pub(crate) sent: u64,
    pub(crate) took: Duration,
    /// The upstream that it was handed to.
    pub(crate) upstream: Option<&'a str>,
    /// Why that one could not be reached.
    pub(crate) reason: Option<&'a str>,
    /// Why no handler answered.
    pub(crate) fault: Option<HttpError>,
    /// What that is called in the answer of an error route.
    pub(crate) error_id: Option<ErrorId>,
    /// The client went away, or took nothing, before it had the whole answer.
    pub(crate) aborted: bool,
}

/// The lines that a core has gathered, by writer.
#[derive(Default)]
pub(crate) struct LogBatches {
    batches: RefCell<Vec<(Arc<LogWriter>, Batch)>>,
}

impl LogTarget {
    fn wants(&self, exchange: &Exchange<'_>) -> bool {
        let Some(head) = exchange.head.filter(|_| !self.hosts.is_empty()) else { return true };
        let host = host_without_port(head.host().unwrap_or_default());
        self.hosts.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(host))
    }
}

impl LogBatches {
    /// Adds a line to every log that wants it.
    pub(crate) fn add(&self, targets: &[LogTarget], exchange: &Exchange<'_>) {
        let mut text = None;
        for target in targets {
            if !target.wants(exchange) {
                continue;
            }
            let text = text.get_or_insert_with(|| line(exchange));
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

    /// Hands over everything that was gathered, and lets go of the writers.
    pub(crate) fn flush(&self) {
        self.hand_over(false);
    }

    /// The same when the core ends.
    pub(crate) fn finish(&self) {
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

fn line(exchange: &Exchange<'_>) -> String {
    let mut out = String::with_capacity(512);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (ip, port) = match exchange.origin.peer {
        Some(peer) => (peer.ip().to_canonical().to_string(), peer.port().to_string()),
        None => ("@".to_owned(), String::new()),
    };
    // As in Caddy: what a client asks for is information, what fails here is an error.
    let ours = exchange.fault.is_some_and(|fault| fault.source() != ErrorSource::Client);
    let level = if ours { "error" } else { "info" };
    let message = if exchange.head.is_some() { "handled request" } else { "refused request" };
    let _ = write!(
        out,
        "{{\"level\":\"{level}\",\"ts\":{}.{:06},\"logger\":\"http.log.access\",\"msg\":\"{message}\",\
         \"request\":{{\"remote_ip\":\"{ip}\",\"remote_port\":\"{port}\",\"client_ip\":\"{ip}\"",
        now.as_secs(),
        now.subsec_micros(),
    );
    if let Some(head) = exchange.head {
        push_head(&mut out, head);
    }
    let _ = write!(
        out,
        "}},\"duration\":{:.9},\"size\":{},\"status\":{}",
        exchange.took.as_secs_f64(),
        exchange.sent,
        exchange.answer.status,
    );
    if let Some(upstream) = exchange.upstream {
        out.push_str(",\"upstream\":");
        push_json(&mut out, upstream.as_bytes());
    }
    if let Some(fault) = exchange.fault {
        let _ = write!(out, ",\"refused\":\"{}\"", fault.name());
        if let Some(detail) = fault.detail().or(exchange.reason) {
            out.push_str(",\"detail\":");
            push_json(&mut out, detail.as_bytes());
        }
    }
    if let Some(id) = exchange.error_id {
        out.push_str(",\"err_id\":");
        push_json(&mut out, &id.letters());
    }
    if exchange.aborted {
        out.push_str(",\"aborted\":true");
    }
    out.push_str(",\"resp_headers\":");
    push_fields(&mut out, exchange.answer.fields.iter());
    out.push_str("}\n");
    out
}

fn push_head(out: &mut String, head: &RequestHead) {
    let version = if head.version() == Version::Http10 { "HTTP/1.0" } else { "HTTP/1.1" };
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
