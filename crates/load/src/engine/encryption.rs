//! The encryption of one connection of the load.
//!
//! Owns the records that go out and those that came, as far as they are no HTTP yet. Reads from no socket; plain
//! connections have none of this.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags};
use rustls::{ClientConnection, Error};

use crate::tls::{Handshakes, Tls};

/// What a connection needs beside its socket.
#[derive(Debug)]
pub(super) struct Encryption {
    session: ClientConnection,
    tls: Tls,
    /// Bytes that the socket took.
    sent: u64,
}

impl Encryption {
    pub(super) fn new(tls: &Tls) -> Result<Encryption, Error> {
        Ok(Encryption { session: tls.connection()?, tls: tls.clone(), sent: 0 })
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether records wait to go out.
    pub(super) fn has_unsent(&self) -> bool {
        self.session.wants_write()
    }

    /// Encrypts as many bytes as are held until they are sent.
    pub(super) fn write(&mut self, bytes: &[u8]) -> usize {
        // It writes to memory, and holds back what is too much.
        self.session.writer().write(bytes).unwrap_or(0)
    }

    /// Sends what is encrypted, all of it unless there is an error.
    pub(super) fn flush(&mut self, socket: &OwnedFd) -> Result<(), Errno> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut Socket(socket)) {
                Ok(count) => self.sent += count as u64,
                Err(error) => match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
                    Errno::INTR => {}
                    error => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// Puts what `wire` holds for HTTP behind `plain`. Whether the other side has ended its stream (RFC 8446 section
    /// 6.1).
    pub(super) fn decrypt(&mut self, mut wire: &[u8], plain: &mut Vec<u8>) -> Result<bool, Error> {
        loop {
            // From memory; only what was not taken out before could be too much, and all is.
            let count =
                self.session.read_tls(&mut wire).map_err(|error| Error::General(error.to_string()))?;
            let state = self.session.process_new_packets()?;
            let held = plain.len();
            plain.resize(held + state.plaintext_bytes_to_read(), 0);
            let read = self.session.reader().read_exact(plain.get_mut(held..).unwrap_or_default());
            read.map_err(|error| Error::General(error.to_string()))?;
            if count == 0 || wire.is_empty() {
                return Ok(state.peer_has_closed());
            }
        }
    }

    /// Tells the other side that nothing more comes (RFC 8446 section 6.1), where the socket takes it.
    pub(super) fn end(&mut self, socket: &OwnedFd) {
        self.session.send_close_notify();
        let _ = self.flush(socket);
    }

    pub(super) fn note(&self, handshakes: &mut Handshakes) {
        handshakes.note(&self.session);
    }

    /// Whether the server chose the protocol that is to be spoken.
    pub(super) fn check_protocol(&self) -> Result<(), String> {
        self.tls.check_protocol(&self.session)
    }

    pub(super) fn explain(&self, error: &Error) -> String {
        self.tls.explain(error)
    }
}

/// Records go out together, as many as there are.
struct Socket<'a>(&'a OwnedFd);

impl io::Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut nothing = SendAncillaryBuffer::default();
        Ok(rustix::net::sendmsg(self.0, parts, &mut nothing, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
