//! One connection to an upstream: its socket, and the codec that knows whether it may be used again.
//!
//! Both halves may be polled by one task in turn, so a request's body can go while its answer comes.
//! Holds no buffer; those are leased for the time of one exchange. Never sends anything by itself.

use std::cell::{Cell, RefCell, RefMut};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use onehop_http1::{ClientCodec, Known, ResponseHead};
use tokio::io::AsyncWrite;

use super::link::{Link, Silence};
use super::queue::{Slot, Tunnel};
use crate::limits::ANSWER_CODEC_LIMITS;
use onehop_connection::buffer_pool::Reusable;
use onehop_connection::buffers::Input;

/// A connection. Dropped, it is closed, and its place among those of its peer is free.
pub(crate) struct Connection {
    link: RefCell<Link>,
    codec: RefCell<ClientCodec>,
    /// `None`: nobody counts it.
    slot: Option<Slot>,
    /// Where it leads, if it is to an address.
    address: Option<SocketAddr>,
    /// The peer's addresses that this one was last known to be among.
    generation: Cell<u64>,
    /// When it was last used, or made.
    rests_since: Cell<Instant>,
    /// When it was last known to be silent.
    last_heard: Cell<Instant>,
    /// It has carried a request before this one.
    is_used: Cell<bool>,
    /// It has waited for a request, this one or another.
    is_kept: Cell<bool>,
    /// A write has begun and is not at its end, or will never be: whoever wrote may have been dropped.
    is_writing: Cell<bool>,
    /// How many pieces the socket has taken; for seeing that it takes any.
    pieces_taken: Cell<u64>,
    /// How long the upstream keeps it without a request, where it said so.
    kept_for: Cell<Option<Duration>>,
}

/// What one exchange needs besides its connection.
pub(crate) struct Buffers {
    /// Bytes of the upstream that are not yet understood.
    pub(crate) input: Input,
    /// Bytes of the request that wait to be written.
    pub(crate) output: Vec<u8>,
    /// For putting lines together.
    pub(crate) scratch: Vec<u8>,
    /// The answer's head.
    pub(crate) head: ResponseHead,
}

impl Connection {
    /// A connection that was just made, in its place among those of its peer.
    pub(crate) fn new(link: Link, slot: Option<Slot>, address: Option<SocketAddr>, generation: u64) -> Self {
        let now = Instant::now();
        Self {
            link: RefCell::new(link),
            codec: RefCell::new(ClientCodec::new(ANSWER_CODEC_LIMITS)),
            slot,
            address,
            generation: Cell::new(generation),
            rests_since: Cell::new(now),
            last_heard: Cell::new(now),
            is_used: Cell::new(false),
            is_kept: Cell::new(false),
            is_writing: Cell::new(false),
            pieces_taken: Cell::new(0),
            kept_for: Cell::new(None),
        }
    }

    /// Whether it has waited for a request, or carried one before: then the upstream may have closed it meanwhile.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept.get() || self.is_used.get()
    }

    /// It waits for a request.
    pub(super) fn keep(&self) {
        self.is_kept.set(true);
    }

    /// Whether it has carried a request before.
    pub(super) fn is_used(&self) -> bool {
        self.is_used.get()
    }

    /// The codec, for the time of one call.
    pub(crate) fn codec(&self) -> RefMut<'_, ClientCodec> {
        self.codec.borrow_mut()
    }

    /// How long the upstream says that it keeps the connection.
    pub(crate) fn kept_for(&self) -> Option<Duration> {
        self.kept_for.get()
    }

    /// Notes what an answer's head says about the connection (`Keep-Alive: timeout=5`).
    pub(crate) fn note_keep_alive(&self, head: &ResponseHead) {
        if let Some(time) = head.get(Known::KeepAlive).and_then(timeout) {
            self.kept_for.set(Some(time));
        }
    }

    /// Makes it ready for another request; `false` where it is of no more use. `unread` bytes of the
    /// upstream were not understood.
    pub(crate) fn reuse(&self, unread: usize) -> bool {
        self.is_used.set(true);
        // The codec knows what was to be sent, and only the socket what was. With bytes missing the upstream
        // would take the next request for the rest of this one.
        self.codec.borrow_mut().reuse(unread) && !self.is_writing.get() && self.link.borrow().is_drained()
    }

    /// Whether the upstream has said nothing, not even that it closes, while nothing was asked. Asks the
    /// kernel.
    pub(super) fn listen(&self) -> Silence {
        self.link.borrow_mut().listen()
    }

    /// The same, but asks the kernel only where the event loop has heard of something.
    pub(super) fn listen_to_events(&self) -> Silence {
        self.link.borrow_mut().listen_to_events()
    }

    /// It waits for its next request from now on.
    pub(super) fn rest(&self, now: Instant) {
        self.rests_since.set(now);
        self.last_heard.set(now);
    }

    /// When it was last used, or made.
    pub(super) fn rests_since(&self) -> Instant {
        self.rests_since.get()
    }

    /// It is known to be silent now.
    pub(super) fn note_silence(&self, now: Instant) {
        self.last_heard.set(now);
    }

    /// How long it rested without being closed, as far as anybody looked.
    pub(super) fn rested_at_least(&self) -> Duration {
        self.last_heard.get().saturating_duration_since(self.rests_since.get())
    }

    /// Where it leads.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The peer's addresses that its own was last known to be among.
    pub(super) fn generation(&self) -> &Cell<u64> {
        &self.generation
    }

    /// It carries another protocol for as long as this is held, and no other request after that.
    pub(super) fn become_tunnel(&self) -> Option<Tunnel> {
        self.slot.as_ref()?.become_tunnel()
    }

    /// Closes it and keeps its place.
    pub(super) fn into_slot(mut self) -> Option<Slot> {
        self.slot.take()
    }

    /// Frees its place where its peer has more connections than this; then it has to be dropped.
    pub(super) fn release_above(&mut self, floor: usize) -> bool {
        let Some(slot) = self.slot.take() else { return true };
        self.slot = slot.give_up_above(floor).err();
        self.slot.is_none()
    }

    /// Out of this core's event loop, to be sent to another core.
    pub(super) fn leave(self) -> io::Result<Travelling> {
        self.link.borrow_mut().leave()?;
        Ok(Travelling(self))
    }

    /// Reads once; 0 is the end.
    pub(crate) fn poll_fill(&self, input: &mut Input, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        input.poll_fill_from(&mut *self.link.borrow_mut(), context)
    }

    /// Writes `first` and then `second`. Without a deadline: an upstream that takes nothing does not
    /// answer either, and for that there is one.
    pub(crate) async fn write(&self, first: &[u8], second: &[u8]) -> io::Result<()> {
        let mut written = 0;
        self.is_writing.set(true);
        poll_fn(|context| self.poll_write(first, second, &mut written, context)).await
    }

    /// Writes what the socket takes without waiting: `None` where that was all of it, else how much.
    pub(crate) async fn write_now(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        let mut written = 0;
        self.is_writing.set(true);
        poll_fn(|context| {
            Poll::Ready(match self.poll_write(bytes, &[], &mut written, context) {
                Poll::Ready(done) => done.map(|()| None),
                Poll::Pending => Ok(Some(written)),
            })
        })
        .await
    }

    fn poll_write(
        &self,
        first: &[u8],
        second: &[u8],
        written: &mut usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut link = self.link.borrow_mut();
        while *written < first.len() + second.len() {
            let head = first.get(*written..).unwrap_or_default();
            let body = second.get(written.saturating_sub(first.len())..).unwrap_or_default();
            let stream = Pin::new(&mut *link);
            let count = match (head.is_empty(), body.is_empty()) {
                (false, true) => ready!(stream.poll_write(context, head))?,
                (true, _) => ready!(stream.poll_write(context, body))?,
                (false, false) => {
                    let pieces = [IoSlice::new(head), IoSlice::new(body)];
                    ready!(stream.poll_write_vectored(context, &pieces))?
                }
            };
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *written += count;
            self.pieces_taken.set(self.pieces_taken.get().wrapping_add(1));
        }
        // Encrypted, bytes that count as written may still wait here.
        ready!(Pin::new(&mut *link).poll_flush(context))?;
        self.is_writing.set(false);
        Poll::Ready(Ok(()))
    }

    /// Ends when the socket has taken nothing for so long; for beside [`Connection::write`], and polled after it.
    pub(crate) async fn stuck_for(&self, time: Duration) {
        let mut due = pin!(tokio::time::sleep(time));
        let mut seen = self.pieces_taken.get();
        poll_fn(|context| {
            let taken = self.pieces_taken.get();
            if taken != seen {
                seen = taken;
                due.set(tokio::time::sleep(time));
            }
            due.as_mut().poll(context)
        })
        .await;
    }

    /// Says that nothing more is sent; the upstream may go on.
    pub(crate) async fn finish_sending(&self) -> io::Result<()> {
        poll_fn(|context| Pin::new(&mut *self.link.borrow_mut()).poll_shutdown(context)).await
    }
}

/// A connection on its way to another core.
pub(super) struct Travelling(Connection);

impl Travelling {
    /// Into the event loop of the core that this is called on.
    pub(super) fn arrive(self) -> io::Result<Connection> {
        self.0.link.borrow_mut().arrive()?;
        Ok(self.0)
    }
}

impl Reusable for Buffers {
    fn new() -> Self {
        Self { input: Input::new(), output: Vec::new(), scratch: Vec::new(), head: ResponseHead::new() }
    }

    fn bytes_held(&self) -> usize {
        let lines = self.output.capacity() + self.scratch.capacity();
        self.input.bytes_held() + lines + self.head.bytes_held()
    }

    fn clear(&mut self) {
        self.input.clear();
        self.output.clear();
        self.scratch.clear();
        self.head.clear();
    }
}

/// The `timeout` parameter of a Keep-Alive field, in seconds; the shortest where there are several.
fn timeout(value: &[u8]) -> Option<Duration> {
    let times = value.split(|byte| *byte == b',').filter_map(|parameter| {
        let (name, seconds) = std::str::from_utf8(parameter).ok()?.split_once('=')?;
        let is_timeout = name.trim().eq_ignore_ascii_case("timeout");
        is_timeout.then(|| seconds.trim().parse().ok().map(Duration::from_secs))?
    });
    times.min()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::task::Waker;

    use onehop_http1::{AskHead, BodyLength, BodyRead};

    use super::super::link::Carrier;
    use super::*;
    use onehop_connection::socket::Socket;

    #[tokio::test]
    async fn a_connection_whose_request_was_never_written_whole_is_not_used_again() {
        for written_whole in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("upstream.sock");
            let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
            let stream = tokio::net::UnixStream::connect(&path).await.unwrap();
            let link = Link::Plain(Carrier::new(Socket::Unix(stream)));
            let connection = Connection::new(link, None, None, 0);
            let (mut peer, _) = listener.accept().unwrap();
            // More than the kernel takes while nobody reads.
            let body = vec![b'x'; 4 << 20];
            let mut output = Vec::new();
            let length = BodyLength::Known(body.len() as u64);
            let (fields, target) = (&b"Host: a\r\n"[..], &b"/"[..]);
            let ask =
                AskHead { method: b"POST", target, fields, body: length, upgrade: false, trailers: false };
            connection.codec().write_request_head(&mut output, ask).unwrap();
            connection.codec().write_data(&mut output, &body);
            connection.codec().finish(&mut output, &[]);
            {
                let mut writing = std::pin::pin!(connection.write(&output, &[]));
                let mut context = Context::from_waker(Waker::noop());
                assert!(writing.as_mut().poll(&mut context).is_pending());
                if written_whole {
                    let (mut reader, mut read) = (peer.try_clone().unwrap(), vec![0; output.len()]);
                    let reading = std::thread::spawn(move || reader.read_exact(&mut read));
                    writing.await.unwrap();
                    reading.join().unwrap().unwrap();
                }
            }
            peer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
            let (mut input, mut head) = (Input::new(), ResponseHead::new());
            poll_fn(|context| connection.poll_fill(&mut input, context)).await.unwrap();
            connection.codec().read_head(input.unread(), &mut head).unwrap().unwrap();
            assert!(matches!(connection.codec().read_body(&[]), Ok(BodyRead::End { consumed: 0 })));
            assert_eq!(connection.reuse(0), written_whole);
        }
    }

    #[test]
    fn a_keep_alive_field_says_how_long() {
        let rows: [(&[u8], Option<u64>); 8] = [
            (b"timeout=5", Some(5)),
            (b"max=100, Timeout = 5", Some(5)),
            (b"timeout=9, timeout=3", Some(3)),
            (b"timeout=18446744073709551615", Some(u64::MAX)),
            (b"timeout=18446744073709551616", None),
            (b"timeout", None),
            (b"timeout=-1,=,", None),
            (b"\xff=5", None),
        ];
        for (value, seconds) in rows {
            assert_eq!(timeout(value), seconds.map(Duration::from_secs), "{}", value.escape_ascii());
        }
    }
}
