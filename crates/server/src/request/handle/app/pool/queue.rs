//! The requests that wait for a worker: in the order in which they came, for any worker or for one.
//!
//! Knows their order and how many may wait; not which worker has room.

use std::collections::BTreeMap;
use std::sync::Arc;

use onehop_limits::wait_queue::{Length, WaitList};
use tokio::sync::oneshot;

use super::{Grant, Seat, Worker};

/// Invariant: no list is empty.
#[derive(Default)]
pub(super) struct Queue {
    /// By the worker for which they wait; `None` is any. No more lists than an application has had seats.
    lists: BTreeMap<Option<Seat>, WaitList<oneshot::Sender<Grant>>>,
    /// The number of the next request.
    next: u64,
}

/// Names a request in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    number: u64,
    seat: Option<Seat>,
}

impl Length for Queue {
    fn length(&self) -> usize {
        self.lists.values().map(WaitList::length).sum()
    }
}

impl Queue {
    /// Whether a request waits that is served before a new one: for the same worker, or for any.
    pub(super) fn is_ahead_of(&self, seat: Option<Seat>) -> bool {
        self.lists.contains_key(&None) || self.lists.contains_key(&seat)
    }

    /// Whether a new request may wait, where so many may. Those that wait for one worker must be fewer than there is
    /// room left (dynamic thresholds; Choudhury and Hahne, 1998): alone they have half of the queue, two such
    /// lists a third each, and however many clients ask for a worker that is full, others still find room.
    pub(super) fn has_room(&self, seat: Option<Seat>, length_max: usize) -> bool {
        let room = length_max.saturating_sub(self.length());
        match seat {
            None => room > 0,
            Some(_) => self.lists.get(&seat).map_or(0, WaitList::length) < room,
        }
    }

    pub(super) fn push(&mut self, seat: Option<Seat>, sender: oneshot::Sender<Grant>) -> Ticket {
        let ticket = Ticket { number: self.next, seat };
        self.lists.entry(seat).or_default().push(self.next, sender);
        self.next += 1;
        ticket
    }

    /// Notes that the client of a waiting request has closed its sending side.
    pub(super) fn half_closed(&mut self, ticket: Ticket) {
        if let Some(list) = self.lists.get_mut(&ticket.seat) {
            list.mark_half_closed(ticket.number);
        }
    }

    /// Drops the oldest of these requests; `false` where there is none.
    pub(super) fn drop_half_closed(&mut self) -> bool {
        let oldest = |(seat, list): (_, &WaitList<_>)| list.first_half_closed().map(|number| (number, seat));
        let Some((_, seat)) = self.lists.iter().map(|(seat, list)| (*seat, list)).filter_map(oldest).min()
        else {
            return false;
        };
        self.pop(seat, WaitList::pop_half_closed).is_some()
    }

    /// Requests whose client has not gone.
    pub(super) fn open(&self) -> usize {
        self.lists.values().flat_map(WaitList::iter).filter(|sender| !sender.is_closed()).count()
    }

    /// Removes the requests whose client has gone.
    pub(super) fn retain_open(&mut self) {
        self.lists.retain(|_, list| {
            list.retain(|sender| !sender.is_closed());
            !list.is_empty()
        });
    }

    /// Removes all requests.
    pub(super) fn take_all(&mut self) -> Vec<oneshot::Sender<Grant>> {
        std::mem::take(&mut self.lists).into_values().flat_map(|mut list| list.take_all()).collect()
    }

    /// Removes the oldest request for which there is a place: looks only at the first of each list.
    pub(super) fn take_first(
        &mut self,
        mut place: impl FnMut(Option<Seat>) -> Option<Arc<Worker>>,
    ) -> Option<(oneshot::Sender<Grant>, Arc<Worker>)> {
        let firsts = self.lists.iter().filter_map(|(seat, list)| Some((list.first()?.0, *seat)));
        let mut firsts: Vec<_> = firsts.collect();
        firsts.sort_unstable();
        let (seat, worker) = firsts.into_iter().find_map(|(_, seat)| Some((seat, place(seat)?)))?;
        Some((self.pop(seat, WaitList::pop_first)?, worker))
    }

    fn pop<T>(
        &mut self,
        seat: Option<Seat>,
        pop: impl FnOnce(&mut WaitList<oneshot::Sender<Grant>>) -> Option<T>,
    ) -> Option<T> {
        let list = self.lists.get_mut(&seat)?;
        let popped = pop(list);
        if list.is_empty() {
            self.lists.remove(&seat);
        }
        popped
    }
}
