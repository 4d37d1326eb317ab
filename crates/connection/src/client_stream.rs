//! Where the bytes of a request come from and those of its response go: a connection of its own, or a stream of HTTP/2.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use onehop_http2::{Reason, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::socket::Socket;

/// A client's bytes.
pub enum ClientStream {
    /// A connection.
    Socket(Socket),
    /// A stream of a connection: its bytes are those of the bodies alone.
    Http2(Rc<Stream>),
}

impl ClientStream {
    /// The stream, where it is one.
    pub fn http2(&self) -> Option<&Rc<Stream>> {
        if let Self::Http2(stream) = self { Some(stream) } else { None }
    }

    /// Waits until more can be written.
    pub fn poll_writable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Socket(socket) => socket.poll_writable(context),
            Self::Http2(stream) => stream.poll_writable(context),
        }
    }

    /// Writes bytes that a stream need not copy.
    pub fn poll_write_shared(&mut self, context: &mut Context<'_>, bytes: &Bytes) -> Poll<io::Result<usize>> {
        match self {
            Self::Socket(socket) => Pin::new(socket).poll_write(context, bytes),
            Self::Http2(stream) => stream.poll_write_shared(context, bytes),
        }
    }

    /// See [`Socket::notify_end`].
    pub fn notify_end(&mut self) {
        if let Self::Socket(socket) = self {
            socket.notify_end();
        }
    }

    /// Breaks off what the client has not taken.
    pub fn reset_when_closed(&self) {
        match self {
            Self::Socket(socket) => socket.reset_when_closed(),
            Self::Http2(stream) => stream.reset(Reason::CANCEL),
        }
    }

    /// Whether it is gone in both directions.
    pub fn is_reset(&self) -> bool {
        match self {
            Self::Socket(socket) => socket.is_reset(),
            Self::Http2(stream) => stream.poll_reset(&mut Context::from_waker(Waker::noop())).is_ready(),
        }
    }

    /// See [`Socket::has_unread`].
    pub fn has_unread(&self) -> bool {
        matches!(self, Self::Socket(socket) if socket.has_unread())
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Socket(socket) => Pin::new(socket).poll_read(cx, buf),
            Self::Http2(stream) => stream.poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Socket(socket) => Pin::new(socket).poll_write(cx, buf),
            Self::Http2(stream) => stream.poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Socket(socket) => Pin::new(socket).poll_write_vectored(cx, bufs),
            Self::Http2(stream) => {
                // One after the other: the flow control decides how much goes.
                let first = bufs.iter().find(|buf| !buf.is_empty());
                stream.poll_write(cx, first.map_or(&[], |buf| &**buf))
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Socket(socket) => Pin::new(socket).poll_flush(cx),
            // What it was given is written by the connection.
            Self::Http2(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Socket(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Http2(stream) => {
                stream.finish();
                Poll::Ready(Ok(()))
            }
        }
    }
}
