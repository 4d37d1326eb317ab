//! The connection of a client: made, written to and read from.
//!
//! Owns the waits. None is longer than its timeout, and none goes on for long when somebody breaks it off; a peer
//! that takes a byte now and then is no exception.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use rustls::ClientConnection;

use super::{READ_BYTES, RequestError};
use crate::engine::open_socket;
use crate::tls::Tls;
use crate::url::Address;

/// How often a wait looks whether it is broken off. People take a tenth of a second for at once.
const LISTEN_EVERY: Duration = Duration::from_millis(100);

/// A Unix socket whose backlog is full says so instead of waiting: it is asked again after this.
const BACKLOG_RETRY: Duration = Duration::from_millis(1);

/// How long something may take, and who may break it off.
pub(super) struct Wait<'a> {
    /// `None` is beyond what a clock can say.
    deadline: Option<Instant>,
    timeouts: Duration,
    is_broken_off: &'a dyn Fn() -> bool,
}

/// A connection, encrypted where that is asked for.
#[derive(Debug)]
pub(super) struct Stream {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
    /// Decrypted bytes that were not read yet.
    plain: Vec<u8>,
    /// The other side ended its stream, as TLS has it.
    has_ended: bool,
    is_cut_off: bool,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl<'a> Wait<'a> {
    pub(super) fn new(begun: Instant, timeouts: Duration, is_broken_off: &'a dyn Fn() -> bool) -> Wait<'a> {
        Wait { deadline: begun.checked_add(timeouts), timeouts, is_broken_off }
    }

    /// How long the next system call may take. Never zero, which sockets take for ever.
    fn next(&self) -> Result<Duration, RequestError> {
        if (self.is_broken_off)() {
            return Err(RequestError::BrokenOff);
        }
        let left = self.deadline.map_or(LISTEN_EVERY, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Err(RequestError::TimedOut(self.timeouts));
        }
        Ok(left.clamp(Duration::from_millis(1), LISTEN_EVERY))
    }
}

impl Stream {
    /// Connects, and shakes hands where it is encrypted.
    pub(super) fn open(
        address: &Address,
        tls: Option<&Tls>,
        wait: &Wait<'_>,
    ) -> Result<Stream, RequestError> {
        let socket = Socket::open(address, wait)?;
        let mut stream = Stream { socket, tls: None, plain: Vec::new(), has_ended: false, is_cut_off: false };
        let Some(tls) = tls else { return Ok(stream) };
        let mut session = tls.connection().map_err(|error| RequestError::Tls(tls.explain(&error)))?;
        session.set_buffer_limit(None);
        let mut records = vec![0; READ_BYTES];
        while session.is_handshaking() {
            stream.socket.send_records(&mut session, wait)?;
            if !session.is_handshaking() {
                break;
            }
            let count = stream.socket.read(&mut records, wait)?;
            if count == 0 {
                let why = "the server ended the connection within the handshake";
                return Err(RequestError::Tls(why.to_owned()));
            }
            let records = records.get(..count).unwrap_or_default();
            if let Err(error) = take_records(&mut session, records, &mut stream.plain) {
                // The alert that says why.
                stream.socket.send_records(&mut session, wait)?;
                let why = tls.explain(&error);
                return Err(match tls.is_without_http2(&error) {
                    true => RequestError::Http2(why),
                    false => RequestError::Tls(why),
                });
            }
        }
        stream.socket.send_records(&mut session, wait)?;
        tls.check_protocol(&session).map_err(RequestError::Http2)?;
        stream.tls = Some(Box::new(session));
        Ok(stream)
    }

    /// Whether the other side ended an encrypted connection without TLS's own end: nothing is whole with that (RFC 9112
    /// section 9.8).
    pub(super) fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// The socket beneath.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        }
    }

    /// Reads once; 0 is the end, also that by a reset, after which nothing more comes.
    pub(super) fn read(&mut self, buffer: &mut [u8], wait: &Wait<'_>) -> Result<usize, RequestError> {
        let Some(session) = &mut self.tls else { return self.socket.read(buffer, wait) };
        loop {
            if !self.plain.is_empty() {
                let count = self.plain.len().min(buffer.len());
                for (to, from) in buffer.iter_mut().zip(self.plain.drain(..count)) {
                    *to = from;
                }
                return Ok(count);
            }
            if self.has_ended {
                return Ok(0);
            }
            let mut records = [0; RECORDS_READ_BYTES];
            let count = self.socket.read(&mut records, wait)?;
            if count == 0 {
                self.is_cut_off = true;
                return Ok(0);
            }
            let records = records.get(..count).unwrap_or_default();
            self.has_ended = take_records(session, records, &mut self.plain)
                .map_err(|error| RequestError::Tls(error.to_string()))?;
            self.socket.send_records(session, wait)?;
        }
    }

    /// Writes all. A peer that takes no more is no error: an early answer may be there, and is read in any case.
    pub(super) fn write(&mut self, bytes: &[u8], wait: &Wait<'_>) -> Result<(), RequestError> {
        let Some(session) = &mut self.tls else { return self.socket.write(bytes, wait) };
        session.writer().write_all(bytes).map_err(|error| RequestError::Tls(error.to_string()))?;
        self.socket.send_records(session, wait)
    }
}

/// Bytes of one read of an encrypted connection.
const RECORDS_READ_BYTES: usize = 16 * 1024;

/// Takes records that came, and puts what they hold for HTTP behind `plain`; whether the other side has ended its stream.
fn take_records(
    session: &mut ClientConnection,
    mut records: &[u8],
    plain: &mut Vec<u8>,
) -> Result<bool, rustls::Error> {
    loop {
        let general = |error: io::Error| rustls::Error::General(error.to_string());
        let count = session.read_tls(&mut records).map_err(general)?;
        let state = session.process_new_packets()?;
        // Taken out at once: what is left within would soon be too much.
        let held = plain.len();
        plain.resize(held + state.plaintext_bytes_to_read(), 0);
        session.reader().read_exact(plain.get_mut(held..).unwrap_or_default()).map_err(general)?;
        if count == 0 || records.is_empty() {
            return Ok(state.peer_has_closed());
        }
    }
}

impl Socket {
    fn open(address: &Address, wait: &Wait<'_>) -> Result<Socket, RequestError> {
        let timed_out = |error| match error {
            RequestError::TimedOut(timeouts) => RequestError::Connect(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("it was not made within {timeouts:?}"),
            )),
            error => error,
        };
        let socket = connect(address, wait).map_err(timed_out)?;
        let stream = match address {
            Address::Tcp(_) => Socket::Tcp(socket.into()),
            Address::Unix(_) => Socket::Unix(socket.into()),
        };
        let blocks = match &stream {
            Socket::Tcp(stream) => stream.set_nonblocking(false),
            Socket::Unix(stream) => stream.set_nonblocking(false),
        };
        blocks.map_err(RequestError::Connect)?;
        Ok(stream)
    }

    fn send_records(&mut self, session: &mut ClientConnection, wait: &Wait<'_>) -> Result<(), RequestError> {
        let mut records = Vec::new();
        while session.wants_write() {
            // To memory.
            session.write_tls(&mut records).map_err(|error| RequestError::Tls(error.to_string()))?;
        }
        self.write(&records, wait)
    }

    fn read(&mut self, buffer: &mut [u8], wait: &Wait<'_>) -> Result<usize, RequestError> {
        loop {
            let timeouts = Some(wait.next()?);
            // Only zero could be refused here.
            let read = match self {
                Socket::Tcp(stream) => stream.set_read_timeout(timeouts).and_then(|()| stream.read(buffer)),
                Socket::Unix(stream) => stream.set_read_timeout(timeouts).and_then(|()| stream.read(buffer)),
            };
            match read {
                Ok(count) => return Ok(count),
                Err(error) if is_to_be_repeated(&error) => {}
                Err(_) => return Ok(0),
            }
        }
    }

    fn write(&mut self, mut bytes: &[u8], wait: &Wait<'_>) -> Result<(), RequestError> {
        while !bytes.is_empty() {
            let timeouts = Some(wait.next()?);
            let written = match self {
                Socket::Tcp(stream) => stream.set_write_timeout(timeouts).and_then(|()| stream.write(bytes)),
                Socket::Unix(stream) => stream.set_write_timeout(timeouts).and_then(|()| stream.write(bytes)),
            };
            match written {
                Ok(0) => return Ok(()),
                Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Err(error) if is_to_be_repeated(&error) => {}
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }
}

fn connect(address: &Address, wait: &Wait<'_>) -> Result<OwnedFd, RequestError> {
    let failed = |error: Errno| RequestError::Connect(error.into());
    let socket = loop {
        let timeouts = wait.next()?;
        match open_socket(address) {
            Ok(socket) => break socket,
            Err(Errno::AGAIN) if matches!(address, Address::Unix(_)) => {
                std::thread::sleep(BACKLOG_RETRY.min(timeouts));
            }
            Err(error) => return Err(failed(error)),
        }
    };
    loop {
        let timeouts = wait.next()?;
        let mut watched = [PollFd::new(&socket, PollFlags::OUT)];
        // Never longer than a tenth of a second.
        let timeouts = Timespec { tv_sec: 0, tv_nsec: i64::from(timeouts.subsec_nanos()) };
        match rustix::event::poll(&mut watched, Some(&timeouts)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => break,
            Err(error) => return Err(failed(error)),
        }
    }
    rustix::net::sockopt::socket_error(&socket).and_then(|outcome| outcome).map_err(failed)?;
    Ok(socket)
}

fn is_to_be_repeated(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}
