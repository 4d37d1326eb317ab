//! Failures of applications and upstreams that an operator should hear of although each is one request's own: a response
//! that is late, or that is refused.
//!
//! Cores count them, and the first core reports them at its tick: each kind of failure of one application or upstream at
//! once, and then no more often than every [`INCIDENT_REPORT_PERIOD`], with the number of requests. Only requests that
//! have failed take the lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use onehop_http1::Refusal;
use onehop_message::error::HttpError;

use crate::limits::{INCIDENT_REPORT_PERIOD, INCIDENTS_MAX};

/// Where a failure happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// An application, by its name.
    App(String),
    /// An upstream, by its label.
    Upstream(String),
}

/// A kind of failure, and how often requests have met it since the last report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    /// Where.
    pub origin: Origin,
    /// What clients got.
    pub status: u16,
    /// The `cause` label.
    pub cause: &'static str,
    /// For a person: what happened, and which setting bounds it.
    pub reason: String,
    /// Requests.
    pub requests: u64,
}

/// Receives reports; must not block.
pub type Sink = Box<dyn Fn(Incident) + Send + Sync>;

/// The failures that were met.
#[derive(Default)]
pub(crate) struct Incidents {
    /// There are some, reported or not.
    is_any: AtomicBool,
    known: Mutex<Vec<Known>>,
    sink: OnceLock<Sink>,
}

struct Known {
    /// With the requests that were not reported.
    incident: Incident,
    /// Before this it is not reported again.
    quiet_until: Option<Instant>,
}

impl Incidents {
    /// Where reports go. The first call counts.
    pub(crate) fn report_to(&self, sink: Sink) {
        let _ = self.sink.set(sink);
    }

    /// A request has failed.
    pub(crate) fn note(&self, fault: HttpError, origin: impl FnOnce() -> Origin) {
        let Some(reason) = reason(fault) else { return };
        let origin = origin();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |known: &&mut Known| known.incident.origin == origin && known.incident.reason == reason;
        if let Some(known) = known.iter_mut().find(is_same) {
            known.incident.requests += 1;
        } else if known.len() < INCIDENTS_MAX {
            let (status, cause) = (fault.status(), fault.name());
            let incident = Incident { origin, status, cause, reason, requests: 1 };
            known.push(Known { incident, quiet_until: None });
        }
        self.is_any.store(true, Ordering::Relaxed);
    }

    /// Reports what is due.
    pub(crate) fn tick(&self, now: Instant) {
        if !self.is_any.load(Ordering::Relaxed) {
            return;
        }
        let mut due = Vec::new();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain_mut(|known| {
            if known.quiet_until.is_some_and(|until| now < until) {
                return true;
            }
            let has_news = known.incident.requests > 0;
            if has_news {
                due.push(known.incident.clone());
                known.incident.requests = 0;
                known.quiet_until = Some(now + INCIDENT_REPORT_PERIOD);
            }
            has_news
        });
        self.is_any.store(!known.is_empty(), Ordering::Relaxed);
        drop(known);
        if let Some(sink) = self.sink.get() {
            due.into_iter().for_each(sink);
        }
    }
}

/// What happened, where an operator should hear of it. What a client has caused, a full queue and a worker that has ended
/// are reported elsewhere or are no failure.
fn reason(fault: HttpError) -> Option<String> {
    Some(match fault {
        HttpError::WorkerTimeout => "no response in time (`timeout`)".to_owned(),
        HttpError::UpstreamTimeout => {
            "no response in time (`response_header_timeout`, `read_timeout`)".to_owned()
        }
        HttpError::UpstreamDialTimeout => "no connection in time (`dial_timeout`)".to_owned(),
        HttpError::UpstreamUnreachable => {
            "no connection: it is refused, or there is no way to this address".to_owned()
        }
        HttpError::UpstreamTls => {
            "no TLS connection: its certificate is not trusted, or it refuses".to_owned()
        }
        HttpError::UpstreamDied => "it closed the connection before the response was complete".to_owned(),
        HttpError::UpstreamNone => {
            "no upstream takes requests: all are down, failing or full (`onehop status` shows each)"
                .to_owned()
        }
        HttpError::UpstreamBroken(Refusal::HeadTooLarge) => {
            "the response header is too large (`max_response_header`, at most 64KiB)".to_owned()
        }
        HttpError::AnswerRefused(Refusal::HeadTooLarge) => {
            "the response header is too large (at most 64KiB)".to_owned()
        }
        HttpError::UpstreamBroken(Refusal::TooManyFields)
        | HttpError::AnswerRefused(Refusal::TooManyFields) => {
            "the response header has too many fields (at most 256)".to_owned()
        }
        HttpError::UpstreamBroken(refusal) | HttpError::AnswerRefused(refusal) => {
            format!("the response is refused: {} ({})", refusal.name().replace('_', " "), refusal.section())
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn upstream(name: &str) -> Origin {
        Origin::Upstream(name.to_owned())
    }

    #[test]
    fn a_failure_is_reported_at_once_and_then_with_a_count() {
        let incidents = Incidents::default();
        let reported = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&reported);
        incidents.report_to(Box::new(move |incident| sink.lock().unwrap().push(incident)));
        let taken = || {
            let taken = std::mem::take(&mut *reported.lock().unwrap());
            taken.into_iter().map(|one| (one.origin, one.status, one.cause, one.requests)).collect::<Vec<_>>()
        };
        let start = Instant::now();
        incidents.tick(start);
        assert_eq!(taken(), []);
        incidents.note(HttpError::UpstreamTimeout, || upstream("a"));
        incidents.note(HttpError::UpstreamTimeout, || upstream("a"));
        incidents.note(HttpError::UpstreamTimeout, || upstream("b"));
        incidents.note(HttpError::ClientGone, || upstream("a"));
        incidents.tick(start);
        let (late, cause) = (504, "upstream_timeout");
        assert_eq!(taken(), [(upstream("a"), late, cause, 2), (upstream("b"), late, cause, 1)]);
        for _ in 0..5 {
            incidents.note(HttpError::UpstreamTimeout, || upstream("a"));
        }
        incidents.note(HttpError::UpstreamBroken(Refusal::HeadTooLarge), || upstream("a"));
        incidents.tick(start + INCIDENT_REPORT_PERIOD / 2);
        assert_eq!(taken(), [(upstream("a"), 502, "upstream_broken", 1)]);
        incidents.tick(start + INCIDENT_REPORT_PERIOD);
        assert_eq!(taken(), [(upstream("a"), late, cause, 5)]);
        incidents.tick(start + INCIDENT_REPORT_PERIOD * 9);
        assert_eq!(taken(), []);
        assert!(!incidents.is_any.load(Ordering::Relaxed), "nothing is kept");
    }

    #[test]
    fn no_more_kinds_than_the_bound_are_kept() {
        let incidents = Incidents::default();
        for number in 0..INCIDENTS_MAX + 10 {
            incidents.note(HttpError::UpstreamTimeout, || upstream(&number.to_string()));
        }
        assert_eq!(incidents.known.lock().unwrap().len(), INCIDENTS_MAX);
    }
}
