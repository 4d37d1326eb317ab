//! What a handler hands back, whatever the protocol version.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use onehop_config::checked::Encoding;

/// An answer in the making; its buffers are reused from request to request.
#[derive(Debug, Default)]
pub struct Response {
    /// Status.
    pub status: u16,
    /// Complete field lines, `Name: value\r\n` each. Never Content-Length, Transfer-Encoding,
    /// Connection or Date: those follow from the body and the connection.
    pub fields: Fields,
    /// Body.
    pub body: Body,
    /// The connection is closed afterwards.
    pub close: bool,
}

/// Header fields as the lines that go out.
#[derive(Debug, Default, Clone)]
pub struct Fields {
    lines: Vec<u8>,
}

/// Where the bytes of an answer come from.
#[derive(Debug, Default)]
pub enum Body {
    /// No bytes.
    #[default]
    Empty,
    /// Only spoken of, as for HEAD and 304: its length, if that is known.
    Withheld(Option<u64>),
    /// Made for this answer.
    Bytes(Vec<u8>),
    /// Bytes of a file in a store of the view that the request sees.
    Stored(Stored),
    /// Several pieces of one file (multipart/byteranges), or of a page around it.
    Pieces(Vec<Piece>),
    /// A file that is not in memory.
    Disk(Disk),
}

/// Bytes of a file in memory, by number, so that an answer in flight counts no shared reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Store in the view.
    pub store: u32,
    /// File in the store.
    pub file: u32,
    /// Form of the file.
    pub encoding: Option<Encoding>,
    /// Bytes of that form.
    pub range: Range<usize>,
}

/// A piece of a body.
#[derive(Debug)]
pub enum Piece {
    /// Made for this answer.
    Bytes(Vec<u8>),
    /// Of a file in memory.
    Stored(Stored),
    /// Of a file that is not.
    Disk(Disk),
}

/// An open file on disk and the bytes of it that are wanted.
#[derive(Debug)]
pub struct Disk {
    /// Open for reading; its path was resolved below its root.
    pub file: Arc<std::fs::File>,
    /// First byte.
    pub offset: u64,
    /// How many.
    pub length: u64,
}

impl Fields {
    /// Adds `name: value`. Neither may hold CR, LF or NUL: callers pass checked names and values.
    pub fn add(&mut self, name: &str, value: &[u8]) {
        debug_assert!(!value.iter().any(|b| matches!(b, b'\r' | b'\n' | 0)));
        self.lines.extend_from_slice(name.as_bytes());
        self.lines.extend_from_slice(b": ");
        self.lines.extend_from_slice(value);
        self.lines.extend_from_slice(b"\r\n");
    }

    /// Adds a checked name, in whatever case, and a checked value.
    pub fn add_bytes(&mut self, name: &[u8], value: &[u8]) {
        self.lines.extend_from_slice(name);
        self.add_parts(b": ", value);
    }

    /// Adds a line whose beginning, `Name: `, was prepared before.
    pub fn add_parts(&mut self, line_start: &[u8], value: &[u8]) {
        self.lines.extend_from_slice(line_start);
        self.lines.extend_from_slice(value);
        self.lines.extend_from_slice(b"\r\n");
    }

    /// Adds complete lines that were prepared before.
    pub fn add_lines(&mut self, lines: &[u8]) {
        self.lines.extend_from_slice(lines);
    }

    /// Removes every field of that name, without regard to case.
    pub fn remove(&mut self, name: &str) {
        self.retain(|field, _| !field.eq_ignore_ascii_case(name.as_bytes()));
    }

    /// Keeps the fields for which `keep(name, value)` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) {
        let mut kept = Vec::new();
        for line in self.lines.split_inclusive(|b| *b == b'\n') {
            if split_line(line).is_none_or(|(name, value)| keep(name, value)) {
                kept.extend_from_slice(line);
            }
        }
        self.lines = kept;
    }

    /// Replaces every value of that name by this one.
    pub fn set(&mut self, name: &str, value: &[u8]) {
        if self.get(name).is_some() {
            self.remove(name);
        }
        self.add(name, value);
    }

    /// The first value of that name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let name = name.as_bytes();
        let mut rest = &self.lines[..];
        loop {
            let is_it = rest.get(name.len()) == Some(&b':')
                && rest.get(..name.len()).is_some_and(|field| field.eq_ignore_ascii_case(name));
            let line_end = memchr::memchr(b'\n', rest)?;
            if is_it {
                let value = rest.get(name.len() + 1..line_end)?.strip_suffix(b"\r")?;
                return Some(value.trim_ascii_start());
            }
            rest = rest.get(line_end + 1..)?;
        }
    }

    /// Every field, name and value.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut rest = &self.lines[..];
        let lines = std::iter::from_fn(move || {
            let (line, after) = rest.split_at_checked(memchr::memchr(b'\n', rest)? + 1)?;
            rest = after;
            Some(line)
        });
        lines.filter_map(split_line)
    }

    /// The lines as they go out.
    pub fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// Forgets them, keeping the memory.
    pub fn clear(&mut self) {
        self.lines.clear();
    }
}

impl Response {
    /// Whether its body is server-sent events, which may go on for ever.
    pub fn is_event_stream(&self) -> bool {
        let Some(value) = self.fields.get("Content-Type") else { return false };
        // The sixth letter tells it from most others.
        value.get(5).is_some_and(|letter| letter.eq_ignore_ascii_case(&b'e'))
            && *media_type(value) == *b"text/event-stream"
    }

    /// Ready for the next request, keeping the memory of the fields.
    pub fn clear(&mut self) {
        self.status = 200;
        self.fields.clear();
        self.body = Body::Empty;
        self.close = false;
    }
}

/// The media type of a Content-Type in lower case, without its parameters (RFC 9110 section 8.3.1). Allocates only where it
/// has capitals.
pub fn media_type(content_type: &[u8]) -> Cow<'_, [u8]> {
    let name = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    match name.iter().any(u8::is_ascii_uppercase) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    }
}

fn split_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.strip_suffix(b"\r\n")?;
    let colon = line.iter().position(|b| *b == b':')?;
    Some((&line[..colon], line[colon + 1..].trim_ascii_start()))
}
