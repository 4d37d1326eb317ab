//! `encode` for bodies that are made while a request runs: small ones are compressed on the spot, those that
//! come piece by piece as they come.
//!
//! Files in memory bring their compressed forms along (`files/`). Files streamed from disk are sent as
//! they are.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use onehop_config::checked::{Encode, Encoding};
use onehop_files::accept_encoding::Accepted;
use onehop_files::conditional;
use onehop_files::content_type::is_listed;
use onehop_files::store::variant::coding_name;
use onehop_http1::Method;
use onehop_message::response::{Body, Response, media_type};
use onehop_metrics::Handler;

use crate::limits::{
    BROTLI_CODER_BYTES, CODERS_BYTES_MAX, COMPRESSED_ON_THE_SPOT_BYTES_MAX, GZIP_CODER_BYTES,
    ZSTD_CODER_BYTES, ZSTD_CODER_WINDOW_BYTES,
};
use crate::request::context::RequestContext;
use crate::request::core::Padded;

/// Compresses the body of an answer where client, configuration and answer allow it. One that has no body says of it what
/// it would say with one.
pub(crate) fn apply(context: &RequestContext<'_>, answer: &mut Response) {
    match &answer.body {
        Body::Bytes(body) => {
            let length = body.len();
            if length <= COMPRESSED_ON_THE_SPOT_BYTES_MAX {
                compress_body(context, answer, length as u64);
            }
        }
        Body::Empty | Body::Withheld(_) if is_of_others(context) => without_body(context, answer),
        Body::Empty | Body::Withheld(_) | Body::Stored(_) | Body::Pieces(_) | Body::Disk(_) => {}
    }
}

fn compress_body(context: &RequestContext<'_>, answer: &mut Response, length: u64) {
    let Some(encoding) = choose(context, answer, Some(length)) else { return };
    let Body::Bytes(body) = &answer.body else { return };
    let Ok(compressed) = compress(body, encoding) else { return };
    announce(encoding, answer);
    answer.body = Body::Bytes(compressed);
}

/// Files bring their own forms, tags and `Vary` along.
fn is_of_others(context: &RequestContext<'_>) -> bool {
    matches!(context.handler, Handler::App | Handler::Proxy)
}

/// What an answer without a body says of the coding that it would have with one: HEAD what GET would (RFC 9110 section
/// 9.3.2), 304 what 200 would (section 15.4.5).
fn without_body(context: &RequestContext<'_>, answer: &mut Response) {
    if answer.status == 304 {
        let has_plain_copy = || {
            let etag = answer.fields.get("ETag").unwrap_or_default();
            conditional::names_as_strong(context.request.head, etag)
        };
        // The type is rarely there. A client whose copy has the tag as the application wrote it got that without a coding.
        let keeps_tag = has_plain_copy();
        if choose(context, answer, None).is_some() && !keeps_tag {
            change_fields(answer);
        }
    } else if let (Method::Head, Body::Withheld(length)) = (context.request.head.method(), &answer.body) {
        let length = *length;
        if let Some(encoding) = choose(context, answer, length) {
            announce(encoding, answer);
            answer.body = Body::Withheld(None);
        }
    }
}

/// What becomes of a body that comes piece by piece.
#[expect(
    clippy::large_enum_variant,
    reason = "it is moved once; a box would cost each response an allocation"
)]
pub(crate) enum InPieces {
    /// It is sent as it is.
    Plain,
    /// There is none, but with one it would be encoded, and its length would not be known.
    Announced,
    /// It is encoded as it comes.
    Encoded(Coder),
}

/// The same for a body that will come piece by piece; `length` where it is known. The answer's fields say so
/// from now on, and its length is not known any more. Where `room` has none for a compressor, the body is sent as it is.
pub(crate) fn in_pieces(
    context: &RequestContext<'_>,
    answer: &mut Response,
    length: Option<u64>,
    room: &Arc<CoderRoom>,
) -> InPieces {
    // Events wait for nothing, least of all for more of them.
    if answer.is_event_stream() || matches!(answer.status, 100..200 | 204 | 304) {
        return InPieces::Plain;
    }
    let Some(encoding) = choose(context, answer, length) else { return InPieces::Plain };
    if context.request.head.method() == Method::Head {
        announce(encoding, answer);
        return InPieces::Announced;
    }
    let Some(coder) = Coder::new(encoding, length, room) else { return InPieces::Plain };
    announce(encoding, answer);
    InPieces::Encoded(coder)
}

/// The coding, where there is to be one; the answer says from now on that there could be.
fn choose(context: &RequestContext<'_>, answer: &mut Response, length: Option<u64>) -> Option<Encoding> {
    let encode = context.encode?;
    let is_partial = is_partial(answer);
    let is_short = !is_partial && length.is_some_and(|length| length < encode.minimum_length);
    if is_short || !may_be_encoded(encode, answer) {
        return None;
    }
    // A part as well: the whole would have it (RFC 9110 section 15.3.7).
    add_vary(answer);
    if is_partial {
        return None;
    }
    let accepted = Accepted::parse(context.request.head.get_all(onehop_http1::Known::AcceptEncoding));
    accepted.choose(encode.encodings.iter().copied())
}

fn announce(encoding: Encoding, answer: &mut Response) {
    answer.fields.add("Content-Encoding", coding_name(encoding).as_bytes());
    change_fields(answer);
}

/// What an answer says of its own bytes does not hold of those that are sent: a strong tag (RFC 9110 section 8.8.1), and
/// that ranges of them can be had (section 14.3).
fn change_fields(answer: &mut Response) {
    answer.fields.remove("Accept-Ranges");
    if let Some(etag) = answer.fields.get("ETag")
        && !etag.starts_with(b"W/")
    {
        let weak = [b"W/", etag].concat();
        answer.fields.set("ETag", &weak);
    }
}

/// A body that is compressed as it comes.
pub(crate) struct Coder {
    encoder: Encoder,
    /// Counted while it lives.
    _held: HeldByCoder,
}

/// A compressor.
enum Encoder {
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    Zstd(zstd::Encoder<'static, Vec<u8>>),
}

impl Coder {
    /// One for a body of so many bytes, if that is known. `None` where there is no room for it, or the system has no
    /// memory.
    pub(crate) fn new(encoding: Encoding, length: Option<u64>, room: &Arc<CoderRoom>) -> Option<Self> {
        let _held = room.take(coder_bytes(encoding, length))?;
        let encoder = Encoder::new(encoding, BROTLI_BUFFER_BYTES, length).ok()?;
        Some(Self { encoder, _held })
    }

    /// Takes bytes; what comes out of it, if anything does yet.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        self.encoder.writer().write_all(bytes).map_err(failed)?;
        Ok(self.encoder.take())
    }

    /// Brings out everything that was pushed.
    pub(crate) fn flush(&mut self) -> std::io::Result<Vec<u8>> {
        self.encoder.writer().flush().map_err(failed)?;
        Ok(self.encoder.take())
    }

    /// Ends the coding; what was left.
    pub(crate) fn finish(self) -> std::io::Result<Vec<u8>> {
        self.encoder.finish().map_err(failed)
    }
}

/// An error by which a compressor's failure is known among those of the client's socket.
fn failed(error: std::io::Error) -> std::io::Error {
    std::io::Error::new(FAILURE, error)
}

/// The kind of every compressor's failure. No socket's error is of this kind.
pub(crate) const FAILURE: std::io::ErrorKind = std::io::ErrorKind::InvalidData;

impl Encoder {
    fn new(encoding: Encoding, brotli_buffer_bytes: usize, length: Option<u64>) -> std::io::Result<Self> {
        Ok(match encoding {
            Encoding::Gzip => Self::Gzip(gzip()),
            Encoding::Brotli => Self::Brotli(Box::new(brotli_writer(brotli_buffer_bytes))),
            Encoding::Zstd => Self::Zstd(zstd_encoder(length)?),
        })
    }

    fn finish(self) -> std::io::Result<Vec<u8>> {
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

/// What the compressors of bodies on their way hold, of all cores, and what they may hold.
pub(crate) struct CoderRoom {
    held: Padded<AtomicU64>,
    most: AtomicU64,
}

impl Default for CoderRoom {
    fn default() -> Self {
        Self { held: Padded(AtomicU64::new(0)), most: AtomicU64::new(CODERS_BYTES_MAX) }
    }
}

impl CoderRoom {
    /// From now on they may hold so much; those that are there stay.
    pub(crate) fn set_most(&self, bytes: u64) {
        self.most.store(bytes, Ordering::Relaxed);
    }

    fn take(self: &Arc<Self>, bytes: u64) -> Option<HeldByCoder> {
        let held = HeldByCoder { room: Arc::clone(self), bytes };
        let before = self.held.0.fetch_add(bytes, Ordering::Relaxed);
        // Dropped, it is given back.
        (before.saturating_add(bytes) <= self.most.load(Ordering::Relaxed)).then_some(held)
    }
}

/// The share of one compressor.
struct HeldByCoder {
    room: Arc<CoderRoom>,
    bytes: u64,
}

impl Drop for HeldByCoder {
    fn drop(&mut self) {
        self.room.held.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Bytes that a compressor takes.
fn coder_bytes(encoding: Encoding, length: Option<u64>) -> u64 {
    match encoding {
        Encoding::Gzip => GZIP_CODER_BYTES,
        Encoding::Brotli => BROTLI_CODER_BYTES,
        // A body that is shorter than the window needs no more of it.
        Encoding::Zstd => {
            ZSTD_CODER_BYTES + length.unwrap_or(ZSTD_CODER_WINDOW_BYTES).min(ZSTD_CODER_WINDOW_BYTES)
        }
    }
}

/// Whether answers of this kind are encoded, as far as it shows.
fn may_be_encoded(encode: &Encode, answer: &Response) -> bool {
    let listed = match answer.fields.get("Content-Type").map(media_type) {
        // That of several parts is not that of the whole.
        Some(own) if is_partial(answer) && own.starts_with(b"multipart/") => true,
        Some(own) => is_listed(&encode.types, &own),
        None => answer.status == 304 || is_partial(answer),
    };
    listed
        && answer.fields.get("Content-Encoding").is_none()
        // RFC 9111 section 5.2.2.6
        && !answer.fields.get("Cache-Control").is_some_and(|value| lists(value, b"no-transform"))
}

/// RFC 9110 section 14.4: parts are parts of one coding.
fn is_partial(answer: &Response) -> bool {
    answer.status == 206 || answer.fields.get("Content-Range").is_some()
}

fn lists(value: &[u8], member: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|own| own.trim_ascii().eq_ignore_ascii_case(member))
}

fn add_vary(answer: &mut Response) {
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
    let mut encoder = Encoder::new(encoding, body.len().max(1), Some(body.len() as u64))?;
    encoder.writer().write_all(body)?;
    encoder.finish()
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

/// The window is the level's own, which is smaller for a body that is known to be short.
fn zstd_encoder(length: Option<u64>) -> std::io::Result<zstd::Encoder<'static, Vec<u8>>> {
    const LEVEL: i32 = 3;
    let mut encoder = zstd::Encoder::new(Vec::new(), LEVEL)?;
    encoder.set_pledged_src_size(length)?;
    Ok(encoder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressors_take_no_more_than_their_room_and_give_it_back() {
        let room = Arc::new(CoderRoom::default());
        let one = coder_bytes(Encoding::Zstd, None);
        room.set_most(2 * one);
        let coder = || Coder::new(Encoding::Zstd, None, &room);
        let (first, second) = (coder(), coder());
        assert!(first.is_some() && second.is_some());
        assert!(coder().is_none());
        drop(first);
        assert!(coder().is_some());
        let third = coder();
        assert!(third.is_some() && coder().is_none());
        drop((second, third));
        assert_eq!(room.held.0.load(Ordering::Relaxed), 0);
    }

    /// RFC 8878 section 3.1.1.1.2: the window of a frame.
    fn zstd_window(frame: &[u8]) -> u64 {
        assert_eq!(frame[..4], [0x28, 0xb5, 0x2f, 0xfd]);
        let is_single_segment = frame[4] & 0x20 != 0;
        assert!(!is_single_segment);
        let (exponent, mantissa) = (u64::from(frame[5] >> 3), u64::from(frame[5] & 7));
        let base = 1 << (10 + exponent);
        base + base / 8 * mantissa
    }

    #[test]
    fn a_zstd_body_has_the_window_of_its_level() {
        let room = Arc::new(CoderRoom::default());
        let mut coder = Coder::new(Encoding::Zstd, None, &room).unwrap();
        let mut coded = coder.push(&b"a line of text\n".repeat(1 << 19)).unwrap();
        coded.extend(coder.finish().unwrap());
        assert_eq!(zstd_window(&coded), ZSTD_CODER_WINDOW_BYTES);
        assert_eq!(zstd::decode_all(&*coded).unwrap().len(), 15 << 19);
    }
}
