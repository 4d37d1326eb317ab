//! Access logs: one line for each request, in JSON shaped like Caddy's (`json.rs`, with `filter.rs` for fields that are changed
//! or left out), as Apache has it (`apache.rs`), or after a template (`transform.rs`).
//!
//! A core gathers lines and hands them over in batches to a writer thread (`writer.rs`). A slow writer costs lines,
//! which are counted, and never a request. The server's own messages may go the
//! same way (`server_log.rs`). `sink.rs` is the file, `rotation.rs` its rotation, `net.rs` a receiver elsewhere. The values of
//! cookies and credentials are left out, unless `log_credentials` asks for them. What was written last stays in memory
//! ([`crate::recent`]).

mod apache;
mod filter;
mod json;
mod net;
mod rotation;
mod sampling;
mod server_log;
mod sink;
#[cfg(test)]
mod tests;
mod time;
mod transform;
mod writer;

use std::cell::RefCell;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use onehop_config::checked::{AccessLog, LogFormat, LogSampling, LogTemplate, LogTime};
use onehop_http1::RequestHead;
use onehop_message::error::{ErrorSource, HttpError};
use onehop_message::origin::Origin;
use onehop_message::response::Response;
use onehop_message::uri::host_without_port;

use crate::limits::{LOG_BATCH_BYTES, LOG_BATCH_MARKS};
use crate::recent::Mark;
use filter::Filter;
use sampling::Samples;
use writer::Batch;

pub use server_log::ServerLogTarget;
pub use writer::{LogWriter, Warn};

/// Fields whose values are logged only with `log_credentials`.
const SECRET: [&str; 4] = ["cookie", "set-cookie", "authorization", "proxy-authorization"];

/// Is logged in place of such a value.
const REDACTED: &[u8] = b"REDACTED";

/// The appended field that has the user of `basic_auth`, as Caddy calls it.
pub const USER_ID: &str = "user_id";

/// The logger of requests, as Caddy calls it.
const LOGGER: &str = "http.log.access";

/// One access log of a site.
#[derive(Debug, Clone)]
pub struct LogTarget {
    writer: Arc<LogWriter>,
    line: EntryFormat,
    /// Only for these hosts; empty means all.
    hosts: Vec<String>,
    only_named: bool,
    only_errors: bool,
    sampling: Option<LogSampling>,
    /// Number of the site, as [`crate::recent::Recent`] knows it.
    site: u32,
    /// Its own number among all logs, under which lines are counted for `sampling`.
    number: u32,
}

/// Why a batch was not written whole.
#[derive(Debug)]
struct Failed {
    /// Lines that are lost.
    lines: u64,
    error: std::io::Error,
}

/// What lines of one log look like.
#[derive(Debug, Clone)]
pub struct EntryFormat {
    format: Format,
    /// `http.log.access`, and the name of the log behind it.
    logger: Arc<str>,
    credentials: bool,
}

/// A compiled [`LogFormat`].
#[derive(Debug, Clone)]
enum Format {
    Json(LogTime),
    Common,
    Combined,
    Filter(Arc<Filter>),
    Transform(Arc<LogTemplate>),
}

/// The logs of a site that have a request, as bits by their number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logs(u64);

/// A request and what became of it: one line of the log.
#[derive(Debug)]
pub struct Entry<'a> {
    /// The request's id, if it waited for others; its worker got the same.
    pub id: Option<u64>,
    /// `None` where the bytes were no request.
    pub head: Option<&'a RequestHead>,
    /// The client's connection.
    pub origin: &'a Origin,
    /// Whom trusted proxies in front name as the client, else the connection's; `None` behind a Unix socket.
    pub client: Option<IpAddr>,
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
    /// Fields of `log_append`, in their order.
    pub appended: &'a [(String, Vec<u8>)],
}

/// The lines that a core has gathered, by writer.
#[derive(Debug, Default)]
pub struct LogBatches {
    batches: RefCell<Vec<(Arc<LogWriter>, Batch)>>,
    samples: RefCell<Samples>,
}

impl LogTarget {
    /// A log as its site has it. `site` is the site's number in [`crate::recent::Recent`], `number` the log's own.
    pub fn new(settings: &AccessLog, writer: Arc<LogWriter>, site: u32, number: u32) -> Self {
        Self {
            writer,
            line: EntryFormat::new(settings),
            hosts: settings.hosts.clone(),
            only_named: settings.only_named,
            only_errors: settings.only_errors,
            sampling: settings.sampling,
            site,
            number,
        }
    }

    fn wants(&self, entry: &Entry<'_>, is_named: bool) -> bool {
        if self.only_errors && !entry.is_error() {
            return false;
        }
        if is_named {
            return true;
        }
        let Some(head) = entry.head.filter(|_| !self.hosts.is_empty()) else { return !self.only_named };
        let host = host_without_port(head.host().unwrap_or_default());
        !self.only_named && self.hosts.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(host))
    }
}

impl Logs {
    /// Those of the site that are for every request.
    pub const USUAL: Self = Self(u64::MAX);

    /// None: the request is not logged.
    pub const NONE: Self = Self(0);

    /// Those of these numbers.
    #[must_use]
    pub fn of(numbers: impl Iterator<Item = usize>) -> Self {
        Self(numbers.fold(0, |bits, number| bits | 1_u64.checked_shl(number as u32).unwrap_or(0)))
    }

    fn has(self, number: usize) -> bool {
        self == Self::USUAL || 1_u64.checked_shl(number as u32).is_some_and(|bit| self.0 & bit != 0)
    }
}

impl Entry<'_> {
    /// As in Caddy: what a client asks for is information, what fails here is an error.
    fn is_error(&self) -> bool {
        self.error.is_some_and(|error| error.source() != ErrorSource::Client)
    }

    fn message(&self) -> &'static str {
        if self.head.is_some() { "handled request" } else { "refused request" }
    }

    fn appended(&self, key: &str) -> Option<&[u8]> {
        // As in JSON, the last one counts.
        self.appended.iter().rfind(|(name, _)| name == key).map(|(_, value)| value.as_slice())
    }
}

impl EntryFormat {
    /// What lines of this log look like.
    pub fn new(settings: &AccessLog) -> Self {
        let format = match &settings.format {
            LogFormat::Json(time) => Format::Json(*time),
            LogFormat::Common => Format::Common,
            LogFormat::Combined => Format::Combined,
            LogFormat::Filter(filter) => Format::Filter(Arc::new(Filter::new(filter))),
            LogFormat::Transform(template) => Format::Transform(Arc::clone(template)),
        };
        let logger = match &settings.name {
            Some(name) => format!("{LOGGER}.{name}").into(),
            None => LOGGER.into(),
        };
        Self { format, logger, credentials: settings.credentials }
    }

    /// Adds the line of a request, whatever its client sends.
    pub fn write(&self, entry: &Entry<'_>, at: SystemTime, out: &mut Vec<u8>) {
        match &self.format {
            Format::Json(time) => json::line(entry, self, at, *time, None, out),
            Format::Filter(filter) => json::line(entry, self, at, filter.time, Some(filter), out),
            Format::Common => apache::line(entry, false, at, out),
            Format::Combined => apache::line(entry, true, at, out),
            Format::Transform(template) => transform::line(entry, self, template, at, out),
        }
    }

    fn is_json(&self) -> bool {
        matches!(self.format, Format::Json(_) | Format::Filter(_))
    }

    /// A value of a header field, as it may be logged.
    fn shown<'v>(&self, name: &[u8], value: &'v [u8]) -> &'v [u8] {
        let is = |secret: &str| secret.len() == name.len() && name.eq_ignore_ascii_case(secret.as_bytes());
        let is_secret = || SECRET.into_iter().any(is);
        if !self.credentials && is_secret() { REDACTED } else { value }
    }
}

impl LogBatches {
    /// Adds a line to every log of the site that wants it.
    pub fn add(&self, targets: &[LogTarget], logs: Logs, entry: &Entry<'_>) {
        let mut at = None;
        for (number, target) in targets.iter().enumerate() {
            if !logs.has(number) || !target.wants(entry, logs != Logs::USUAL) {
                continue;
            }
            let at = *at.get_or_insert_with(SystemTime::now);
            let is_error = entry.is_error();
            if let Some(sampling) = &target.sampling
                && !self.samples.borrow_mut().takes(sampling, (target.number, is_error), at)
            {
                continue;
            }
            let mut batches = self.batches.borrow_mut();
            let number = batches.iter().position(|(writer, _)| Arc::ptr_eq(writer, &target.writer));
            let number = number.unwrap_or_else(|| {
                batches.push((Arc::clone(&target.writer), empty()));
                batches.len() - 1
            });
            if let Some((writer, batch)) = batches.get_mut(number) {
                target.line.write(entry, at, &mut batch.text);
                let (status, is_json) = (entry.response.status, target.line.is_json());
                batch.marks.push(Mark {
                    end: batch.text.len(),
                    at,
                    site: target.site,
                    status,
                    is_json,
                    is_error,
                });
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
    Batch { text: Vec::with_capacity(LOG_BATCH_BYTES), marks: Vec::with_capacity(LOG_BATCH_MARKS) }
}
