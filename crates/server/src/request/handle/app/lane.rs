//! A lane to a worker, as one core has it: frames out, frames in, each to its exchange.
//!
//! What requests write in one turn of the core goes out in one write; what arrives in one read is handed
//! to all its exchanges before any of them runs. A worker that breaks the protocol costs this lane and
//! its own requests, never the server. Knows nothing of clients: that is `mod.rs`.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use onehop_wire::limits::{FREE_BODY_BYTES, INFORMATIONAL_MAX, LANE_SLOT, PAYLOAD_BYTES_MAX};
use onehop_wire::{self as wire, Frame, Known, Meter, Payload, Sender, Slots, Window};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

use super::pool::{LaneReport, Worker, WorkerId};
use super::stream::{Progress, Stream, StreamState};
use crate::limits::{
    FILE_PARTS_WAITING_MAX, LANE_BUFFER_BYTES, LANE_INBOXES_KEPT_MAX, LANE_OUT_BYTES_MAX,
    LANE_READS_PER_TURN, LANE_SLOTS_MAX, LANE_WINDOW_BYTES, SERVER_CONCURRENCY, STREAM_WINDOW_BYTES,
};
use crate::request::core::Core;

/// The lanes of one core.
#[derive(Default)]
pub(crate) struct Lanes {
    list: RefCell<Vec<Rc<Lane>>>,
}

/// One lane.
pub(crate) struct Lane {
    pub(super) worker: Arc<Worker>,
    pub(super) state: RefCell<State>,
}

/// What may change while frames come and go.
pub(super) struct State {
    /// Frames that wait to be written.
    out: Vec<u8>,
    /// The lane's task, while it waits for something to write.
    writer: Option<Waker>,
    slots: Slots,
    /// By slot.
    streams: Vec<StreamState>,
    pub(super) send: Window,
    receive: Meter,
    stream_window: u32,
    pub(super) is_lost: bool,
}

/// Bytes of bodies that may be on their way in one direction, as the worker was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// Of one exchange.
    pub stream: u32,
    /// Of a whole lane.
    pub lane: u32,
}

impl Default for Windows {
    fn default() -> Self {
        Self { stream: STREAM_WINDOW_BYTES, lane: LANE_WINDOW_BYTES }
    }
}

/// Serves a lane of a worker from now on.
pub(crate) fn attach(core: &Rc<Core>, worker: Arc<Worker>, socket: std::os::unix::net::UnixStream) {
    let number = core.number;
    let socket = match socket.set_nonblocking(true).and_then(|()| UnixStream::from_std(socket)) {
        Ok(socket) => socket,
        Err(error) => {
            worker.report(LaneReport::Lost { core: number, reason: error.to_string(), is_broken: false });
            return;
        }
    };
    let lane = Rc::new(Lane {
        worker,
        state: RefCell::new(State {
            out: Vec::new(),
            writer: None,
            slots: Slots::new(LANE_SLOTS_MAX),
            streams: Vec::new(),
            send: Window::new(core.shared.windows.lane),
            receive: Meter::for_lane(core.shared.windows.lane),
            stream_window: core.shared.windows.stream,
            is_lost: false,
        }),
    });
    core.lanes.list.borrow_mut().push(Rc::clone(&lane));
    lane.worker.report(LaneReport::Attached { core: number });
    let core = Rc::clone(core);
    tokio::task::spawn_local(async move {
        let mut task = LaneTask::new(Rc::clone(&lane), socket);
        let (reason, is_broken) = poll_fn(|context| task.poll(context)).await;
        // First: the places of the requests that fail now would be given to others who wait.
        lane.worker.mark_lost();
        core.lanes.list.borrow_mut().retain(|known| !Rc::ptr_eq(known, &lane));
        lane.lose();
        lane.worker.report(LaneReport::Lost { core: number, reason, is_broken });
        // Only now: the worker may end as soon as it sees this, and the reason should be known before.
        drop(task);
    });
}

impl Lanes {
    /// This core's lane to a worker; none once it is lost.
    pub(crate) fn find(&self, worker: WorkerId) -> Option<Rc<Lane>> {
        self.list.borrow().iter().find(|lane| lane.worker.id == worker).cloned()
    }
}

impl Lane {
    /// A place for one exchange; none where all are taken or the lane is lost.
    pub(super) fn open(self: &Rc<Self>) -> Option<Stream> {
        let mut state = self.state.borrow_mut();
        // Heads need no credit: a worker that reads nothing must not make this grow.
        if state.is_lost || state.out.len() > LANE_OUT_BYTES_MAX {
            return None;
        }
        let (slot, generation) = state.slots.open()?;
        let stream_window = state.stream_window;
        let index = usize::from(slot);
        if state.streams.len() <= index {
            state.streams.resize_with(index + 1, StreamState::default);
        }
        state.streams.get_mut(index)?.begin(generation, stream_window);
        Some(Stream::new(Rc::clone(self), slot, generation))
    }

    /// Appends frames to what is written next.
    pub(super) fn write<T>(&self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut state = self.state.borrow_mut();
        let written = write(&mut state.out);
        state.wake_writer();
        written
    }

    /// Gives a place back. What came for it and was not passed on counts as passed on.
    pub(super) fn close(&self, slot: u16) {
        let mut state = self.state.borrow_mut();
        let unread = state
            .streams
            .get_mut(usize::from(slot))
            .map_or(0, |stream| stream.end(usize::from(slot) < LANE_INBOXES_KEPT_MAX));
        state.consumed(unread);
        state.slots.close(slot);
    }

    /// Everybody who waits for this worker is told.
    fn lose(&self) {
        let mut state = self.state.borrow_mut();
        state.is_lost = true;
        state.out = Vec::new();
        state.streams.iter_mut().for_each(StreamState::wake);
    }
}

impl State {
    pub(super) fn stream(&mut self, slot: u16) -> Option<&mut StreamState> {
        self.streams.get_mut(usize::from(slot))
    }

    /// A stream and the lane's window, for those who want to send.
    pub(super) fn stream_and_window(&mut self, slot: u16) -> Option<(&mut StreamState, &mut Window)> {
        Some((self.streams.get_mut(usize::from(slot))?, &mut self.send))
    }

    /// Bytes of bodies were passed on: the worker may send as many more.
    pub(super) fn consumed(&mut self, bytes: usize) {
        if bytes > 0
            && !self.is_lost
            && let Some(credit) = self.receive.consumed(bytes)
        {
            wire::encode::credit(&mut self.out, LANE_SLOT, 0, credit);
            self.wake_writer();
        }
    }

    fn wake_writer(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }

    /// Takes a frame to its exchange. The error says, for a person, how the worker broke the protocol.
    fn deliver(&mut self, frame: &Frame<'_>, bytes: &[u8]) -> Result<(), String> {
        if let Payload::Credit(credit) = frame.payload
            && frame.slot == LANE_SLOT
        {
            self.send.add(credit).map_err(|broken| broken.to_string())?;
            self.streams.iter_mut().for_each(StreamState::wake_sender);
            return Ok(());
        }
        let body = body_bytes(frame);
        self.receive.received(body).map_err(|broken| broken.to_string())?;
        match self.slots.check(frame.slot, frame.generation) {
            Known::Never => {
                let (slot, generation) = (frame.slot, frame.generation);
                return Err(format!("it answers in slot {slot}, generation {generation}, which never was"));
            }
            Known::Late => {
                self.consumed(body);
                let stream = self.streams.get(usize::from(frame.slot));
                if stream.is_some_and(|stream| stream.was_ended_by_worker(frame.generation))
                    && !matches!(frame.payload, Payload::Credit(_) | Payload::Reset(_))
                {
                    return Err("it goes on with an answer that it had ended".to_owned());
                }
                return Ok(());
            }
            Known::Live => {}
        }
        let Some(stream) = self.streams.get_mut(usize::from(frame.slot)) else { return Ok(()) };
        stream.advance(frame, body)?;
        if !matches!(frame.payload, Payload::Credit(_)) {
            stream.inbox.extend_from_slice(bytes);
            stream.wake_reader();
        }
        Ok(())
    }
}

impl StreamState {
    /// Checks that a frame may come now, and notes what it changes.
    fn advance(&mut self, frame: &Frame<'_>, body: usize) -> Result<(), String> {
        let as_text = |broken: wire::Broken| broken.to_string();
        if matches!(self.progress, Progress::Over | Progress::HalfClosed) {
            match frame.payload {
                Payload::Credit(_) => {}
                // A tunnel is over for both sides with this; after an answer's end it changes nothing.
                Payload::Reset(_) => {
                    self.progress = Progress::Over;
                    return Ok(());
                }
                _ => return Err("it goes on with an answer that it had ended".to_owned()),
            }
        }
        self.receive.received(body).map_err(as_text)?;
        match frame.payload {
            Payload::Credit(credit) => {
                self.send.add(credit).map_err(as_text)?;
                self.wake_sender();
                return Ok(());
            }
            Payload::Response(response) if self.progress == Progress::Asked => {
                let upgrade = response.status == 101;
                self.progress = if upgrade { Progress::Tunnel } else { Progress::Answering };
                if upgrade && (frame.end || !response.body.is_empty()) {
                    return Err("it sends more than a head to upgrade".to_owned());
                }
            }
            Payload::File(_) if self.progress == Progress::Asked => {}
            Payload::Response(_) | Payload::File(_) => return Err("it answers a request twice".to_owned()),
            Payload::Informational(_) if self.progress == Progress::Asked => {
                self.informational += 1;
                if self.informational > INFORMATIONAL_MAX {
                    return Err("it sends too many informational answers to one request".to_owned());
                }
            }
            Payload::FilePart(_) if self.progress == Progress::Answering => {
                self.file_parts += 1;
                if self.file_parts > FILE_PARTS_WAITING_MAX {
                    return Err("it asks for more of files before they could be sent".to_owned());
                }
            }
            Payload::Data(_) if matches!(self.progress, Progress::Answering | Progress::Tunnel) => {}
            Payload::Trailers(_) if self.progress == Progress::Answering => {}
            Payload::Reset(_) => {
                self.progress = Progress::Over;
                return Ok(());
            }
            _ => return Err("it sends parts of an answer out of order".to_owned()),
        }
        if frame.end {
            let is_tunnel = self.progress == Progress::Tunnel;
            self.progress = if is_tunnel { Progress::HalfClosed } else { Progress::Over };
        }
        Ok(())
    }
}

/// Bytes that count against credit.
pub(super) fn body_bytes(frame: &Frame<'_>) -> usize {
    match &frame.payload {
        Payload::Response(response) if frame.end && response.body.len() <= FREE_BODY_BYTES => 0,
        Payload::Response(response) => response.body.len(),
        Payload::Data(data) => data.len(),
        _ => 0,
    }
}

/// What moves a lane's bytes.
struct LaneTask {
    lane: Rc<Lane>,
    socket: UnixStream,
    input: Vec<u8>,
    /// Bytes of `input` that are not yet understood.
    filled: usize,
    /// What is being written.
    writing: Vec<u8>,
    written: usize,
}

impl LaneTask {
    fn new(lane: Rc<Lane>, socket: UnixStream) -> Self {
        let input = vec![0; LANE_BUFFER_BYTES];
        Self { lane, socket, input, filled: 0, writing: Vec::new(), written: 0 }
    }

    /// Moves what can be moved. Ready when the lane is of no more use, with the reason and whether the
    /// protocol was broken.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<(String, bool)> {
        if let Poll::Ready(ended) = self.poll_read(context) {
            return Poll::Ready(ended);
        }
        match self.poll_write(context) {
            // The worker has closed its end. What it said before is still to be read, then its end.
            Poll::Ready(error) if is_end(&error) => self.poll_read(context),
            Poll::Ready(error) => Poll::Ready((format!("its lane cannot be written: {error}"), false)),
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<(String, bool)> {
        for _ in 0..LANE_READS_PER_TURN {
            let mut buffer = ReadBuf::new(self.input.get_mut(self.filled..).unwrap_or_default());
            match Pin::new(&mut self.socket).poll_read(context, &mut buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => {
                    return Poll::Ready((format!("its lane cannot be read: {error}"), false));
                }
                Poll::Ready(Ok(())) => {}
            }
            let count = buffer.filled().len();
            if count == 0 {
                return Poll::Ready(("its lane was closed".to_owned(), false));
            }
            self.filled += count;
            self.lane.worker.was_heard(Instant::now());
            if let Err(reason) = self.take_frames() {
                return Poll::Ready((format!("it broke the worker protocol: {reason}"), true));
            }
        }
        // Others get their turn; there may be more.
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Delivers all whole frames, and keeps the rest.
    fn take_frames(&mut self) -> Result<(), String> {
        let mut state = self.lane.state.borrow_mut();
        let mut at = 0;
        loop {
            let rest = self.input.get(at..self.filled).unwrap_or_default();
            let decoded = wire::decode(rest, Sender::Worker, wire::Lane::Data);
            let Some((frame, consumed)) = decoded.map_err(|broken| broken.to_string())? else { break };
            state.deliver(&frame, rest.get(..consumed).unwrap_or_default())?;
            at += consumed;
        }
        self.input.copy_within(at..self.filled, 0);
        self.filled -= at;
        Ok(())
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        loop {
            if self.written == self.writing.len() {
                self.writing.clear();
                // What a burst of long bodies needed goes back.
                self.writing.shrink_to(LANE_BUFFER_BYTES);
                self.written = 0;
                let mut state = self.lane.state.borrow_mut();
                if state.out.is_empty() {
                    state.writer = Some(context.waker().clone());
                    return Poll::Pending;
                }
                std::mem::swap(&mut state.out, &mut self.writing);
            }
            let rest = self.writing.get(self.written..).unwrap_or_default();
            match Pin::new(&mut self.socket).poll_write(context, rest) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(error),
                Poll::Ready(Ok(0)) => return Poll::Ready(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => self.written += count,
            }
        }
    }
}

fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

const _: () = assert!(LANE_SLOTS_MAX as usize > SERVER_CONCURRENCY, "who has a place has a slot too");
const _: () = assert!(LANE_BUFFER_BYTES > PAYLOAD_BYTES_MAX + 12, "the longest frame fits into the buffer");
