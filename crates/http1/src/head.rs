//! A head as it came: its own bytes, and where in them everything stands.

use crate::Known;

/// A half-open range of a head's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// One header field: where its name and its value stand, and which known field it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The name, in the sender's case.
    pub name: Span,
    /// The value, without white space at its ends.
    pub value: Span,
    /// The field, if it is one that is looked up by name.
    pub known: Option<Known>,
}

/// HTTP/1.x minor version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

/// A request method; names are case-sensitive (RFC 9110 section 9.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the method of that name")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Delete,
    Options,
    Patch,
    Connect,
    Trace,
    /// Any other token; read it with [`RequestHead::method_bytes`].
    Other,
}

/// A request's head. It owns its bytes and is reused from request to request.
#[derive(Debug, Clone)]
pub struct RequestHead {
    pub(crate) bytes: Vec<u8>,
    pub(crate) method: Method,
    pub(crate) method_span: Span,
    pub(crate) target: Span,
    pub(crate) path: Span,
    pub(crate) query: Option<Span>,
    pub(crate) host: Option<Span>,
    pub(crate) version: Version,
    pub(crate) fields: Vec<Field>,
    /// One more than the index of the first field of each known name; 0 where there is none.
    pub(crate) first: [u16; Known::COUNT],
}
