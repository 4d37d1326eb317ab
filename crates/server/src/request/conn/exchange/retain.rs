//! Keeps a slow or failed request for `onehop why`.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use onehop_http1::RequestHead;
use onehop_message::error::{ErrorSource, HttpError};
use onehop_message::response::Response;
use onehop_message::trace_context::{TRACEPARENT, trace_id};
use onehop_metrics::site::Delivery;
use onehop_workers::Worker;

use super::Exchange;
use crate::request::Served;
use crate::request::core::View;
use crate::request::retained::{LimitMet, Parts, RetainedRequest, Stalling, WorkerSeen, milliseconds, text};
use crate::request::timing::Timing;

/// What became of a request, for those that are kept.
pub(super) struct Outcome<'a> {
    pub(super) head: &'a RequestHead,
    pub(super) response: &'a Response,
    pub(super) view: &'a View,
    pub(super) served: &'a Served,
    pub(super) sent: u64,
    pub(super) took: Duration,
    pub(super) aborted: bool,
}

impl Exchange {
    /// Whether a request is one of the slowest or has failed. All requests pay for this, and for nothing else here.
    #[inline]
    pub(super) fn is_retained(&self, status: u16, served: &Served, took: Duration) -> bool {
        // A stream lasts as long as its client likes.
        has_failed(status, served)
            || (served.delivery != Delivery::Stream
                && self.core.retained().is_some_and(|retained| retained.is_slow(took)))
    }

    /// Keeps the request.
    #[cold]
    pub(super) fn retain(&self, outcome: &Outcome<'_>) {
        let Some(retained) = self.core.retained() else { return };
        if has_failed(outcome.response.status, outcome.served) {
            retained.add_failed(Instant::now(), || self.made(outcome, "failed"));
        } else {
            retained.add_slow(Instant::now(), self.made(outcome, "slow"));
        }
    }

    fn made(&self, outcome: &Outcome<'_>, kind: &'static str) -> RetainedRequest {
        let Outcome { head, response, view, served, .. } = outcome;
        let timing = served.timing.as_deref();
        let id = timing.map_or_else(|| self.core.connection.next_request_id(), |timing| timing.id);
        let app = timing.and_then(|timing| timing.app.get());
        let pool = app.and_then(|number| view.snapshot.apps.get(number as usize));
        let worker = timing.and_then(|timing| timing.worker.get());
        let worker = worker.and_then(|id| pool?.worker(id));
        let now = Instant::now();
        let stalling = worker.clone().and_then(|worker| {
            // A response that was there as a whole has ended with its first byte; what follows is its client's.
            let timing = timing?;
            let until = if timing.is_streamed.get() { Some(now) } else { timing.answered.get() };
            Some(Stalling { worker, from: timing.handed_over.get()?, until: until? })
        });
        let site = served.site.and_then(|number| view.snapshot.sites.get(number));
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        RetainedRequest {
            id: format!("{id:016x}"),
            at: unix.as_secs(),
            kind,
            site: site
                .map_or_else(|| onehop_metrics::counters::OTHER.to_owned(), |site| site.label.to_string()),
            method: text(head.method_bytes()),
            path: text(head.path()),
            protocol: head.version().name(),
            status: response.status,
            handler: served.at.handler.name(),
            total_ms: milliseconds(outcome.took),
            parts: parts(timing, outcome.took),
            sent_bytes: outcome.sent,
            aborted: outcome.aborted,
            cold_start: served.delivery == Delivery::Cold,
            cause: served.error.map(HttpError::name),
            detail: served.error.and_then(HttpError::detail).map(str::to_owned).or(served.reason.clone()),
            app: pool.map(|pool| pool.app.name.clone()),
            worker: worker.map(|worker| seen(&worker, now)),
            upstream: served.upstream.as_ref().map(|member| member.name.to_string()),
            retries: timing.map_or(0, |timing| timing.retries.get()),
            limit: timing.and_then(|timing| limit_met(timing, served.error)),
            trace_id: trace_of(served, head),
            error_id: served.error_id.map(|id| id.letters().map(char::from).iter().collect()),
            uuid: served.uuid.as_deref().map(str::to_owned),
            client_request_id: head.find("x-request-id").map(text),
            stalling,
            ..RetainedRequest::default()
        }
    }
}

/// The trace of its own span, else that of its caller.
fn trace_of(served: &Served, head: &RequestHead) -> Option<String> {
    let own = served.traced.as_ref().map(|(span, _)| format!("{:032x}", span.trace_id));
    own.or_else(|| head.find(TRACEPARENT).and_then(trace_id).map(str::to_owned))
}

/// What a client does wrong, or too often, is no failure. A request that was not let in is.
#[inline]
fn has_failed(status: u16, served: &Served) -> bool {
    status >= 500 || served.error.is_some_and(|error: HttpError| error.source() != ErrorSource::Client)
}

fn seen(worker: &Worker, now: Instant) -> WorkerSeen {
    WorkerSeen {
        index: worker.index.0,
        pid: worker.pid(),
        reported_lag_ms: worker.reported_lag(now).map(milliseconds),
    }
}

fn limit_met(timing: &Timing, error: Option<HttpError>) -> Option<LimitMet> {
    let limit = timing.limit.borrow();
    let decision = match error {
        Some(HttpError::Shed { .. }) => "rejected",
        _ if timing.handed_over.get().is_some() => "admitted",
        // Its client left, for example.
        _ => "waited",
    };
    limit.as_ref().map(|limit| LimitMet { limit: limit.label.clone(), decision })
}

/// Where the time went. Of a response from memory all of it is the client's: nothing else waits.
fn parts(timing: Option<&Timing>, total: Duration) -> Parts {
    let Some(timing) = timing else {
        return Parts { write_ms: milliseconds(total), ..Parts::default() };
    };
    let known = [
        &timing.upload,
        &timing.queue,
        &timing.password,
        &timing.connect,
        &timing.failed_attempts,
        &timing.first_byte,
    ];
    let known: Duration = known.iter().map(|part| part.get()).sum();
    let rest = total.saturating_sub(known);
    if timing.answered.get().is_none() {
        // It was not let in.
        let queue_ms = milliseconds(timing.queue.get() + rest);
        return Parts { queue_ms, upload_ms: milliseconds(timing.upload.get()), ..Parts::default() };
    }
    let write = if timing.is_streamed.get() { timing.write.get().min(rest) } else { rest };
    Parts {
        upload_ms: milliseconds(timing.upload.get()),
        queue_ms: milliseconds(timing.queue.get()),
        password_ms: milliseconds(timing.password.get()),
        connect_ms: milliseconds(timing.connect.get()),
        retry_ms: milliseconds(timing.failed_attempts.get()),
        lag_ms: 0.0,
        first_byte_ms: milliseconds(timing.first_byte.get()),
        body_ms: milliseconds(rest.saturating_sub(write)),
        write_ms: milliseconds(write),
    }
}
