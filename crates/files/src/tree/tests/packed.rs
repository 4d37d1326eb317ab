//! Stores of packed trees.

use std::sync::Arc;
use std::time::Instant;

use onehop_archive::Index;
use onehop_archive::index::{Served, Tree};

use super::super::{MemoryBudget, packed};
use super::*;
use crate::packing;
use crate::store::packed::{PackedSource, PackedVariants};

/// Files in folders of a hundred, all with the same bytes.
fn tree(files: usize, blob: u32) -> Tree {
    let folder = |number: usize| format!("assets/{:05}", number / 100).into_bytes();
    let served = |number: usize| Served {
        path: [folder(number), format!("/file-{number:06}.js").into_bytes()].concat(),
        hash: number as u128,
        identity: blob,
        gzip: Some(blob),
        brotli: Some(blob),
        zstd: None,
    };
    let mut folders: Vec<_> = (0..files).step_by(100).map(folder).collect();
    folders.insert(0, b"assets".to_vec());
    Tree {
        root: "dist".to_owned(),
        dotfiles: false,
        follow_outside: false,
        folders,
        files: (0..files).map(served).collect(),
    }
}

fn source(folder: &Path, bytes: &[u8], budget: &MemoryBudget) -> (Arc<PackedSource>, u32) {
    let path = folder.join("myapp");
    let mut writer = packing::begin(&path);
    let blob = writer.add(bytes).expect("added");
    let (pack, index) = packing::finish(&path, writer, Index::default());
    let (pack, index) = (Arc::new(pack), Arc::new(index));
    let budget = budget.clone();
    (Arc::new(PackedSource { pack, index, root: "dist".into(), budget, tell: Arc::new(|_| {}) }), blob)
}

#[test]
fn a_packed_tree_takes_no_memory_for_what_nobody_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let budget = MemoryBudget::new(1 << 30);
    let (source, blob) = source(folder.path(), &text(100_000, 1), &budget);
    let store = packed(&tree(1_000, blob), "/base/dist".into(), &source);
    assert_eq!(budget.left(), 1 << 30);
    let script = file(&store, "assets/00009/file-000942.js").expect("there");
    assert_eq!(
        (script.length, script.hash, &*script.content_type),
        (100_000, 942, "text/javascript; charset=utf-8")
    );
    assert!(script.has_form(Some(Encoding::Gzip)) && !script.has_form(Some(Encoding::Zstd)));
    assert!(script.form(None).is_none());
    let totals = &store.totals;
    assert_eq!((totals.files, totals.bytes, totals.stored_bytes), (1_000, 100_000_000, 0));
    let Some(Node::Folder(number)) = store.get(b"assets") else { panic!("a folder") };
    assert_eq!(store.folders[number as usize].entries.len(), 10);
    assert_eq!(store.folders[0].entries.len(), 1);
    assert_eq!(store.get(b"assets/00003").map(|node| matches!(node, Node::Folder(_))), Some(true));
    let each = size_of::<File>() + size_of::<PackedVariants>();
    assert!(each <= 640, "a file takes {each} bytes besides its names");
}

#[test]
fn many_files_are_found_quickly() {
    let folder = tempfile::tempdir().expect("a folder");
    let budget = MemoryBudget::new(1 << 30);
    let (source, blob) = source(folder.path(), b"bytes", &budget);
    let tree = tree(50_000, blob);
    let begun = Instant::now();
    let store = packed(&tree, "/base/dist".into(), &source);
    // 100 ms in a release build; this one is not, and others run beside it.
    assert!(
        store.files.len() == 50_000 && begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    eprintln!("50,000 files in {:?}", begun.elapsed());
}
