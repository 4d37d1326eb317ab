//! Hashed assets of the last builds, for pages that were loaded before a rebuild.
//!
//! Owns what of a replaced store is kept beside the new one: files whose name holds a hash of their content, in memory
//! already. Documents and files without a hash are never kept, so a path always means what the latest build says.
//! Bounded in releases, age and bytes; never keeps what the next build may need of the memory bound.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use super::MemoryBudget;
use super::read::held_bytes;
use crate::limits::{RELEASE_KEPT_FOR, RELEASES_BYTES_MAX};
use crate::may_be_hashed_name;
use crate::store::{File, Node, Store};

/// The builds before the latest one, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Releases {
    releases: VecDeque<Release>,
}

#[derive(Debug)]
struct Release {
    /// What no later build has.
    files: Vec<Arc<File>>,
    replaced_at: Instant,
}

impl Releases {
    /// Takes note that `new` replaces `old`, and puts into `new` what is kept beside it.
    pub(super) fn replace(
        &mut self,
        old: &Store,
        new: &mut Store,
        most: usize,
        budget: &MemoryBudget,
        now: Instant,
    ) {
        let is_there = |file: &File| matches!(new.get(&file.path), Some(Node::File(_)));
        let gone: Vec<&Arc<File>> = old.files.iter().filter(|file| !is_there(file)).collect();
        let hashed: HashSet<&[u8]> =
            old.files.iter().filter(|file| file.hashed_name).map(|file| folder(file)).collect();
        let is_hashed =
            |file: &File| file.hashed_name || may_be_hashed_name(&file.path, hashed.contains(folder(file)));
        let kept = |file: &&&Arc<File>| file.identity.is_some() && is_hashed(file);
        let files: Vec<Arc<File>> = gone.iter().filter(kept).map(|file| Arc::clone(file)).collect();
        for release in &mut self.releases {
            release
                .files
                .retain(|file| !is_there(file) && !files.iter().any(|newer| newer.path == file.path));
        }
        self.releases.retain(|release| !release.files.is_empty());
        if !files.is_empty() {
            self.releases.push_back(Release { files, replaced_at: now });
        }
        while self.releases.len() > most {
            self.releases.pop_front();
        }
        self.drop_old(now);
        // Half of what is free is for the next build, which is read while this one is still served.
        let is_shared = |file: &Arc<File>| match new.get(&file.path) {
            Some(Node::File(number)) => new.file(number).is_some_and(|same| same.hash == file.hash),
            _ => false,
        };
        let returning: u64 =
            old.files.iter().filter(|file| !is_shared(file)).map(|file| held_bytes(file)).sum();
        let earlier = old.kept.iter().map(|file| held_bytes(file)).sum::<u64>();
        let room = budget
            .left()
            .saturating_add(returning)
            .saturating_add(earlier)
            .saturating_sub(budget.overdrawn());
        while self.bytes() > RELEASES_BYTES_MAX.min(room / 2) {
            self.releases.pop_front();
        }
        new.kept = self.files();
    }

    /// Drops what is too old; whether anything was.
    pub(super) fn drop_old(&mut self, now: Instant) -> bool {
        let before = self.releases.len();
        self.releases.retain(|release| now.saturating_duration_since(release.replaced_at) < RELEASE_KEPT_FOR);
        self.releases.len() < before
    }

    /// When the oldest one is too old.
    pub(super) fn due(&self) -> Option<Instant> {
        self.releases.front().map(|release| release.replaced_at + RELEASE_KEPT_FOR)
    }

    /// Everything that is kept, sorted by path.
    pub(super) fn files(&self) -> Arc<[Arc<File>]> {
        let mut files: Vec<_> = self.releases.iter().flat_map(|release| &release.files).cloned().collect();
        files.sort_by(|one, other| one.path.cmp(&other.path));
        files.into()
    }

    fn bytes(&self) -> u64 {
        self.releases.iter().flat_map(|release| &release.files).map(|file| held_bytes(file)).sum()
    }
}

/// The folder of a file, below the root.
fn folder(file: &File) -> &[u8] {
    let end = file.path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    file.path.get(..end).unwrap_or_default()
}
