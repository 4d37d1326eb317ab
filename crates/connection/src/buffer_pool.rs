//! Buffers that a core keeps for the next connection, instead of asking the allocator again.
//!
//! The buffer that was given back last is taken first, because it is still in the processor's caches. After a burst the
//! pool shrinks by itself to what is needed. Never hands out a buffer that holds another client's bytes.

use std::cell::{Cell, RefCell};

use crate::limits::{POOLED_BUFFER_BYTES_MAX, POOLED_BUFFERS_KEPT, POOLED_BYTES_MAX};

/// A value whose memory is worth keeping for the next user.
pub trait Reusable {
    /// Allocates a value.
    fn new() -> Self;
    /// Bytes of memory that the value holds.
    fn bytes_held(&self) -> usize;
    /// Clears the value and keeps its memory.
    fn clear(&mut self);
}

/// The values that are not in use now.
pub struct BufferPool<T> {
    /// In boxes, because they move: the future that holds one stays small.
    free: RefCell<Vec<Box<T>>>,
    /// Bytes that the free values hold.
    held: Cell<usize>,
    /// The fewest free values since the last tick: so many were not needed.
    fewest: Cell<usize>,
}

impl<T> Default for BufferPool<T> {
    fn default() -> Self {
        Self { free: RefCell::default(), held: Cell::new(0), fewest: Cell::new(0) }
    }
}

impl<T: Reusable> BufferPool<T> {
    /// Takes a cleared value from the pool, allocating one if the pool is empty.
    pub fn take(&self) -> Box<T> {
        let mut free = self.free.borrow_mut();
        let taken = free.pop();
        self.fewest.set(self.fewest.get().min(free.len()));
        let Some(taken) = taken else { return Box::new(T::new()) };
        self.forget(&taken);
        taken
    }

    /// Takes a value back, unless it or the pool is too large.
    pub fn give_back(&self, mut value: Box<T>) {
        value.clear();
        let bytes = value.bytes_held();
        let held = self.held.get() + bytes;
        if bytes <= POOLED_BUFFER_BYTES_MAX && held <= POOLED_BYTES_MAX {
            self.held.set(held);
            self.free.borrow_mut().push(value);
        }
    }

    /// Gives half of what was not needed since the last tick back to the allocator.
    pub fn tick(&self) {
        let mut free = self.free.borrow_mut();
        let unneeded = self.fewest.replace(free.len()).saturating_sub(POOLED_BUFFERS_KEPT);
        if unneeded > 0 {
            // The ones that have been free longest.
            free.drain(..unneeded.div_ceil(2)).for_each(|value| self.forget(&value));
            free.shrink_to(POOLED_BUFFERS_KEPT);
            self.fewest.set(free.len());
        }
    }

    /// Takes a value out of the count.
    fn forget(&self, value: &T) {
        self.held.set(self.held.get().saturating_sub(value.bytes_held()));
    }

    #[cfg(test)]
    fn count(&self) -> usize {
        self.free.borrow().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Reusable for Vec<u8> {
        fn new() -> Self {
            Vec::new()
        }

        fn bytes_held(&self) -> usize {
            self.capacity()
        }

        fn clear(&mut self) {
            Vec::clear(self);
        }
    }

    fn use_at_once(pool: &BufferPool<Vec<u8>>, count: usize) {
        let taken: Vec<_> = (0..count).map(|_| pool.take()).collect();
        taken.into_iter().for_each(|buffer| pool.give_back(buffer));
    }

    #[test]
    fn what_a_burst_has_left_goes_and_what_is_needed_stays() {
        let pool = BufferPool::default();
        use_at_once(&pool, POOLED_BUFFERS_KEPT * 8);
        assert_eq!(pool.count(), POOLED_BUFFERS_KEPT * 8);
        for _ in 0..20 {
            use_at_once(&pool, POOLED_BUFFERS_KEPT * 4);
            pool.tick();
        }
        assert_eq!(
            pool.count(),
            POOLED_BUFFERS_KEPT * 5,
            "as many as were needed, and those that are always kept"
        );
        for _ in 0..20 {
            pool.tick();
        }
        assert_eq!(pool.count(), POOLED_BUFFERS_KEPT);
    }

    #[test]
    fn large_buffers_and_the_bytes_of_others_are_not_kept() {
        let pool = BufferPool::default();
        pool.give_back(Box::new(Vec::with_capacity(POOLED_BUFFER_BYTES_MAX + 1)));
        assert_eq!(pool.count(), 0);
        pool.give_back(Box::new(b"secret".to_vec()));
        assert!(pool.take().is_empty());
        let large = || Box::new(Vec::with_capacity(POOLED_BUFFER_BYTES_MAX));
        let most = POOLED_BYTES_MAX / POOLED_BUFFER_BYTES_MAX;
        for _ in 0..2 {
            (0..most * 2).for_each(|_| pool.give_back(large()));
            assert!((most..=most + 1).contains(&pool.count()), "{}", pool.count());
            (0..most).for_each(|_| drop(pool.take()));
        }
    }
}
