//! One request that its handler answers piece by piece: the body as it comes, the way back to the client.
//!
//! What handlers that wait for others see of a connection; they do not know the protocol version. Both
//! halves may be polled by one task in turn, so a body can come while an answer goes. Nothing is read
//! that nobody asked for, except to learn that the client has gone.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use onehop_http1::{AnswerHead, BodyLength, BodyRead, ServerCodec};
use onehop_limits::client::network;
use onehop_message::error::HttpError;
use onehop_message::forwarding::passed_on_trailers;
use onehop_message::response::Response;
use tokio::io::AsyncWrite;

use super::slow_client::{Kept, SlowClient};
use crate::limits::{
    BODY_BYTE_TIME, GONE_LOOK_PERIOD, READ_BUFFER_BYTES, RESPONSE_BUFFER_BYTES_MAX, UPLOAD_PIECE_BYTES_MAX,
    UPLOAD_PIECE_BYTES_MIN, WRITE_GATHER_BYTES_MAX,
};
use crate::request::admission::Permits;
use crate::request::context::RequestContext;
use crate::request::core::Core;
use crate::request::handle::encode::{self, Coder, InPieces};
use onehop_connection::buffers::Input;
use onehop_connection::deadline::{Deadline, Waiting};
use onehop_connection::slow_clients::{Reservation, Resource};
use onehop_connection::socket::Socket;
use onehop_connection::write::Writing;

/// What both halves share.
pub(crate) struct Line<'c> {
    pub(super) core: &'c Rc<Core>,
    pub(super) socket: RefCell<&'c mut Socket>,
    pub(super) codec: RefCell<&'c mut ServerCodec>,
    pub(super) deadline: &'c Deadline,
    /// How long a handler may take from the last byte of its request on.
    pub(super) handler_time: Cell<Duration>,
    /// The answer's head is out.
    pub(super) is_answering: Cell<bool>,
    /// The answer is a stream of events, which has no end that its client could wait for.
    pub(super) is_event_stream: Cell<bool>,
    /// The permits that the request holds.
    pub(super) permits: RefCell<Permits<'c>>,
    /// Its body comes while it has a place; until its answer begins.
    pub(super) streaming: RefCell<Option<Reservation>>,
    /// What its body takes that arrived before.
    pub(super) buffered: RefCell<Option<Reservation>>,
    /// The client's address, as far as its word or that of who stands in front of it counts.
    pub(super) address: Cell<Option<u64>>,
}

/// The request's body on its way from the client.
pub(crate) struct Upload<'l, 'c> {
    line: &'l Line<'c>,
    input: &'l mut Input,
    /// Apart from the connection's own, which waits for the answer's way back at the same time.
    deadline: Option<Deadline>,
    /// How much longer the client is waited for, in all; what comes brings more.
    patience: Duration,
    is_tunnel: bool,
    /// Some of it was taken.
    is_begun: bool,
}

/// The way to the client.
pub(crate) struct Download<'l, 'c> {
    line: &'l Line<'c>,
    output: &'l mut Vec<u8>,
    state: Sent,
    trailers: Vec<u8>,
    /// The body is encoded on its way, or would be if there were one.
    is_encoded: bool,
    /// Compresses it.
    coder: Option<Box<Coder>>,
    /// The coder holds bytes that were handed to it.
    is_coding: bool,
    /// Bytes of the body that were handed over.
    pub(crate) sent: u64,
    /// The place that it keeps, where others may wait for one.
    kept: Option<Kept>,
    /// What of it waits for its client in `output`, so that it can leave that place.
    spooled: Option<Reservation>,
    /// Its client is slow, and it may keep that place all the same.
    slow: Option<Reservation>,
    /// When its client counts as slow.
    slow_at: Option<Deadline>,
}

/// How far an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The client has not been told anything final.
    Nothing,
    /// The head is out, the body is not at its end.
    Head,
    /// All of it.
    Whole,
    /// The head of an upgrade: what follows is another protocol.
    Upgrade,
}

/// Why nothing more is read of a client.
enum Silence {
    /// Its connection was reset.
    Reset,
    /// It has closed its sending side.
    HalfClosed,
    /// It has sent as much as is kept.
    Full,
}

impl<'l, 'c> Upload<'l, 'c> {
    pub(super) fn new(line: &'l Line<'c>, input: &'l mut Input) -> Self {
        let patience = line.core.connection.timeouts().body_progress;
        Self { line, input, deadline: None, patience, is_tunnel: false, is_begun: false }
    }

    /// Whether it can be had from its beginning: nobody has taken any of it, or there is none.
    pub(crate) fn is_whole(&self) -> bool {
        !self.is_begun || self.length() == BodyLength::None
    }

    /// As the head declared it.
    pub(crate) fn length(&self) -> BodyLength {
        self.line.codec.borrow().request_body()
    }

    /// Whether all of it has arrived. (Of chunks that is not known before they are read.)
    pub(crate) fn is_here(&self) -> bool {
        match self.length() {
            BodyLength::None => true,
            BodyLength::Known(length) => self.input.unread().len() as u64 >= length,
            BodyLength::Chunked => false,
        }
    }

    /// If a handler is waited for, the time for it begins now and is so much.
    pub(crate) fn expect_handler_within(&self, time: Duration) {
        self.line.handler_time.set(time);
        self.line.deadline.renew(Waiting::Handler, time);
    }

    /// Whether the client waits for 100 before it sends its body.
    pub(crate) fn expects_continue(&self) -> bool {
        self.line.codec.borrow().expects_continue()
    }

    /// Appends what has arrived already, at most `room` bytes; `true` when the body is at its end.
    pub(crate) fn take_ready(&mut self, into: &mut Vec<u8>, room: usize) -> Result<bool, HttpError> {
        let mut left = room;
        loop {
            if self.is_tunnel {
                let taken = self.input.unread().len().min(left);
                into.extend_from_slice(self.input.unread().get(..taken).unwrap_or_default());
                self.input.consume(taken);
                return Ok(false);
            }
            let mut codec = self.line.codec.borrow_mut();
            // A body's end needs no room.
            if left < UPLOAD_PIECE_BYTES_MIN && !codec.body_is_read() {
                return Ok(false);
            }
            // So that no more than the room is taken. Data begins within that, so where none does, what is
            // missing is the end of the trailers.
            let unread = self.input.unread();
            let offered = unread.get(..left).unwrap_or(unread);
            let read = match codec.read_body(offered) {
                Ok(BodyRead::NeedMore) if offered.len() < unread.len() => codec.read_body(unread),
                read => read,
            };
            match read.map_err(HttpError::Malformed)? {
                BodyRead::End { consumed } => {
                    self.is_begun = true;
                    self.input.consume(consumed);
                    return Ok(true);
                }
                BodyRead::Data { at, consumed } => {
                    self.is_begun = true;
                    let data = unread.get(at).unwrap_or_default();
                    into.extend_from_slice(data);
                    left = left.saturating_sub(data.len());
                    self.input.consume(consumed);
                }
                BodyRead::NeedMore => return Ok(false),
            }
        }
    }

    /// Waits until the whole body is there and unread, or as much of it as may be held: `bytes`, in steps for which
    /// `may_hold` says so. `true` where all of it is there.
    pub(crate) async fn arrive(
        &mut self,
        bytes: usize,
        mut may_hold: impl FnMut(usize) -> bool,
    ) -> Result<bool, HttpError> {
        let mut end = self.line.codec.borrow().body_end();
        loop {
            if end.is_in(self.input.unread()) {
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
            if self.fill().await? == 0 {
                return Err(HttpError::ClientGone);
            }
        }
    }

    /// Whether the whole body is there and unread.
    pub(crate) fn has_arrived(&self) -> bool {
        self.is_here() || self.line.codec.borrow().body_end().is_in(self.input.unread())
    }

    /// Waits for more of the body and appends at most `room` bytes, which must be at least
    /// [`UPLOAD_PIECE_BYTES_MIN`]; `true` when it is at its end. In a tunnel the end is the client's closing of its side.
    pub(crate) async fn next(&mut self, into: &mut Vec<u8>, room: usize) -> Result<bool, HttpError> {
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
                0 => return Err(HttpError::ClientGone),
                // A handler cannot answer a request that still comes; a slow one has a deadline of its own.
                _ => self.line.deadline.renew(Waiting::Handler, self.line.handler_time.get()),
            }
        }
    }

    /// Waits until more has come, for as long as the client may take; how many bytes that were.
    async fn fill(&mut self) -> Result<usize, HttpError> {
        let waiting = if self.is_tunnel { Waiting::Nothing } else { Waiting::Body };
        let deadline = self.deadline.get_or_insert_with(|| self.line.core.connection.deadline());
        deadline.set(waiting, self.patience);
        let mut waits_since = None;
        let count = poll_fn(|context| {
            let polled = self.input.poll_fill(&mut self.line.socket.borrow_mut(), context);
            if polled.is_pending() {
                waits_since.get_or_insert_with(Instant::now);
            }
            // Both ways may go on for long once the answer goes: what it waits for is the handler's to say.
            let is_bounded = !self.line.is_answering.get();
            if polled.is_pending() && is_bounded && deadline.poll_over(context) {
                return Poll::Ready(Err(HttpError::BodyTimeout));
            }
            polled.map_err(|_| HttpError::ClientGone)
        })
        .await?;
        deadline.clear();
        let waited = waits_since.map_or(Duration::ZERO, |since: Instant| since.elapsed());
        // Whoever sends a byte now and then would otherwise hold an application's place for as long as he likes.
        if waited > self.patience && waiting == Waiting::Body && !self.line.is_answering.get() {
            return Err(HttpError::BodyTimeout);
        }
        let earned = BODY_BYTE_TIME.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
        let most = self.line.core.connection.timeouts().body_progress;
        self.patience = self.patience.saturating_sub(waited).saturating_add(earned).min(most);
        Ok(count)
    }

    /// Whether reading it in larger pieces pays.
    fn is_large(&self) -> bool {
        match self.length() {
            BodyLength::None => false,
            BodyLength::Known(length) => length > UPLOAD_PIECE_BYTES_MAX as u64,
            BodyLength::Chunked => true,
        }
    }

    /// Waits until something of the body has come, however long that takes.
    pub(crate) async fn begun(&mut self) -> Result<(), HttpError> {
        poll_fn(|context| {
            if !self.input.is_empty() {
                return Poll::Ready(Ok(()));
            }
            match ready!(self.input.poll_fill(&mut self.line.socket.borrow_mut(), context)) {
                Ok(0) | Err(_) => Poll::Ready(Err(HttpError::ClientGone)),
                Ok(_) => Poll::Ready(Ok(())),
            }
        })
        .await
    }

    /// Ends when the client is gone; see [`Upload::gone_or`].
    pub(crate) async fn gone(&mut self) {
        self.gone_or(|| {}).await;
    }

    /// Ends when the client is gone: its connection was reset. Bytes that come meanwhile are kept, as many as a buffer
    /// takes. A client that closes its sending side still reads its answer (RFC 9112 section 9.6 has the server do the
    /// same), or has left, which only writing to it tells: `half_closed` is called then. Of an event stream that began
    /// before, it has left: such a stream has no end that it could wait for.
    pub(crate) async fn gone_or(&mut self, half_closed: impl FnOnce()) {
        match poll_fn(|context| self.poll_silence(context)).await {
            Silence::Reset => return,
            Silence::HalfClosed if self.line.is_event_stream.get() => return,
            Silence::HalfClosed => half_closed(),
            Silence::Full => {}
        }
        // Nothing is read any more that would tell.
        while !self.line.socket.borrow().is_reset() {
            tokio::time::sleep(GONE_LOOK_PERIOD).await;
        }
    }

    /// Reads until nothing more can be read.
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<Silence> {
        while self.input.unread().len() < READ_BUFFER_BYTES {
            match ready!(self.input.poll_fill(&mut self.line.socket.borrow_mut(), context)) {
                Ok(0) => return Poll::Ready(Silence::HalfClosed),
                Err(_) => return Poll::Ready(Silence::Reset),
                Ok(_) => {}
            }
        }
        Poll::Ready(Silence::Full)
    }

    /// The trailer fields' lines, once the body is at its end.
    pub(crate) fn with_trailers<T>(&self, read: impl FnOnce(&[u8]) -> T) -> T {
        read(self.line.codec.borrow().trailers())
    }

    /// Whether a body that is at its end has trailers that are passed on.
    pub(crate) fn has_trailers(&self) -> bool {
        self.with_trailers(|lines| {
            let mut is_any = false;
            passed_on_trailers(lines, |_| is_any = true);
            is_any
        })
    }

    /// From now on the client's bytes are another protocol's.
    pub(crate) fn become_tunnel(&mut self) {
        self.is_tunnel = true;
    }
}

impl<'l, 'c> Download<'l, 'c> {
    pub(super) fn new(line: &'l Line<'c>, output: &'l mut Vec<u8>) -> Self {
        Self {
            line,
            output,
            state: Sent::Nothing,
            trailers: Vec::new(),
            is_encoded: false,
            coder: None,
            is_coding: false,
            sent: 0,
            kept: None,
            spooled: None,
            slow: None,
            slow_at: None,
        }
    }

    /// The answer comes piece by piece to a client with this address, and keeps this place until it is over.
    pub(crate) fn keeps(&mut self, kept: Option<Kept>, address: Option<IpAddr>) {
        self.kept = kept;
        self.line.address.set(address.map(|address| network(Some(address))));
    }

    /// How far the answer is.
    pub(crate) fn state(&self) -> Sent {
        self.state
    }

    /// From now on the handler is waited for, at most so long; [`Download::poll_late`] tells.
    pub(crate) fn expect_handler_within(&self, time: Duration) {
        self.line.handler_time.set(time);
        self.line.deadline.set(Waiting::Handler, time);
    }

    /// Whether the handler is late.
    pub(crate) fn poll_late(&self, context: &mut Context<'_>) -> bool {
        self.line.deadline.poll_over(context)
    }

    /// Tells a client that waits for it to send its body.
    pub(crate) async fn send_continue(&mut self) -> io::Result<()> {
        self.line.codec.borrow_mut().write_continue(self.output);
        self.flush_before_answer().await
    }

    /// Sends an informational answer, 102 to 199 but 101, with whole field lines.
    pub(crate) async fn informational(&mut self, status: u16, fields: &[u8]) -> io::Result<()> {
        self.line.codec.borrow_mut().write_informational(self.output, status, fields);
        self.flush_before_answer().await
    }

    /// The body that follows is compressed where `encode` says so and the client accepts it. Before the changes
    /// of fields that wait for the answer.
    pub(crate) fn encode(&mut self, context: &RequestContext<'_>, answer: &mut Response, length: BodyLength) {
        let length = match length {
            BodyLength::Known(length) => Some(length),
            BodyLength::Chunked => None,
            BodyLength::None => return,
        };
        match encode::in_pieces(context, answer, length, &self.line.core.shared.coders) {
            InPieces::Plain => {}
            InPieces::Announced => self.is_encoded = true,
            InPieces::Encoded(coder) => {
                self.is_encoded = true;
                self.coder = Some(Box::new(coder));
            }
        }
    }

    /// Puts the answer's head on its way; its body is not looked at.
    pub(crate) fn head(&mut self, answer: &Response, length: BodyLength) {
        let mut codec = self.line.codec.borrow_mut();
        let upgrade = answer.status == 101;
        // A request whose body is not there yet may still be answered whole before it is: then what follows of
        // it cannot be told from a next request, and the client should know before it sends one.
        let may_end_early = !codec.body_is_read() && !upgrade;
        if answer.close || may_end_early || self.line.core.connection.is_stopping() {
            codec.close_after_answer();
        }
        let length = if self.is_encoded { BodyLength::Chunked } else { length };
        let has_date = answer.fields.get("date").is_some();
        self.line.deadline.clear();
        self.line.core.connection.with_date(|date| {
            let date = if has_date { &[][..] } else { date };
            let (status, fields) = (answer.status, answer.fields.lines());
            codec.write_head(self.output, AnswerHead { status, fields, date, body: length, upgrade });
        });
        // What may go on for ever is in flight no longer.
        let is_event_stream = answer.is_event_stream();
        self.line.is_event_stream.set(is_event_stream);
        self.line.streaming.take();
        let lasts = upgrade || is_event_stream;
        self.line.permits.borrow_mut().answered(answer.status, lasts);
        self.state = if upgrade { Sent::Upgrade } else { Sent::Head };
        self.line.is_answering.set(true);
    }

    /// Sends bytes of the body: they are gathered, and written when they are many. Copying a piece once more
    /// costs a tenth of a system call of its own. Waits until the client has taken what is written.
    pub(crate) async fn data(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.state == Sent::Upgrade {
            self.sent += bytes.len() as u64;
            return self.write(bytes).await;
        }
        let Some(coder) = &mut self.coder else { return self.gather(bytes).await };
        let coded = coder.push(bytes)?;
        self.is_coding = true;
        self.gather(&coded).await
    }

    /// The same for bytes of which it is known that they belong to the body, as its head has announced it: a piece that
    /// is half of a gathered write is written from where it lies.
    pub(crate) async fn proven_data(&mut self, bytes: &[u8]) -> io::Result<()> {
        let is_short = bytes.len() < WRITE_GATHER_BYTES_MAX / 2;
        if is_short || self.coder.is_some() || self.state == Sent::Upgrade {
            return self.data(bytes).await;
        }
        self.sent += bytes.len() as u64;
        self.line.codec.borrow_mut().write_data_frame(self.output, bytes.len() as u64);
        self.write(bytes).await?;
        self.line.codec.borrow_mut().write_data_frame_end(self.output);
        Ok(())
    }

    async fn gather(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sent += bytes.len() as u64;
        if self.output.len() + bytes.len() > WRITE_GATHER_BYTES_MAX {
            self.write(&[]).await?;
        }
        self.line.codec.borrow_mut().write_data(self.output, bytes);
        Ok(())
    }

    /// The body is at its end, with these trailer lines; the connection writes the end. After an error the body must be cut
    /// off: its end is missing.
    pub(crate) fn whole(&mut self, trailers: &[u8]) -> Result<(), HttpError> {
        if let Some(coder) = self.coder.take() {
            let rest = coder.finish().map_err(gone)?;
            self.sent += rest.len() as u64;
            self.line.codec.borrow_mut().write_data(self.output, &rest);
        }
        self.trailers.extend_from_slice(trailers);
        self.state = Sent::Whole;
        Ok(())
    }

    /// Says that nothing more comes, in a tunnel; the client's own direction stays open.
    pub(crate) async fn finish_sending(&mut self) -> io::Result<()> {
        self.flush().await?;
        poll_fn(|context| Pin::new(&mut **self.line.socket.borrow_mut()).poll_shutdown(context)).await
    }

    /// The lines that [`Download::whole`] was given, and what counts for as long as its client has not taken all of it.
    pub(super) fn into_rest(self) -> (Vec<u8>, Option<Reservation>) {
        (self.trailers, self.spooled)
    }

    /// Ends when the server stops; for what would go on for ever.
    pub(crate) fn stopping(&self) -> impl Future<Output = ()> + use<'c> {
        let core = self.line.core;
        let deadline = core.connection.deadline();
        async move {
            // A stop wakes whoever waits for a next request.
            deadline.set(Waiting::Idle, Duration::from_secs(u64::from(u32::MAX)));
            poll_fn(|context| {
                let over = deadline.poll_over(context);
                if over || core.connection.is_stopping() { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
    }

    /// Ends so much after the server begins to stop that a worker, which is told then, has closed its tunnels.
    pub(crate) fn farewell_over(&self) -> impl Future<Output = ()> + use<'c> {
        let (core, stopping) = (self.line.core, self.stopping());
        async move {
            stopping.await;
            tokio::time::sleep(core.connection.shutdown_grace()).await;
        }
    }

    /// Writes what was gathered.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        if self.is_coding
            && let Some(coder) = &mut self.coder
        {
            self.is_coding = false;
            let coded = coder.flush()?;
            self.gather(&coded).await?;
        }
        if self.output.is_empty() { Ok(()) } else { self.write(&[]).await }
    }

    /// Whether something of it waits for its client, although it need not be waited for.
    pub(crate) fn is_spooling(&self) -> bool {
        self.spooled.is_some() && !self.output.is_empty()
    }

    /// Writes what was gathered, and then `bytes`. What the client does not take at once stays, as far as that may be, in
    /// `output` where the answer keeps a place that cannot be given to others before its end.
    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let is_kept = matches!(self.kept, Some(Kept::Program(_) | Kept::Upstream(..)));
        if !is_kept || self.state != Sent::Head {
            return self.write_all(bytes).await;
        }
        let rest = self.write_now(bytes).await?;
        if rest.is_empty() && self.output.is_empty() {
            return Ok(());
        }
        if self.may_spool(self.output.len() + rest.len()) {
            self.output.extend_from_slice(rest);
            return Ok(());
        }
        self.write_all(rest).await
    }

    /// Writes what the socket takes at once; what is left of `bytes`.
    async fn write_now<'b>(&mut self, bytes: &'b [u8]) -> io::Result<&'b [u8]> {
        let Self { line, output, .. } = self;
        let gathered = output.len();
        let mut piece = Piece { output, writing: Writing::default() };
        let polled = poll_fn(|context| {
            let mut socket = line.socket.borrow_mut();
            Poll::Ready(piece.writing.poll(&mut socket, line.deadline, context, piece.output, bytes))
        })
        .await;
        if let Poll::Ready(written) = polled {
            return written.map(|()| &[][..]);
        }
        Ok(bytes.get(piece.writing.written().saturating_sub(gathered)..).unwrap_or_default())
    }

    fn may_spool(&mut self, bytes: usize) -> bool {
        if bytes > RESPONSE_BUFFER_BYTES_MAX {
            return false;
        }
        let (bytes, most) = (bytes as u64, self.line.core.connection.client_buffers_max());
        if let Some(spooled) = &mut self.spooled {
            let more = bytes.saturating_sub(spooled.amount());
            return more == 0 || spooled.grow(more, most);
        }
        let (slow, address) = (self.line.core.connection.slow_clients(), self.line.address.get());
        self.spooled = slow.take(Resource::Bytes, address, bytes, most);
        self.spooled.is_some()
    }

    /// Writes what waits for its client.
    pub(crate) async fn drain(&mut self) -> io::Result<()> {
        self.write_all(&[]).await
    }

    /// Writes what was gathered, and then `bytes`, and waits until the client has taken them.
    async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Self { line, output, state, kept, slow, slow_at, .. } = self;
        // A tunnel holds one buffer, however long its client pauses.
        let writing = if *state == Sent::Upgrade { Writing::unbounded() } else { Writing::default() };
        let mut piece = Piece { output, writing };
        let mut waiting = SlowClient::new(line, kept.as_ref(), slow, slow_at);
        let is_tunnel = *state == Sent::Upgrade;
        poll_fn(|context| {
            let mut socket = line.socket.borrow_mut();
            let polled = piece.writing.poll(&mut socket, line.deadline, context, piece.output, bytes);
            if polled.is_pending() && !is_tunnel && waiting.poll_too_slow(context) {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            polled
        })
        .await
    }

    /// Writes what stands before the answer. The handler's time does not run while the client takes it.
    async fn flush_before_answer(&mut self) -> io::Result<()> {
        let left = self.line.deadline.left();
        self.flush().await?;
        if let Some((Waiting::Handler, left)) = left {
            self.line.deadline.set(Waiting::Handler, left);
        }
        Ok(())
    }
}

/// What it means for the request that the rest of its answer cannot be sent.
pub(crate) fn gone(error: io::Error) -> HttpError {
    match error.kind() {
        encode::FAILURE => HttpError::EncodingFailed,
        io::ErrorKind::TimedOut => HttpError::ClientStalled,
        _ => HttpError::ClientGone,
    }
}

/// What is being written. However that ends, also where the one who wrote is dropped, nothing is written twice.
struct Piece<'o> {
    output: &'o mut Vec<u8>,
    writing: Writing,
}

impl Drop for Piece<'_> {
    fn drop(&mut self) {
        let written = self.writing.written().min(self.output.len());
        self.output.drain(..written);
    }
}

#[cfg(test)]
mod tests;
