//! One request that its handler answers piece by piece: the body as it comes, the way back to the client.
//!
//! What handlers that wait for others see of a connection; they do not know the protocol version. Both
//! halves may be polled by one task in turn, so a body can come while an answer goes. Nothing is read
//! that nobody asked for, except to learn that the client has gone.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use onehop_http1::{AnswerHead, BodyLength, BodyRead, ServerCodec};

use tokio::io::AsyncWrite;

use super::deadline::{Deadline, Waiting};
use super::desk::Input;
use super::socket::Socket;
use super::write::Writing;
use crate::limits::{
    BODY_BYTE_TIME, GONE_LOOK_PERIOD, READ_BUFFER_BYTES, UPLOAD_PIECE_BYTES_MAX, UPLOAD_PIECE_BYTES_MIN,
    WRITE_GATHER_BYTES_MAX,
};
use crate::request::admit::Pass;
use crate::request::answer::Answer;
use crate::request::core::Core;
use crate::request::handle::encode::{self, Coder};
use crate::request::hop::fields::passed_on_trailers;
use crate::request::rescue::Fault;
use crate::request::trip::Trip;

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
    /// The gates that the request is behind.
    pub(super) pass: RefCell<Pass<'c>>,
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
    /// Compresses the body on its way.
    coder: Option<Box<Coder>>,
    /// The coder holds bytes that were handed to it.
    is_coding: bool,
    /// Bytes of the body that were handed over.
    pub(crate) sent: u64,
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

impl<'l, 'c> Upload<'l, 'c> {
    pub(super) fn new(line: &'l Line<'c>, input: &'l mut Input) -> Self {
        let patience = line.core.shared.timeouts.body_progress;
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
    pub(crate) fn take_ready(&mut self, into: &mut Vec<u8>, room: usize) -> Result<bool, Fault> {
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
            match read.map_err(Fault::Malformed)? {
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

    /// Waits for more of the body and appends at most `room` bytes, which must be at least
    /// [`UPLOAD_PIECE_BYTES_MIN`]; `true` when it is at its end. In a tunnel the end is the client's closing of its side.
    pub(crate) async fn next(&mut self, into: &mut Vec<u8>, room: usize) -> Result<bool, Fault> {
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
            let waiting = if self.is_tunnel { Waiting::Nothing } else { Waiting::Body };
            let deadline = self.deadline.get_or_insert_with(|| Deadline::new(self.line.core));
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
                    return Poll::Ready(Err(Fault::BodyTimeout));
                }
                polled.map_err(|_| Fault::ClientGone)
            })
            .await?;
            deadline.clear();
            let waited = waits_since.map_or(Duration::ZERO, |since: Instant| since.elapsed());
            // Whoever sends a byte now and then would otherwise hold an application's place for as long as he likes.
            if waited > self.patience && waiting == Waiting::Body && !self.line.is_answering.get() {
                return Err(Fault::BodyTimeout);
            }
            let earned = BODY_BYTE_TIME.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX));
            let most = self.line.core.shared.timeouts.body_progress;
            self.patience = self.patience.saturating_sub(waited).saturating_add(earned).min(most);
            match count {
                0 if self.is_tunnel => return Ok(true),
                0 => return Err(Fault::ClientGone),
                // A handler cannot answer a request that still comes; a slow one has a deadline of its own.
                _ => self.line.deadline.renew(Waiting::Handler, self.line.handler_time.get()),
            }
        }
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
    pub(crate) async fn begun(&mut self) -> Result<(), Fault> {
        poll_fn(|context| {
            if !self.input.is_empty() {
                return Poll::Ready(Ok(()));
            }
            match ready!(self.input.poll_fill(&mut self.line.socket.borrow_mut(), context)) {
                Ok(0) | Err(_) => Poll::Ready(Err(Fault::ClientGone)),
                Ok(_) => Poll::Ready(Ok(())),
            }
        })
        .await
    }

    /// Ends when the client has closed its side or is gone. Bytes that come meanwhile are kept, as many as a
    /// buffer takes; a client that has sent more is looked at from time to time.
    pub(crate) async fn gone(&mut self) {
        let is_gone = poll_fn(|context| self.poll_gone(context)).await;
        while !is_gone && !self.line.socket.borrow().is_closed_by_peer() {
            tokio::time::sleep(GONE_LOOK_PERIOD).await;
        }
    }

    /// `true`: the client is gone. `false`: it has sent as much as is kept.
    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        while self.input.unread().len() < READ_BUFFER_BYTES {
            match ready!(self.input.poll_fill(&mut self.line.socket.borrow_mut(), context)) {
                Ok(0) | Err(_) => return Poll::Ready(true),
                Ok(_) => {}
            }
        }
        Poll::Ready(false)
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
            coder: None,
            is_coding: false,
            sent: 0,
        }
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
    pub(crate) fn encode(&mut self, trip: &Trip<'_>, answer: &mut Answer, length: BodyLength) {
        let length = match length {
            BodyLength::Known(length) => Some(length),
            BodyLength::Chunked => None,
            BodyLength::None => return,
        };
        self.coder = encode::in_pieces(trip, answer, length).map(Box::new);
    }

    /// Puts the answer's head on its way; its body is not looked at.
    pub(crate) fn head(&mut self, answer: &Answer, length: BodyLength) {
        let mut codec = self.line.codec.borrow_mut();
        let upgrade = answer.status == 101;
        // A request whose body is not there yet may still be answered whole before it is: then what follows of
        // it cannot be told from a next request, and the client should know before it sends one.
        let may_end_early = !codec.body_is_read() && !upgrade;
        if answer.close || may_end_early || self.line.core.shared.is_stopping() {
            codec.close_after_answer();
        }
        let length = if self.coder.is_some() { BodyLength::Chunked } else { length };
        let has_date = answer.fields.get("date").is_some();
        self.line.deadline.clear();
        self.line.core.with_date(|date| {
            let date = if has_date { &[][..] } else { date };
            let (status, fields) = (answer.status, answer.fields.lines());
            codec.write_head(self.output, AnswerHead { status, fields, date, body: length, upgrade });
        });
        // What may go on for ever is in flight no longer.
        let lasts = upgrade || answer.is_event_stream();
        self.line.pass.borrow_mut().answered(answer.status, lasts);
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

    /// The body is at its end, with these trailer lines; the connection writes the end.
    pub(crate) fn whole(&mut self, trailers: &[u8]) {
        // Coders fail where memory does, which does not come back here.
        if let Some(rest) = self.coder.take().and_then(|coder| coder.finish().ok()) {
            self.sent += rest.len() as u64;
            self.line.codec.borrow_mut().write_data(self.output, &rest);
        }
        self.trailers.extend_from_slice(trailers);
        self.state = Sent::Whole;
    }

    /// Says that nothing more comes, in a tunnel; the client's own direction stays open.
    pub(crate) async fn finish_sending(&mut self) -> io::Result<()> {
        self.flush().await?;
        poll_fn(|context| Pin::new(&mut **self.line.socket.borrow_mut()).poll_shutdown(context)).await
    }

    /// The lines that [`Download::whole`] was given.
    pub(super) fn into_trailers(self) -> Vec<u8> {
        self.trailers
    }

    /// Ends when the server stops; for what would go on for ever.
    pub(crate) fn stopping(&self) -> impl Future<Output = ()> + use<'c> {
        let core = self.line.core;
        let deadline = Deadline::new(core);
        async move {
            // A stop wakes whoever waits for a next request.
            deadline.set(Waiting::Idle, Duration::from_secs(u64::from(u32::MAX)));
            poll_fn(|context| {
                let over = deadline.poll_over(context);
                if over || core.shared.is_stopping() { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
    }

    /// Ends so much after the server begins to stop that a worker, which is told then, has closed its tunnels.
    pub(crate) fn farewell_over(&self) -> impl Future<Output = ()> + use<'c> {
        let (core, stopping) = (self.line.core, self.stopping());
        async move {
            stopping.await;
            tokio::time::sleep(core.shared.farewell()).await;
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

    /// Writes what was gathered, and then `bytes`.
    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Self { line, output, state, .. } = self;
        // A tunnel holds one buffer, however long its client pauses.
        let writing = if *state == Sent::Upgrade { Writing::patient() } else { Writing::default() };
        let mut piece = Piece { output, writing };
        poll_fn(|context| {
            let mut socket = line.socket.borrow_mut();
            piece.writing.poll(&mut socket, line.deadline, context, piece.output, bytes)
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
