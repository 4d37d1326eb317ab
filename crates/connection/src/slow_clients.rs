//! What slow clients may hold: buffers, and slots that other requests wait for.
//!
//! One table of the whole process, asked when a request's body does not come with its head or a client does not take its
//! response, and not on the path of any other request. Each resource has a bound in total, and one client address
//! (of IPv6 a /64) may hold a part of it. Only counts; what a refusal means is the caller's decision.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::SLOW_ADDRESS_PART;

/// What slow clients hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resource {
    /// Bytes of buffers.
    Bytes,
    /// Requests that stream their bodies to this target.
    Streams(OwnerId),
    /// Slots of this target whose clients read slowly.
    Slots(OwnerId),
    /// Responses without a slot.
    Readers,
}

/// Identifies the owner of slots: the address of an application's pool or of an upstream, for as long as that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerId(usize);

/// What the slow clients of the process hold.
#[derive(Default)]
pub struct SlowClients {
    shares: Mutex<HashMap<Resource, Share>>,
}

/// How much of one resource is held. Invariant: `total` is at least the sum of what addresses hold.
#[derive(Default)]
struct Share {
    total: u64,
    addresses: HashMap<u64, u64>,
}

/// What one client holds; released when this is dropped.
pub struct Reservation {
    slow: Arc<SlowClients>,
    resource: Resource,
    address: Option<u64>,
    amount: u64,
}

impl OwnerId {
    /// The identity of what `owner` shares.
    pub fn of<T: ?Sized>(owner: &Arc<T>) -> Self {
        Self(Arc::as_ptr(owner).cast::<()>() as usize)
    }
}

impl SlowClients {
    /// Reserves an amount, of `most` in total. Without an address only the total counts.
    pub fn take(
        self: &Arc<Self>,
        resource: Resource,
        address: Option<u64>,
        amount: u64,
        most: u64,
    ) -> Option<Reservation> {
        let mut held = Reservation { slow: Arc::clone(self), resource, address, amount: 0 };
        held.grow(amount, most).then_some(held)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Resource, Share>> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reservation {
    /// The amount that is held.
    pub fn amount(&self) -> u64 {
        self.amount
    }

    /// Reserves more, if there is room.
    pub fn grow(&mut self, amount: u64, most: u64) -> bool {
        let mut shares = self.slow.lock();
        let share = shares.entry(self.resource).or_default();
        let of_address =
            self.address.map_or(0, |address| share.addresses.get(&address).copied().unwrap_or(0));
        // Of one, an address may hold it.
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
            shares.remove(&self.resource);
        }
        has_room
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.amount == 0 {
            return;
        }
        let mut shares = self.slow.lock();
        let Some(share) = shares.get_mut(&self.resource) else { return };
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
            shares.remove(&self.resource);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_hold_half_of_the_total_and_releases_it() {
        let slow = Arc::new(SlowClients::default());
        let take = |address| slow.take(Resource::Bytes, Some(address), 10, 40);
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
    fn of_one_an_address_may_hold_it_and_without_an_address_only_the_total_counts() {
        let slow = Arc::new(SlowClients::default());
        let one = slow.take(Resource::Readers, Some(1), 1, 1).expect("room");
        assert!(slow.take(Resource::Readers, Some(2), 1, 1).is_none());
        drop(one);
        let all: Vec<_> = std::iter::from_fn(|| slow.take(Resource::Readers, None, 1, 8)).collect();
        assert_eq!(all.len(), 8);
        assert!(slow.take(Resource::Readers, Some(1), 1, 8).is_none());
    }

    #[test]
    fn a_resource_that_is_not_held_takes_no_memory() {
        let slow = Arc::new(SlowClients::default());
        let owners: Vec<_> = (0..100).map(|_| Arc::new(())).collect();
        let held: Vec<_> = owners
            .iter()
            .map(|owner| slow.take(Resource::Streams(OwnerId::of(owner)), Some(7), 1, 2).expect("room"))
            .collect();
        assert!(slow.take(Resource::Bytes, None, 2, 1).is_none());
        assert_eq!(slow.lock().len(), owners.len());
        drop(held);
        assert!(slow.lock().is_empty());
    }
}
