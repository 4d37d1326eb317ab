//! The access log: one line for each request, in JSON shaped like Caddy's (`json.rs`) or as Apache has it (`apache.rs`).
//!
//! A core gathers lines and hands them over in batches to a writer thread (`writer.rs`). A slow writer costs lines,
//! which are counted, and never a request. `sink.rs` is the file, `rotation.rs` its rotation. The values of cookies and
//! credentials are left out.

mod apache;
mod json;
mod rotation;
mod sink;
mod writer;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use onehop_config::checked::LogFormat;
use onehop_http1::RequestHead;
use onehop_message::error::HttpError;
use onehop_message::origin::Origin;
use onehop_message::response::Response;
use onehop_message::uri::host_without_port;

use crate::limits::LOG_BATCH_BYTES;
use writer::Batch;

pub use writer::{LogWriter, Warn};

/// One access log of a site.
#[derive(Debug, Clone)]
pub struct LogTarget {
    /// The thread that writes it.
    pub writer: Arc<LogWriter>,
    /// What its lines look like.
    pub format: LogFormat,
    /// Only for these hosts; empty means all.
    pub hosts: Vec<String>,
}

/// A request and what became of it: one line of the log.
#[derive(Debug)]
pub struct Entry<'a> {
    /// The request's id, if it waited for others; its worker got the same.
    pub id: Option<u64>,
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
        // One line of each format that is wanted.
        let mut lines: [Option<String>; 3] = [const { None }; 3];
        for target in targets {
            if !target.wants(entry) {
                continue;
            }
            let text = match target.format {
                LogFormat::Json => lines[0].get_or_insert_with(|| json::line(entry)),
                LogFormat::Common => lines[1].get_or_insert_with(|| apache::line(entry, false)),
                LogFormat::Combined => lines[2].get_or_insert_with(|| apache::line(entry, true)),
            };
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
