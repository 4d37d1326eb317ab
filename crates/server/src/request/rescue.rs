//! The one place where an error becomes a status.
//!
//! Every refusal of the server, also the codec's own, passes through here, says who is at fault and
//! is counted under its name. Nothing internal ever reaches a body.

use onehop_http1::Refusal;

/// Who caused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtFault {
    /// What the client sent or asked for.
    Client,
    /// The server or its files.
    Us,
}

/// Why a request is not answered by its handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The bytes are not a request that may be answered.
    Malformed(Refusal),
    /// No site answers that host.
    UnknownHost,
    /// Nothing stands at that path.
    NotFound,
    /// Nothing stands at that path, and nothing may remember that: an asset of a build that is gone
    /// or not there yet. 404 with `Cache-Control: no-store`.
    MissingAsset,
    /// Something stands there that is not served: a dotfile, a link that leaves the root.
    Forbidden,
    /// The path cannot name a file: escaped slash, NUL, backslash, a way out of the root.
    BadPath,
    /// Only GET and HEAD.
    MethodNotAllowed,
    /// A precondition failed (RFC 9110 section 13).
    PreconditionFailed,
    /// No byte of the range exists (RFC 9110 section 15.5.17); the length that is there.
    RangeNotSatisfiable {
        /// Bytes of the file.
        length: u64,
    },
    /// The head took too long.
    HeadTimeout,
    /// The body made no progress.
    BodyTimeout,
    /// More connections than the process may have.
    TooManyConnections,
    /// A status that the configuration asks for (`try_files … =404`).
    Configured(u16),
    /// A file that is in the store's index could not be read.
    FileUnreadable,
}
