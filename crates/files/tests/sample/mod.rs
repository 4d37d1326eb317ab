//! A small site in memory and requests for it, for the tests of the handlers, the test that counts allocations and
//! the example that measures time.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onehop_config::checked::{Encoding, FileServer, Spa};
use onehop_files::store::variant::coding_name;
use onehop_files::store::{File, Folder, Node, Stamp, Store, Variant};
use onehop_files::{FileRequest, content_type, is_hashed_name};
use onehop_http1::{Limits, RequestHead, ServerCodec};

pub(crate) const CODINGS: &[Encoding] = &[Encoding::Brotli, Encoding::Zstd, Encoding::Gzip];

/// The head of a request; each of `lines` ends with CRLF.
pub(crate) fn head(method: &str, target: &str, lines: &str) -> RequestHead {
    let text = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n");
    let mut head = RequestHead::new();
    let read = ServerCodec::new(Limits::default()).read_head(text.as_bytes(), &mut head);
    assert_eq!(read, Ok(Some(text.len())), "{text}");
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
        store_number: 3,
        encodings,
        encode_minimum: 0,
        encode_types: &[],
        error_status: None,
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
pub(crate) fn modified() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(784_111_777)
}

/// Builds a store as the control plane does, without reading or compressing: a coded form is the name of
/// its coding before the bytes.
#[derive(Default)]
pub(crate) struct Builder {
    pub(crate) store: Store,
}

impl Builder {
    pub(crate) fn new() -> Self {
        let mut builder = Self::default();
        builder.store.root = "/srv/www".into();
        builder.folder("");
        builder
    }

    pub(crate) fn folder(&mut self, path: &str) -> u32 {
        if let Some(Node::Folder(number)) = self.store.get(path.as_bytes()) {
            return number;
        }
        let number = u32::try_from(self.store.folders.len()).expect("sound");
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
        let parent = usize::try_from(self.folder(parent)).expect("sound");
        let folder = Arc::get_mut(&mut self.store.folders[parent]).expect("sound");
        folder.entries.push((name.as_bytes().into(), node));
    }

    pub(crate) fn file_in(mut self, path: &str, bytes: &str, encodings: &[Encoding]) -> Self {
        let content_type = content_type(path.as_bytes());
        let hash = u128::from(bytes.len() as u64) << 64 | path.len() as u128;
        let form = |encoding: Option<Encoding>| {
            let text = match encoding {
                Some(encoding) => format!("{}:{bytes}", coding_name(encoding)),
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
        let number = u32::try_from(self.store.files.len()).expect("sound");
        self.store.files.push(Arc::new(file));
        self.put(path, Node::File(number));
        self
    }

    pub(crate) fn build(self) -> Store {
        self.store
    }
}

/// An index page and a script, each in all codings.
pub(crate) fn store() -> Store {
    let files = [("index.html", 788), ("assets/index-B3xKq9aZ.js", 100 * 1024)];
    let add = |builder: Builder, (path, length)| builder.file_in(path, &"x".repeat(length), CODINGS);
    files.into_iter().fold(Builder::new(), add).build()
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
