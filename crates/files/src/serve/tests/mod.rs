//! Requests against a small tree in memory or on disk: what the tests of the handlers share.

mod browse;
mod candidate;
mod disk;
mod file_server;
mod serve;
mod spa;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onehop_config::checked::{Encoding, FileServer, Spa};
use onehop_http1::{Limits, RequestHead, ServerCodec};
use onehop_message::error::HttpError;
use onehop_message::methods::Methods;
use onehop_message::response::{Body, Piece, Response};

use super::{FileRequest, Served};
use crate::store::{File, Folder, Node, Stamp, Store, Variant};
use crate::{content_type, is_hashed_name};

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn modified() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(784_111_777)
}

/// A head with these lines behind `GET path HTTP/1.1`.
fn head(method: &str, target: &str, lines: &[&str]) -> RequestHead {
    let mut text = format!("{method} {target} HTTP/1.1\r\nHost: a\r\n");
    for line in lines {
        text.push_str(line);
        text.push_str("\r\n");
    }
    text.push_str("\r\n");
    let mut head = RequestHead::new();
    let read = ServerCodec::new(Limits::default()).read_head(text.as_bytes(), &mut head);
    assert_eq!(read, Ok(Some(text.len())), "{text}");
    head
}

/// Builds a store as the control plane does, without reading or compressing: a coded form is the name of
/// its coding before the bytes.
#[derive(Default)]
struct Builder {
    store: Store,
}

impl Builder {
    fn new() -> Self {
        let mut builder = Self::default();
        builder.store.root = "/srv/www".into();
        builder.folder("");
        builder
    }

    fn folder(&mut self, path: &str) -> u32 {
        if let Some(Node::Folder(number)) = self.store.get(path.as_bytes()) {
            return number;
        }
        let number = u32::try_from(self.store.folders.len()).unwrap();
        let folder = Folder { path: path.as_bytes().into(), modified: modified(), entries: Vec::new() };
        self.store.folders.push(Arc::new(folder));
        self.put(path, Node::Folder(number));
        number
    }

    fn put(&mut self, path: &str, node: Node) {
        self.store.index.insert(path.as_bytes().into(), node);
        if path.is_empty() {
            return;
        }
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = usize::try_from(self.folder(parent)).unwrap();
        let folder = Arc::get_mut(&mut self.store.folders[parent]).unwrap();
        folder.entries.push((name.as_bytes().into(), node));
    }

    fn file(self, path: &str, bytes: &str) -> Self {
        self.file_in(path, bytes, &[])
    }

    fn file_in(mut self, path: &str, bytes: &str, encodings: &[Encoding]) -> Self {
        let content_type = content_type(path.as_bytes());
        let hash = u128::from(bytes.len() as u64) << 64 | path.len() as u128;
        let form = |encoding: Option<Encoding>| {
            let text = match encoding {
                Some(encoding) => format!("{}:{bytes}", crate::store::variant::coding_name(encoding)),
                None => bytes.to_owned(),
            };
            Variant::new(text.into_bytes().into(), encoding, &content_type, modified(), hash)
        };
        let coded = |encoding| encodings.contains(&encoding).then(|| form(Some(encoding)));
        let file = File {
            path: path.as_bytes().into(),
            content_type: (&*content_type).into(),
            modified: modified(),
            length: bytes.len() as u64,
            hash,
            identity: Some(form(None)),
            gzip: coded(Encoding::Gzip),
            brotli: coded(Encoding::Brotli),
            zstd: coded(Encoding::Zstd),
            hashed_name: is_hashed_name(path.as_bytes()),
            stamp: Stamp::default(),
            settled: true,
            packed: None,
        };
        let number = u32::try_from(self.store.files.len()).unwrap();
        self.store.files.push(Arc::new(file));
        self.put(path, Node::File(number));
        self
    }

    /// Changes the file that was added last.
    fn with(mut self, change: impl FnOnce(&mut File)) -> Self {
        change(Arc::get_mut(self.store.files.last_mut().unwrap()).unwrap());
        self
    }

    fn build(self) -> Store {
        self.store
    }
}

const ALL: &[Encoding] = &[Encoding::Brotli, Encoding::Zstd, Encoding::Gzip];

fn request<'a>(head: &'a RequestHead, store: &'a Store, encodings: &'a [Encoding]) -> FileRequest<'a> {
    FileRequest {
        head,
        path: head.path(),
        query: head.query(),
        original_path: head.path(),
        store,
        store_number: 3,
        encodings,
        encode_minimum: 0,
        encode_types: &[],
        error_status: None,
    }
}

fn file_server_settings() -> FileServer {
    FileServer {
        root: None,
        hide: Vec::new(),
        index: vec!["index.html".to_owned(), "index.txt".to_owned()],
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

fn spa_settings() -> Spa {
    Spa {
        root: "/srv/www".into(),
        index: "index.html".to_owned(),
        immutable: Vec::new(),
        dotfiles: false,
        follow_outside: false,
        keep_releases: 3,
    }
}

/// The bytes of an answer from memory.
fn body(store: &Store, answer: &Response) -> String {
    let stored = |stored: &onehop_message::response::Stored| {
        assert_eq!(stored.store, 3);
        let form = store.file(stored.file).unwrap().form(stored.encoding).unwrap();
        form.bytes[stored.range.clone()].to_vec()
    };
    let bytes = match &answer.body {
        Body::Empty | Body::Withheld(_) => Vec::new(),
        Body::Bytes(bytes) => bytes.clone(),
        Body::Stored(piece) => stored(piece),
        Body::Pieces(pieces) => pieces
            .iter()
            .flat_map(|piece| match piece {
                Piece::Bytes(bytes) => bytes.clone(),
                Piece::Stored(piece) => stored(piece),
                Piece::Disk(_) => panic!("not from memory"),
            })
            .collect(),
        Body::Disk(_) => panic!("not from memory"),
    };
    String::from_utf8(bytes).unwrap()
}

fn field<'a>(answer: &'a Response, name: &str) -> Option<&'a str> {
    answer.fields.get(name).map(|value| std::str::from_utf8(value).unwrap())
}

/// Field lines as text, for whole comparisons.
fn lines(answer: &Response) -> &str {
    std::str::from_utf8(answer.fields.lines()).unwrap()
}

fn answered(served: Result<Served, HttpError>) {
    assert!(matches!(served, Ok(Served::Answered)), "{served:?}");
}

/// A folder of its own for one test.
fn own_folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("onehop-files-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
