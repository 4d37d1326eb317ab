//! What one core owns: its view of the snapshot, its buffers, deadlines, counters and log batches.
//!
//! Used by one thread only. What several cores share is [`Shared`], and nothing else.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use onehop_limits::log_sampling::LogSampling;

use super::conn::deadline::Deadlines;
use super::conn::desk::Desk;
use super::handle::app::lane::{Lanes, Windows};
use super::handle::encode::CoderRoom;
use super::incidents::Incidents;
use super::per_address::{Addresses, Counted, Verdict};
use super::reserve::Reserve;
use super::route::Snapshot;
use super::slow::Slow;
use super::upstream::floor;
use super::upstream::lend::Doors;
use super::upstream::pool::Upstreams;
use crate::limits::{CLIENT_BUFFERS_BYTES_MAX, CLIENT_BUFFERS_PART, CONNECTION_BYTES, Timeouts};
use crate::observe::access_log::LogBatches;
use crate::observe::{CoreCounters, SiteCounters};

/// What all cores of the process share. Written rarely, except for the one connection counter.
pub struct Shared {
    snapshot: ArcSwap<Snapshot>,
    /// Raised with every publication, so that a core sees with one load whether there is a new one.
    generation: AtomicU64,
    connections: Padded<AtomicUsize>,
    connections_max: AtomicUsize,
    /// Deadlines of connections.
    pub(crate) timeouts: Timeouts,
    stopping: AtomicBool,
    /// Milliseconds; meaningless before a stop.
    farewell: AtomicU64,
    /// Where cores ask each other for idle connections to upstreams.
    pub(crate) doors: Doors,
    /// How much of bodies may be on its way on each lane.
    pub(crate) windows: Windows,
    /// Who has how many connections, where that is bounded.
    addresses: Arc<Addresses>,
    /// What slow clients hold.
    pub(crate) slow: Arc<Slow>,
    /// Failures to report.
    pub(crate) incidents: Incidents,
    /// What compresses bodies on their way.
    pub(crate) coders: Arc<CoderRoom>,
}

/// A counter with a cache line (and its neighbour, which is fetched along) of its own.
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

impl Shared {
    /// Shared state that begins with this snapshot.
    pub fn new(snapshot: Arc<Snapshot>, connections_max: usize, timeouts: Timeouts) -> Self {
        Self {
            snapshot: ArcSwap::new(snapshot),
            generation: AtomicU64::new(1),
            connections: Padded(AtomicUsize::new(0)),
            connections_max: AtomicUsize::new(connections_max),
            timeouts,
            stopping: AtomicBool::new(false),
            farewell: AtomicU64::new(0),
            doors: Doors::new(1),
            windows: Windows::default(),
            addresses: Arc::default(),
            slow: Arc::default(),
            incidents: Incidents::default(),
            coders: Arc::default(),
        }
    }

    /// The same for so many cores; without this for one.
    #[must_use]
    pub fn with_cores(mut self, cores: usize) -> Self {
        self.doors = Doors::new(cores);
        self
    }

    /// The same with these windows of lanes; without this with the widest.
    #[must_use]
    pub fn with_windows(mut self, windows: Windows) -> Self {
        self.windows = windows;
        self
    }

    /// How many cores there are.
    pub(crate) fn cores(&self) -> usize {
        self.doors.count()
    }

    /// Every request that begins from now on sees this snapshot.
    pub fn publish(&self, snapshot: Arc<Snapshot>) {
        self.snapshot.store(snapshot);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Connections that are open now.
    pub fn open_connections(&self) -> usize {
        self.connections.0.load(Ordering::Relaxed)
    }

    /// Connections that may be open.
    pub fn connections_max(&self) -> usize {
        self.connections_max.load(Ordering::Relaxed)
    }

    /// Bytes of request bodies and responses that may be held for slow clients.
    pub(crate) fn client_buffers_max(&self) -> u64 {
        let within_connections = self.connections_max() as u64 * CONNECTION_BYTES / CLIENT_BUFFERS_PART;
        within_connections.min(CLIENT_BUFFERS_BYTES_MAX)
    }

    /// From now on so many connections may be open; those that are stay.
    pub fn set_connections_max(&self, most: usize) {
        self.connections_max.store(most, Ordering::Relaxed);
    }

    /// From now on kept connections are closed after their answer, and tunnels of workers that have not closed
    /// them by themselves so much later.
    pub fn begin_stop(&self, farewell: Duration) {
        self.farewell.store(u64::try_from(farewell.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.stopping.store(true, Ordering::Release);
    }

    /// How long after the beginning of a stop tunnels may be open.
    pub(crate) fn farewell(&self) -> Duration {
        Duration::from_millis(self.farewell.load(Ordering::Relaxed))
    }

    /// Whether a stop has begun.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

/// One core.
pub struct Core {
    /// From 0.
    pub number: usize,
    /// See [`Shared`].
    pub shared: Arc<Shared>,
    /// This core's own counters.
    pub counters: Arc<CoreCounters>,
    /// Counters of requests that reached no site.
    pub other: Arc<SiteCounters>,
    pub(crate) deadlines: Deadlines,
    /// For the next connections that are busy.
    pub(crate) desks: Reserve<Desk>,
    pub(crate) logs: LogBatches,
    /// Which of those that are not let in are logged.
    pub(crate) rejection_lines: LogSampling,
    /// To workers of applications.
    pub(crate) lanes: Lanes,
    /// To those that speak HTTP.
    pub(crate) upstreams: Upstreams,
    turn: Cell<usize>,
    /// Unique in the process, and hard to guess.
    request_id: Cell<u64>,
    view: RefCell<Rc<View>>,
    seen: Cell<u64>,
    date: RefCell<Date>,
}

/// A snapshot as one core holds it: requests count references to this, not to what cores share.
pub(crate) struct View {
    pub(crate) snapshot: Arc<Snapshot>,
}

struct Date {
    unix_seconds: u64,
    line: Vec<u8>,
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
        let core = Self {
            number,
            shared,
            counters,
            other,
            deadlines: Deadlines::default(),
            desks: Reserve::default(),
            logs: LogBatches::default(),
            rejection_lines: LogSampling::default(),
            lanes: Lanes::default(),
            upstreams: Upstreams::default(),
            turn: Cell::new(number),
            request_id: Cell::new(first_request_id(number)),
            view: RefCell::new(view),
            seen: Cell::new(seen),
            date: RefCell::new(Date { unix_seconds: 0, line: Vec::new() }),
        };
        core.refresh_date();
        core
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

    /// The number of the snapshot that [`Core::view`] gave last.
    pub(crate) fn generation(&self) -> u64 {
        self.seen.get()
    }

    /// A number that goes on with each call, so that equals take turns.
    pub(crate) fn next_turn(&self) -> usize {
        self.turn.replace(self.turn.get().wrapping_add(1))
    }

    /// A request's number.
    pub(crate) fn next_request_id(&self) -> u64 {
        self.request_id.replace(self.request_id.get().wrapping_add(1))
    }

    /// Appends to `out` through `write` while handing it the current `Date` line.
    pub(crate) fn with_date<T>(&self, write: impl FnOnce(&[u8]) -> T) -> T {
        write(&self.date.borrow().line)
    }

    /// What is done at every tick, whether or not requests come: deadlines, date, logs, and letting
    /// go of an old snapshot.
    pub(crate) fn tick(self: &Rc<Self>) {
        self.refresh_date();
        self.deadlines.tick();
        floor::tick(self);
        self.desks.tick();
        self.rejection_lines.tick();
        self.upstreams.buffers.tick();
        self.logs.flush();
        if self.number == 0 {
            self.shared.incidents.tick(Instant::now());
        }
        drop(self.view());
    }

    fn refresh_date(&self) {
        let now = std::time::SystemTime::now();
        let seconds = now.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut date = self.date.borrow_mut();
        if date.unix_seconds != seconds {
            date.unix_seconds = seconds;
            date.line = format!("Date: {}\r\n", httpdate::fmt_http_date(now)).into_bytes();
        }
    }
}

/// Random above, so that two runs do not share numbers, then the core, then room for 2^40 requests.
fn first_request_id(core: usize) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let random = std::hash::RandomState::new().build_hasher().finish();
    let core = core as u64 & 0xff;
    (random & 0xffff_0000_0000_0000) | (core << 40)
}

/// One open connection; counted while it lives.
pub(crate) struct Admission {
    core: Rc<Core>,
    /// Of its address, where that is counted.
    _of_address: Option<Counted>,
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
        let shared = &core.shared;
        let of_address = match shared.addresses.ask(&core.view().snapshot.per_address, peer) {
            Verdict::Stays(counted) => counted,
            Verdict::TooMany => return Err(NoAdmission::TooManyOfAddress),
        };
        let open = &shared.connections.0;
        if open.fetch_add(1, Ordering::Relaxed) >= shared.connections_max() {
            open.fetch_sub(1, Ordering::Relaxed);
            return Err(NoAdmission::TooMany);
        }
        core.counters.connection_opened();
        Ok(Self { core: Rc::clone(core), _of_address: of_address })
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.core.shared.connections.0.fetch_sub(1, Ordering::Relaxed);
        self.core.counters.connection_closed();
    }
}
