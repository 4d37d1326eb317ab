//! One connection of HTTP/1 to an upstream: its socket, and the codec that knows whether it may be used again.
//!
//! Both halves may be polled by one task in turn, so a request's body can go while its answer comes.
//! Holds no buffer; those are leased for the time of one exchange. Never sends anything by itself.

use std::cell::{Cell, RefCell, RefMut};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use onehop_connection::buffer_pool::Reusable;
use onehop_connection::buffers::Input;
use onehop_http1::{ClientCodec, Known, ResponseHead};
use tokio::io::AsyncWrite;

use crate::limits::RESPONSE_CODEC_LIMITS;
use crate::slots::Permit;
use crate::transport::{Liveness, Transport};

/// The right to have one connection open.
pub(crate) type ConnectionPermit = Permit<Handover>;

/// A connection as it is handed to a request that waits.
pub(crate) enum Handover {
    /// To a request of the same core.
    Local(Box<Connection>),
    /// To a request of another core.
    Detached(Detached),
}

/// A connection. Dropped, it is closed, and another one may be opened in its place. It is passed on in a box: it has some
/// 450 bytes, and an exchange takes it out of the pool and puts it back.
pub struct Connection {
    transport: RefCell<Transport>,
    codec: RefCell<ClientCodec>,
    /// `None`: it is not counted.
    permit: Option<ConnectionPermit>,
    /// The address at its other end; `None` for a Unix socket.
    address: Option<SocketAddr>,
    /// The generation of the peer's addresses that its own was last known to be among.
    generation: Cell<u64>,
    /// When it was last used, or made.
    idle_since: Cell<Instant>,
    /// When it was last known to be alive.
    last_checked: Cell<Instant>,
    /// It has carried a request before this one.
    is_used: Cell<bool>,
    /// It has waited for a request, this one or another.
    is_kept: Cell<bool>,
    /// A write has begun and is not at its end, or will never be: the future that wrote may have been dropped.
    is_writing: Cell<bool>,
    /// How many pieces the socket has taken, to see that it takes any.
    pieces_taken: Cell<u64>,
    /// The idle timeout that the upstream has announced.
    keep_alive_timeout: Cell<Option<Duration>>,
}

/// What one exchange needs besides its connection.
pub struct Buffers {
    /// Bytes of the upstream that are not yet parsed.
    pub input: Input,
    /// Bytes of the request that wait to be written.
    pub output: Vec<u8>,
    /// Scratch space for field lines.
    pub scratch: Vec<u8>,
    /// The response's head.
    pub head: ResponseHead,
}

impl Connection {
    /// A connection that was just made.
    pub(crate) fn new(
        transport: Transport,
        permit: Option<ConnectionPermit>,
        address: Option<SocketAddr>,
        generation: u64,
    ) -> Self {
        let now = Instant::now();
        Self {
            transport: RefCell::new(transport),
            codec: RefCell::new(ClientCodec::new(RESPONSE_CODEC_LIMITS)),
            permit,
            address,
            generation: Cell::new(generation),
            idle_since: Cell::new(now),
            last_checked: Cell::new(now),
            is_used: Cell::new(false),
            is_kept: Cell::new(false),
            is_writing: Cell::new(false),
            pieces_taken: Cell::new(0),
            keep_alive_timeout: Cell::new(None),
        }
    }

    /// Whether it has waited for a request, or carried one before: then the upstream may have closed it meanwhile.
    pub fn is_kept(&self) -> bool {
        self.is_kept.get() || self.is_used.get()
    }

    /// Notes that it waits for a request.
    pub(crate) fn note_kept(&self) {
        self.is_kept.set(true);
    }

    /// Whether it has carried a request before.
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.get()
    }

    /// The codec, for the time of one call.
    pub fn codec(&self) -> RefMut<'_, ClientCodec> {
        self.codec.borrow_mut()
    }

    /// The idle timeout that the upstream has announced.
    pub(crate) fn keep_alive_timeout(&self) -> Option<Duration> {
        self.keep_alive_timeout.get()
    }

    /// Notes what a response's head says about the connection (`Keep-Alive: timeout=5`).
    pub fn note_keep_alive(&self, head: &ResponseHead) {
        if let Some(time) = head.get(Known::KeepAlive).and_then(timeout) {
            self.keep_alive_timeout.set(Some(time));
        }
    }

    /// Makes it ready for another request; `false` where it is of no more use. `unread` bytes of the
    /// upstream were not parsed.
    pub fn reuse(&self, unread: usize) -> bool {
        self.is_used.set(true);
        // The codec knows what was to be sent, and only the socket what was. With bytes missing the upstream
        // would take the next request for the rest of this one.
        self.codec.borrow_mut().reuse(unread)
            && !self.is_writing.get()
            && self.transport.borrow().is_drained()
    }

    /// Whether the upstream was silent, and has not closed it, while there was no request. Asks the kernel.
    pub(crate) fn check_kernel(&self) -> Liveness {
        self.transport.borrow_mut().check_kernel()
    }

    /// The same, but asks the kernel only where the event loop has reported something.
    pub(crate) fn check_events(&self) -> Liveness {
        self.transport.borrow_mut().check_events()
    }

    /// Notes that it is idle from now on.
    pub(crate) fn note_idle(&self, now: Instant) {
        self.idle_since.set(now);
        self.last_checked.set(now);
    }

    /// When it was last used, or made.
    pub(crate) fn idle_since(&self) -> Instant {
        self.idle_since.get()
    }

    /// Notes that it is known to be alive now.
    pub(crate) fn note_alive(&self, now: Instant) {
        self.last_checked.set(now);
    }

    /// For how long it was idle, now.
    pub(crate) fn idle_time(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.idle_since.get())
    }

    /// For how long it was idle without being closed, as of the last check.
    pub(crate) fn idle_at_least(&self) -> Duration {
        self.last_checked.get().saturating_duration_since(self.idle_since.get())
    }

    /// The address at its other end.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The generation of the peer's addresses that its own was last known to be among.
    pub(crate) fn generation(&self) -> &Cell<u64> {
        &self.generation
    }

    /// Counts it as a tunnel while this is held. It carries no other request after that.
    pub fn become_tunnel(&self) -> Option<impl Sized + use<>> {
        self.permit.as_ref()?.become_tunnel()
    }

    /// Closes it and keeps its permit.
    pub(crate) fn into_permit(mut self: Box<Self>) -> Option<ConnectionPermit> {
        self.permit.take()
    }

    /// Gives its permit up where its peer has more connections than this; then it has to be dropped.
    pub(crate) fn release_above(&mut self, min: usize) -> bool {
        let Some(permit) = self.permit.take() else { return true };
        self.permit = permit.release_above(min).err();
        self.permit.is_none()
    }

    /// Takes it out of this core's event loop, to be sent to another core.
    pub(crate) fn detach(self: Box<Self>) -> io::Result<Detached> {
        self.transport.borrow_mut().detach()?;
        Ok(Detached(self))
    }

    /// Reads once; 0 is the end.
    pub fn poll_fill(&self, input: &mut Input, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        input.poll_fill_from(&mut *self.transport.borrow_mut(), context)
    }

    /// Writes `first` and then `second`. Has no deadline: an upstream that takes nothing does not respond either, and for
    /// that there is one.
    pub async fn write(&self, first: &[u8], second: &[u8]) -> io::Result<()> {
        let mut written = 0;
        self.is_writing.set(true);
        poll_fn(|context| self.poll_write(first, second, &mut written, context)).await
    }

    /// Writes what the socket takes without waiting: `None` where that was all of it, else how much.
    pub async fn write_now(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
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
        let mut transport = self.transport.borrow_mut();
        while *written < first.len() + second.len() {
            let head = first.get(*written..).unwrap_or_default();
            let body = second.get(written.saturating_sub(first.len())..).unwrap_or_default();
            let stream = Pin::new(&mut *transport);
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
        ready!(Pin::new(&mut *transport).poll_flush(context))?;
        self.is_writing.set(false);
        Poll::Ready(Ok(()))
    }

    /// How many pieces the socket has taken.
    pub(crate) fn pieces_taken(&self) -> &Cell<u64> {
        &self.pieces_taken
    }

    /// Shuts down its sending side; the upstream may continue to send.
    pub async fn finish_sending(&self) -> io::Result<()> {
        poll_fn(|context| Pin::new(&mut *self.transport.borrow_mut()).poll_shutdown(context)).await
    }
}

/// A connection on its way to another core.
pub(crate) struct Detached(Box<Connection>);

impl Detached {
    /// Puts it into the event loop of the core that this is called on.
    pub(crate) fn attach(self) -> io::Result<Box<Connection>> {
        self.0.transport.borrow_mut().attach()?;
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

    use onehop_connection::socket::Socket;

    use super::*;
    use crate::transport::MovableSocket;

    #[tokio::test]
    async fn a_connection_whose_request_was_never_written_whole_is_not_used_again() {
        for written_whole in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("upstream.sock");
            let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
            let stream = tokio::net::UnixStream::connect(&path).await.unwrap();
            let transport = Transport::Plain(MovableSocket::new(Socket::Unix(stream)));
            let connection = Connection::new(transport, None, None, 0);
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
