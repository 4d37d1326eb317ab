//! A pack answers as the folder does that was packed.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use onehop_archive::Index;
use onehop_archive::index::{Served, Tree};
use onehop_archive::installed::{Packed, UnpackFolder};
use onehop_archive::layout::key;
use onehop_config::checked::Encoding;
use onehop_files::tree::{Silent, prepare};
use onehop_server::Event;
use tempfile::TempDir;

use crate::client::Response;
use crate::harness::{TestServer, Wishes, write};
use crate::packing;

const ENCODINGS: [Encoding; 3] = [Encoding::Gzip, Encoding::Brotli, Encoding::Zstd];

/// A folder with what a site has, and sidecars.
fn site() -> TempDir {
    let folder = TempDir::new().unwrap();
    let script = "export const value = 'of many';\n".repeat(400);
    let root = folder.path();
    write(
        root,
        "dist/index.html",
        b"<!doctype html><title>app</title><script src=/assets/a-B3xKq9aZ.js></script>",
    );
    write(root, "dist/assets/a-B3xKq9aZ.js", script.as_bytes());
    write(root, "dist/assets/style.css", "body { color: black }\n".repeat(300).as_bytes());
    write(root, "dist/photo.png", &[7; 5000]);
    write(root, "dist/empty.txt", b"");
    write(root, "dist/docs/index.html", b"<h1>Docs</h1>");
    write(root, "dist/docs/old/notes.txt", "Notes, many of them. ".repeat(40).as_bytes());
    write(root, "dist/docs/bundle.js", b"0123456789");
    write(root, "dist/docs/bundle.js.br", b"brotli of it");
    write(root, "dist/.secret", b"no");
    folder
}

/// `dist` of a folder, packed beside it.
fn pack(folder: &Path) -> Packed {
    let prepared = prepare(&folder.join("dist"), false, false, &ENCODINGS, &Silent).expect("read");
    let path = folder.join("myapp");
    let mut writer = packing::begin(&path);
    let files = prepared.store.files.iter().map(|file| {
        let mut add = |encoding| file.form(encoding).map(|form| writer.add(&form.bytes).expect("added"));
        Served {
            path: file.path.to_vec(),
            hash: file.hash,
            identity: add(None).expect("in memory"),
            gzip: add(Some(Encoding::Gzip)),
            brotli: add(Some(Encoding::Brotli)),
            zstd: add(Some(Encoding::Zstd)),
        }
    });
    let mut files: Vec<_> = files.collect();
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let mut folders: Vec<_> = prepared
        .store
        .folders
        .iter()
        .map(|folder| folder.path.to_vec())
        .filter(|path| !path.is_empty())
        .collect();
    folders.sort();
    let root = "dist".to_owned();
    let tree = Tree { root, dotfiles: false, follow_outside: false, folders, files };
    let (pack, index) = packing::finish(&path, writer, Index { trees: vec![tree], ..Index::default() });
    let folder = UnpackFolder::choose(&key(pack.location()), false, false).expect("nothing is unpacked");
    Packed { pack: Arc::new(pack), index: Arc::new(index), folder }
}

/// The site's folder served with these lines, and its pack with the same.
fn both(lines: &str) -> (TestServer, TestServer) {
    both_with(lines, Wishes { threads: 2, ..Wishes::default() })
}

fn both_with(lines: &str, of_pack: Wishes) -> (TestServer, TestServer) {
    let text = |root: &Path| {
        let root = root.display().to_string();
        format!("http://localhost:0 {{\n\tbind 127.0.0.1\n{}\n}}\n", lines.replace("ROOT", &root))
    };
    let folder = site();
    let packed = pack(folder.path());
    let of_pack_text = text(&packed.folder.base().join("dist"));
    let from_pack =
        TestServer::start(TempDir::new().unwrap(), &of_pack_text, Wishes { packed: Some(packed), ..of_pack });
    let of_folder_text = text(&folder.path().join("dist"));
    let from_folder = TestServer::start(folder, &of_folder_text, Wishes::default());
    if ["spa", "encode"].iter().any(|directive| lines.contains(directive)) {
        from_folder.wait_for(|event| matches!(event, Event::Compressed { .. }).then_some(()));
    }
    (from_folder, from_pack)
}

fn ask(server: &TestServer, method: &str, path: &str, fields: &str) -> Response {
    let mut client = server.connect();
    client.send(format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
    if method == "HEAD" { client.answer_to_head() } else { client.answer() }
}

/// The head without what differs between two answers to the same request.
fn head(answer: &Response) -> Vec<String> {
    let differs = ["date: ", "last-modified: ", "server: "];
    let lines = answer
        .head
        .lines()
        .filter(|line| !differs.iter().any(|name| line.to_ascii_lowercase().starts_with(name)));
    lines.map(str::to_owned).collect()
}

fn assert_same(from_folder: &TestServer, from_pack: &TestServer, method: &str, path: &str, fields: &str) {
    let expected = ask(from_folder, method, path, fields);
    // First from the file, then from memory.
    for _ in 0..2 {
        let found = ask(from_pack, method, path, fields);
        assert_eq!(head(&found), head(&expected), "{method} {path} {fields}");
        assert!(found.body == expected.body, "{method} {path} {fields}");
    }
}

const PATHS: [&str; 13] = [
    "/",
    "/index.html",
    "/assets/a-B3xKq9aZ.js",
    "/assets/style.css",
    "/photo.png",
    "/empty.txt",
    "/docs",
    "/docs/",
    "/docs/old/notes.txt",
    "/docs/bundle.js",
    "/missing.js",
    "/.secret",
    "/deep/place",
];

const FIELDS: [&str; 10] = [
    "",
    "Accept-Encoding: br\r\n",
    "Accept-Encoding: gzip\r\n",
    "Accept-Encoding: zstd, br;q=0.5\r\n",
    "Accept: text/html\r\n",
    "Range: bytes=2-5\r\n",
    "Range: bytes=1-2,4-6\r\n",
    "Range: bytes=900000-\r\n",
    "Accept-Encoding: br\r\nRange: bytes=-7\r\n",
    "If-None-Match: *\r\n",
];

#[test]
fn a_pack_answers_as_the_folder_does() {
    for lines in [
        "\tspa ROOT",
        "\troot * ROOT\n\tencode zstd br gzip\n\tfile_server",
        "\troot * ROOT\n\tfile_server {\n\t\tprecompressed br gzip\n\t}",
        "\troot * ROOT\n\ttry_files {path} /index.html\n\tfile_server",
    ] {
        let (from_folder, from_pack) = both(lines);
        for path in PATHS {
            for fields in FIELDS {
                assert_same(&from_folder, &from_pack, "GET", path, fields);
            }
            assert_same(&from_folder, &from_pack, "HEAD", path, "Accept-Encoding: gzip\r\n");
            assert_same(&from_folder, &from_pack, "POST", path, "Content-Length: 0\r\n");
        }
        let tag = ask(&from_pack, "GET", "/assets/style.css", "").field("ETag").expect("a tag").to_owned();
        for fields in [format!("If-None-Match: {tag}\r\n"), format!("If-Match: {tag}x\r\n")] {
            assert_same(&from_folder, &from_pack, "GET", "/assets/style.css", &fields);
        }
    }
}

#[test]
fn a_page_of_a_packed_folder_lists_what_lies_in_it() {
    let (from_folder, from_pack) = both("\troot * ROOT\n\tfile_server browse");
    for path in ["/docs/old/", "/assets/"] {
        let names = |server| {
            let page = ask(server, "GET", path, "Accept: application/json\r\n").text();
            let parts = page.split("\"name\":").skip(1);
            parts.filter_map(|part| Some(part.split('"').nth(1)?.to_owned())).collect::<Vec<_>>()
        };
        assert!(!names(&from_pack).is_empty(), "{path}");
        assert_eq!(names(&from_pack), names(&from_folder), "{path}");
    }
}

#[test]
fn a_pack_beyond_the_memory_bound_is_streamed_and_answers_the_same() {
    let small = Wishes {
        threads: 1,
        amend: Some(Arc::new(|checked| checked.global.memory_bytes = 100)),
        ..Wishes::default()
    };
    let (from_folder, from_pack) = both_with("\troot * ROOT\n\tencode br gzip\n\tfile_server", small);
    for path in PATHS {
        for fields in FIELDS.iter().filter(|fields| !fields.contains(",4-6")) {
            assert_same(&from_folder, &from_pack, "GET", path, fields);
        }
        assert_same(&from_folder, &from_pack, "HEAD", path, "Accept-Encoding: gzip\r\n");
    }
    for server in [&from_folder, &from_pack] {
        let several = ask(server, "GET", "/photo.png", "Range: bytes=1-2,4-6\r\n");
        let parts = several.text().matches("Content-Range: bytes ").count();
        assert_eq!((several.status, parts), (206, 2), "{}", several.head);
    }
}

#[test]
fn a_form_that_was_changed_is_a_500_that_names_it_and_the_others_are_served() {
    let folder = site();
    let packed = pack(folder.path());
    let tree = &packed.index.trees[0];
    let style = tree.files.iter().find(|file| file.path == b"assets/style.css").expect("packed");
    let blob = packed.index.blobs[style.brotli.expect("text shrinks") as usize];
    let file = OpenOptions::new().read(true).write(true).open(folder.path().join("myapp")).expect("there");
    let mut byte = [0];
    file.read_exact_at(&mut byte, blob.offset).expect("within");
    file.write_all_at(&[byte[0] ^ 1], blob.offset).expect("changed");
    let root = packed.folder.base().join("dist");
    let text = format!("http://localhost:0 {{\n\tbind 127.0.0.1\n\tspa {}\n}}\n", root.display());
    for memory in [1 << 20, 10] {
        let amend = move |checked: &mut onehop_config::checked::Checked| checked.global.memory_bytes = memory;
        let wishes =
            Wishes { packed: Some(packed.clone()), amend: Some(Arc::new(amend)), ..Wishes::default() };
        let server = TestServer::start(TempDir::new().unwrap(), &text, wishes);
        for _ in 0..3 {
            assert_eq!(ask(&server, "GET", "/assets/style.css", "Accept-Encoding: br\r\n").status, 500);
        }
        assert_eq!(ask(&server, "GET", "/assets/style.css", "").status, 200);
        assert_eq!(ask(&server, "GET", "/", "Accept-Encoding: br\r\n").status, 200);
        let said = server.wait_for(|event| match event {
            Event::Warning { message } => Some(message.clone()),
            _ => None,
        });
        assert_eq!(
            said,
            "dist/assets/style.css cannot be served, and is answered with 500: myapp was changed after it was packed: \
             dist/assets/style.css is not what it was; copy it again, or pack it again"
        );
    }
}

#[test]
fn many_who_ask_at_once_for_what_nobody_had_asked_for_get_it() {
    let (_, from_pack) = both("\tspa ROOT");
    let address = from_pack.address();
    let asked: Vec<_> = (0..16)
        .map(|_| {
            let address = address.clone();
            thread::spawn(move || {
                let mut client = crate::client::Client::connect(&address);
                client.get("/assets/a-B3xKq9aZ.js").body.len()
            })
        })
        .collect();
    for one in asked {
        assert_eq!(one.join().expect("answered"), 32 * 400);
    }
}

#[test]
fn a_tree_that_was_not_packed_is_named_at_the_start_and_one_of_the_machine_is_read() {
    let folder = site();
    let packed = pack(folder.path());
    let start = |root: &Path, follow: &str| {
        let text = format!(
            "http://localhost:0 {{\n\tbind 127.0.0.1\n\troot * {}\n\tfile_server{follow}\n}}\n",
            root.display()
        );
        let wishes = Wishes { packed: Some(packed.clone()), ..Wishes::default() };
        TestServer::try_start(TempDir::new().unwrap(), &text, wishes)
    };
    let error = |started: Result<TestServer, onehop_server::StartError>| {
        started.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let base = packed.folder.base();
    assert_eq!(
        error(start(&base.join("public"), "")),
        "public is not in this pack: pack it again, or name a folder outside of it"
    );
    assert_eq!(
        error(start(&base.join("dist"), " {\n\t\tsymlinks follow\n\t}")),
        "dist is not in this pack as it is to be served now (`dotfiles`, `symlinks`): pack it again, or name a folder \
         outside of it"
    );
    fs::create_dir(folder.path().join("uploads")).expect("made");
    write(folder.path(), "uploads/a.txt", b"of the machine");
    let server = start(&folder.path().join("uploads"), "").expect("read");
    assert_eq!(ask(&server, "GET", "/a.txt", "").text(), "of the machine");
}

#[test]
fn only_what_was_asked_for_is_in_memory_and_a_reload_keeps_it() {
    let (_, from_pack) = both("\tspa ROOT");
    let in_memory = || {
        let store = from_pack.running().status().stores.remove(0);
        (store.stored_bytes, store.compressed_bytes)
    };
    assert_eq!(in_memory(), (0, 0));
    assert_eq!(ask(&from_pack, "GET", "/photo.png", "").status, 200);
    assert_eq!(in_memory(), (5000, 0));
    from_pack.running().reload().expect("the same settings");
    assert_eq!(in_memory(), (5000, 0));
    assert_eq!(ask(&from_pack, "GET", "/photo.png", "").body.len(), 5000);
}
