//! Writes heads and frames bodies.
//!
//! Owns the bytes of status lines, lengths and chunks. Everything is appended to the caller's buffer; an
//! ordinary answer costs a few copies and no allocation. Never sends more than the length that was promised.

use crate::{BodyLength, Known, grammar};

/// Bytes that a head needs beside the caller's fields: the longest start line's own part, Content-Length,
/// Connection and the empty line. With it an answer's buffer grows once at most.
pub(crate) const HEAD_ROOM: usize = 128;

/// A body that is being sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyWriter {
    /// No body: data is dropped, as for HEAD.
    Nothing,
    /// This much is still owed.
    Known(u64),
    Chunked,
    /// A chunk's size line went out; its data is the caller's to send, in exactly that length.
    InChunk,
    UntilClose,
}

/// Whether what was promised and what was given agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Kept {
    Yes,
    /// More data than the promised length: the rest was not sent.
    TooMuch,
}

impl BodyWriter {
    /// The writer of a body of this length; `None` is an empty one.
    pub(crate) fn new(length: BodyLength) -> BodyWriter {
        match length {
            BodyLength::None => BodyWriter::Known(0),
            BodyLength::Known(length) => BodyWriter::Known(length),
            BodyLength::Chunked => BodyWriter::Chunked,
        }
    }

    /// Sends `data`, framed.
    pub(crate) fn data(&mut self, out: &mut Vec<u8>, data: &[u8]) -> Kept {
        match self {
            BodyWriter::Nothing => Kept::Yes,
            BodyWriter::UntilClose | BodyWriter::InChunk => {
                out.extend_from_slice(data);
                Kept::Yes
            }
            BodyWriter::Known(_) => {
                let allowed = self.count(data.len() as u64);
                let take = usize::try_from(allowed).unwrap_or(usize::MAX).min(data.len());
                out.extend_from_slice(data.get(..take).unwrap_or_default());
                if take == data.len() { Kept::Yes } else { Kept::TooMuch }
            }
            // RFC 9112 section 7.1: a chunk of size 0 would end the body.
            BodyWriter::Chunked if data.is_empty() => Kept::Yes,
            BodyWriter::Chunked => {
                chunk_line(out, data.len() as u64);
                out.extend_from_slice(data);
                out.extend_from_slice(b"\r\n");
                Kept::Yes
            }
        }
    }

    /// Announces `length` bytes that the caller sends from elsewhere.
    pub(crate) fn frame(&mut self, out: &mut Vec<u8>, length: u64) -> Kept {
        if *self == BodyWriter::Chunked && length > 0 {
            chunk_line(out, length);
            *self = BodyWriter::InChunk;
        }
        if self.count(length) == length { Kept::Yes } else { Kept::TooMuch }
    }

    /// Closes what [`BodyWriter::frame`] opened.
    pub(crate) fn frame_end(&mut self, out: &mut Vec<u8>) {
        if *self == BodyWriter::InChunk {
            out.extend_from_slice(b"\r\n");
            *self = BodyWriter::Chunked;
        }
    }

    /// Ends the body; `false` where less was given than promised.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>, trailers: &[u8]) -> bool {
        let kept = match self {
            BodyWriter::Nothing | BodyWriter::UntilClose => true,
            BodyWriter::Known(owed) => *owed == 0,
            BodyWriter::InChunk => false,
            BodyWriter::Chunked => {
                out.extend_from_slice(b"0\r\n");
                out.extend_from_slice(trailers);
                out.extend_from_slice(b"\r\n");
                true
            }
        };
        *self = BodyWriter::Nothing;
        kept
    }

    /// Counts against a known length; returns how much of `length` may be sent.
    fn count(&mut self, length: u64) -> u64 {
        let BodyWriter::Known(owed) = self else { return length };
        let allowed = length.min(*owed);
        *owed -= allowed;
        allowed
    }
}

/// Whether `lines` are whole field lines of a caller's own making, without those that the codec writes. For
/// assertions: a caller that breaks this has a mistake that no peer can cause.
pub(crate) fn lines_are_good(lines: &[u8]) -> bool {
    let Some(lines) = lines.strip_suffix(b"\r\n") else { return lines.is_empty() };
    lines.split(|byte| *byte == b'\n').all(|line| {
        grammar::field_line(line.strip_suffix(b"\r").unwrap_or(line)).is_ok_and(|(name, _)| {
            !matches!(
                Known::from_name(name),
                Some(Known::ContentLength | Known::TransferEncoding | Known::Connection | Known::KeepAlive)
            )
        })
    })
}

/// Appends a status line. RFC 9110 section 2.5: our own highest version, whatever the client's.
pub(crate) fn status_line(out: &mut Vec<u8>, status: u16) {
    if let Some(line) = known_status_line(status) {
        out.extend_from_slice(line);
        return;
    }
    // RFC 9112 section 4: three digits, and a space even without a reason.
    out.extend_from_slice(b"HTTP/1.1 ");
    let digit = |value: u16| b'0' + u8::try_from(value % 10).unwrap_or(0);
    out.extend_from_slice(&[digit(status / 100), digit(status / 10), digit(status)]);
    out.extend_from_slice(b" \r\n");
}

/// Appends `Content-Length: n`.
pub(crate) fn content_length(out: &mut Vec<u8>, length: u64) {
    const NAME: &[u8] = b"Content-Length: ";
    /// Digits of the largest number of 64 bits.
    const DIGITS: usize = 20;
    let mut digits = [b'0'; DIGITS];
    let mut left = length;
    let mut used = 0;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(left % 10).unwrap_or(0);
        used += 1;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(NAME);
    out.extend_from_slice(digits.get(DIGITS - used..).unwrap_or_default());
    out.extend_from_slice(b"\r\n");
}

fn chunk_line(out: &mut Vec<u8>, length: u64) {
    const DIGITS: usize = 16;
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut line = [b'0'; DIGITS];
    let mut left = length;
    let mut used = 0;
    for digit in line.iter_mut().rev() {
        *digit = HEX.get((left & 15) as usize).copied().unwrap_or(b'0');
        used += 1;
        left >>= 4;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(line.get(DIGITS - used..).unwrap_or_default());
    out.extend_from_slice(b"\r\n");
}

/// Writes the table of status lines, and that of their reasons.
macro_rules! status_lines {
    ($($status:literal $reason:literal,)+) => {
        fn known_status_line(status: u16) -> Option<&'static [u8]> {
            match status {
                $($status => Some(concat!("HTTP/1.1 ", $status, " ", $reason, "\r\n").as_bytes()),)+
                _ => None,
            }
        }

        /// What a status is called (RFC 9110 section 15, and the registry that it names); `None` for one that no
        /// status line of ours has a reason for.
        pub fn reason(status: u16) -> Option<&'static str> {
            match status {
                $($status => Some($reason),)+
                _ => None,
            }
        }
    };
}

status_lines! {
    100 "Continue",
    101 "Switching Protocols",
    103 "Early Hints",
    200 "OK",
    201 "Created",
    202 "Accepted",
    203 "Non-Authoritative Information",
    204 "No Content",
    205 "Reset Content",
    206 "Partial Content",
    300 "Multiple Choices",
    301 "Moved Permanently",
    302 "Found",
    303 "See Other",
    304 "Not Modified",
    307 "Temporary Redirect",
    308 "Permanent Redirect",
    400 "Bad Request",
    401 "Unauthorized",
    402 "Payment Required",
    403 "Forbidden",
    404 "Not Found",
    405 "Method Not Allowed",
    406 "Not Acceptable",
    407 "Proxy Authentication Required",
    408 "Request Timeout",
    409 "Conflict",
    410 "Gone",
    411 "Length Required",
    412 "Precondition Failed",
    413 "Content Too Large",
    414 "URI Too Long",
    415 "Unsupported Media Type",
    416 "Range Not Satisfiable",
    417 "Expectation Failed",
    421 "Misdirected Request",
    422 "Unprocessable Content",
    425 "Too Early",
    426 "Upgrade Required",
    428 "Precondition Required",
    429 "Too Many Requests",
    431 "Request Header Fields Too Large",
    451 "Unavailable For Legal Reasons",
    500 "Internal Server Error",
    501 "Not Implemented",
    502 "Bad Gateway",
    503 "Service Unavailable",
    504 "Gateway Timeout",
    505 "HTTP Version Not Supported",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_promised_length_is_sent() {
        let mut writer = BodyWriter::new(BodyLength::Known(3));
        let mut out = Vec::new();
        assert_eq!(writer.data(&mut out, b"ab"), Kept::Yes);
        assert_eq!(writer.data(&mut out, b"cd"), Kept::TooMuch);
        assert_eq!(writer.frame(&mut out, 1), Kept::TooMuch);
        assert_eq!(out, b"abc");
    }

    #[test]
    fn lengths_are_written_in_full() {
        for length in [0, 9, 10, 788, 102_400, u64::MAX] {
            let mut out = Vec::new();
            content_length(&mut out, length);
            assert_eq!(out, format!("Content-Length: {length}\r\n").as_bytes());
            out.clear();
            chunk_line(&mut out, length);
            assert_eq!(out, format!("{length:x}\r\n").as_bytes());
        }
    }
}
