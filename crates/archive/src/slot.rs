//! How a program knows that it is a pack: a slot in its own constants that packing fills in.
//!
//! A program that was not packed reads nothing of its file at a start. One that was packed knows how long its file
//! has to be, so that a copy that is cut off is refused instead of being an onehop with nothing to serve. The same
//! bytes stand at the end of the file, where whoever looks at another file finds them.

use crate::Digest;
use crate::error::PackError;

/// Bytes of a location as it is written.
pub(crate) const LOCATION_BYTES: usize = 104;

/// The format that this onehop reads and writes.
pub(crate) const FORMAT: u32 = 1;

/// What a location begins with. It occurs in a program's file exactly once, which packing relies on: nothing else here
/// may spell it out.
const MARK_BYTES: usize = 32;

#[used]
static SLOT: [u8; LOCATION_BYTES] = pristine();

const fn pristine() -> [u8; LOCATION_BYTES] {
    let mark = *b"\x89onehop\r\n\x1a\npack-slot:\xf1\x9d\x05\xc3\x7e\xb8\x42\xd6\x00\x0b\x0e";
    let mut slot = [0; LOCATION_BYTES];
    let mut at = 0;
    while at < MARK_BYTES {
        slot[at] = mark[at];
        at += 1;
    }
    slot
}

/// Where the parts of a pack lie in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// Bytes of the program in front.
    pub program: u64,
    /// Where the index begins.
    pub index_offset: u64,
    /// Its bytes.
    pub index_length: u64,
    /// Bytes of the whole file.
    pub total: u64,
    /// Of the index, which holds those of everything else.
    pub digest: Digest,
}

/// The location of the pack that this very program is, if it is one.
///
/// # Errors
///
/// The program was packed by an onehop of another format.
pub fn own_location() -> Result<Option<Location>, PackError> {
    // Not what the compiler knows of it: packing changes these bytes in the file.
    Location::parse(std::hint::black_box(&SLOT))
}

/// The bytes that begin each location.
pub(crate) fn mark() -> [u8; MARK_BYTES] {
    let slot = std::hint::black_box(&SLOT);
    let mut mark = [0; MARK_BYTES];
    mark.copy_from_slice(&slot[..MARK_BYTES]);
    mark
}

impl Location {
    /// Written out, with the mark in front.
    pub(crate) fn to_bytes(self) -> [u8; LOCATION_BYTES] {
        let mut all = Vec::with_capacity(LOCATION_BYTES);
        all.extend_from_slice(&mark());
        all.extend_from_slice(&FORMAT.to_le_bytes());
        all.extend_from_slice(&[0; 4]);
        for field in [self.program, self.index_offset, self.index_length, self.total] {
            all.extend_from_slice(&field.to_le_bytes());
        }
        all.extend_from_slice(&self.digest.0);
        let mut bytes = [0; LOCATION_BYTES];
        bytes.copy_from_slice(&all);
        bytes
    }

    /// Reads what stands behind the mark; `None` where nothing was filled in.
    pub(crate) fn parse(bytes: &[u8; LOCATION_BYTES]) -> Result<Option<Self>, PackError> {
        let number = |at: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(eight)
        };
        let format = u32::from_le_bytes([bytes[32], bytes[33], bytes[34], bytes[35]]);
        if format == 0 {
            return Ok(None);
        }
        if format != FORMAT {
            return Err(PackError::Format { found: format, known: FORMAT });
        }
        let mut digest = Digest::default();
        digest.0.copy_from_slice(&bytes[72..LOCATION_BYTES]);
        let location = Self {
            program: number(40),
            index_offset: number(48),
            index_length: number(56),
            total: number(64),
            digest,
        };
        Ok(Some(location))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_not_packed_has_no_place() {
        assert!(own_location().expect("readable").is_none());
    }

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let location = Location {
            program: 1,
            index_offset: u64::MAX,
            index_length: 3,
            total: 4,
            digest: Digest::of(b"index"),
        };
        assert_eq!(Location::parse(&location.to_bytes()).expect("readable"), Some(location));
        let mut later = location.to_bytes();
        later[32] = 9;
        assert!(matches!(Location::parse(&later), Err(PackError::Format { found: 9, known: FORMAT })));
    }
}
