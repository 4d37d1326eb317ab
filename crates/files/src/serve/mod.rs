//! Files from memory, and from disk where memory is not enough: how a request becomes an answer.
//!
//! `file_server.rs` and `spa.rs` decide which file answers, `serve.rs` turns a file into an answer,
//! `disk.rs` does both below a root that is not in memory. The rest are parsers, pure and small:
//! `path.rs`, `ranges.rs`, `accept_encoding.rs`, `conditional.rs`. Only `disk.rs` touches the file
//! system, and only on a thread that may block.

mod browse;
mod candidate;
mod disk;
mod file_server;
pub(crate) mod hidden;
mod multipart;
mod redirect;
mod spa;
mod stored;

use std::path::PathBuf;
use std::sync::Arc;

use onehop_config::checked::Encoding;
use onehop_http1::RequestHead;

pub use candidate::{Candidate, find_candidate, find_candidate_on_disk};
pub use disk::{finish_named_file, finish_on_disk, from_disk, open_named_file};
pub use file_server::file_server;
pub use spa::spa;
pub use stored::finish_in_pack;

use crate::store::{File, Store};

/// A request for a file of a store.
#[derive(Debug, Clone, Copy)]
pub struct FileRequest<'a> {
    /// The head as it came.
    pub head: &'a RequestHead,
    /// The path as it is now, after rewrites, percent-encoded.
    pub path: &'a [u8],
    /// The query as it is now, without its question mark.
    pub query: Option<&'a [u8]>,
    /// The path as it came, percent-encoded: what the browser knows, and so the base of redirects.
    pub original_path: &'a [u8],
    /// What stands below the root.
    pub store: &'a Store,
    /// The number of that store in the view, for [`onehop_message::response::Stored`].
    pub store_number: u32,
    /// The codings that may be used, in the server's order of preference; empty: none.
    pub encodings: &'a [Encoding],
    /// Smaller files are sent as they are, in bytes.
    pub encode_minimum: u64,
    /// Media types that are sent coded, lower case, `*` at the end standing for anything; empty: every
    /// type that has coded forms.
    pub encode_types: &'a [String],
    /// The status of the error whose page is asked for: the answer's, unless the settings name another. Such a page is
    /// sent to whatever method, as a whole and unconditionally.
    pub error_status: Option<u16>,
}

/// A request for a file below a root that is not in memory; owned, to be handed to a thread that may
/// block. Such files are not compressed on the way, so nothing here speaks of codings.
#[derive(Debug, Clone)]
pub struct OwnedFileRequest {
    /// See [`FileRequest::head`].
    pub head: RequestHead,
    /// See [`FileRequest::path`].
    pub path: Vec<u8>,
    /// See [`FileRequest::query`].
    pub query: Option<Vec<u8>>,
    /// See [`FileRequest::original_path`].
    pub original_path: Vec<u8>,
    /// See [`FileRequest::error_status`].
    pub error_status: Option<u16>,
}

/// What became of a request for a file.
#[derive(Debug)]
pub enum Served {
    /// The answer is complete.
    Answered,
    /// Nothing is there and the next step may answer (`pass_thru`).
    PassedOn,
    /// The form that is wanted is still in the pack only: [`finish_in_pack`] completes the response on a thread that may block.
    InPack(InPack),
    /// The file is not in memory: [`finish_on_disk`] completes the answer on a thread that may block.
    OnDisk(OnDisk),
}

/// A form of a file that is still in the pack only.
#[derive(Debug, Clone)]
pub struct InPack {
    /// The file that was asked for: its type and time are the response's.
    file: Arc<File>,
    /// The file whose form is sent: the same, or its sidecar.
    sent: Arc<File>,
    /// The number of the store.
    store: u32,
    /// The number of `sent` in the store.
    number: u32,
    /// The form of `sent`.
    encoding: Option<Encoding>,
    /// The coding that its name says a sidecar has.
    sidecar: Option<Encoding>,
    /// The response depends on Accept-Encoding.
    varies: bool,
    /// A complete Cache-Control line.
    cache_control: Option<&'static [u8]>,
    /// Status instead of 200.
    status: Option<u16>,
    /// Which file answers depends on `Accept`.
    varies_by_accept: bool,
}

/// A file that is known to the store but not held in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnDisk {
    /// The root, absolute.
    pub root: PathBuf,
    /// Path below the root, normalised.
    pub path: Vec<u8>,
    /// Media type; empty: none.
    pub content_type: String,
    /// Sidecar files to look for, best first: configured and accepted by the client.
    pub sidecars: Vec<Encoding>,
    /// The answer depends on Accept-Encoding.
    pub varies: bool,
    /// A complete Cache-Control line.
    pub cache_control: Option<&'static [u8]>,
    /// Status instead of 200.
    pub status: Option<u16>,
    /// Symbolic links that leave the root are followed.
    pub follow_outside: bool,
    /// Which file answers depends on `Accept`.
    pub varies_by_accept: bool,
}

#[cfg(test)]
mod tests;
