//! Values that an application has given out, and the indexes of the workers that did.
//!
//! Bounded in number and age; the least recently used goes first. Keeps hashes, not values. Locked for moments, in
//! parts, so that cores seldom meet.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::{STICKY_VALUE_IDLE_MAX, STICKY_VALUES_MAX};
use crate::worker::WorkerIndex;

/// A value's hash.
type Key = [u64; 2];

/// Parts of the table: more than cores usually are.
const PARTS: usize = 16;

/// How exactly the last use of a value is known: one that is used all the time moves no more often.
const USE_TICK: Duration = Duration::from_secs(1);

/// The table.
#[derive(Default)]
pub(super) struct Values {
    parts: Box<[Mutex<Part>; PARTS]>,
}

/// Invariant: `by_use` holds each key of `by_key` once, under its last use, and no other.
#[derive(Default)]
struct Part {
    by_key: HashMap<Key, Entry>,
    /// The number distinguishes values that were used at the same instant.
    by_use: BTreeMap<(Instant, u64), Key>,
    next: u64,
}

struct Entry {
    index: WorkerIndex,
    used: (Instant, u64),
}

impl Values {
    /// The worker that this value belongs to; counts as a use.
    pub(super) fn find(&self, key: Key, now: Instant) -> Option<WorkerIndex> {
        let mut part = self.part(key);
        let Entry { index, used } = part.by_key.get(&key)?;
        let (index, used) = (*index, *used);
        let idle = now.saturating_duration_since(used.0);
        if idle > STICKY_VALUE_IDLE_MAX {
            part.forget(key);
            return None;
        }
        if idle >= USE_TICK {
            part.put(key, index, now);
        }
        Some(index)
    }

    /// Notes that the value belongs to this worker, unless it belongs to another of so many already.
    pub(super) fn learn(&self, key: Key, index: WorkerIndex, worker_count: usize, now: Instant) {
        let known = self.find(key, now).filter(|known| known.0 < worker_count);
        if known.is_none() {
            self.part(key).put(key, index, now);
        }
    }

    fn part(&self, key: Key) -> MutexGuard<'_, Part> {
        let number = usize::try_from(key[0] % PARTS as u64).unwrap_or_default();
        self.parts[number % PARTS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Part {
    fn put(&mut self, key: Key, index: WorkerIndex, now: Instant) {
        self.forget(key);
        if self.by_key.len() >= STICKY_VALUES_MAX / PARTS
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.by_key.remove(&oldest);
        }
        let used = (now, self.next);
        self.next += 1;
        self.by_key.insert(key, Entry { index, used });
        self.by_use.insert(used, key);
    }

    fn forget(&mut self, key: Key) {
        if let Some(entry) = self.by_key.remove(&key) {
            self.by_use.remove(&entry.used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_known_until_it_is_no_longer_used() {
        let (values, started) = (Values::default(), Instant::now());
        values.learn([1, 1], WorkerIndex(3), 4, started);
        let mut now = started;
        for _ in 0..5 {
            now += STICKY_VALUE_IDLE_MAX - Duration::from_secs(1);
            assert_eq!(values.find([1, 1], now), Some(WorkerIndex(3)));
        }
        assert_eq!(values.find([1, 2], now), None);
        now += STICKY_VALUE_IDLE_MAX + Duration::from_secs(1);
        assert_eq!(values.find([1, 1], now), None);
    }

    #[test]
    fn the_worker_that_gives_out_a_value_first_keeps_it_as_long_as_its_index_exists() {
        let (values, now) = (Values::default(), Instant::now());
        values.learn([1, 1], WorkerIndex(3), 4, now);
        values.learn([1, 1], WorkerIndex(0), 4, now);
        assert_eq!(values.find([1, 1], now), Some(WorkerIndex(3)));
        values.learn([1, 1], WorkerIndex(0), 3, now);
        assert_eq!(values.find([1, 1], now), Some(WorkerIndex(0)));
    }

    #[test]
    fn beyond_the_bound_the_longest_unused_value_goes() {
        let (values, started) = (Values::default(), Instant::now());
        let in_one_part = STICKY_VALUES_MAX / PARTS;
        for number in 0..in_one_part as u64 {
            values.learn([0, number], WorkerIndex(1), 2, started);
        }
        let later = started + USE_TICK;
        assert_eq!(values.find([0, 0], later), Some(WorkerIndex(1)));
        for number in 0..10 {
            values.learn([16, number], WorkerIndex(1), 2, later);
        }
        assert_eq!(values.find([0, 0], later), Some(WorkerIndex(1)), "it was used");
        assert!((1..=10).all(|number| values.find([0, number], later).is_none()));
        assert_eq!(values.find([0, 11], later), Some(WorkerIndex(1)));
        let part = values.part([0, 0]);
        assert_eq!((part.by_key.len(), part.by_use.len()), (in_one_part, in_one_part));
    }
}
