//! Counters of one core, and the registry that knows them all.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use onehop_message::error::HttpError;

use crate::request::context::Handler;
use crate::request::core::NoAdmission;

/// Sites with counters of their own; beyond it they are counted together as `_other`. A reload that
/// renames sites over and over must not grow the table for ever.
const SITES_COUNTED_MAX: usize = 1_000;

/// Upper bounds of the latency histogram's buckets, in microseconds; one more bucket takes the rest.
/// From memory an answer takes microseconds, from an application milliseconds to seconds.
pub(super) const BUCKETS_MICROS: [u64; 18] = [
    5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 5_000_000,
];

/// Handlers, in the order of their counters.
pub(super) const HANDLERS: [(Handler, &str); 7] = [
    (Handler::None, "none"),
    (Handler::Respond, "respond"),
    (Handler::Redirect, "redir"),
    (Handler::FileServer, "file_server"),
    (Handler::Spa, "spa"),
    (Handler::App, "app"),
    (Handler::Proxy, "reverse_proxy"),
];

/// Status classes 1xx to 5xx.
pub(super) const CLASSES: usize = 5;

/// A counter with one writer.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    /// Adds; only the owning core calls it, so that no locked instruction is needed.
    fn add(&self, amount: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters of one site on one core; on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct SiteCounters {
    pub(super) requests: [[Counter; CLASSES]; HANDLERS.len()],
    pub(super) sent_bytes: Counter,
    pub(super) buckets: [Counter; BUCKETS_MICROS.len() + 1],
    pub(super) duration_nanos: Counter,
}

impl SiteCounters {
    /// Counts an answer: who made it, its status, the bytes of its body, the time since its head was
    /// complete.
    pub fn answered(&self, handler: Handler, status: u16, sent: u64, took: Duration) {
        let class = usize::from(status / 100).clamp(1, CLASSES) - 1;
        self.requests[handler as usize][class].add(1);
        self.sent_bytes.add(sent);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BUCKETS_MICROS.iter().position(|bound| nanos <= bound * 1_000);
        self.buckets[bucket.unwrap_or(BUCKETS_MICROS.len())].add(1);
        self.duration_nanos.add(nanos);
    }

    /// Requests in all.
    pub fn requests(&self) -> u64 {
        self.requests.iter().flatten().map(Counter::get).sum()
    }
}

/// Counters of one core that belong to no site.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CoreCounters {
    pub(super) opened: Counter,
    pub(super) closed: Counter,
    pub(super) accept_failures: Counter,
    pub(super) too_many: Counter,
    pub(super) too_many_of_address: Counter,
    /// By cause. Causes are a closed set of names in the program, so the table is bounded; a lock of
    /// its own core only, on a path that is not the usual one.
    pub(super) refused: Mutex<BTreeMap<&'static str, (u16, u64)>>,
}

impl CoreCounters {
    pub(crate) fn connection_opened(&self) {
        self.opened.add(1);
    }

    pub(crate) fn connection_closed(&self) {
        self.closed.add(1);
    }

    /// Counts a connection that was not let in.
    pub(crate) fn connection_refused(&self, why: NoAdmission) {
        match why {
            NoAdmission::TooMany => self.too_many.add(1),
            NoAdmission::TooManyOfAddress => self.too_many_of_address.add(1),
        }
    }

    pub(crate) fn accept_failed(&self) {
        self.accept_failures.add(1);
    }

    /// Counts a refusal under its cause.
    pub(crate) fn refused(&self, fault: HttpError) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.entry(fault.name()).or_insert((fault.status(), 0)).1 += 1;
    }
}

/// Every counter of the process.
#[derive(Debug)]
pub struct Registry {
    /// One for each core.
    pub cores: Vec<Arc<CoreCounters>>,
    /// Lines that were lost of all access logs; rare, so that all share it.
    pub log_lines_dropped: Arc<AtomicU64>,
    /// For each site label, one for each core. `_other` takes what reached no site.
    sites: Mutex<BTreeMap<Arc<str>, Vec<Arc<SiteCounters>>>>,
}

/// The label of what reached no site, or a site beyond the bound.
pub const OTHER: &str = "_other";

impl Registry {
    /// Counters for so many cores.
    pub fn new(cores: usize) -> Self {
        let cores = (0..cores).map(|_| Arc::default()).collect();
        let registry = Self { cores, log_lines_dropped: Arc::default(), sites: Mutex::default() };
        registry.site(OTHER);
        registry
    }

    /// The counters of a site, one for each core; the same ones again after a reload.
    pub fn site(&self, label: &str) -> Vec<Arc<SiteCounters>> {
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let label = if sites.len() > SITES_COUNTED_MAX && !sites.contains_key(label) { OTHER } else { label };
        if let Some(counters) = sites.get(label) {
            return counters.clone();
        }
        let counters: Vec<_> = self.cores.iter().map(|_| Arc::default()).collect();
        sites.insert(label.into(), counters.clone());
        counters
    }

    /// Every site with its counters.
    pub fn sites(&self) -> Vec<(Arc<str>, Vec<Arc<SiteCounters>>)> {
        let sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        sites.iter().map(|(label, counters)| (Arc::clone(label), counters.clone())).collect()
    }

    /// Connections opened and closed until now.
    pub fn connections(&self) -> (u64, u64) {
        let sum =
            |which: fn(&CoreCounters) -> &Counter| self.cores.iter().map(|core| which(core).get()).sum();
        (sum(|core| &core.opened), sum(|core| &core.closed))
    }
}
