//! The remembered keys: one time each, in a bounded table that all threads share.
//!
//! In parts with a lock of their own, held for one look-up; cores seldom meet there. Where a part is full, a new key
//! evicts one whose bucket is full again, which loses nothing, or else the one of a few that would be soonest. So a flood
//! of new keys evicts those, and not a client that is being held back. Work and memory are bounded whatever comes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_utils::CachePadded;
use hashbrown::HashTable;

use super::gcra::{Rate, Verdict};
use crate::limits::{RATE_PART_KEYS_MIN, RATE_PARTS_MAX};

/// Keys looked at for a place where there is none: with a quarter of all full again, one of them is in 99 of 100 cases.
const LOOKS_AT_BOUND: usize = 16;

/// Keys looked at before the table grows: more than one, so that it stops growing where old ones become full again
/// as fast as new ones come.
const LOOKS_BELOW_BOUND: usize = 2;

/// Room of a part at its first key; it doubles up to its bound.
const FIRST_KEYS: usize = 8;

/// The table.
pub(super) struct Table {
    /// As many as a power of two.
    parts: Box<[CachePadded<Mutex<Part>>]>,
    /// Keys of one part.
    keys_max: usize,
}

/// Sums since the limiter was made, and the keys that it remembers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that were admitted.
    pub admitted: u64,
    /// Requests that were rejected.
    pub rejected: u64,
    /// Keys that were evicted before their bucket was full again.
    pub evicted: u64,
    /// Keys that are remembered.
    pub keys: u64,
}

/// Invariant: `places` has the number of each of `known` once, under its key, and no other.
#[derive(Default)]
struct Part {
    known: Vec<Known>,
    places: HashTable<u32>,
    /// Where it was looked for a place last.
    hand: usize,
    counts: Counts,
}

#[derive(Clone, Copy)]
struct Known {
    key: u64,
    full_at: u64,
}

impl Counts {
    /// Adds those of another limiter.
    pub fn add(&mut self, other: Self) {
        self.admitted += other.admitted;
        self.rejected += other.rejected;
        self.evicted += other.evicted;
        self.keys += other.keys;
    }
}

impl Table {
    /// Room for so many keys.
    pub(super) fn new(keys_max: u32) -> Self {
        let keys = keys_max.max(1) as usize;
        let parts = (keys / RATE_PART_KEYS_MIN).clamp(1, RATE_PARTS_MAX);
        let parts = if parts.is_power_of_two() { parts } else { parts.next_power_of_two() / 2 };
        Self {
            parts: (0..parts).map(|_| CachePadded::new(Mutex::default())).collect(),
            keys_max: keys / parts,
        }
    }

    /// Decides about a request under this key, and counts it if it is admitted.
    pub(super) fn check(&self, key: u64, now: u64, rate: Rate) -> Verdict {
        self.part(key).check(key, now, rate, self.keys_max)
    }

    /// When the bucket of a key is full again. Counts nothing.
    #[cfg(test)]
    fn full_at(&self, key: u64) -> u64 {
        let mut part = self.part(key);
        part.find(key).map_or(0, |known| known.full_at)
    }

    /// What all parts have counted.
    pub(super) fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for part in &self.parts {
            let part = lock(part);
            sum.add(Counts { keys: part.known.len() as u64, ..part.counts });
        }
        sum
    }

    fn part(&self, key: u64) -> MutexGuard<'_, Part> {
        // Of a key's bits the lowest and the highest ones place it within its part.
        let number = (key >> 32) as usize & (self.parts.len() - 1);
        lock(&self.parts[number])
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        let bytes = |part: &CachePadded<Mutex<Part>>| {
            let part = lock(part);
            part.known.capacity() * size_of::<Known>() + part.places.allocation_size()
        };
        self.parts.iter().map(bytes).sum()
    }
}

impl Part {
    fn check(&mut self, key: u64, now: u64, rate: Rate, keys_max: usize) -> Verdict {
        let known = self.find(key);
        let verdict = rate.judge(known.as_ref().map_or(0, |known| known.full_at), now);
        match (verdict, known) {
            (Verdict::Rejected { .. }, _) => self.counts.rejected += 1,
            (Verdict::Admitted { full_at }, Some(known)) => {
                known.full_at = full_at;
                self.counts.admitted += 1;
            }
            (Verdict::Admitted { full_at }, None) => {
                self.remember(Known { key, full_at }, now, keys_max);
                self.counts.admitted += 1;
            }
        }
        verdict
    }

    fn find(&mut self, key: u64) -> Option<&mut Known> {
        let Self { known, places, .. } = self;
        let is_it = |place: &u32| known.get(*place as usize).is_some_and(|known| known.key == key);
        let place = *places.find(key, is_it)?;
        known.get_mut(place as usize)
    }

    /// Finds a place for a new key.
    fn remember(&mut self, new: Known, now: u64, keys_max: usize) {
        let place = match self.free_place(now, keys_max) {
            Some(place) => place,
            None => {
                self.make_room(keys_max);
                self.known.push(new);
                self.known.len() - 1
            }
        };
        let Self { known, places, counts, .. } = self;
        let Some(at) = known.get_mut(place) else { return };
        // 32 bits number all places: there are no more than a setting of that width says.
        let number = place as u32;
        let old = std::mem::replace(at, new);
        if let Ok(entry) = places.find_entry(old.key, |other| *other == number) {
            entry.remove();
            counts.evicted += u64::from(old.full_at > now);
        }
        places
            .insert_unique(new.key, number, |other| known.get(*other as usize).map_or(0, |known| known.key));
    }

    /// A place that another key has, and that may be given away; `None` where there is room for one more.
    fn free_place(&mut self, now: u64, keys_max: usize) -> Option<usize> {
        let is_at_bound = self.known.len() >= keys_max;
        let looks = if is_at_bound { LOOKS_AT_BOUND } else { LOOKS_BELOW_BOUND };
        let mut soonest: Option<(usize, u64)> = None;
        for _ in 0..looks.min(self.known.len()) {
            self.hand = if self.hand + 1 < self.known.len() { self.hand + 1 } else { 0 };
            let full_at = self.known.get(self.hand)?.full_at;
            if full_at <= now {
                return Some(self.hand);
            }
            if soonest.is_none_or(|(_, other)| full_at < other) {
                soonest = Some((self.hand, full_at));
            }
        }
        soonest.filter(|_| is_at_bound).map(|(place, _)| place)
    }

    /// Doubles, but never beyond the bound: vectors would.
    fn make_room(&mut self, keys_max: usize) {
        let count = self.known.len();
        if count == self.known.capacity() {
            let more = count.max(FIRST_KEYS).min(keys_max.saturating_sub(count)).max(1);
            self.known.reserve_exact(more);
        }
    }
}

fn lock(part: &CachePadded<Mutex<Part>>) -> MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
