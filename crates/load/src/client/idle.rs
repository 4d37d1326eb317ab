//! A connection without a request, kept open.

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::Client;
use super::http2::Http2Connection;
use super::stream::Stream;

/// The connection of a [`Client`] without the client's buffers, so that thousands of them fit into memory. Dropping it
/// closes it.
#[derive(Debug)]
pub struct IdleConnection(Kept);

#[derive(Debug)]
enum Kept {
    Http1(Stream),
    Http2(Box<Http2Connection>),
}

impl Client {
    /// The connection that the last response left open; `None` where there is none.
    pub fn into_idle(self) -> Option<IdleConnection> {
        let http1 = self.connection.map(|connection| Kept::Http1(connection.stream));
        let http2 = self.http2.map(|connection| Kept::Http2(Box::new(connection)));
        http1.or(http2).map(IdleConnection)
    }
}

impl IdleConnection {
    /// Whether the server has not closed it.
    pub fn is_open(&self) -> bool {
        let stream = match &self.0 {
            Kept::Http1(stream) => stream,
            Kept::Http2(connection) => connection.stream(),
        };
        let socket = stream.socket();
        // Bytes alone are no end: TLS sends tickets, HTTP/2 its frames.
        let mut watched = [PollFd::new(&socket, PollFlags::RDHUP)];
        loop {
            match rustix::event::poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
                Ok(count) => return count == 0,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }
}
