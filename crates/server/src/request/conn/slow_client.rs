//! What becomes of a place while the client of its request takes nothing of an answer that is ready: a place is for work.
//!
//! Limiters and workers that send in frames have others meanwhile, and the request comes back, without waiting, as soon as its
//! client goes on: in flight may be more than the bound for as long as that work takes. A program in HTTP, or a
//! connection of an upstream, is busy until all is taken: of such places slow clients may hold a part, and one beyond that is
//! given up where others wait. Writes nothing.

use std::sync::Arc;
use std::task::Context;

use super::exchange::Line;
use crate::limits::{SLOW_CLIENT_AFTER, SLOW_READERS_MAX, SLOW_SLOTS_PART};
use onehop_connection::deadline::{Deadline, Waiting};
use onehop_connection::slow_clients::{OwnerId, Reservation, Resource};
use onehop_upstream::peer::Peer;
use onehop_workers::{Pool, Worker};

/// The place that an answer on its way keeps from others, for as long as it is not over.
pub(crate) enum Kept {
    /// At a worker that sends when it is asked to: it can have others meanwhile.
    Worker(Arc<Pool>, Arc<Worker>),
    /// At a program in HTTP, which is busy with its answer until all of it is taken.
    Program(Arc<Pool>),
    /// A connection of an upstream that may have so many.
    Upstream(Arc<Peer>, usize),
}

impl Kept {
    /// Whether a place for one more is waited for.
    fn is_wanted(&self) -> bool {
        match self {
            Self::Worker(pool, _) | Self::Program(pool) => pool.queued() > 0,
            Self::Upstream(peer, _) => peer.waiting() > 0,
        }
    }

    fn holder(&self) -> OwnerId {
        match self {
            Self::Worker(pool, _) | Self::Program(pool) => OwnerId::of(pool),
            Self::Upstream(peer, _) => OwnerId::of(peer),
        }
    }

    fn places(&self) -> u64 {
        match self {
            Self::Worker(pool, _) | Self::Program(pool) => pool.slots(),
            Self::Upstream(_, places) => *places as u64,
        }
    }
}

/// A request whose client is slow to read: others have its turn until it goes on. Dropped, it does.
struct Parked<'l, 'c> {
    line: &'l Line<'c>,
    worker: Option<Arc<Worker>>,
    _held: Reservation,
}

impl<'l, 'c> Parked<'l, 'c> {
    fn new(line: &'l Line<'c>, kept: Option<&Kept>, held: Reservation) -> Self {
        line.permits.borrow_mut().pause();
        let worker = match kept {
            Some(Kept::Worker(pool, worker)) => {
                pool.give_back(worker);
                Some(Arc::clone(worker))
            }
            _ => None,
        };
        Self { line, worker, _held: held }
    }
}

impl Drop for Parked<'_, '_> {
    fn drop(&mut self) {
        self.line.permits.borrow_mut().resume();
        if let Some(worker) = &self.worker {
            worker.come_back();
        }
    }
}

/// A write that waits for its client.
pub(super) struct SlowClient<'w, 'l, 'c> {
    line: &'l Line<'c>,
    kept: Option<&'w Kept>,
    slow: &'w mut Option<Reservation>,
    at: &'w mut Option<Deadline>,
    is_watched: bool,
    /// All is done that can be.
    is_settled: bool,
    parked: Option<Parked<'l, 'c>>,
}

impl<'w, 'l, 'c> SlowClient<'w, 'l, 'c> {
    /// For an answer that keeps this place. `slow` is what it has in its stead, `at` when its client counts as slow.
    pub(super) fn new(
        line: &'l Line<'c>,
        kept: Option<&'w Kept>,
        slow: &'w mut Option<Reservation>,
        at: &'w mut Option<Deadline>,
    ) -> Self {
        Self { line, kept, slow, at, is_watched: false, is_settled: false, parked: None }
    }

    /// Gives the place of a slow client to others. `true`: it cannot be given to them, they wait for one, and slow
    /// clients, or those of its address, hold their part of such places already.
    pub(super) fn poll_too_slow(&mut self, context: &Context<'_>) -> bool {
        if self.is_settled {
            return false;
        }
        let at = self.at.get_or_insert_with(|| self.line.core.connection.deadline());
        if !std::mem::replace(&mut self.is_watched, true) {
            self.is_settled = self.kept.is_none() && !self.line.permits.borrow().holds_any();
            at.set(Waiting::Write, SLOW_CLIENT_AFTER);
        }
        while !self.is_settled && at.poll_over(context) {
            let (slow, address) = (self.line.core.connection.slow_clients(), self.line.address.get());
            if self.parked.is_none() {
                let held = slow.take(Resource::Readers, address, 1, SLOW_READERS_MAX);
                self.parked = held.map(|held| Parked::new(self.line, self.kept, held));
            }
            let is_at_worker = matches!(self.kept, None | Some(Kept::Worker(..)));
            let is_given = is_at_worker && self.parked.is_some();
            if let (false, None, Some(kept)) = (is_given, &self.slow, self.kept) {
                let most = (kept.places() / SLOW_SLOTS_PART).max(1);
                *self.slow = slow.take(Resource::Slots(kept.holder()), address, 1, most);
                if self.slow.is_none() && kept.is_wanted() {
                    return true;
                }
            }
            self.is_settled = self.parked.is_some() && (is_given || self.slow.is_some());
            at.set(Waiting::Write, SLOW_CLIENT_AFTER);
        }
        false
    }
}
