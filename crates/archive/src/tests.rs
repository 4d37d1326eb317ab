//! What was packed comes back, and what was changed does not.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::index::{Configuration, Served, Source, SourceKind, Tree};
use crate::limits::{COMPRESS_JOB_BYTES, COMPRESS_WORKERS_MAX, ENTRIES_MAX};
use crate::slot::{LOCATION_BYTES, mark};
use crate::write::compress;
use crate::{Index, Pack, PackError, Writer};

/// What stands for onehop here: some bytes with an empty slot.
pub(crate) fn program() -> Vec<u8> {
    let mut program = vec![7; 5000];
    program.extend_from_slice(&mark());
    program.resize(program.len() + LOCATION_BYTES, 0);
    program
}

fn make(path: &Path) {
    let out = OpenOptions::new().read(true).write(true).create_new(true).open(path).expect("a file");
    let mut writer = Writer::begin(program().as_slice(), out).expect("a program");
    let page = writer.add(b"<!doctype html>").expect("added");
    assert_eq!(writer.add_compressed(b"<!doctype html>", 3).expect("added"), page, "once for each content");
    let text = writer.add_compressed(&[b'a'; 10_000], 3).expect("added");
    let large = writer.add_stream([b'b'; 600_000].as_slice()).expect("added");
    assert_eq!(writer.add_stream([b'b'; 600_000].as_slice()).expect("added"), large);
    let last = writer.add(b"last").expect("added");
    let file = |path: &str, content| Source {
        path: path.to_owned(),
        kind: SourceKind::File { content, executable: false },
    };
    let index = Index {
        made_by: "onehop test".to_owned(),
        configuration: Configuration { path: "Onehopfile".to_owned(), caddyfile: false },
        trees: vec![Tree {
            root: "dist".to_owned(),
            dotfiles: false,
            follow_outside: false,
            folders: Vec::new(),
            files: vec![Served {
                path: b"index.html".to_vec(),
                hash: 1,
                identity: page,
                gzip: None,
                brotli: None,
                zstd: None,
            }],
        }],
        sources: vec![file("Onehopfile", last), file("large", large), file("text", text)],
        ..Index::default()
    };
    writer.finish(index).expect("sound");
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn with_pack() -> (Self, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("app");
        make(&path);
        (Self(folder), path)
    }
}

#[test]
fn what_was_packed_comes_back() {
    let (_folder, path) = Folder::with_pack();
    let (pack, index) = Pack::open(&path).expect("a pack");
    assert_eq!(index.blobs.len(), 4);
    let contents: Vec<Vec<u8>> =
        index.blobs.iter().map(|blob| pack.content(blob, "it").expect("unchanged")).collect();
    assert_eq!(
        contents,
        [b"<!doctype html>".to_vec(), vec![b'a'; 10_000], vec![b'b'; 600_000], b"last".to_vec()]
    );
    let mut middle = [0; 4];
    pack.read_at(&index.blobs[0], 2, &mut middle).expect("within");
    assert_eq!(&middle, b"doct");
    assert!(pack.read_at(&index.blobs[0], 12, &mut middle).is_err(), "beyond its end");
    let mut front = Vec::new();
    pack.copy_program(&mut front).expect("there");
    assert_eq!(front, program());
}

#[test]
fn how_many_cores_a_machine_has_does_not_show_in_what_it_packs() {
    let mut state = 1_u32;
    let words = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 28).to_le_bytes()
    });
    let bytes: Vec<u8> = words.flatten().take(3 * COMPRESS_JOB_BYTES as usize + 1).collect();
    let alone = compress(&bytes, 3, 1).expect("compressed");
    assert!(alone.len() < bytes.len() / 2);
    for workers in [2, 3, COMPRESS_WORKERS_MAX] {
        assert!(compress(&bytes, 3, workers).expect("compressed") == alone, "{workers} workers");
    }
}

#[test]
fn two_packs_of_the_same_are_identical_also_when_made_by_a_pack() {
    let (folder, path) = Folder::with_pack();
    let second = folder.0.path().join("second");
    make(&second);
    let bytes = fs::read(&path).expect("there");
    assert_eq!(bytes, fs::read(&second).expect("there"));
    let out = OpenOptions::new().read(true).write(true).create_new(true).open(folder.0.path().join("third"));
    let writer = Writer::begin(bytes.as_slice(), out.expect("a file")).expect("its program");
    let summary = writer.finish(Index {
        configuration: Configuration { path: "Onehopfile".to_owned(), caddyfile: false },
        ..Index::default()
    });
    assert_eq!(
        summary.expect("sound").location.program,
        program().len() as u64,
        "the first pack stays behind"
    );
}

#[test]
fn a_pack_that_is_cut_off_says_so_wherever_it_is_cut() {
    let (_folder, path) = Folder::with_pack();
    let bytes = fs::read(&path).expect("there");
    for length in [bytes.len() - 1, bytes.len() - LOCATION_BYTES, 8192, program().len()] {
        fs::write(&path, &bytes[..length]).expect("written");
        let error = Pack::open(&path).expect_err("it is cut off");
        assert!(
            matches!(error, PackError::Truncated { expected, found } if expected == bytes.len() as u64 && found == length as u64),
            "{length}: {error}"
        );
    }
    fs::write(&path, &bytes[..4000]).expect("written");
    assert!(matches!(Pack::open(&path), Err(PackError::Foreign)), "not even the program is whole");
}

#[test]
fn what_was_changed_is_refused_and_named() {
    let (_folder, path) = Folder::with_pack();
    let bytes = fs::read(&path).expect("there");
    let (_, index) = Pack::open(&path).expect("a pack");
    let change = |at: u64| {
        let mut changed = bytes.clone();
        changed[usize::try_from(at).expect("small")] ^= 1;
        fs::write(&path, &changed).expect("written");
        Pack::open(&path)
    };
    let location = *Pack::open(&path).expect("a pack").0.location();
    let error = change(location.index_offset).expect_err("its index was changed");
    assert_eq!(
        error.to_string(),
        "was changed after it was packed: its index is not what it was; copy it again, or pack it again"
    );
    for (number, blob) in index.blobs.iter().enumerate() {
        let (pack, index) = change(blob.offset + blob.stored / 2).expect("its index is what it was");
        for (other, blob) in index.blobs.iter().enumerate() {
            let copied = pack.copy(blob, "app.js", &mut std::io::sink());
            assert_eq!(copied.is_err(), other == number, "{number}, {other}: {copied:?}");
            assert_eq!(pack.stored(blob, "app.js").is_err(), other == number);
            assert_eq!(pack.verify(blob, "app.js").is_err(), other == number);
        }
    }
    let mut longer = bytes.clone();
    longer.extend_from_slice(b"more");
    fs::write(&path, &longer).expect("written");
    assert!(matches!(Pack::open(&path), Err(PackError::Longer { .. })));
}

#[test]
fn a_location_that_differs_from_the_other_is_reported() {
    let (_folder, path) = Folder::with_pack();
    let bytes = fs::read(&path).expect("there");
    let location = *Pack::open(&path).expect("a pack").0.location();
    let slot = memchr::memmem::find(&bytes, &mark()).expect("in its program");
    let end = bytes.len() - LOCATION_BYTES;
    let digest = LOCATION_BYTES - 1;
    let reported = |made: Result<(Pack, Index), PackError>| match made {
        Ok(_) => String::new(),
        Err(PackError::Changed { what }) => what,
        Err(error) => error.to_string(),
    };
    for (at, running, opened) in [
        (end, "its end", "its end"),
        (end + 40, "its end", "the place in its program"),
        (end + digest, "its end", "its index"),
        (slot, "", "its program"),
        (slot + digest, "", "the place in its program"),
    ] {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        fs::write(&path, &changed).expect("written");
        // A running pack has read its location from its slot.
        let file = fs::File::open(&path).expect("there");
        assert_eq!(reported(Pack::with_location(file, location)), running, "{at}");
        assert_eq!(reported(Pack::open(&path)), opened, "{at}");
    }
}

#[test]
fn an_index_is_given_up_while_it_is_read_where_it_names_too_much() {
    let tree = |count: usize| Tree {
        root: "dist".to_owned(),
        dotfiles: false,
        follow_outside: false,
        folders: vec![Vec::new(); count],
        files: Vec::new(),
    };
    for counts in [&[ENTRIES_MAX + 100][..], &[ENTRIES_MAX - 1; 4]] {
        let trees = counts.iter().map(|count| tree(*count)).collect();
        let bytes = postcard::to_stdvec(&Index { trees, ..Index::default() }).expect("written");
        // What comes behind them is missing: nobody looks for it.
        let bytes = &bytes[..bytes.len() - 10];
        let location = crate::Location {
            program: 0,
            index_offset: 0,
            index_length: bytes.len() as u64,
            total: 0,
            digest: crate::Digest::default(),
        };
        let error = Index::parse(bytes, &location).expect_err("too many").to_string();
        assert!(error.contains("or has more than 1000000 files"), "{error}");
    }
}

#[test]
fn other_files_are_distinguished_from_packs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    for (content, expected) in [
        (Vec::new(), "is no pack: onehop did not make it, or what stands at its end was removed"),
        (vec![0; 10_000], "is no pack: onehop did not make it, or what stands at its end was removed"),
        (program(), "is onehop without a pack: make one with `onehop pack -o FILE`"),
    ] {
        fs::write(&path, content).expect("written");
        assert_eq!(Pack::open(&path).expect_err("no pack").to_string(), expected);
    }
}

#[test]
fn an_index_that_leads_outside_is_not_written() {
    let link =
        |path: &str, to: &str| Source { path: path.to_owned(), kind: SourceKind::Link { to: to.to_owned() } };
    let folder_of = |path: &str| Source { path: path.to_owned(), kind: SourceKind::Folder };
    for sources in [
        vec![link("a", "../b")],
        vec![link("a/b", "../../c")],
        vec![link("a", "/etc")],
        vec![folder_of("../a")],
        vec![folder_of("/a")],
        vec![folder_of("a//b")],
        vec![folder_of("b"), folder_of("a")],
        vec![folder_of("a"), folder_of("a")],
        vec![link("a", "b"), folder_of("a/c")],
        vec![link("a", "b"), folder_of("a/c"), folder_of("a-b")],
        vec![Source { path: "a".into(), kind: SourceKind::File { content: 9, executable: false } }],
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("app");
        let mut out = OpenOptions::new().read(true).write(true).create_new(true).open(&path).expect("a file");
        out.flush().expect("nothing to do");
        let writer = Writer::begin(program().as_slice(), out).expect("a program");
        let configuration = Configuration { path: "Onehopfile".to_owned(), caddyfile: false };
        let made = writer.finish(Index { configuration, sources: sources.clone(), ..Index::default() });
        assert!(matches!(made, Err(PackError::Damaged(_))), "{sources:?}");
    }
}

proptest::proptest! {
    #[test]
    fn any_bytes_as_an_index_are_refused_or_stay_within_their_file(
        bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400),
    ) {
        let location = crate::Location {
            program: 0,
            index_offset: 1000,
            index_length: bytes.len() as u64,
            total: 2000,
            digest: crate::Digest::of(&bytes),
        };
        if let Ok(index) = Index::parse(&bytes, &location) {
            for blob in &index.blobs {
                proptest::prop_assert!(blob.offset + blob.stored <= location.index_offset);
            }
        }
    }
}
