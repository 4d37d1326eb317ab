//! The bytes between a socket and the `h2` crate.
//!
//! Owns two buffers. Wakes nobody: whoever puts bytes in, or takes some out, polls the connection afterwards.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that wait for the socket; more wait in the streams, so that a server that reads nothing is not sent to without
/// end.
const UNSENT_BYTES_MAX: usize = 256 * 1024;

/// Both ends of it: one is the `h2` crate's.
#[derive(Debug, Clone, Default)]
pub(super) struct Pipe(Arc<Mutex<Buffers>>);

#[derive(Debug, Default)]
struct Buffers {
    incoming: Vec<u8>,
    /// Bytes of `incoming` that are read.
    read: usize,
    outgoing: Vec<u8>,
    has_ended: bool,
    /// Bytes had no room.
    was_full: bool,
}

impl Pipe {
    fn buffers(&self) -> MutexGuard<'_, Buffers> {
        // Bytes are whole in any case.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn receive<T>(&self, put: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        put(&mut self.buffers().incoming)
    }

    pub(super) fn end(&self) {
        self.buffers().has_ended = true;
    }

    pub(super) fn send<T>(&self, take: impl FnOnce(&[u8]) -> (usize, T)) -> T {
        let mut buffers = self.buffers();
        let (count, outcome) = take(&buffers.outgoing);
        let count = count.min(buffers.outgoing.len());
        buffers.outgoing.drain(..count);
        outcome
    }

    pub(super) fn was_full(&self) -> bool {
        std::mem::take(&mut self.buffers().was_full)
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut held = self.buffers();
        let unread = held.incoming.get(held.read..).unwrap_or_default();
        if unread.is_empty() {
            return if held.has_ended { Poll::Ready(Ok(())) } else { Poll::Pending };
        }
        let count = unread.len().min(buffer.remaining());
        buffer.put_slice(unread.get(..count).unwrap_or_default());
        held.read += count;
        if held.read == held.incoming.len() {
            held.incoming.clear();
            held.read = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut held = self.buffers();
        let room = UNSENT_BYTES_MAX.saturating_sub(held.outgoing.len());
        if room == 0 {
            held.was_full = true;
            return Poll::Pending;
        }
        let count = bytes.len().min(room);
        held.outgoing.extend_from_slice(bytes.get(..count).unwrap_or_default());
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
