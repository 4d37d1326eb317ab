//! Any bytes as the index of a pack: never a panic, and what is accepted stays within its file and below its folder.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onehop_archive::index::SourceKind;
use onehop_archive::{Digest, Index, Location};

fuzz_target!(|data: &[u8]| {
    let Some((numbers, bytes)) = data.split_first_chunk::<8>() else { return };
    let [a, b, c, d, e, f, g, h] = *numbers;
    let location = Location {
        program: u64::from(u16::from_le_bytes([a, b])),
        index_offset: u64::from(u32::from_le_bytes([c, d, e, f])),
        index_length: bytes.len() as u64,
        total: u64::from(u16::from_le_bytes([g, h])),
        digest: Digest::of(bytes),
    };
    let Ok(index) = Index::parse(bytes, &location) else { return };
    for blob in &index.blobs {
        assert!(blob.offset >= location.program && blob.offset + blob.stored <= location.index_offset);
    }
    let runtime = index.runtime.iter().flat_map(|runtime| &runtime.files);
    for source in index.sources.iter().chain(runtime) {
        let below = |path: &str| path.split('/').all(|name| !matches!(name, "" | "." | ".."));
        assert!(below(&source.path));
        match &source.kind {
            SourceKind::Folder => {}
            SourceKind::File { content, .. } => assert!((*content as usize) < index.blobs.len()),
            SourceKind::Link { to } => assert!(!to.starts_with('/')),
        }
    }
    for file in index.trees.iter().flat_map(|tree| &tree.files) {
        assert!((file.identity as usize) < index.blobs.len());
        assert!(!file.path.starts_with(b"/") && !file.path.starts_with(b"../"));
    }
});
