//! Holds a tree back while its index page, or an asset that the page names, is missing.
//!
//! Owns the judgement whether a build is complete. Builders empty their folder first and then write
//! for a while: publishing between the two would serve pages without their scripts. Bounded: a tree
//! that stays incomplete is published in the end. What was missing in the published store already is not
//! waited for again: it is answered by something else, or by nothing.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::index_assets::named_assets;
use crate::store::{Node, Store};

/// What is waited for.
#[derive(Debug, Default)]
pub(super) struct Hold {
    /// Missing in what is published.
    known: HashSet<Vec<u8>>,
    /// When publishing was first put off.
    since: Option<Instant>,
}

/// Whether a tree may be published.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing new is missing.
    Complete,
    /// These are missing; look again at the latest then.
    Incomplete {
        /// Paths below the root.
        missing: Vec<String>,
        /// End of the timeout.
        until: Instant,
    },
    /// These are still missing, and it was long enough.
    Overdue {
        /// Paths below the root.
        missing: Vec<String>,
    },
}

impl Hold {
    /// Judges a tree that was just read; an incomplete one is put off for as long as `timeout` lasts.
    pub(super) fn judge(
        &mut self,
        store: &Store,
        index: Option<&str>,
        timeout: Duration,
        now: Instant,
    ) -> Verdict {
        let new = |path: &Vec<u8>| !self.known.contains(path);
        let missing: Vec<_> = missing(store, index).into_iter().filter(new).collect();
        if missing.is_empty() {
            self.since = None;
            return Verdict::Complete;
        }
        let missing = missing.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
        let until = *self.since.get_or_insert(now) + timeout;
        if now < until { Verdict::Incomplete { missing, until } } else { Verdict::Overdue { missing } }
    }

    /// That store is served now.
    pub(super) fn published(&mut self, store: &Store, index: Option<&str>) {
        self.known = missing(store, index).into_iter().collect();
        self.since = None;
    }
}

/// The index page if it is missing, else the assets that it names and that are missing.
fn missing(store: &Store, index: Option<&str>) -> Vec<Vec<u8>> {
    let Some(index) = index.map(|index| index.trim_matches('/').as_bytes()) else { return Vec::new() };
    let Some(Node::File(number)) = store.get(index) else { return vec![index.to_vec()] };
    // An index page on disk cannot be looked into.
    let Some(page) = store.file(number).and_then(|file| file.identity.as_ref()) else { return Vec::new() };
    // A page that was just opened for writing is empty for a moment.
    if page.bytes.is_empty() {
        return vec![index.to_vec()];
    }
    named_assets(&page.bytes, index).into_iter().filter(|path| !is_there(store, path)).collect()
}

/// Whether an asset is in the store: at its path, or below it where the site is mounted at a prefix
/// (`/app/assets/x.js` of a root that holds `assets/x.js`).
fn is_there(store: &Store, path: &[u8]) -> bool {
    let mut path = path;
    loop {
        if store.get(path).is_some() {
            return true;
        }
        match path.iter().position(|byte| *byte == b'/') {
            Some(slash) => path = &path[slash + 1..],
            None => return false,
        }
    }
}
