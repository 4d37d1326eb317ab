//! One exchange's place on a lane: what came for it, what may be sent.
//!
//! Dropped before its end it tells the worker that the exchange is over. Never touches a socket.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use onehop_wire::{self as wire, Frame, Meter, ResetCode, Window};

use super::lane::Lane;
use crate::limits::LANE_INBOX_KEPT_BYTES_MAX;

/// How far an exchange is, as the worker's frames tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Progress {
    /// Nothing final has come.
    Asked,
    /// The answer's head is there.
    Answering,
    /// The exchange has become a tunnel.
    Tunnel,
    /// A tunnel whose worker has ended its direction.
    HalfClosed,
    /// The worker has ended it.
    #[default]
    Over,
}

/// A slot's exchange, or what is left of the last one.
pub(super) struct StreamState {
    generation: u32,
    pub(super) progress: Progress,
    pub(super) informational: usize,
    /// Parts of files that were asked for and are not sent.
    pub(super) file_parts: usize,
    /// Whole frames that nobody has looked at. Bounded by credit, and by the number of frames without it.
    pub(super) inbox: Vec<u8>,
    reader: Option<Waker>,
    sender: Option<Waker>,
    pub(super) send: Window,
    pub(super) receive: Meter,
}

impl Default for StreamState {
    fn default() -> Self {
        Self {
            generation: 0,
            progress: Progress::Over,
            informational: 0,
            file_parts: 0,
            inbox: Vec::new(),
            reader: None,
            sender: None,
            send: Window::new(0),
            receive: Meter::new(0),
        }
    }
}

impl StreamState {
    /// A new exchange.
    pub(super) fn begin(&mut self, generation: u32, window: u32) {
        let inbox = std::mem::take(&mut self.inbox);
        *self = Self {
            generation,
            progress: Progress::Asked,
            inbox,
            send: Window::new(window),
            receive: Meter::new(window),
            ..Self::default()
        };
        self.inbox.clear();
    }

    /// Nobody looks at it any more; bytes that were not passed on. `keeps`: the next exchange may have the buffer.
    pub(super) fn end(&mut self, keeps: bool) -> usize {
        self.inbox.clear();
        if !keeps || self.inbox.capacity() > LANE_INBOX_KEPT_BYTES_MAX {
            self.inbox = Vec::new();
        }
        self.reader = None;
        self.sender = None;
        self.receive.unread() as usize
    }

    /// Whether the worker itself ended the exchange of that generation.
    pub(super) fn was_ended_by_worker(&self, generation: u32) -> bool {
        self.generation == generation && self.progress == Progress::Over
    }

    pub(super) fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    pub(super) fn wake_sender(&mut self) {
        if let Some(sender) = self.sender.take() {
            sender.wake();
        }
    }

    pub(super) fn wake(&mut self) {
        self.wake_reader();
        self.wake_sender();
    }
}

/// One exchange.
pub(super) struct Stream {
    lane: Rc<Lane>,
    slot: u16,
    generation: u32,
    /// What the worker is told when this is dropped before the worker's end.
    pub(super) reason: std::cell::Cell<ResetCode>,
    /// Whether the request went out whole.
    is_sent: std::cell::Cell<bool>,
}

/// The worker is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost;

impl Stream {
    pub(super) fn new(lane: Rc<Lane>, slot: u16, generation: u32) -> Self {
        let (reason, is_sent) = (ResetCode::ClientGone.into(), false.into());
        Self { lane, slot, generation, reason, is_sent }
    }

    /// Appends frames of this exchange: `write(out, slot, generation)`.
    pub(super) fn write<T>(&self, end: bool, write: impl FnOnce(&mut Vec<u8>, u16, u32) -> T) -> T {
        self.is_sent.set(self.is_sent.get() || end);
        self.lane.write(|out| write(out, self.slot, self.generation))
    }

    /// Both directions are open from now on: the end of the request was not the end of this one.
    pub(super) fn become_tunnel(&self) {
        self.is_sent.set(false);
    }

    /// Sends bytes that [`Stream::poll_room`] granted.
    fn send(&self, bytes: &[u8], end: bool) {
        self.write(end, |out, slot, generation| wire::encode::data(out, slot, generation, end, bytes));
    }

    /// Takes of the credit for the body's bytes that travel with the head: at most `wanted`.
    pub(super) fn take_room(&self, wanted: usize) -> usize {
        let mut state = self.lane.state.borrow_mut();
        let parts = state.stream_and_window(self.slot);
        parts.map_or(0, |(stream, lane)| stream.send.take_with(lane, wanted))
    }

    /// Waits until credit allows at least one byte, and takes it for at most `wanted`. What is taken is sent at
    /// once: credit that is held while something else is waited for would be missing to all others.
    pub(super) fn poll_room(&self, wanted: usize, context: &mut Context<'_>) -> Poll<Result<usize, Lost>> {
        let mut state = self.lane.state.borrow_mut();
        if state.is_lost {
            return Poll::Ready(Err(Lost));
        }
        let Some((stream, lane)) = state.stream_and_window(self.slot) else { return Poll::Ready(Err(Lost)) };
        match stream.send.take_with(lane, wanted) {
            0 => {
                stream.sender = Some(context.waker().clone());
                Poll::Pending
            }
            granted => Poll::Ready(Ok(granted)),
        }
    }

    /// Sends bytes of a body as credit allows. With `end` they are the last; the last of none is an empty frame.
    pub(super) async fn send_all(&self, mut bytes: &[u8], end: bool) -> Result<(), Lost> {
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
    pub(super) fn poll_frames(
        &self,
        into: &mut Vec<u8>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Lost>> {
        let mut state = self.lane.state.borrow_mut();
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

    /// Puts frames back that belong to what follows.
    pub(super) fn unread(&self, frames: &[u8]) {
        let mut state = self.lane.state.borrow_mut();
        if let Some(stream) = state.stream(self.slot) {
            stream.inbox.splice(..0, frames.iter().copied());
        }
    }

    /// Gives the memory of frames back for the next ones.
    pub(super) fn return_buffer(&self, mut buffer: Vec<u8>) {
        let mut state = self.lane.state.borrow_mut();
        if let Some(stream) = state.stream(self.slot)
            && stream.inbox.capacity() == 0
            && buffer.capacity() <= LANE_INBOX_KEPT_BYTES_MAX
        {
            buffer.clear();
            stream.inbox = buffer;
        }
    }

    /// A part of a file was passed on, or so many bytes of it as could be.
    pub(super) fn file_sent(&self, bytes: u64) {
        if let Some(stream) = self.lane.state.borrow_mut().stream(self.slot) {
            stream.file_parts = stream.file_parts.saturating_sub(1);
        }
        self.write(false, |out, slot, generation| wire::encode::file_sent(out, slot, generation, bytes));
    }

    /// Bytes of the answer's body were passed on.
    pub(super) fn consumed(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let mut state = self.lane.state.borrow_mut();
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
        let progress = self.lane.state.borrow_mut().stream(self.slot).map(|stream| stream.progress);
        let code = match progress {
            Some(Progress::Over | Progress::HalfClosed) if self.is_sent.get() => None,
            // The answer is complete, the rest of the request is not wanted.
            Some(Progress::Over) => Some(ResetCode::NotNeeded),
            _ => Some(self.reason.get()),
        };
        if let Some(code) = code {
            self.lane.write(|out| wire::encode::reset(out, self.slot, self.generation, code));
        }
        self.lane.close(self.slot);
    }
}

/// Whole frames of one exchange, one after the other; the lane has checked them.
pub(super) fn next_frame(bytes: &[u8]) -> Option<(Frame<'_>, usize)> {
    wire::decode(bytes, wire::Sender::Worker, wire::Lane::Data).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_few_small_buffers_are_kept_for_the_next_exchange() {
        let kept_after = |bytes: usize, keeps: bool| {
            let mut stream = StreamState::default();
            stream.begin(1, 1 << 20);
            stream.inbox.extend(std::iter::repeat_n(0, bytes));
            stream.end(keeps);
            assert!(stream.inbox.is_empty());
            stream.inbox.capacity()
        };
        assert!(kept_after(LANE_INBOX_KEPT_BYTES_MAX, true) >= LANE_INBOX_KEPT_BYTES_MAX);
        assert_eq!(kept_after(LANE_INBOX_KEPT_BYTES_MAX * 16, true), 0, "that of a long response");
        assert_eq!(kept_after(100, false), 0, "that of a burst's exchange");
    }
}
