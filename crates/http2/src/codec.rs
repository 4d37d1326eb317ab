//! One request on a stream, as the HTTP/1 codec has it on a connection: how its body is read, and its response framed.

use std::rc::Rc;

use h2::Reason;
use http::request::Parts;
use onehop_http1::{
    AnswerHead, BodyLength, BodyRead, Known, Limits, Method, Next, Refusal, RequestHead, read_translated,
};

use crate::head;
use crate::stream::Stream;

/// One request and its response.
pub struct StreamCodec {
    stream: Rc<Stream>,
    /// Of the request.
    body: BodyLength,
    is_head: bool,
    /// The client asked for another protocol (RFC 8441).
    is_upgrade: bool,
    /// The client waits for 100 before it sends its body.
    waits: bool,
    trailers: Vec<u8>,
    writer: Writer,
}

/// The body of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    /// No head was sent.
    Waiting,
    /// What is written of it is left out.
    Nothing,
    Known(u64),
    Unknown,
}

impl StreamCodec {
    /// Reads the head of a request; `text` is a buffer for it.
    ///
    /// # Errors
    /// The first fault of the head. A response can be written.
    pub fn read(
        parts: &Parts,
        stream: Rc<Stream>,
        limits: &Limits,
        text: &mut Vec<u8>,
        head: &mut RequestHead,
    ) -> (Self, Result<(), Refusal>) {
        text.clear();
        let read = head::write_request(parts, text).and_then(|()| read_translated(text, limits, head));
        text.clear();
        let is_upgrade = head::upgrade_of(parts).is_some();
        let body = match read {
            _ if stream.is_received() || is_upgrade => BodyLength::None,
            Ok(BodyLength::Known(length)) => BodyLength::Known(length),
            _ => BodyLength::Chunked,
        };
        let waits = read.is_ok() && body != BodyLength::None && expects_continue(head);
        let is_head = head.method() == Method::Head;
        let codec =
            Self { stream, body, is_head, is_upgrade, waits, trailers: Vec::new(), writer: Writer::Waiting };
        (codec, read.map(|_| ()))
    }

    /// See `ServerCodec::request_body`.
    pub fn request_body(&self) -> BodyLength {
        self.body
    }

    /// Whether all of the request was read from its stream.
    pub fn is_received(&self) -> bool {
        self.stream.is_received()
    }

    /// See `ServerCodec::expects_continue`.
    pub fn expects_continue(&self) -> bool {
        self.waits && !self.stream.is_received()
    }

    /// See `ServerCodec::read_body`.
    pub fn read_body(&mut self, input: &[u8]) -> BodyRead {
        if !input.is_empty() {
            self.waits = false;
            return BodyRead::Data { at: 0..input.len(), consumed: input.len() };
        }
        if self.body != BodyLength::None && !self.stream.is_received() {
            return BodyRead::NeedMore;
        }
        if self.trailers.is_empty() {
            self.trailers = self.stream.take_trailers();
        }
        BodyRead::End { consumed: 0 }
    }

    /// The lines of the request's trailers, once its body is read.
    pub fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    /// See `ServerCodec::write_continue`.
    pub fn write_continue(&mut self) {
        if self.expects_continue() && self.writer == Writer::Waiting {
            self.waits = false;
            self.stream.send_informational(100, b"");
        }
    }

    /// See `ServerCodec::write_informational`.
    pub fn write_informational(&mut self, status: u16, fields: &[u8]) {
        if self.writer == Writer::Waiting {
            self.stream.send_informational(status, fields);
        }
    }

    /// Sends the head of the response. It does not wait: h2 holds it until it is written.
    pub fn write_head(&mut self, answer: AnswerHead<'_>) {
        if self.writer != Writer::Waiting {
            return self.stream.reset(Reason::INTERNAL_ERROR);
        }
        if self.is_upgrade && matches!(answer.status, 101 | 200..300) {
            return self.write_upgrade_head(answer);
        }
        let is_bodiless = self.is_head || matches!(answer.status, 100..200 | 204 | 304);
        let length = match answer.body {
            // RFC 9110 section 8.6: never in 204; in 304 only what 200 would have said.
            _ if answer.status == 204 => None,
            BodyLength::None if answer.status == 304 => None,
            BodyLength::None => Some(0),
            BodyLength::Known(length) => Some(length),
            BodyLength::Chunked => None,
        };
        let head = head::response(answer.status, answer.date, answer.fields, length);
        self.writer = match length {
            _ if is_bodiless => Writer::Nothing,
            Some(0) => Writer::Nothing,
            Some(length) => Writer::Known(length),
            None => Writer::Unknown,
        };
        self.stream.send_head(head, if self.writer == Writer::Nothing { Some(0) } else { length });
    }

    /// RFC 8441 section 5: 200 stands for 101. A success of another kind would open a tunnel that nobody serves.
    fn write_upgrade_head(&mut self, answer: AnswerHead<'_>) {
        let (status, length) = if answer.status == 101 { (200, None) } else { (501, Some(0)) };
        let mut head = head::response(status, answer.date, answer.fields, None);
        head.headers_mut().remove("sec-websocket-accept");
        self.writer = if length.is_none() { Writer::Unknown } else { Writer::Nothing };
        self.stream.send_head(head, length);
    }

    /// Appends data of the response's body, as far as it is promised.
    pub fn write_data(&mut self, out: &mut Vec<u8>, data: &[u8]) {
        let taken = usize::try_from(self.count(data.len() as u64)).unwrap_or(usize::MAX);
        out.extend_from_slice(data.get(..taken).unwrap_or_default());
    }

    /// Counts data of the response's body that the caller writes itself; returns how much of it was promised.
    pub fn count(&mut self, bytes: u64) -> u64 {
        match &mut self.writer {
            Writer::Nothing | Writer::Waiting => 0,
            Writer::Unknown => bytes,
            Writer::Known(left) => {
                let taken = bytes.min(*left);
                *left -= taken;
                taken
            }
        }
    }

    /// Whether the response has a body.
    pub fn sends_body(&self) -> bool {
        !matches!(self.writer, Writer::Nothing)
    }

    /// Ends the response after `waiting` bytes that are not written yet, with these lines.
    pub fn finish(&mut self, waiting: usize, trailers: &[u8]) -> Next {
        if self.writer == Writer::Unknown {
            self.stream.end_after(waiting as u64, trailers);
        }
        Next::Close
    }
}

fn expects_continue(head: &RequestHead) -> bool {
    head.get_all(Known::Expect).any(|value| value.eq_ignore_ascii_case(b"100-continue"))
}
