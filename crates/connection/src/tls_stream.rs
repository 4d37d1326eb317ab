//! An encrypted connection: records in and out of a TCP stream, as rustls makes them.
//!
//! The handshake is over before a stream is made; which certificate a client gets is decided in `onehop_tls`. Records are
//! sized for the client (RFC 8446 section 5.1): it can decrypt nothing before a record is complete, so a response begins
//! with records of one TCP segment and continues with the longest ones.

use std::io::{self, IoSlice, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use rustls::ServerConnection;
use rustls::server::{Accepted, AcceptedAlert, Acceptor};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::limits::{TLS_FIRST_RECORD_BYTES, TLS_FIRST_RECORDS, TLS_WRITE_BYTES_MAX};

/// Why there was no handshake.
#[derive(Debug)]
pub enum HandshakeError {
    /// The client has gone, or the network has.
    Io(io::Error),
    /// What it sent is no handshake, or none that is possible; it was sent an alert.
    Tls(rustls::Error),
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads the first message of a client, which says what it wants (RFC 8446 section 4.1.2).
pub fn poll_hello(
    acceptor: &mut Acceptor,
    stream: &mut TcpStream,
    context: &mut Context<'_>,
) -> Poll<Result<Accepted, HandshakeError>> {
    loop {
        match acceptor.accept() {
            Ok(Some(accepted)) => return Poll::Ready(Ok(accepted)),
            Ok(None) => {}
            Err((error, alert)) => {
                send_alert(alert, stream, context);
                return Poll::Ready(Err(HandshakeError::Tls(error)));
            }
        }
        let mut kernel = Kernel { stream, context };
        match acceptor.read_tls(&mut kernel) {
            Ok(0) => return Poll::Ready(Err(io::Error::from(io::ErrorKind::UnexpectedEof).into())),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
            Err(error) => return Poll::Ready(Err(error.into())),
        }
    }
}

/// Sends what the kernel takes of an alert: the client need not wait for the rest.
pub fn send_alert(mut alert: AcceptedAlert, stream: &mut TcpStream, context: &mut Context<'_>) {
    let _ = alert.write_all(&mut Kernel { stream, context });
}

/// A connection whose handshake is over.
pub struct TlsStream {
    stream: TcpStream,
    session: ServerConnection,
    /// The kernel did not take all that was encrypted.
    is_blocked: bool,
    /// Bytes that have been decrypted and not read.
    decrypted: usize,
    /// Short records that the response may still begin with; renewed when the client has sent something.
    short_records: usize,
    /// The stream has ended; without a `close_notify` before it, somebody may have cut it off.
    is_at_end: bool,
}

impl TlsStream {
    /// A connection whose handshake is to be completed by [`Self::poll_handshake`].
    pub fn new(stream: TcpStream, mut session: ServerConnection) -> Self {
        session.set_buffer_limit(Some(TLS_WRITE_BYTES_MAX));
        Self {
            stream,
            session,
            is_blocked: false,
            decrypted: 0,
            short_records: TLS_FIRST_RECORDS,
            is_at_end: false,
        }
    }

    /// The TCP stream below.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// What was negotiated.
    pub fn session(&self) -> &ServerConnection {
        &self.session
    }

    /// Whether decrypted bytes wait to be read.
    pub fn has_decrypted(&self) -> bool {
        self.decrypted > 0
    }

    /// Exchanges messages until the handshake is over.
    pub fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<Result<(), HandshakeError>> {
        // What came with the first message, and was read with it.
        if let Err(error) = self.session.process_new_packets() {
            let _ = self.poll_send(context);
            return Poll::Ready(Err(HandshakeError::Tls(error)));
        }
        while self.session.is_handshaking() {
            // The client waits for our messages before it sends its next.
            ready!(self.poll_send(context))?;
            match ready!(self.poll_receive(context)) {
                Ok(()) if self.is_at_end => {
                    return Poll::Ready(Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()));
                }
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    let cause = error.downcast::<rustls::Error>();
                    return Poll::Ready(Err(cause.map_or_else(HandshakeError::Io, HandshakeError::Tls)));
                }
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Sends encrypted bytes until none is left. Must be called after the last write: a write takes bytes that the kernel
    /// has not taken.
    pub fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.wants_write() {
            let mut kernel = Kernel { stream: &mut self.stream, context };
            match self.session.write_tls(&mut kernel) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_blocked = true;
                    return Poll::Pending;
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        self.is_blocked = false;
        Poll::Ready(Ok(()))
    }

    /// Says that nothing more comes (RFC 8446 section 6.1), as far as the kernel takes it without waiting: for a connection
    /// on which nothing is under way.
    pub fn notify_end(&mut self) {
        self.session.send_close_notify();
        let _ = self.poll_send(&mut Context::from_waker(Waker::noop()));
    }

    /// Decrypts what the kernel has; 0 bytes at the end of the stream.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut kernel = Kernel { stream: &mut self.stream, context };
        match self.session.read_tls(&mut kernel) {
            Ok(0) => self.is_at_end = true,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // Session tickets go with the first response, or at once where the client sends no request.
                let _ = self.poll_send(context)?;
                return Poll::Pending;
            }
            Err(error) => return Poll::Ready(Err(error)),
        }
        let processed = self.session.process_new_packets();
        let state = match processed {
            Ok(state) => state,
            Err(error) => {
                // The alert that says what was wrong, as far as the kernel takes it.
                let _ = self.poll_send(context);
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
            }
        };
        self.decrypted = state.plaintext_bytes_to_read();
        Poll::Ready(Ok(()))
    }

    /// Encrypts one piece as the next records, and how many bytes of it those are.
    fn encrypt(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.short_records == 0 {
            return self.session.writer().write_vectored(pieces);
        }
        let mut written = 0;
        for piece in pieces {
            let mut rest: &[u8] = piece;
            while !rest.is_empty() && self.short_records > 0 {
                let length = rest.len().min(TLS_FIRST_RECORD_BYTES);
                let (record, after) = rest.split_at(length);
                let taken = self.session.writer().write(record)?;
                written += taken;
                if taken < length {
                    return Ok(written);
                }
                self.short_records -= 1;
                rest = after;
            }
            if !rest.is_empty() {
                return self.session.writer().write(rest).map(|taken| written + taken);
            }
        }
        Ok(written)
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.decrypted > 0 || this.is_at_end {
                // An end without `close_notify` is an error: the client may have sent more (RFC 8446 section 6.1).
                let count = this.session.reader().read(buf.initialize_unfilled())?;
                this.decrypted = this.decrypted.saturating_sub(count);
                this.short_records = TLS_FIRST_RECORDS;
                buf.advance(count);
                return Poll::Ready(Ok(()));
            }
            ready!(this.poll_receive(cx))?;
            if this.decrypted == 0 && !this.session.wants_read() {
                this.is_at_end = true;
            }
        }
    }
}

impl AsyncWrite for TlsStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    /// Takes nothing while earlier bytes wait for the client, so that a slow one holds no more than one write.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.is_blocked {
            ready!(this.poll_send(cx))?;
        }
        let count = this.encrypt(bufs)?;
        match this.poll_send(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) | Poll::Pending => Poll::Ready(Ok(count)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_send(cx)
    }

    /// Says that nothing more comes (RFC 8446 section 6.1), and closes the sending direction.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // Once: rustls passes over the second call.
        this.session.send_close_notify();
        ready!(this.poll_send(cx))?;
        Pin::new(&mut this.stream).poll_shutdown(cx)
    }
}

/// The TCP stream as rustls reads and writes it: without waiting; who waits is woken.
struct Kernel<'s, 'c, 'w> {
    stream: &'s mut TcpStream,
    context: &'c mut Context<'w>,
}

impl Kernel<'_, '_, '_> {
    fn now<T>(polled: Poll<io::Result<T>>) -> io::Result<T> {
        match polled {
            Poll::Ready(result) => result,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Read for Kernel<'_, '_, '_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(bytes);
        Self::now(Pin::new(&mut *self.stream).poll_read(self.context, &mut buffer))?;
        Ok(buffer.filled().len())
    }
}

impl Write for Kernel<'_, '_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::now(Pin::new(&mut *self.stream).poll_write(self.context, bytes))
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        Self::now(Pin::new(&mut *self.stream).poll_write_vectored(self.context, pieces))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
