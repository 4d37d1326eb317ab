//! How requests and responses are framed: the one place that knows which version of HTTP a request came in.

use onehop_http1::{AnswerHead, BodyEnd, BodyLength, BodyRead, Next, Refusal, RequestHead, ServerCodec};
use onehop_http2::StreamCodec;

/// The framing of the request that is served.
pub enum Codec {
    /// A connection of HTTP/1.
    Http1(ServerCodec),
    /// A stream of HTTP/2.
    Http2(Box<StreamCodec>),
}

/// A look at a body that is not read; see [`Codec::body_end`].
pub enum BodyLook {
    /// On a connection of HTTP/1.
    Http1(BodyEnd),
    /// On a stream.
    Http2,
}

impl Codec {
    /// See [`ServerCodec::read_head`]. A stream has one head only.
    ///
    /// # Errors
    /// The request's first fault.
    pub fn read_head(&mut self, input: &[u8], head: &mut RequestHead) -> Result<Option<usize>, Refusal> {
        match self {
            Self::Http1(codec) => codec.read_head(input, head),
            Self::Http2(_) => Err(Refusal::OutOfOrder),
        }
    }

    /// The length of the request's body.
    pub fn request_body(&self) -> BodyLength {
        match self {
            Self::Http1(codec) => codec.request_body(),
            Self::Http2(codec) => codec.request_body(),
        }
    }

    /// Whether the client waits for 100 before it sends the body.
    pub fn expects_continue(&self) -> bool {
        match self {
            Self::Http1(codec) => codec.expects_continue(),
            Self::Http2(codec) => codec.expects_continue(),
        }
    }

    /// The next piece of the request's body at the beginning of `input`.
    ///
    /// # Errors
    /// The body's first fault.
    pub fn read_body(&mut self, input: &[u8]) -> Result<BodyRead, Refusal> {
        match self {
            Self::Http1(codec) => codec.read_body(input),
            Self::Http2(codec) => Ok(codec.read_body(input)),
        }
    }

    /// Whether nothing of the request's body has to be read before the next request: what is left of a stream is nobody's.
    pub fn body_is_read(&self) -> bool {
        match self {
            Self::Http1(codec) => codec.body_is_read(),
            Self::Http2(_) => true,
        }
    }

    /// Whether no data of the request's body is left to be read, neither in `input` nor behind it.
    pub fn is_at_end_of_body(&self, input: &[u8]) -> bool {
        match self {
            Self::Http1(codec) => codec.body_is_read(),
            Self::Http2(codec) => input.is_empty() && codec.is_received(),
        }
    }

    /// Whether the end of what can be read is the body's end. On a connection of HTTP/1 the client has left.
    pub fn ends_with_input(&self) -> bool {
        matches!(self, Self::Http2(codec) if codec.is_received())
    }

    /// Looks for the end of the request's body, which stays unread.
    pub fn body_end(&self) -> BodyLook {
        match self {
            Self::Http1(codec) => BodyLook::Http1(codec.body_end()),
            Self::Http2(_) => BodyLook::Http2,
        }
    }

    /// Whether all of the request's body is in `input`.
    pub fn has_body_in(&self, input: &[u8], look: &mut BodyLook) -> bool {
        match (self, look) {
            (_, BodyLook::Http1(end)) => end.is_in(input),
            (Self::Http2(codec), BodyLook::Http2) => codec.is_received(),
            (Self::Http1(_), BodyLook::Http2) => false,
        }
    }

    /// The lines of the request's trailers, once its body is read.
    pub fn trailers(&self) -> &[u8] {
        match self {
            Self::Http1(codec) => codec.trailers(),
            Self::Http2(codec) => codec.trailers(),
        }
    }

    /// Tells a client that waits to send its body.
    pub fn write_continue(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Http1(codec) => codec.write_continue(out),
            Self::Http2(codec) => codec.write_continue(),
        }
    }

    /// Sends an informational head, 102 to 199 except 101.
    pub fn write_informational(&mut self, out: &mut Vec<u8>, status: u16, fields: &[u8]) {
        match self {
            Self::Http1(codec) => codec.write_informational(out, status, fields),
            Self::Http2(codec) => codec.write_informational(status, fields),
        }
    }

    /// Sends the response's head.
    pub fn write_head(&mut self, out: &mut Vec<u8>, answer: AnswerHead<'_>) {
        match self {
            Self::Http1(codec) => codec.write_head(out, answer),
            Self::Http2(codec) => codec.write_head(answer),
        }
    }

    /// Sends data of the response's body.
    pub fn write_data(&mut self, out: &mut Vec<u8>, data: &[u8]) {
        match self {
            Self::Http1(codec) => codec.write_data(out, data),
            Self::Http2(codec) => codec.write_data(out, data),
        }
    }

    /// See [`ServerCodec::write_data_frame`].
    pub fn write_data_frame(&mut self, out: &mut Vec<u8>, length: u64) {
        match self {
            Self::Http1(codec) => codec.write_data_frame(out, length),
            Self::Http2(codec) => _ = codec.count(length),
        }
    }

    /// See [`ServerCodec::write_data_frame_end`].
    pub fn write_data_frame_end(&mut self, out: &mut Vec<u8>) {
        if let Self::Http1(codec) = self {
            codec.write_data_frame_end(out);
        }
    }

    /// Counts data of a body of known length that the caller sends itself.
    pub fn note_data_written_elsewhere(&mut self, length: u64) {
        match self {
            Self::Http1(codec) => codec.note_data_written_elsewhere(length),
            Self::Http2(codec) => _ = codec.count(length),
        }
    }

    /// Whether the response has a body, once its head is written.
    pub fn sends_body(&self) -> bool {
        match self {
            Self::Http1(codec) => codec.sends_body(),
            Self::Http2(codec) => codec.sends_body(),
        }
    }

    /// Closes the connection after this response, where it is the request's own.
    pub fn close_after_answer(&mut self) {
        if let Self::Http1(codec) = self {
            codec.close_after_answer();
        }
    }

    /// Ends the response; `out` has what is not written of it.
    pub fn finish(&mut self, out: &mut Vec<u8>, trailers: &[u8]) -> Next {
        match self {
            Self::Http1(codec) => codec.finish(out, trailers),
            Self::Http2(codec) => codec.finish(out.len(), trailers),
        }
    }
}
