//! The most frequent of many texts in a table of bounded size: Space-Saving (Metwally, Agrawal and El Abbadi, 2005).
//!
//! A text that is more than one in [`FREQUENT_KEPT`](crate::limits::FREQUENT_KEPT) of all is always in the table. A count is never too
//! small, and too large by at most what its entry says.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use crate::limits::{FREQUENT_KEPT, FREQUENT_TEXT_BYTES_MAX};

/// Counts texts.
#[derive(Debug, Clone, Default)]
pub struct Frequent {
    entries: Vec<Entry>,
    total: u64,
}

#[derive(Debug, Clone)]
struct Entry {
    hash: u64,
    text: Box<[u8]>,
    count: u64,
    /// What of it may belong to texts that had the place before.
    excess: u64,
}

/// One of the most frequent texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// The text.
    pub text: Vec<u8>,
    /// How often it came, at most.
    pub count: u64,
    /// By how much that may be too large.
    pub excess: u64,
}

impl Frequent {
    /// Counts a text `weight` times. What is too long is cut off.
    pub fn add(&mut self, text: &[u8], weight: u64) {
        let text = text.get(..FREQUENT_TEXT_BYTES_MAX).unwrap_or(text);
        self.add_counted(text, weight, 0);
        self.total = self.total.saturating_add(weight);
    }

    fn add_counted(&mut self, text: &[u8], count: u64, excess: u64) {
        let hash = FixedState::default().hash_one(text);
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.hash == hash && *entry.text == *text)
        {
            entry.count = entry.count.saturating_add(count);
            entry.excess = entry.excess.saturating_add(excess);
        } else if self.entries.len() < FREQUENT_KEPT {
            self.entries.push(Entry { hash, text: text.into(), count, excess });
        } else if let Some(rarest) = self.entries.iter_mut().min_by_key(|entry| entry.count) {
            let before = rarest.count;
            let (count, excess) = (before.saturating_add(count), before.saturating_add(excess));
            *rarest = Entry { hash, text: text.into(), count, excess };
        }
    }

    /// Adds what another table has counted: of another core, or of the time before.
    pub fn merge(&mut self, other: &Frequent) {
        // What one of the tables does not have may have come as often as its rarest.
        let missing = [self.floor(), other.floor()];
        let mut all = std::mem::take(&mut self.entries);
        all.iter_mut().filter(|entry| !other.has(entry)).for_each(|entry| entry.raise(missing[1]));
        for entry in &other.entries {
            match all.iter_mut().find(|known| known.hash == entry.hash && known.text == entry.text) {
                Some(known) => {
                    known.count = known.count.saturating_add(entry.count);
                    known.excess = known.excess.saturating_add(entry.excess);
                }
                None => {
                    let mut entry = entry.clone();
                    entry.raise(missing[0]);
                    all.push(entry);
                }
            }
        }
        all.sort_by_key(|entry| std::cmp::Reverse(entry.count));
        all.truncate(FREQUENT_KEPT);
        self.entries = all;
        self.total = self.total.saturating_add(other.total);
    }

    /// The most frequent ones first.
    pub fn top(&self, most: usize) -> Vec<Counted> {
        let mut all: Vec<&Entry> = self.entries.iter().collect();
        all.sort_by(|one, other| (other.count, &one.text).cmp(&(one.count, &other.text)));
        let counted =
            |entry: &&Entry| Counted { text: entry.text.to_vec(), count: entry.count, excess: entry.excess };
        all.iter().take(most).map(counted).collect()
    }

    /// All that was counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// What a text that is not in the table may have been counted at most.
    fn floor(&self) -> u64 {
        let rarest = self.entries.iter().map(|entry| entry.count).min();
        rarest.filter(|_| self.entries.len() == FREQUENT_KEPT).unwrap_or_default()
    }

    fn has(&self, entry: &Entry) -> bool {
        self.entries.iter().any(|other| other.hash == entry.hash && other.text == entry.text)
    }
}

impl Entry {
    fn raise(&mut self, by: u64) {
        self.count = self.count.saturating_add(by);
        self.excess = self.excess.saturating_add(by);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn counted(texts: impl IntoIterator<Item = u32>) -> Frequent {
        let mut frequent = Frequent::default();
        texts.into_iter().for_each(|text| frequent.add(text.to_string().as_bytes(), 1));
        frequent
    }

    #[test]
    fn a_few_texts_are_counted_exactly_and_the_most_frequent_come_first() {
        let frequent = counted([3, 1, 3, 2, 3, 1]);
        let top: Vec<(String, u64, u64)> = frequent
            .top(2)
            .into_iter()
            .map(|one| (String::from_utf8(one.text).expect("a number"), one.count, one.excess))
            .collect();
        assert_eq!(top, [("3".to_owned(), 3, 0), ("1".to_owned(), 2, 0)]);
        assert_eq!(frequent.total(), 6);
    }

    #[test]
    fn a_long_text_is_cut_off() {
        let mut frequent = Frequent::default();
        frequent.add(&vec![b'a'; 10 * FREQUENT_TEXT_BYTES_MAX], 5);
        let top = frequent.top(1);
        assert_eq!((top[0].text.len(), top[0].count), (FREQUENT_TEXT_BYTES_MAX, 5));
    }

    proptest! {
        // Two cores, few frequent texts among many rare ones.
        #[test]
        fn counts_are_within_their_bounds_also_over_cores(
            texts in proptest::collection::vec(prop_oneof![0_u32..5, 0_u32..100_000], 1..3_000),
            half in 0_usize..3_000,
        ) {
            let half = half.min(texts.len());
            let mut frequent = counted(texts[..half].iter().copied());
            frequent.merge(&counted(texts[half..].iter().copied()));
            let mut truth: HashMap<u32, u64> = HashMap::new();
            texts.iter().for_each(|text| *truth.entry(*text).or_default() += 1);
            let found: HashMap<u32, Counted> = frequent
                .top(FREQUENT_KEPT)
                .into_iter()
                .map(|one| (String::from_utf8_lossy(&one.text).parse().expect("a number"), one))
                .collect();
            prop_assert!(found.len() <= FREQUENT_KEPT && frequent.total() == texts.len() as u64);
            for (text, count) in truth {
                match found.get(&text) {
                    Some(one) => prop_assert!(one.count >= count && one.count - one.excess <= count, "{one:?} {count}"),
                    None => prop_assert!(count <= 2 * texts.len() as u64 / FREQUENT_KEPT as u64, "{text} {count}"),
                }
            }
        }
    }
}
