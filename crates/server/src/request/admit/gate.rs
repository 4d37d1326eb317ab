//! One bound on requests in flight, and those who wait to be let in.
//!
//! Shared by all cores. Who finds room raises one counter and nothing else; the queue is locked where the bound is met
//! or somebody waits already. What is in is counted, not listed: whoever was let in leaves once, however his request
//! ends ([`super::Pass`] sees to that).

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use onehop_config::checked::limit::{Bound, Limit, Priority};
use onehop_message::error::HttpError;
use onehop_message::error::LimitCause;
use tokio::sync::oneshot;

use super::adaptive::{Adaptive, Crowd};
use super::drain::Drain;
use super::queue::{Queue, Room, Sender, Ticket};
use crate::request::core::Padded;

/// Bits of the counter that say how many are in flight: more than there can be connections, by far.
const IN_FLIGHT_BITS: u32 = 24;

/// One let in, in the bits above.
const ENTERED: u64 = 1 << IN_FLIGHT_BITS;

/// One `limit`, as requests meet it.
pub struct Gate {
    /// As configured.
    pub(crate) limit: Arc<Limit>,
    /// Those in flight, and above them all who were ever let in (which wraps around after 10^12).
    count: Padded<AtomicU64>,
    bound: Ceiling,
    /// Length of the queue, so that nobody locks it to find it empty. Changed only by who has locked it.
    queued: AtomicUsize,
    queue: Mutex<Queue>,
    /// Never waited for.
    drain: Mutex<Drain>,
    /// What it said last.
    retry_after: AtomicU32,
    /// By number of the cause.
    shed: [AtomicU64; LimitCause::ALL.len()],
}

enum Ceiling {
    Fixed(u32),
    Adaptive(Box<Adaptive>),
}

/// What comes of asking to be let in.
pub(crate) enum Entry<'g> {
    /// It is in, and has to [`Gate::leave`].
    In,
    /// It will be told.
    Wait(Waiting<'g>),
    /// It is not let in.
    Shed(LimitCause),
}

/// What one who waits is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// He is in.
    In,
    /// He is not let in.
    Shed(LimitCause),
}

/// One who waits, as himself sees it. Dropped, he waits no more, and passes on what he was given.
pub(crate) struct Waiting<'g> {
    pub(super) gate: &'g Gate,
    ticket: Ticket,
    until: Instant,
    from: oneshot::Receiver<Word>,
    /// He has had his word.
    is_over: bool,
}

/// The place of a waiting request in a gate's queue.
#[derive(Clone, Copy)]
pub(crate) struct Ticketed<'g> {
    gate: &'g Gate,
    ticket: Ticket,
}

impl Gate {
    /// Nobody is in.
    pub fn new(limit: Arc<Limit>) -> Arc<Self> {
        let bound = match limit.bound {
            Bound::Unbounded => Ceiling::Fixed(u32::MAX),
            Bound::Fixed(bound) => Ceiling::Fixed(bound),
            Bound::Adaptive { min, max } => Ceiling::Adaptive(Box::new(Adaptive::new(min, max))),
        };
        let queue = Queue::new(limit.queue as usize, limit.wait);
        Arc::new(Self {
            limit,
            count: Padded(AtomicU64::new(0)),
            bound,
            queued: AtomicUsize::new(0),
            queue: Mutex::new(queue),
            drain: Mutex::default(),
            retry_after: AtomicU32::new(1),
            shed: Default::default(),
        })
    }

    /// Lets one more in where there is room and nobody waits. `lag` is how late the event loop is of the worker that would
    /// answer, asked where it matters.
    pub(crate) fn enter(
        &self,
        priority: Priority,
        now: Instant,
        lag: impl FnOnce() -> Option<Duration>,
    ) -> Entry<'_> {
        // Those who find it full do not write what those who leave need.
        if self.queued.load(Ordering::SeqCst) == 0 && self.in_flight() < self.bound() {
            let before = self.count.0.fetch_add(ENTERED + 1, Ordering::SeqCst);
            if in_flight_of(before) < self.bound() {
                return Entry::In;
            }
            self.count.0.fetch_sub(ENTERED + 1, Ordering::SeqCst);
            // For that moment it looked fuller than it was, perhaps to one who had left and wanted to let another in.
            self.let_in(now);
        }
        if let Ceiling::Adaptive(adaptive) = &self.bound {
            adaptive.is_met(now, self.in_flight(), lag);
        }
        if self.limit.queue == 0 { Entry::Shed(LimitCause::InFlight) } else { self.wait(priority, now) }
    }

    /// One who was let in has to wait elsewhere, and was never in.
    pub(crate) fn give_back(&self, now: Instant) {
        self.count.0.fetch_sub(ENTERED + 1, Ordering::SeqCst);
        if self.queued.load(Ordering::SeqCst) > 0 {
            self.let_in(now);
        }
    }

    /// One who was let in is gone, or may last for ever.
    pub(crate) fn leave(&self) {
        self.count.0.fetch_sub(1, Ordering::SeqCst);
        if self.queued.load(Ordering::SeqCst) > 0 {
            self.let_in(Instant::now());
        }
    }

    /// One who left because of a slow client goes on. It is not asked whether there is room: those who come are.
    pub(crate) fn come_back(&self) {
        self.count.0.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether it is of use to know how long answers take.
    pub(crate) fn is_adaptive(&self) -> bool {
        matches!(self.bound, Ceiling::Adaptive(_))
    }

    /// One that is in had its answer's head after so long, or none because others were too busy. `crowd` were in
    /// flight when it was let in, where that is known.
    pub(crate) fn sample(
        &self,
        now: Instant,
        core: usize,
        took: Duration,
        crowd: Option<u32>,
        was_dropped: bool,
        lag: impl FnOnce() -> Option<Duration>,
    ) {
        let Ceiling::Adaptive(adaptive) = &self.bound else { return };
        let in_flight = self.in_flight();
        let crowd = Crowd { then: crowd.unwrap_or(in_flight), now: in_flight };
        adaptive.sample(now, core, took, crowd, was_dropped, lag);
        // There may be more room now, for more than the one place that becomes free.
        if self.queued.load(Ordering::SeqCst) > 0 {
            self.let_in(now);
        }
    }

    /// The answer for one who is not let in; counts it.
    pub(crate) fn refuse(&self, cause: LimitCause, now: Instant) -> HttpError {
        if let Some(count) = self.shed.get(cause as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if let Ok(mut drain) = self.drain.try_lock() {
            let count = self.count.0.load(Ordering::Relaxed);
            let answered = (count >> IN_FLIGHT_BITS).wrapping_sub(u64::from(in_flight_of(count)));
            let seconds = drain.retry_after(now, answered, self.queued());
            self.retry_after.store(seconds, Ordering::Relaxed);
        }
        let retry_after = self.retry_after.load(Ordering::Relaxed);
        HttpError::Shed { cause, status: self.limit.shed_status, retry_after }
    }

    /// Requests that are in.
    pub fn in_flight(&self) -> u32 {
        in_flight_of(self.count.0.load(Ordering::SeqCst))
    }

    /// Requests that may be in.
    pub fn bound(&self) -> u32 {
        match &self.bound {
            Ceiling::Fixed(bound) => *bound,
            Ceiling::Adaptive(adaptive) => adaptive.bound(),
        }
    }

    /// Requests that wait.
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// Requests that were ever let in.
    pub fn entered(&self) -> u64 {
        self.count.0.load(Ordering::Relaxed) >> IN_FLIGHT_BITS
    }

    /// Requests that were not let in, by cause.
    pub fn shed(&self) -> impl Iterator<Item = (LimitCause, u64)> {
        LimitCause::ALL
            .into_iter()
            .zip(&self.shed)
            .map(|(cause, count)| (cause, count.load(Ordering::Relaxed)))
    }

    /// When those who wait are to look, though nobody comes or is answered.
    fn look_by(&self) -> Option<Instant> {
        match &self.bound {
            Ceiling::Fixed(_) => None,
            Ceiling::Adaptive(adaptive) => Some(adaptive.look_by(self.queued())),
        }
    }

    /// One who waits looks.
    fn look(&self, now: Instant, lag: impl FnOnce() -> Option<Duration>) {
        if let Ceiling::Adaptive(adaptive) = &self.bound {
            adaptive.is_met(now, self.in_flight(), lag);
        }
        self.let_in(now);
    }

    fn wait(&self, priority: Priority, now: Instant) -> Entry<'_> {
        let (entry, stale, outranked) = {
            let mut queue = self.lock_queue();
            // Who comes sees the place that became free, or who frees it sees who came: the length is told first.
            self.queued.store(queue.len() + 1, Ordering::SeqCst);
            if !queue.is_ahead_of(priority) && self.take_place() {
                self.queued.store(queue.len(), Ordering::SeqCst);
                return Entry::In;
            }
            let stale = queue.take_stale(now);
            let (has_room, outranked) = match queue.make_room(priority, now) {
                Room::Free => (true, None),
                Room::InsteadOf(outranked) => (true, Some((outranked, LimitCause::Outranked))),
                Room::InsteadOfHalfClosed(waiter) => (true, Some((waiter, LimitCause::QueueFull))),
                Room::None => (false, None),
            };
            let entry = if has_room {
                let (to, from) = oneshot::channel();
                let ticket = queue.push(priority, now, to);
                let until = now.checked_add(self.limit.wait).unwrap_or(now);
                Entry::Wait(Waiting { gate: self, ticket, until, from, is_over: false })
            } else {
                Entry::Shed(LimitCause::QueueFull)
            };
            self.queued.store(queue.len(), Ordering::SeqCst);
            (entry, stale, outranked)
        };
        tell(stale, LimitCause::QueueAge);
        if let Some((waiter, cause)) = outranked {
            tell([waiter], cause);
        }
        // A place may have become free before anybody could see that somebody waits.
        if self.in_flight() < self.bound() {
            self.let_in(now);
        }
        entry
    }

    /// Lets in those who wait, as far as there is room.
    fn let_in(&self, now: Instant) {
        while self.queued.load(Ordering::SeqCst) > 0 {
            let Some(next) = self.take_next(now) else { return };
            if next.send(Word::In).is_err() {
                // He has just gone; it was never used.
                self.count.0.fetch_sub(ENTERED + 1, Ordering::SeqCst);
            }
        }
    }

    /// Who is next, with a place that is his.
    fn take_next(&self, now: Instant) -> Option<Sender> {
        let (next, stale) = {
            let mut queue = self.lock_queue();
            if queue.len() == 0 || !self.take_place() {
                return None;
            }
            let next = queue.take_next(now);
            let stale = queue.take_stale(now);
            // The length is only changed under the lock, so that it is the queue's.
            self.queued.store(queue.len(), Ordering::SeqCst);
            (next, stale)
        };
        tell(stale, LimitCause::QueueAge);
        if next.is_none() {
            self.count.0.fetch_sub(ENTERED + 1, Ordering::SeqCst);
        }
        next
    }

    /// Raises the counter where there is room. Never above the bound, not even for an instant.
    fn take_place(&self) -> bool {
        let bound = self.bound();
        let raise = |count| (in_flight_of(count) < bound).then(|| count.wrapping_add(ENTERED + 1));
        self.count.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, raise).is_ok()
    }

    fn lock_queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticketed<'_> {
    /// Its client has closed its sending side, and may have left: under overload it is the first to be refused.
    pub(crate) fn half_closed(self) {
        self.gate.lock_queue().half_closed(self.ticket);
    }
}

impl<'g> Waiting<'g> {
    pub(super) fn ticketed(&self) -> Ticketed<'g> {
        Ticketed { gate: self.gate, ticket: self.ticket }
    }

    /// Ends when there is a word, or the time to wait is over. `lag` is that of the worker that would answer.
    pub(super) async fn over(&mut self, lag: impl Fn(Instant) -> Option<Duration>) -> Result<(), LimitCause> {
        let word = loop {
            let look_by = self.gate.look_by().map_or(self.until, |look_by| look_by.min(self.until));
            match tokio::time::timeout_at(look_by.into(), &mut self.from).await {
                Ok(Ok(word)) => break Some(word),
                // Whoever takes one out of a queue tells him.
                Ok(Err(_)) => break Some(Word::Shed(LimitCause::QueueFull)),
                // A word that came at the same time counts.
                Err(_) if look_by == self.until => break self.give_up(),
                Err(_) => {
                    let now = Instant::now();
                    self.gate.look(now, || lag(now));
                }
            }
        };
        self.is_over = true;
        match word {
            Some(Word::In) => Ok(()),
            Some(Word::Shed(cause)) => Err(cause),
            None => Err(LimitCause::WaitedOut),
        }
    }

    /// Leaves the queue. `Some`: he had been taken out of it and told this.
    fn give_up(&mut self) -> Option<Word> {
        {
            let mut queue = self.gate.lock_queue();
            if queue.remove(self.ticket) {
                self.gate.queued.store(queue.len(), Ordering::SeqCst);
                return None;
            }
        }
        // One who is about to be told sees that nobody listens.
        self.from.close();
        self.from.try_recv().ok()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.is_over && self.give_up() == Some(Word::In) {
            self.gate.leave();
        }
    }
}

fn tell(waiting: impl IntoIterator<Item = Sender>, cause: LimitCause) {
    for to in waiting {
        // One who has just gone needs no word.
        let _ = to.send(Word::Shed(cause));
    }
}

fn in_flight_of(count: u64) -> u32 {
    (count & (ENTERED - 1)) as u32
}

#[cfg(test)]
mod tests;
