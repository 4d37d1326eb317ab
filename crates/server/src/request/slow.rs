//! What clients that are slow may hold: buffers, and places that others wait for.
//!
//! One table of the whole process, asked when a request's body does not come with its head or a client does not take its
//! response, and not on the way of any other request. Each kind of thing has a bound in total, and one client address
//! (of IPv6 a /64) may have a part of it. Knows who holds how much; what follows is for those who ask.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::SLOW_ADDRESS_PART;

/// What is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Bytes of buffers.
    Bytes,
    /// Requests that stream their bodies to this callee.
    Streams(Holder),
    /// Places of this callee whose clients read slowly.
    Places(Holder),
    /// Responses without a place.
    Readers,
}

/// Whose places these are: the address of an application's pool or of an upstream, for as long as it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Holder(usize);

/// Who holds what.
#[derive(Default)]
pub(crate) struct Slow {
    shares: Mutex<HashMap<Kind, Share>>,
}

/// How much of one kind is held. Invariant: `total` is at least the sum of what addresses hold.
#[derive(Default)]
struct Share {
    total: u64,
    addresses: HashMap<u64, u64>,
}

/// What one client holds; given back when this is dropped.
pub(crate) struct Held {
    slow: Arc<Slow>,
    kind: Kind,
    address: Option<u64>,
    amount: u64,
}

impl Holder {
    /// Of what this is shared with.
    pub(crate) fn of<T: ?Sized>(owner: &Arc<T>) -> Self {
        Self(Arc::as_ptr(owner).cast::<()>() as usize)
    }
}

impl Slow {
    /// Takes so much, of `most` in total. Without an address only the total counts.
    pub(crate) fn take(
        self: &Arc<Self>,
        kind: Kind,
        address: Option<u64>,
        amount: u64,
        most: u64,
    ) -> Option<Held> {
        let mut held = Held { slow: Arc::clone(self), kind, address, amount: 0 };
        held.grow(amount, most).then_some(held)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Kind, Share>> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// How much that is.
    pub(crate) fn amount(&self) -> u64 {
        self.amount
    }

    /// Takes so much more, if there is room.
    pub(crate) fn grow(&mut self, amount: u64, most: u64) -> bool {
        let mut shares = self.slow.lock();
        let share = shares.entry(self.kind).or_default();
        let of_address =
            self.address.map_or(0, |address| share.addresses.get(&address).copied().unwrap_or(0));
        // One is not too many where there is one.
        let most_of_address = (most / SLOW_ADDRESS_PART).max(most.min(1));
        let has_room = share.total + amount <= most
            && (self.address.is_none() || of_address + amount <= most_of_address);
        if has_room {
            share.total += amount;
            if let Some(address) = self.address {
                share.addresses.insert(address, of_address + amount);
            }
            self.amount += amount;
        } else if share.total == 0 {
            shares.remove(&self.kind);
        }
        has_room
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.amount == 0 {
            return;
        }
        let mut shares = self.slow.lock();
        let Some(share) = shares.get_mut(&self.kind) else { return };
        share.total -= self.amount;
        if let Some(address) = self.address
            && let Some(amount) = share.addresses.get_mut(&address)
        {
            *amount -= self.amount;
            if *amount == 0 {
                share.addresses.remove(&address);
            }
        }
        if share.total == 0 {
            shares.remove(&self.kind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_half_of_what_all_may_hold_and_gives_it_back() {
        let slow = Arc::new(Slow::default());
        let take = |address| slow.take(Kind::Bytes, Some(address), 10, 40);
        let (first, second) = (take(1).expect("room"), take(1).expect("room"));
        assert!(take(1).is_none(), "half is held");
        let _others = (take(2).expect("room"), take(3).expect("room"));
        assert!(take(4).is_none(), "all is held");
        drop(first);
        assert!(take(4).is_some());
        drop(second);
        assert!(take(1).is_some());
    }

    #[test]
    fn where_there_is_one_an_address_may_have_it_and_without_an_address_the_total_counts() {
        let slow = Arc::new(Slow::default());
        let one = slow.take(Kind::Readers, Some(1), 1, 1).expect("room");
        assert!(slow.take(Kind::Readers, Some(2), 1, 1).is_none());
        drop(one);
        let all: Vec<_> = std::iter::from_fn(|| slow.take(Kind::Readers, None, 1, 8)).collect();
        assert_eq!(all.len(), 8);
        assert!(slow.take(Kind::Readers, Some(1), 1, 8).is_none());
    }

    #[test]
    fn what_nobody_holds_takes_no_memory() {
        let slow = Arc::new(Slow::default());
        let callees: Vec<_> = (0..100).map(|_| Arc::new(())).collect();
        let held: Vec<_> = callees
            .iter()
            .map(|callee| slow.take(Kind::Streams(Holder::of(callee)), Some(7), 1, 2).expect("room"))
            .collect();
        assert!(slow.take(Kind::Bytes, None, 2, 1).is_none());
        assert_eq!(slow.lock().len(), callees.len());
        drop(held);
        assert!(slow.lock().is_empty());
    }
}
