//! An answer's head as it came, for a proxy: its own bytes, and where in them everything stands.
//!
//! Owns what may be asked of it. Only `tokenise.rs` fills one.

use crate::fields::{Field, Fields, Span};
use crate::{Known, Version};

/// An answer's head. It owns its bytes and is reused from answer to answer.
#[derive(Debug, Clone)]
pub struct ResponseHead {
    pub(crate) fields: Fields,
    pub(crate) version: Version,
    pub(crate) status: u16,
    pub(crate) reason: Span,
}

impl ResponseHead {
    /// An empty head. It allocates when it is first parsed into.
    pub const fn new() -> Self {
        let reason = Span { start: 0, end: 0 };
        ResponseHead { fields: Fields::new(), version: Version::Http11, status: 0, reason }
    }

    /// Forgets the answer and keeps the room that it took.
    pub fn clear(&mut self) {
        self.fields.clear();
        self.version = Version::Http11;
        self.status = 0;
        self.reason = Span::default();
    }

    /// Bytes of memory that are held, for accounting.
    pub fn bytes_held(&self) -> usize {
        self.fields.bytes_held()
    }

    /// The version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The status: three digits, 100 and above.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The reason as sent, often empty. It means nothing (RFC 9112 section 4).
    pub fn reason(&self) -> &[u8] {
        self.fields.slice(self.reason)
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

    /// All fields with the known names that were recognised; spans are resolved by [`ResponseHead::slice`].
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

impl Default for ResponseHead {
    fn default() -> Self {
        ResponseHead::new()
    }
}
