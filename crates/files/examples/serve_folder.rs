//! Answers one request from a folder: `cargo run -p onehop-files --example serve_folder -- FOLDER [PATH]`.
//!
//! Shows the crate alone: a tree is read into a store, a request head goes in, a response comes out.

use std::error::Error;
use std::path::PathBuf;

use onehop_config::checked::FileServer;
use onehop_files::limits::HOLD_BACK_MAX;
use onehop_files::tree::{MemoryBudget, Silent, StoreSpec, read};
use onehop_files::{FileRequest, Served, file_server};
use onehop_http1::{Limits, RequestHead, ServerCodec};
use onehop_message::response::Response;

/// Bytes of files that the store may hold in memory.
const MEMORY_BYTES: u64 = 64 * 1024 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let root = PathBuf::from(arguments.next().unwrap_or_else(|| ".".to_owned())).canonicalize()?;
    let path = arguments.next().unwrap_or_else(|| "/".to_owned());
    let spec = StoreSpec {
        root,
        dotfiles: false,
        follow_outside: false,
        absent: vec![],
        compress: Vec::new(),
        index: None,
        keep_releases: 0,
        hold_back: HOLD_BACK_MAX,
    };
    let store = read(&spec, None, &MemoryBudget::new(MEMORY_BYTES), &Silent)?;

    let mut head = RequestHead::new();
    let text = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ServerCodec::new(Limits::default())
        .read_head(text.as_bytes(), &mut head)
        .map_err(|refusal| refusal.name())?
        .ok_or("the head is not complete")?;
    let request = FileRequest {
        head: &head,
        path: head.path(),
        query: head.query(),
        original_path: head.path(),
        store: &store,
        store_number: 0,
        encodings: &[],
        encode_minimum: 0,
        encode_types: &[],
        error_status: None,
    };
    let settings = FileServer {
        root: None,
        hide: Vec::new(),
        index: vec!["index.html".to_owned()],
        precompressed: Vec::new(),
        browse: true,
        status: None,
        pass_through: false,
        canonical_uris: true,
        dotfiles: false,
        follow_outside: false,
        keep_releases: 0,
    };
    let mut response = Response::default();
    response.clear();
    match file_server(&settings, &request, &mut response) {
        Ok(Served::Answered) => {
            println!("{}", response.status);
            print!("{}", String::from_utf8_lossy(response.fields.lines()));
        }
        Ok(other) => println!("{other:?}"),
        Err(error) => println!("{} {}", error.status(), error.name()),
    }
    Ok(())
}
