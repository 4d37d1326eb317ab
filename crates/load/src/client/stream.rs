//! The connection of a client: made, written to and read from.
//!
//! Owns the waits. None is longer than its timeout, and none goes on for long when somebody breaks it off; a peer
//! that takes a byte now and then is no exception.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::RequestError;
use crate::engine::open_socket;
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

#[derive(Debug)]
pub(super) enum Stream {
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
    pub(super) fn open(address: &Address, wait: &Wait<'_>) -> Result<Stream, RequestError> {
        let timed_out = |error| match error {
            RequestError::TimedOut(timeouts) => RequestError::Connect(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("it was not made within {timeouts:?}"),
            )),
            error => error,
        };
        let socket = connect(address, wait).map_err(timed_out)?;
        let stream = match address {
            Address::Tcp(_) => Stream::Tcp(socket.into()),
            Address::Unix(_) => Stream::Unix(socket.into()),
        };
        let blocks = match &stream {
            Stream::Tcp(stream) => stream.set_nonblocking(false),
            Stream::Unix(stream) => stream.set_nonblocking(false),
        };
        blocks.map_err(RequestError::Connect)?;
        Ok(stream)
    }

    /// Reads once; 0 is the end, also that by a reset, after which nothing more comes.
    pub(super) fn read(&mut self, buffer: &mut [u8], wait: &Wait<'_>) -> Result<usize, RequestError> {
        loop {
            let timeouts = Some(wait.next()?);
            // Only zero could be refused here.
            let read = match self {
                Stream::Tcp(stream) => stream.set_read_timeout(timeouts).and_then(|()| stream.read(buffer)),
                Stream::Unix(stream) => stream.set_read_timeout(timeouts).and_then(|()| stream.read(buffer)),
            };
            match read {
                Ok(count) => return Ok(count),
                Err(error) if is_to_be_repeated(&error) => {}
                Err(_) => return Ok(0),
            }
        }
    }

    /// Writes all. A peer that takes no more is no error: an early answer may be there, and is read in any case.
    pub(super) fn write(&mut self, mut bytes: &[u8], wait: &Wait<'_>) -> Result<(), RequestError> {
        while !bytes.is_empty() {
            let timeouts = Some(wait.next()?);
            let written = match self {
                Stream::Tcp(stream) => stream.set_write_timeout(timeouts).and_then(|()| stream.write(bytes)),
                Stream::Unix(stream) => stream.set_write_timeout(timeouts).and_then(|()| stream.write(bytes)),
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
