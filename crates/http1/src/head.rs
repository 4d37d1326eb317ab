//! A request's head as it came: its own bytes, and where in them everything stands.
//!
//! Owns what a handler may ask of a head. Never decodes: paths stay percent-encoded, names keep their case.
//! Only `tokenise.rs` fills one.

use crate::Known;
use crate::fields::{Field, Fields, Span};

/// The version of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
    /// HTTP/2
    Http2,
}

impl Version {
    /// As logs have it.
    pub fn name(self) -> &'static str {
        match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2.0",
        }
    }

    /// As `Via` has it (RFC 9110 section 7.6.3): without the protocol's name.
    pub fn number(self) -> &'static str {
        match self {
            Version::Http10 => "1.0",
            Version::Http11 => "1.1",
            Version::Http2 => "2.0",
        }
    }
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

/// The form of a request-target (RFC 9112 section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetForm {
    Origin,
    Absolute,
    Authority,
    Asterisk,
}

/// A request's head. It owns its bytes and is reused from request to request.
#[derive(Debug, Clone)]
pub struct RequestHead {
    pub(crate) fields: Fields,
    pub(crate) version: Version,
    pub(crate) method: Method,
    pub(crate) method_span: Span,
    pub(crate) target: Span,
    pub(crate) form: TargetForm,
    pub(crate) path: Span,
    pub(crate) query: Option<Span>,
    /// The effective authority: the target's, else the Host field's.
    pub(crate) host: Option<Span>,
}

impl Method {
    /// The method of this name.
    pub fn from_bytes(name: &[u8]) -> Method {
        match name {
            b"GET" => Method::Get,
            b"HEAD" => Method::Head,
            b"POST" => Method::Post,
            b"PUT" => Method::Put,
            b"DELETE" => Method::Delete,
            b"OPTIONS" => Method::Options,
            b"PATCH" => Method::Patch,
            b"CONNECT" => Method::Connect,
            b"TRACE" => Method::Trace,
            _ => Method::Other,
        }
    }
}

impl RequestHead {
    /// An empty head. It allocates when it is first parsed into.
    pub const fn new() -> Self {
        RequestHead {
            fields: Fields::new(),
            version: Version::Http11,
            method: Method::Other,
            method_span: Span { start: 0, end: 0 },
            target: Span { start: 0, end: 0 },
            form: TargetForm::Origin,
            path: Span { start: 0, end: 0 },
            query: None,
            host: None,
        }
    }

    /// Forgets the request and keeps the room that it took.
    pub fn clear(&mut self) {
        self.fields.clear();
        self.version = Version::Http11;
        self.method = Method::Other;
        self.method_span = Span::default();
        self.target = Span::default();
        self.form = TargetForm::Origin;
        self.path = Span::default();
        self.query = None;
        self.host = None;
    }

    /// Bytes of memory that are held, for accounting.
    pub fn bytes_held(&self) -> usize {
        self.fields.bytes_held()
    }

    /// The method, if it is one of the usual ones.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The method as sent.
    pub fn method_bytes(&self) -> &[u8] {
        self.fields.slice(self.method_span)
    }

    /// The request-target as sent (RFC 9112 section 3.2).
    pub fn target(&self) -> &[u8] {
        self.fields.slice(self.target)
    }

    /// The path as sent, still percent-encoded: `/` for an absolute form without path, `*` for the asterisk
    /// form, empty for the authority form (CONNECT).
    pub fn path(&self) -> &[u8] {
        match self.form {
            TargetForm::Absolute if self.path.is_empty() => b"/",
            _ => self.fields.slice(self.path),
        }
    }

    /// The query without its question mark; `Some` and empty for a lone question mark.
    pub fn query(&self) -> Option<&[u8]> {
        self.query.map(|span| self.fields.slice(span))
    }

    /// The effective authority with its port: the target's where it has one, else the Host field's
    /// (RFC 9112 section 3.3). Checked to be a host; `None` only in HTTP/1.0.
    pub fn host(&self) -> Option<&[u8]> {
        self.host.map(|span| self.fields.slice(span))
    }

    /// The version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The first value of a known field.
    pub fn get(&self, known: Known) -> Option<&[u8]> {
        self.fields.get(known)
    }

    /// All values of a known field, in the head's order.
    pub fn get_all(&self, known: Known) -> impl Iterator<Item = &[u8]> {
        self.fields.get_all(known)
    }

    /// The first value of any field, by its name in any case.
    pub fn find(&self, name: &str) -> Option<&[u8]> {
        self.fields.find_all(name).next()
    }

    /// All values of any field, by its name in any case.
    pub fn find_all(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.fields.find_all(name)
    }

    /// All fields: name in the sender's case, value without white space at its ends.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter()
    }

    /// All fields with the known names that were recognised; spans are resolved by [`RequestHead::slice`].
    pub fn field_list(&self) -> &[Field] {
        self.fields.list()
    }

    /// The bytes of a span of this head.
    pub fn slice(&self, span: Span) -> &[u8] {
        self.fields.slice(span)
    }

    /// How many fields there are.
    pub fn field_count(&self) -> usize {
        self.fields.list().len()
    }

    /// The field lines as they came, without the empty line after them.
    pub fn raw_fields(&self) -> &[u8] {
        self.fields.lines()
    }
}

impl Default for RequestHead {
    fn default() -> Self {
        RequestHead::new()
    }
}
