//! Serves directory trees: from memory where they fit, from disk where they do not.
//!
//! [`tree`] reads a directory, compresses its files, watches it and publishes each change as one new [`store::Store`],
//! which is immutable. [`file_server`] and [`spa`] answer a request from a store; what is not in memory is finished by
//! [`finish_on_disk`] or [`finish_in_pack`] on a thread that may block. The parsers beside them are pure: [`path`], [`ranges`],
//! [`accept_encoding`], [`conditional`].
//!
//! Knows no route and no connection: a [`FileRequest`] goes in, an [`onehop_message::response::Response`] or an
//! [`onehop_message::error::HttpError`] comes out. `examples/serve_folder.rs` uses it alone.
#![forbid(unsafe_code)]

pub mod accept_encoding;
pub mod conditional;
pub mod content_type;
pub mod hashed_name;
pub mod limits;
pub mod null_device;
pub mod path;
pub mod ranges;
mod serve;
pub mod store;
pub mod tree;

#[cfg(test)]
#[path = "../../archive/tests/packing/mod.rs"]
mod packing;
// The sample names the crate as its other users do.
#[cfg(test)]
extern crate self as onehop_files;
#[cfg(test)]
#[path = "../tests/sample/mod.rs"]
#[expect(dead_code, reason = "the tests of the handlers make stores of their own")]
mod sample;

pub use content_type::{content_type, is_compressible};
pub use hashed_name::{is_hashed_name, may_be_hashed_name};
pub use serve::{
    Candidate, FileRequest, InPack, OnDisk, OwnedFileRequest, Served, file_server, find_candidate,
    find_candidate_on_disk, finish_in_pack, finish_named_file, finish_on_disk, from_disk, open_named_file,
    spa,
};
