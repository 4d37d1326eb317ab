//! Head blocks: rows of records, each ended by a line feed.
//!
//! Owns what a record and a field may look like. Borrows from the frame, never allocates, and does not know
//! what a field means.

use memchr::memchr;

use crate::Broken;
use crate::limits::{FIELDS_MAX, HEAD_BLOCK_BYTES_MAX};
use crate::names::Interned;

/// A head block whose size and end have been checked, nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadBlock<'a> {
    bytes: &'a [u8],
}

/// A field of a head block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its name, in the spelling in which it was sent.
    pub name: FieldName<'a>,
    /// Its value as it came, in Latin-1: no control characters but tabs.
    pub value: &'a [u8],
}

/// A field's name as a head block writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldName<'a> {
    /// One byte for a name of the table.
    Interned(Interned),
    /// The name in full: a token (RFC 9110 section 5.6.2).
    Literal(&'a [u8]),
}

impl<'a> FieldName<'a> {
    /// The name in its spelling.
    pub fn as_bytes(&self) -> &'a [u8] {
        match self {
            FieldName::Interned(interned) => interned.spelling(),
            FieldName::Literal(name) => name,
        }
    }
}

impl<'a> HeadBlock<'a> {
    /// A block of these bytes: not too many of them, and the last record is ended.
    pub const fn new(bytes: &'a [u8]) -> Result<HeadBlock<'a>, Broken> {
        if bytes.len() > HEAD_BLOCK_BYTES_MAX {
            return Err(Broken::HeadTooLong(bytes.len()));
        }
        match bytes.last() {
            None | Some(b'\n') => Ok(HeadBlock { bytes }),
            Some(_) => Err(Broken::HeadUnterminated),
        }
    }

    /// The whole block.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Its records, without their line feeds.
    pub const fn records(&self) -> Records<'a> {
        Records { rest: self.bytes }
    }

    /// Its fields. After an error nothing more comes. In a REQUEST the fields begin after four other records:
    /// see [`Request::line`](crate::Request::line).
    pub const fn fields(&self) -> FieldRecords<'a> {
        FieldRecords { records: self.records(), left: FIELDS_MAX }
    }
}

/// The records of a block, in their order.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    /// What has not been read yet, as a block.
    pub const fn rest(&self) -> HeadBlock<'a> {
        HeadBlock { bytes: self.rest }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let end = memchr(b'\n', self.rest)?;
        let record = self.rest.get(..end)?;
        self.rest = self.rest.get(end + 1..)?;
        Some(record)
    }
}

/// The fields of a block, in their order.
#[derive(Debug, Clone)]
pub struct FieldRecords<'a> {
    records: Records<'a>,
    left: usize,
}

impl<'a> Iterator for FieldRecords<'a> {
    type Item = Result<Field<'a>, Broken>;

    #[inline]
    fn next(&mut self) -> Option<Result<Field<'a>, Broken>> {
        let record = self.records.next()?;
        let field = if self.left == 0 { Err(Broken::TooManyFields) } else { field(record) };
        self.left = self.left.saturating_sub(1);
        if field.is_err() {
            self.records.rest = &[];
        }
        Some(field)
    }
}

fn field(record: &[u8]) -> Result<Field<'_>, Broken> {
    let interned = record.first().copied().and_then(Interned::from_byte);
    let (name, value) = if let (Some(interned), Some(value)) = (interned, record.get(1..)) {
        (FieldName::Interned(interned), value)
    } else {
        let colon = memchr(b':', record).ok_or(Broken::FieldWithoutColon)?;
        let (name, value) = record.split_at_checked(colon).ok_or(Broken::FieldWithoutColon)?;
        if !is_token(name) {
            return Err(Broken::FieldName);
        }
        (FieldName::Literal(name), value.get(1..).unwrap_or_default())
    };
    if is_value(value) { Ok(Field { name, value }) } else { Err(Broken::FieldValue) }
}

/// token = 1*tchar (RFC 9110 section 5.6.2).
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| TOKEN_BYTES[usize::from(*byte)])
}

/// VCHAR, obs-text, space and tab (RFC 9110 section 5.5). Looks at all bytes, so that it looks at many at once.
pub(crate) fn is_value(bytes: &[u8]) -> bool {
    !bytes.iter().fold(false, |bad, &byte| bad | ((byte < b' ') & (byte != b'\t')) | (byte == 0x7f))
}

static TOKEN_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let letter = byte as u8;
        table[byte] = letter.is_ascii_alphanumeric()
            || matches!(
                letter,
                b'!' | b'#'
                    | b'$'
                    | b'%'
                    | b'&'
                    | b'\''
                    | b'*'
                    | b'+'
                    | b'-'
                    | b'.'
                    | b'^'
                    | b'_'
                    | b'`'
                    | b'|'
                    | b'~'
            );
        byte += 1;
    }
    table
};
