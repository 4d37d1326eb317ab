//! One server connection, request after request: bytes in, answers out.
//!
//! Owns the order of things on a connection: a head, its body, one answer, and whether another request may
//! follow. Knows no socket and no clock. It never reads a head while anything of the request before is
//! open, since that is how a body becomes a request.
//!
//! A client that closes its sending side after a whole request is still answered, then closed
//! ([`ServerCodec::at_eof`]); one that closes inside a head or body gets no answer.

use crate::body::BodyReader;
use crate::limits::{EMPTY_LINES_MAX, Limits};
use crate::scan::{Bounds, Scan};
use crate::send::{self, BodyWriter, Kept};
use crate::{BodyLength, BodyRead, Known, Method, Refusal, RequestHead, Version, framing, target, tokenise};

/// The head of an answer. `fields` are whole lines, `Name: value` and CRLF each, already checked; they hold
/// none of Content-Length, Transfer-Encoding, Connection and Keep-Alive, which are the codec's to decide.
#[derive(Debug, Clone, Copy)]
pub struct AnswerHead<'a> {
    /// Three digits, final (200 and above) or 101.
    pub status: u16,
    /// Field lines.
    pub fields: &'a [u8],
    /// The Date line with its CRLF, or nothing.
    pub date: &'a [u8],
    /// `None` for an empty body; `Chunked` for one of unknown length, which HTTP/1.0 gets until the close.
    pub body: BodyLength,
    /// The connection becomes a tunnel after this head: 101, or success for CONNECT. `fields` then name the
    /// protocol in `Upgrade`; `Connection: upgrade` is added for 101.
    pub upgrade: bool,
}

/// What becomes of the connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Another request may follow.
    KeepAlive,
    /// It is closed.
    Close,
    /// Its bytes are no longer HTTP.
    Tunnel,
}

/// What the end of the client's bytes means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EofMeaning {
    /// Nothing is missing: between requests, or a whole request waits for its answer.
    Clean,
    /// The client left in the middle of a head or body ([`Refusal::UnexpectedEnd`]).
    Truncated,
}

/// The state of one connection. Holds no heap memory between requests.
#[derive(Debug)]
pub struct ServerCodec {
    limits: Limits,
    stage: Stage,
    scan: Scan,
    reader: BodyReader,
    request: Request,
    trailers: Vec<u8>,
    writer: BodyWriter,
    /// Whether we want to close after this answer.
    closing: bool,
}

/// A look at a body that is not read; see [`ServerCodec::body_end`].
#[derive(Debug)]
pub struct BodyEnd {
    reader: BodyReader,
    limits: Limits,
    trailers: Vec<u8>,
    /// Bytes that were looked at.
    seen: usize,
}

impl BodyEnd {
    /// Whether all of the body is in `input`, which begins where the body does and has only grown since the last call.
    /// A body that is none counts as whole: reading it tells.
    pub fn is_in(&mut self, input: &[u8]) -> bool {
        loop {
            let rest = input.get(self.seen..).unwrap_or_default();
            match self.reader.read(rest, &self.limits, &mut self.trailers) {
                Ok(BodyRead::NeedMore) => return false,
                Ok(BodyRead::Data { consumed, .. }) => self.seen += consumed,
                Ok(BodyRead::End { .. }) | Err(_) => return true,
            }
        }
    }
}

/// What the answer needs to know of the current request. Replaced as a whole, so that nothing of one request
/// is left for the next.
#[derive(Debug, Clone, Copy)]
struct Request {
    version: Version,
    /// As the head declared it.
    body: BodyLength,
    /// Whether the client asked to go on after this request.
    keep_alive: bool,
    expectation: Expectation,
    kind: Kind,
}

/// Methods whose answers are framed in a way of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ordinary,
    Head,
    Connect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// A head comes next.
    Idle,
    /// A request is there, its answer's head is not out.
    Asked,
    /// The answer's head is out, its body may not be.
    Answering,
    /// The answer's head is out and what follows is another protocol.
    Switching,
    /// Nothing is read or sent any more.
    Over,
}

/// `Expect: 100-continue` (RFC 9110 section 10.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expectation {
    None,
    /// The client waits, perhaps not for ever, before it sends its body.
    Waiting,
}

impl ServerCodec {
    /// A new connection.
    pub fn new(limits: Limits) -> Self {
        ServerCodec {
            limits,
            stage: Stage::Idle,
            scan: Scan::new(),
            reader: BodyReader::done(),
            request: Request::unread(Kind::Ordinary),
            trailers: Vec::new(),
            writer: BodyWriter::Nothing,
            closing: false,
        }
    }

    /// Reads a head from the beginning of `input`. `Ok(Some(consumed))` fills `head`; `Ok(None)` asks for
    /// more bytes after these same ones, never beyond [`Limits::input_bytes`]; `head` then holds nothing of use.
    /// Empty lines before it are skipped.
    ///
    /// # Errors
    /// The request's first fault. The codec is then ready to write one answer, after which it closes.
    pub fn read_head(&mut self, input: &[u8], head: &mut RequestHead) -> Result<Option<usize>, Refusal> {
        if self.stage != Stage::Idle {
            self.closing = true;
            return Err(Refusal::OutOfOrder);
        }
        let result = self.try_read_head(input, head);
        if let Err(refusal) = result {
            head.clear();
            self.stage = Stage::Asked;
            self.closing = true;
            self.reader = BodyReader::failed(refusal);
            // A refused HEAD request's answer has no body either.
            let rest = input.get(leading_empty_lines(input)..).unwrap_or_default();
            self.request =
                Request::unread(if rest.starts_with(b"HEAD ") { Kind::Head } else { Kind::Ordinary });
        }
        result
    }

    /// The length of the current request's body.
    pub fn request_body(&self) -> BodyLength {
        self.request.body
    }

    /// Whether the client waits for 100 before it sends its body: HTTP/1.1, with nothing of the body read.
    pub fn expects_continue(&self) -> bool {
        self.request.expectation == Expectation::Waiting && !self.reader.is_done()
    }

    /// The next piece of the request's body at the beginning of `input`.
    ///
    /// # Errors
    /// The body's first fault, again at each later call. The connection closes after the answer.
    pub fn read_body(&mut self, input: &[u8]) -> Result<BodyRead, Refusal> {
        let read = self.reader.read(input, &self.limits, &mut self.trailers);
        match read {
            Ok(BodyRead::NeedMore) => {}
            Ok(_) => self.request.expectation = Expectation::None,
            Err(_) => self.closing = true,
        }
        read
    }

    /// Looks for the end of the current request's body, which stays unread.
    pub fn body_end(&self) -> BodyEnd {
        BodyEnd { reader: self.reader.clone(), limits: self.limits, trailers: Vec::new(), seen: 0 }
    }

    /// Whether nothing of the request's body is left to read.
    pub fn body_is_read(&self) -> bool {
        self.reader.is_done()
    }

    /// The lines of the request's trailer section, once its body is read and until the answer is finished.
    pub fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    /// Tells a client that waits to send its body (100).
    pub fn write_continue(&mut self, out: &mut Vec<u8>) {
        if self.expects_continue() && self.stage == Stage::Asked {
            self.request.expectation = Expectation::None;
            send::status_line(out, 100);
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Sends an informational answer such as 103; nothing to HTTP/1.0, which knows none (RFC 9110
    /// section 15.2), and nothing once the final head is out.
    pub fn write_informational(&mut self, out: &mut Vec<u8>, status: u16, fields: &[u8]) {
        debug_assert!((102..200).contains(&status), "100 and 101 have methods of their own");
        if self.request.version == Version::Http11 && self.stage == Stage::Asked {
            send::status_line(out, status);
            out.extend_from_slice(fields);
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Sends the answer's head with the framing that follows from its body and from the request.
    pub fn write_head(&mut self, out: &mut Vec<u8>, answer: AnswerHead<'_>) {
        let in_order = matches!(self.stage, Stage::Asked | Stage::Idle);
        debug_assert!(in_order, "one final head for each request");
        if !in_order {
            // A second head would be read as another request's answer.
            self.closing = true;
            return;
        }
        debug_assert!(send::lines_are_good(answer.fields), "the codec's own fields, or no whole lines");
        if self.stage == Stage::Idle {
            // Before any request, as for one that never came (408) or had no room (503).
            self.closing = true;
            self.request = Request::unread(Kind::Ordinary);
        }
        out.reserve(answer.fields.len() + answer.date.len() + send::HEAD_ROOM);
        send::status_line(out, answer.status);
        out.extend_from_slice(answer.date);
        out.extend_from_slice(answer.fields);
        if answer.upgrade || (self.request.kind == Kind::Connect && (200..300).contains(&answer.status)) {
            self.switch(out, answer.status);
        } else {
            self.frame(out, &answer);
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Sends data of the answer's body. Data over a known length is dropped and ends the connection; data
    /// of an answer without body is dropped.
    pub fn write_data(&mut self, out: &mut Vec<u8>, data: &[u8]) {
        let kept = self.writer.data(out, data);
        self.keep(kept);
    }

    /// Announces `len` bytes of the body that the caller sends itself; in a chunked body they must be
    /// followed by [`ServerCodec::write_data_frame_end`].
    pub fn write_data_frame(&mut self, out: &mut Vec<u8>, len: u64) {
        let kept = self.writer.frame(out, len);
        self.keep(kept);
    }

    /// Closes what [`ServerCodec::write_data_frame`] opened.
    pub fn write_data_frame_end(&mut self, out: &mut Vec<u8>) {
        self.writer.frame_end(out);
    }

    /// Counts bytes of a body of known length that the caller sends itself.
    pub fn note_data_written_elsewhere(&mut self, len: u64) {
        debug_assert!(self.writer != BodyWriter::Chunked, "a chunk needs write_data_frame");
        let kept = self.writer.frame(&mut Vec::new(), len);
        self.keep(kept);
    }

    /// Ends the answer. A body that is shorter than promised, a request whose body was not read, and a
    /// request that was never answered all end the connection.
    pub fn finish(&mut self, out: &mut Vec<u8>, trailers: &[u8]) -> Next {
        let complete = self.writer.finish(out, trailers);
        self.trailers = Vec::new();
        let next = match self.stage {
            // RFC 9110 section 7.8: the new protocol begins after the request; bytes of an unread body
            // must not be taken for it.
            Stage::Switching if self.reader.is_done() => Next::Tunnel,
            // RFC 9112 section 9.3: an unread body would be read as the next request.
            Stage::Answering
                if complete && !self.closing && self.request.keep_alive && self.reader.is_done() =>
            {
                Next::KeepAlive
            }
            _ => Next::Close,
        };
        self.stage = if next == Next::KeepAlive { Stage::Idle } else { Stage::Over };
        next
    }

    /// Closes after this answer. `Connection: close` says so if the head is not out yet.
    pub fn close_after_answer(&mut self) {
        self.closing = true;
    }

    /// Whether the answer has a body: not for HEAD, 204, 304 and 1xx. Meaningful once its head is written.
    pub fn sends_body(&self) -> bool {
        self.writer != BodyWriter::Nothing
    }

    /// What it means that the client's bytes ended with `unread` of them left.
    pub fn at_eof(&self, unread: usize) -> EofMeaning {
        let whole = match self.stage {
            Stage::Idle => unread == 0,
            _ => self.reader.is_done(),
        };
        if whole { EofMeaning::Clean } else { EofMeaning::Truncated }
    }

    fn try_read_head(&mut self, input: &[u8], head: &mut RequestHead) -> Result<Option<usize>, Refusal> {
        let skipped = leading_empty_lines(input);
        let rest = input.get(skipped..).unwrap_or_default();
        // Most heads come whole: then one pass finds both the fields and the end.
        if self.scan.is_fresh()
            && !rest.is_empty()
            && let Some(length) = tokenise::request(rest, &self.limits, head)?
        {
            self.take_head(head)?;
            return Ok(Some(skipped + length));
        }
        let bounds = Bounds {
            section_bytes: self.limits.head_bytes,
            section_refusal: Refusal::HeadTooLarge,
            first_line_bytes: tokenise::request_line_bytes(&self.limits),
        };
        let found = self.scan.find_end(rest, bounds).map_err(|refusal| match refusal {
            // RFC 9112 section 3: what made the line too long was no target.
            Refusal::TargetTooLong if tokenise::begins_with_long_method(rest) => Refusal::MethodTooLong,
            refusal => refusal,
        });
        let Some(length) = found? else {
            return Ok(None);
        };
        let sent = rest.get(..length).unwrap_or_default();
        let known = tokenise::as_known_version(sent);
        let whole = known.as_deref().unwrap_or(sent);
        if tokenise::request(whole, &self.limits, head)?.is_none() {
            return Err(tokenise::request_fault(whole, &self.limits));
        }
        self.take_head(head)?;
        Ok(Some(skipped + length))
    }

    fn take_head(&mut self, head: &mut RequestHead) -> Result<(), Refusal> {
        self.scan = Scan::new();
        target::resolve(head)?;
        self.request = Request::of(head)?;
        self.reader = BodyReader::new(self.request.body);
        self.writer = BodyWriter::Nothing;
        self.stage = Stage::Asked;
        Ok(())
    }

    /// Framing and Connection of an answer that is followed by another protocol.
    fn switch(&mut self, out: &mut Vec<u8>, status: u16) {
        // RFC 9110 section 7.8; no length in either kind (sections 8.6 and 9.3.6).
        if status == 101 {
            out.extend_from_slice(b"Connection: upgrade\r\n");
        }
        self.writer = BodyWriter::Nothing;
        self.stage = Stage::Switching;
    }

    /// Framing (RFC 9112 section 6) and Connection (section 9.6) of an ordinary answer.
    fn frame(&mut self, out: &mut Vec<u8>, answer: &AnswerHead<'_>) {
        let bodiless = self.request.kind == Kind::Head || matches!(answer.status, 100..200 | 204 | 304);
        self.writer = BodyWriter::Nothing;
        match answer.body {
            // RFC 9110 section 8.6: never in 1xx and 204; in 304 only what 200 would have said.
            _ if matches!(answer.status, 100..200 | 204) => {}
            BodyLength::None if answer.status == 304 => {}
            BodyLength::None => send::content_length(out, 0),
            BodyLength::Known(length) => send::content_length(out, length),
            BodyLength::Chunked if bodiless => {}
            BodyLength::Chunked if self.request.version == Version::Http11 => {
                out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
            }
            BodyLength::Chunked => self.closing = true,
        }
        if !bodiless {
            self.writer = match answer.body {
                BodyLength::Chunked if self.request.version == Version::Http10 => BodyWriter::UntilClose,
                length => BodyWriter::new(length),
            };
        }
        // A client that was not told to continue may or may not send its body: what comes next is
        // ambiguous (RFC 9110 section 10.1.1).
        self.closing |= self.expects_continue();
        if self.closing || !self.request.keep_alive {
            out.extend_from_slice(b"Connection: close\r\n");
        } else if self.request.version == Version::Http10 {
            out.extend_from_slice(b"Connection: keep-alive\r\n");
        }
        self.stage = Stage::Answering;
    }

    fn keep(&mut self, kept: Kept) {
        debug_assert!(kept == Kept::Yes, "more data than the answer's length");
        self.closing |= kept == Kept::TooMuch;
    }
}

impl Request {
    fn of(head: &RequestHead) -> Result<Request, Refusal> {
        // RFC 9110 section 10.1.1: MUST be ignored in HTTP/1.0.
        let waits = head.version == Version::Http11 && head.fields.lists(Known::Expect, b"100-continue");
        Ok(Request {
            version: head.version,
            body: framing::declared_length(&head.fields, head.version, framing::Repeated::Refused)?,
            keep_alive: framing::keeps_alive(&head.fields, head.version)?,
            expectation: if waits { Expectation::Waiting } else { Expectation::None },
            kind: match head.method {
                Method::Head => Kind::Head,
                Method::Connect => Kind::Connect,
                _ => Kind::Ordinary,
            },
        })
    }

    /// A request that could not be read: as little is supposed of its client as of HTTP/1.0's.
    fn unread(kind: Kind) -> Request {
        Request {
            version: Version::Http10,
            body: BodyLength::None,
            keep_alive: false,
            expectation: Expectation::None,
            kind,
        }
    }
}

/// Bytes of the empty lines that `input` begins with, as far as they are skipped.
fn leading_empty_lines(input: &[u8]) -> usize {
    let lines = input.chunks_exact(2).take(EMPTY_LINES_MAX).take_while(|pair| *pair == b"\r\n").count();
    lines * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(head: &str) -> ServerCodec {
        let limits = Limits {
            head_bytes: 1024,
            target_bytes: 256,
            fields: 16,
            chunk_line_bytes: 64,
            trailer_bytes: 256,
        };
        let mut codec = ServerCodec::new(limits);
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{head}\r\n\r\n");
        assert_eq!(codec.read_head(head.as_bytes(), &mut RequestHead::new()), Ok(Some(head.len())));
        codec
    }

    #[test]
    fn the_end_of_a_body_is_seen_byte_by_byte_and_nothing_is_read() {
        for (head, body) in [
            ("Content-Length: 5", "hello"),
            ("Transfer-Encoding: chunked", "5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n"),
            ("Transfer-Encoding: chunked", "0\r\nX-Sum: 1\r\n\r\n"),
        ] {
            let mut codec = asked(head);
            let mut end = codec.body_end();
            for length in 0..body.len() {
                assert!(!end.is_in(&body.as_bytes()[..length]), "{body:?} {length}");
            }
            let more = format!("{body}GET ");
            assert!(end.is_in(more.as_bytes()), "{body:?}");
            assert!(!codec.body_is_read());
            let mut at = 0;
            while let Ok(BodyRead::Data { consumed, .. }) = codec.read_body(&more.as_bytes()[at..]) {
                at += consumed;
            }
            assert!(codec.body_is_read());
        }
    }

    #[test]
    fn what_is_no_body_and_a_request_without_one_are_whole() {
        assert!(asked("Accept: x").body_end().is_in(b""));
        assert!(asked("Transfer-Encoding: chunked").body_end().is_in(b"no size\r\n"));
    }
}
