//! Puts a listing and the files read for it together into a store.
//!
//! Owns the numbers: what could not be read is left out, and the rest is numbered without gaps.

use std::sync::Arc;

use super::StoreSpec;
use super::scan::{Found, Tree, skip};
use crate::store::{File, Folder, Node, SkipReason, Skipped, Stamp, Store, Totals};

/// What became of a file of a listing.
#[derive(Debug)]
pub(super) enum Got {
    /// Read, or known from before; with the stamp that it had, which [`File::stamp`] may hide.
    Ready(Arc<File>, Stamp),
    /// We may not read it.
    Unreadable,
    /// It is not there any more.
    Gone,
}

impl Got {
    /// Whether it is the file that was listed.
    pub(super) fn is(&self, found: &Found) -> bool {
        match self {
            Self::Ready(_, stamp) => *stamp == found.stamp,
            Self::Unreadable => true,
            Self::Gone => false,
        }
    }
}

/// The store of a listing; `files` are in the order of the listing.
pub(super) fn assemble(spec: &StoreSpec, tree: Tree, files: Vec<Got>) -> Store {
    let mut store = Store { root: spec.root.clone(), resolved_root: tree.root, ..Store::default() };
    let mut skipped: Skipped = tree.skipped;
    let mut numbers = Vec::with_capacity(files.len());
    store.files.reserve_exact(files.len());
    for (found, got) in tree.files.iter().zip(files) {
        numbers.push(match got {
            Got::Ready(file, _) => {
                store.files.push(file);
                Some(Node::File((store.files.len() - 1) as u32))
            }
            Got::Unreadable => {
                skip(&mut skipped, &found.path, SkipReason::Unreadable);
                None
            }
            Got::Gone => None,
        });
    }
    store.index.reserve(store.files.len() + tree.folders.len());
    for (number, file) in store.files.iter().enumerate() {
        store.index.insert(file.path.clone(), Node::File(number as u32));
    }
    for (number, folder) in tree.folders.into_iter().enumerate() {
        let entries = folder.entries.into_iter().filter_map(|(name, node)| match node {
            Node::Folder(_) => Some((name, node)),
            Node::File(number) => Some((name, numbers.get(number as usize).copied().flatten()?)),
        });
        store.index.insert(folder.path.clone(), Node::Folder(number as u32));
        store.folders.push(Arc::new(Folder {
            path: folder.path,
            modified: folder.modified,
            entries: entries.collect(),
        }));
    }
    store.skipped = skipped;
    store.totals = totals(&store.files);
    store
}

/// Sums over files.
pub(super) fn totals(files: &[Arc<File>]) -> Totals {
    let mut totals = Totals { files: files.len(), ..Totals::default() };
    for file in files {
        totals.bytes += file.length;
        match &file.identity {
            Some(form) => totals.stored_bytes += form.bytes.len() as u64,
            None => totals.on_disk += 1,
        }
        for form in [&file.gzip, &file.brotli, &file.zstd].into_iter().flatten() {
            totals.compressed_bytes += form.bytes.len() as u64;
        }
    }
    totals
}
