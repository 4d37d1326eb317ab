//! How a request and its response are framed: the one place of an exchange that knows which version of HTTP the upstream
//! speaks.

use std::cell::RefMut;

use onehop_http1::{AnswerBody, AnswerRead, AskHead, BodyRead, ClientCodec, Refusal, ResponseHead};
use onehop_http2::client::RequestStream;

/// The framing of one exchange, for the time of one call.
pub enum Codec<'a> {
    /// A connection of HTTP/1.
    Http1(RefMut<'a, ClientCodec>),
    /// A stream of HTTP/2.
    Http2(RefMut<'a, RequestStream>),
}

impl Codec<'_> {
    /// Sends a request's head; see [`ClientCodec::write_request_head`]. That of HTTP/2 does not go through `out`.
    ///
    /// # Errors
    /// What cannot be said in the upstream's version, or a request out of order.
    pub fn write_request_head(&mut self, out: &mut Vec<u8>, ask: AskHead<'_>) -> Result<(), Refusal> {
        match self {
            Self::Http1(codec) => codec.write_request_head(out, ask),
            Self::Http2(stream) => stream.write_request_head(ask),
        }
    }

    /// Sends data of the request's body.
    pub fn write_data(&mut self, out: &mut Vec<u8>, data: &[u8]) {
        match self {
            Self::Http1(codec) => codec.write_data(out, data),
            Self::Http2(_) => out.extend_from_slice(data),
        }
    }

    /// Announces bytes of the body that the caller sends itself; see [`ClientCodec::write_data_frame`].
    pub fn write_data_frame(&mut self, out: &mut Vec<u8>, length: u64) {
        if let Self::Http1(codec) = self {
            codec.write_data_frame(out, length);
        }
    }

    /// Closes what [`Codec::write_data_frame`] opened.
    pub fn write_data_frame_end(&mut self, out: &mut Vec<u8>) {
        if let Self::Http1(codec) = self {
            codec.write_data_frame_end(out);
        }
    }

    /// Ends the request; `out` has what is not written of it.
    pub fn finish(&mut self, out: &mut Vec<u8>, trailers: &[u8]) {
        match self {
            Self::Http1(codec) => codec.finish(out, trailers),
            Self::Http2(stream) => stream.finish(out.len(), trailers),
        }
    }

    /// Reads a response's head; `Ok(None)` asks for more.
    ///
    /// # Errors
    /// The response's first fault.
    pub fn read_head(
        &mut self,
        input: &[u8],
        head: &mut ResponseHead,
    ) -> Result<Option<AnswerRead>, Refusal> {
        match self {
            Self::Http1(codec) => codec.read_head(input, head),
            Self::Http2(stream) => stream.read_head(head),
        }
    }

    /// How the response's body ends.
    pub fn answer_body(&self) -> AnswerBody {
        match self {
            Self::Http1(codec) => codec.answer_body(),
            Self::Http2(stream) => stream.answer_body(),
        }
    }

    /// The next piece of the response's body at the beginning of `input`.
    ///
    /// # Errors
    /// The body's first fault.
    pub fn read_body(&mut self, input: &[u8]) -> Result<BodyRead, Refusal> {
        match self {
            Self::Http1(codec) => codec.read_body(input),
            Self::Http2(stream) => Ok(stream.read_body(input)),
        }
    }

    /// Says that the upstream's bytes ended with `unread` of them left.
    ///
    /// # Errors
    /// [`Refusal::UnexpectedEnd`] where a response is cut off by it.
    pub fn read_eof(&mut self, unread: usize) -> Result<(), Refusal> {
        match self {
            Self::Http1(codec) => codec.read_eof(unread),
            Self::Http2(stream) if stream.is_received() => Ok(()),
            Self::Http2(_) => Err(Refusal::UnexpectedEnd),
        }
    }

    /// The lines of the response's trailers, once its body is read.
    pub fn trailers(&self) -> &[u8] {
        match self {
            Self::Http1(codec) => codec.trailers(),
            Self::Http2(stream) => stream.trailers(),
        }
    }
}
