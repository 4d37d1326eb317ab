//! The bytes of a connection to an upstream, in the clear or encrypted, and how they move to another core.
//!
//! A transport belongs to the core whose event loop knows its socket. [`Transport::detach`] takes it out of that loop,
//! and [`Transport::attach`] puts it into the loop of another core; in between it carries nothing. Never dials: that is
//! [`crate::dial`].

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use rustix::net::{RecvFlags, SendFlags};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

use onehop_connection::socket::Socket;

/// Reads from the kernel in one check of an encrypted connection that should be silent: session tickets and key
/// updates come one or two at a time, more is a flood.
const CHECK_READS_MAX: usize = 8;

/// A byte stream to an upstream.
pub(crate) enum Transport {
    /// In the clear.
    Plain(MovableSocket),
    /// Encrypted.
    Tls(Box<TlsStream<MovableSocket>>),
}

/// The socket, in an event loop or on its way to another.
pub(crate) struct MovableSocket(Owner);

enum Owner {
    /// This core's event loop.
    EventLoop(Socket),
    /// None.
    DetachedTcp(std::net::TcpStream),
    DetachedUnix(std::os::unix::net::UnixStream),
    /// A move has failed.
    Lost,
}

/// What is known of an idle connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// The upstream was silent.
    Alive,
    /// The upstream has closed the connection, or lost it.
    Closed,
    /// The upstream has sent something without a request.
    Broken,
}

impl Transport {
    /// Checks whether the upstream was silent. Asks the kernel.
    pub(crate) fn check_kernel(&mut self) -> Liveness {
        match self {
            Transport::Plain(socket) => socket.check(),
            Transport::Tls(stream) => check_encrypted(stream),
        }
    }

    /// The same, but asks the kernel only where the event loop has reported something.
    pub(crate) fn check_events(&mut self) -> Liveness {
        let mut context = Context::from_waker(Waker::noop());
        let is_pending = match &self.socket().0 {
            Owner::EventLoop(Socket::Tcp(stream)) => stream.poll_read_ready(&mut context).is_pending(),
            Owner::EventLoop(Socket::Unix(stream)) => stream.poll_read_ready(&mut context).is_pending(),
            // Upstreams are encrypted above the socket, not in it.
            Owner::EventLoop(Socket::Tls(_))
            | Owner::DetachedTcp(_)
            | Owner::DetachedUnix(_)
            | Owner::Lost => false,
        };
        if is_pending && self.is_drained() { Liveness::Alive } else { self.check_kernel() }
    }

    /// The state of the socket itself. Bytes that have come may be of TLS alone.
    pub(crate) fn check_socket(&self) -> Liveness {
        self.socket().check()
    }

    /// Whether all decrypted bytes were read. What the upstream sent is then taken, or still in the kernel.
    pub(crate) fn is_drained(&self) -> bool {
        match self {
            Transport::Plain(_) => true,
            Transport::Tls(stream) => stream.get_ref().1.wants_read(),
        }
    }

    /// Takes the socket out of this core's event loop.
    pub(crate) fn detach(&mut self) -> io::Result<()> {
        self.socket_mut().detach()
    }

    /// Puts the socket into the event loop of the core that this is called on.
    pub(crate) fn attach(&mut self) -> io::Result<()> {
        self.socket_mut().attach()
    }

    fn socket(&self) -> &MovableSocket {
        match self {
            Transport::Plain(socket) => socket,
            Transport::Tls(stream) => stream.get_ref().0,
        }
    }

    fn socket_mut(&mut self) -> &mut MovableSocket {
        match self {
            Transport::Plain(socket) => socket,
            Transport::Tls(stream) => stream.get_mut().0,
        }
    }
}

impl Drop for Transport {
    /// Tells the other side of an encrypted connection that what came is all (RFC 8446 section 6.1), as far as the
    /// kernel takes it at once.
    fn drop(&mut self) {
        if let Transport::Tls(stream) = self {
            let (socket, session) = stream.get_mut();
            if !session.is_handshaking() {
                session.send_close_notify();
                let _ = session.write_tls(&mut Kernel(socket));
            }
        }
    }
}

/// Takes what came, which may be no more than session tickets, and tells whether the upstream spoke.
fn check_encrypted(stream: &mut TlsStream<MovableSocket>) -> Liveness {
    let (socket, session) = stream.get_mut();
    for _ in 0..CHECK_READS_MAX {
        if !session.wants_read() {
            return Liveness::Broken;
        }
        match session.read_tls(&mut Kernel(socket)) {
            Ok(0) => return Liveness::Closed,
            Ok(_) => match session.process_new_packets() {
                Ok(state) if state.plaintext_bytes_to_read() > 0 => return Liveness::Broken,
                Ok(state) if state.peer_has_closed() => return Liveness::Closed,
                Ok(_) => {}
                Err(_) => return Liveness::Broken,
            },
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Liveness::Alive,
            Err(_) => return Liveness::Closed,
        }
    }
    Liveness::Broken
}

impl MovableSocket {
    pub(crate) fn new(socket: Socket) -> Self {
        Self(Owner::EventLoop(socket))
    }

    fn check(&self) -> Liveness {
        let mut byte = [0u8; 1];
        let Some(descriptor) = self.descriptor() else { return Liveness::Closed };
        match rustix::net::recv(descriptor, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Err(rustix::io::Errno::AGAIN) => Liveness::Alive,
            Ok((count, _)) if count > 0 => Liveness::Broken,
            Ok(_) | Err(_) => Liveness::Closed,
        }
    }

    fn detach(&mut self) -> io::Result<()> {
        let owner = std::mem::replace(&mut self.0, Owner::Lost);
        self.0 = match owner {
            Owner::EventLoop(Socket::Tcp(stream)) => Owner::DetachedTcp(stream.into_std()?),
            Owner::EventLoop(Socket::Unix(stream)) => Owner::DetachedUnix(stream.into_std()?),
            away => away,
        };
        Ok(())
    }

    fn attach(&mut self) -> io::Result<()> {
        // Outside of a runtime, as at its end, there is no event loop to come into.
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let owner = std::mem::replace(&mut self.0, Owner::Lost);
        self.0 = match owner {
            Owner::DetachedTcp(stream) => Owner::EventLoop(Socket::Tcp(TcpStream::from_std(stream)?)),
            Owner::DetachedUnix(stream) => Owner::EventLoop(Socket::Unix(UnixStream::from_std(stream)?)),
            here => here,
        };
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.0 {
            Owner::EventLoop(Socket::Tcp(stream)) => Some(stream.as_fd()),
            Owner::EventLoop(Socket::Unix(stream)) => Some(stream.as_fd()),
            Owner::DetachedTcp(stream) => Some(stream.as_fd()),
            Owner::DetachedUnix(stream) => Some(stream.as_fd()),
            Owner::EventLoop(Socket::Tls(_)) | Owner::Lost => None,
        }
    }

    fn socket(&mut self) -> io::Result<Pin<&mut Socket>> {
        match &mut self.0 {
            Owner::EventLoop(socket) => Ok(Pin::new(socket)),
            Owner::DetachedTcp(_) | Owner::DetachedUnix(_) | Owner::Lost => {
                Err(io::ErrorKind::NotConnected.into())
            }
        }
    }
}

/// What the kernel takes and gives at once, past the event loop.
struct Kernel<'a>(&'a MovableSocket);

impl io::Read for Kernel<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let descriptor = self.0.descriptor().ok_or(io::ErrorKind::NotConnected)?;
        let (count, _) = rustix::net::recv(descriptor, into, RecvFlags::DONTWAIT)?;
        Ok(count)
    }
}

impl io::Write for Kernel<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let descriptor = self.0.descriptor().ok_or(io::ErrorKind::NotConnected)?;
        Ok(rustix::net::send(descriptor, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsyncRead for MovableSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.socket()?.poll_read(context, into)
    }
}

impl AsyncWrite for MovableSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.socket()?.poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.socket()?.poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket()?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket()?.poll_shutdown(context)
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Transport::Plain(socket) => Pin::new(socket).poll_read(context, into),
            Transport::Tls(stream) => Pin::new(stream).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Transport::Plain(socket) => Pin::new(socket).poll_write(context, bytes),
            Transport::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Transport::Plain(socket) => Pin::new(socket).poll_write_vectored(context, pieces),
            Transport::Tls(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Transport::Plain(socket) => Pin::new(socket).poll_flush(context),
            Transport::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Transport::Plain(socket) => Pin::new(socket).poll_shutdown(context),
            Transport::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
