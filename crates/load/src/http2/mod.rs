//! HTTP/2 as a client speaks it, without a socket: bytes in, bytes out, streams between.
//!
//! Owns the `h2` crate's connection and the words for how a stream ends. Makes no system call, knows no clock and no
//! runtime: `engine/` and `client/` move the bytes and poll. `pipe.rs` holds the bytes, `exchange.rs` is one request and
//! its response.

use std::future::Future as _;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use h2::{Error, Reason};

pub use seen::{Http2Seen, code_list};

pub(crate) use exchange::{Ended, Exchange};

use pipe::Pipe;

mod exchange;
mod pipe;
mod seen;

/// Bytes of a stream that a server may send ahead: as many as Chrome allows.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 6 * 1024 * 1024;

/// Bytes of all streams of a connection that a server may send ahead: as many as Chrome allows.
pub(crate) const CONNECTION_WINDOW_BYTES: u32 = 15 * 1024 * 1024;

/// Bytes of a response's fields: as for HTTP/1.1.
const FIELDS_BYTES_MAX: u32 = 64 * 1024;

/// Streams of one connection, after which it is replaced: identifiers end at 2^31 - 1, and a client's are odd (RFC 9113
/// section 5.1.1).
pub(crate) const STREAMS_PER_CONNECTION_MAX: u32 = 1 << 30;

/// A request, head and body.
#[derive(Debug, Clone)]
pub(crate) struct Http2Request {
    pub(crate) head: http::Request<()>,
    pub(crate) body: Option<Bytes>,
}

/// One connection.
pub(crate) struct Http2 {
    sender: SendRequest<Bytes>,
    connection: Connection<Pipe, Bytes>,
    pipe: Pipe,
}

impl Http2 {
    /// A connection that has its preface to send (RFC 9113 section 3.4).
    pub(crate) fn begin() -> Result<Http2, Error> {
        let pipe = Pipe::default();
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_header_list_size(FIELDS_BYTES_MAX)
            // None until the server's SETTINGS say how many.
            .initial_max_send_streams(0);
        let handshake = pin!(builder.handshake::<_, Bytes>(pipe.clone()));
        match handshake.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(made) => made.map(|(sender, connection)| Http2 { sender, connection, pipe }),
            // The pipe takes the preface at once.
            Poll::Pending => Err(Reason::INTERNAL_ERROR.into()),
        }
    }

    /// Processes what came, and writes what is to be sent. Ready where the connection is over.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.connection).poll(context)
    }

    /// Lets `put` append bytes that came.
    pub(crate) fn receive<T>(&self, put: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        self.pipe.receive(put)
    }

    /// No more bytes will come.
    pub(crate) fn end(&self) {
        self.pipe.end();
    }

    /// Lets `take` send bytes; it gives how many it took.
    pub(crate) fn send<T>(&self, take: impl FnOnce(&[u8]) -> (usize, T)) -> T {
        self.pipe.send(take)
    }

    /// Whether more was to be sent, since this was last asked, than there was room for: once it is sent, there is more.
    pub(crate) fn was_full(&self) -> bool {
        self.pipe.was_full()
    }

    /// Concurrent streams that the server allows; 0 until its SETTINGS came.
    pub(crate) fn streams_allowed(&self) -> usize {
        self.sender.current_max_send_streams()
    }

    /// The code of the GOAWAY that the server sent: it takes no more requests on this connection.
    pub(crate) fn goaway(&mut self) -> Option<Reason> {
        match self.sender.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Err(error)) if error.is_go_away() && error.is_remote() => error.reason(),
            _ => None,
        }
    }

    /// Begins a request.
    pub(crate) fn request(&self, request: &Http2Request) -> Result<Exchange, Error> {
        // A sender of its own: one whose last stream waits for room takes no other.
        let mut sender = self.sender.clone();
        let (response, mut upload) = sender.send_request(request.head.clone(), request.body.is_none())?;
        if let Some(body) = &request.body {
            upload.send_data(body.clone(), true)?;
        }
        Ok(Exchange::new(response, request.body.is_some().then_some(upload)))
    }
}

impl std::fmt::Debug for Http2 {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Http2")
            .field("streams_allowed", &self.streams_allowed())
            .finish_non_exhaustive()
    }
}

/// The name of an error code (RFC 9113 section 7), or its number.
pub fn code_name(code: u32) -> String {
    match code {
        0..=0xd => format!("{:?}", Reason::from(code)),
        _ => format!("{code:#x}"),
    }
}

/// Why a connection is of no use before its first response, with the next step.
pub(crate) fn explain(error: &Error) -> String {
    if error.is_io() {
        return "the server ended the connection before its SETTINGS".to_owned();
    }
    match error.reason() {
        Some(code) if error.is_remote() => {
            format!("the server ended the connection with {}", code_name(code.into()))
        }
        _ => "what answers there speaks no HTTP/2: leave --http2 out to ask it over HTTP/1.1".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_names_of_the_rfc() {
        assert_eq!(code_name(0), "NO_ERROR");
        assert_eq!(code_name(7), "REFUSED_STREAM");
        assert_eq!(code_name(0xd), "HTTP_1_1_REQUIRED");
        assert_eq!(code_name(0x1234), "0x1234");
    }
}
