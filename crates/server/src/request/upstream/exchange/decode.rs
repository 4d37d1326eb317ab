//! Takes gzip off an answer's body, step by step.
//!
//! For answers whose coding we asked for and the client did not. Holds what one step brings and no more: gzip makes up
//! to a thousand bytes of one (RFC 1951), so that a step takes few.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;

use crate::limits::DECODE_STEP_BYTES;

/// A body that is decoded as it comes. Several members behind each other are one body (RFC 1952 section 2.2).
pub(super) struct Decoder {
    inner: MultiGzDecoder<Vec<u8>>,
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self { inner: MultiGzDecoder::new(Vec::new()) }
    }

    /// Takes the beginning of `bytes`; how many of them that was. What comes out of it is [`Decoder::take`]'s.
    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let step = bytes.get(..DECODE_STEP_BYTES).unwrap_or(bytes);
        self.inner.write_all(step)?;
        Ok(step.len())
    }

    /// Ends it; an error where it is cut off.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.inner.try_finish()
    }

    /// Whatever is decoded and was not taken.
    pub(super) fn decoded(&mut self) -> &mut Vec<u8> {
        self.inner.get_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_body_of_two_members_is_decoded_and_no_step_holds_much() {
        let zeros = vec![0; 8 << 20];
        let coded = [gzip(&zeros), gzip(b"end")].concat();
        let (mut decoder, mut rest, mut total, mut most) = (Decoder::new(), &coded[..], 0, 0);
        while !rest.is_empty() {
            let taken = decoder.push(rest).unwrap();
            rest = &rest[taken..];
            most = most.max(decoder.decoded().len());
            total += std::mem::take(decoder.decoded()).len();
        }
        decoder.finish().unwrap();
        assert_eq!(total + decoder.decoded().len(), zeros.len() + 3);
        assert!(most <= DECODE_STEP_BYTES * 1100, "{most} bytes in one step");
    }

    #[test]
    fn a_body_that_is_cut_off_or_no_gzip_is_an_error() {
        let coded = gzip(b"hello, hello, hello");
        let mut decoder = Decoder::new();
        decoder.push(&coded[..coded.len() - 3]).unwrap();
        assert!(decoder.finish().is_err());
        let mut decoder = Decoder::new();
        assert!(decoder.push(b"this is no gzip at all").and_then(|_| decoder.finish()).is_err());
    }
}
