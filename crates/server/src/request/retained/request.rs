//! What is kept of one slow or failed request. No query and no header field: they may hold secrets.

use std::sync::Arc;
use std::time::{Duration, Instant};

use onehop_workers::Worker;
use serde::Serialize;

use crate::limits::RETAINED_TEXT_BYTES_MAX;

/// A slow or failed request, as `GET /slow` has it; documented in docs/control-api.md.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RetainedRequest {
    /// 16 hexadecimal digits; its worker got the same.
    pub id: String,
    /// When it was over, in seconds since 1970.
    pub at: u64,
    /// `slow` or `failed`.
    pub kind: &'static str,
    /// Its site's label.
    pub site: String,
    /// Its method.
    pub method: String,
    /// Its path, without the query.
    pub path: String,
    /// The version of HTTP.
    pub protocol: &'static str,
    /// The status of its response.
    pub status: u16,
    /// The handler that answered, or failed.
    pub handler: &'static str,
    /// From its complete head to a response that was written or ready to be.
    pub total_ms: f64,
    /// Where that time went.
    pub parts: Parts,
    /// One line about it.
    pub why: String,
    /// What can be done.
    pub next: String,
    /// Bytes of the response's body.
    pub sent_bytes: u64,
    /// The client left before it had the whole response.
    pub aborted: bool,
    /// It waited for what a worker does once.
    pub cold_start: bool,
    /// Why it failed, by the `cause` label.
    pub cause: Option<&'static str>,
    /// More about that, for a person.
    pub detail: Option<String>,
    /// The application that it was for.
    pub app: Option<String>,
    /// The worker that it was handed to last.
    pub worker: Option<WorkerSeen>,
    /// The upstream that it was sent to last.
    pub upstream: Option<String>,
    /// How often it was handed over again.
    pub retries: u32,
    /// The limit that it waited for, or that rejected it.
    pub limit: Option<LimitMet>,
    /// The trace of its `traceparent`.
    pub trace_id: Option<String>,
    /// `{err.id}` of its error page.
    pub error_id: Option<String>,
    /// `{http.request.uuid}`, if a route used it.
    pub uuid: Option<String>,
    /// The client's own `X-Request-Id`.
    pub client_request_id: Option<String>,
    /// Whose stalls are still to be looked up.
    #[serde(skip)]
    pub(crate) stalling: Option<Stalling>,
}

/// Parts of a request's time, in milliseconds; their sum is all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Parts {
    /// The client sent its body.
    pub upload_ms: f64,
    /// Waiting for a permit, a worker, or a connection that others had.
    pub queue_ms: f64,
    /// Checking its password.
    pub password_ms: f64,
    /// Making a connection to the upstream, with its TLS handshake.
    pub connect_ms: f64,
    /// Attempts that failed, and the pauses between them.
    pub retry_ms: f64,
    /// The event loop of the worker was blocked.
    pub lag_ms: f64,
    /// The application, the upstream or the disk, up to the first byte of the response; without `lag_ms`.
    pub first_byte_ms: f64,
    /// The same from there to the end of the response.
    pub body_ms: f64,
    /// The client took the response.
    pub write_ms: f64,
}

/// A worker as a request met it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WorkerSeen {
    /// Its number among those of its application.
    pub index: usize,
    /// Its process, where the server has started it.
    pub pid: Option<u32>,
    /// How late its event loop was by its last report; null where it reports none.
    pub reported_lag_ms: Option<f64>,
}

/// A limit as a request met it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LimitMet {
    /// Its label.
    pub limit: String,
    /// `admitted` after it had waited, `rejected`, or `waited` where it ended before either.
    pub decision: &'static str,
}

/// A worker whose stalls between these times belong to a request.
#[derive(Clone)]
pub(crate) struct Stalling {
    pub(crate) worker: Arc<Worker>,
    pub(crate) from: Instant,
    pub(crate) until: Instant,
}

impl std::fmt::Debug for Stalling {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Stalling").finish_non_exhaustive()
    }
}

impl RetainedRequest {
    /// Looks up the stalls of the worker, once it has had so long to report them; whether it did.
    pub(super) fn look_up_stalls(&mut self, now: Instant, reported_within: Duration) -> bool {
        let has_come = |stalling: &Stalling| now.saturating_duration_since(stalling.until) >= reported_within;
        if self.stalling.as_ref().is_some_and(has_come)
            && let Some(Stalling { worker, from, until }) = self.stalling.take()
        {
            self.parts.take_lag(worker.stalled_within(from, until).unwrap_or_default());
            return true;
        }
        false
    }

    /// Whether this names the request: its id, or another name by which a person may know it.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        let others = [&self.trace_id, &self.error_id, &self.uuid, &self.client_request_id];
        self.id.eq_ignore_ascii_case(name) || others.into_iter().flatten().any(|other| other == name)
    }
}

impl Parts {
    /// Of the application's time so much was a stall of its event loop.
    fn take_lag(&mut self, stalled: Duration) {
        let mut left = milliseconds(stalled);
        for part in [&mut self.first_byte_ms, &mut self.body_ms] {
            let of_part = part.min(left);
            *part -= of_part;
            left -= of_part;
            self.lag_ms += of_part;
        }
    }
}

/// In milliseconds.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    // To the microsecond: what is shown has no more.
    duration.as_micros() as f64 / 1_000.0
}

/// What a client sent, as bounded text.
pub(crate) fn text(bytes: &[u8]) -> String {
    let bytes = bytes.get(..RETAINED_TEXT_BYTES_MAX).unwrap_or(bytes);
    String::from_utf8_lossy(bytes).chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
