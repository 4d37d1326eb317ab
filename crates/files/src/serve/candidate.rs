//! `try_files`: which of some candidates exists below a root.
//!
//! Candidates are paths that are expanded and decoded already. One that ends in a slash must be a
//! folder, any other must be a file, as in Caddy. Shell patterns in candidates are not expanded.

use std::path::Path;

use onehop_config::checked::TryPolicy;

use super::disk::{self, Found};
use crate::path;
use crate::store::{Node, Store};

/// A candidate that is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its place in the list.
    pub number: usize,
    /// Its path below the root, decoded, with a slash at its beginning and, for a folder, at its end:
    /// what `{file_match.relative}` stands for.
    pub relative: Vec<u8>,
    /// It is a folder.
    pub folder: bool,
}

/// The candidate that the policy takes among those that exist in a store.
pub fn find_candidate(
    store: &Store,
    candidates: &[impl AsRef<[u8]>],
    policy: TryPolicy,
) -> Option<Candidate> {
    find(candidates, policy, |path| match store.find(path)? {
        Node::File(number) => {
            let file = store.file(number)?;
            Some(Found { folder: false, length: file.length, modified: file.modified })
        }
        Node::Folder(number) => {
            let folder = store.folders.get(usize::try_from(number).ok()?)?;
            Some(Found { folder: true, length: 0, modified: folder.modified })
        }
    })
}

/// The same below a root on disk. Blocks.
pub fn find_candidate_on_disk(
    root: &Path,
    candidates: &[impl AsRef<[u8]>],
    policy: TryPolicy,
    follow_outside: bool,
) -> Option<Candidate> {
    find(candidates, policy, |path| disk::look(root, path, follow_outside))
}

fn find(
    candidates: &[impl AsRef<[u8]>],
    policy: TryPolicy,
    look: impl Fn(&[u8]) -> Option<Found>,
) -> Option<Candidate> {
    let mut best: Option<(Candidate, Found)> = None;
    for (number, text) in candidates.iter().enumerate() {
        let Ok(path) = path::parse_decoded(text.as_ref()) else { continue };
        let is_last = number + 1 == candidates.len();
        if policy == TryPolicy::FirstExistFallback && is_last {
            return Some(candidate(number, &path.bytes, path.folder));
        }
        let Some(found) = look(&path.bytes) else { continue };
        if found.folder != path.folder {
            continue;
        }
        let better = match (policy, &best) {
            (TryPolicy::FirstExist | TryPolicy::FirstExistFallback, _) => {
                return Some(candidate(number, &path.bytes, path.folder));
            }
            (_, None) => true,
            (TryPolicy::SmallestSize, Some((_, best))) => found.length < best.length,
            (TryPolicy::LargestSize, Some((_, best))) => found.length > best.length,
            (TryPolicy::MostRecentlyModified, Some((_, best))) => found.modified > best.modified,
        };
        if better {
            best = Some((candidate(number, &path.bytes, path.folder), found));
        }
    }
    best.map(|(candidate, _)| candidate)
}

fn candidate(number: usize, path: &[u8], folder: bool) -> Candidate {
    let mut relative = Vec::with_capacity(path.len() + 2);
    relative.push(b'/');
    relative.extend_from_slice(path);
    if folder && !path.is_empty() {
        relative.push(b'/');
    }
    Candidate { number, relative, folder }
}
