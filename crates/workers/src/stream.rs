//! One exchange on a worker connection: takes the frames that came for it, sends as credit allows.
//!
//! Dropped before its end it tells the worker that the exchange is over. Never touches a socket.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use onehop_wire::{self as wire, Frame, ResetCode};

use crate::connection::WorkerConnection;
use crate::limits::CONNECTION_INBOX_KEPT_BYTES_MAX;
use crate::stream_state::Progress;

/// One exchange.
pub struct Stream {
    connection: Rc<WorkerConnection>,
    slot: u16,
    generation: u32,
    /// The code of the RESET frame when this is dropped before the worker's end.
    pub reason: std::cell::Cell<ResetCode>,
    /// Whether the request went out whole.
    is_sent: std::cell::Cell<bool>,
}

/// The worker is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost;

impl Stream {
    /// Opens an exchange; `None` where all slots are taken or the connection is lost.
    pub fn open(connection: &Rc<WorkerConnection>) -> Option<Self> {
        let (slot, generation) = connection.open()?;
        let (reason, is_sent) = (ResetCode::ClientGone.into(), false.into());
        Some(Self { connection: Rc::clone(connection), slot, generation, reason, is_sent })
    }

    /// Appends frames of this exchange: `write(out, slot, generation)`.
    pub fn write<T>(&self, end: bool, write: impl FnOnce(&mut Vec<u8>, u16, u32) -> T) -> T {
        self.is_sent.set(self.is_sent.get() || end);
        self.connection.write(|out| write(out, self.slot, self.generation))
    }

    /// Opens both directions: the end of the request was not the end of this one.
    pub fn become_tunnel(&self) {
        self.is_sent.set(false);
    }

    /// Sends bytes that [`Stream::poll_room`] granted.
    fn send(&self, bytes: &[u8], end: bool) {
        self.write(end, |out, slot, generation| wire::encode::data(out, slot, generation, end, bytes));
    }

    /// Takes of the credit for the body's bytes that travel with the head: at most `wanted`.
    pub fn take_room(&self, wanted: usize) -> usize {
        let mut state = self.connection.state.borrow_mut();
        let parts = state.stream_and_window(self.slot);
        parts.map_or(0, |(stream, connection)| stream.send.take_with(connection, wanted))
    }

    /// Waits until credit allows at least one byte, and takes it for at most `wanted`. What is taken is sent at
    /// once: credit that is held while waiting for something else would be missing to all other exchanges.
    pub fn poll_room(&self, wanted: usize, context: &mut Context<'_>) -> Poll<Result<usize, Lost>> {
        let mut state = self.connection.state.borrow_mut();
        if state.is_lost {
            return Poll::Ready(Err(Lost));
        }
        let Some((stream, connection)) = state.stream_and_window(self.slot) else {
            return Poll::Ready(Err(Lost));
        };
        match stream.send.take_with(connection, wanted) {
            0 => {
                stream.sender = Some(context.waker().clone());
                Poll::Pending
            }
            granted => Poll::Ready(Ok(granted)),
        }
    }

    /// Sends bytes of a body as credit allows. With `end` they are the last; the last of none is an empty frame.
    pub async fn send_all(&self, mut bytes: &[u8], end: bool) -> Result<(), Lost> {
        while !bytes.is_empty() {
            let room = poll_fn(|context| self.poll_room(bytes.len(), context)).await?;
            let (now, later) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            self.send(now, end && later.is_empty());
            if later.is_empty() {
                return Ok(());
            }
            bytes = later;
        }
        if end {
            self.send(&[], true);
        }
        Ok(())
    }

    /// Takes all frames that have come, as bytes; waits for the first.
    pub fn poll_frames(&self, into: &mut Vec<u8>, context: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        let mut state = self.connection.state.borrow_mut();
        let is_lost = state.is_lost;
        let Some(stream) = state.stream(self.slot) else { return Poll::Ready(Err(Lost)) };
        if stream.inbox.is_empty() {
            if is_lost {
                return Poll::Ready(Err(Lost));
            }
            if !stream.reader.as_ref().is_some_and(|reader| reader.will_wake(context.waker())) {
                stream.reader = Some(context.waker().clone());
            }
            return Poll::Pending;
        }
        into.clear();
        std::mem::swap(&mut stream.inbox, into);
        Poll::Ready(Ok(()))
    }

    /// Puts frames back that belong to the tunnel that follows.
    pub fn unread(&self, frames: &[u8]) {
        let mut state = self.connection.state.borrow_mut();
        if let Some(stream) = state.stream(self.slot) {
            stream.inbox.splice(..0, frames.iter().copied());
        }
    }

    /// Gives the buffer of frames back for the next ones.
    pub fn return_buffer(&self, mut buffer: Vec<u8>) {
        let mut state = self.connection.state.borrow_mut();
        if let Some(stream) = state.stream(self.slot)
            && stream.inbox.capacity() == 0
            && buffer.capacity() <= CONNECTION_INBOX_KEPT_BYTES_MAX
        {
            buffer.clear();
            stream.inbox = buffer;
        }
    }

    /// Notes that a part of a file was passed on, or as many bytes of it as the file has.
    pub fn file_sent(&self, bytes: u64) {
        if let Some(stream) = self.connection.state.borrow_mut().stream(self.slot) {
            stream.file_parts = stream.file_parts.saturating_sub(1);
        }
        self.write(false, |out, slot, generation| wire::encode::file_sent(out, slot, generation, bytes));
    }

    /// Notes that bytes of the response's body were passed on.
    pub fn consumed(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let mut state = self.connection.state.borrow_mut();
        let credit = state.stream(self.slot).and_then(|stream| {
            let credit = stream.receive.consumed(bytes);
            credit.filter(|_| stream.progress != Progress::Over)
        });
        state.consumed(bytes);
        drop(state);
        if let Some(credit) = credit {
            self.write(false, |out, slot, generation| wire::encode::credit(out, slot, generation, credit));
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let progress = self.connection.state.borrow_mut().stream(self.slot).map(|stream| stream.progress);
        let code = match progress {
            Some(Progress::Over | Progress::HalfClosed) if self.is_sent.get() => None,
            // The response is complete, the rest of the request is not needed.
            Some(Progress::Over) => Some(ResetCode::NotNeeded),
            _ => Some(self.reason.get()),
        };
        if let Some(code) = code {
            self.connection.write(|out| wire::encode::reset(out, self.slot, self.generation, code));
        }
        self.connection.close(self.slot);
    }
}

/// Whole frames of one exchange, one after the other; the connection has checked them.
pub fn next_frame(bytes: &[u8]) -> Option<(Frame<'_>, usize)> {
    wire::decode(bytes, wire::Sender::Worker, wire::ConnectionKind::Data).ok().flatten()
}
