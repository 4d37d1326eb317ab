//! Trees on their way into a pack.

use super::super::{hash, prepare};
use super::*;
use crate::limits::STORED_FILE_BYTES_MAX;

/// A file's path, its hash and the bytes of its forms.
type Forms = (Vec<u8>, u128, Vec<Option<Vec<u8>>>);

fn forms(store: &Store) -> Vec<Forms> {
    let encodings = [None, Some(Encoding::Gzip), Some(Encoding::Brotli), Some(Encoding::Zstd)];
    let of =
        |file: &File| encodings.map(|encoding| file.form(encoding).map(|form| form.bytes.to_vec())).to_vec();
    store.files.iter().map(|file| (file.path.to_vec(), file.hash, of(file))).collect()
}

#[test]
fn a_prepared_tree_has_every_form_and_is_the_same_each_time() {
    let site = Site::new();
    for number in 0..20 {
        site.write(&format!("assets/{number}.js"), text(1_000 + 777 * number as usize, number));
    }
    site.write("logo.png", text(5_000, 99));
    let prepared = || prepare(&site.spec.root, false, false, &EVERY_ENCODING, &Silent).expect("prepared");
    let first = prepared();
    assert!(first.settled && first.skipped.count == 0);
    let script = file(&first.store, "assets/7.js").expect("there");
    assert!(EVERY_ENCODING.iter().all(|encoding| script.form(Some(*encoding)).is_some()));
    let picture = file(&first.store, "logo.png").expect("there");
    assert!(picture.gzip.is_none() && picture.identity.is_some());
    assert_eq!(forms(&first.store), forms(&prepared().store));
}

#[test]
fn a_file_that_is_too_large_for_memory_is_listed_with_its_path_and_the_hash_of_its_content() {
    let site = Site::new();
    site.write("film.bin", "");
    let large = fs::File::options().write(true).open(site.path("film.bin")).expect("opened");
    large.set_len(STORED_FILE_BYTES_MAX + 1).expect("longer");
    let prepared = prepare(&site.spec.root, false, false, &EVERY_ENCODING, &Silent).expect("prepared");
    let film = file(&prepared.store, "film.bin").expect("there");
    assert!(film.identity.is_none());
    let content = fs::read(prepared.place(film)).expect("there");
    assert_eq!((film.length, film.hash), (content.len() as u64, hash::of_bytes(&content)));
}
