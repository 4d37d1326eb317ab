//! The handlers: where a request ends and a response begins, and what is done to a response on its way
//! out. Each is one folder or file; none knows the protocol version or another handler.

pub mod app;
pub mod proxy;

pub(crate) mod basic_auth;
pub(crate) mod encode;
pub(crate) mod error_page;
pub(crate) mod file;
pub(crate) mod header;
pub(crate) mod redirect;
pub(crate) mod request_header;
pub(crate) mod respond;
pub(crate) mod try_files;
pub(crate) mod uri;

use super::blocking::BlockingWork;

/// What a handler did.
#[derive(Debug)]
pub(crate) enum Handled {
    /// The response is complete.
    Responded,
    /// Nothing is there for it, and the next route may answer.
    PassedOn,
    /// This has to be done first. In a box, because few requests need it and it is large.
    NeedsBlocking(Box<BlockingWork>),
}
