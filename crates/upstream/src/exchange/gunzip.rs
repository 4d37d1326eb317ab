//! Takes gzip off an response's body, step by step.
//!
//! For responses whose coding we asked for and the client did not. Holds what one step brings and no more: gzip makes up
//! to a thousand bytes of one (RFC 1951), so that a step takes few.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;

use crate::limits::DECODE_STEP_BYTES;

/// A body that is decoded as it comes. Several members behind each other are one body (RFC 1952 section 2.2).
pub(super) struct Decoder {
    inner: MultiGzDecoder<Vec<u8>>,
    /// Something was put in.
    is_begun: bool,
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self { inner: MultiGzDecoder::new(Vec::new()), is_begun: false }
    }

    /// Takes the beginning of `bytes`; how many of them that was. What comes out of it is in [`Decoder::decoded`], and
    /// once all are taken, that is all that can be known of them.
    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_begun |= !bytes.is_empty();
        let step = bytes.get(..DECODE_STEP_BYTES).unwrap_or(bytes);
        self.inner.write_all(step)?;
        if step.len() == bytes.len() {
            // The decoder would keep what it has made until the next write, which may be a long time.
            self.inner.flush()?;
        }
        Ok(step.len())
    }

    /// Ends it; an error where it is cut off. No byte at all is an empty body, as Go's transport, and so Caddy's, has it.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        if self.is_begun { self.inner.try_finish() } else { Ok(()) }
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
    fn what_is_put_in_comes_out_at_once_byte_for_byte() {
        let coded = [gzip(b"one"), gzip(b""), gzip(&b"two".repeat(10_000))].concat();
        let mut decoder = Decoder::new();
        for byte in &coded[..coded.len() - 1] {
            assert_eq!(decoder.push(&[*byte]).unwrap(), 1);
        }
        assert_eq!(decoder.decoded().len(), 3 + 30_000);
        decoder.push(&coded[coded.len() - 1..]).unwrap();
        decoder.finish().unwrap();
        assert_eq!(decoder.decoded().len(), 3 + 30_000);
    }

    #[test]
    fn nothing_put_in_is_nothing() {
        let mut decoder = Decoder::new();
        decoder.finish().unwrap();
        assert!(decoder.decoded().is_empty());
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
