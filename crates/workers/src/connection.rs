//! A worker connection: one core's connection to one worker. Frames out, frames in, each to its exchange.
//!
//! What requests write in one turn of the core goes out in one write; what arrives in one read is handed to all its
//! exchanges before any of them runs. A worker that breaks the protocol costs this connection and its own requests, never
//! the server. Knows nothing of clients, and gives out slots by number: [`crate::stream`] makes an exchange of one.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use onehop_wire::limits::{CONNECTION_SLOT, PAYLOAD_BYTES_MAX};
use onehop_wire::{self as wire, Frame, Known, Meter, Payload, Sender, Slots, Window};

use crate::limits::{
    CONNECTION_BUFFER_BYTES, CONNECTION_INBOXES_KEPT_MAX, CONNECTION_OUT_BYTES_MAX,
    CONNECTION_READS_PER_TURN, CONNECTION_SLOTS_MAX, CONNECTION_WINDOW_BYTES, SERVER_CONCURRENCY,
    STREAM_WINDOW_BYTES,
};
use crate::socket::Socket;
use crate::stream_state::{StreamState, body_bytes};
use crate::worker::{ConnectionEvent, Worker, WorkerId};

/// The worker connections of one core.
pub struct WorkerConnections {
    /// The core's number.
    core: usize,
    windows: Windows,
    list: RefCell<Vec<Rc<WorkerConnection>>>,
}

/// One worker connection.
pub struct WorkerConnection {
    worker: Arc<Worker>,
    pub(crate) state: RefCell<State>,
}

/// What changes while frames come and go.
pub(crate) struct State {
    /// Frames that wait to be written.
    out: Vec<u8>,
    /// The connection's task, while it waits for something to write.
    writer: Option<Waker>,
    slots: Slots,
    /// By slot.
    streams: Vec<StreamState>,
    send: Window,
    receive: Meter,
    stream_window: u32,
    pub(crate) is_lost: bool,
}

/// Bytes of bodies that may be on their way in one direction, as the handshake tells the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// Of one exchange.
    pub stream: u32,
    /// Of a whole worker connection.
    pub connection: u32,
}

impl Default for Windows {
    fn default() -> Self {
        Self { stream: STREAM_WINDOW_BYTES, connection: CONNECTION_WINDOW_BYTES }
    }
}

impl WorkerConnections {
    /// A core without worker connections.
    #[must_use]
    pub fn new(core: usize, windows: Windows) -> Rc<Self> {
        Rc::new(Self { core, windows, list: RefCell::default() })
    }

    /// Serves this end of a worker connection from now on, in a task of the core, and reports what becomes of it.
    pub fn attach(self: &Rc<Self>, worker: Arc<Worker>, socket: std::os::unix::net::UnixStream) {
        let core = self.core;
        let socket = match Socket::new(socket) {
            Ok(socket) => socket,
            Err(error) => {
                worker.report(ConnectionEvent::Lost { core, reason: error.to_string(), is_broken: false });
                return;
            }
        };
        let connection = Rc::new(WorkerConnection { worker, state: RefCell::new(State::new(self.windows)) });
        self.list.borrow_mut().push(Rc::clone(&connection));
        connection.worker.report(ConnectionEvent::Attached { core });
        let all = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let mut task = ConnectionTask::new(Rc::clone(&connection), socket);
            let (reason, is_broken) = poll_fn(|context| task.poll(context)).await;
            // First: the slots of the requests that fail now would be given to others that wait.
            connection.worker.mark_lost();
            all.list.borrow_mut().retain(|known| !Rc::ptr_eq(known, &connection));
            connection.lose();
            connection.worker.report(ConnectionEvent::Lost { core, reason, is_broken });
            // Only now: the worker may end as soon as it sees this, and the reason should be known before.
            drop(task);
        });
    }

    /// This core's connection to a worker; none once it is lost.
    pub fn find(&self, worker: WorkerId) -> Option<Rc<WorkerConnection>> {
        self.list.borrow().iter().find(|connection| connection.worker.id == worker).cloned()
    }
}

impl WorkerConnection {
    /// Opens a slot for one exchange and gives its number and generation; `None` where all are taken or the connection
    /// is lost.
    pub(crate) fn open(&self) -> Option<(u16, u32)> {
        let mut state = self.state.borrow_mut();
        // Heads need no credit: a worker that reads nothing must not make this grow.
        if state.is_lost || state.out.len() > CONNECTION_OUT_BYTES_MAX {
            return None;
        }
        let (slot, generation) = state.slots.open()?;
        let stream_window = state.stream_window;
        let index = usize::from(slot);
        if state.streams.len() <= index {
            state.streams.resize_with(index + 1, StreamState::default);
        }
        state.streams.get_mut(index)?.start(generation, stream_window);
        Some((slot, generation))
    }

    /// Appends frames to what is written next.
    pub(crate) fn write<T>(&self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut state = self.state.borrow_mut();
        let written = write(&mut state.out);
        state.wake_writer();
        written
    }

    /// Frees a slot. What came for it and was not passed on counts as passed on.
    pub(crate) fn close(&self, slot: u16) {
        let mut state = self.state.borrow_mut();
        let unread = state
            .streams
            .get_mut(usize::from(slot))
            .map_or(0, |stream| stream.end(usize::from(slot) < CONNECTION_INBOXES_KEPT_MAX));
        state.consumed(unread);
        state.slots.close(slot);
    }

    /// Wakes every exchange with this worker: the connection is lost.
    fn lose(&self) {
        let mut state = self.state.borrow_mut();
        state.is_lost = true;
        state.out = Vec::new();
        state.streams.iter_mut().for_each(StreamState::wake);
    }
}

impl State {
    fn new(windows: Windows) -> Self {
        Self {
            out: Vec::new(),
            writer: None,
            slots: Slots::new(CONNECTION_SLOTS_MAX),
            streams: Vec::new(),
            send: Window::new(windows.connection),
            receive: Meter::for_connection(windows.connection),
            stream_window: windows.stream,
            is_lost: false,
        }
    }

    pub(crate) fn stream(&mut self, slot: u16) -> Option<&mut StreamState> {
        self.streams.get_mut(usize::from(slot))
    }

    /// A stream and the connection's window: sending takes credit of both.
    pub(crate) fn stream_and_window(&mut self, slot: u16) -> Option<(&mut StreamState, &mut Window)> {
        Some((self.streams.get_mut(usize::from(slot))?, &mut self.send))
    }

    /// Notes that bytes of bodies were passed on: the worker may send as many more.
    pub(crate) fn consumed(&mut self, bytes: usize) {
        if bytes > 0
            && !self.is_lost
            && let Some(credit) = self.receive.consumed(bytes)
        {
            wire::encode::credit(&mut self.out, CONNECTION_SLOT, 0, credit);
            self.wake_writer();
        }
    }

    fn wake_writer(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }

    /// Takes a frame to its exchange. The error says to a person how the worker broke the protocol.
    fn deliver(&mut self, frame: &Frame<'_>, bytes: &[u8]) -> Result<(), String> {
        if let Payload::Credit(credit) = frame.payload
            && frame.slot == CONNECTION_SLOT
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

/// Moves the bytes of a connection.
struct ConnectionTask {
    connection: Rc<WorkerConnection>,
    socket: Socket,
    input: Vec<u8>,
    /// Bytes of `input` that are not decoded yet.
    filled: usize,
    /// Frames that are being written.
    writing: Vec<u8>,
    written: usize,
}

impl ConnectionTask {
    fn new(connection: Rc<WorkerConnection>, socket: Socket) -> Self {
        let input = vec![0; CONNECTION_BUFFER_BYTES];
        Self { connection, socket, input, filled: 0, writing: Vec::new(), written: 0 }
    }

    /// Moves bytes both ways. Ready when the connection is of no more use, with the reason and whether the worker broke
    /// the protocol.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<(String, bool)> {
        if let Poll::Ready(ended) = self.poll_read(context) {
            return Poll::Ready(ended);
        }
        match self.poll_write(context) {
            // The worker has closed its end. What it sent before is still to be read, then the end of the stream.
            Poll::Ready(error) if is_end(&error) => self.poll_read(context),
            Poll::Ready(error) => Poll::Ready((format!("its connection cannot be written: {error}"), false)),
            Poll::Pending => Poll::Pending,
        }
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<(String, bool)> {
        for _ in 0..CONNECTION_READS_PER_TURN {
            let room = self.input.get_mut(self.filled..).unwrap_or_default();
            let count = match self.socket.poll_read(context, room) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => {
                    return Poll::Ready((format!("its connection cannot be read: {error}"), false));
                }
                Poll::Ready(Ok(count)) => count,
            };
            if count == 0 {
                return Poll::Ready(("its connection was closed".to_owned(), false));
            }
            self.filled += count;
            self.connection.worker.was_heard(Instant::now());
            if let Err(reason) = self.take_frames() {
                return Poll::Ready((format!("it broke the worker protocol: {reason}"), true));
            }
        }
        // Other tasks get their turn; there may be more.
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Delivers all whole frames, and keeps the rest.
    fn take_frames(&mut self) -> Result<(), String> {
        let mut state = self.connection.state.borrow_mut();
        let mut at = 0;
        loop {
            let rest = self.input.get(at..self.filled).unwrap_or_default();
            let decoded = wire::decode(rest, Sender::Worker, wire::ConnectionKind::Data);
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
                self.writing.shrink_to(CONNECTION_BUFFER_BYTES);
                self.written = 0;
                let mut state = self.connection.state.borrow_mut();
                if state.out.is_empty() {
                    if let Err(error) = self.socket.wrote_all(context) {
                        return Poll::Ready(error);
                    }
                    state.writer = Some(context.waker().clone());
                    return Poll::Pending;
                }
                std::mem::swap(&mut state.out, &mut self.writing);
            }
            let rest = self.writing.get(self.written..).unwrap_or_default();
            match self.socket.poll_write(context, rest) {
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

const _: () = assert!(
    CONNECTION_SLOTS_MAX as usize > SERVER_CONCURRENCY,
    "a request with a slot at a worker has one on the connection too"
);
const _: () =
    assert!(CONNECTION_BUFFER_BYTES > PAYLOAD_BYTES_MAX + 12, "the longest frame fits into the buffer");
