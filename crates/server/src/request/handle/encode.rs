//! `encode` for bodies that are made while a request runs: small ones are compressed on the spot, those that
//! come piece by piece as they come.
//!
//! Files in memory bring their compressed forms along (`files/`). Files streamed from disk are sent as
//! they are.

use std::io::Write;

use onehop_config::checked::{Encode, Encoding};
use onehop_http1::Method;

use super::files::accept_encoding::Accepted;
use super::files::form::coding_name;
use crate::limits::{COMPRESSED_ON_THE_SPOT_BYTES_MAX, ZSTD_WINDOW_LOG_MAX};
use crate::request::answer::{Answer, Body};
use crate::request::trip::Trip;

/// Compresses the body of an answer where client, configuration and answer allow it.
pub(crate) fn apply(trip: &Trip<'_>, answer: &mut Answer) {
    let Body::Bytes(body) = &answer.body else { return };
    let length = body.len();
    if length > COMPRESSED_ON_THE_SPOT_BYTES_MAX {
        return;
    }
    let Some(encoding) = choose(trip, answer, Some(length as u64)) else { return };
    let Body::Bytes(body) = &answer.body else { return };
    let Ok(compressed) = compress(body, encoding) else { return };
    announce(encoding, answer);
    answer.body = Body::Bytes(compressed);
}

/// The same for a body that will come piece by piece; `length` where it is known. The answer's fields say so
/// from now on, and its length is not known any more.
pub(crate) fn in_pieces(trip: &Trip<'_>, answer: &mut Answer, length: Option<u64>) -> Option<Coder> {
    // Events wait for nothing, least of all for more of them.
    if answer.is_event_stream()
        || matches!(answer.status, 100..200 | 204 | 304)
        || trip.head.method() == Method::Head
    {
        return None;
    }
    let encoding = choose(trip, answer, length)?;
    let coder = Coder::new(encoding).ok()?;
    announce(encoding, answer);
    Some(coder)
}

/// The coding, where there is to be one; the answer says from now on that there could be.
fn choose(trip: &Trip<'_>, answer: &mut Answer, length: Option<u64>) -> Option<Encoding> {
    let encode = trip.encode?;
    if !may_be_encoded(encode, answer, length) {
        return None;
    }
    add_vary(answer);
    let accepted = Accepted::parse(trip.head.get_all(onehop_http1::Known::AcceptEncoding));
    accepted.choose(encode.encodings.iter().copied())
}

fn announce(encoding: Encoding, answer: &mut Answer) {
    answer.fields.add("Content-Encoding", coding_name(encoding).as_bytes());
    weaken_etag(answer);
}

/// A body that is compressed as it comes.
pub(crate) enum Coder {
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    Zstd(zstd::Encoder<'static, Vec<u8>>),
}

impl Coder {
    fn new(encoding: Encoding) -> std::io::Result<Self> {
        Ok(match encoding {
            Encoding::Gzip => Self::Gzip(gzip()),
            Encoding::Brotli => Self::Brotli(Box::new(brotli_writer(BROTLI_BUFFER_BYTES))),
            Encoding::Zstd => Self::Zstd(zstd_encoder()?),
        })
    }

    /// Takes bytes; what comes out of it, if anything does yet.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        self.writer().write_all(bytes)?;
        Ok(self.take())
    }

    /// Brings out everything that was pushed.
    pub(crate) fn flush(&mut self) -> std::io::Result<Vec<u8>> {
        self.writer().flush()?;
        Ok(self.take())
    }

    /// Ends the coding; what was left.
    pub(crate) fn finish(self) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Gzip(encoder) => encoder.finish(),
            Self::Brotli(encoder) => Ok(encoder.into_inner()),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Gzip(encoder) => encoder,
            Self::Brotli(encoder) => encoder,
            Self::Zstd(encoder) => encoder,
        }
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(match self {
            Self::Gzip(encoder) => encoder.get_mut(),
            Self::Brotli(encoder) => encoder.get_mut(),
            Self::Zstd(encoder) => encoder.get_mut(),
        })
    }
}

fn may_be_encoded(encode: &Encode, answer: &Answer, length: Option<u64>) -> bool {
    let long_enough = length.is_none_or(|length| length >= encode.minimum_length);
    let media_type = answer.fields.get("Content-Type").unwrap_or_default().to_ascii_lowercase();
    let listed = encode.types.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => media_type.starts_with(prefix.as_bytes()),
        None => media_type == pattern.as_bytes(),
    });
    let untouched = answer.fields.get("Content-Encoding").is_none()
        // RFC 9110 section 14.4: parts are parts of one coding.
        && answer.fields.get("Content-Range").is_none()
        // RFC 9111 section 5.2.2.6
        && !answer.fields.get("Cache-Control").is_some_and(|value| lists(value, b"no-transform"));
    long_enough && listed && untouched
}

/// The bytes are others now, so a strong tag would lie (RFC 9110 section 8.8.1).
fn weaken_etag(answer: &mut Answer) {
    if let Some(etag) = answer.fields.get("ETag")
        && !etag.starts_with(b"W/")
    {
        let weak = [b"W/", etag].concat();
        answer.fields.set("ETag", &weak);
    }
}

fn lists(value: &[u8], member: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|own| own.trim_ascii().eq_ignore_ascii_case(member))
}

fn add_vary(answer: &mut Answer) {
    let says_so = answer.fields.get("Vary").is_some_and(|vary| {
        let lower = vary.to_ascii_lowercase();
        lower.windows(15).any(|window| window == b"accept-encoding")
    });
    if !says_so {
        answer.fields.add("Vary", b"Accept-Encoding");
    }
}

/// Bytes that brotli gathers before it compresses them.
const BROTLI_BUFFER_BYTES: usize = 16 * 1024;

/// Compresses a whole body.
fn compress(body: &[u8], encoding: Encoding) -> std::io::Result<Vec<u8>> {
    let mut coder = match encoding {
        Encoding::Brotli => Coder::Brotli(Box::new(brotli_writer(body.len().max(1)))),
        encoding => Coder::new(encoding)?,
    };
    coder.writer().write_all(body)?;
    coder.finish()
}

// Quick levels: the body is used once.

fn gzip() -> flate2::write::GzEncoder<Vec<u8>> {
    const LEVEL: u32 = 5;
    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(LEVEL))
}

fn brotli_writer(buffer_bytes: usize) -> brotli::CompressorWriter<Vec<u8>> {
    const QUALITY: u32 = 4;
    const WINDOW_LOG: u32 = 18;
    brotli::CompressorWriter::new(Vec::new(), buffer_bytes, QUALITY, WINDOW_LOG)
}

fn zstd_encoder() -> std::io::Result<zstd::Encoder<'static, Vec<u8>>> {
    const LEVEL: i32 = 3;
    let mut encoder = zstd::Encoder::new(Vec::new(), LEVEL)?;
    encoder.window_log(ZSTD_WINDOW_LOG_MAX)?;
    Ok(encoder)
}
