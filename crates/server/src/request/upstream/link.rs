//! The bytes of a connection to an upstream, in the clear or encrypted, and how they move to another core.
//!
//! A link belongs to the core whose event loop knows its socket. [`Link::leave`] takes it out of that loop, and
//! [`Link::arrive`] puts it into the loop of the core that it has come to; in between it carries nothing. Never
//! dials: that is [`super::dial`].

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use rustix::net::{RecvFlags, SendFlags};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

use onehop_connection::socket::Socket;

/// Reads from the kernel in one look at an encrypted connection that should be silent: session tickets and key
/// updates come one or two at a time, more is a flood.
const LISTENING_READS_MAX: usize = 8;

/// A byte stream to an upstream.
pub(crate) enum Link {
    /// In the clear.
    Plain(Carrier),
    /// Encrypted.
    Tls(Box<TlsStream<Carrier>>),
}

/// The socket below, wherever it is.
pub(crate) struct Carrier(Whereabouts);

enum Whereabouts {
    /// Known to this core's event loop.
    Here(Socket),
    /// Known to none.
    AwayTcp(std::net::TcpStream),
    AwayUnix(std::os::unix::net::UnixStream),
    /// A move has failed.
    Lost,
}

/// What was heard of an upstream that was not asked anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Silence {
    /// Nothing.
    Kept,
    /// It has closed the connection, or lost it.
    Closed,
    /// It has said something.
    Broken,
}

impl Link {
    /// Asks the kernel.
    pub(crate) fn listen(&mut self) -> Silence {
        match self {
            Link::Plain(carrier) => carrier.listen(),
            Link::Tls(stream) => listen_encrypted(stream),
        }
    }

    /// The same, but asks the kernel only where the event loop has heard of something.
    pub(crate) fn listen_to_events(&mut self) -> Silence {
        let mut context = Context::from_waker(Waker::noop());
        let is_pending = match &self.carrier().0 {
            Whereabouts::Here(Socket::Tcp(stream)) => stream.poll_read_ready(&mut context).is_pending(),
            Whereabouts::Here(Socket::Unix(stream)) => stream.poll_read_ready(&mut context).is_pending(),
            Whereabouts::AwayTcp(_) | Whereabouts::AwayUnix(_) | Whereabouts::Lost => false,
        };
        if is_pending && self.is_drained() { Silence::Kept } else { self.listen() }
    }

    /// Whether nothing was decrypted that nobody has read. What the upstream sent is then all taken, or still in
    /// the kernel.
    pub(crate) fn is_drained(&self) -> bool {
        match self {
            Link::Plain(_) => true,
            Link::Tls(stream) => stream.get_ref().1.wants_read(),
        }
    }

    /// Out of this core's event loop.
    pub(crate) fn leave(&mut self) -> io::Result<()> {
        self.carrier_mut().leave()
    }

    /// Into the event loop of the core that this is called on.
    pub(crate) fn arrive(&mut self) -> io::Result<()> {
        self.carrier_mut().arrive()
    }

    fn carrier(&self) -> &Carrier {
        match self {
            Link::Plain(carrier) => carrier,
            Link::Tls(stream) => stream.get_ref().0,
        }
    }

    fn carrier_mut(&mut self) -> &mut Carrier {
        match self {
            Link::Plain(carrier) => carrier,
            Link::Tls(stream) => stream.get_mut().0,
        }
    }
}

impl Drop for Link {
    /// Tells the other side of an encrypted connection that what came is all (RFC 8446 section 6.1), as far as the
    /// kernel takes it at once.
    fn drop(&mut self) {
        if let Link::Tls(stream) = self {
            let (carrier, session) = stream.get_mut();
            if !session.is_handshaking() {
                session.send_close_notify();
                let _ = session.write_tls(&mut Kernel(carrier));
            }
        }
    }
}

/// Takes what came, which may be no more than session tickets, and tells whether the upstream spoke.
fn listen_encrypted(stream: &mut TlsStream<Carrier>) -> Silence {
    let (carrier, session) = stream.get_mut();
    for _ in 0..LISTENING_READS_MAX {
        if !session.wants_read() {
            return Silence::Broken;
        }
        match session.read_tls(&mut Kernel(carrier)) {
            Ok(0) => return Silence::Closed,
            Ok(_) => match session.process_new_packets() {
                Ok(state) if state.plaintext_bytes_to_read() > 0 => return Silence::Broken,
                Ok(state) if state.peer_has_closed() => return Silence::Closed,
                Ok(_) => {}
                Err(_) => return Silence::Broken,
            },
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Silence::Kept,
            Err(_) => return Silence::Closed,
        }
    }
    Silence::Broken
}

impl Carrier {
    pub(crate) fn new(socket: Socket) -> Self {
        Self(Whereabouts::Here(socket))
    }

    fn listen(&self) -> Silence {
        let mut byte = [0u8; 1];
        let Some(descriptor) = self.descriptor() else { return Silence::Closed };
        match rustix::net::recv(descriptor, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Err(rustix::io::Errno::AGAIN) => Silence::Kept,
            Ok((count, _)) if count > 0 => Silence::Broken,
            Ok(_) | Err(_) => Silence::Closed,
        }
    }

    fn leave(&mut self) -> io::Result<()> {
        let place = std::mem::replace(&mut self.0, Whereabouts::Lost);
        self.0 = match place {
            Whereabouts::Here(Socket::Tcp(stream)) => Whereabouts::AwayTcp(stream.into_std()?),
            Whereabouts::Here(Socket::Unix(stream)) => Whereabouts::AwayUnix(stream.into_std()?),
            away => away,
        };
        Ok(())
    }

    fn arrive(&mut self) -> io::Result<()> {
        // Outside of a runtime, as at its end, there is no event loop to come into.
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let place = std::mem::replace(&mut self.0, Whereabouts::Lost);
        self.0 = match place {
            Whereabouts::AwayTcp(stream) => Whereabouts::Here(Socket::Tcp(TcpStream::from_std(stream)?)),
            Whereabouts::AwayUnix(stream) => Whereabouts::Here(Socket::Unix(UnixStream::from_std(stream)?)),
            here => here,
        };
        Ok(())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.0 {
            Whereabouts::Here(Socket::Tcp(stream)) => Some(stream.as_fd()),
            Whereabouts::Here(Socket::Unix(stream)) => Some(stream.as_fd()),
            Whereabouts::AwayTcp(stream) => Some(stream.as_fd()),
            Whereabouts::AwayUnix(stream) => Some(stream.as_fd()),
            Whereabouts::Lost => None,
        }
    }

    fn socket(&mut self) -> io::Result<Pin<&mut Socket>> {
        match &mut self.0 {
            Whereabouts::Here(socket) => Ok(Pin::new(socket)),
            Whereabouts::AwayTcp(_) | Whereabouts::AwayUnix(_) | Whereabouts::Lost => {
                Err(io::ErrorKind::NotConnected.into())
            }
        }
    }
}

/// What the kernel takes and gives at once, past the event loop.
struct Kernel<'a>(&'a Carrier);

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

impl AsyncRead for Carrier {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.socket()?.poll_read(context, into)
    }
}

impl AsyncWrite for Carrier {
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

impl AsyncRead for Link {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Link::Plain(carrier) => Pin::new(carrier).poll_read(context, into),
            Link::Tls(stream) => Pin::new(stream).poll_read(context, into),
        }
    }
}

impl AsyncWrite for Link {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Link::Plain(carrier) => Pin::new(carrier).poll_write(context, bytes),
            Link::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Link::Plain(carrier) => Pin::new(carrier).poll_write_vectored(context, pieces),
            Link::Tls(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Link::Plain(carrier) => Pin::new(carrier).poll_flush(context),
            Link::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Link::Plain(carrier) => Pin::new(carrier).poll_shutdown(context),
            Link::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
