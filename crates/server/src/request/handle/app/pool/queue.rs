//! Those who wait for a place: in the order in which they came, for any worker or for one.
//!
//! Knows who came first and who may wait; not which worker has room.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Grant, Seat, Worker};

/// Invariant: `length` is the sum of the lists' lengths, and no list is empty.
#[derive(Default)]
pub(super) struct Queue {
    /// By what they wait for; `None` is any worker. No more lists than an application has had seats.
    lists: BTreeMap<Option<Seat>, VecDeque<Waiting>>,
    length: usize,
    /// Those whose clients have closed their sending sides.
    half_closed: BTreeSet<Ticket>,
    /// The number of who comes next.
    next: u64,
}

/// By what a queue knows one who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket {
    number: u64,
    seat: Option<Seat>,
}

struct Waiting {
    number: u64,
    sender: oneshot::Sender<Grant>,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Whether somebody waits who comes before a newcomer: for the same, or for any worker.
    pub(super) fn is_ahead_of(&self, seat: Option<Seat>) -> bool {
        self.lists.contains_key(&None) || self.lists.contains_key(&seat)
    }

    /// Whether a newcomer may wait, where so many may. Those who wait for one worker must be fewer than there is
    /// room left (dynamic thresholds; Choudhury and Hahne, 1998): alone they have half of the queue, two such
    /// lists a third each, and however many clients ask for what is full, others still find room.
    pub(super) fn has_room(&self, seat: Option<Seat>, length_max: usize) -> bool {
        let room = length_max.saturating_sub(self.length);
        match seat {
            None => room > 0,
            Some(_) => self.lists.get(&seat).map_or(0, VecDeque::len) < room,
        }
    }

    pub(super) fn push(&mut self, seat: Option<Seat>, sender: oneshot::Sender<Grant>) -> Ticket {
        let ticket = Ticket { number: self.next, seat };
        self.lists.entry(seat).or_default().push_back(Waiting { number: self.next, sender });
        self.next += 1;
        self.length += 1;
        ticket
    }

    /// The client of one who waits has closed its sending side.
    pub(super) fn half_closed(&mut self, ticket: Ticket) {
        if self.at(ticket).is_some() {
            self.half_closed.insert(ticket);
        }
    }

    /// Drops the one of these who came first; `false` where none waits.
    pub(super) fn drop_half_closed(&mut self) -> bool {
        while let Some(ticket) = self.half_closed.pop_first() {
            let Some(at) = self.at(ticket) else { continue };
            if let Some(list) = self.lists.get_mut(&ticket.seat) {
                list.remove(at);
                if list.is_empty() {
                    self.lists.remove(&ticket.seat);
                }
                self.length -= 1;
                return true;
            }
        }
        false
    }

    fn at(&self, ticket: Ticket) -> Option<usize> {
        let list = self.lists.get(&ticket.seat)?;
        list.binary_search_by_key(&ticket.number, |waiting| waiting.number).ok()
    }

    /// Those whose client has not gone.
    pub(super) fn open(&self) -> usize {
        self.lists.values().flatten().filter(|waiting| !waiting.sender.is_closed()).count()
    }

    /// Takes out those whose client has gone.
    pub(super) fn retain_open(&mut self) {
        self.lists.retain(|_, list| {
            list.retain(|waiting| !waiting.sender.is_closed());
            !list.is_empty()
        });
        let left = std::mem::take(&mut self.half_closed);
        self.half_closed = left.into_iter().filter(|ticket| self.at(*ticket).is_some()).collect();
        self.length = self.lists.values().map(VecDeque::len).sum();
    }

    /// Takes out everybody.
    pub(super) fn take_all(&mut self) -> Vec<oneshot::Sender<Grant>> {
        self.length = 0;
        self.half_closed.clear();
        std::mem::take(&mut self.lists).into_values().flatten().map(|waiting| waiting.sender).collect()
    }

    /// Takes out who came first of those for whom there is a place: looks only at the first of each list.
    pub(super) fn take_first(
        &mut self,
        mut place: impl FnMut(Option<Seat>) -> Option<Arc<Worker>>,
    ) -> Option<(oneshot::Sender<Grant>, Arc<Worker>)> {
        let firsts = self.lists.iter().filter_map(|(seat, list)| Some((list.front()?.number, *seat)));
        let mut firsts: Vec<_> = firsts.collect();
        firsts.sort_unstable();
        let (seat, worker) = firsts.into_iter().find_map(|(_, seat)| Some((seat, place(seat)?)))?;
        Some((self.pop(seat)?, worker))
    }

    fn pop(&mut self, seat: Option<Seat>) -> Option<oneshot::Sender<Grant>> {
        let list = self.lists.get_mut(&seat)?;
        let waiting = list.pop_front()?;
        self.half_closed.remove(&Ticket { number: waiting.number, seat });
        if list.is_empty() {
            self.lists.remove(&seat);
        }
        self.length -= 1;
        Some(waiting.sender)
    }
}
