//! One connection to an upstream, request after request: the proxy's side.
//!
//! Owns the order of things on such a connection and the proof that it may be used again. Knows no socket
//! and no clock. When in doubt the connection is not reused: an answer given to the wrong client is worse
//! than a new connection.

use crate::body::BodyReader;
use crate::limits::Limits;
use crate::scan::{Bounds, Scan};
use crate::send::{self, BodyWriter, Kept};
use crate::{BodyLength, BodyRead, Known, Method, Refusal, ResponseHead, framing, tokenise};

/// Informational answers before a final one. An upstream that sends more is not making progress.
const INFORMATIONAL_MAX: u8 = 16;

/// The head of a request. `fields` are whole lines, `Name: value` and CRLF each, already checked, with a
/// Host field and without Content-Length, Transfer-Encoding, Connection and Keep-Alive, which are the
/// codec's to decide.
#[derive(Debug, Clone, Copy)]
pub struct AskHead<'a> {
    /// The method, a token.
    pub method: &'a [u8],
    /// The request-target.
    pub target: &'a [u8],
    /// Field lines.
    pub fields: &'a [u8],
    /// `None` for no body; `Chunked` for one of unknown length.
    pub body: BodyLength,
    /// The connection should become a tunnel: `fields` name the protocol in `Upgrade`, and
    /// `Connection: upgrade` is added.
    pub upgrade: bool,
    /// The sender takes trailers behind a chunked answer: `TE: trailers` is added, with the connection option that has to
    /// go with it (RFC 9110 section 10.1.4).
    pub trailers: bool,
}

/// A head that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerRead {
    /// 1xx: another head follows.
    Informational {
        /// Bytes of the input that it took.
        consumed: usize,
    },
    /// The answer. Its body follows.
    Final {
        /// Bytes of the input that it took.
        consumed: usize,
    },
    /// What follows is another protocol.
    Tunnel {
        /// Bytes of the input that it took.
        consumed: usize,
    },
}

/// How an answer's body ends (RFC 9112 section 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerBody {
    /// There is none.
    None,
    /// After this many bytes.
    Known(u64),
    /// With its last chunk.
    Chunked,
    /// With the connection.
    UntilClose,
}

/// The state of one connection to an upstream. Holds no heap memory between requests.
#[derive(Debug)]
pub struct ClientCodec {
    limits: Limits,
    stage: Stage,
    scan: Scan,
    reader: BodyReader,
    answer_body: AnswerBody,
    trailers: Vec<u8>,
    writer: BodyWriter,
    /// Whether the request went out whole and as promised.
    sent: Sent,
    method: Method,
    /// Whether the request asked for another protocol.
    upgrade: bool,
    keep_alive: bool,
    informational: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing is asked.
    Idle,
    /// A request's head is out, its answer's is not there.
    Asked,
    /// The answer's head is there.
    Answered,
    /// The connection is a tunnel.
    Tunnel,
    /// Something went wrong; nothing more is read.
    Broken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Partly,
    Whole,
    /// More or less than was promised: what the upstream reads next is not what we meant.
    Wrongly,
}

impl ClientCodec {
    /// A new connection.
    pub fn new(limits: Limits) -> Self {
        ClientCodec {
            limits,
            stage: Stage::Idle,
            scan: Scan::new(),
            reader: BodyReader::done(),
            answer_body: AnswerBody::None,
            trailers: Vec::new(),
            writer: BodyWriter::Nothing,
            sent: Sent::Whole,
            method: Method::Other,
            upgrade: false,
            keep_alive: false,
            informational: 0,
        }
    }

    /// Sends a request's head with the framing that follows from its body.
    ///
    /// # Errors
    /// [`Refusal::OutOfOrder`] on a connection that is neither new nor made ready by [`ClientCodec::reuse`].
    pub fn write_request_head(&mut self, out: &mut Vec<u8>, ask: AskHead<'_>) -> Result<(), Refusal> {
        if self.stage != Stage::Idle {
            return Err(Refusal::OutOfOrder);
        }
        debug_assert!(send::lines_are_good(ask.fields), "the codec's own fields, or no whole lines");
        out.reserve(ask.method.len() + ask.target.len() + ask.fields.len() + send::HEAD_ROOM);
        out.extend_from_slice(ask.method);
        out.extend_from_slice(b" ");
        out.extend_from_slice(ask.target);
        out.extend_from_slice(b" HTTP/1.1\r\n");
        out.extend_from_slice(ask.fields);
        self.method = Method::from_bytes(ask.method);
        match ask.body {
            BodyLength::Known(length) => send::content_length(out, length),
            BodyLength::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            // RFC 9110 section 8.6: a length of zero where the method means a body to come.
            BodyLength::None if matches!(self.method, Method::Post | Method::Put | Method::Patch) => {
                send::content_length(out, 0);
            }
            BodyLength::None => {}
        }
        out.extend_from_slice(match (ask.upgrade, ask.trailers) {
            (false, false) => b"",
            (true, false) => b"Connection: upgrade\r\n",
            (false, true) => b"TE: trailers\r\nConnection: TE\r\n",
            (true, true) => b"TE: trailers\r\nConnection: upgrade, TE\r\n",
        });
        out.extend_from_slice(b"\r\n");
        self.upgrade = ask.upgrade;
        self.writer = BodyWriter::new(ask.body);
        self.sent = Sent::Partly;
        self.informational = 0;
        self.stage = Stage::Asked;
        Ok(())
    }

    /// Sends data of the request's body.
    pub fn write_data(&mut self, out: &mut Vec<u8>, data: &[u8]) {
        let kept = self.writer.data(out, data);
        self.keep(kept);
    }

    /// Announces `len` bytes of the body that the caller sends itself; in a chunked body they must be
    /// followed by [`ClientCodec::write_data_frame_end`].
    pub fn write_data_frame(&mut self, out: &mut Vec<u8>, len: u64) {
        let kept = self.writer.frame(out, len);
        self.keep(kept);
    }

    /// Closes what [`ClientCodec::write_data_frame`] opened.
    pub fn write_data_frame_end(&mut self, out: &mut Vec<u8>) {
        self.writer.frame_end(out);
    }

    /// Ends the request. One that is cut off is never ended, and its connection never reused.
    pub fn finish(&mut self, out: &mut Vec<u8>, trailers: &[u8]) {
        let kept = self.writer.finish(out, trailers);
        if self.sent == Sent::Partly {
            self.sent = if kept { Sent::Whole } else { Sent::Wrongly };
        }
    }

    /// Reads an answer's head from the beginning of `input`; `Ok(None)` asks for more bytes after these.
    ///
    /// # Errors
    /// The answer's first fault, [`Refusal::UnexpectedAnswer`] for one that was not asked for. The
    /// connection is then of no more use.
    pub fn read_head(
        &mut self,
        input: &[u8],
        head: &mut ResponseHead,
    ) -> Result<Option<AnswerRead>, Refusal> {
        let result = self.try_read_head(input, head);
        if let Err(refusal) = result {
            head.clear();
            self.stage = Stage::Broken;
            self.reader = BodyReader::failed(refusal);
        }
        result
    }

    /// How the current answer's body ends.
    pub fn answer_body(&self) -> AnswerBody {
        self.answer_body
    }

    /// The next piece of the answer's body at the beginning of `input`.
    ///
    /// # Errors
    /// The body's first fault, again at each later call.
    pub fn read_body(&mut self, input: &[u8]) -> Result<BodyRead, Refusal> {
        let read = self.reader.read(input, &self.limits, &mut self.trailers);
        if read.is_err() {
            self.stage = Stage::Broken;
        }
        read
    }

    /// Says that the upstream's bytes ended with `unread` of them left.
    ///
    /// # Errors
    /// [`Refusal::UnexpectedEnd`] where an answer is cut off by it: RFC 9112 section 8 forbids taking it
    /// for a whole one.
    pub fn read_eof(&mut self, unread: usize) -> Result<(), Refusal> {
        let whole = match self.stage {
            Stage::Idle | Stage::Tunnel => true,
            Stage::Asked | Stage::Broken => false,
            Stage::Answered if self.reader.ends_with_connection() && unread == 0 => {
                self.reader = BodyReader::done();
                true
            }
            Stage::Answered => self.reader.is_done(),
        };
        self.keep_alive = false;
        if self.stage != Stage::Answered || !whole {
            self.stage = Stage::Broken;
        }
        if whole { Ok(()) } else { Err(Refusal::UnexpectedEnd) }
    }

    /// The lines of the answer's trailer section, once its body is read and until the connection is used
    /// again.
    pub fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    /// Whether nothing of the answer's body is left to read.
    pub fn body_is_read(&self) -> bool {
        self.stage == Stage::Answered && self.reader.is_done()
    }

    /// Whether another request may be sent, with `unread` bytes left in the caller's buffer: the request
    /// went out whole, the answer was read to its end, both sides keep the connection, and nothing came
    /// that was not asked for.
    pub fn reusable(&self, unread: usize) -> bool {
        unread == 0
            && match self.stage {
                Stage::Idle => true,
                Stage::Answered => self.keep_alive && self.sent == Sent::Whole && self.reader.is_done(),
                Stage::Asked | Stage::Tunnel | Stage::Broken => false,
            }
    }

    /// Makes the connection ready for the next request; `false` where it is not reusable.
    pub fn reuse(&mut self, unread: usize) -> bool {
        let reusable = self.reusable(unread);
        if reusable {
            self.trailers = Vec::new();
            self.stage = Stage::Idle;
        } else {
            self.stage = Stage::Broken;
        }
        reusable
    }

    fn try_read_head(
        &mut self,
        input: &[u8],
        head: &mut ResponseHead,
    ) -> Result<Option<AnswerRead>, Refusal> {
        match self.stage {
            Stage::Asked => {}
            // Bytes before any request: taken for its answer, they would go to the wrong client.
            Stage::Idle if !input.is_empty() => return Err(Refusal::UnexpectedAnswer),
            Stage::Idle => return Ok(None),
            Stage::Answered | Stage::Tunnel | Stage::Broken => return Err(Refusal::OutOfOrder),
        }
        // Only while nothing was looked at: a head that comes byte by byte is not read anew with each of them.
        if self.scan.is_fresh()
            && let Some(consumed) = tokenise::answer_at_once(input, &self.limits, head)
        {
            return self.take_head(head, consumed).map(Some);
        }
        let bounds = Bounds {
            section_bytes: self.limits.head_bytes,
            section_refusal: Refusal::HeadTooLarge,
            first_line_bytes: usize::MAX,
        };
        let Some(consumed) = self.scan.find_end(input, bounds)? else {
            return Ok(None);
        };
        self.scan = Scan::new();
        tokenise::answer(input.get(..consumed).unwrap_or_default(), &self.limits, head)?;
        self.take_head(head, consumed).map(Some)
    }

    fn take_head(&mut self, head: &ResponseHead, consumed: usize) -> Result<AnswerRead, Refusal> {
        if head.status == 101 {
            // RFC 9110 section 15.2.2: only what was asked for.
            if !self.upgrade || head.get(Known::Upgrade).is_none() {
                return Err(Refusal::UnexpectedAnswer);
            }
            self.stage = Stage::Tunnel;
            return Ok(AnswerRead::Tunnel { consumed });
        }
        if head.status < 200 {
            self.informational = self.informational.saturating_add(1);
            if self.informational > INFORMATIONAL_MAX {
                return Err(Refusal::UnexpectedAnswer);
            }
            return Ok(AnswerRead::Informational { consumed });
        }
        if self.method == Method::Connect && head.status < 300 {
            // RFC 9112 section 6.3 item 2: length fields are ignored here.
            self.stage = Stage::Tunnel;
            return Ok(AnswerRead::Tunnel { consumed });
        }
        self.answer_body = answer_body(head, self.method)?;
        self.reader = match self.answer_body {
            AnswerBody::None => BodyReader::done(),
            AnswerBody::Known(length) => BodyReader::new(BodyLength::Known(length)),
            AnswerBody::Chunked => BodyReader::new(BodyLength::Chunked),
            AnswerBody::UntilClose => BodyReader::until_close(),
        };
        self.keep_alive = framing::keeps_alive(&head.fields, head.version)?
            && self.answer_body != AnswerBody::UntilClose
            // Tunnel bytes may be on their way already, to be read as the next request.
            && !self.upgrade
            // RFC 9110 section 15.3.5: no body, but an upstream that announces one may well send it.
            && !(head.status == 204 && announces_body(head));
        self.stage = Stage::Answered;
        Ok(AnswerRead::Final { consumed })
    }

    fn keep(&mut self, kept: Kept) {
        debug_assert!(kept == Kept::Yes, "more data than the request's length");
        if kept == Kept::TooMuch {
            self.sent = Sent::Wrongly;
        }
    }
}

fn announces_body(head: &ResponseHead) -> bool {
    head.get(Known::TransferEncoding).is_some()
        || head.get(Known::ContentLength).is_some_and(|length| length != b"0")
}

/// RFC 9112 section 6.3, items 1 and 3 to 8.
fn answer_body(head: &ResponseHead, method: Method) -> Result<AnswerBody, Refusal> {
    let bodiless = method == Method::Head || matches!(head.status, 204 | 304);
    // Checked also where there is no body: an upstream with two lengths is not to be trusted with the next.
    let declared = framing::declared_length(&head.fields, head.version, framing::Repeated::One)?;
    Ok(match declared {
        _ if bodiless => AnswerBody::None,
        BodyLength::None => AnswerBody::UntilClose,
        BodyLength::Known(0) => AnswerBody::None,
        BodyLength::Known(length) => AnswerBody::Known(length),
        BodyLength::Chunked => AnswerBody::Chunked,
    })
}
