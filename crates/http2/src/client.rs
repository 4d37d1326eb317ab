//! The client's side: connections to servers, and one request on a stream of such a connection.
//!
//! [`connect`] begins a connection; its [`Driver`] moves the frames and has to be polled by a task. A [`RequestStream`] is one
//! request and its response, spoken to as the HTTP/1 codec is: heads in, heads out, bodies as bytes. Nothing is sent twice.

mod head;
mod sending;

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h2::client::{self, ResponseFuture, SendRequest};
use h2::{Ping, PingPong, Reason, RecvStream};
use onehop_http1::{
    AnswerBody, AnswerRead, AskHead, BodyLength, BodyRead, Limits, Method, Refusal, ResponseHead,
    read_translated_response,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::limits::{
    HEADER_TABLE_BYTES, INFORMATIONAL_MAX, PIECE_BYTES_MAX, RESPONSE_HEADER_LIST_BYTES_MAX,
    RESPONSE_WINDOW_BYTES, UPSTREAM_CONNECTION_WINDOW_BYTES, UPSTREAM_RESETS_KEPT_MAX,
    UPSTREAM_SHORT_FRAMES_BYTES_MAX,
};
use crate::outgoing::{Outgoing, Piece};
use crate::transport::Transport;
use sending::Sending;

/// A connection on which requests are sent, as all of them share it.
#[derive(Clone)]
pub struct Requests {
    sender: SendRequest<Piece>,
    outgoing: Rc<Outgoing>,
    is_encrypted: bool,
}

/// Moves the frames of a connection.
pub struct Driver<S: AsyncRead + AsyncWrite + Unpin> {
    connection: client::Connection<Transport<S>, Piece>,
    transport: Transport<S>,
}

/// Asks a server whether it is there.
pub struct Pinger(PingPong);

/// The limit of streams that h2 has until the server's SETTINGS arrive. No SETTINGS frame can contain it: values have 32 bits
/// (RFC 9113 section 6.5.1).
const STREAMS_MAX_UNKNOWN: usize = usize::MAX - 1;

/// Begins a connection. The server's settings have not come when this is done: [`Requests::streams_max`] is 1 until then.
///
/// # Errors
/// None before the driver is polled, in practice: what is written waits there.
pub async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
    socket: S,
    is_encrypted: bool,
) -> Result<(Requests, Driver<S>), h2::Error> {
    let transport = Transport::to_server(socket);
    let mut builder = client::Builder::new();
    builder
        .enable_push(false)
        .initial_max_send_streams(STREAMS_MAX_UNKNOWN)
        .initial_window_size(RESPONSE_WINDOW_BYTES)
        .initial_connection_window_size(UPSTREAM_CONNECTION_WINDOW_BYTES)
        .max_header_list_size(RESPONSE_HEADER_LIST_BYTES_MAX)
        .header_table_size(HEADER_TABLE_BYTES)
        .max_concurrent_reset_streams(UPSTREAM_RESETS_KEPT_MAX)
        // Frames that cross a reset count as the server's faults there: with many clients that leave, they are many.
        .max_local_error_reset_streams(None)
        .data_frame_budget(UPSTREAM_SHORT_FRAMES_BYTES_MAX)
        .max_send_buffer_size(PIECE_BYTES_MAX);
    let (sender, connection) = builder.handshake::<_, Piece>(transport.clone()).await?;
    let requests = Requests { sender, outgoing: Rc::default(), is_encrypted };
    Ok((requests, Driver { connection, transport }))
}

impl<S: AsyncRead + AsyncWrite + Unpin> Driver<S> {
    /// Moves frames until there is nothing to do; ready at the connection's end.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), String>> {
        let polled = Pin::new(&mut self.connection).poll(context);
        match self.transport.poll_drain(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error.to_string())),
            _ => polled.map_err(|error| error.to_string()),
        }
    }

    /// What asks the server whether it is there; `None` where it was given out before.
    pub fn pinger(&mut self) -> Option<Pinger> {
        self.connection.ping_pong().map(Pinger)
    }

    /// The bytes below.
    pub fn transport(&self) -> Transport<S> {
        self.transport.clone()
    }
}

impl Pinger {
    /// Sends PING, unless one is on its way already. That it was answered shows in the bytes that have come.
    pub fn ping(&mut self) {
        let _ = self.0.poll_pong(&mut Context::from_waker(std::task::Waker::noop()));
        let _ = self.0.send_ping(Ping::opaque());
    }
}

impl Requests {
    /// Whether the server's settings have come. Requests need not wait for them (RFC 9113 section 3.4), except those that
    /// need extended CONNECT (RFC 8441 section 3).
    pub fn has_settings(&self) -> bool {
        self.sender.current_max_send_streams() != STREAMS_MAX_UNKNOWN
    }

    /// Streams that the server allows at a time; 1 before its settings have come.
    pub fn streams_max(&self) -> usize {
        match self.sender.current_max_send_streams() {
            STREAMS_MAX_UNKNOWN => 1,
            max => max,
        }
    }

    /// Whether another request can be sent: the connection lives, and its server takes further ones.
    pub fn are_taken(&mut self) -> bool {
        let mut context = Context::from_waker(std::task::Waker::noop());
        matches!(self.sender.poll_ready(&mut context), Poll::Ready(Ok(())))
    }

    /// A stream for one request. It is opened with the request's head.
    pub fn stream(&self, limits: Limits) -> RequestStream {
        RequestStream {
            requests: self.clone(),
            limits,
            method: Method::Other,
            is_upgrade: false,
            accept: None,
            sending: None,
            receiving: Receiving::Nothing,
            heads: VecDeque::new(),
            informational: 0,
            body: AnswerBody::None,
            trailers: Vec::new(),
            ending: None,
        }
    }
}

/// Why a stream, or its connection, ended before the response was complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The server has not begun the request: it may be sent again, whatever it is (RFC 9113 section 8.7).
    Refused(String),
    /// The server has reset the stream.
    Reset(Reason),
    /// The connection broke.
    Lost(String),
    /// The request asks for an upgrade, for which the server has no extended CONNECT (RFC 8441).
    NoUpgrade,
}

impl fmt::Display for Ending {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(reason) => write!(out, "it refused the stream: {reason}"),
            Self::Reset(reason) => write!(out, "it reset the stream: {reason:?}"),
            Self::Lost(reason) => write!(out, "the connection broke: {reason}"),
            Self::NoUpgrade => out.write_str(
                "it takes no WebSocket over HTTP/2 (SETTINGS_ENABLE_CONNECT_PROTOCOL); `versions 1.1` does",
            ),
        }
    }
}

/// One request and its response. Dropped before both are complete, it is reset (CANCEL).
pub struct RequestStream {
    requests: Requests,
    limits: Limits,
    method: Method,
    /// The stream becomes a tunnel.
    is_upgrade: bool,
    /// What the client of a WebSocket expects in its response.
    accept: Option<String>,
    sending: Option<Sending>,
    receiving: Receiving,
    /// Heads that have come and were not read, in the form of HTTP/1.1.
    heads: VecDeque<(u16, Vec<u8>)>,
    informational: u8,
    body: AnswerBody,
    trailers: Vec<u8>,
    ending: Option<Ending>,
}

/// The response.
enum Receiving {
    /// No request was sent.
    Nothing,
    /// No final head has come.
    Head(ResponseFuture),
    Body {
        stream: RecvStream,
        /// Data that was not read yet.
        unread: Bytes,
    },
    /// All of it has come and is read.
    End,
}

impl RequestStream {
    /// Sends the head of a request. It does not wait: h2 holds it until it is written. Where the connection takes no request
    /// any more, reading says so.
    ///
    /// # Errors
    /// What cannot be said in HTTP/2, or a second request.
    pub fn write_request_head(&mut self, ask: AskHead<'_>) -> Result<(), Refusal> {
        if !matches!(self.receiving, Receiving::Nothing) || self.ending.is_some() {
            return Err(Refusal::OutOfOrder);
        }
        let upgrade = if ask.upgrade { head::websocket_key(ask.fields) } else { None };
        self.is_upgrade = upgrade.is_some();
        self.accept = upgrade.map(|key| head::websocket_accept(&key));
        self.method = Method::from_bytes(ask.method);
        if self.is_upgrade && !self.requests.sender.is_extended_connect_protocol_enabled() {
            self.ending = Some(Ending::NoUpgrade);
            return Ok(());
        }
        let request = head::request(&ask, self.requests.is_encrypted, self.is_upgrade)?;
        let ends = matches!(ask.body, BodyLength::None | BodyLength::Known(0)) && !self.is_upgrade;
        match self.requests.sender.send_request(request, ends) {
            Ok((response, body)) => {
                self.receiving = Receiving::Head(response);
                self.sending = Some(Sending::new(body, &self.requests.outgoing, ends));
            }
            Err(error) => self.ending = Some(Ending::Refused(error.to_string())),
        }
        Ok(())
    }

    /// Why the stream ended early.
    pub fn ending(&self) -> Option<&Ending> {
        self.ending.as_ref()
    }

    /// Ends the request after `waiting` bytes that are not written yet, with these lines.
    pub fn finish(&mut self, waiting: usize, trailers: &[u8]) {
        if let Some(sending) = self.sending.as_mut().filter(|_| !self.is_upgrade) {
            sending.end_after(waiting as u64, trailers);
        }
    }

    /// Ends the sending side of a tunnel.
    pub fn finish_tunnel(&mut self) {
        if let Some(sending) = &mut self.sending {
            sending.end_after(0, b"");
            sending.end();
        }
    }

    /// Sends a part of the request's body: as much as the server's windows and the connection have room for. Nothing at its
    /// end, which it sends, too.
    pub fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Some(sending) = &mut self.sending else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        if bytes.is_empty() {
            sending.end();
            return Poll::Ready(Ok(0));
        }
        sending.poll_write(context, bytes).map_err(|error| error.unwrap_or_else(reset))
    }

    /// Waits for more of the response: for a head, of which nothing is put into `buffer` and [`Self::read_head`] reads it, or
    /// for a part of the body. The number of bytes that came; 0 is the end.
    pub fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        if let Some((_, text)) = self.heads.front() {
            return Poll::Ready(Ok(text.len()));
        }
        if self.ending.is_some() {
            return Poll::Ready(Err(reset()));
        }
        match &mut self.receiving {
            Receiving::Nothing => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            Receiving::Head(_) => self.poll_head(context),
            Receiving::Body { .. } => self.poll_body(context, buffer),
            Receiving::End => Poll::Ready(Ok(0)),
        }
    }

    fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Receiving::Head(response) = &mut self.receiving else { return Poll::Ready(Ok(0)) };
        if let Poll::Ready(Some(informational)) = response.poll_informational(context) {
            let head = informational.map_err(|error| self.broken(&error))?;
            return Poll::Ready(Ok(self.take_head(&head)));
        }
        let response = ready!(Pin::new(response).poll(context)).map_err(|error| self.broken(&error))?;
        let (parts, stream) = response.into_parts();
        self.receiving = if stream.is_end_stream() {
            Receiving::End
        } else {
            Receiving::Body { stream, unread: Bytes::new() }
        };
        Poll::Ready(Ok(self.take_head(&http::Response::from_parts(parts, ()))))
    }

    fn take_head(&mut self, response: &http::Response<()>) -> usize {
        let is_tunnel = self.is_upgrade && response.status().is_success();
        let accept = self.accept.as_deref().filter(|_| is_tunnel);
        let text = head::response_text(response, accept);
        let length = text.len();
        self.heads.push_back((response.status().as_u16(), text));
        length
    }

    fn poll_body(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<usize>> {
        let Receiving::Body { stream, unread } = &mut self.receiving else { return Poll::Ready(Ok(0)) };
        while unread.is_empty() {
            match ready!(stream.poll_data(context)) {
                Some(Ok(data)) => *unread = data,
                Some(Err(error)) => return Poll::Ready(Err(self.broken(&error))),
                None => {
                    let trailers = match ready!(stream.poll_trailers(context)) {
                        Ok(trailers) => trailers,
                        Err(error) => return Poll::Ready(Err(self.broken(&error))),
                    };
                    if let Some(trailers) = trailers {
                        crate::head::write_fields(&trailers, &mut self.trailers);
                    }
                    self.receiving = Receiving::End;
                    return Poll::Ready(Ok(0));
                }
            }
        }
        let count = unread.len().min(buffer.remaining());
        buffer.put_slice(unread.get(..count).unwrap_or_default());
        unread.advance(count);
        let _ = stream.flow_control().release_capacity(count);
        Poll::Ready(Ok(count))
    }

    /// Reads a head that has come; `None` where none has.
    ///
    /// # Errors
    /// The head's first fault, or one that was not asked for.
    pub fn read_head(&mut self, head: &mut ResponseHead) -> Result<Option<AnswerRead>, Refusal> {
        let Some((status, text)) = self.heads.pop_front() else { return Ok(None) };
        let declared = read_translated_response(&text, &self.limits, head)?;
        if status < 200 {
            self.informational = self.informational.saturating_add(1);
            // RFC 9113 section 8.6: HTTP/2 has no 101.
            let is_bad = status == 101 || self.informational > INFORMATIONAL_MAX;
            return if is_bad {
                Err(Refusal::UnexpectedAnswer)
            } else {
                Ok(Some(AnswerRead::Informational { consumed: 0 }))
            };
        }
        if head.status() == 101 {
            return Ok(Some(AnswerRead::Tunnel { consumed: 0 }));
        }
        let is_bodiless = self.method == Method::Head || matches!(status, 204 | 304);
        self.body = match declared {
            _ if is_bodiless => AnswerBody::None,
            BodyLength::Known(0) => AnswerBody::None,
            BodyLength::Known(length) => AnswerBody::Known(length),
            _ if matches!(self.receiving, Receiving::End) => AnswerBody::None,
            _ => AnswerBody::Chunked,
        };
        Ok(Some(AnswerRead::Final { consumed: 0 }))
    }

    /// What the response's body is framed like.
    pub fn answer_body(&self) -> AnswerBody {
        self.body
    }

    /// The next piece of the response's body at the beginning of `input`. A body ends with its stream, behind its trailers.
    pub fn read_body(&self, input: &[u8]) -> BodyRead {
        if !input.is_empty() {
            return BodyRead::Data { at: 0..input.len(), consumed: input.len() };
        }
        match self.receiving {
            Receiving::End => BodyRead::End { consumed: 0 },
            _ => BodyRead::NeedMore,
        }
    }

    /// Whether all of the response has come and is read.
    pub fn is_received(&self) -> bool {
        matches!(self.receiving, Receiving::End)
    }

    /// The lines of the response's trailers, once its body is read.
    pub fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    fn broken(&mut self, error: &h2::Error) -> io::Error {
        let is_refused =
            error.is_remote() && (error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM));
        self.ending = Some(match error.reason() {
            _ if is_refused => Ending::Refused(error.to_string()),
            Some(reason) if error.is_reset() => Ending::Reset(reason),
            _ => Ending::Lost(error.to_string()),
        });
        reset()
    }
}

impl Drop for RequestStream {
    fn drop(&mut self) {
        let is_received = self.is_received();
        if let Some(sending) = self.sending.as_mut().filter(|sending| !is_received || !sending.is_over()) {
            sending.reset(Reason::CANCEL);
        }
    }
}

fn reset() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}
