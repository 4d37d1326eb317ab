//! Requests against a small tree in memory or on disk: what the tests of the handlers share.

mod browse;
mod candidate;
mod disk;
mod file_server;
mod serve;
mod spa;

use std::sync::Arc;
use std::time::Duration;

use onehop_config::checked::{Encoding, FileServer, Spa};
use onehop_http1::RequestHead;
use onehop_message::error::HttpError;
use onehop_message::methods::Methods;
use onehop_message::response::{Body, Piece, Response};

use super::{FileRequest, Served};
use crate::sample::{self, Builder, CODINGS as ALL, modified, request, spa as spa_settings};
use crate::store::{File, Store};

/// The head of a request with these lines.
fn head(method: &str, target: &str, lines: &[&str]) -> RequestHead {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    sample::head(method, target, &lines)
}

impl Builder {
    fn file(self, path: &str, bytes: &str) -> Self {
        self.file_in(path, bytes, &[])
    }

    /// Changes the file that was added last.
    fn with(mut self, change: impl FnOnce(&mut File)) -> Self {
        change(Arc::get_mut(self.store.files.last_mut().unwrap()).unwrap());
        self
    }
}

fn file_server_settings() -> FileServer {
    let index = vec!["index.html".to_owned(), "index.txt".to_owned()];
    FileServer { hide: Vec::new(), index, ..sample::file_server() }
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
