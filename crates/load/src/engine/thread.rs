//! One thread of the load: its connections, its clock, its wait.
//!
//! Owns when a request begins, when one is given up, and what a connection does next. Waits in the kernel and never
//! spins: to the nanosecond where an arrival or a rest is due. Reads the clock once for a wake-up and once for an
//! answer.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::connection::{Connection, Desk, Familiar, Fed, Stage};
use super::limits::{
    ARRIVALS_WAITING_MAX, BACK_OFF_MAX, BACK_OFF_MIN, BACKLOG_RETRY, CONNECTING_AT_START_MAX, DEADLINE_TICK,
    DRAIN_MAX, EVENTS_MAX, HANGING, READ_BYTES, READS_PER_TURN_MAX, SLEEP_MAX, TAIL_MAX,
};
use super::order::Cycle;
use super::processor::Processor;
use super::record::{Fault, Notes, Past, Record};
use super::request::Request;
use super::schedule::Schedule;
use super::socket;
use crate::latency::Latencies;
use crate::plan::{Patience, Reuse};
use crate::target::Address;

/// What all threads of a run see.
#[derive(Debug)]
pub(super) struct Shared {
    /// When the time is over, nanoseconds of the run.
    pub end: AtomicU64,
    /// Not even the answers that are owed are waited for.
    pub abrupt: AtomicBool,
    /// Requests that may be begun yet.
    pub budget: Option<AtomicU64>,
    /// The budget is spent.
    pub spent: AtomicBool,
    /// The last failure in words, for a run in which there was nothing else.
    pub failure: Mutex<Option<String>>,
}

/// What a thread is told to do.
#[derive(Debug)]
pub(super) struct Orders<'a> {
    pub shared: &'a Shared,
    pub requests: &'a [Request],
    pub addresses: &'a [Address],
    pub patience: Patience,
    pub reuse: Reuse,
    pub measured_from: u64,
    pub work: Work,
    /// The cycles of requests. Connections of a closed loop name theirs, an open loop has one.
    pub cycles: Vec<Cycle>,
    /// For each connection its cycle.
    pub connections: Vec<usize>,
}

/// When a thread asks.
#[derive(Debug)]
pub(super) enum Work {
    Closed { think: Duration },
    Open { schedule: Schedule },
}

/// What a thread saw.
#[derive(Debug)]
pub(super) struct Seen {
    pub notes: Notes,
    pub lateness: Latencies,
    /// Arrivals that had to wait for a connection.
    pub waited: u64,
    pub connections_opened: u64,
    /// CPU time and time in the run queue, and the time in which that was.
    pub processor: Processor,
}

/// A thread's own.
#[derive(Debug)]
pub(super) struct Thread<'a> {
    orders: Orders<'a>,
    origin: Instant,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    record: Record,
    buffer: Vec<u8>,
    desk: Desk,
    /// For each request its last answer's head.
    familiar: Vec<Familiar>,
    /// Rests, by their end.
    timers: BinaryHeap<Reverse<(u64, usize, u32)>>,
    /// Connections that may have more to read than they had turns for.
    again: Vec<usize>,
    /// Connections of a closed loop that have not begun.
    unbegun: Vec<usize>,
    /// Free connections that are open, for each address; the newest last.
    idle: Vec<Vec<usize>>,
    /// Free places without a socket.
    vacant: Vec<usize>,
    /// Arrivals that wait for a connection: when they were meant to begin, and what for.
    queue: VecDeque<(u64, usize)>,
    /// The next arrival.
    arrival: Option<u64>,
    /// Requests on their way.
    busy: usize,
    /// Since when there is one.
    waiting_since: u64,
    /// No deadline is earlier.
    earliest_deadline: u64,
    /// Connections that are being opened.
    connecting: usize,
    lateness: Latencies,
    waited: u64,
    connections_opened: u64,
}

impl<'a> Thread<'a> {
    pub(super) fn new(orders: Orders<'a>, record: Record) -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let count = orders.connections.len();
        let connections = orders.connections.iter().map(|cycle| Connection::new(*cycle)).collect();
        let is_open = matches!(orders.work, Work::Open { .. });
        let addresses = orders.addresses.len();
        let familiar = orders.requests.iter().map(|_| Familiar::default()).collect();
        // The first one stands last, where places are taken from.
        let places: Vec<usize> = (0..count).rev().collect();
        Ok(Thread {
            orders,
            origin: Instant::now(),
            epoll,
            connections,
            record,
            buffer: vec![0; READ_BYTES],
            desk: Desk::new(),
            familiar,
            timers: BinaryHeap::new(),
            again: Vec::new(),
            unbegun: if is_open { Vec::new() } else { places.clone() },
            idle: vec![Vec::new(); addresses],
            vacant: if is_open { places } else { Vec::new() },
            queue: VecDeque::new(),
            arrival: None,
            busy: 0,
            waiting_since: 0,
            earliest_deadline: u64::MAX,
            connecting: 0,
            lateness: Latencies::new(),
            waited: 0,
            connections_opened: 0,
        })
    }

    /// Asks until the run is over. `origin` is its begin, the same for all threads.
    pub(super) fn run(mut self, origin: Instant) -> Seen {
        self.origin = origin;
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_MAX);
        let mut processor = Processor::default();
        self.next_arrival();
        let ended = loop {
            let now = self.now();
            processor.look(now, self.orders.measured_from, self.is_stopping(now));
            if self.is_over(now) {
                break now;
            }
            self.record.tick(now);
            self.give_up_late(now);
            self.end_rests(now);
            self.begin_unbegun(now);
            self.arrivals(now);
            self.read_again();
            events.clear();
            self.wait(&mut events);
            for event in &events {
                let (data, flags) = (event.data.u64(), event.flags);
                self.event(data, flags);
            }
        };
        processor.look(ended, self.orders.measured_from, true);
        self.settle(ended);
        let waiting = (self.busy > 0).then_some(self.waiting_since);
        Seen {
            notes: self.record.finish(ended, waiting),
            lateness: self.lateness,
            waited: self.waited,
            connections_opened: self.connections_opened,
            processor,
        }
    }

    fn now(&self) -> u64 {
        nanoseconds(self.origin.elapsed())
    }

    /// No request begins any more.
    fn is_stopping(&self, now: u64) -> bool {
        now >= self.orders.shared.end.load(Ordering::Relaxed)
            || self.orders.shared.spent.load(Ordering::Relaxed)
    }

    fn is_over(&mut self, now: u64) -> bool {
        if self.orders.shared.abrupt.load(Ordering::Relaxed) {
            return true;
        }
        let end = self.orders.shared.end.load(Ordering::Relaxed);
        if now >= end.saturating_add(nanoseconds(DRAIN_MAX)) {
            self.unsend(now);
        }
        let nothing_comes = matches!(self.orders.work, Work::Open { .. }) && self.arrival.is_none();
        if self.busy == 0 && self.queue.is_empty() && (self.is_stopping(now) || nothing_comes) {
            return true;
        }
        let tail = match self.orders.work {
            Work::Closed { .. } => self.orders.patience.answer.min(TAIL_MAX),
            // Deadlines end it before.
            Work::Open { .. } => self.orders.patience.answer + self.orders.patience.connect + DRAIN_MAX,
        };
        now >= end.saturating_add(nanoseconds(tail))
    }

    /// Notes what did not come to an end.
    fn settle(&mut self, now: u64) {
        let abrupt = self.orders.shared.abrupt.load(Ordering::Relaxed);
        let hangs = |begun: u64| !abrupt || now.saturating_sub(begun) >= nanoseconds(HANGING);
        for connection in &self.connections {
            if connection.is_busy() && hangs(connection.begun) {
                self.record.fault(past(connection, now), Fault::TimedOut);
            }
        }
        self.queue.retain(|(begun, _)| hangs(*begun));
        self.unsend(now);
    }

    /// Arrivals that waited in vain.
    fn unsend(&mut self, now: u64) {
        for (begun, ask) in std::mem::take(&mut self.queue) {
            self.never_sent(begun, ask, now);
        }
    }

    fn never_sent(&mut self, begun: u64, ask: usize, now: u64) {
        let past = Past { ask, begun, sent: now, now, bytes_read: 0, bytes_written: 0 };
        self.record.fault(past, Fault::Unsent);
    }

    // ---- When requests begin ----

    /// Whether one more request may begin.
    fn take_turn(&self, begun: u64) -> bool {
        let shared = self.orders.shared;
        let Some(budget) = &shared.budget else { return true };
        if begun < self.orders.measured_from {
            return true;
        }
        let taken = budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if taken.is_err() {
            shared.spent.store(true, Ordering::Relaxed);
        }
        taken.is_ok()
    }

    fn begin_unbegun(&mut self, now: u64) {
        while self.connecting < CONNECTING_AT_START_MAX {
            let Some(place) = self.unbegun.pop() else { return };
            self.ask_again(place, now);
        }
    }

    /// The next request of a connection of a closed loop, at once.
    fn ask_again(&mut self, place: usize, now: u64) {
        if self.is_stopping(now) || !self.take_turn(now) {
            return;
        }
        let Some(connection) = self.connections.get(place) else { return };
        let Some(cycle) = self.orders.cycles.get_mut(connection.cycle) else { return };
        let ask = cycle.turn();
        self.begin(place, ask, now, now);
    }

    fn next_arrival(&mut self) {
        if let Work::Open { schedule } = &mut self.orders.work {
            self.arrival = schedule.next();
        }
    }

    /// Begins whatever was meant to begin until now.
    fn arrivals(&mut self, now: u64) {
        let end = self.orders.shared.end.load(Ordering::Relaxed);
        while let Some(begun) = self.arrival.filter(|at| *at <= now) {
            if begun >= end || !self.take_turn(begun) {
                self.arrival = None;
                break;
            }
            self.next_arrival();
            let ask = self.orders.cycles.first_mut().map_or(0, Cycle::turn);
            if self.queue.is_empty()
                && let Some(place) = self.free_place(ask)
            {
                if begun >= self.orders.measured_from {
                    self.lateness.record(Duration::from_nanos(now.saturating_sub(begun)));
                }
                self.begin(place, ask, begun, now);
                continue;
            }
            if begun >= self.orders.measured_from {
                self.waited += 1;
            }
            if self.queue.len() < ARRIVALS_WAITING_MAX {
                self.queue.push_back((begun, ask));
            } else {
                self.never_sent(begun, ask, now);
            }
        }
    }

    /// Gives waiting arrivals what became free.
    fn serve_queue(&mut self, now: u64) {
        let patience = nanoseconds(self.orders.patience.answer);
        while let Some((begun, ask)) = self.queue.front().copied() {
            if now.saturating_sub(begun) >= patience {
                self.queue.pop_front();
                self.never_sent(begun, ask, now);
                continue;
            }
            let Some(place) = self.free_place(ask) else { return };
            self.queue.pop_front();
            self.begin(place, ask, begun, now);
        }
    }

    /// A connection for this request: the idle one that was used last, else a place for a new one.
    fn free_place(&mut self, ask: usize) -> Option<usize> {
        let address = self.orders.requests.get(ask)?.address;
        if let Some(place) = self.idle.get_mut(address).and_then(Vec::pop) {
            return Some(place);
        }
        if let Some(place) = self.vacant.pop() {
            return Some(place);
        }
        // One that leads elsewhere and has been idle for longest gives up its place.
        let other = self.idle.iter_mut().find(|places| !places.is_empty())?;
        let place = other.remove(0);
        self.connections.get_mut(place)?.close();
        Some(place)
    }

    // ---- One request ----

    fn begin(&mut self, place: usize, ask: usize, begun: u64, now: u64) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        let Some(request) = self.orders.requests.get(ask) else { return };
        if self.busy == 0 {
            self.waiting_since = now;
        }
        self.busy += 1;
        connection.ask = ask;
        connection.begun = begun;
        connection.sent = now;
        connection.expect_answer();
        if connection.socket.is_some() && connection.address != request.address {
            connection.close();
        }
        if connection.socket.is_some() {
            connection.stage = Stage::Sending;
            self.set_deadline(place, now, self.orders.patience.answer);
            self.send(place);
        } else {
            connection.stage = Stage::Connecting;
            self.connecting += 1;
            self.set_deadline(place, now, self.orders.patience.connect);
            self.connect(place);
        }
    }

    fn set_deadline(&mut self, place: usize, now: u64, patience: Duration) {
        let deadline = now.saturating_add(nanoseconds(patience));
        if let Some(connection) = self.connections.get_mut(place) {
            connection.deadline = deadline;
        }
        self.earliest_deadline = self.earliest_deadline.min(deadline);
    }

    fn connect(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        let address = self.orders.requests.get(connection.ask).map_or(0, |request| request.address);
        let Some(to) = self.orders.addresses.get(address) else { return };
        match socket::open(to) {
            Ok(socket) => {
                let data = event_data(place, connection.generation);
                if let Err(error) = socket::watch(&self.epoll, &socket, to, data) {
                    self.failed(place, Fault::Connect, &format!("no connection: {error}"));
                    return;
                }
                connection.opened(socket, address);
                self.connections_opened += 1;
                // On the machine itself most are connected already; where one is not, it says so.
                self.send(place);
            }
            // The backlog of a Unix socket is full.
            Err(Errno::AGAIN) => {
                let generation = connection.generation;
                let at = self.now().saturating_add(nanoseconds(BACKLOG_RETRY));
                self.timers.push(Reverse((at, place, generation)));
            }
            Err(error) => self.failed(place, Fault::Connect, &format!("no connection: {error}")),
        }
    }

    /// Writes what the socket takes.
    fn send(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        let Some(request) = self.orders.requests.get(connection.ask) else { return };
        while let Some(socket) = &connection.socket {
            let rest = request.bytes.get(connection.written..).unwrap_or_default();
            match rustix::net::send(socket, rest, SendFlags::NOSIGNAL) {
                Ok(count) => {
                    let was_connecting = connection.stage == Stage::Connecting;
                    connection.written += count;
                    let is_whole = connection.written >= request.bytes.len();
                    connection.stage = if is_whole { Stage::Waiting } else { Stage::Sending };
                    if was_connecting {
                        self.connected(place);
                    }
                    if is_whole {
                        return;
                    }
                    return self.send(place);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return self.wait_for_room(place),
                Err(error) => return self.send_failed(place, error),
            }
        }
    }

    fn connected(&mut self, place: usize) {
        self.connecting = self.connecting.saturating_sub(1);
        let now = self.now();
        self.set_deadline(place, now, self.orders.patience.answer);
    }

    fn wait_for_room(&mut self, place: usize) {
        let Some(connection) = self.connections.get(place) else { return };
        let is_unix = matches!(self.orders.addresses.get(connection.address), Some(Address::Unix(_)));
        if let (true, Some(socket)) = (is_unix, &connection.socket) {
            let data = event_data(place, connection.generation);
            // Where this fails the deadline ends the request.
            let _ = socket::watch_for_room(&self.epoll, socket, data);
        }
    }

    fn send_failed(&mut self, place: usize, error: Errno) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        if connection.stage == Stage::Connecting {
            return self.failed(place, Fault::Connect, &format!("no connection: {error}"));
        }
        if connection.answers > 0 && connection.written == 0 {
            // It was closed before the request, of which nothing went out: this is no fault of anybody.
            connection.close();
            connection.stage = Stage::Connecting;
            self.connecting += 1;
            let now = self.now();
            self.set_deadline(place, now, self.orders.patience.connect);
            return self.connect(place);
        }
        // The server takes no more, and may have said why.
        connection.stage = Stage::Waiting;
        self.receive(place, true);
    }

    // ---- What comes ----

    fn event(&mut self, data: u64, flags: EventFlags) {
        let place = (data & u64::from(u32::MAX)) as usize;
        let Some(connection) = self.connections.get_mut(place) else { return };
        if event_data(place, connection.generation) != data {
            return;
        }
        let closing = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        match connection.stage {
            Stage::Connecting => self.event_of_connecting(place, flags, closing),
            Stage::Sending | Stage::Waiting => {
                if connection.stage == Stage::Sending && flags.contains(EventFlags::OUT) {
                    self.send(place);
                }
                let generation = (data >> 32) as u32;
                let is_same = |connection: &Connection| {
                    connection.generation == generation
                        && matches!(connection.stage, Stage::Sending | Stage::Waiting)
                };
                if (closing || flags.contains(EventFlags::IN))
                    && self.connections.get(place).is_some_and(is_same)
                {
                    self.receive(place, closing);
                }
            }
            Stage::Free | Stage::Resting => {
                if closing || flags.contains(EventFlags::IN) {
                    self.unasked(place);
                }
            }
        }
    }

    fn event_of_connecting(&mut self, place: usize, flags: EventFlags, closing: bool) {
        let Some(Some(socket)) = self.connections.get(place).map(|connection| &connection.socket) else {
            return;
        };
        match rustix::net::sockopt::socket_error(socket) {
            Ok(Ok(())) if flags.contains(EventFlags::OUT) => {
                self.send(place);
                let is_asked =
                    |connection: &Connection| matches!(connection.stage, Stage::Sending | Stage::Waiting);
                if closing && self.connections.get(place).is_some_and(is_asked) {
                    self.receive(place, true);
                }
            }
            Ok(Ok(())) => {}
            Ok(Err(error)) | Err(error) => {
                self.failed(place, Fault::Connect, &format!("no connection: {error}"));
            }
        }
    }

    /// Something came, or ended, on a connection that asked for nothing: it is of no more use. This is how kept
    /// connections end, and no fault.
    fn unasked(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        let Some(socket) = &connection.socket else { return };
        let read = rustix::net::recv(socket, &mut self.buffer[..], RecvFlags::empty());
        if matches!(read, Err(Errno::AGAIN | Errno::INTR)) {
            return;
        }
        let (address, stage) = (connection.address, connection.stage);
        connection.close();
        if stage == Stage::Free
            && let Some(idle) = self.idle.get_mut(address)
            && let Some(at) = idle.iter().rposition(|other| *other == place)
        {
            idle.remove(at);
            self.vacant.push(place);
        }
    }

    /// Reads what is there. `closing` says that the end may be among it.
    fn receive(&mut self, place: usize, closing: bool) {
        for _ in 0..READS_PER_TURN_MAX {
            let Some(connection) = self.connections.get_mut(place) else { return };
            let Some(socket) = &connection.socket else { return };
            match rustix::net::recv(socket, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((0, _)) => return self.ended(place),
                Ok((count, _)) => {
                    let fresh = self.buffer.get(..count).unwrap_or_default();
                    let Some(request) = self.orders.requests.get(connection.ask) else { return };
                    let Some(familiar) = self.familiar.get_mut(connection.ask) else { return };
                    match connection.feed(fresh, request, familiar, &mut self.desk) {
                        Fed::Whole { status, reusable } => {
                            return self.answered(place, status, reusable && !closing);
                        }
                        Fed::Malformed => {
                            return self.failed(place, Fault::Malformed, "what came is no HTTP/1.1 answer");
                        }
                        // A short read left nothing behind (epoll(7)), and what comes later is another edge.
                        Fed::Incomplete if count < READ_BYTES && !closing => return,
                        Fed::Incomplete => {}
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // A reset: what had not come will not.
                Err(_) => return self.cut_off(place),
            }
        }
        self.again.push(place);
    }

    fn read_again(&mut self) {
        for place in std::mem::take(&mut self.again) {
            let asked = |connection: &Connection| matches!(connection.stage, Stage::Sending | Stage::Waiting);
            if self.connections.get(place).is_some_and(asked) {
                // Whether the end came was told with the edge that is used up: read until nothing is left.
                self.receive(place, true);
            }
        }
    }

    /// The other side closed.
    fn ended(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        match connection.end() {
            Some(status) => self.answered(place, status, false),
            None => self.cut_off(place),
        }
    }

    fn cut_off(&mut self, place: usize) {
        let Some(connection) = self.connections.get(place) else { return };
        if connection.got == 0 {
            self.failed(place, Fault::Closed, "the connection was closed without an answer");
        } else {
            self.failed(place, Fault::Truncated, "the answer broke off");
        }
    }

    fn answered(&mut self, place: usize, status: u16, reusable: bool) {
        let now = self.now();
        let in_time = now < self.orders.shared.end.load(Ordering::Relaxed);
        let Some(connection) = self.connections.get_mut(place) else { return };
        let Some(request) = self.orders.requests.get(connection.ask) else { return };
        let expected = request.expect.accepts(status);
        self.record.answer(past(connection, now), status, expected, self.waiting_since, in_time);
        connection.failures = 0;
        connection.answers = connection.answers.saturating_add(1);
        let is_used_up = match self.orders.reuse {
            Reuse::Kept => false,
            Reuse::New => true,
            Reuse::Requests(most) => connection.answers >= most,
        };
        if !reusable || is_used_up || connection.written < request.bytes.len() {
            connection.close();
        }
        self.busy = self.busy.saturating_sub(1);
        match &self.orders.work {
            Work::Closed { think } if think.is_zero() => {
                connection.stage = Stage::Free;
                self.ask_again(place, now);
            }
            Work::Closed { think } => {
                let at = now.saturating_add(nanoseconds(*think));
                self.rest(place, at);
            }
            Work::Open { .. } => self.release(place, now),
        }
    }

    fn failed(&mut self, place: usize, fault: Fault, why: &str) {
        let now = self.now();
        let Some(connection) = self.connections.get_mut(place) else { return };
        self.record.fault(past(connection, now), fault);
        if connection.stage == Stage::Connecting {
            self.connecting = self.connecting.saturating_sub(1);
        }
        connection.close();
        connection.failures = connection.failures.saturating_add(1);
        let back_off = BACK_OFF_MIN.saturating_mul(1 << (connection.failures - 1).min(16)).min(BACK_OFF_MAX);
        if connection.failures == 1
            && let Ok(mut failure) = self.orders.shared.failure.lock()
        {
            *failure = Some(why.to_owned());
        }
        self.busy = self.busy.saturating_sub(1);
        match &self.orders.work {
            Work::Closed { think } => {
                let at = now.saturating_add(nanoseconds(back_off.max(*think)));
                self.rest(place, at);
            }
            Work::Open { .. } => self.set_free(place),
        }
    }

    fn rest(&mut self, place: usize, until: u64) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        connection.stage = Stage::Resting;
        self.timers.push(Reverse((until, place, connection.generation)));
    }

    /// A connection of an open loop is free: whoever waits longest gets it.
    fn release(&mut self, place: usize, now: u64) {
        self.set_free(place);
        self.serve_queue(now);
    }

    fn set_free(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        connection.stage = Stage::Free;
        match (connection.socket.is_some(), self.idle.get_mut(connection.address)) {
            (true, Some(idle)) => idle.push(place),
            _ => self.vacant.push(place),
        }
    }

    // ---- Time ----

    fn end_rests(&mut self, now: u64) {
        while let Some(Reverse((at, place, generation))) = self.timers.peek().copied() {
            if at > now {
                return;
            }
            self.timers.pop();
            let Some(connection) = self.connections.get(place) else { continue };
            match connection.stage {
                // A rest has no second timer; closing meanwhile changes the generation and not the rest.
                Stage::Resting => self.ask_again(place, now),
                Stage::Connecting if connection.generation == generation && connection.socket.is_none() => {
                    self.connect(place);
                }
                _ => {}
            }
        }
    }

    /// Gives up requests that took too long.
    fn give_up_late(&mut self, now: u64) {
        if now < self.earliest_deadline {
            return;
        }
        let mut earliest = u64::MAX;
        for place in 0..self.connections.len() {
            let Some(connection) = self.connections.get(place).filter(|connection| connection.is_busy())
            else {
                continue;
            };
            if connection.deadline > now {
                earliest = earliest.min(connection.deadline);
                continue;
            }
            match connection.stage {
                Stage::Connecting => self.failed(place, Fault::Connect, "no connection in time"),
                _ => self.failed(place, Fault::TimedOut, "no whole answer in time"),
            }
        }
        self.earliest_deadline = earliest.max(now.saturating_add(nanoseconds(DEADLINE_TICK)));
        self.serve_queue(now);
    }

    fn wait(&mut self, events: &mut Vec<Event>) {
        let now = self.now();
        let rest = self.timers.peek().map_or(u64::MAX, |Reverse((at, ..))| *at);
        let exact = rest.min(self.arrival.unwrap_or(u64::MAX));
        let end = self.orders.shared.end.load(Ordering::Relaxed);
        let end = if end > now { end } else { u64::MAX };
        let coarse = self.record.piece_end().min(self.earliest_deadline).min(end);
        let mut timeout = Duration::from_nanos(exact.min(coarse).saturating_sub(now)).min(SLEEP_MAX);
        if !self.again.is_empty() || (!self.unbegun.is_empty() && self.connecting < CONNECTING_AT_START_MAX) {
            timeout = Duration::ZERO;
        }
        // epoll waits in whole milliseconds on older kernels; ppoll has always known nanoseconds.
        if exact < coarse && !timeout.is_zero() {
            let mut watched = [PollFd::new(&self.epoll, PollFlags::IN)];
            if !matches!(rustix::event::poll(&mut watched, Some(&timespec(timeout))), Ok(1..)) {
                return;
            }
            timeout = Duration::ZERO;
        }
        // An interrupted wait is an early wake-up.
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&timespec(timeout)));
    }
}

fn past(connection: &Connection, now: u64) -> Past {
    Past {
        ask: connection.ask,
        begun: connection.begun,
        sent: connection.sent,
        now,
        bytes_read: connection.got,
        bytes_written: connection.written as u64,
    }
}

fn event_data(place: usize, generation: u32) -> u64 {
    (u64::from(generation) << 32) | place as u64
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
