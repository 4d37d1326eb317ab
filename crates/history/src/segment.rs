//! A segment: records one after the other, each with its length and a checksum.
//!
//! ```text
//! MAGIC  { length u32 LE | xxh3 of the record, low 32 bits, LE | record }*
//! ```
//!
//! Each segment can be read without any other. Its end may be cut off (the power failed, the disk was full); a checksum that
//! does not fit is damage.

use xxhash_rust::xxh3::xxh3_64;

use crate::limits::RECORD_BYTES_MAX;

/// The first bytes of a segment; the number is that of the format.
pub(crate) const MAGIC: &[u8] = b"onehop history 1\n";

/// Bytes before each record.
const FRAME_BYTES: usize = 8;

/// How a segment ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With a whole record.
    Whole,
    /// Within a record.
    CutOff,
    /// There are bytes that were not written so.
    Damaged,
}

/// The records of a segment, up to its end or to what is wrong with it.
pub(crate) struct Records<'b> {
    bytes: &'b [u8],
    /// Bytes of what was whole.
    at: usize,
    end: End,
}

/// A record within its frame.
pub(crate) fn frame(record: &[u8]) -> Vec<u8> {
    let mut framed = Vec::with_capacity(FRAME_BYTES + record.len());
    framed.extend_from_slice(&(record.len() as u32).to_le_bytes());
    framed.extend_from_slice(&checksum(record).to_le_bytes());
    framed.extend_from_slice(record);
    framed
}

fn checksum(record: &[u8]) -> u32 {
    xxh3_64(record) as u32
}

impl<'b> Records<'b> {
    /// Of these bytes.
    pub(crate) fn of(bytes: &'b [u8]) -> Self {
        if bytes.starts_with(MAGIC) {
            return Self { bytes, at: MAGIC.len(), end: End::Whole };
        }
        let end = if MAGIC.starts_with(bytes) { End::CutOff } else { End::Damaged };
        Self { bytes: &[], at: 0, end }
    }

    /// How many bytes were whole, and what ended them. Known once `next` has given `None`.
    pub(crate) fn end(&self) -> (u64, End) {
        (self.at as u64, self.end)
    }

    fn read(&mut self) -> Result<Option<&'b [u8]>, End> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(None);
        }
        let (head, rest) = rest.split_at_checked(FRAME_BYTES).ok_or(End::CutOff)?;
        let word = |at: usize| {
            head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
        };
        let length = word(0) as usize;
        if length > RECORD_BYTES_MAX {
            return Err(End::Damaged);
        }
        let record = rest.get(..length).ok_or(End::CutOff)?;
        if checksum(record) != word(4) {
            return Err(End::Damaged);
        }
        self.at += FRAME_BYTES + length;
        Ok(Some(record))
    }
}

impl<'b> Iterator for Records<'b> {
    type Item = &'b [u8];

    fn next(&mut self) -> Option<&'b [u8]> {
        if self.end != End::Whole {
            return None;
        }
        self.read().unwrap_or_else(|end| {
            self.end = end;
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: &[&[u8]], end: End) {
        let mut records = Records::of(bytes);
        let found: Vec<_> = records.by_ref().collect();
        assert_eq!((found.as_slice(), records.end().1), (expected, end));
    }

    #[test]
    fn records_are_read_up_to_what_is_cut_off_or_damaged() {
        let bytes = [MAGIC, &frame(b"one"), &frame(b"two")].concat();
        check(&bytes, &[b"one", b"two"], End::Whole);
        for cut in 1..FRAME_BYTES + 3 {
            check(&bytes[..bytes.len() - cut], &[b"one"], End::CutOff);
        }
        for at in bytes.len() - 7..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            check(&damaged, &[b"one"], End::Damaged);
        }
        check(b"", &[], End::CutOff);
        check(b"SQLite format 3", &[], End::Damaged);
    }
}
