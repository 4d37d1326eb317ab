//! What one exchange runs on: a connection of HTTP/1, or a stream of HTTP/2. Never sends anything by itself.

use std::cell::Cell;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use onehop_connection::buffers::Input;
use onehop_http1::ResponseHead;

use crate::codec::Codec;
use crate::connection::Connection;
use crate::multiplexed::Stream;

/// A way to send one request and to receive its response.
pub enum Link {
    /// A connection. It may be used again.
    Http1(Box<Connection>),
    /// A stream. Dropped before its end, it is reset.
    Http2(Box<Stream>),
}

impl Link {
    /// Whether the connection below has waited for a request, or carried one before: then the upstream may have closed it
    /// meanwhile.
    pub fn is_kept(&self) -> bool {
        match self {
            Self::Http1(connection) => connection.is_kept(),
            Self::Http2(stream) => stream.is_kept(),
        }
    }

    /// Waits until a request for an upgrade may be sent: over HTTP/2, until the peer's settings have come (RFC 8441
    /// section 3), or the connection is over. The peer's dial timeout bounds it.
    pub async fn await_upgrades(&self) {
        if let Self::Http2(stream) = self {
            stream.settled().await;
        }
    }

    /// The codec, for the time of one call.
    pub fn codec(&self) -> Codec<'_> {
        match self {
            Self::Http1(connection) => Codec::Http1(connection.codec()),
            Self::Http2(stream) => Codec::Http2(stream.codec()),
        }
    }

    /// Why a stream ended before its response, for a person.
    pub fn failure(&self) -> Option<String> {
        match self {
            Self::Http1(_) => None,
            Self::Http2(stream) => stream.failure(),
        }
    }

    /// Whether the upstream has said that it did not begin the request.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Http2(stream) if stream.is_refused())
    }

    /// Whether the upstream has ended the exchange, and not the connection.
    pub fn is_reset(&self) -> bool {
        matches!(self, Self::Http2(stream) if stream.is_reset())
    }

    /// Notes what a response's head says about the connection (`Keep-Alive: timeout=5`).
    pub fn note_keep_alive(&self, head: &ResponseHead) {
        if let Self::Http1(connection) = self {
            connection.note_keep_alive(head);
        }
    }

    /// Makes it ready for another request; `false` where it is of no more use, as a stream always is. `unread` bytes of the
    /// upstream were not parsed.
    pub fn reuse(&self, unread: usize) -> bool {
        matches!(self, Self::Http1(connection) if connection.reuse(unread))
    }

    /// Counts a connection as a tunnel while this is held.
    pub fn become_tunnel(&self) -> Option<impl Sized + use<>> {
        match self {
            Self::Http1(connection) => connection.become_tunnel(),
            Self::Http2(_) => None,
        }
    }

    /// Reads once; 0 is the end.
    pub fn poll_fill(&self, input: &mut Input, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match self {
            Self::Http1(connection) => connection.poll_fill(input, context),
            Self::Http2(stream) => stream.poll_fill(input, context),
        }
    }

    /// Writes `first` and then `second`; see [`Connection::write`].
    pub async fn write(&self, first: &[u8], second: &[u8]) -> io::Result<()> {
        match self {
            Self::Http1(connection) => connection.write(first, second).await,
            Self::Http2(stream) => stream.write(first, second).await,
        }
    }

    /// Writes what is taken without waiting: `None` where that was all of it, else how much.
    pub async fn write_now(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        match self {
            Self::Http1(connection) => connection.write_now(bytes).await,
            Self::Http2(stream) => stream.write_now(bytes).await,
        }
    }

    /// Ends when the upstream has taken nothing for so long; for beside [`Link::write`], and polled after it.
    pub async fn stuck_for(&self, time: Duration) {
        let taken = match self {
            Self::Http1(connection) => connection.pieces_taken(),
            Self::Http2(stream) => stream.pieces_taken(),
        };
        stuck_for(taken, time).await;
    }

    /// Ends the sending side; the upstream may continue to send.
    pub async fn finish_sending(&self) -> io::Result<()> {
        match self {
            Self::Http1(connection) => connection.finish_sending().await,
            Self::Http2(stream) => {
                stream.codec().finish_tunnel();
                Ok(())
            }
        }
    }
}

/// Ends when the count has stayed the same for so long.
async fn stuck_for(taken: &Cell<u64>, time: Duration) {
    let mut due = pin!(tokio::time::sleep(time));
    let mut seen = taken.get();
    std::future::poll_fn(|context| {
        if taken.get() != seen {
            seen = taken.get();
            due.set(tokio::time::sleep(time));
        }
        due.as_mut().poll(context)
    })
    .await;
}
