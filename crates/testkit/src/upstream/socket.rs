//! The sockets that an upstream's connections are made of, and the second handle by which they are cut off.
//!
//! Reads and writes bytes; knows nothing of HTTP.

use std::io::{Read, Result, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt;

/// One connection's socket.
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<rustls::StreamOwned<rustls::ServerConnection, TcpStream>>),
}

/// A second descriptor of the same socket.
pub(super) enum Handle {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(super) fn of_tcp(stream: TcpStream, tls: Option<&Arc<rustls::ServerConfig>>) -> Option<Socket> {
        let Some(settings) = tls else { return Some(Socket::Tcp(stream)) };
        let session = rustls::ServerConnection::new(Arc::clone(settings)).ok()?;
        Some(Socket::Tls(Box::new(rustls::StreamOwned::new(session, stream))))
    }

    pub(super) fn handle(&self) -> Option<Handle> {
        match self {
            Socket::Tcp(stream) => stream.try_clone().ok().map(Handle::Tcp),
            Socket::Tls(stream) => stream.sock.try_clone().ok().map(Handle::Tcp),
            Socket::Unix(stream) => stream.try_clone().ok().map(Handle::Unix),
        }
    }

    /// How long a read waits.
    pub(super) fn wait_at_most(&self, timeout: Option<Duration>) {
        let _ = match self {
            Socket::Tcp(stream) => stream.set_read_timeout(timeout),
            Socket::Tls(stream) => stream.sock.set_read_timeout(timeout),
            Socket::Unix(stream) => stream.set_read_timeout(timeout),
        };
    }

    /// TLS: the handshake, which would otherwise come with the first read.
    pub(super) fn shake_hands(&mut self) -> bool {
        match self {
            Socket::Tls(stream) => stream.conn.complete_io(&mut stream.sock).is_ok(),
            Socket::Tcp(_) | Socket::Unix(_) => true,
        }
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(buffer),
            Socket::Tls(stream) => stream.read(buffer),
            Socket::Unix(stream) => stream.read(buffer),
        }
    }

    pub(super) fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Socket::Tcp(stream) => stream.write_all(bytes),
            Socket::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
            Socket::Unix(stream) => stream.write_all(bytes),
        }
    }

    /// Nothing more will be sent.
    pub(super) fn end_of_sending(&mut self) {
        let _ = match self {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Socket::Tls(stream) => {
                stream.conn.send_close_notify();
                let _ = stream.flush();
                stream.sock.shutdown(Shutdown::Write)
            }
            Socket::Unix(stream) => stream.shutdown(Shutdown::Write),
        };
    }
}

impl Handle {
    /// Ends the connection at once, whoever else holds its socket: with a reset where there are such.
    pub(super) fn reset(&self) {
        match self {
            Handle::Tcp(stream) => {
                self.reset_when_closed();
                let _ = stream.shutdown(Shutdown::Both);
            }
            Handle::Unix(stream) => drop(stream.shutdown(Shutdown::Both)),
        }
    }

    /// The last close of the socket is a reset (SO_LINGER of zero seconds, socket(7)).
    pub(super) fn reset_when_closed(&self) {
        if let Handle::Tcp(stream) = self {
            let _ = sockopt::set_socket_linger(stream, Some(Duration::ZERO));
        }
    }
}
