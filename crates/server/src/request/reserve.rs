//! What a core keeps for the next one that needs it, instead of asking the allocator again.
//!
//! Whatever was given back last is taken first, because it is still in the processor's caches. After a burst the
//! reserve shrinks by itself to what is needed. Never hands out anything that holds somebody's bytes.

use std::cell::{Cell, RefCell};

use crate::limits::{POOLED_BUFFER_BYTES_MAX, POOLED_BUFFERS_KEPT, POOLED_BYTES_MAX};

/// Something that is worth being used again.
pub(crate) trait Reusable {
    /// A fresh one.
    fn new() -> Self;
    /// Bytes of memory that it holds.
    fn bytes_held(&self) -> usize;
    /// Forgets everything but the memory.
    fn clear(&mut self);
}

/// Those that nobody uses now.
pub(crate) struct Reserve<T> {
    /// In boxes, because they travel: the future that holds one stays small.
    free: RefCell<Vec<Box<T>>>,
    /// Bytes that they hold.
    held: Cell<usize>,
    /// The fewest that lay here since the last tick: so many were needed by nobody.
    fewest: Cell<usize>,
}

impl<T> Default for Reserve<T> {
    fn default() -> Self {
        Self { free: RefCell::default(), held: Cell::new(0), fewest: Cell::new(0) }
    }
}

impl<T: Reusable> Reserve<T> {
    /// An empty one.
    pub(crate) fn lease(&self) -> Box<T> {
        let mut free = self.free.borrow_mut();
        let taken = free.pop();
        self.fewest.set(self.fewest.get().min(free.len()));
        let Some(taken) = taken else { return Box::new(T::new()) };
        self.let_go(&taken);
        taken
    }

    /// Takes one back.
    pub(crate) fn give_back(&self, mut one: Box<T>) {
        one.clear();
        let bytes = one.bytes_held();
        let held = self.held.get() + bytes;
        if bytes <= POOLED_BUFFER_BYTES_MAX && held <= POOLED_BYTES_MAX {
            self.held.set(held);
            self.free.borrow_mut().push(one);
        }
    }

    /// Gives half of what nobody has needed since the last tick back to the allocator.
    pub(crate) fn tick(&self) {
        let mut free = self.free.borrow_mut();
        let unneeded = self.fewest.replace(free.len()).saturating_sub(POOLED_BUFFERS_KEPT);
        if unneeded > 0 {
            // Those that have lain longest.
            free.drain(..unneeded.div_ceil(2)).for_each(|one| self.let_go(&one));
            free.shrink_to(POOLED_BUFFERS_KEPT);
            self.fewest.set(free.len());
        }
    }

    /// It lies here no more.
    fn let_go(&self, one: &T) {
        self.held.set(self.held.get().saturating_sub(one.bytes_held()));
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

    fn use_at_once(reserve: &Reserve<Vec<u8>>, count: usize) {
        let leased: Vec<_> = (0..count).map(|_| reserve.lease()).collect();
        leased.into_iter().for_each(|one| reserve.give_back(one));
    }

    #[test]
    fn what_a_burst_has_left_goes_and_what_is_needed_stays() {
        let reserve = Reserve::default();
        use_at_once(&reserve, POOLED_BUFFERS_KEPT * 8);
        assert_eq!(reserve.count(), POOLED_BUFFERS_KEPT * 8);
        for _ in 0..20 {
            use_at_once(&reserve, POOLED_BUFFERS_KEPT * 4);
            reserve.tick();
        }
        assert_eq!(
            reserve.count(),
            POOLED_BUFFERS_KEPT * 5,
            "as many as were needed, and those that are always kept"
        );
        for _ in 0..20 {
            reserve.tick();
        }
        assert_eq!(reserve.count(), POOLED_BUFFERS_KEPT);
    }

    #[test]
    fn nothing_large_and_nobodys_bytes_are_kept() {
        let reserve = Reserve::default();
        reserve.give_back(Box::new(Vec::with_capacity(POOLED_BUFFER_BYTES_MAX + 1)));
        assert_eq!(reserve.count(), 0);
        reserve.give_back(Box::new(b"secret".to_vec()));
        assert!(reserve.lease().is_empty());
        let large = || Box::new(Vec::with_capacity(POOLED_BUFFER_BYTES_MAX));
        let most = POOLED_BYTES_MAX / POOLED_BUFFER_BYTES_MAX;
        for _ in 0..2 {
            (0..most * 2).for_each(|_| reserve.give_back(large()));
            assert!((most..=most + 1).contains(&reserve.count()), "{}", reserve.count());
            (0..most).for_each(|_| drop(reserve.lease()));
        }
    }
}
