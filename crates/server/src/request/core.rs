//! What one core owns: its view of the snapshot, its counters and log batches, its connections to workers and upstreams.
//!
//! Used by one thread only. What several cores share is [`Shared`], and nothing else.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use onehop_acme::MemoryChallenges;
use onehop_connection::limits::Timeouts;
use onehop_limits::log_sampling::LogSampling;
use onehop_metrics::access_log::LogBatches;
use onehop_metrics::counters::CoreCounters;
use onehop_metrics::site::SiteCounters;
use onehop_otlp::Traces;
use onehop_tls::ChainTable;
use onehop_upstream::{Mailboxes, Pools};
use onehop_workers::{Windows, WorkerConnections};

use super::incidents::Incidents;
use super::per_address::{Addresses, Counted, Verdict};
use super::retained::{Retained, RetainedRequest};
use super::route::Snapshot;
use super::visits::{self, FrequentOfSite, Visits};

/// What all cores of the process share. Written rarely, except for the one connection counter.
pub struct Shared {
    snapshot: ArcSwap<Snapshot>,
    /// What connections, upstreams and workers need of it.
    pub(crate) connection: Arc<onehop_connection::Shared>,
    /// Raised with every publication, so that a core sees with one load whether there is a new one.
    generation: AtomicU64,
    connections: Padded<AtomicUsize>,
    connections_max: AtomicUsize,
    /// Streams of HTTP/2 beyond the first of each connection.
    streams: Padded<AtomicUsize>,
    /// Connections and such streams for which there is memory: either takes as much.
    busy_max: AtomicUsize,
    /// Where cores ask each other for idle connections to upstreams.
    pub(crate) mailboxes: Arc<Mailboxes>,
    /// How much of bodies may be on its way on each worker connection.
    pub(crate) windows: Windows,
    /// Who has how many connections, where that is bounded.
    addresses: Arc<Addresses>,
    /// Failures to report.
    pub(crate) incidents: Incidents,
    /// Slow and failed requests of each core.
    retained: Box<[Retained]>,
    /// What is asked for most, of each core.
    visits: Box<[Visits]>,
    /// Certificates that are obtained and renewed: changes without a new snapshot.
    chains: Arc<ArcSwap<ChainTable>>,
    /// What issuers of certificates may ask for now.
    pub(crate) challenges: Arc<MemoryChallenges>,
    /// Where spans go.
    traces: Option<Traces>,
}

/// A counter with a cache line (and its neighbour, which is fetched along) of its own.
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

impl Shared {
    /// The shared state of this many cores that begins with this snapshot.
    pub fn new(snapshot: Arc<Snapshot>, cores: usize, connections_max: usize, timeouts: Timeouts) -> Self {
        Self {
            snapshot: ArcSwap::new(snapshot),
            generation: AtomicU64::new(1),
            connections: Padded(AtomicUsize::new(0)),
            connections_max: AtomicUsize::new(connections_max),
            streams: Padded(AtomicUsize::new(0)),
            busy_max: AtomicUsize::new(connections_max),
            connection: Arc::new(onehop_connection::Shared::new(cores, connections_max, timeouts)),
            mailboxes: Arc::new(Mailboxes::new(cores)),
            windows: Windows::default(),
            addresses: Arc::default(),
            incidents: Incidents::default(),
            retained: (0..cores).map(|_| Retained::default()).collect(),
            visits: (0..cores).map(|_| Visits::default()).collect(),
            chains: Arc::default(),
            challenges: Arc::default(),
            traces: None,
        }
    }

    /// The same with a place for spans.
    #[must_use]
    pub fn with_traces(mut self, traces: Traces) -> Self {
        self.traces = Some(traces);
        self
    }

    /// Where spans go.
    pub(crate) fn traces(&self) -> Option<&Traces> {
        self.traces.as_ref()
    }

    /// The same with these tables of certificates and challenges, which others change.
    #[must_use]
    pub fn with_certificates(
        mut self,
        chains: Arc<ArcSwap<ChainTable>>,
        challenges: Arc<MemoryChallenges>,
    ) -> Self {
        (self.chains, self.challenges) = (chains, challenges);
        self
    }

    /// Certificates that are obtained and renewed, as they are now.
    pub(crate) fn chains(&self) -> arc_swap::Guard<Arc<ChainTable>> {
        self.chains.load()
    }

    /// The same with these windows of worker connections; without this with the widest.
    #[must_use]
    pub fn with_windows(mut self, windows: Windows) -> Self {
        self.windows = windows;
        self
    }

    /// Every request that begins from now on sees this snapshot.
    pub fn publish(&self, snapshot: Arc<Snapshot>) {
        self.snapshot.store(snapshot);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Slow and failed requests of the last minutes, the newest first.
    pub fn retained(&self) -> Vec<RetainedRequest> {
        let mut all: Vec<_> = self.retained.iter().flat_map(Retained::all).collect();
        all.sort_by(|one, other| (other.at, &other.id).cmp(&(one.at, &one.id)));
        all
    }

    /// What is asked for most at a site.
    pub(crate) fn frequent(&self, site: &str) -> FrequentOfSite {
        visits::of_site(&self.visits, site)
    }

    /// Connections that are open now.
    pub fn open_connections(&self) -> usize {
        self.connections.0.load(Ordering::Relaxed)
    }

    /// Connections that may be open.
    pub fn connections_max(&self) -> usize {
        self.connections_max.load(Ordering::Relaxed)
    }

    /// From now on so many connections may be open, and so many connections and streams together; those that are stay.
    pub fn set_connections_max(&self, most: usize, busy_most: usize) {
        self.busy_max.store(busy_most.max(most), Ordering::Relaxed);
        self.connections_max.store(most, Ordering::Relaxed);
        self.connection.set_connections_max(most);
    }

    /// See [`onehop_connection::Shared::begin_stop`].
    pub fn begin_stop(&self, shutdown_grace: Duration) {
        self.connection.begin_stop(shutdown_grace);
    }

    /// Whether a stop has begun.
    pub fn is_stopping(&self) -> bool {
        self.connection.is_stopping()
    }
}

/// One core.
pub struct Core {
    /// From 0.
    pub number: usize,
    /// What connections, upstreams and workers need of it.
    pub(crate) connection: Rc<onehop_connection::Core>,
    /// See [`Shared`].
    pub shared: Arc<Shared>,
    /// This core's own counters.
    pub counters: Arc<CoreCounters>,
    /// Counters of requests that reached no site.
    pub other: Arc<SiteCounters>,
    pub(crate) logs: LogBatches,
    /// Which of those that are not let in are logged.
    pub(crate) rejection_lines: LogSampling,
    /// To workers of applications.
    pub(crate) workers: Rc<WorkerConnections>,
    /// To upstreams.
    pub(crate) upstreams: Rc<Pools>,
    /// TLS handshakes on their way.
    pub(crate) handshakes: Cell<u32>,
    view: RefCell<Rc<View>>,
    seen: Cell<u64>,
}

/// A snapshot as one core holds it: requests count references to this, not to what cores share.
pub(crate) struct View {
    pub(crate) snapshot: Arc<Snapshot>,
}

impl Core {
    /// A core at its start.
    pub fn new(
        number: usize,
        shared: Arc<Shared>,
        counters: Arc<CoreCounters>,
        other: Arc<SiteCounters>,
    ) -> Self {
        let seen = shared.generation.load(Ordering::Acquire);
        let view = Rc::new(View { snapshot: shared.snapshot.load_full() });
        let connection = Rc::new(onehop_connection::Core::new(number, Arc::clone(&shared.connection)));
        let upstreams = Pools::new(Rc::clone(&connection), Arc::clone(&shared.mailboxes));
        let workers = WorkerConnections::new(number, shared.windows);
        Self {
            number,
            connection,
            shared,
            counters,
            other,
            logs: LogBatches::default(),
            rejection_lines: LogSampling::default(),
            workers,
            upstreams,
            handshakes: Cell::new(0),
            view: RefCell::new(view),
            seen: Cell::new(seen),
        }
    }

    /// The newest snapshot: one load where nothing changed.
    pub(crate) fn view(&self) -> Rc<View> {
        let newest = self.shared.generation.load(Ordering::Acquire);
        if newest != self.seen.get() {
            self.seen.set(newest);
            *self.view.borrow_mut() = Rc::new(View { snapshot: self.shared.snapshot.load_full() });
        }
        Rc::clone(&self.view.borrow())
    }

    /// Where this core keeps slow and failed requests.
    pub(crate) fn retained(&self) -> Option<&Retained> {
        self.shared.retained.get(self.number)
    }

    /// Where this core counts what is asked for most.
    pub(crate) fn visits(&self) -> Option<&Visits> {
        self.shared.visits.get(self.number)
    }

    /// This core's counters of a site; of requests that reached no site, where there is none.
    pub(crate) fn site_counters<'a>(&'a self, view: &'a View, site: Option<usize>) -> &'a SiteCounters {
        let site = site.and_then(|number| view.snapshot.sites.get(number));
        site.and_then(|site| site.counters.get(self.number)).unwrap_or(&self.other)
    }

    /// What is done at every tick, whether or not requests come: deadlines, date, logs, and letting
    /// go of an old snapshot.
    pub(crate) fn tick(self: &Rc<Self>) {
        self.connection.tick();
        self.tick_upstreams();
        self.rejection_lines.tick();
        self.logs.flush();
        if let Some(retained) = self.retained() {
            retained.tick(Instant::now());
        }
        if self.number == 0 {
            self.shared.incidents.tick(Instant::now());
        }
    }

    /// Looks after connections to upstreams, and lets go of an old snapshot.
    fn tick_upstreams(&self) {
        let view = self.view();
        let proxies = &view.snapshot.proxies;
        let peers = proxies.iter().flat_map(|proxy| &proxy.members).map(|member| &member.peer);
        self.upstreams.keep_open(self.seen.get(), peers);
        if self.number == 0 {
            // The tables are shared: one core looks after them.
            let now = Instant::now();
            proxies.iter().for_each(|proxy| proxy.forget_unused(now));
        }
        self.upstreams.tick();
    }
}

/// One open connection; counted while it lives.
pub(crate) struct Admission {
    core: Rc<Core>,
    /// Streams that are counted, beyond the first.
    streams: usize,
    /// Of its address, where that is counted.
    of_address: Option<Counted>,
}

/// Why a connection is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoAdmission {
    /// The process has all that it may have.
    TooMany,
    /// Its address has.
    TooManyOfAddress,
}

impl Admission {
    /// Counts a connection from there, or refuses it.
    pub(crate) fn take(core: &Rc<Core>, peer: Option<SocketAddr>) -> Result<Self, NoAdmission> {
        let of_address = Self::of_address(core, peer)?;
        let shared = &core.shared;
        let open = &shared.connections.0;
        let before = open.fetch_add(1, Ordering::Relaxed);
        let busy = before + shared.streams.0.load(Ordering::Relaxed);
        if before >= shared.connections_max() || busy >= shared.busy_max.load(Ordering::Relaxed) {
            open.fetch_sub(1, Ordering::Relaxed);
            return Err(NoAdmission::TooMany);
        }
        core.counters.connection_opened();
        Ok(Self { core: Rc::clone(core), streams: 0, of_address })
    }

    /// Counts the streams of the connection: each beyond the first takes as much memory as a connection with one request.
    /// False where there is no room for more.
    pub(crate) fn count_streams(&mut self, streams: usize) -> bool {
        let more = streams.saturating_sub(1).saturating_sub(self.streams);
        let shared = &self.core.shared;
        if more > 0 {
            let busy = shared.streams.0.fetch_add(more, Ordering::Relaxed) + more + shared.open_connections();
            if busy > shared.busy_max.load(Ordering::Relaxed) {
                shared.streams.0.fetch_sub(more, Ordering::Relaxed);
                return false;
            }
        }
        self.streams += more;
        true
    }

    /// Counts the connection for the client that it turned out to be from, or refuses it.
    pub(crate) fn count_for(&mut self, peer: Option<SocketAddr>) -> Result<(), NoAdmission> {
        self.of_address = Self::of_address(&self.core, peer)?;
        Ok(())
    }

    fn of_address(core: &Core, peer: Option<SocketAddr>) -> Result<Option<Counted>, NoAdmission> {
        match core.shared.addresses.ask(&core.view().snapshot.per_address, peer) {
            Verdict::Stays(counted) => Ok(counted),
            Verdict::TooMany => Err(NoAdmission::TooManyOfAddress),
        }
    }

    /// Forgets the streams of a connection that has none.
    pub(crate) fn forget_streams(&mut self) {
        if self.streams > 0 {
            self.core.shared.streams.0.fetch_sub(std::mem::take(&mut self.streams), Ordering::Relaxed);
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.forget_streams();
        self.core.shared.connections.0.fetch_sub(1, Ordering::Relaxed);
        self.core.counters.connection_closed();
    }
}
