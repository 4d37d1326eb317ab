//! What `onehop status` and the control socket tell; documented in docs/control-api.md.

use std::path::PathBuf;
use std::sync::Arc;

use onehop_files::store::Store;
use onehop_metrics::histogram::Snapshot;
use onehop_metrics::site::{HandlerTotals, SiteCounters};
use onehop_metrics::stats::limiters::LimiterStats;
use onehop_metrics::stats::rate_limits::RateLimitStats;
use onehop_metrics::stats::upstreams::ConnectionStats;
use onehop_supervisor::AppStatus;
use onehop_upstream::peer::PeerId;
use serde::Serialize;

use super::certificate_report::CertificatesStatus;

/// What `onehop status` shows; documented in docs/control-api.md.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// The program's version.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// Seconds since the start.
    pub uptime_seconds: u64,
    /// Core threads.
    pub threads: usize,
    /// Bound addresses.
    pub listening: Vec<String>,
    /// Address of `/metrics`, if any.
    pub admin: Option<String>,
    /// Reloads since the start.
    pub reloads: u64,
    /// Connections now.
    pub open_connections: u64,
    /// Requests since the start.
    pub requests: u64,
    /// Each site.
    pub sites: Vec<SiteStatus>,
    /// Each root in memory.
    pub stores: Vec<StoreStatus>,
    /// Each application.
    pub apps: Vec<AppStatus>,
    /// Each `reverse_proxy`.
    pub proxies: Vec<ProxyStatus>,
    /// Each `limit`, and the protection of each application.
    pub limits: Vec<LimiterStats>,
    /// Each `rate_limit`.
    pub rate_limits: Vec<RateLimitStats>,
    /// How many certificates there are, and those that have a problem.
    pub certificates: CertificatesStatus,
}

/// A `reverse_proxy` in [`Status`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProxyStatus {
    /// Its upstreams as written.
    pub proxy: String,
    /// `lb_policy`.
    pub policy: &'static str,
    /// Each upstream.
    pub upstreams: Vec<UpstreamStatus>,
}

/// An upstream in [`ProxyStatus`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UpstreamStatus {
    /// As written, without its scheme.
    pub upstream: String,
    /// Who it is: the same one may be an upstream of several.
    #[serde(skip)]
    pub peer: PeerId,
    /// `up`; `down` by its answers to questions; `failing` by what requests met; `full`.
    pub state: &'static str,
    /// Why it is not up.
    pub reason: Option<String>,
    /// How long it has been down.
    pub down_seconds: Option<u64>,
    /// Addresses that requests have made of its placeholders; 1 where it has none.
    pub addresses: usize,
    /// Requests that it has.
    pub in_flight: u64,
    /// Failures that requests met at its address since the start.
    pub failures: u64,
    /// Requests that were tried again after they had failed there.
    pub retries: u64,
    /// How long its answers take: an average that peaks count in at once, a failure as a second; none before the first.
    pub latency_ms: Option<f64>,
    /// Its connections. Upstreams that several directives name in the same way share theirs.
    pub connections: ConnectionStats,
}

impl UpstreamStatus {
    /// Counts another one in.
    pub(super) fn add(&mut self, other: &Self) {
        self.in_flight += other.in_flight;
        self.failures += other.failures;
        self.retries += other.retries;
        self.latency_ms = [self.latency_ms, other.latency_ms].into_iter().flatten().reduce(f64::max);
        self.connections.add(&other.connections);
    }
}

/// A site in [`Status`], since the start. The percentiles leave out streams, cold starts and rejected requests.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SiteStatus {
    /// Its label.
    pub site: String,
    /// Requests.
    pub requests: u64,
    /// Requests that were answered with a status of 500 or above.
    pub errors: u64,
    /// Requests that were rejected because there was too much to do.
    pub rejected: u64,
    /// The median of the latency in milliseconds, at most 5 % off; none before the first request.
    pub p50_ms: Option<f64>,
    /// The 99th percentile.
    pub p99_ms: Option<f64>,
    /// Requests that came before the worker that answered them had answered any.
    pub cold_starts: u64,
    /// The latency of the slowest of them.
    pub slowest_cold_start_ms: Option<f64>,
    /// Streams that have started: events, tunnels, long responses of unknown length.
    pub streams: u64,
    /// Streams of events and tunnels that are open.
    pub streams_open: u64,
    /// Its applications.
    pub apps: Vec<String>,
}

impl SiteStatus {
    /// What a site has counted on each core.
    pub(super) fn of(site: &str, cores: &[Arc<SiteCounters>]) -> Self {
        let totals = HandlerTotals::of(cores);
        let milliseconds = |latency: &Snapshot, share| {
            let quantile = latency.quantile(share)?;
            Some(quantile.as_nanos() as f64 / 1_000_000.0)
        };
        Self {
            site: site.to_owned(),
            requests: totals.requests(),
            errors: totals.errors(),
            rejected: totals.rejected,
            p50_ms: milliseconds(&totals.durations, 0.5),
            p99_ms: milliseconds(&totals.durations, 0.99),
            cold_starts: totals.cold_starts.count(),
            slowest_cold_start_ms: milliseconds(&totals.cold_starts, 1.0),
            streams: totals.streams(),
            streams_open: totals.streams_open,
            apps: Vec::new(),
        }
    }
}

/// A root in [`Status`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoreStatus {
    /// The root.
    pub root: PathBuf,
    /// Files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes in memory as they are.
    pub stored_bytes: u64,
    /// Bytes in memory in compressed forms.
    pub compressed_bytes: u64,
    /// Files streamed from disk.
    pub on_disk: usize,
}

impl StoreStatus {
    /// What a store holds.
    pub(super) fn of(store: &Store) -> Self {
        let totals = &store.totals;
        let (loaded, loaded_coded) = store.loaded_bytes();
        let (kept, kept_coded) = store.kept_bytes();
        Self {
            root: store.root.clone(),
            files: totals.files,
            bytes: totals.bytes,
            stored_bytes: totals.stored_bytes + loaded + kept,
            compressed_bytes: totals.compressed_bytes + loaded_coded + kept_coded,
            on_disk: totals.on_disk,
        }
    }
}

/// What a reload did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReloadSummary {
    /// Sites now.
    pub sites: usize,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
    /// Changed global options that need a restart.
    pub at_next_start: Vec<&'static str>,
}
