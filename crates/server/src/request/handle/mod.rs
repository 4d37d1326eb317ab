//! The handlers: where a request ends and an answer begins, and what is done to an answer on its way
//! out. Each is one folder or file; none knows the protocol version or another handler.

pub mod app;
pub mod proxy;

pub(crate) mod encode;
pub(crate) mod error_page;
pub(crate) mod file;
pub(crate) mod header;
pub(crate) mod redirect;
pub(crate) mod respond;
pub(crate) mod try_files;

use onehop_message::error::HttpError;

/// How a call of those that wait for others ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The answer is there as a whole; nothing was sent.
    Complete,
    /// The answer was sent, with these trailer lines to follow.
    Sent,
    /// The answer broke off after its head.
    Broken(HttpError),
    /// The connection was a tunnel, and the tunnel is over.
    Tunnelled,
}
