//! A request's body as handlers read it: piece by piece, as it comes from the client.
//!
//! Handlers do not see the protocol version. The body and the response writer of a request may be polled by one task in
//! turn, so a body can come while a response goes. Nothing is read that the handler did not ask for, except to learn that
//! the client has left.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use onehop_http1::{BodyLength, BodyRead};
use onehop_message::error::HttpError;
use onehop_message::forwarding::passed_on_trailers;

use crate::buffers::Input;
use crate::deadline::{Deadline, Waiting};
use crate::exchange_io::ExchangeIo;
use crate::limits::{
    BODY_BYTE_TIME, GONE_LOOK_PERIOD, READ_BUFFER_BYTES, UPLOAD_PIECE_BYTES_MAX, UPLOAD_PIECE_BYTES_MIN,
};

/// The request's body on its way from the client.
pub struct RequestBody<'l, 'c> {
    io: &'l ExchangeIo<'c>,
    input: &'l mut Input,
    /// Apart from the connection's own, which waits for the client to take the response at the same time.
    deadline: Option<Deadline>,
    /// How much longer the client is waited for, in all; each byte that arrives adds to it.
    time_left: Duration,
    is_tunnel: bool,
    /// Bytes that may still come, before it is too large.
    bytes_left: u64,
    /// Some of it was taken.
    is_started: bool,
}

/// Why no more bytes are read from a client.
enum ReadEnd {
    /// The connection was reset.
    Reset,
    /// The client has closed its sending side.
    HalfClosed,
    /// The client has sent as much as is kept.
    Full,
}

impl<'l, 'c> RequestBody<'l, 'c> {
    /// The body of the request whose head was read from `input` last.
    pub fn new(io: &'l ExchangeIo<'c>, input: &'l mut Input) -> Self {
        let time_left = io.core.timeouts().body_progress;
        Self {
            io,
            input,
            deadline: None,
            time_left,
            is_tunnel: false,
            bytes_left: u64::MAX,
            is_started: false,
        }
    }

    /// Whether it can be read from its beginning: none of it was taken, or there is none.
    pub fn is_whole(&self) -> bool {
        !self.is_started || self.length() == BodyLength::None
    }

    /// From now on at most so many bytes are taken; more are [`HttpError::BodyTooLarge`], at once where the head declares them.
    pub fn limit(&mut self, bytes: u64) -> Result<(), HttpError> {
        self.bytes_left = bytes;
        match self.length() {
            BodyLength::Known(length) if length > bytes => Err(HttpError::BodyTooLarge),
            BodyLength::None | BodyLength::Known(_) | BodyLength::Chunked => Ok(()),
        }
    }

    /// The length that the head declares.
    pub fn length(&self) -> BodyLength {
        self.io.codec.borrow().request_body()
    }

    /// Whether all of it has arrived. Of chunks that is not known before they are read.
    pub fn is_buffered(&self) -> bool {
        if self.io.codec.borrow().ends_with_input() {
            return true;
        }
        match self.length() {
            BodyLength::None => true,
            BodyLength::Known(length) => self.input.unread().len() as u64 >= length,
            BodyLength::Chunked => false,
        }
    }

    /// Restarts the time for a handler that is waited for.
    pub fn expect_handler_within(&self, time: Duration) {
        self.io.handler_time.set(time);
        self.io.deadline.renew(Waiting::Handler, time);
    }

    /// Whether the client waits for 100 before it sends the body.
    pub fn expects_continue(&self) -> bool {
        self.io.codec.borrow().expects_continue()
    }

    /// Appends bytes that have already arrived, at most `room`; `true` when the body is at its end.
    pub fn take_ready(&mut self, into: &mut Vec<u8>, room: usize) -> Result<bool, HttpError> {
        let mut left = room;
        loop {
            if self.is_tunnel {
                let taken = self.input.unread().len().min(left);
                into.extend_from_slice(self.input.unread().get(..taken).unwrap_or_default());
                self.input.consume(taken);
                return Ok(false);
            }
            let mut codec = self.io.codec.borrow_mut();
            let unread = self.input.unread();
            // A body's end needs no room.
            if left < UPLOAD_PIECE_BYTES_MIN && !codec.is_at_end_of_body(unread) {
                return Ok(false);
            }
            // So that no more than the room is taken. Data begins within that, so where none does, what is
            // missing is the end of the trailers.
            let offered = unread.get(..left).unwrap_or(unread);
            let read = match codec.read_body(offered) {
                Ok(BodyRead::NeedMore) if offered.len() < unread.len() => codec.read_body(unread),
                read => read,
            };
            match read.map_err(HttpError::Malformed)? {
                BodyRead::End { consumed } => {
                    self.is_started = true;
                    self.input.consume(consumed);
                    return Ok(true);
                }
                BodyRead::Data { at, consumed } => {
                    self.is_started = true;
                    let data = unread.get(at).unwrap_or_default();
                    let left_of_body = self.bytes_left.checked_sub(data.len() as u64);
                    self.bytes_left = left_of_body.ok_or(HttpError::BodyTooLarge)?;
                    into.extend_from_slice(data);
                    left = left.saturating_sub(data.len());
                    self.input.consume(consumed);
                }
                BodyRead::NeedMore => return Ok(false),
            }
        }
    }

    /// Waits until the whole body is buffered and unread, or as much of it as may be held: `bytes`, in steps for which
    /// `may_hold` returns true. `true` if the whole body is buffered.
    pub async fn buffer_whole(
        &mut self,
        bytes: usize,
        mut may_hold: impl FnMut(usize) -> bool,
    ) -> Result<bool, HttpError> {
        let mut look = self.io.codec.borrow().body_end();
        loop {
            if self.io.codec.borrow().has_body_in(self.input.unread(), &mut look) {
                return Ok(true);
            }
            let held = self.input.unread().len();
            if held >= bytes {
                return Ok(false);
            }
            if self.input.room() == 0 {
                let more = self.input.bytes_held();
                if !may_hold(more) {
                    return Ok(false);
                }
                self.input.widen(more * 2);
            }
            if self.fill().await? == 0 && !self.ends_with_input() {
                return Err(HttpError::ClientGone);
            }
        }
    }

    /// Whether the whole body is buffered and unread.
    pub fn has_arrived(&self) -> bool {
        let codec = self.io.codec.borrow();
        self.is_buffered() || codec.has_body_in(self.input.unread(), &mut codec.body_end())
    }

    fn ends_with_input(&self) -> bool {
        self.io.codec.borrow().ends_with_input()
    }

    /// Waits for more of the body and appends at most `room` bytes, which must be at least
    /// [`UPLOAD_PIECE_BYTES_MIN`]; `true` when it is at its end. In a tunnel the end is the client's closing of its side.
    pub async fn next(&mut self, into: &mut Vec<u8>, room: usize) -> Result<bool, HttpError> {
        let before = into.len();
        loop {
            if self.take_ready(into, room)? {
                return Ok(true);
            }
            if into.len() > before {
                return Ok(false);
            }
            if self.is_large() {
                self.input.widen(UPLOAD_PIECE_BYTES_MAX);
            }
            match self.fill().await? {
                0 if self.is_tunnel => return Ok(true),
                0 if self.ends_with_input() => {}
                0 => return Err(HttpError::ClientGone),
                // A handler cannot answer a request that is still arriving; a slow client has a deadline of its own.
                _ => self.io.deadline.renew(Waiting::Handler, self.io.handler_time.get()),
            }
        }
    }

    /// Reads more, for as long as the client may take; returns how many bytes.
    async fn fill(&mut self) -> Result<usize, HttpError> {
        let waiting = if self.is_tunnel { Waiting::Nothing } else { Waiting::Body };
        let deadline = self.deadline.get_or_insert_with(|| self.io.core.deadline());
        deadline.set(waiting, self.time_left);
        let mut waits_since = None;
        let count = poll_fn(|context| {
            let polled = self.input.poll_fill(&mut self.io.socket.borrow_mut(), context);
            if polled.is_pending() {
                waits_since.get_or_insert_with(Instant::now);
            }
            // Once the response is on its way, how long both directions last is the handler's decision.
            let is_bounded = !self.io.is_responding.get();
            if polled.is_pending() && is_bounded && deadline.poll_over(context) {
                return Poll::Ready(Err(HttpError::BodyTimeout));
            }
            polled.map_err(|_| HttpError::ClientGone)
        })
        .await?;
        deadline.clear();
        let waited = waits_since.map_or(Duration::ZERO, |since: Instant| since.elapsed());
        // A client that sends a byte now and then would otherwise hold an application's slot for as long as it likes.
        if waited > self.time_left && waiting == Waiting::Body && !self.io.is_responding.get() {
            return Err(HttpError::BodyTimeout);
        }
        let earned = BODY_BYTE_TIME.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
        let most = self.io.core.timeouts().body_progress;
        self.time_left = self.time_left.saturating_sub(waited).saturating_add(earned).min(most);
        Ok(count)
    }

    /// Whether reading in larger pieces pays.
    fn is_large(&self) -> bool {
        match self.length() {
            BodyLength::None => false,
            BodyLength::Known(length) => length > UPLOAD_PIECE_BYTES_MAX as u64,
            BodyLength::Chunked => true,
        }
    }

    /// Waits until some of the body has arrived, however long that takes.
    pub async fn started(&mut self) -> Result<(), HttpError> {
        poll_fn(|context| {
            if !self.input.is_empty() {
                return Poll::Ready(Ok(()));
            }
            match ready!(self.input.poll_fill(&mut self.io.socket.borrow_mut(), context)) {
                Ok(0) if self.ends_with_input() => Poll::Ready(Ok(())),
                Ok(0) | Err(_) => Poll::Ready(Err(HttpError::ClientGone)),
                Ok(_) => Poll::Ready(Ok(())),
            }
        })
        .await
    }

    /// Ends when the client has left; see [`RequestBody::gone_or`].
    pub async fn gone(&mut self) {
        self.gone_or(|| {}).await;
    }

    /// Ends when the client has left: its connection was reset. Bytes that arrive meanwhile are kept, as many as a buffer
    /// takes. A client that closes its sending side still reads its response (RFC 9112 section 9.6 has the server do the
    /// same), or has left, which only writing to it shows: `half_closed` is called then. If the response is an event stream,
    /// the client has left: such a stream has no end that it could wait for.
    pub async fn gone_or(&mut self, half_closed: impl FnOnce()) {
        // A stream's client has ended its side with its request, and says when it leaves.
        let stream = self.io.socket.borrow().http2().cloned();
        if let Some(stream) = stream {
            return poll_fn(|context| stream.poll_reset(context)).await;
        }
        match poll_fn(|context| self.poll_read_end(context)).await {
            ReadEnd::Reset => return,
            ReadEnd::HalfClosed if self.io.is_event_stream.get() => return,
            ReadEnd::HalfClosed => half_closed(),
            ReadEnd::Full => {}
        }
        // No further read would show it.
        while !self.io.socket.borrow().is_reset() {
            tokio::time::sleep(GONE_LOOK_PERIOD).await;
        }
    }

    /// Reads until no more can be read.
    fn poll_read_end(&mut self, context: &mut Context<'_>) -> Poll<ReadEnd> {
        while self.input.unread().len() < READ_BUFFER_BYTES {
            match ready!(self.input.poll_fill(&mut self.io.socket.borrow_mut(), context)) {
                Ok(0) => return Poll::Ready(ReadEnd::HalfClosed),
                Err(_) => return Poll::Ready(ReadEnd::Reset),
                Ok(_) => {}
            }
        }
        Poll::Ready(ReadEnd::Full)
    }

    /// Calls `read` with the lines of the trailer fields, once the body is at its end.
    pub fn with_trailers<T>(&self, read: impl FnOnce(&[u8]) -> T) -> T {
        read(self.io.codec.borrow().trailers())
    }

    /// Whether a body that is at its end has trailers that are forwarded.
    pub fn has_trailers(&self) -> bool {
        self.with_trailers(|lines| {
            let mut is_any = false;
            passed_on_trailers(lines, |_| is_any = true);
            is_any
        })
    }

    /// Treats the client's further bytes as another protocol's.
    pub fn become_tunnel(&mut self) {
        self.is_tunnel = true;
    }
}
