//! A file from memory is answered without a single allocation: what is on the path of nearly every
//! request must not depend on an allocator's mood.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use onehop_config::checked::{Encoding, FileServer, Spa};
use onehop_http1::{Limits, RequestHead, ServerCodec};
use onehop_server::request::answer::Answer;
use onehop_server::request::handle::files::store::{File, Form, Node, Stamp, Store};
use onehop_server::request::handle::files::{self, FileRequest, content_type, is_hashed_name};

const CODINGS: &[Encoding] = &[Encoding::Brotli, Encoding::Zstd, Encoding::Gzip];

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
        let head = head(target, lines);
        let request = request(&head, &store, CODINGS);
        let mut answer = Answer::default();
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

fn head(target: &str, lines: &str) -> RequestHead {
    let text = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n");
    let mut head = RequestHead::new();
    let read = ServerCodec::new(Limits::default()).read_head(text.as_bytes(), &mut head);
    assert_eq!(read, Ok(Some(text.len())));
    head
}

fn request<'a>(head: &'a RequestHead, store: &'a Store, encodings: &'a [Encoding]) -> FileRequest<'a> {
    FileRequest {
        head,
        path: head.path(),
        query: head.query(),
        original_path: head.path(),
        store,
        store_number: 0,
        encodings,
        encode_minimum: 0,
        encode_types: &[],
    }
}

fn store() -> Store {
    let mut store = Store { root: "/srv/www".into(), ..Store::default() };
    store.index.insert(b"".as_slice().into(), Node::Folder(0));
    for (number, path, length) in [(0, "index.html", 788), (1, "assets/index-B3xKq9aZ.js", 100 * 1024)] {
        let content_type = content_type(path.as_bytes());
        let modified = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let form = |encoding| {
            Form::new(vec![b'x'; length].into(), encoding, &content_type, modified, length as u128)
        };
        let file = File {
            path: path.as_bytes().into(),
            content_type: (&*content_type).into(),
            modified,
            length: length as u64,
            hash: length as u128,
            identity: Some(form(None)),
            gzip: Some(form(Some(Encoding::Gzip))),
            brotli: Some(form(Some(Encoding::Brotli))),
            zstd: Some(form(Some(Encoding::Zstd))),
            hashed_name: is_hashed_name(path.as_bytes()),
            stamp: Stamp::default(),
            settled: true,
        };
        store.files.push(Arc::new(file));
        store.index.insert(path.as_bytes().into(), Node::File(number));
    }
    store.folders.push(Arc::new(files::store::Folder {
        path: b"".as_slice().into(),
        modified: UNIX_EPOCH,
        entries: Vec::new(),
    }));
    store
}

fn spa() -> Spa {
    Spa {
        root: "/srv/www".into(),
        index: "index.html".to_owned(),
        immutable: Vec::new(),
        dotfiles: false,
        follow_outside: false,
    }
}

fn file_server() -> FileServer {
    FileServer {
        root: None,
        hide: vec!["/srv/Onehopfile".to_owned()],
        index: vec!["index.html".to_owned()],
        precompressed: Vec::new(),
        browse: false,
        status: None,
        pass_through: false,
        canonical_uris: true,
        dotfiles: false,
        follow_outside: false,
    }
}
