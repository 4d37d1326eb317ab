//! A small site in memory and requests for it, for the test that counts allocations and the example that
//! measures time.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use onehop_config::checked::{Encoding, FileServer, Spa};
use onehop_files::store::{File, Folder, Node, Stamp, Store, Variant};
use onehop_files::{FileRequest, content_type, is_hashed_name};
use onehop_http1::{Limits, RequestHead, ServerCodec};

pub(crate) const CODINGS: &[Encoding] = &[Encoding::Brotli, Encoding::Zstd, Encoding::Gzip];

pub(crate) fn head(target: &str, lines: &str) -> RequestHead {
    let text = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n");
    let mut head = RequestHead::new();
    let read = ServerCodec::new(Limits::default()).read_head(text.as_bytes(), &mut head);
    assert_eq!(read, Ok(Some(text.len())));
    head
}

pub(crate) fn request<'a>(
    head: &'a RequestHead,
    store: &'a Store,
    encodings: &'a [Encoding],
) -> FileRequest<'a> {
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
        error_status: None,
    }
}

pub(crate) fn store() -> Store {
    let mut store = Store { root: "/srv/www".into(), ..Store::default() };
    store.index.insert(b"".as_slice().into(), Node::Folder(0));
    for (number, path, length) in [(0, "index.html", 788), (1, "assets/index-B3xKq9aZ.js", 100 * 1024)] {
        let content_type = content_type(path.as_bytes());
        let modified = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let form = |encoding| {
            Variant::new(vec![b'x'; length].into(), encoding, &content_type, modified, length as u128)
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
            packed: None,
        };
        store.files.push(Arc::new(file));
        store.index.insert(path.as_bytes().into(), Node::File(number));
    }
    store.folders.push(Arc::new(Folder {
        path: b"".as_slice().into(),
        modified: UNIX_EPOCH,
        entries: Vec::new(),
    }));
    store
}

pub(crate) fn spa() -> Spa {
    Spa {
        root: "/srv/www".into(),
        index: "index.html".to_owned(),
        immutable: Vec::new(),
        dotfiles: false,
        follow_outside: false,
        keep_releases: 3,
    }
}

pub(crate) fn file_server() -> FileServer {
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
        keep_releases: 3,
    }
}
