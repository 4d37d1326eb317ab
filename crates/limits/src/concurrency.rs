//! A bound on requests in flight, and the queue of those that wait for a permit.
//!
//! Shared by all threads. A request that finds room raises one counter and nothing else; the queue is locked only where the
//! bound is met or a request waits already. Permits are counted, not listed: the owner of an admitted request releases its
//! permit exactly once, however the request ends.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;
use onehop_config::checked::limit::{Bound, Limit, Priority};
use onehop_message::error::{HttpError, LimitCause};
use tokio::sync::oneshot;

use crate::adaptive::{Adaptive, InFlight};
use crate::queue::{Decision, Queue, Room, Sender, Ticket};
use crate::retry_after::ResponseRate;
use crate::sync::{AtomicU64, Mutex, Ordering, timeout_at};
use crate::wait_queue::WaitQueue;

/// Bits of the counter that hold the requests in flight: by far more than there can be connections.
const IN_FLIGHT_BITS: u32 = 24;

/// One admitted request, in the bits above.
const ADMITTED: u64 = 1 << IN_FLIGHT_BITS;

/// A `limit` at work.
pub struct ConcurrencyLimiter {
    limit: Arc<Limit>,
    /// Requests in flight, and above them all that were ever admitted (which wraps around after 10^12).
    count: CachePadded<AtomicU64>,
    bound: CurrentBound,
    queue: WaitQueue<Queue>,
    /// Only tried, never waited for.
    response_rate: Mutex<ResponseRate>,
    /// What it computed last, in seconds.
    retry_after: AtomicU32,
    /// By number of the cause.
    rejected: [AtomicU64; LimitCause::ALL.len()],
}

enum CurrentBound {
    Fixed(u32),
    Adaptive(Box<Adaptive>),
}

/// The result of asking for a permit.
pub enum Acquire<'l> {
    /// The request is in flight until [`ConcurrencyLimiter::release`].
    Admitted,
    /// The request waits.
    Queued(Queued<'l>),
    /// The request is rejected.
    Rejected(LimitCause),
}

/// A request in the queue. Dropped, it leaves the queue, and passes on a permit that it was given meanwhile.
pub struct Queued<'l> {
    limiter: &'l ConcurrencyLimiter,
    ticket: Ticket,
    until: Instant,
    decision: oneshot::Receiver<Decision>,
    /// The decision was received.
    is_decided: bool,
}

/// Names a request in a limiter's queue.
#[derive(Clone, Copy)]
pub struct QueuePosition<'l> {
    limiter: &'l ConcurrencyLimiter,
    ticket: Ticket,
}

impl ConcurrencyLimiter {
    /// Makes a limiter with no request in flight.
    #[must_use]
    pub fn new(limit: Arc<Limit>) -> Arc<Self> {
        let bound = match limit.bound {
            Bound::Unbounded => CurrentBound::Fixed(u32::MAX),
            Bound::Fixed(bound) => CurrentBound::Fixed(bound),
            Bound::Adaptive { min, max } => CurrentBound::Adaptive(Box::new(Adaptive::new(min, max))),
        };
        let queue = Queue::new(limit.queue as usize, limit.wait);
        Arc::new(Self {
            limit,
            count: CachePadded::new(AtomicU64::new(0)),
            bound,
            queue: WaitQueue::new(queue),
            response_rate: Mutex::new(ResponseRate::default()),
            retry_after: AtomicU32::new(1),
            rejected: std::array::from_fn(|_| AtomicU64::new(0)),
        })
    }

    /// The settings.
    #[must_use]
    pub fn limit(&self) -> &Arc<Limit> {
        &self.limit
    }

    /// Acquires a permit where there is room and no request waits; otherwise queues or rejects the request. `lag` is called
    /// where it matters how late the event loop of the worker is that would answer.
    pub fn acquire(
        &self,
        priority: Priority,
        now: Instant,
        lag: impl FnOnce() -> Option<Duration>,
    ) -> Acquire<'_> {
        // Requests that find the bound met do not write the word that releases need.
        if self.queue.is_empty() && self.in_flight() < self.bound() {
            let before = self.count.fetch_add(ADMITTED + 1, Ordering::SeqCst);
            if in_flight_of(before) < self.bound() {
                return Acquire::Admitted;
            }
            // For that moment the counter was too high, perhaps for a release that wanted to admit another request. What
            // follows takes that permit, or looks for that request.
            self.count.fetch_sub(ADMITTED + 1, Ordering::SeqCst);
        }
        if let CurrentBound::Adaptive(adaptive) = &self.bound {
            adaptive.is_met(now, self.in_flight(), lag);
        }
        if self.limit.queue == 0 {
            Acquire::Rejected(LimitCause::InFlight)
        } else {
            self.enqueue(priority, now)
        }
    }

    /// Takes back the permit of a request that has to wait elsewhere: it counts as never admitted.
    pub fn cancel(&self, now: Instant) {
        self.count.fetch_sub(ADMITTED + 1, Ordering::SeqCst);
        self.admit_queued(now);
    }

    /// Releases the permit of a request that is over, or that may last for ever.
    pub fn release(&self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
        if !self.queue.is_empty() {
            self.admit_queued(Instant::now());
        }
    }

    /// Counts a request again that released its permit while it waited for a slow client. The bound is not checked: those
    /// that come are.
    pub fn resume(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether latencies matter to this limiter.
    #[must_use]
    pub fn is_adaptive(&self) -> bool {
        matches!(self.bound, CurrentBound::Adaptive(_))
    }

    /// Records that a request in flight had the head of its answer after so long, or none because of an overload.
    /// `in_flight_at_start` were in flight when it was admitted, if that is known.
    pub fn record(
        &self,
        now: Instant,
        core: usize,
        took: Duration,
        in_flight_at_start: Option<u32>,
        was_dropped: bool,
        lag: impl FnOnce() -> Option<Duration>,
    ) {
        let CurrentBound::Adaptive(adaptive) = &self.bound else { return };
        let in_flight = self.in_flight();
        let in_flight = InFlight { at_start: in_flight_at_start.unwrap_or(in_flight), now: in_flight };
        adaptive.sample(now, core, took, in_flight, was_dropped, lag);
        // The bound may have grown by more than the one permit that is released.
        self.admit_queued(now);
    }

    /// Counts a rejection, and makes its error.
    pub fn reject(&self, cause: LimitCause, now: Instant) -> HttpError {
        if let Some(count) = self.rejected.get(cause as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if let Ok(mut response_rate) = self.response_rate.try_lock() {
            let count = self.count.load(Ordering::Relaxed);
            let answered = (count >> IN_FLIGHT_BITS).wrapping_sub(u64::from(in_flight_of(count)));
            let seconds = response_rate.retry_after(now, answered, self.queued());
            self.retry_after.store(seconds, Ordering::Relaxed);
        }
        let retry_after = self.retry_after.load(Ordering::Relaxed);
        HttpError::Shed { cause, status: self.limit.shed_status, retry_after }
    }

    /// Requests in flight.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        in_flight_of(self.count.load(Ordering::SeqCst))
    }

    /// Requests that may be in flight.
    #[must_use]
    pub fn bound(&self) -> u32 {
        match &self.bound {
            CurrentBound::Fixed(bound) => *bound,
            CurrentBound::Adaptive(adaptive) => adaptive.bound(),
        }
    }

    /// Requests that wait.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Requests that were ever admitted.
    #[must_use]
    pub fn admitted(&self) -> u64 {
        self.count.load(Ordering::Relaxed) >> IN_FLIGHT_BITS
    }

    /// Requests that were rejected, by cause.
    pub fn rejected(&self) -> impl Iterator<Item = (LimitCause, u64)> {
        let counts = self.rejected.iter().map(|count| count.load(Ordering::Relaxed));
        LimitCause::ALL.into_iter().zip(counts)
    }

    /// When a request that waits looks at the bound, although no request comes or is answered.
    fn look_by(&self) -> Option<Instant> {
        match &self.bound {
            CurrentBound::Fixed(_) => None,
            CurrentBound::Adaptive(adaptive) => Some(adaptive.look_by(self.queued())),
        }
    }

    /// A request that waits looks at the bound.
    fn look(&self, now: Instant, lag: impl FnOnce() -> Option<Duration>) {
        if let CurrentBound::Adaptive(adaptive) = &self.bound {
            adaptive.is_met(now, self.in_flight(), lag);
        }
        self.admit_queued(now);
    }

    fn enqueue(&self, priority: Priority, now: Instant) -> Acquire<'_> {
        let (result, stale, displaced) = {
            let mut queue = self.queue.lock_to_wait();
            if !queue.is_ahead_of(priority) && self.take_permit() {
                return Acquire::Admitted;
            }
            let stale = queue.take_stale(now);
            let (has_room, displaced) = match queue.make_room(priority, now) {
                Room::Free => (true, None),
                Room::InsteadOf(outranked) => (true, Some((outranked, LimitCause::Outranked))),
                Room::InsteadOfHalfClosed(other) => (true, Some((other, LimitCause::QueueFull))),
                Room::None => (false, None),
            };
            let result = if has_room {
                let (sender, decision) = oneshot::channel();
                let ticket = queue.push(priority, now, sender);
                let until = now.checked_add(self.limit.wait).unwrap_or(now);
                Acquire::Queued(Queued { limiter: self, ticket, until, decision, is_decided: false })
            } else {
                Acquire::Rejected(LimitCause::QueueFull)
            };
            (result, stale, displaced)
        };
        send_rejection(stale, LimitCause::QueueAge);
        if let Some((other, cause)) = displaced {
            send_rejection([other], cause);
        }
        // A permit may have been released before anybody could see that this request waits.
        if self.in_flight() < self.bound() {
            self.admit_queued(now);
        }
        result
    }

    /// Admits requests that wait, as far as there is room.
    fn admit_queued(&self, now: Instant) {
        while !self.queue.is_empty() {
            let Some(next) = self.take_next(now) else { return };
            if next.send(Decision::Admitted).is_err() {
                // The request has just left; its permit was never used.
                self.count.fetch_sub(ADMITTED + 1, Ordering::SeqCst);
            }
        }
    }

    /// Takes the next request out of the queue, with a permit for it.
    fn take_next(&self, now: Instant) -> Option<Sender> {
        let (next, stale) = {
            let mut queue = self.queue.lock();
            if queue.is_empty() || !self.take_permit() {
                return None;
            }
            (queue.take_next(now), queue.take_stale(now))
        };
        send_rejection(stale, LimitCause::QueueAge);
        if next.is_none() {
            self.count.fetch_sub(ADMITTED + 1, Ordering::SeqCst);
        }
        next
    }

    /// Raises the counter where there is room. Never above the bound, not even for an instant.
    fn take_permit(&self) -> bool {
        let bound = self.bound();
        let raise = |count| (in_flight_of(count) < bound).then(|| count.wrapping_add(ADMITTED + 1));
        self.count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, raise).is_ok()
    }
}

impl QueuePosition<'_> {
    /// Notes that the client has closed its sending side, and may have left: under overload its request is the first to be
    /// rejected.
    pub fn half_closed(self) {
        self.limiter.queue.lock().half_closed(self.ticket);
    }
}

impl<'l> Queued<'l> {
    /// The limiter in whose queue this is.
    #[must_use]
    pub fn limiter(&self) -> &'l ConcurrencyLimiter {
        self.limiter
    }

    /// Names this request to others.
    #[must_use]
    pub fn position(&self) -> QueuePosition<'l> {
        QueuePosition { limiter: self.limiter, ticket: self.ticket }
    }

    /// Waits until the request is admitted or rejected, or has waited for as long as it may. `lag` is how late the event loop
    /// of the worker is that would answer.
    pub async fn decided(&mut self, lag: impl Fn(Instant) -> Option<Duration>) -> Result<(), LimitCause> {
        let decision = loop {
            let look_by = self.limiter.look_by().map_or(self.until, |look_by| look_by.min(self.until));
            match timeout_at(look_by.into(), &mut self.decision).await {
                Ok(Ok(decision)) => break Some(decision),
                // Every request that is taken out of a queue is told why.
                Ok(Err(_)) => break Some(Decision::Rejected(LimitCause::QueueFull)),
                // A decision that came at the same time counts.
                Err(_) if look_by == self.until => break self.give_up(),
                Err(_) => {
                    let now = Instant::now();
                    self.limiter.look(now, || lag(now));
                }
            }
        };
        self.is_decided = true;
        match decision {
            Some(Decision::Admitted) => Ok(()),
            Some(Decision::Rejected(cause)) => Err(cause),
            None => Err(LimitCause::WaitedOut),
        }
    }

    /// Leaves the queue. `Some`: the request had been taken out of it with this decision.
    fn give_up(&mut self) -> Option<Decision> {
        if self.limiter.queue.lock().remove(self.ticket) {
            return None;
        }
        // A thread that is about to send the decision sees that it arrives nowhere.
        self.decision.close();
        self.decision.try_recv().ok()
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        if !self.is_decided && self.give_up() == Some(Decision::Admitted) {
            self.limiter.release();
        }
    }
}

fn send_rejection(requests: impl IntoIterator<Item = Sender>, cause: LimitCause) {
    for request in requests {
        // One that has just left needs no decision.
        let _ = request.send(Decision::Rejected(cause));
    }
}

fn in_flight_of(count: u64) -> u32 {
    (count & (ADMITTED - 1)) as u32
}
