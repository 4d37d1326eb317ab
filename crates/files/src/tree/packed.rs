//! The store of a tree in a pack: made of the index alone.
//!
//! Reads nothing of the tree's files: each form is read when it is first asked for (`store/packed.rs`).
//! Never watches anything, since a pack does not change.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use onehop_archive::Index;
use onehop_archive::index::{Served, Tree};

use crate::limits::PACKED_FORM_BYTES_MAX;
use crate::store::packed::{PackedSource, PackedVariants};
use crate::store::{File, Folder, Node, Stamp, Store, Totals};
use crate::{content_type, is_hashed_name};

/// The store of a tree, which answers at `root`.
pub fn packed(tree: &Tree, root: PathBuf, source: &Arc<PackedSource>) -> Store {
    let mut store = Store { resolved_root: root.clone(), root, ..Store::default() };
    let count = tree.files.len() + tree.folders.len() + 1;
    store.index.reserve(count);
    store.files.reserve_exact(tree.files.len());
    let mut folders: Vec<Folder> = Vec::with_capacity(tree.folders.len() + 1);
    for path in std::iter::once(&[][..]).chain(tree.folders.iter().map(Vec::as_slice)) {
        let Ok(number) = u32::try_from(folders.len()) else { break };
        folders.push(Folder { path: path.into(), modified: UNIX_EPOCH, entries: Vec::new() });
        store.index.insert(path.into(), Node::Folder(number));
    }
    for served in &tree.files {
        let Ok(number) = u32::try_from(store.files.len()) else { break };
        store.files.push(Arc::new(file(served, source)));
        store.index.insert(served.path.as_slice().into(), Node::File(number));
        list(&mut folders, &store, &served.path, Node::File(number));
    }
    for (number, path) in (1..).zip(&tree.folders) {
        list(&mut folders, &store, path, Node::Folder(number));
    }
    for folder in &mut folders {
        folder.entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    }
    store.folders = folders.into_iter().map(Arc::new).collect();
    store.totals = totals(tree, &store, source);
    store
}

/// Puts something among the entries of the folder that it lies in.
fn list(folders: &mut [Folder], store: &Store, path: &[u8], node: Node) {
    let slash = path.iter().rposition(|byte| *byte == b'/');
    let (parent, name) = match slash.and_then(|slash| path.split_at_checked(slash)) {
        Some((parent, rest)) => (parent, rest.get(1..).unwrap_or_default()),
        None => (&[][..], path),
    };
    if let Some(Node::Folder(number)) = store.get(parent)
        && let Some(folder) = folders.get_mut(number as usize)
    {
        folder.entries.push((name.into(), node));
    }
}

fn file(served: &Served, source: &Arc<PackedSource>) -> File {
    let forms =
        PackedVariants::new(Arc::clone(source), served.identity, [served.gzip, served.brotli, served.zstd]);
    let length = source.index.blobs.get(served.identity as usize).map_or(0, |blob| blob.length);
    File {
        path: served.path.as_slice().into(),
        content_type: content_type(&served.path).into(),
        modified: UNIX_EPOCH,
        length,
        hash: served.hash,
        identity: None,
        gzip: None,
        brotli: None,
        zstd: None,
        hashed_name: is_hashed_name(&served.path),
        stamp: Stamp::default(),
        settled: true,
        packed: Some(Arc::new(forms)),
    }
}

/// Sums; `on_disk` are those of which a form may have to be streamed: where all together are more than the memory
/// bound allows, nobody knows which ones that will be.
fn totals(tree: &Tree, store: &Store, source: &PackedSource) -> Totals {
    let index: &Index = &source.index;
    let stored = |number: u32| index.blobs.get(number as usize).map_or(0, |blob| blob.stored);
    let (mut large, mut all) = (0, 0_u64);
    for served in &tree.files {
        let forms = [Some(served.identity), served.gzip, served.brotli, served.zstd];
        let lengths = forms.into_iter().flatten().map(stored);
        let (longest, sum) = lengths
            .fold((0, 0_u64), |(longest, sum), length| (length.max(longest), sum.saturating_add(length)));
        all = all.saturating_add(sum);
        large += usize::from(longest > PACKED_FORM_BYTES_MAX);
    }
    let on_disk = if all > source.budget.left() { large.max(1) } else { large };
    let bytes = store.files.iter().map(|file| file.length).sum();
    Totals { files: store.files.len(), bytes, on_disk, ..Totals::default() }
}
