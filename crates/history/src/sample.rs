//! What was counted in one interval, and what happened.

use std::collections::BTreeMap;
use std::sync::Arc;

use onehop_metrics::histogram::Snapshot;

/// What a site counted in an interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Responses; streams count when they end.
    pub requests: u64,
    /// Responses with a status of 500 or above.
    pub errors: u64,
    /// Requests that were rejected because there was too much to do.
    pub rejected: u64,
    /// Bytes of response bodies.
    pub bytes: u64,
    /// Streams that have started.
    pub streams: u64,
    /// Requests that came before the worker that answered them had answered any.
    pub cold_starts: u64,
    /// The longest of these, in nanoseconds.
    pub slowest_cold_start_nanos: u64,
    /// Latencies, without streams, cold starts and rejected requests.
    pub durations: Snapshot,
}

/// What the server's process took in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessFigures {
    /// Microseconds on a CPU.
    pub cpu_micros: u64,
    /// The highest resident memory that was seen.
    pub resident_bytes: u64,
    /// The most open connections that were seen.
    pub connections: u64,
}

/// What the workers of an application took in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AppFigures {
    /// Microseconds on a CPU, of all workers.
    pub cpu_micros: u64,
    /// The highest resident memory of all workers together that was seen.
    pub resident_bytes: u64,
    /// The longest delay of an event loop that was seen, in microseconds.
    pub lag_micros: u64,
    /// The most requests in flight that were seen.
    pub in_flight: u64,
    /// The longest queue that was seen.
    pub queued: u64,
}

/// What was counted in one interval.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// When the interval began, in seconds since 1970.
    pub at: u64,
    /// How much of the interval the server was up, in milliseconds.
    pub covered_ms: u64,
    /// The server itself.
    pub process: ProcessFigures,
    /// By site; those that counted nothing may be missing.
    pub sites: BTreeMap<Arc<str>, Figures>,
    /// By application.
    pub apps: BTreeMap<Arc<str>, AppFigures>,
}

/// Something that explains a curve.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Event {
    /// When, in seconds since 1970.
    pub at: u64,
    /// What, as docs/control-api.md lists it.
    pub event: String,
    /// One line for a person.
    pub text: String,
    /// The application, site or certificate.
    pub subject: Option<String>,
}

impl Figures {
    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds what another site, or the same in another interval, has counted.
    pub fn merge(&mut self, other: &Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.errors = self.errors.saturating_add(other.errors);
        self.rejected = self.rejected.saturating_add(other.rejected);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.streams = self.streams.saturating_add(other.streams);
        self.cold_starts = self.cold_starts.saturating_add(other.cold_starts);
        self.slowest_cold_start_nanos = self.slowest_cold_start_nanos.max(other.slowest_cold_start_nanos);
        self.durations.merge(&other.durations);
    }
}

impl ProcessFigures {
    /// Adds another interval.
    pub fn merge(&mut self, other: &Self) {
        self.cpu_micros = self.cpu_micros.saturating_add(other.cpu_micros);
        self.resident_bytes = self.resident_bytes.max(other.resident_bytes);
        self.connections = self.connections.max(other.connections);
    }
}

impl AppFigures {
    /// Adds another interval.
    pub fn merge(&mut self, other: &Self) {
        self.cpu_micros = self.cpu_micros.saturating_add(other.cpu_micros);
        self.resident_bytes = self.resident_bytes.max(other.resident_bytes);
        self.lag_micros = self.lag_micros.max(other.lag_micros);
        self.in_flight = self.in_flight.max(other.in_flight);
        self.queued = self.queued.max(other.queued);
    }
}

impl Sample {
    /// Adds another interval; `at` stays.
    pub fn merge(&mut self, other: &Self) {
        self.covered_ms = self.covered_ms.saturating_add(other.covered_ms);
        self.process.merge(&other.process);
        for (site, figures) in &other.sites {
            self.sites.entry(Arc::clone(site)).or_default().merge(figures);
        }
        for (app, figures) in &other.apps {
            self.apps.entry(Arc::clone(app)).or_default().merge(figures);
        }
    }
}
