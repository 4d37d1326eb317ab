//! Reads a body: how many of the next bytes are data, and where the body ends.
//!
//! Owns RFC 9112 section 7.1 and the end of fixed-length bodies. Copies no data: it says where data stands
//! in the caller's buffer. A lone LF is refused here always; servers that took one in a chunk-size line
//! have been led to see a request where their proxy saw data.

use core::ops::Range;

use crate::limits::Limits;
use crate::scan::{Bounds, Scan};
use crate::{Known, Refusal, grammar, tokenise};

/// Hexadecimal digits of a chunk size: what 64 bits need, so that leading zeros are bounded too.
const CHUNK_SIZE_DIGITS_MAX: usize = 16;

/// Bytes of chunk extensions in one body. They mean nothing to us; without a bound a body of single bytes
/// could carry a hundred times as many of them.
const CHUNK_EXTENSION_BYTES_MAX: usize = 16 * 1024;

/// How long a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLength {
    /// There is no body, or an empty one.
    None,
    /// This many bytes.
    Known(u64),
    /// Known at the end only: chunked in HTTP/1.1.
    Chunked,
}

/// What stands at the beginning of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyRead {
    /// Nothing that could be used yet. The next call's input must begin with the same bytes; a buffer of
    /// [`Limits::input_bytes`] is never too small for it.
    NeedMore,
    /// Data, never empty.
    Data {
        /// Where in the input the data stands.
        at: Range<usize>,
        /// Bytes of the input that are done with, framing included.
        consumed: usize,
    },
    /// The body is over.
    End {
        /// Bytes of the input that belonged to the body's end.
        consumed: usize,
    },
}

/// A body that is being read.
#[derive(Debug, Clone)]
pub(crate) struct BodyReader {
    state: State,
    /// How far a trailer section at the beginning of the input was looked through.
    scan: Scan,
    /// Bytes of chunk extensions so far.
    extensions: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Done,
    Known(u64),
    UntilClose,
    /// A chunk-size line comes next.
    FirstChunk,
    /// This much of a chunk's data comes next.
    ChunkData(u64),
    /// The CRLF after a chunk's data comes next, then a chunk-size line.
    NextChunk,
    Failed(Refusal),
}

impl BodyReader {
    /// No body.
    pub(crate) const fn done() -> BodyReader {
        BodyReader::of(State::Done)
    }

    pub(crate) fn new(length: BodyLength) -> BodyReader {
        BodyReader::of(match length {
            BodyLength::None | BodyLength::Known(0) => State::Done,
            BodyLength::Known(length) => State::Known(length),
            BodyLength::Chunked => State::FirstChunk,
        })
    }

    /// A body that ends with its connection (RFC 9112 section 6.3 item 8).
    pub(crate) const fn until_close() -> BodyReader {
        BodyReader::of(State::UntilClose)
    }

    /// A body that cannot be read, for this reason.
    pub(crate) const fn failed(refusal: Refusal) -> BodyReader {
        BodyReader::of(State::Failed(refusal))
    }

    const fn of(state: State) -> BodyReader {
        BodyReader { state, scan: Scan::new(), extensions: 0 }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    pub(crate) fn ends_with_connection(&self) -> bool {
        self.state == State::UntilClose
    }

    /// The next piece. A trailer section's lines are left in `trailers`.
    pub(crate) fn read(
        &mut self,
        input: &[u8],
        limits: &Limits,
        trailers: &mut Vec<u8>,
    ) -> Result<BodyRead, Refusal> {
        let read = match self.state {
            State::Done => Ok(BodyRead::End { consumed: 0 }),
            State::Failed(refusal) => Err(refusal),
            State::UntilClose if input.is_empty() => Ok(BodyRead::NeedMore),
            State::UntilClose => Ok(BodyRead::Data { at: 0..input.len(), consumed: input.len() }),
            State::Known(left) => {
                let (read, left) = data(input, 0, left);
                self.state = if left == 0 { State::Done } else { State::Known(left) };
                Ok(read)
            }
            State::ChunkData(left) => {
                let (read, left) = data(input, 0, left);
                self.state = if left == 0 { State::NextChunk } else { State::ChunkData(left) };
                Ok(read)
            }
            State::FirstChunk | State::NextChunk => self.read_chunk(input, limits, trailers),
        };
        if let Err(refusal) = read {
            self.state = State::Failed(refusal);
        }
        read
    }

    /// A chunk's beginning with at least one byte of its data, or the last chunk with its trailers: nothing
    /// is consumed before that much is there.
    fn read_chunk(
        &mut self,
        input: &[u8],
        limits: &Limits,
        trailers: &mut Vec<u8>,
    ) -> Result<BodyRead, Refusal> {
        let mut at = 0;
        if self.state == State::NextChunk {
            match input {
                [b'\r', b'\n', ..] => at = 2,
                [] | [b'\r'] => return Ok(BodyRead::NeedMore),
                _ => return Err(Refusal::BadChunkEnd),
            }
        }
        let Some(line) = chunk_line(input.get(at..).unwrap_or_default(), limits)? else {
            return Ok(BodyRead::NeedMore);
        };
        at += line.len() + 2;
        let (size, extensions) = chunk_size(line)?;
        let extensions = self.extensions.saturating_add(extensions);
        if extensions > CHUNK_EXTENSION_BYTES_MAX {
            return Err(Refusal::ChunkExtensionsTooLarge);
        }
        if size == 0 {
            let rest = input.get(at..).unwrap_or_default();
            let Some(length) = self.read_trailers(rest, limits, trailers)? else {
                return Ok(BodyRead::NeedMore);
            };
            self.state = State::Done;
            return Ok(BodyRead::End { consumed: at + length });
        }
        if at >= input.len() {
            return Ok(BodyRead::NeedMore);
        }
        self.extensions = extensions;
        let (read, left) = data(input, at, size);
        self.state = if left == 0 { State::NextChunk } else { State::ChunkData(left) };
        Ok(read)
    }

    fn read_trailers(
        &mut self,
        input: &[u8],
        limits: &Limits,
        trailers: &mut Vec<u8>,
    ) -> Result<Option<usize>, Refusal> {
        let bounds = Bounds {
            section_bytes: limits.trailer_bytes,
            section_refusal: Refusal::TrailersTooLarge,
            first_line_bytes: usize::MAX,
        };
        let Some(length) = self.scan.find_end(input, bounds)? else {
            return Ok(None);
        };
        let section = input.get(..length).unwrap_or_default();
        if let Some(refusal) = tokenise::field_fault(tokenise::head_lines(section), limits) {
            return Err(refusal);
        }
        let names = tokenise::head_lines(section).filter_map(|line| grammar::field_line(line).ok());
        if names.filter_map(|(name, _)| Known::from_name(name)).any(is_forbidden_trailer) {
            return Err(Refusal::ForbiddenTrailer);
        }
        trailers.extend_from_slice(section.get(..length.saturating_sub(2)).unwrap_or_default());
        Ok(Some(length))
    }
}

/// Data at `at` in `input`, at most `left` bytes, and what is left after it.
fn data(input: &[u8], at: usize, left: u64) -> (BodyRead, u64) {
    let here = input.len().saturating_sub(at);
    let take = usize::try_from(left).unwrap_or(usize::MAX).min(here);
    if take == 0 {
        return (BodyRead::NeedMore, left);
    }
    (BodyRead::Data { at: at..at + take, consumed: at + take }, left.saturating_sub(take as u64))
}

/// The chunk-size line at the beginning of `input`, without its CRLF.
fn chunk_line<'a>(input: &'a [u8], limits: &Limits) -> Result<Option<&'a [u8]>, Refusal> {
    let seen = input.get(..limits.chunk_line_bytes).unwrap_or(input);
    let Some(end) = seen.iter().position(|byte| *byte == b'\n') else {
        let over = input.len() >= limits.chunk_line_bytes;
        return if over { Err(Refusal::ChunkLineTooLong) } else { Ok(None) };
    };
    match seen.get(..end) {
        Some([line @ .., b'\r']) if line.contains(&b'\r') => Err(Refusal::BareCr),
        Some([line @ .., b'\r']) => Ok(Some(line)),
        _ => Err(Refusal::BareLf),
    }
}

/// chunk-size and the length of its extensions (RFC 9112 section 7.1).
fn chunk_size(line: &[u8]) -> Result<(u64, usize), Refusal> {
    let digits = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
    if digits == 0 || digits > CHUNK_SIZE_DIGITS_MAX {
        return Err(Refusal::BadChunkSize);
    }
    let (number, extensions) = line.split_at(digits);
    if !extensions.iter().all(|byte| grammar::is_value_byte(*byte)) || !extensions_are_good(extensions) {
        // White space alone after a size is refused with the rest: only an extension may have it before.
        let none = !extensions.contains(&b';');
        return Err(if none { Refusal::BadChunkSize } else { Refusal::BadChunkExtension });
    }
    let size = core::str::from_utf8(number).ok().and_then(|number| u64::from_str_radix(number, 16).ok());
    Ok((size.ok_or(Refusal::BadChunkSize)?, extensions.len()))
}

/// chunk-ext = *( BWS ";" BWS name [ BWS "=" BWS value ] ) (RFC 9112 section 7.1.1).
fn extensions_are_good(mut rest: &[u8]) -> bool {
    while !rest.is_empty() {
        let Some((b';', after)) = skip_ows(rest).split_first() else { return false };
        let Some(after) = skip_token(skip_ows(after)) else { return false };
        rest = after;
        if let Some((b'=', after)) = skip_ows(rest).split_first() {
            let Some(after) = skip_value(skip_ows(after)) else { return false };
            rest = after;
        }
    }
    true
}

fn skip_ows(bytes: &[u8]) -> &[u8] {
    let from = bytes.iter().position(|byte| !grammar::is_ows(*byte)).unwrap_or(bytes.len());
    bytes.get(from..).unwrap_or_default()
}

fn skip_token(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|byte| !grammar::is_token_byte(*byte)).unwrap_or(bytes.len());
    if end == 0 { None } else { bytes.get(end..) }
}

/// Skips a token or a quoted string (RFC 9110 section 5.6.4).
fn skip_value(bytes: &[u8]) -> Option<&[u8]> {
    let Some((b'"', mut rest)) = bytes.split_first() else { return skip_token(bytes) };
    loop {
        match rest {
            [b'"', after @ ..] => return Some(after),
            [b'\\', _, after @ ..] => rest = after,
            [_, after @ ..] => rest = after,
            [] => return None,
        }
    }
}

/// Fields that frame, route or manage the connection cannot come after the body that they would have framed
/// (RFC 9110 section 6.5.1).
fn is_forbidden_trailer(known: Known) -> bool {
    matches!(
        known,
        Known::ContentLength
            | Known::TransferEncoding
            | Known::Host
            | Known::Connection
            | Known::KeepAlive
            | Known::Te
            | Known::Trailer
            | Known::Upgrade
    )
}
