//! One HTTP/2 connection of the load: its socket, its encryption, its streams as far as they are counted.
//!
//! Owns the bytes between the socket and `http2/`, and their number. Knows no clock and no request.

use std::os::fd::OwnedFd;

use h2::Reason;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::encryption::Encryption;
use super::limits::{READ_BYTES, READS_PER_TURN_MAX};
use crate::http2::Http2;
use crate::tls::Handshakes;

/// A connection and what it is at.
#[derive(Debug)]
pub(super) struct Session {
    pub socket: OwnedFd,
    tls: Option<Box<Encryption>>,
    pub http2: Http2,
    /// Its events carry this number: those of an earlier one are nobody's.
    pub generation: u32,
    /// Where it belongs, the number of a connection of the plan.
    pub slot: usize,
    pub stage: SessionStage,
    /// It takes no more requests and ends with its last stream.
    pub is_draining: bool,
    /// The code of the GOAWAY that came.
    pub goaway: Option<Reason>,
    /// There may be something to read.
    pub is_readable: bool,
    /// And the end may be among it.
    pub is_closing: bool,
    /// Streams that are open.
    pub streams: usize,
    /// Requests that were sent on it.
    pub requests: u32,
    read: u64,
    written: u64,
}

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionStage {
    /// Nothing was sent yet.
    Connecting,
    /// TLS is agreed on.
    Handshaking,
    /// The server's SETTINGS are waited for.
    Settings,
    /// It takes requests.
    Open,
}

/// Why a connection carries no HTTP/2.
#[derive(Debug)]
pub(super) enum Broken {
    /// No connection.
    Connect(Errno),
    /// No TLS.
    Tls(String),
    /// TLS, and another protocol than HTTP/2.
    Protocol(String),
}

impl Session {
    pub(super) fn new(
        socket: OwnedFd,
        tls: Option<Box<Encryption>>,
        http2: Http2,
        generation: u32,
        slot: usize,
    ) -> Session {
        Session {
            socket,
            tls,
            http2,
            generation,
            slot,
            stage: SessionStage::Connecting,
            is_draining: false,
            goaway: None,
            is_readable: false,
            is_closing: false,
            streams: 0,
            requests: 0,
            read: 0,
            written: 0,
        }
    }

    /// Bytes of HTTP/2 that were read and written since this was last asked for, as over HTTP/1.1 without what TLS adds.
    pub(super) fn take_bytes(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.read), std::mem::take(&mut self.written))
    }

    /// Reads what is there, as much as one connection may at a time.
    pub(super) fn fill(&mut self, buffer: &mut [u8], handshakes: &mut Handshakes) -> Result<(), Broken> {
        for _ in 0..READS_PER_TURN_MAX {
            match rustix::net::recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
                Ok((count @ 1.., _)) => {
                    self.take(buffer.get(..count).unwrap_or_default(), handshakes)?;
                    // A short read left nothing behind (epoll(7)), and what comes later is another edge.
                    if count < READ_BYTES && !self.is_closing {
                        self.is_readable = false;
                        return Ok(());
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.is_readable = false;
                    return Ok(());
                }
                // A reset: what had not come will not.
                Ok(_) | Err(_) => {
                    self.is_readable = false;
                    if self.stage == SessionStage::Handshaking {
                        let why = "the server ended the connection within the TLS handshake";
                        return Err(Broken::Tls(why.to_owned()));
                    }
                    self.http2.end();
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8], handshakes: &mut Handshakes) -> Result<(), Broken> {
        let Some(tls) = &mut self.tls else {
            self.read += bytes.len() as u64;
            self.http2.receive(|incoming| incoming.extend_from_slice(bytes));
            return Ok(());
        };
        let (decrypted, count) = self.http2.receive(|incoming| {
            let held = incoming.len();
            (tls.decrypt(bytes, incoming), incoming.len() - held)
        });
        self.read += count as u64;
        match decrypted {
            Ok(has_closed) => {
                self.agreed(handshakes)?;
                if has_closed {
                    self.http2.end();
                }
                Ok(())
            }
            Err(error) => {
                // The alert that says why.
                let _ = tls.flush(&self.socket);
                Err(Broken::Tls(tls.explain(&error)))
            }
        }
    }

    /// Notes the handshake once it is over, and checks what it chose.
    fn agreed(&mut self, handshakes: &mut Handshakes) -> Result<(), Broken> {
        let is_waiting = matches!(self.stage, SessionStage::Connecting | SessionStage::Handshaking);
        let Some(tls) = self.tls.as_ref().filter(|tls| is_waiting && !tls.is_handshaking()) else {
            return Ok(());
        };
        tls.note(handshakes);
        tls.check_protocol().map_err(Broken::Protocol)?;
        self.stage = SessionStage::Settings;
        Ok(())
    }

    /// Writes what the socket takes: all, unless there is an error.
    pub(super) fn flush(&mut self) -> Result<(), Errno> {
        loop {
            let (sent, outcome) = match &mut self.tls {
                None => send(&self.socket, &self.http2),
                Some(tls) => {
                    let before = tls.sent();
                    if !tls.is_handshaking() {
                        self.written += self.http2.send(|bytes| {
                            let count = tls.write(bytes);
                            (count, count as u64)
                        });
                    }
                    let outcome = tls.flush(&self.socket);
                    (tls.sent() - before, outcome)
                }
            };
            if self.tls.is_none() {
                self.written += sent;
            }
            if sent > 0 && self.stage == SessionStage::Connecting {
                let is_encrypted = self.tls.is_some();
                self.stage = if is_encrypted { SessionStage::Handshaking } else { SessionStage::Settings };
            }
            match outcome {
                Ok(()) if sent == 0 => return Ok(()),
                Ok(()) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Ends the connection.
    pub(super) fn close(mut self) {
        if let Some(tls) = &mut self.tls {
            tls.end(&self.socket);
        }
    }
}

/// One write of what is to be sent, where that is anything.
fn send(socket: &OwnedFd, http2: &Http2) -> (u64, Result<(), Errno>) {
    http2.send(|bytes| match bytes.is_empty() {
        true => (0, (0, Ok(()))),
        false => match rustix::net::send(socket, bytes, SendFlags::NOSIGNAL) {
            Ok(count) => (count, (count as u64, Ok(()))),
            Err(error) => (0, (0, Err(error))),
        },
    })
}
