//! The workers of one application, as requests see them: who serves, who has room, who waits.
//!
//! Bounded join-shortest-queue over a central queue: a worker is handed at most so many requests as it
//! was made with (`concurrency`), the rest waits here, where it can still go to any of them and survives the death of all. Shared by
//! all cores; the common way of a request writes one counter of one worker. Starts and stops nobody:
//! that is `control/supervise/`.
//!
//! A request may wish for one worker ([`Wish`]): while that one serves and is full, the request waits for it and
//! for no other.

mod queue;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use onehop_config::checked::{App, AppAddress};
use onehop_limits::wait_queue::WaitQueue;
use onehop_limits::{ConcurrencyLimiter, event_loop_lag};
use tokio::sync::oneshot;

use super::sticky::Stickiness;
use crate::limits::{UPSTREAM_DIAL_DEADLINE, UPSTREAM_IDLE_DEADLINE, UPSTREAM_IDLE_MAX};
use crate::request::core::Padded;
use crate::request::upstream::peer::{Peer, Place, Terms};
use queue::Queue;
pub(crate) use queue::Ticket;

/// The workers of one application.
pub struct Pool {
    /// What it runs as; the bounds of requests among it.
    pub app: Arc<App>,
    workers: ArcSwap<Vec<Arc<Worker>>>,
    queue: WaitQueue<Queue>,
    /// Seats that its workers have, from 0.
    seats: AtomicUsize,
    /// Which requests go to the same worker, where any do.
    pub(crate) sticky: Option<Stickiness>,
    /// Seconds after which asking again makes sense; 0 while the application is well.
    retry_after: AtomicU32,
    /// What bounds the requests that are given to it: around the queue and the workers' own bounds.
    pub(crate) limiter: Option<Arc<ConcurrencyLimiter>>,
    /// What a browser is shown instead of a 503 while the application fails and is being worked on.
    failure: ArcSwap<Option<String>>,
}

/// One process, as requests see it.
pub struct Worker {
    /// Unique in the life of the server.
    pub id: WorkerId,
    /// What its successor takes over.
    pub seat: Seat,
    /// How it is spoken to.
    pub transport: Transport,
    /// Requests that it is handed at a time.
    pub concurrency: usize,
    /// Requests that it was handed and has not finished.
    in_flight: Padded<AtomicUsize>,
    /// Requests that it was ever handed.
    begun: AtomicU64,
    /// It takes no more requests.
    is_withdrawn: AtomicBool,
    /// How late its event loop is, smoothed, in microseconds. Only the supervisor writes it.
    lag_micros: AtomicU32,
    /// The same as it was measured last; [`NOT_MEASURED`]: never.
    last_lag_micros: AtomicU32,
    /// When it sent something on a lane last, in microseconds since it was made.
    heard_micros: AtomicU64,
    /// When it was made; the time that the next field counts from.
    made: Instant,
    /// Since when, in microseconds, it has not answered its supervisor's question; [`NOT_ASKED`]: it has.
    asked_micros: AtomicU64,
    /// The connections to it, if it speaks HTTP.
    pub(crate) peer: Option<Arc<Peer>>,
    /// Where cores report what happens to its lanes; never blocks.
    report: Report,
}

/// Unique in the life of the server; grows with every start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u64);

/// A worker's number among those of its application, from 0: whoever replaces it gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seat(pub usize);

/// How a worker is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// The worker protocol, on one lane for each core.
    Lanes,
    /// HTTP/1.1.
    Http {
        /// Where it listens.
        address: AppAddress,
        /// Who must listen there, if it is a Unix socket: the program may put a link to any other in its place,
        /// and must not reach with the server's rights what it cannot reach with its own. `None` where it has
        /// the server's rights, or is somebody else's.
        uid: Option<u32>,
    },
}

impl Transport {
    /// What people are told.
    pub fn name(&self) -> &'static str {
        match self {
            Transport::Lanes => "frames",
            Transport::Http { .. } => "http",
        }
    }
}

/// It has not said how late it is, or cannot.
const NOT_MEASURED: u32 = u32::MAX;

/// No question is open.
const NOT_ASKED: u64 = u64::MAX;

/// Receives what happens to a worker's lanes.
pub type Report = Arc<dyn Fn(WorkerId, LaneReport) + Send + Sync>;

/// What happens to a worker's lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaneReport {
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
        /// The worker broke the protocol; else its end of the lane is gone.
        is_broken: bool,
    },
}

/// A request's place at a worker, on the way to the core that asked for it. Dropped, it is free again.
pub(crate) struct Grant {
    pool: Arc<Pool>,
    worker: Option<Arc<Worker>>,
}

/// Which worker a request should go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Whoever has the fewest requests.
    Any,
    /// Who has this seat.
    Seat(Seat),
    /// Always the same one for the same number.
    Hash(u64),
}

/// What comes of raising a worker's counter.
enum Raised {
    Yes,
    Full,
    Withdrawn,
}

/// What comes of asking for a place.
pub(crate) enum Choice {
    /// This worker; its counter is raised already and has to be lowered by [`Pool::give_back`].
    Now(Arc<Worker>),
    /// It will be sent. A sender that is dropped means that the application has failed meanwhile, or that the request
    /// had to make room: see [`Pool::half_closed`].
    Later(oneshot::Receiver<Grant>, Ticket),
    /// As many wait as may, or as many for the worker that is wished for.
    QueueFull,
    /// The application does not run; ask again after so many seconds.
    Failing(u32),
}

impl Pool {
    /// An application without workers: requests wait until there is one.
    pub fn new(app: Arc<App>) -> Arc<Self> {
        let sticky = app.sticky.as_ref().map(|sticky| Stickiness::new(sticky, &app.name));
        let limiter = app.limit.as_ref().map(|limit| ConcurrencyLimiter::new(Arc::clone(limit)));
        Arc::new(Self {
            seats: AtomicUsize::new(1),
            sticky,
            app,
            workers: ArcSwap::default(),
            queue: WaitQueue::new(Queue::default()),
            retry_after: AtomicU32::new(0),
            limiter,
            failure: ArcSwap::default(),
        })
    }

    /// From now on requests may be handed to this worker. All of its lanes must be attached.
    pub fn admit(self: &Arc<Self>, worker: Arc<Worker>) {
        self.workers.rcu(|workers| {
            let mut workers = Vec::clone(workers);
            workers.push(Arc::clone(&worker));
            workers
        });
        self.set_failing(0, None);
        self.hand_out();
    }

    /// From now on no request is handed to this worker; what it has goes on.
    pub fn withdraw(self: &Arc<Self>, id: WorkerId) {
        self.workers.rcu(|workers| {
            for worker in workers.iter().filter(|worker| worker.id == id) {
                worker.mark_lost();
            }
            workers.iter().filter(|worker| worker.id != id).cloned().collect::<Vec<_>>()
        });
        // Who waits for it waits for anybody now.
        if !self.queue.is_empty() {
            self.hand_out();
        }
    }

    /// The application does not run and it makes no sense to wait for it: requests are answered 503 with
    /// `Retry-After` of so many seconds, those that wait too. 0: it makes sense again. `failure` is shown to
    /// browsers while somebody works on the application.
    pub fn set_failing(&self, retry_after_seconds: u32, failure: Option<String>) {
        self.failure.store(Arc::new(failure));
        self.retry_after.store(retry_after_seconds, Ordering::SeqCst);
        if retry_after_seconds > 0 {
            // They are told without the lock.
            let waiting = self.queue.lock().take_all();
            drop(waiting);
        }
    }

    /// What [`Pool::set_failing`] was told.
    pub fn failing(&self) -> Option<u32> {
        Some(self.retry_after.load(Ordering::Relaxed)).filter(|seconds| *seconds > 0)
    }

    /// What browsers are shown.
    pub fn failure(&self) -> arc_swap::Guard<Arc<Option<String>>> {
        self.failure.load()
    }

    /// How many workers are wanted: they have the seats below this number, and their successors after them.
    pub fn set_seats(&self, count: usize) {
        self.seats.store(count, Ordering::Relaxed);
    }

    /// What [`Pool::set_seats`] was told.
    pub(crate) fn seats(&self) -> usize {
        self.seats.load(Ordering::Relaxed)
    }

    /// The workers that requests are handed to.
    pub fn workers(&self) -> Arc<Vec<Arc<Worker>>> {
        self.workers.load_full()
    }

    /// Whether anybody serves.
    pub(crate) fn has_workers(&self) -> bool {
        !self.workers.load().is_empty()
    }

    /// The same as it was reported last, not smoothed; `None` where nobody reports it.
    pub(crate) fn reported_lag(&self, now: Instant, wish: Wish) -> Option<Duration> {
        self.least_late(wish, |worker| worker.reported_lag(now)).flatten()
    }

    /// How late the event loop of the one is that is wished for; else of the one that is late the least: a request goes
    /// to the worker that has the fewest, and those that are late have more. Nothing where nobody serves.
    pub(crate) fn lag(&self, now: Instant, wish: Wish) -> Duration {
        self.least_late(wish, |worker| worker.lag(now)).unwrap_or_default()
    }

    fn least_late<T: Ord>(&self, wish: Wish, lag: impl Fn(&Worker) -> T) -> Option<T> {
        let seat = self.seat_for(wish);
        let workers = self.workers.load();
        let serving = || workers.iter().filter(|worker| !worker.is_withdrawn());
        let least_of = |seat| serving().filter(|worker| worker.seat == seat).map(|worker| lag(worker)).min();
        seat.and_then(least_of).or_else(|| serving().map(|worker| lag(worker)).min())
    }

    /// Requests that wait for a worker.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// The same without those whose client has gone; looks at each.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.lock().open()
    }

    /// A place at a worker, or in the queue: at the one that is wished for, and where nobody is (or nobody serves
    /// there) at the one that has the fewest requests. `refused_by` is asked only where nobody else has room.
    pub(crate) fn choose(self: &Arc<Self>, turn: usize, refused_by: Option<WorkerId>, wish: Wish) -> Choice {
        let seat = self.seat_for(wish);
        if self.queue.is_empty()
            && let Some(worker) = self.take_place_at(seat, turn, refused_by)
        {
            return Choice::Now(worker);
        }
        if let Some(seconds) = self.failing() {
            return Choice::Failing(seconds);
        }
        let (sender, receiver) = oneshot::channel();
        let ticket = {
            let mut queue = self.queue.lock_to_wait();
            // Those who wait for a worker that is full hold up nobody who may go elsewhere.
            if !queue.is_ahead_of(seat)
                && let Some(worker) = self.take_place_at(seat, turn, refused_by)
            {
                return Choice::Now(worker);
            }
            if !queue.has_room(seat, self.app.queue as usize) {
                // Those whose client has gone make room, then one whose client may have.
                queue.retain_open();
                let has_room = |queue: &Queue| queue.has_room(seat, self.app.queue as usize);
                if !(has_room(&queue) || (queue.drop_half_closed() && has_room(&queue))) {
                    return Choice::QueueFull;
                }
            }
            queue.push(seat, sender)
        };
        // A place may have become free before anybody could see that somebody waits.
        self.hand_out();
        Choice::Later(receiver, ticket)
    }

    /// The client of a request that waits has closed its sending side, and may have left: in a full queue such a
    /// request makes room for another.
    pub(crate) fn half_closed(&self, ticket: Ticket) {
        self.queue.lock().half_closed(ticket);
    }

    /// Requests that its workers may have at a time.
    pub(crate) fn places(&self) -> u64 {
        self.workers.load().iter().map(|worker| worker.concurrency as u64).sum()
    }

    /// A request at this worker is over, or waits for its client.
    pub(crate) fn give_back(self: &Arc<Self>, worker: &Worker) {
        worker.in_flight.0.fetch_sub(1, Ordering::SeqCst);
        if !self.queue.is_empty() {
            self.hand_out();
        }
    }

    /// Gives free places to those who wait, first come first served; who waits for one worker holds up nobody
    /// else.
    fn hand_out(self: &Arc<Self>) {
        while !self.queue.is_empty() {
            let Some((waiting, worker)) = self.next_pair() else { return };
            let grant = Grant { pool: Arc::clone(self), worker: Some(worker) };
            if let Err(mut refused) = waiting.send(grant) {
                // Its client has gone; dropping the grant would come back here.
                if let Some(worker) = refused.worker.take() {
                    worker.in_flight.0.fetch_sub(1, Ordering::SeqCst);
                }
            }
        }
    }

    /// Takes the first one out of the queue for whom there is a place, with that place.
    fn next_pair(&self) -> Option<(oneshot::Sender<Grant>, Arc<Worker>)> {
        self.queue.lock().take_first(|seat| self.take_place_at(seat, 0, None))
    }

    /// Where a wish leads now; `None`: anywhere.
    fn seat_for(&self, wish: Wish) -> Option<Seat> {
        match wish {
            Wish::Any => None,
            Wish::Seat(seat) => Some(seat),
            Wish::Hash(hash) => {
                let workers = self.workers.load();
                let serving = workers.iter().filter(|worker| !worker.is_withdrawn());
                serving.map(|worker| worker.seat).max_by_key(|seat| score(hash, *seat))
            }
        }
    }

    /// Raises the counter of the worker that has this seat, if it has room; of any, where none is wished for or
    /// nobody serves there.
    fn take_place_at(
        &self,
        seat: Option<Seat>,
        turn: usize,
        refused_by: Option<WorkerId>,
    ) -> Option<Arc<Worker>> {
        if let Some(seat) = seat {
            let workers = self.workers.load();
            // While workers are replaced two may have it; the newer one stays.
            let mut newest_first = workers.iter().rev();
            let is_it = |worker: &&Arc<Worker>| worker.seat == seat && refused_by != Some(worker.id);
            while let Some(worker) = newest_first.find(is_it) {
                match worker.raise() {
                    Raised::Yes => return Some(Arc::clone(worker)),
                    Raised::Full => return None,
                    Raised::Withdrawn => {}
                }
            }
        }
        self.take_place(turn, refused_by)
    }

    /// Raises the counter of the worker with the fewest requests, if one has room.
    fn take_place(&self, turn: usize, refused_by: Option<WorkerId>) -> Option<Arc<Worker>> {
        let workers = self.workers.load();
        // A round that fails means that another thread got a place or gave one back in between.
        loop {
            let count = workers.len();
            let in_turn = (0..count).filter_map(|step| workers.get((turn + step) % count));
            let serving = in_turn.filter(|worker| !worker.is_withdrawn.load(Ordering::SeqCst));
            let (fewest, worker) =
                serving.map(|worker| (worker.in_flight(), worker)).min_by_key(|(in_flight, worker)| {
                    (*in_flight >= worker.concurrency, refused_by == Some(worker.id), *in_flight)
                })?;
            if fewest >= worker.concurrency {
                return None;
            }
            match worker.raise_from(fewest) {
                Some(Raised::Yes) => return Some(Arc::clone(worker)),
                Some(Raised::Full | Raised::Withdrawn) | None => {}
            }
        }
    }
}

/// Rendezvous hashing (Thaler and Ravishankar, 1998): who has the highest score gets it, so that a seat that
/// comes or goes moves only what belongs to it.
fn score(hash: u64, seat: Seat) -> u64 {
    // The finalizer of SplitMix64, over both numbers.
    let mut mixed = hash ^ (seat.0 as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Worker {
    /// A process that is ready, and is handed at most `concurrency` requests at a time.
    pub fn new(
        id: WorkerId,
        seat: Seat,
        transport: Transport,
        concurrency: usize,
        report: Report,
    ) -> Arc<Self> {
        let peer = match &transport {
            Transport::Lanes => None,
            Transport::Http { address, uid } => Some(peer(address, *uid)),
        };
        Arc::new(Self {
            id,
            seat,
            transport,
            peer,
            concurrency,
            in_flight: Padded(AtomicUsize::new(0)),
            begun: AtomicU64::new(0),
            is_withdrawn: AtomicBool::new(false),
            lag_micros: AtomicU32::new(0),
            last_lag_micros: AtomicU32::new(NOT_MEASURED),
            heard_micros: AtomicU64::new(0),
            made: Instant::now(),
            asked_micros: AtomicU64::new(NOT_ASKED),
            report,
        })
    }

    /// Requests that it has.
    pub fn in_flight(&self) -> usize {
        self.in_flight.0.load(Ordering::SeqCst)
    }

    /// Requests that it was ever handed.
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// How late its event loop is: smoothed, and at least for as long as it has not answered. Nothing where it cannot
    /// tell.
    pub fn lag(&self, now: Instant) -> Duration {
        event_loop_lag::with_unanswered(self.smoothed_lag(), self.unanswered(now))
    }

    /// How late its event loop was when it was asked last, and at least for as long as it has not answered; `None` where
    /// it never said.
    pub(crate) fn reported_lag(&self, now: Instant) -> Option<Duration> {
        let last = self.last_lag_micros.load(Ordering::Relaxed);
        let lag =
            || event_loop_lag::with_unanswered(Duration::from_micros(last.into()), self.unanswered(now));
        (last != NOT_MEASURED).then(lag)
    }

    /// A frame of an exchange has come: its event loop turns, or at least it works.
    pub(crate) fn was_heard(&self, now: Instant) {
        let micros = now.saturating_duration_since(self.made).as_micros();
        self.heard_micros.store(u64::try_from(micros).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// When that was last; when it was made, where there was none.
    pub(crate) fn last_heard(&self) -> Instant {
        self.made + Duration::from_micros(self.heard_micros.load(Ordering::Relaxed))
    }

    /// For how long its supervisor's question has waited for an answer.
    pub(crate) fn unanswered(&self, now: Instant) -> Option<Duration> {
        let asked = self.asked_micros.load(Ordering::Relaxed);
        let since = now.saturating_duration_since(self.made);
        (asked != NOT_ASKED).then(|| since.saturating_sub(Duration::from_micros(asked)))
    }

    /// Its supervisor has asked how it is.
    pub(crate) fn was_asked(&self, now: Instant) {
        let micros = now.saturating_duration_since(self.made).as_micros();
        self.asked_micros.store(u64::try_from(micros).unwrap_or(NOT_ASKED - 1), Ordering::Relaxed);
    }

    /// It has answered: its event loop was so late at worst since the last time. For its supervisor alone.
    pub(crate) fn measured_lag(&self, lag: Duration) {
        // Nothing means that it is not known.
        let micros = event_loop_lag::smoothed(self.smoothed_lag(), lag).as_micros().max(1);
        self.lag_micros.store(u32::try_from(micros).unwrap_or(u32::MAX), Ordering::Relaxed);
        let last = u32::try_from(lag.as_micros()).unwrap_or(u32::MAX).min(NOT_MEASURED - 1);
        self.last_lag_micros.store(last, Ordering::Relaxed);
        self.asked_micros.store(NOT_ASKED, Ordering::Relaxed);
    }

    fn smoothed_lag(&self) -> Duration {
        Duration::from_micros(self.lag_micros.load(Ordering::Relaxed).into())
    }

    /// Whether it takes no more requests.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.is_withdrawn.load(Ordering::Relaxed)
    }

    /// It is known here that it is gone, before everybody is told: nobody is handed to it any more.
    pub(crate) fn mark_lost(&self) {
        self.is_withdrawn.store(true, Ordering::SeqCst);
        if let Some(peer) = &self.peer {
            peer.withdraw();
        }
    }

    /// Raises the counter where it is below the bound.
    fn raise(&self) -> Raised {
        loop {
            let in_flight = self.in_flight();
            if self.is_withdrawn.load(Ordering::SeqCst) {
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
    fn raise_from(&self, in_flight: usize) -> Option<Raised> {
        // Never above the bound, not even for an instant: who gives a place back would take that for
        // full and leave those who wait alone.
        let raised =
            self.in_flight.0.compare_exchange(in_flight, in_flight + 1, Ordering::SeqCst, Ordering::SeqCst);
        raised.ok()?;
        // Whoever withdraws a worker looks at its counter afterwards: one of both sees the other.
        if self.is_withdrawn.load(Ordering::SeqCst) {
            self.in_flight.0.fetch_sub(1, Ordering::SeqCst);
            return Some(Raised::Withdrawn);
        }
        Some(Raised::Yes)
    }

    /// A request goes to it in the place that it was given.
    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// A request that waited for its client goes on. It is not asked whether there is room: those who come are.
    pub(crate) fn come_back(&self) {
        self.in_flight.0.fetch_add(1, Ordering::SeqCst);
    }

    /// Tells the supervisor.
    pub(crate) fn report(&self, report: LaneReport) {
        (self.report)(self.id, report);
    }
}

/// A program on this machine: its connections are made when they are needed, and kept for a while.
fn peer(address: &AppAddress, uid: Option<u32>) -> Arc<Peer> {
    let (label, place) = match address {
        AppAddress::Tcp(address) => (address.to_string(), Place::Address(*address)),
        AppAddress::Unix(path) => (format!("unix/{}", path.display()), Place::Unix(path.clone(), uid)),
    };
    let terms = Terms {
        tls: None,
        dial_timeout: UPSTREAM_DIAL_DEADLINE,
        fallback_delay: None,
        probe: None,
        keep: UPSTREAM_IDLE_DEADLINE,
        idle_max: UPSTREAM_IDLE_MAX,
        floor: 0,
        ceiling: None,
        queue: (0, Duration::ZERO),
    };
    Peer::nearby(label, place, terms)
}

impl Grant {
    /// The worker; its counter stays raised.
    pub(crate) fn into_worker(mut self) -> Option<Arc<Worker>> {
        self.worker.take()
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            self.pool.give_back(&worker);
        }
    }
}

#[cfg(test)]
mod tests;
