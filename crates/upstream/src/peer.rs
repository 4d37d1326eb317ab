//! One HTTP server as all cores see it: where it is, how connections to it are made, and the little that is counted
//! for the whole process.
//!
//! Lives as long as anything holds it: a reload that keeps an upstream keeps its peer, and with it its connections.
//! Never dials and holds no connection: those are each core's own ([`crate::pool`]).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use onehop_connection::SlotHolder;
use onehop_connection::core::Core;
use tokio::sync::Notify;

use crate::addresses::Addresses;
use crate::connect_error::ConnectError;
use crate::connection::{Connection, Handover};
use crate::learned_timeout::{self, LearnedTimeout};
use crate::limits::{FAR_DIAL_TIME, WINDOW_KEPT};
use crate::multiplexed::Multiplexed;
use crate::slots::Slots;

/// A server that requests go to.
pub struct Peer {
    /// Unique in the life of the process.
    pub id: PeerId,
    made: Instant,
    /// Its name in logs and metrics. A directive may write the same address in another way.
    pub label: String,
    /// Where it is.
    pub endpoint: Endpoint,
    /// How connections to it are made and kept.
    pub settings: PeerSettings,
    /// No request goes there any more: idle connections are closed.
    is_withdrawn: AtomicBool,
    /// A core without an idle connection asks the others for theirs before it dials.
    is_shared: bool,
    /// The connections and the requests that wait for one.
    pub(crate) slots: Arc<Slots<Handover>>,
    /// The sum of [`CoreCounters::idle_long`], changed at ticks alone.
    idle_long: CachePadded<AtomicUsize>,
    /// Why the last connection that failed has failed.
    last_failure: Mutex<Option<String>>,
    /// Microseconds that the last new connection took, its handshake included.
    dial_micros: AtomicU64,
    /// What its name resolves to, if the endpoint is a name.
    pub(crate) addresses: Addresses,
    /// The last connection negotiated HTTP/1.1, or the settings say so.
    is_http1: AtomicBool,
    /// Requests that wait for a stream.
    pub(crate) waiting_for_streams: AtomicUsize,
    /// How long it keeps idle connections that were never used, and those that were.
    learned: [LearnedTimeout; 2],
    /// What each core counts, on cache lines of its own; made by the first core that asks.
    cores: OnceLock<Box<[CoreCounters]>>,
    /// For a number that is no core's.
    spare: CoreCounters,
}

/// What one core counts; it alone writes.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct CoreCounters {
    /// Idle connections: other cores look here before they ask for one.
    pub(crate) idle: AtomicUsize,
    /// Milliseconds of the peer's life, plus one, at which the idle connection that was used last became idle; 0 where
    /// none is idle here that was ever used.
    newest: AtomicU64,
    /// Connections that have been idle for [`crate::limits::IDLE_COUNTED_AFTER`], as of the last tick.
    idle_long: AtomicUsize,
    /// Idle connections that will soon be closed and are to be replaced before.
    pub(crate) fading: AtomicUsize,
    pub(crate) dials: Counter,
    pub(crate) dial_failures: Counter,
    pub(crate) handshakes: Counter,
    pub(crate) resumptions: Counter,
    pub(crate) taken_idle: Counter,
    pub(crate) stolen: Counter,
    pub(crate) waited: Counter,
    pub(crate) closed_idle: Counter,
    pub(crate) retired: Counter,
}

/// A number that grows, with one writer.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

/// What a peer has and what happened to it, over all cores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PeerCounts {
    /// Connections that are open or being made, now.
    pub open: u64,
    /// Idle connections, now.
    pub idle: u64,
    /// Requests that wait for a connection, now.
    pub waiting: u64,
    /// Connections that were dialled.
    pub dials: u64,
    /// Those of them that failed, their handshakes included.
    pub dial_failures: u64,
    /// TLS handshakes that succeeded.
    pub handshakes: u64,
    /// Those of them that resumed a session.
    pub resumptions: u64,
    /// Requests that took an idle connection of their core.
    pub taken_idle: u64,
    /// Requests that took one of another core.
    pub stolen: u64,
    /// Requests that waited for one.
    pub waited: u64,
    /// Idle connections that the peer closed, or broke.
    pub closed_idle: u64,
    /// Connections that were closed because they had been idle for too long.
    pub retired: u64,
}

/// Unique in the life of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u64);

/// Where a peer is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// An address.
    Address(SocketAddr),
    /// A name that is resolved, again and again, and a port.
    Name(String, u16),
    /// A Unix socket, and the user that must listen there where that matters (see [`crate::dial::connect_unix`]).
    Unix(PathBuf, Option<u32>),
}

/// How connections to a peer are made and kept. The default leaves no time to connect, and keeps no connection.
#[derive(Clone, Default)]
pub struct PeerSettings {
    /// Encrypted; `None`: in the clear.
    pub tls: Option<Tls>,
    /// The versions of HTTP that are spoken.
    pub versions: Versions,
    /// Bounds resolving and connecting together.
    pub dial_timeout: Duration,
    /// How long the second family of addresses waits for the first; `None`: for its failure.
    pub fallback_delay: Option<Duration>,
    /// The interval of TCP keepalive probes. For so long a request waits for a silent connection of HTTP/2 before a PING asks
    /// it, and for as long again before that connection is given up.
    pub probe_interval: Option<Duration>,
    /// How long a connection beyond the minimum is kept without a request; zero: not at all.
    pub idle_timeout: Duration,
    /// Maximum idle connections over all cores. Only connections that have been idle for
    /// [`crate::limits::IDLE_COUNTED_AFTER`] count.
    pub idle_max: usize,
    /// Minimum open connections at all times, over all cores, tunnels not counted; over HTTP/2 at least one for each core,
    /// unless zero.
    pub connections_min: usize,
    /// Maximum connections over all cores.
    pub connections_max: Option<usize>,
    /// Maximum requests that wait for one of those, over all cores, and for how long.
    pub queue: (usize, Duration),
}

/// Which versions of HTTP are spoken to a peer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Versions {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2: negotiated in the handshake, or known beforehand in the clear.
    Http2,
    /// What the peer chooses in the handshake of TLS.
    Negotiated,
}

/// How a peer's connections are encrypted.
#[derive(Clone)]
pub struct Tls {
    /// Which certificates to trust, which to show.
    pub config: Arc<rustls::ClientConfig>,
    /// The name that is asked for and verified.
    pub name: rustls::pki_types::ServerName<'static>,
    /// How long the handshake may take.
    pub timeout: Duration,
}

impl Peer {
    /// A peer without connections.
    pub fn new(label: String, endpoint: Endpoint, settings: PeerSettings) -> Arc<Self> {
        Self::with(label, endpoint, settings, true)
    }

    /// A peer on this machine, where a new connection costs less than asking another core for one.
    pub fn nearby(label: String, endpoint: Endpoint, settings: PeerSettings) -> Arc<Self> {
        Self::with(label, endpoint, settings, false)
    }

    fn with(label: String, endpoint: Endpoint, settings: PeerSettings, is_shared: bool) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self {
            id: PeerId(NEXT.fetch_add(1, Ordering::Relaxed)),
            made: Instant::now(),
            label,
            endpoint,
            is_withdrawn: AtomicBool::new(false),
            is_shared,
            slots: Slots::new(settings.connections_max),
            is_http1: AtomicBool::new(settings.versions == Versions::Http1),
            waiting_for_streams: AtomicUsize::default(),
            settings,
            idle_long: CachePadded::default(),
            last_failure: Mutex::default(),
            dial_micros: AtomicU64::new(u64::MAX),
            addresses: Addresses::default(),
            learned: Default::default(),
            cores: OnceLock::new(),
            spare: CoreCounters::default(),
        })
    }

    /// No request goes there any more.
    pub fn withdraw(&self) {
        self.is_withdrawn.store(true, Ordering::Release);
    }

    /// Whether no request goes there any more.
    pub fn is_withdrawn(&self) -> bool {
        self.is_withdrawn.load(Ordering::Acquire)
    }

    /// Publishes what its name resolves to; an empty list changes nothing. Connections to addresses that are no longer
    /// among them are used up.
    pub fn publish_addresses(&self, addresses: Vec<SocketAddr>) {
        self.addresses.publish(addresses);
    }

    /// Its name was not resolved, for this reason. Addresses that are known stay.
    pub fn publish_failure(&self, reason: String) {
        self.addresses.fail(reason);
    }

    /// Wakes this when a connection to its name has failed: the name may resolve to other addresses by now.
    pub fn follow_doubts(&self, notify: Arc<Notify>) {
        self.addresses.follow_doubts(notify);
    }

    /// A connection to its name has failed: asks for another resolution.
    pub fn doubt(&self) {
        self.addresses.doubt();
    }

    /// Whether a connection has failed since this was last called.
    pub fn take_doubt(&self) -> bool {
        self.addresses.take_doubt()
    }

    /// What its name resolves to, as far as is known.
    pub fn addresses(&self) -> Arc<[SocketAddr]> {
        self.addresses.known()
    }

    /// Why its name was not resolved.
    pub fn resolution_failure(&self) -> Option<Arc<str>> {
        self.addresses.failure()
    }

    /// What it has, and what happened to it.
    pub fn counts(&self) -> PeerCounts {
        let sum = |counter: fn(&CoreCounters) -> &Counter| {
            self.each_core().map(|core| counter(core).get()).sum::<u64>()
        };
        PeerCounts {
            open: self.open() as u64,
            idle: self.idle() as u64,
            waiting: (self.waiting() + self.waiting_for_streams.load(Ordering::Relaxed)) as u64,
            dials: sum(|core| &core.dials),
            dial_failures: sum(|core| &core.dial_failures),
            handshakes: sum(|core| &core.handshakes),
            resumptions: sum(|core| &core.resumptions),
            taken_idle: sum(|core| &core.taken_idle),
            stolen: sum(|core| &core.stolen),
            waited: sum(|core| &core.waited),
            closed_idle: sum(|core| &core.closed_idle),
            retired: sum(|core| &core.retired),
        }
    }

    /// Connections that are open or being made.
    pub fn open(&self) -> usize {
        self.slots.open()
    }

    /// Idle connections, of all cores.
    pub fn idle(&self) -> usize {
        self.each_core().map(|core| core.idle.load(Ordering::SeqCst)).sum()
    }

    /// Requests that wait for a connection.
    pub fn waiting(&self) -> usize {
        self.slots.waiting()
    }

    /// How long it keeps an idle connection, as far as that was learned from those it closed.
    pub fn closes_after(&self) -> Option<Duration> {
        self.learned.iter().filter_map(LearnedTimeout::closes_after).min()
    }

    /// Why the last connection that could not be made could not be made, for a person.
    pub fn last_failure(&self) -> Option<String> {
        self.last_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn note_failure(&self, reason: &ConnectError) {
        *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_string());
    }

    /// Minimum open connections without tunnels: those of HTTP/2 stay on their core, so that each core needs one.
    pub(crate) fn idle_min(&self) -> usize {
        match self.settings.connections_min {
            min @ 1.. if !self.is_http1() => min.max(self.each_core().len()),
            min => min,
        }
    }

    /// Minimum open connections now: tunnels that last for hours leave none for the next request.
    pub(crate) fn connections_min(&self) -> usize {
        self.idle_min().saturating_add(self.slots.tunnels())
    }

    /// How long the last new connection took, its handshake included; very long before the first.
    pub(crate) fn dial_time(&self) -> Duration {
        Duration::from_micros(self.dial_micros.load(Ordering::Relaxed))
    }

    pub(crate) fn note_dial_time(&self, took: Duration) {
        self.dial_micros.store(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Whether it is so far away that it matters which of its connections is taken.
    pub(crate) fn is_far(&self) -> bool {
        self.is_shared && self.dial_time() >= FAR_DIAL_TIME
    }

    /// Whether its connections are of HTTP/1, as far as is known.
    pub(crate) fn is_http1(&self) -> bool {
        self.is_http1.load(Ordering::Relaxed)
    }

    /// A connection has negotiated its version.
    pub(crate) fn note_negotiated(&self, is_http1: bool) {
        self.is_http1.store(is_http1, Ordering::Relaxed);
    }

    /// Whether a core asks others for their idle connections.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Tells the other cores when this core's newest idle connection was used last.
    pub(crate) fn publish_newest(&self, core: &Core, newest: Option<&Connection>) {
        let used = newest.filter(|connection| connection.is_used());
        let newest = used.map_or(0, |connection| self.age_at(connection.idle_since()));
        self.counters(core).newest.store(newest, Ordering::Relaxed);
    }

    /// The other core whose newest connection was used later than this core's, where the latter's window may be gone.
    pub(crate) fn newer_elsewhere(&self, core: &Core, now: Instant) -> Option<usize> {
        let ours = self.counters(core).newest.load(Ordering::Relaxed);
        let kept = u64::try_from(WINDOW_KEPT.as_millis()).unwrap_or(u64::MAX);
        if ours > 0 && self.age_at(now).saturating_sub(ours) < kept {
            return None;
        }
        let cores = self.each_core().enumerate();
        let newest = cores.map(|(number, core)| (core.newest.load(Ordering::Relaxed), number)).max()?;
        (newest.0 > ours).then_some(newest.1)
    }

    fn age_at(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.made).as_millis())
            .unwrap_or(u64::MAX)
            .saturating_add(1)
    }

    /// Publishes how many of a core's connections count towards `idle_max`.
    pub(crate) fn note_idle_long(&self, core: &Core, count: usize) {
        let before = self.counters(core).idle_long.swap(count, Ordering::Relaxed);
        self.idle_long.fetch_add(count.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Whether one of those is over the bound; it counts no more and has to be closed.
    pub(crate) fn is_idle_over_bound(&self, core: &Core) -> bool {
        let bound = self.settings.idle_max.max(self.settings.connections_min);
        let lower = |count| (count > bound).then(|| count - 1);
        let is_over = self.idle_long.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lower).is_ok();
        if is_over {
            self.counters(core).idle_long.fetch_sub(1, Ordering::Relaxed);
        }
        is_over
    }

    /// Idle connections that will soon be closed, of all cores.
    pub(crate) fn fading(&self) -> usize {
        self.each_core().map(|core| core.fading.load(Ordering::Relaxed)).sum()
    }

    /// What this core counts.
    pub(crate) fn counters(&self, core: &Core) -> &CoreCounters {
        let cores = self.cores.get_or_init(|| (0..core.cores()).map(|_| CoreCounters::default()).collect());
        cores.get(core.number).unwrap_or(&self.spare)
    }

    /// Idle connections of a core.
    pub(crate) fn idle_on(&self, core: usize) -> usize {
        let core = self.cores.get().and_then(|cores| cores.get(core));
        core.map_or(0, |core| core.idle.load(Ordering::SeqCst))
    }

    /// Counts an idle connection that the peer has closed, or that it spoke on.
    pub(crate) fn note_closed(&self, core: &Core, connection: &Connection, now: Instant) {
        self.counters(core).closed_idle.count();
        // What it says is of no use either way, and mostly a goodbye: Node responds with 408 to a connection without a
        // request when its timeout ends.
        let learned = self.learned(connection);
        learned.closed(connection.idle_since(), connection.idle_at_least(), now);
    }

    /// What was learned of how long it keeps idle connections like this one.
    pub(crate) fn learned(&self, connection: &Connection) -> &LearnedTimeout {
        let [unused, used] = &self.learned;
        if connection.is_used() { used } else { unused }
    }

    /// Forgets what was learned too long ago.
    pub(crate) fn forget_learned(&self, now: Instant) {
        for learned in &self.learned {
            learned.forget_at(now);
        }
    }

    /// The idle timeout that the peer has for this connection, as far as is known.
    pub(crate) fn idle_timeout_of(&self, connection: &Connection) -> Option<Duration> {
        let learned = self.learned(connection).closes_after();
        [connection.keep_alive_timeout(), learned].into_iter().flatten().min()
    }

    /// How long this connection may be idle before the peer is about to close it.
    pub(crate) fn idle_time_max(&self, connection: &Connection) -> Duration {
        self.idle_timeout_of(connection).map_or(Duration::MAX, learned_timeout::idle_time_max)
    }

    /// Whether the address that a connection leads to is still one of the peer's.
    pub(crate) fn is_current(&self, connection: &Connection) -> bool {
        self.addresses.is_current(connection.address(), connection.generation())
    }

    /// The same of a connection of HTTP/2.
    pub(crate) fn is_current_http2(&self, connection: &Multiplexed) -> bool {
        self.addresses.is_current(connection.address, &connection.generation)
    }

    fn each_core(&self) -> std::slice::Iter<'_, CoreCounters> {
        self.cores.get().map(|cores| &cores[..]).unwrap_or_default().iter()
    }
}

impl Counter {
    /// Only the core that owns the counters calls this, so that no locked instruction is needed.
    pub(crate) fn count(&self) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl SlotHolder for Peer {
    fn is_wanted(&self) -> bool {
        self.waiting() > 0
    }

    fn capacity(&self) -> u64 {
        self.settings.connections_max.map_or(u64::MAX, |most| most as u64)
    }
}
