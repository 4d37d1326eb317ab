//! The body of a request on its way to a server, within the windows of that and the room in the connection.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, SendStream};
use http::HeaderMap;

use crate::head;
use crate::limits::PIECE_BYTES_MAX;
use crate::outgoing::{Outgoing, Piece, Priority, Turn};

/// The sending side of a stream.
pub(super) struct Sending {
    body: SendStream<Piece>,
    turn: Turn,
    /// Bytes that were sent.
    sent: u64,
    /// Bytes until the end, where that is known.
    left: Option<u64>,
    /// What follows the body.
    trailers: Option<HeaderMap>,
    /// Nothing more is sent.
    is_over: bool,
}

impl Sending {
    pub(super) fn new(body: SendStream<Piece>, outgoing: &Rc<Outgoing>, is_over: bool) -> Self {
        Self { body, turn: Turn::new(Rc::clone(outgoing)), sent: 0, left: None, trailers: None, is_over }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The body ends after so many more bytes, with these lines.
    pub(super) fn end_after(&mut self, bytes: u64, trailers: &[u8]) {
        self.left = Some(bytes);
        if !trailers.is_empty() {
            self.trailers = Some(head::fields_of(trailers));
        }
    }

    /// Sends as much as there is room for. The error is `None` where the stream has ended.
    pub(super) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, Option<io::Error>>> {
        let wanted = bytes.len().min(PIECE_BYTES_MAX);
        if self.is_over {
            return Poll::Ready(Err(Some(io::ErrorKind::BrokenPipe.into())));
        }
        if self.body.capacity() == 0 {
            self.body.reserve_capacity(wanted);
            if !matches!(ready!(self.body.poll_capacity(context)), Some(Ok(_))) {
                return Poll::Ready(Err(None));
            }
        }
        let number = self.body.stream_id().as_u32();
        ready!(self.turn.poll(context, number, Priority::default(), self.sent));
        let count = self.body.capacity().min(wanted);
        let ends = self.left == Some(count as u64) && self.trailers.is_none();
        let piece = Bytes::copy_from_slice(bytes.get(..count).unwrap_or_default());
        let piece = Piece::new(piece, self.turn.outgoing());
        self.body.send_data(piece, ends).map_err(|_| None)?;
        self.is_over = ends;
        self.sent += count as u64;
        self.left = self.left.map(|left| left.saturating_sub(count as u64));
        Poll::Ready(Ok(count))
    }

    /// Ends the request where all of it is sent.
    pub(super) fn end(&mut self) {
        if self.is_over || self.left != Some(0) {
            return;
        }
        self.is_over = true;
        let _ = match self.trailers.take() {
            Some(trailers) => self.body.send_trailers(trailers),
            None => self.body.send_data(Piece::new(Bytes::new(), self.turn.outgoing()), true),
        };
    }

    /// Breaks the stream off.
    pub(super) fn reset(&mut self, reason: Reason) {
        self.body.send_reset(reason);
    }
}
