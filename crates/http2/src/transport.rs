//! The bytes of a connection below h2: frames are counted as they come, and writes are gathered.
//!
//! h2 flushes after each frame of data. Here that only gathers; [`Transport::poll_drain`] writes, once h2 has nothing more
//! to say.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::frames::{Flood, FrameCounter};
use crate::limits::{COPIED_BYTES_MAX, GATHERED_BYTES_MAX, OVERHEAD_PER_TURN};

/// A connection's bytes, shared between h2 and the task that drives it.
pub struct Transport<S>(Rc<RefCell<Wire<S>>>);

struct Wire<S> {
    socket: S,
    /// What was read of the connection before it was known to be HTTP/2.
    early: Vec<u8>,
    out: Vec<u8>,
    /// Bytes of `out` that are written.
    written: usize,
    written_in_all: u64,
    /// Bytes that came from the socket.
    received: u64,
    /// `None`: the peer may send as many as it likes.
    counter: Option<FrameCounter>,
    /// What [`FrameCounter::idle`] was when this connection's turn began.
    turn_began: u64,
}

impl<S> Clone for Transport<S> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Transport<S> {
    /// A connection of which `early` was read already.
    pub fn new(socket: S, early: &[u8]) -> Self {
        let mut counter = FrameCounter::new(Instant::now());
        counter.read(early, Instant::now());
        Self::with(socket, early.to_vec(), Some(counter))
    }

    /// A connection to a server: how many frames that sends follows from the requests.
    pub fn to_server(socket: S) -> Self {
        Self::with(socket, Vec::new(), None)
    }

    fn with(socket: S, early: Vec<u8>, counter: Option<FrameCounter>) -> Self {
        Self(Rc::new(RefCell::new(Wire {
            socket,
            early,
            out: Vec::new(),
            written: 0,
            written_in_all: 0,
            received: 0,
            counter,
            turn_began: 0,
        })))
    }

    /// What the peer has sent too much of. Nothing more is read from it then.
    pub fn flood(&self) -> Option<Flood> {
        self.0.borrow().counter.as_ref()?.flood()
    }

    /// Bytes that were written in all, and whether more are waiting to be.
    pub fn progress(&self) -> (u64, bool) {
        let wire = self.0.borrow();
        (wire.written_in_all, wire.waiting() > 0)
    }

    /// Bytes that have come, without those that were read before.
    pub fn received(&self) -> u64 {
        self.0.borrow().received
    }

    /// See [`FrameCounter::incomplete`].
    pub fn incomplete(&self) -> Option<u64> {
        self.0.borrow().counter.as_ref()?.incomplete()
    }

    /// Calls `with` with the socket below.
    pub fn with_socket<T>(&self, with: impl FnOnce(&mut S) -> T) -> T {
        with(&mut self.0.borrow_mut().socket)
    }

    /// Writes what was gathered.
    pub fn poll_drain(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut wire = self.0.borrow_mut();
        ready!(wire.poll_write_out(context))?;
        Pin::new(&mut wire.socket).poll_flush(context)
    }
}

impl<S: AsyncWrite + Unpin> Wire<S> {
    fn poll_write_out(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.out.get(self.written..).filter(|rest| !rest.is_empty()) {
            let written = ready!(Pin::new(&mut self.socket).poll_write(context, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += written;
            self.count_written(written);
        }
        // An idle connection holds none.
        self.out = Vec::new();
        self.written = 0;
        Poll::Ready(Ok(()))
    }

    fn count_written(&mut self, bytes: usize) {
        self.written_in_all += bytes as u64;
        if let Some(counter) = &mut self.counter {
            counter.wrote(bytes);
        }
    }

    fn waiting(&self) -> usize {
        self.out.len() - self.written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Transport<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut wire = self.0.borrow_mut();
        let Wire { socket, early, counter, received, turn_began, .. } = &mut *wire;
        if !early.is_empty() {
            let taken = early.len().min(buffer.remaining());
            buffer.put_slice(early.drain(..taken).as_slice());
            if early.is_empty() {
                *early = Vec::new();
            }
            return Poll::Ready(Ok(()));
        }
        // The task that drives the connection ends it.
        if counter.as_ref().is_some_and(|counter| counter.flood().is_some()) {
            return Poll::Pending;
        }
        let idle = counter.as_ref().map_or(0, FrameCounter::idle);
        if idle - *turn_began >= OVERHEAD_PER_TURN {
            *turn_began = idle;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let Poll::Ready(read) = Pin::new(socket).poll_read(context, buffer) else {
            *turn_began = idle;
            return Poll::Pending;
        };
        read?;
        let came = buffer.filled().get(before..).unwrap_or_default();
        *received += came.len() as u64;
        if let Some(counter) = counter {
            counter.read(came, Instant::now());
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Transport<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut wire = self.0.borrow_mut();
        let bytes = pieces.iter().map(|piece| piece.len()).sum::<usize>();
        if wire.waiting() > 0 && wire.waiting() + bytes > GATHERED_BYTES_MAX {
            ready!(wire.poll_write_out(context))?;
        }
        if bytes > COPIED_BYTES_MAX && wire.waiting() == 0 {
            let written = ready!(Pin::new(&mut wire.socket).poll_write_vectored(context, pieces))?;
            wire.count_written(written);
            return Poll::Ready(Ok(written));
        }
        for piece in pieces {
            wire.out.extend_from_slice(piece);
        }
        Poll::Ready(Ok(bytes))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut wire = self.0.borrow_mut();
        ready!(wire.poll_write_out(context))?;
        Pin::new(&mut wire.socket).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::{Wake, Waker};

    use super::*;
    use crate::frames::PREFACE;

    struct Wakes(AtomicU64);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_connection_with_many_pings_lets_others_have_their_turn() {
        const PINGS: u64 = 3 * OVERHEAD_PER_TURN;
        const PING: [u8; 17] = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let bytes = PING.repeat(PINGS as usize);
        let mut transport = Transport::new(Cursor::new(bytes.clone()), PREFACE);
        let wakes = Arc::new(Wakes(AtomicU64::new(0)));
        let waker = Waker::from(Arc::clone(&wakes));
        let (mut context, mut read, mut turns) = (Context::from_waker(&waker), 0, 1);
        while read < PREFACE.len() + bytes.len() {
            let mut room = [0; 340];
            let mut buffer = ReadBuf::new(&mut room);
            match Pin::new(&mut transport).poll_read(&mut context, &mut buffer) {
                Poll::Ready(result) => result.expect("the pings are there"),
                Poll::Pending => turns += 1,
            }
            read += buffer.filled().len();
        }
        assert_eq!((turns, wakes.0.load(Ordering::Relaxed)), (3, 2));
    }
}
