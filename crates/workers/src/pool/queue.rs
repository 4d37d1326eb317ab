//! The requests that wait for a worker: in the order in which they came, for any worker or for one.
//!
//! Knows their order and how many may wait; not which worker has room.

use std::collections::BTreeMap;
use std::sync::Arc;

use onehop_limits::wait_queue::{Length, WaitList};
use tokio::sync::oneshot;

use crate::worker::{Worker, WorkerIndex};

/// The waiting requests, each with the sender of its grant `G`.
///
/// Invariant: no list is empty.
pub(super) struct Queue<G> {
    /// By the worker for which they wait; `None` is any. No more lists than an application has had worker indexes.
    lists: BTreeMap<Option<WorkerIndex>, WaitList<oneshot::Sender<G>>>,
    /// The number of the next request.
    next: u64,
}

/// Names a request in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    number: u64,
    index: Option<WorkerIndex>,
}

impl<G> Default for Queue<G> {
    fn default() -> Self {
        Self { lists: BTreeMap::new(), next: 0 }
    }
}

impl<G> Length for Queue<G> {
    fn length(&self) -> usize {
        self.lists.values().map(WaitList::length).sum()
    }
}

impl<G> Queue<G> {
    /// Whether a request waits that is served before a new one: for the same worker, or for any.
    pub(super) fn is_ahead_of(&self, index: Option<WorkerIndex>) -> bool {
        self.lists.contains_key(&None) || self.lists.contains_key(&index)
    }

    /// Whether a new request may wait, where so many may. Those that wait for one worker must be fewer than there is
    /// room left (dynamic thresholds; Choudhury and Hahne, 1998): alone they have half of the queue, two such
    /// lists a third each, and however many clients ask for a worker that is full, others still find room.
    pub(super) fn has_room(&self, index: Option<WorkerIndex>, length_max: usize) -> bool {
        let room = length_max.saturating_sub(self.length());
        match index {
            None => room > 0,
            Some(_) => self.lists.get(&index).map_or(0, WaitList::length) < room,
        }
    }

    pub(super) fn push(&mut self, index: Option<WorkerIndex>, sender: oneshot::Sender<G>) -> Ticket {
        let ticket = Ticket { number: self.next, index };
        self.lists.entry(index).or_default().push(self.next, sender);
        self.next += 1;
        ticket
    }

    /// Notes that the client of a waiting request has closed its sending side.
    pub(super) fn half_closed(&mut self, ticket: Ticket) {
        if let Some(list) = self.lists.get_mut(&ticket.index) {
            list.mark_half_closed(ticket.number);
        }
    }

    /// Drops the oldest of these requests; `false` where there is none.
    pub(super) fn drop_half_closed(&mut self) -> bool {
        let oldest =
            |(index, list): (_, &WaitList<_>)| list.first_half_closed().map(|number| (number, index));
        let Some((_, index)) = self.lists.iter().map(|(index, list)| (*index, list)).filter_map(oldest).min()
        else {
            return false;
        };
        self.pop(index, WaitList::pop_half_closed).is_some()
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
    pub(super) fn take_all(&mut self) -> Vec<oneshot::Sender<G>> {
        std::mem::take(&mut self.lists).into_values().flat_map(|mut list| list.take_all()).collect()
    }

    /// Removes the oldest request for which there is a slot: looks only at the first of each list.
    pub(super) fn take_first(
        &mut self,
        mut slot: impl FnMut(Option<WorkerIndex>) -> Option<Arc<Worker>>,
    ) -> Option<(oneshot::Sender<G>, Arc<Worker>)> {
        let firsts = self.lists.iter().filter_map(|(index, list)| Some((list.first()?.0, *index)));
        let mut firsts: Vec<_> = firsts.collect();
        firsts.sort_unstable();
        let (index, worker) = firsts.into_iter().find_map(|(_, index)| Some((index, slot(index)?)))?;
        Some((self.pop(index, WaitList::pop_first)?, worker))
    }

    fn pop<T>(
        &mut self,
        index: Option<WorkerIndex>,
        pop: impl FnOnce(&mut WaitList<oneshot::Sender<G>>) -> Option<T>,
    ) -> Option<T> {
        let list = self.lists.get_mut(&index)?;
        let popped = pop(list);
        if list.is_empty() {
            self.lists.remove(&index);
        }
        popped
    }
}
