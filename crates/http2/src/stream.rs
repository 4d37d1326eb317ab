//! One stream as bytes in and out, within the flow control of both sides.
//!
//! The task of the request polls it; the one that drives the connection moves the frames. The pieces of a response wait for
//! room in their connection ([`crate::outgoing`]), so that a stream whose client reads nothing holds no other up.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::HeaderMap;
use tokio::io::ReadBuf;

use crate::head;
use crate::limits::PIECE_BYTES_MAX;
use crate::outgoing::{Outgoing, Piece, Priority, Turn};

/// One request and its response on their connection.
pub struct Stream {
    number: u32,
    priority: Priority,
    turn: Turn,
    response: RefCell<SendResponse<Piece>>,
    /// Once the response's head is sent.
    body: RefCell<Option<SendStream<Piece>>>,
    /// Bytes of the response's body that were sent.
    sent: Cell<u64>,
    /// Bytes until its end, where that is known.
    left: Cell<Option<u64>>,
    /// What follows the body.
    trailers: RefCell<Option<HeaderMap>>,
    /// Nothing more is sent: the response is complete, or was broken off.
    is_sent: Cell<bool>,
    received: RefCell<Received>,
}

/// The body of the request.
struct Received {
    stream: RecvStream,
    /// Data that was not read yet.
    unread: Bytes,
    /// All of it has come.
    is_at_end: bool,
    /// The lines behind it.
    trailers: Vec<u8>,
}

impl Received {
    /// Waits for data that was not read; there is none at the end.
    fn poll_unread(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.unread.is_empty() && !self.is_at_end {
            match ready!(self.stream.poll_data(context)) {
                Some(data) => self.unread = data.map_err(broken)?,
                None => {
                    let trailers = ready!(self.stream.poll_trailers(context)).map_err(broken)?;
                    if let Some(trailers) = trailers {
                        head::write_fields(&trailers, &mut self.trailers);
                    }
                    self.is_at_end = true;
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Takes so many bytes of that, for which the client may send as many.
    fn take(&mut self, count: usize) {
        self.unread.advance(count);
        let _ = self.stream.flow_control().release_capacity(count);
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        // h2 releases what it holds itself.
        let _ = self.stream.flow_control().release_capacity(self.unread.len());
    }
}

impl Stream {
    /// A request that came with this priority.
    pub fn new(
        body: RecvStream,
        response: SendResponse<Piece>,
        priority: Priority,
        outgoing: Rc<Outgoing>,
    ) -> Rc<Self> {
        let is_at_end = body.is_end_stream();
        Rc::new(Self {
            number: response.stream_id().as_u32(),
            priority,
            turn: Turn::new(outgoing),
            response: RefCell::new(response),
            body: RefCell::default(),
            sent: Cell::new(0),
            left: Cell::new(None),
            trailers: RefCell::default(),
            is_sent: Cell::new(false),
            received: RefCell::new(Received {
                stream: body,
                unread: Bytes::new(),
                is_at_end,
                trailers: Vec::new(),
            }),
        })
    }

    /// Whether all of the request has come, and is read from here.
    pub fn is_received(&self) -> bool {
        let received = self.received.borrow();
        received.is_at_end && received.unread.is_empty()
    }

    /// The lines of the request's trailers, once it has come.
    pub fn take_trailers(&self) -> Vec<u8> {
        std::mem::take(&mut self.received.borrow_mut().trailers)
    }

    /// Whether the response is complete, or was broken off.
    pub fn is_sent(&self) -> bool {
        self.is_sent.get()
    }

    /// Reads what has come of the request's body; nothing at its end. The client may send as much again.
    pub fn poll_read(&self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut received = self.received.borrow_mut();
        ready!(received.poll_unread(context))?;
        let count = received.unread.len().min(buffer.remaining());
        buffer.put_slice(received.unread.get(..count).unwrap_or_default());
        received.take(count);
        Poll::Ready(Ok(()))
    }

    /// Drops what has come of the request's body; the number of bytes, 0 at its end. The client may send as much again.
    pub fn poll_discard(&self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut received = self.received.borrow_mut();
        ready!(received.poll_unread(context))?;
        let count = received.unread.len();
        received.take(count);
        Poll::Ready(Ok(count))
    }

    /// Sends an informational head.
    pub fn send_informational(&self, status: u16, lines: &[u8]) {
        let _ = self.response.borrow_mut().send_informational(head::response(status, b"", lines, None));
    }

    /// Sends the head of the response. `length`: of the body that follows, where it is known.
    pub fn send_head(&self, response: http::Response<()>, length: Option<u64>) {
        let ends = length == Some(0);
        self.is_sent.set(ends);
        self.left.set(length);
        match self.response.borrow_mut().send_response(response, ends) {
            Ok(body) => *self.body.borrow_mut() = Some(body),
            // The client has left.
            Err(_) => self.is_sent.set(true),
        }
    }

    /// The body ends after so many more bytes, with these lines.
    pub fn end_after(&self, bytes: u64, trailers: &[u8]) {
        self.left.set(Some(bytes));
        if !trailers.is_empty() {
            *self.trailers.borrow_mut() = Some(head::fields_of(trailers));
        }
    }

    /// Waits until a part of the response's body can be sent.
    pub fn poll_writable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_room(context, 1).map_ok(|_| ())
    }

    /// The same of bytes that need not be copied.
    pub fn poll_write_shared(&self, context: &mut Context<'_>, bytes: &Bytes) -> Poll<io::Result<usize>> {
        self.poll_write_with(context, bytes.len(), |count| bytes.slice(..count))
    }

    /// Sends a part of the response's body: as much as the client's windows and the connection have room for.
    pub fn poll_write(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_with(context, bytes.len(), |count| {
            Bytes::copy_from_slice(bytes.get(..count).unwrap_or_default())
        })
    }

    fn poll_write_with(
        &self,
        context: &mut Context<'_>,
        length: usize,
        piece: impl FnOnce(usize) -> Bytes,
    ) -> Poll<io::Result<usize>> {
        let most = self.left.get().map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        let wanted = length.min(PIECE_BYTES_MAX).min(most);
        if wanted == 0 {
            return Poll::Ready(Ok(0));
        }
        let count = ready!(self.poll_room(context, wanted))?.min(wanted);
        let ends = self.left.get() == Some(count as u64) && self.trailers.borrow().is_none();
        let piece = Piece::new(piece(count), self.turn.outgoing());
        if let Some(body) = self.body.borrow_mut().as_mut() {
            body.send_data(piece, ends).map_err(broken)?;
        }
        self.is_sent.set(ends);
        self.sent.set(self.sent.get() + count as u64);
        self.left.set(self.left.get().map(|left| left - count as u64));
        Poll::Ready(Ok(count))
    }

    /// How many bytes the client's windows and the connection have room for, once that is any.
    fn poll_room(&self, context: &mut Context<'_>, wanted: usize) -> Poll<io::Result<usize>> {
        let mut body = self.body.borrow_mut();
        let Some(body) = body.as_mut().filter(|_| !self.is_sent.get()) else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        if body.capacity() == 0 {
            body.reserve_capacity(wanted);
            match ready!(body.poll_capacity(context)) {
                Some(capacity) => capacity.map_err(broken)?,
                None => return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            };
        }
        if self.turn.poll(context, self.number, self.priority, self.sent.get()).is_pending() {
            // A client that resets the stream meanwhile is noticed.
            return match body.poll_reset(context) {
                Poll::Ready(_) => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
                Poll::Pending => Poll::Pending,
            };
        }
        Poll::Ready(Ok(body.capacity()))
    }

    /// Ends the response, in whatever state it is: one of which a part is missing is broken off.
    pub fn finish(&self) {
        if self.is_sent.get() {
            return;
        }
        let mut body = self.body.borrow_mut();
        let Some(body) = body.as_mut().filter(|_| self.left.get().is_none_or(|left| left == 0)) else {
            return self.reset(Reason::INTERNAL_ERROR);
        };
        let _ = match self.trailers.take() {
            Some(trailers) => body.send_trailers(trailers),
            None => body.send_data(Piece::new(Bytes::new(), self.turn.outgoing()), true),
        };
        self.is_sent.set(true);
    }

    /// Breaks the stream off.
    pub fn reset(&self, reason: Reason) {
        if !self.is_sent.replace(true) {
            self.response.borrow_mut().send_reset(reason);
        }
    }

    /// Ends when the client has reset the stream, or the connection is over.
    pub fn poll_reset(&self, context: &mut Context<'_>) -> Poll<()> {
        // With an error nothing more is known of it: it is over.
        match &mut *self.body.borrow_mut() {
            Some(body) => body.poll_reset(context).map(|_| ()),
            None => self.response.borrow_mut().poll_reset(context).map(|_| ()),
        }
    }
}

fn broken(error: h2::Error) -> io::Error {
    if error.is_io() {
        return error.into_io().unwrap_or_else(|| io::ErrorKind::ConnectionReset.into());
    }
    io::ErrorKind::ConnectionReset.into()
}
