//! One worker process as requests see it: how many requests it has, whether it takes more, how late its event loop is.
//!
//! Shared by all cores. A request takes a slot by raising one counter of one worker, and frees it by lowering that.
//! Starts and ends no process, and knows no queue: those are the supervisor and [`crate::pool`].

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use onehop_config::checked::AppAddress;
use onehop_connection::YieldSlot;
use onehop_limits::event_loop_lag;
use onehop_upstream::Peer;

use crate::stalls::Stalls;

/// One process, as requests see it.
pub struct Worker {
    /// Unique in the life of the server.
    pub id: WorkerId,
    /// The number that its successor takes over.
    pub index: WorkerIndex,
    /// How requests reach it.
    pub transport: Transport,
    /// Requests that it is handed at a time.
    pub concurrency: usize,
    /// Requests that it was handed and has not finished.
    in_flight: CachePadded<AtomicUsize>,
    /// Requests that it was ever handed.
    started: AtomicU64,
    /// It takes no more requests.
    is_withdrawn: AtomicBool,
    /// How late its event loop is, smoothed, in microseconds. Only the supervisor writes it.
    lag_micros: AtomicU32,
    /// The same as it was measured last; [`NOT_MEASURED`]: never.
    last_lag_micros: AtomicU32,
    /// When it sent something on a worker connection last, in microseconds since it was made.
    heard_micros: AtomicU64,
    /// When it sent something of a response first, in the same way; [`NOT_ANSWERED`]: it has not.
    answered_micros: AtomicU64,
    /// When it was made; the time that these fields count from.
    made: Instant,
    /// Since when, in microseconds, it has not answered its supervisor's ping; [`NOT_PINGED`]: it has.
    pinged_micros: AtomicU64,
    /// When its event loop stood still.
    stalls: Stalls,
    /// The process, where the server has started it.
    pid: OnceLock<u32>,
    /// The connections to it, if it speaks HTTP; made with the first request.
    upstream: OnceLock<Arc<Peer>>,
    /// Receives what happens to its worker connections; never blocks.
    report: Report,
}

/// Unique in the life of the server; grows with every start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u64);

/// A worker's number among those of its application, from 0. Its replacement gets the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerIndex(pub usize);

/// How requests reach a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// The worker protocol, on one worker connection for each core.
    Frames,
    /// HTTP.
    Http {
        /// Where it listens.
        address: AppAddress,
        /// The user that must listen there, if it is a Unix socket: the program may put a link to any other in its
        /// place, and must not reach with the server's rights what it cannot reach with its own. `None` where it has
        /// the server's rights, or the server did not start it.
        uid: Option<u32>,
    },
}

impl Transport {
    /// Its name in status reports.
    pub fn name(&self) -> &'static str {
        match self {
            Transport::Frames => "frames",
            Transport::Http { .. } => "http",
        }
    }
}

/// The worker has not reported how late it is, or cannot.
const NOT_MEASURED: u32 = u32::MAX;

/// It has sent nothing of a response.
const NOT_ANSWERED: u64 = u64::MAX;

/// No ping is open.
const NOT_PINGED: u64 = u64::MAX;

/// Receives what happens to a worker's connections. Called on the cores, so it never blocks.
pub type Report = Arc<dyn Fn(ConnectionEvent) + Send + Sync>;

/// What happens to a worker connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// A core serves it from now on.
    Attached {
        /// The core.
        core: usize,
    },
    /// It is of no more use; the worker has to be replaced.
    Lost {
        /// The core.
        core: usize,
        /// For a person.
        reason: String,
        /// The worker broke the protocol; else its end of the connection is gone.
        is_broken: bool,
    },
}

/// What comes of raising a worker's counter.
pub(crate) enum Raised {
    Yes,
    Full,
    Withdrawn,
}

impl Worker {
    /// A process that is ready, and is handed at most `concurrency` requests at a time.
    pub fn new(
        id: WorkerId,
        index: WorkerIndex,
        transport: Transport,
        concurrency: usize,
        report: Report,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            index,
            transport,
            concurrency,
            in_flight: CachePadded::new(AtomicUsize::new(0)),
            started: AtomicU64::new(0),
            is_withdrawn: AtomicBool::new(false),
            lag_micros: AtomicU32::new(0),
            last_lag_micros: AtomicU32::new(NOT_MEASURED),
            heard_micros: AtomicU64::new(0),
            answered_micros: AtomicU64::new(NOT_ANSWERED),
            made: Instant::now(),
            pinged_micros: AtomicU64::new(NOT_PINGED),
            stalls: Stalls::default(),
            pid: OnceLock::new(),
            upstream: OnceLock::new(),
            report,
        })
    }

    /// Notes which process it is.
    pub fn set_pid(&self, pid: u32) {
        let _ = self.pid.set(pid);
    }

    /// Its process, where the server has started it.
    pub fn pid(&self) -> Option<u32> {
        self.pid.get().copied()
    }

    /// Notes that its event loop stood still for so long, until then.
    pub fn stalled(&self, until: Instant, duration: Duration) {
        self.stalls.add(until, duration);
    }

    /// For how long its event loop stood still between these times; `None` where it cannot tell.
    pub fn stalled_within(&self, from: Instant, until: Instant) -> Option<Duration> {
        let tells = self.last_lag_micros.load(Ordering::Relaxed) != NOT_MEASURED;
        let stalled = self.stalls.within(from, until);
        (tells || !stalled.is_zero()).then_some(stalled)
    }

    /// Requests that it has.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::SeqCst)
    }

    /// Requests that it was ever handed.
    pub fn started(&self) -> u64 {
        self.started.load(Ordering::Relaxed)
    }

    /// How late its event loop is: smoothed, and at least for as long as it has not answered a ping. Zero where it
    /// cannot tell.
    pub fn lag(&self, now: Instant) -> Duration {
        event_loop_lag::with_unanswered(self.smoothed_lag(), self.unanswered(now))
    }

    /// How late its event loop was at the last ping, and at least for as long as it has not answered; `None` where it
    /// never reported that.
    pub fn reported_lag(&self, now: Instant) -> Option<Duration> {
        let last = self.last_lag_micros.load(Ordering::Relaxed);
        let lag =
            || event_loop_lag::with_unanswered(Duration::from_micros(last.into()), self.unanswered(now));
        (last != NOT_MEASURED).then(lag)
    }

    /// Notes that a frame of an exchange has come: its event loop turns, or at least it works.
    pub(crate) fn was_heard(&self, now: Instant) {
        let micros = self.age_at(now);
        self.heard_micros.store(micros, Ordering::Relaxed);
        if self.answered_micros.load(Ordering::Relaxed) == NOT_ANSWERED {
            self.answered_micros.store(micros, Ordering::Relaxed);
        }
    }

    /// Whether a request that came then came before the worker had answered any: it waits for what a worker does once.
    pub fn is_cold_for(&self, received: Instant) -> bool {
        self.age_at(received) < self.answered_micros.load(Ordering::Relaxed)
    }

    fn age_at(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.made).as_micros()).unwrap_or(u64::MAX)
    }

    /// When the last frame of an exchange came; when the worker was made, where none did.
    pub fn last_heard(&self) -> Instant {
        self.made + Duration::from_micros(self.heard_micros.load(Ordering::Relaxed))
    }

    /// For how long its supervisor's ping has waited for an answer.
    pub fn unanswered(&self, now: Instant) -> Option<Duration> {
        let pinged = self.pinged_micros.load(Ordering::Relaxed);
        let since = now.saturating_duration_since(self.made);
        (pinged != NOT_PINGED).then(|| since.saturating_sub(Duration::from_micros(pinged)))
    }

    /// Notes that its supervisor has sent a ping.
    pub fn was_pinged(&self, now: Instant) {
        self.pinged_micros.store(self.age_at(now).min(NOT_PINGED - 1), Ordering::Relaxed);
    }

    /// Notes the answer to a ping: its event loop was so late at worst since the last one. For its supervisor alone.
    pub fn measured_lag(&self, lag: Duration) {
        // Zero means that it is not known.
        let micros = event_loop_lag::smoothed(self.smoothed_lag(), lag).as_micros().max(1);
        self.lag_micros.store(u32::try_from(micros).unwrap_or(u32::MAX), Ordering::Relaxed);
        let last = u32::try_from(lag.as_micros()).unwrap_or(u32::MAX).min(NOT_MEASURED - 1);
        self.last_lag_micros.store(last, Ordering::Relaxed);
        self.pinged_micros.store(NOT_PINGED, Ordering::Relaxed);
    }

    fn smoothed_lag(&self) -> Duration {
        Duration::from_micros(self.lag_micros.load(Ordering::Relaxed).into())
    }

    /// Whether it takes no more requests.
    pub fn is_withdrawn(&self) -> bool {
        self.is_withdrawn.load(Ordering::SeqCst)
    }

    /// Marks a worker that is gone, before the supervisor knows: no request is handed to it any more.
    pub fn mark_lost(&self) {
        self.is_withdrawn.store(true, Ordering::SeqCst);
        if let Some(upstream) = self.upstream.get() {
            upstream.withdraw();
        }
    }

    /// The connections to it, if it speaks HTTP; `make` is called once.
    pub fn upstream(&self, make: impl FnOnce() -> Arc<Peer>) -> &Arc<Peer> {
        let upstream = self.upstream.get_or_init(make);
        if self.is_withdrawn() {
            self.mark_lost();
        }
        upstream
    }

    /// Raises the counter where it is below the bound.
    pub(crate) fn raise(&self) -> Raised {
        loop {
            let in_flight = self.in_flight();
            if self.is_withdrawn() {
                return Raised::Withdrawn;
            }
            if in_flight >= self.concurrency {
                return Raised::Full;
            }
            if let Some(raised) = self.raise_from(in_flight) {
                return raised;
            }
        }
    }

    /// Raises the counter by one where it is this; `None` where it is another meanwhile.
    pub(crate) fn raise_from(&self, in_flight: usize) -> Option<Raised> {
        // Never above the bound, not even for an instant: a request that frees a slot would take that for full and
        // leave those that wait alone.
        let raised =
            self.in_flight.compare_exchange(in_flight, in_flight + 1, Ordering::SeqCst, Ordering::SeqCst);
        raised.ok()?;
        // A thread that withdraws a worker looks at its counter afterwards: one of both sees the other.
        if self.is_withdrawn() {
            self.lower();
            return Some(Raised::Withdrawn);
        }
        Some(Raised::Yes)
    }

    /// Frees a slot; the pool then admits a request that waits.
    pub(crate) fn lower(&self) {
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
    }

    /// Counts a request that is handed to it in the slot that it was given.
    pub fn start(&self) {
        self.started.fetch_add(1, Ordering::Relaxed);
    }

    /// Reports to the supervisor.
    pub fn report(&self, event: ConnectionEvent) {
        (self.report)(event);
    }
}

impl YieldSlot for Worker {
    fn release(&self) {
        self.lower();
    }

    /// Counts a request again that waited for its client. Does not check whether there is room: new requests do.
    fn reacquire(&self) {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
    }
}
