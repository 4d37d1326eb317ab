//! What becomes of a slot while the client takes nothing of a response that is ready: a slot is for work.
//!
//! Other requests have the permits of limiters meanwhile, and the slots of workers that send in frames. The request takes
//! them back, without waiting, as soon as its client continues: more requests than the bound may be in flight for as long as
//! that work takes. A program in HTTP, or a connection of an upstream, is busy until the client has taken all: slow clients may
//! hold a part of such slots, and a response beyond that part is broken off if other requests wait. Writes nothing.

use std::task::Context;

use crate::deadline::{Deadline, Waiting};
use crate::exchange_io::ExchangeIo;
use crate::limits::{SLOW_CLIENT_AFTER, SLOW_READERS_MAX, SLOW_SLOTS_PART};
use crate::slot::{Released, Slot};
use crate::slow_clients::{Reservation, Resource};

/// A request whose client is slow to read: others have its permits and its slot until this is dropped.
struct Parked<'l, 'c> {
    io: &'l ExchangeIo<'c>,
    _slot: Option<Released>,
    _held: Reservation,
}

impl<'l, 'c> Parked<'l, 'c> {
    fn new(io: &'l ExchangeIo<'c>, slot: Option<&Slot>, held: Reservation) -> Self {
        io.permits.pause();
        Self { io, _slot: slot.and_then(Slot::release), _held: held }
    }
}

impl Drop for Parked<'_, '_> {
    fn drop(&mut self) {
        self.io.permits.resume();
    }
}

/// A write that waits for its client.
pub(crate) struct SlowReader<'w, 'l, 'c> {
    io: &'l ExchangeIo<'c>,
    slot: Option<&'w Slot>,
    slow: &'w mut Option<Reservation>,
    at: &'w mut Option<Deadline>,
    is_watched: bool,
    /// Nothing more can be released.
    is_settled: bool,
    parked: Option<Parked<'l, 'c>>,
}

impl<'w, 'l, 'c> SlowReader<'w, 'l, 'c> {
    /// For a response that keeps this slot. `slow` is the reservation that lets it keep the slot, `at` when its client counts
    /// as slow.
    pub(crate) fn new(
        io: &'l ExchangeIo<'c>,
        slot: Option<&'w Slot>,
        slow: &'w mut Option<Reservation>,
        at: &'w mut Option<Deadline>,
    ) -> Self {
        Self { io, slot, slow, at, is_watched: false, is_settled: false, parked: None }
    }

    /// Yields the slot of a slow client to others. `true`: the slot cannot be yielded, other requests wait for one, and slow
    /// clients, or those of this client's address, hold their part of such slots already.
    pub(crate) fn poll_too_slow(&mut self, context: &Context<'_>) -> bool {
        if self.is_settled {
            return false;
        }
        let core = self.io.core;
        let at = self.at.get_or_insert_with(|| core.deadline());
        if !std::mem::replace(&mut self.is_watched, true) {
            self.is_settled = self.slot.is_none() && !self.io.permits.holds_any();
            at.set(Waiting::Write, SLOW_CLIENT_AFTER);
        }
        while !self.is_settled && at.poll_over(context) {
            let (clients, address) = (core.slow_clients(), self.io.address.get());
            if self.parked.is_none() {
                let held = clients.take(Resource::Readers, address, 1, SLOW_READERS_MAX);
                self.parked = held.map(|held| Parked::new(self.io, self.slot, held));
            }
            let is_yielded = self.parked.is_some() && self.slot.is_none_or(Slot::can_yield);
            if let (false, None, Some(slot)) = (is_yielded, &self.slow, self.slot) {
                let most = (slot.capacity() / SLOW_SLOTS_PART).max(1);
                *self.slow = clients.take(Resource::Slots(slot.owner()), address, 1, most);
                if self.slow.is_none() && slot.is_wanted() {
                    return true;
                }
            }
            self.is_settled = self.parked.is_some() && (is_yielded || self.slow.is_some());
            at.set(Waiting::Write, SLOW_CLIENT_AFTER);
        }
        false
    }
}
