//! What the file handlers cost on their own: nanoseconds for one request of a file in memory, from a
//! read head to a finished answer. Run it optimised:
//! `cargo run --release -p onehop-server --example file_cost`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use onehop_config::checked::{Encoding, FileServer, Spa};
use onehop_http1::{Limits, RequestHead, ServerCodec};
use onehop_server::request::answer::Answer;
use onehop_server::request::handle::files::store::{File, Form, Node, Stamp, Store};
use onehop_server::request::handle::files::{self, FileRequest, content_type, is_hashed_name};

const ROUNDS: u32 = 2_000_000;
const CODINGS: &[Encoding] = &[Encoding::Brotli, Encoding::Zstd, Encoding::Gzip];

fn main() {
    let store = store();
    let browser = "Accept: */*\r\nAccept-Encoding: gzip, deflate, br, zstd\r\nUser-Agent: x\r\n";
    let navigation = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n";
    let Some(tag) = store.file(0).and_then(|file| file.identity.as_ref()).map(|form| form.etag.clone())
    else {
        return;
    };
    let none_match = format!("If-None-Match: {tag}\r\n");
    for (name, target, lines, codings) in [
        ("index page, no coding", "/", "", CODINGS),
        ("index page by its name", "/index.html", "", CODINGS),
        ("index page, 304", "/", none_match.as_str(), CODINGS),
        ("hashed asset, brotli", "/assets/index-B3xKq9aZ.js", browser, CODINGS),
        ("navigation to a place in the app", "/users/7/settings", navigation, CODINGS),
        ("range of an asset", "/assets/index-B3xKq9aZ.js", "Range: bytes=0-99\r\n", &[]),
    ] {
        let head = head(target, lines);
        let mut answer = Answer::default();
        let request = request(&head, &store, codings);
        let settings = spa();
        let spa_cost = cost(|| {
            answer.clear();
            let _ = black_box(files::spa(black_box(&settings), black_box(&request), &mut answer));
        });
        println!("{name:<36} spa {:>4} ns, status {}", spa_cost.as_nanos(), answer.status);
    }
    let head = head("/", "");
    let (settings, request, mut answer) = (file_server(), request(&head, &store, &[]), Answer::default());
    let each = cost(|| {
        answer.clear();
        let _ = black_box(files::file_server(black_box(&settings), black_box(&request), &mut answer));
    });
    println!("{:<36} file_server {:>4} ns, status {}", "index page", each.as_nanos(), answer.status);
}

fn cost(mut once: impl FnMut()) -> Duration {
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        once();
    }
    begun.elapsed() / ROUNDS
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
