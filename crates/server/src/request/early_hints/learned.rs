//! What earlier responses named, by page.
//!
//! Requests read without a lock and without a shared write but the first use of an entry. A change copies one of the small
//! tables and replaces it; that is rare, since responses of one page mostly name the same.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use crate::limits::{LEARNED_PARTS, LEARNED_PATHS_MAX};

type Table = HashMap<Arc<[u8]>, Arc<Entry>>;

/// Pages with the links of their last responses.
#[derive(Debug, Default)]
pub(super) struct Learned {
    hasher: RandomState,
    parts: [Part; LEARNED_PARTS],
}

#[derive(Debug, Default)]
struct Part {
    table: ArcSwap<Table>,
    /// One change at a time.
    changing: Mutex<()>,
}

/// What responses of one page name.
#[derive(Debug, Default)]
struct Entry {
    links: Vec<Vec<u8>>,
    /// A request was told since the table was full last: others make room first.
    is_used: AtomicBool,
}

impl Learned {
    /// Passes on each link of a page.
    pub(super) fn each(&self, key: &[u8], mut pass: impl FnMut(&[u8])) {
        let table = self.part(key).table.load();
        let Some(entry) = table.get(key) else { return };
        if !entry.is_used.load(Ordering::Relaxed) {
            entry.is_used.store(true, Ordering::Relaxed);
        }
        entry.links.iter().for_each(|link| pass(link));
    }

    /// Keeps what a response of a page names. Of one that does not teach, only what is known already.
    pub(super) fn note(&self, key: &[u8], named: Vec<Vec<u8>>, teaches: bool) {
        let part = self.part(key);
        if changed(&part.table.load(), key, &named, teaches).is_none() {
            return;
        }
        let _one_at_a_time = part.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let current = part.table.load();
        let Some(links) = changed(&current, key, &named, teaches) else { return };
        let mut table = Table::clone(&current);
        if links.is_empty() {
            table.remove(key);
        } else {
            if !table.contains_key(key) && table.len() >= LEARNED_PATHS_MAX / LEARNED_PARTS {
                make_room(&mut table);
            }
            let is_used = table.get(key).is_some_and(|entry| entry.is_used.load(Ordering::Relaxed));
            table.insert(key.into(), Arc::new(Entry { links, is_used: is_used.into() }));
        }
        part.table.store(Arc::new(table));
    }

    fn part(&self, key: &[u8]) -> &Part {
        &self.parts[self.hasher.hash_one(key) as usize % LEARNED_PARTS]
    }
}

/// The links of a page after a response; `None` where they stay the same.
fn changed(table: &Table, key: &[u8], named: &[Vec<u8>], teaches: bool) -> Option<Vec<Vec<u8>>> {
    let known = table.get(key).map(|entry| &*entry.links).unwrap_or_default();
    let links: Vec<_> = named.iter().filter(|link| teaches || known.contains(link)).cloned().collect();
    (links != known).then_some(links)
}

/// Forgets a page that nobody was told about, so that made-up paths displace each other; where there is none, any.
fn make_room(table: &mut Table) {
    let is_unused = |entry: &Arc<Entry>| !entry.is_used.load(Ordering::Relaxed);
    let unused = table.iter().find(|(_, entry)| is_unused(entry)).map(|(key, _)| Arc::clone(key));
    let displaced = unused.or_else(|| {
        table.values().for_each(|entry| entry.is_used.store(false, Ordering::Relaxed));
        table.keys().next().cloned()
    });
    if let Some(key) = displaced {
        table.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(links: &[&str]) -> Vec<Vec<u8>> {
        links.iter().map(|link| link.as_bytes().to_vec()).collect()
    }

    fn known(learned: &Learned, key: &str) -> Vec<String> {
        let mut links = Vec::new();
        learned.each(key.as_bytes(), |link| links.push(String::from_utf8_lossy(link).into_owned()));
        links
    }

    fn entries(learned: &Learned) -> usize {
        learned.parts.iter().map(|part| part.table.load().len()).sum()
    }

    #[test]
    fn a_page_keeps_what_its_last_response_named() {
        let learned = Learned::default();
        assert_eq!(known(&learned, "/"), [""; 0]);
        learned.note(b"/", named(&["<a>", "<b>"]), true);
        assert_eq!(known(&learned, "/"), ["<a>", "<b>"]);
        assert_eq!(known(&learned, "/other"), [""; 0]);
        learned.note(b"/", named(&["<b>", "<c>"]), true);
        assert_eq!(known(&learned, "/"), ["<b>", "<c>"]);
        learned.note(b"/", named(&[]), true);
        assert_eq!((known(&learned, "/"), entries(&learned)), (vec![], 0));
    }

    #[test]
    fn a_response_that_does_not_teach_makes_forgotten_and_adds_nothing() {
        let learned = Learned::default();
        learned.note(b"/", named(&["<secret>"]), false);
        assert_eq!(known(&learned, "/"), [""; 0]);
        learned.note(b"/", named(&["<a>", "<b>"]), true);
        learned.note(b"/", named(&["<secret>", "<b>"]), false);
        assert_eq!(known(&learned, "/"), ["<b>"]);
    }

    #[test]
    fn made_up_paths_displace_each_other_and_no_page_that_is_in_use() {
        let learned = Learned::default();
        learned.note(b"/real", named(&["<a>"]), true);
        assert_eq!(known(&learned, "/real"), ["<a>"]);
        for number in 0..LEARNED_PATHS_MAX * 8 {
            learned.note(format!("/{number}").as_bytes(), named(&["<x>"]), true);
        }
        assert_eq!(entries(&learned), LEARNED_PATHS_MAX);
        assert_eq!(known(&learned, "/real"), ["<a>"]);
    }

    #[test]
    fn where_every_page_is_in_use_a_new_one_takes_the_place_of_one() {
        let learned = Learned::default();
        for number in 0..LEARNED_PATHS_MAX * 8 {
            let key = format!("/{number}");
            learned.note(key.as_bytes(), named(&["<x>"]), true);
            assert_eq!(known(&learned, &key), ["<x>"]);
        }
        assert_eq!(entries(&learned), LEARNED_PATHS_MAX);
    }

    #[test]
    fn a_response_that_names_the_same_replaces_no_table() {
        let learned = Learned::default();
        learned.note(b"/", named(&["<a>"]), true);
        let before = learned.part(b"/").table.load_full();
        learned.note(b"/", named(&["<a>"]), true);
        learned.note(b"/", named(&["<a>", "<b>"]), false);
        assert!(Arc::ptr_eq(&before, &learned.part(b"/").table.load_full()));
    }
}
