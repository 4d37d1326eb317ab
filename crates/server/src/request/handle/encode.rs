//! `encode` for bodies that are made while a request runs: small ones are compressed on the spot.
//!
//! Files in memory bring their compressed forms along (`files/`). Files streamed from disk are sent as
//! they are.

use std::io::Write;

use onehop_config::checked::{Encode, Encoding};

use super::files::accept_encoding::Accepted;
use super::files::form::coding_name;
use crate::limits::{COMPRESSED_ON_THE_SPOT_BYTES_MAX, ZSTD_WINDOW_LOG_MAX};
use crate::request::answer::{Answer, Body};
use crate::request::trip::Trip;

/// Compresses the body of an answer where client, configuration and answer allow it.
pub(crate) fn apply(trip: &Trip<'_>, answer: &mut Answer) {
    let (Some(encode), Body::Bytes(body)) = (trip.encode, &answer.body) else { return };
    let length = body.len();
    if !may_be_encoded(encode, answer, length) {
        return;
    }
    add_vary(answer);
    let accepted = trip.head.get_all(onehop_http1::Known::AcceptEncoding);
    let accepted = Accepted::parse(accepted);
    let Some(encoding) = accepted.choose(encode.encodings.iter().copied()) else { return };
    let Body::Bytes(body) = &answer.body else { return };
    let Ok(compressed) = compress(body, encoding) else { return };
    answer.fields.add("Content-Encoding", coding_name(encoding).as_bytes());
    answer.body = Body::Bytes(compressed);
}

fn may_be_encoded(encode: &Encode, answer: &Answer, length: usize) -> bool {
    let long_enough = length as u64 >= encode.minimum_length;
    let media_type = answer.fields.get("Content-Type").unwrap_or_default().to_ascii_lowercase();
    let listed = encode.types.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => media_type.starts_with(prefix.as_bytes()),
        None => media_type == pattern.as_bytes(),
    });
    let untouched = answer.fields.get("Content-Encoding").is_none();
    long_enough && listed && untouched && length <= COMPRESSED_ON_THE_SPOT_BYTES_MAX
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

/// Quick levels: the body is used once.
fn compress(body: &[u8], encoding: Encoding) -> std::io::Result<Vec<u8>> {
    const BROTLI_QUALITY: u32 = 4;
    const GZIP_LEVEL: u32 = 5;
    const ZSTD_LEVEL: i32 = 3;
    match encoding {
        Encoding::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL));
            encoder.write_all(body)?;
            encoder.finish()
        }
        Encoding::Brotli => {
            let mut encoder =
                brotli::CompressorWriter::new(Vec::new(), body.len().max(1), BROTLI_QUALITY, 18);
            encoder.write_all(body)?;
            Ok(encoder.into_inner())
        }
        Encoding::Zstd => {
            let mut encoder = zstd::Encoder::new(Vec::new(), ZSTD_LEVEL)?;
            encoder.window_log(ZSTD_WINDOW_LOG_MAX)?;
            encoder.write_all(body)?;
            encoder.finish()
        }
    }
}
