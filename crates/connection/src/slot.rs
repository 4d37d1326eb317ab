//! The slot that a response keeps: one of a bounded number of requests that an application or an upstream takes at a time.

use std::sync::Arc;

use crate::slow_clients::OwnerId;

/// An application's pool of workers, or an upstream.
pub trait SlotHolder {
    /// Whether requests wait for a slot.
    fn is_wanted(&self) -> bool;
    /// The number of its slots.
    fn capacity(&self) -> u64;
    /// A slot was released by [`YieldSlot::release`]: a request that waits may have it.
    fn slot_released(self: Arc<Self>) {}
}

/// A worker that sends when the server has room for more: while a client is slow, others can have the slot of its request.
pub trait YieldSlot {
    /// Releases the slot.
    fn release(&self);
    /// Takes the slot back without waiting: more requests than there are slots may be in flight for as long as that takes.
    fn reacquire(&self);
}

/// The slot that a response keeps from other requests until it is over.
pub struct Slot {
    holder: Arc<dyn SlotHolder>,
    /// `None`: its holder is busy until the client has taken the whole response.
    worker: Option<Arc<dyn YieldSlot>>,
}

impl Slot {
    /// A slot that is busy until the client has taken the whole response: a connection of an upstream, or a program in HTTP.
    pub fn busy(holder: Arc<dyn SlotHolder>) -> Self {
        Self { holder, worker: None }
    }

    /// A slot that others can have while the client is slow.
    pub fn at_worker(holder: Arc<dyn SlotHolder>, worker: Arc<dyn YieldSlot>) -> Self {
        Self { holder, worker: Some(worker) }
    }

    /// Whether others can have it while the client is slow.
    pub(crate) fn can_yield(&self) -> bool {
        self.worker.is_some()
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.holder.is_wanted()
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.holder.capacity()
    }

    pub(crate) fn owner(&self) -> OwnerId {
        OwnerId::of(&self.holder)
    }

    /// Lets others have it, where that is possible, until the result is dropped.
    pub(crate) fn release(&self) -> Option<Released> {
        let worker = Arc::clone(self.worker.as_ref()?);
        worker.release();
        Arc::clone(&self.holder).slot_released();
        Some(Released(worker))
    }
}

/// A slot that others may have; taken back when this is dropped.
pub(crate) struct Released(Arc<dyn YieldSlot>);

impl Drop for Released {
    fn drop(&mut self) {
        self.0.reacquire();
    }
}
