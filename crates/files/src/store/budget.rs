//! The memory bound that all stores share.
//!
//! Owns one number: the bytes that may still be stored. A stored form holds its share until the last
//! snapshot that has it is gone, so that the sum is what is really in memory. Never allocates the
//! bytes themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Bytes left for all stores together. Clones share the number.
#[derive(Debug, Clone)]
pub struct MemoryBudget(Arc<AtomicI64>);

/// A share of a [`MemoryBudget`], given back when it is dropped.
#[derive(Debug)]
pub struct Held {
    bytes: i64,
    budget: MemoryBudget,
}

impl MemoryBudget {
    /// A budget of so many bytes.
    pub fn new(bytes: u64) -> Self {
        Self(Arc::new(AtomicI64::new(i64::try_from(bytes).unwrap_or(i64::MAX))))
    }

    /// What is left; nothing while a swap holds more than there is.
    pub fn left(&self) -> u64 {
        u64::try_from(self.0.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Bytes that are held beyond the bound while a swap is under way.
    pub fn overdrawn(&self) -> u64 {
        u64::try_from(self.0.load(Ordering::Relaxed).saturating_neg()).unwrap_or(0)
    }

    /// The bound is another one from now on. What is held above a smaller one stays until it is replaced.
    pub fn resize(&self, before: u64, now: u64) {
        let signed = |bytes| i64::try_from(bytes).unwrap_or(i64::MAX);
        self.0.fetch_add(signed(now).saturating_sub(signed(before)), Ordering::Relaxed);
    }

    /// Takes `bytes` if they are left. `returning` counts as left too: bytes of the store that is
    /// being replaced, which come back as soon as its last reader is done with it.
    pub fn take(&self, bytes: u64, returning: u64) -> Option<Arc<Held>> {
        let bytes = i64::try_from(bytes).ok()?;
        let floor = i64::try_from(returning).ok()?.checked_neg()?;
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes).filter(|rest| *rest >= floor)
            })
            .ok()?;
        Some(Arc::new(Held { bytes, budget: self.clone() }))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_comes_back_when_its_last_holder_is_gone() {
        let budget = MemoryBudget::new(100);
        let share = budget.take(60, 0).expect("fits");
        let copy = Arc::clone(&share);
        assert!(budget.take(41, 0).is_none());
        drop(share);
        assert_eq!(budget.left(), 40);
        drop(copy);
        assert_eq!(budget.left(), 100);
    }

    #[test]
    fn what_is_about_to_come_back_may_be_taken_already() {
        let budget = MemoryBudget::new(100);
        let old = budget.take(100, 0).expect("fits");
        let new = budget.take(80, 100).expect("the old bytes are on their way out");
        assert_eq!(budget.left(), 0);
        assert!(budget.take(21, 100).is_none());
        drop(old);
        assert_eq!(budget.left(), 20);
        drop(new);
        assert_eq!(budget.left(), 100);
    }
}
