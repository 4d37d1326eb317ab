//! Every bound of the codec that a server may set, with its unit and its reason.
//!
//! Owns the numbers only. Bounds that no one has a reason to change are constants beside the code that
//! keeps them.

/// Empty lines before a request line that are skipped: RFC 9112 section 2.2 asks for one at least, since old
/// clients send it after a body.
pub(crate) const EMPTY_LINES_MAX: usize = 4;

/// What a peer may make one message cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a head, from its first byte to the empty line's end. A head is held whole in memory, so
    /// this times the number of connections is what slow senders can take.
    pub head_bytes: usize,
    /// Bytes of a request-target. RFC 9112 section 3 asks for at least 8000 in the whole request line.
    pub target_bytes: usize,
    /// Header fields of one head or trailer section; at most [`Limits::FIELDS_MAX`] count, whatever is
    /// set. Lookups of rare names walk all of them.
    pub fields: usize,
    /// Bytes of one chunk-size line with its extensions and its CRLF. Extensions mean nothing here, so
    /// only their syntax needs room.
    pub chunk_line_bytes: usize,
    /// Bytes of a trailer section, with the empty line at its end.
    pub trailer_bytes: usize,
}

impl Limits {
    /// Fields that the tokeniser has room for on the stack.
    pub const FIELDS_MAX: usize = 256;

    /// Bytes that a connection's input buffer must be able to hold: with that many there, a codec always
    /// takes some, or refuses. A buffer that is smaller could fill up and never be emptied.
    pub const fn input_bytes(&self) -> usize {
        // The byte after the last that is allowed shows that a section is too long.
        let head = self.head_bytes.saturating_add(EMPTY_LINES_MAX * 2 + 1);
        let last_chunk = self.chunk_line_bytes.saturating_add(self.trailer_bytes).saturating_add(2 + 1);
        if head > last_chunk { head } else { last_chunk }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            head_bytes: 32 * 1024,
            target_bytes: 8 * 1024,
            fields: 100,
            chunk_line_bytes: 256,
            trailer_bytes: 8 * 1024,
        }
    }
}
