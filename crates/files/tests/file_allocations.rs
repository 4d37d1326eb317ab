//! A file from memory is answered without a single allocation: what is on the path of nearly every
//! request must not depend on an allocator's mood.

#[path = "../../archive/tests/packing/mod.rs"]
mod packing;
mod sample;

use std::sync::Arc;

use onehop_archive::Index;
use onehop_files as files;
use onehop_files::Served;
use onehop_files::store::Store;
use onehop_files::store::budget::MemoryBudget;
use onehop_files::store::packed::{PackedSource, PackedVariants};
use onehop_message::response::Response;

use sample::{CODINGS, file_server, head, request, spa, store};

#[test]
fn a_file_from_memory_is_answered_without_an_allocation() {
    let store = store();
    let browser = "Accept: */*\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n";
    let navigation = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n";
    let tag =
        store.file(0).and_then(|file| file.identity.as_ref()).map(|form| form.etag.clone()).expect("a form");
    let none_match = format!("If-None-Match: {tag}\r\nIf-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT\r\n");
    let (spa, file_server) = (spa(), file_server());
    let alive = allocation_counter::measure(|| drop(std::hint::black_box(vec![0_u8; 100])));
    assert_eq!(alive.count_total, 1, "the counter counts");
    for (target, lines, status) in [
        ("/", "", 200),
        ("/index.html", browser, 200),
        ("/", none_match.as_str(), 304),
        ("/assets/index-B3xKq9aZ.js", browser, 200),
        ("/users/7/settings", navigation, 200),
    ] {
        let head = head("GET", target, lines);
        let request = request(&head, &store, CODINGS);
        let mut answer = Response::default();
        // The first answer of a connection makes room for fields; the others use it again.
        let _ = files::spa(&spa, &request, &mut answer);
        let counted = allocation_counter::measure(|| {
            answer.clear();
            let _ = files::spa(&spa, &request, &mut answer);
        });
        assert_eq!((answer.status, counted.count_total), (status, 0), "spa {target} {lines}");
        if target.starts_with("/users") {
            continue;
        }
        let counted = allocation_counter::measure(|| {
            answer.clear();
            let _ = files::file_server(&file_server, &request, &mut answer);
        });
        assert_eq!((answer.status, counted.count_total), (status, 0), "file_server {target} {lines}");
    }
}

/// The sample with its forms in a pack.
fn packed(folder: &std::path::Path) -> Store {
    let mut store = store();
    let path = folder.join("myapp");
    let mut writer = packing::begin(&path);
    let blobs: Vec<_> = store
        .files
        .iter()
        .map(|file| {
            let form = file.identity.as_ref().expect("a form");
            writer.add(&form.bytes).expect("added")
        })
        .collect();
    let (pack, index) = packing::finish(&path, writer, Index::default());
    let source = Arc::new(PackedSource {
        pack: Arc::new(pack),
        index: Arc::new(index),
        root: "dist".to_owned(),
        budget: MemoryBudget::new(1 << 20),
        tell: Arc::new(|said| panic!("{said}")),
    });
    for (file, blob) in store.files.iter_mut().zip(blobs) {
        let file = Arc::make_mut(file);
        (file.identity, file.gzip, file.brotli, file.zstd) = (None, None, None, None);
        let forms = PackedVariants::new(Arc::clone(&source), blob, [Some(blob), Some(blob), None]);
        file.packed = Some(Arc::new(forms));
    }
    store
}

#[test]
fn a_packed_file_is_answered_without_an_allocation_once_it_was_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = packed(folder.path());
    let spa = spa();
    for (target, lines) in
        [("/", ""), ("/assets/index-B3xKq9aZ.js", "Accept-Encoding: gzip, deflate, br, zstd\r\n")]
    {
        let head = head("GET", target, lines);
        let mut answer = Response::default();
        let first = files::spa(&spa, &request(&head, &store, CODINGS), &mut answer);
        let Ok(Served::InPack(in_pack)) = first else {
            panic!("it is read where waiting is allowed: {first:?}")
        };
        assert_eq!(files::finish_in_pack(&in_pack, &head, &mut answer), Ok(()));
        let counted = allocation_counter::measure(|| {
            answer.clear();
            let _ = files::spa(&spa, &request(&head, &store, CODINGS), &mut answer);
        });
        assert_eq!((answer.status, counted.count_total), (200, 0), "{target}");
    }
}
