//! The protocol by which no request that waits is forgotten, and a list from which each of them can leave at any time.
//!
//! A request waits because a shared resource has no room. It must not miss the room that another thread makes in the same
//! moment, and the threads that make room must not lock a queue only to find it empty. So [`WaitQueue`] publishes its
//! length beside its lock:
//!
//! - A request that is about to wait locks the queue with [`WaitQueue::lock_to_wait`], which publishes that it waits, and
//!   only then checks a last time whether there is room.
//! - A thread that makes room changes the resource first, and only then reads [`WaitQueue::len`].
//!
//! All of these accesses are sequentially consistent: either the request sees the room, or the thread sees the request.
//! `tests/model.rs` explores the interleavings.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};

use crate::sync::{AtomicUsize, Mutex, MutexGuard, Ordering, PoisonError};

/// A queue behind a lock, and its length beside it.
#[derive(Debug)]
pub struct WaitQueue<Q> {
    /// Changed only under the lock.
    length: AtomicUsize,
    queue: Mutex<Q>,
}

/// What can be said of a queue without knowing what waits in it.
pub trait Length {
    /// Requests that wait.
    fn length(&self) -> usize;
}

/// A locked [`WaitQueue`]. Dropped, it publishes the length and unlocks the queue.
pub struct Locked<'q, Q: Length> {
    length: &'q AtomicUsize,
    queue: MutexGuard<'q, Q>,
}

/// Requests in the order in which they came, by a number that grows with each.
///
/// A client that closes its sending side after a complete request may read on or have left. Its request is served like
/// any other, but is the first to make room where there is none.
///
/// Invariant: `half_closed` has only numbers that are in `waiting`.
#[derive(Debug)]
pub struct WaitList<T> {
    waiting: BTreeMap<u64, T>,
    half_closed: BTreeSet<u64>,
}

impl<Q: Length> WaitQueue<Q> {
    /// Wraps an empty queue.
    pub fn new(queue: Q) -> Self {
        Self { length: AtomicUsize::new(0), queue: Mutex::new(queue) }
    }

    /// Requests that wait, or are about to. Where this is 0 after room was made, nobody missed it.
    pub fn len(&self) -> usize {
        self.length.load(Ordering::SeqCst)
    }

    /// Whether no request waits or is about to.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Locks the queue.
    pub fn lock(&self) -> Locked<'_, Q> {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        Locked { length: &self.length, queue }
    }

    /// Locks the queue for a request that is about to wait. The caller checks a last time whether there is room before it
    /// queues the request.
    pub fn lock_to_wait(&self) -> Locked<'_, Q> {
        let locked = self.lock();
        self.length.store(locked.queue.length() + 1, Ordering::SeqCst);
        locked
    }
}

impl<Q: Length> Deref for Locked<'_, Q> {
    type Target = Q;

    fn deref(&self) -> &Q {
        &self.queue
    }
}

impl<Q: Length> DerefMut for Locked<'_, Q> {
    fn deref_mut(&mut self) -> &mut Q {
        &mut self.queue
    }
}

impl<Q: Length> Drop for Locked<'_, Q> {
    fn drop(&mut self) {
        self.length.store(self.queue.length(), Ordering::SeqCst);
    }
}

impl<T> Default for WaitList<T> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), half_closed: BTreeSet::new() }
    }
}

impl<T> Length for WaitList<T> {
    fn length(&self) -> usize {
        self.waiting.len()
    }
}

impl<T> WaitList<T> {
    /// Whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Appends a request. Its number must be larger than those before.
    pub fn push(&mut self, number: u64, request: T) {
        debug_assert!(self.waiting.last_key_value().is_none_or(|(last, _)| *last < number), "numbers grow");
        self.waiting.insert(number, request);
    }

    /// The oldest request and its number.
    pub fn first(&self) -> Option<(u64, &T)> {
        self.waiting.first_key_value().map(|(number, request)| (*number, request))
    }

    /// Removes the oldest request.
    pub fn pop_first(&mut self) -> Option<T> {
        let (number, request) = self.waiting.pop_first()?;
        self.half_closed.remove(&number);
        Some(request)
    }

    /// Removes the newest request.
    pub fn pop_last(&mut self) -> Option<T> {
        let (number, request) = self.waiting.pop_last()?;
        self.half_closed.remove(&number);
        Some(request)
    }

    /// Removes the request with this number; `None` if it is no longer in the list.
    pub fn remove(&mut self, number: u64) -> Option<T> {
        self.half_closed.remove(&number);
        self.waiting.remove(&number)
    }

    /// Notes that the client of this request has closed its sending side.
    pub fn mark_half_closed(&mut self, number: u64) {
        if self.waiting.contains_key(&number) {
            self.half_closed.insert(number);
        }
    }

    /// The number of the oldest request whose client has closed its sending side.
    pub fn first_half_closed(&self) -> Option<u64> {
        self.half_closed.first().copied()
    }

    /// Removes the oldest request whose client has closed its sending side.
    pub fn pop_half_closed(&mut self) -> Option<T> {
        let number = self.half_closed.pop_first()?;
        self.waiting.remove(&number)
    }

    /// The requests, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.waiting.values()
    }

    /// Keeps only the requests for which this holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let Self { waiting, half_closed } = self;
        waiting.retain(|number, request| {
            let kept = keep(request);
            if !kept {
                half_closed.remove(number);
            }
            kept
        });
    }

    /// Removes all requests, oldest first.
    pub fn take_all(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.half_closed.clear();
        std::mem::take(&mut self.waiting).into_values()
    }
}
