//! A connection of HTTP/2 to an upstream, and its streams: each carries one request. They stay on their core.
//!
//! One task drives each connection. A connection takes requests until its peer says that it takes no more (GOAWAY), until it
//! is over, or until the pool has no more use for it; the streams that it has then go on to their ends.

mod driving;

use std::cell::{Cell, RefCell, RefMut};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use onehop_connection::buffers::Input;
use onehop_http2::client::{Ending, Pinger, RequestStream, Requests};
use onehop_http2::limits::UPSTREAM_STREAMS_MAX;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::Notify;

use crate::connection::ConnectionPermit;
use crate::limits::RESPONSE_CODEC_LIMITS;
use crate::ping_check::{Action, PingCheck};
use crate::transport::{Liveness, Transport};

pub(crate) use driving::begin;

type Bytes = onehop_http2::Transport<Transport>;

/// A connection that requests share.
pub(crate) struct Multiplexed {
    /// `None`: it takes no more requests.
    requests: RefCell<Option<Requests>>,
    transport: Bytes,
    /// Until the connection is over.
    permit: RefCell<Option<ConnectionPermit>>,
    /// The address at its other end; `None` for a Unix socket.
    pub(crate) address: Option<SocketAddr>,
    /// The generation of the peer's addresses that its own was last known to be among.
    pub(crate) generation: Cell<u64>,
    /// Streams that are open.
    streams: Cell<usize>,
    /// Streams that its peer took at once when the driver last ran; 0 if it takes no more.
    streams_max: Cell<usize>,
    /// Notified when the peer's settings have come, and when the connection is over.
    settled: Notify,
    /// When it last had a stream, or was made.
    pub(crate) idle_since: Cell<Instant>,
    /// It has carried a request.
    pub(crate) is_used: Cell<bool>,
    /// It waits for further requests once it has none.
    is_kept: bool,
    /// Notified when there is room for a stream, or one less to wait for.
    pub(crate) changed: RefCell<Weak<Notify>>,
    pinger: RefCell<Option<Pinger>>,
    ping_check: RefCell<PingCheck>,
    /// The peer answers no PING.
    is_lost: Cell<bool>,
    /// Notified when it is lost.
    lost: Rc<Notify>,
}

/// One request and its response.
pub struct Stream {
    connection: Rc<Multiplexed>,
    codec: RefCell<RequestStream>,
    is_kept: bool,
    pieces_taken: Cell<u64>,
}

impl Multiplexed {
    /// Takes no more requests; what it has goes on.
    pub(crate) fn retire(&self) {
        self.requests.take();
    }

    /// Notifies requests that wait if the peer takes another number of streams than before: none after its GOAWAY.
    fn note_streams_max(&self) {
        let max = self.requests.borrow().as_ref().map_or(0, Requests::streams_max);
        let streams_max = if self.is_open() { max } else { 0 };
        if self.streams_max.replace(streams_max) != streams_max {
            self.notify();
        }
    }

    fn notify(&self) {
        if let Some(changed) = self.changed.borrow().upgrade() {
            changed.notify_one();
        }
    }

    /// Asks a peer that has sent nothing for so long while a request waits, and gives up one that then stays silent.
    pub(crate) fn check_peer(&self, now: Instant, timeout: Duration) {
        let received = self.transport.received();
        match self.ping_check.borrow_mut().look(now, received, self.is_idle(), timeout) {
            Action::Nothing => {}
            Action::SendPing => {
                if let Some(pinger) = self.pinger.borrow_mut().as_mut() {
                    pinger.ping();
                }
            }
            Action::Close => {
                self.is_lost.set(true);
                self.retire();
                self.lost.notify_one();
            }
        }
    }

    /// Whether it takes requests, as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        self.requests.borrow_mut().as_mut().is_some_and(Requests::are_taken)
    }

    pub(crate) fn has_room(&self) -> bool {
        let max = self.requests.borrow().as_ref().map_or(0, Requests::streams_max);
        self.streams.get() < max.min(UPSTREAM_STREAMS_MAX)
    }

    /// Whether it takes one request for now, because the peer's settings have not come.
    pub(crate) fn is_settling(&self) -> bool {
        self.requests.borrow().as_ref().is_some_and(|requests| !requests.has_settings())
    }

    /// Waits for the peer's settings, or for the connection's end; as long as the driver does.
    async fn settled(&self) {
        let settled = self.settled.notified();
        if self.is_settling() {
            settled.await;
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.streams.get() == 0
    }

    /// Whether the peer has sent something that was not looked at.
    pub(crate) fn has_unread(&self) -> bool {
        self.transport.with_socket(|socket| socket.check_socket() != Liveness::Alive)
    }

    /// Opens a stream, and counts it.
    pub(crate) fn stream(self: &Rc<Self>) -> Option<Box<Stream>> {
        let codec = self.requests.borrow().as_ref()?.stream(RESPONSE_CODEC_LIMITS);
        self.streams.set(self.streams.get() + 1);
        let is_kept = self.is_used.replace(true);
        Some(Box::new(Stream {
            connection: Rc::clone(self),
            codec: RefCell::new(codec),
            is_kept,
            pieces_taken: Cell::new(0),
        }))
    }
}

impl Stream {
    /// Whether its connection has carried a request before.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Waits until it is known whether the peer takes upgrades.
    pub(crate) async fn settled(&self) {
        self.connection.settled().await;
    }

    pub(crate) fn codec(&self) -> RefMut<'_, RequestStream> {
        self.codec.borrow_mut()
    }

    pub(crate) fn failure(&self) -> Option<String> {
        let codec = self.codec.borrow();
        let ending = codec.ending()?;
        Some(match self.connection.is_lost.get() {
            true => "the connection broke: nothing came any more, and no answer to a PING".to_owned(),
            false => ending.to_string(),
        })
    }

    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.codec.borrow().ending(), Some(Ending::Refused(_)))
    }

    pub(crate) fn is_reset(&self) -> bool {
        matches!(self.codec.borrow().ending(), Some(Ending::Reset(_) | Ending::NoUpgrade))
    }

    pub(crate) fn pieces_taken(&self) -> &Cell<u64> {
        &self.pieces_taken
    }

    pub(crate) fn poll_fill(&self, input: &mut Input, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut reading = Reading { codec: &self.codec, came: 0 };
        ready!(input.poll_fill_from(&mut reading, context))?;
        Poll::Ready(Ok(reading.came))
    }

    pub(crate) async fn write(&self, first: &[u8], second: &[u8]) -> io::Result<()> {
        let mut written = 0;
        poll_fn(|context| self.poll_write(first, second, &mut written, context)).await
    }

    pub(crate) async fn write_now(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        let mut written = 0;
        poll_fn(|context| {
            Poll::Ready(match self.poll_write(bytes, &[], &mut written, context) {
                Poll::Ready(done) => done.map(|()| None),
                Poll::Pending => Ok(Some(written)),
            })
        })
        .await
    }

    /// Hands everything over, and the request's end where it is there.
    fn poll_write(
        &self,
        first: &[u8],
        second: &[u8],
        written: &mut usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut codec = self.codec.borrow_mut();
        loop {
            let rest = match first.get(*written..).filter(|rest| !rest.is_empty()) {
                Some(rest) => rest,
                None => second.get(written.saturating_sub(first.len())..).unwrap_or_default(),
            };
            let count = ready!(codec.poll_write(context, rest))?;
            if count == 0 {
                return Poll::Ready(Ok(()));
            }
            *written += count;
            self.pieces_taken.set(self.pieces_taken.get().wrapping_add(1));
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let connection = &self.connection;
        connection.streams.set(connection.streams.get().saturating_sub(1));
        if connection.is_idle() {
            connection.idle_since.set(Instant::now());
            if !connection.is_kept {
                connection.retire();
            }
        }
        connection.notify();
    }
}

/// A stream as something to read from, for the time of one call.
struct Reading<'a> {
    codec: &'a RefCell<RequestStream>,
    came: usize,
}

impl AsyncRead for Reading<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.came = ready!(self.codec.borrow_mut().poll_read(context, buffer))?;
        Poll::Ready(Ok(()))
    }
}

impl Multiplexed {
    /// Gives its permit up where its peer has more connections than this; then it has to be dropped.
    pub(crate) fn release_above(&self, min: usize) -> bool {
        let Some(permit) = self.permit.take() else { return true };
        match permit.release_above(min) {
            Ok(()) => true,
            Err(permit) => {
                self.permit.replace(Some(permit));
                false
            }
        }
    }
}
