//! Finds the end of a head or of a trailer section, however it is cut into reads.
//!
//! Owns the memory of how far was looked, so that a sender of single bytes costs one look per byte. Checks
//! only what can be said of each byte in passing; the outcome is that of the first offending byte, and so
//! does not depend on how the bytes were cut. A bare LF is refused, not read as a line's end as RFC 9112
//! section 2.2 would allow: peers that differ in this can be played against each other.

use crate::Refusal;

/// What a section may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Bytes of the whole section.
    pub section_bytes: usize,
    /// Said of a section over its bound.
    pub section_refusal: Refusal,
    /// Bytes of the first line with its CRLF.
    pub first_line_bytes: usize,
}

/// How far a section was looked through.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scan {
    /// Bytes that were looked at and need no second look.
    looked: usize,
    /// Where the line of that place began.
    line: usize,
}

impl Scan {
    pub(crate) const fn new() -> Scan {
        Scan { looked: 0, line: 0 }
    }

    /// Whether nothing was looked at so far.
    pub(crate) fn is_fresh(self) -> bool {
        self.looked == 0
    }

    /// The length of the section at the beginning of `input`, the empty line included; `None` while it goes
    /// on. `input` must begin with the bytes of the call before.
    pub(crate) fn find_end(&mut self, input: &[u8], bounds: Bounds) -> Result<Option<usize>, Refusal> {
        while let Some(byte) = input.get(self.looked) {
            if self.looked >= bounds.section_bytes {
                return Err(bounds.section_refusal);
            }
            if self.line == 0 && self.looked >= bounds.first_line_bytes {
                return Err(Refusal::TargetTooLong);
            }
            match byte {
                b'\r' => match input.get(self.looked + 1) {
                    None => return Ok(None),
                    Some(b'\n') => {}
                    Some(_) => return Err(Refusal::BareCr),
                },
                b'\n' => {
                    let line = input.get(self.line..self.looked).unwrap_or_default();
                    if line.last() != Some(&b'\r') {
                        return Err(Refusal::BareLf);
                    }
                    self.line = self.looked + 1;
                    if line.len() == 1 {
                        self.looked = self.line;
                        return Ok(Some(self.looked));
                    }
                }
                0 => return Err(Refusal::Nul),
                _ => {}
            }
            self.looked += 1;
        }
        Ok(None)
    }
}
