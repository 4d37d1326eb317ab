//! The kinds of stream that a connection may be.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, SendFlags};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::limits::READ_BUFFER_BYTES;
use crate::tls_stream::TlsStream;

/// A stream to a client.
pub enum Socket {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
    /// TLS over TCP.
    Tls(Box<TlsStream>),
}

impl Socket {
    /// Sends what the kernel takes without waiting, and drops the rest. Nothing is sent on an encrypted connection.
    pub fn send_at_once(&self, bytes: &[u8]) {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let _ = match self {
            Self::Tcp(stream) => rustix::net::send(stream, bytes, flags),
            Self::Unix(stream) => rustix::net::send(stream, bytes, flags),
            Self::Tls(_) => return,
        };
    }

    /// Tells the client of an encrypted connection on which nothing is under way that nothing more comes. Without it the
    /// end could be anybody's on the way (RFC 8446 section 6.1).
    pub fn notify_end(&mut self) {
        if let Self::Tls(tls) = self {
            tls.notify_end();
        }
    }

    /// Waits until the kernel takes more.
    pub fn poll_writable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_write_ready(context),
            Self::Unix(stream) => stream.poll_write_ready(context),
            Self::Tls(tls) => tls.poll_send(context),
        }
    }

    /// Reads and drops what the client has sent, so that closing now does not take the response away from it: with unread
    /// bytes a close is a reset (RFC 9112 section 9.6). Bytes that arrive later may still cause one.
    pub fn drop_unread(&self) {
        let mut bytes = [0; READ_BUFFER_BYTES];
        let mut read = || match self {
            Self::Tcp(stream) => rustix::net::recv(stream, &mut bytes, RecvFlags::DONTWAIT),
            Self::Unix(stream) => rustix::net::recv(stream, &mut bytes, RecvFlags::DONTWAIT),
            Self::Tls(tls) => rustix::net::recv(tls.stream(), &mut bytes, RecvFlags::DONTWAIT),
        };
        let _ = read();
    }

    /// Makes closing the socket reset the connection and drop what the client has not taken.
    pub fn reset_when_closed(&self) {
        if let Some(stream) = self.tcp() {
            let _ = rustix::net::sockopt::set_socket_linger(stream, Some(std::time::Duration::ZERO));
        }
    }

    /// Whether the connection is gone in both directions, whatever the client sent before: it was reset, or the socket of
    /// the machine's own client is closed. A client that has only closed its sending side may still read.
    pub fn is_reset(&self) -> bool {
        let flags = PollFlags::empty();
        let mut polled = match self {
            Self::Tcp(stream) => [PollFd::new(stream, flags)],
            Self::Unix(stream) => [PollFd::new(stream, flags)],
            Self::Tls(tls) => [PollFd::new(tls.stream(), flags)],
        };
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&at_once)).is_ok()
            && polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }

    /// Whether the kernel holds bytes that were not read. Asks the kernel, because the event loop may not have reported
    /// them yet.
    pub fn has_unread(&self) -> bool {
        matches!(self, Self::Tls(tls) if tls.has_decrypted()) || self.peek().is_ok_and(|count| count > 0)
    }

    fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Tls(tls) => Some(tls.stream()),
            Self::Unix(_) => None,
        }
    }

    fn peek(&self) -> rustix::io::Result<usize> {
        let mut byte = [0u8; 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let peeked = match self {
            Self::Tcp(stream) => rustix::net::recv(stream, &mut byte, flags),
            Self::Unix(stream) => rustix::net::recv(stream, &mut byte, flags),
            Self::Tls(tls) => rustix::net::recv(tls.stream(), &mut byte, flags),
        };
        peeked.map(|(count, _)| count)
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(tls) => Pin::new(&mut **tls).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(tls) => Pin::new(&mut **tls).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Tls(tls) => Pin::new(&mut **tls).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(_) | Self::Unix(_) => Poll::Ready(Ok(())),
            Self::Tls(tls) => tls.poll_send(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(tls) => Pin::new(&mut **tls).poll_shutdown(cx),
        }
    }
}
