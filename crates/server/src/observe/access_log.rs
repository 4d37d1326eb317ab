//! The access log: one JSON line for each request, shaped like Caddy's.
//!
//! A core gathers lines and hands them over in batches to a writer thread. A writer that is slow
//! costs lines, which are counted, and never a request. Cookies and credentials are left out. What
//! reached no site (bytes that are no request, an unknown host) goes to the logs of the listener's first.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onehop_config::checked::LogOutput;
use onehop_http1::{RequestHead, Version};

use super::CoreCounters;
use crate::limits::{LOG_BATCH_BYTES, LOG_BATCHES_MAX, LOG_FINISH_DEADLINE};
use crate::request::answer::Answer;
use crate::request::error_route::ErrorId;
use crate::request::origin::Origin;
use crate::request::rescue::{AtFault, Fault};
use crate::request::route::host_without_port;

/// Fields whose values are never logged.
const SECRET: [&str; 4] = ["cookie", "set-cookie", "authorization", "proxy-authorization"];

/// Permissions of a log file and of a folder that is made for it: Caddy's.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

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
    pub(crate) answer: &'a Answer,
    /// Bytes of the body.
    pub(crate) sent: u64,
    pub(crate) took: Duration,
    /// The upstream that it was handed to.
    pub(crate) upstream: Option<&'a str>,
    /// Why that one could not be reached.
    pub(crate) reason: Option<&'a str>,
    /// Why no handler answered.
    pub(crate) fault: Option<Fault>,
    /// What that is called in the answer of an error route.
    pub(crate) error_id: Option<ErrorId>,
    /// The client went away, or took nothing, before it had the whole answer.
    pub(crate) aborted: bool,
}

/// A thread that writes log lines. It ends when the last owner is gone, after the last line.
#[derive(Debug)]
pub struct LogWriter {
    orders: SyncSender<Order>,
}

/// What the writer's thread is told.
enum Order {
    /// Write these lines.
    Write(Vec<u8>),
    /// Say when everything before this is written.
    Say(SyncSender<()>),
}

/// The lines that a core has gathered, by writer.
#[derive(Default)]
pub(crate) struct LogBatches {
    batches: RefCell<Vec<(Arc<LogWriter>, Vec<u8>)>>,
}

impl LogTarget {
    fn wants(&self, exchange: &Exchange<'_>) -> bool {
        let Some(head) = exchange.head.filter(|_| !self.hosts.is_empty()) else { return true };
        let host = host_without_port(head.host().unwrap_or_default());
        self.hosts.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(host))
    }
}

impl LogWriter {
    /// Opens the output and starts its thread. A file is appended to.
    pub fn start(output: &LogOutput) -> io::Result<Self> {
        let (orders, received) = sync_channel(LOG_BATCHES_MAX);
        let sink: Box<dyn Write + Send> = match output {
            LogOutput::Stdout => Box::new(io::stdout()),
            LogOutput::Stderr => Box::new(io::stderr()),
            LogOutput::File(path) => Box::new(open(path)?),
            LogOutput::Discard => Box::new(io::sink()),
        };
        std::thread::Builder::new().name("access-log".into()).spawn(move || write_all(&received, sink))?;
        Ok(Self { orders })
    }

    /// Waits, within a bound, until everything that was handed over is written.
    pub(crate) fn finish(&self) {
        let (done, said) = sync_channel(1);
        if self.orders.try_send(Order::Say(done)).is_ok() {
            let _ = said.recv_timeout(LOG_FINISH_DEADLINE);
        }
    }
}

/// The file and its folder are made where they are missing, for nobody else's eyes: lines hold addresses
/// and header values of clients.
fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)?;
    }
    File::options().create(true).append(true).mode(FILE_MODE).open(path)
}

fn write_all(orders: &Receiver<Order>, mut sink: Box<dyn Write + Send>) {
    while let Ok(order) = orders.recv() {
        match order {
            // A full disk or a closed pipe loses lines; the next batch may fare better.
            Order::Write(batch) => drop(sink.write_all(&batch).and_then(|()| sink.flush())),
            Order::Say(done) => drop(done.send(())),
        }
    }
}

impl LogBatches {
    /// Adds a line to every log that wants it.
    pub(crate) fn add(&self, counters: &CoreCounters, targets: &[LogTarget], exchange: &Exchange<'_>) {
        let mut text = None;
        for target in targets {
            if !target.wants(exchange) {
                continue;
            }
            let text = text.get_or_insert_with(|| line(exchange));
            let mut batches = self.batches.borrow_mut();
            let number = batches.iter().position(|(writer, _)| Arc::ptr_eq(writer, &target.writer));
            let number = number.unwrap_or_else(|| {
                batches.push((Arc::clone(&target.writer), Vec::with_capacity(LOG_BATCH_BYTES)));
                batches.len() - 1
            });
            if let Some((writer, batch)) = batches.get_mut(number) {
                batch.extend_from_slice(text.as_bytes());
                if batch.len() >= LOG_BATCH_BYTES {
                    let full = std::mem::replace(batch, Vec::with_capacity(LOG_BATCH_BYTES));
                    hand_over(writer, full, counters);
                }
            }
        }
    }

    /// Hands over everything that was gathered, and lets go of the writers.
    pub(crate) fn flush(&self, counters: &CoreCounters) {
        for (writer, batch) in self.batches.borrow_mut().drain(..) {
            hand_over(&writer, batch, counters);
        }
    }
}

fn hand_over(writer: &LogWriter, batch: Vec<u8>, counters: &CoreCounters) {
    let (TrySendError::Full(lost) | TrySendError::Disconnected(lost)) =
        match writer.orders.try_send(Order::Write(batch)) {
            Ok(()) => return,
            Err(refused) => refused,
        };
    if let Order::Write(lost) = lost {
        counters.log_lines_dropped(lost.iter().filter(|byte| **byte == b'\n').count() as u64);
    }
}

fn line(exchange: &Exchange<'_>) -> String {
    let mut out = String::with_capacity(512);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (ip, port) = match exchange.origin.peer {
        Some(peer) => (peer.ip().to_canonical().to_string(), peer.port().to_string()),
        None => ("@".to_owned(), String::new()),
    };
    // As in Caddy: what a client asks for is information, what fails here is an error.
    let ours = exchange.fault.is_some_and(|fault| fault.at_fault() != AtFault::Client);
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
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
