//! What `onehop status` and the control socket tell; documented in docs/control-api.md.

use std::collections::BTreeMap;
use std::path::PathBuf;

use onehop_config::checked::limit::Bound;
use onehop_files::store::Store;
use onehop_limits::ConcurrencyLimiter;
use serde::Serialize;

use crate::request::upstream::peer::{PeerCounts, PeerId};

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
    pub limits: Vec<LimitStatus>,
}

/// A `limit` in [`Status`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitStatus {
    /// What it is called.
    pub limit: String,
    /// Requests that may be in flight, as it is now; none where only lateness is bounded.
    pub bound: Option<u32>,
    /// Whether the bound is found out.
    pub is_adaptive: bool,
    /// Requests that are in flight.
    pub in_flight: u32,
    /// Requests that wait.
    pub queued: usize,
    /// Requests that were let in since the start.
    pub let_in: u64,
    /// Requests that were not, by cause; causes that there were.
    pub shed: BTreeMap<&'static str, u64>,
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
    pub connections: ConnectionsStatus,
}

/// Connections in [`UpstreamStatus`]: those that there are, and what happened since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ConnectionsStatus {
    /// Open, or being made.
    pub open: u64,
    /// Without a request.
    pub idle: u64,
    /// Requests that wait for one.
    pub waiting: u64,
    /// Dialled.
    pub dials: u64,
    /// Dialled in vain.
    pub dial_failures: u64,
    /// TLS handshakes.
    pub handshakes: u64,
    /// Those of them that resumed a session.
    pub resumptions: u64,
    /// Requests that took an open one.
    pub reused: u64,
    /// Those of them that took it from another core.
    pub borrowed: u64,
    /// Requests that had to wait for one.
    pub waited: u64,
    /// Closed by the upstream while they had no request.
    pub closed_idle: u64,
    /// Closed here, for they had no request for long.
    pub retired: u64,
}

impl From<PeerCounts> for ConnectionsStatus {
    fn from(counts: PeerCounts) -> Self {
        Self {
            open: counts.open,
            idle: counts.idle,
            waiting: counts.waiting,
            dials: counts.dials,
            dial_failures: counts.dial_failures,
            handshakes: counts.handshakes,
            resumptions: counts.resumptions,
            reused: counts.taken_idle + counts.borrowed,
            borrowed: counts.borrowed,
            waited: counts.waited,
            closed_idle: counts.closed_idle,
            retired: counts.retired,
        }
    }
}

impl ConnectionsStatus {
    /// Counts those of another one in.
    pub(crate) fn add(&mut self, other: &Self) {
        self.open += other.open;
        self.idle += other.idle;
        self.waiting += other.waiting;
        self.dials += other.dials;
        self.dial_failures += other.dial_failures;
        self.handshakes += other.handshakes;
        self.resumptions += other.resumptions;
        self.reused += other.reused;
        self.borrowed += other.borrowed;
        self.waited += other.waited;
        self.closed_idle += other.closed_idle;
        self.retired += other.retired;
    }
}

impl LimitStatus {
    /// What a limiter reports.
    pub(super) fn of(limiter: &ConcurrencyLimiter) -> Self {
        let shed = limiter.rejected().filter(|(_, count)| *count > 0);
        Self {
            limit: limiter.limit().label.clone(),
            bound: (limiter.limit().bound != Bound::Unbounded).then(|| limiter.bound()),
            is_adaptive: limiter.is_adaptive(),
            in_flight: limiter.in_flight(),
            queued: limiter.queued(),
            let_in: limiter.admitted(),
            shed: shed.map(|(cause, count)| (cause.name(), count)).collect(),
        }
    }
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

/// An application in [`Status`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AppStatus {
    /// Its name.
    pub app: String,
    /// `starting`, `serving` or `failing`.
    pub state: &'static str,
    /// Why it fails, if it does.
    pub reason: Option<String>,
    /// Workers that are wanted.
    pub wanted: usize,
    /// Requests that wait for a worker.
    pub queued: usize,
    /// Workers that ended without being told to, since the start.
    pub failures: u64,
    /// Each process.
    pub workers: Vec<WorkerStatus>,
}

/// A process in [`AppStatus`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerStatus {
    /// Process id.
    pub pid: u32,
    /// `starting`, `serving`, `draining` or `stuck`.
    pub state: &'static str,
    /// How it is spoken to: `frames` or `http`; none before it is ready.
    pub protocol: Option<&'static str>,
    /// Requests that it has.
    pub in_flight: usize,
    /// Requests that it is handed at a time; none before it is ready.
    pub concurrency: Option<usize>,
    /// Requests that it was ever handed.
    pub requests: u64,
    /// Seconds since its start.
    pub age_seconds: u64,
    /// Resident bytes, as it last said.
    pub resident_bytes: u64,
    /// Longest delay of its event loop at the last look, in milliseconds.
    pub lag_ms: f64,
}

/// A site in [`Status`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SiteStatus {
    /// Its label.
    pub site: String,
    /// Requests since the start.
    pub requests: u64,
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
}
