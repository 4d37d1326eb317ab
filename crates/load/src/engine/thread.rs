//! One thread of the load: its connections, its clock, its wait.
//!
//! Owns when a request begins and when one is given up; `thread/exchange.rs` is what happens between. Waits in the
//! kernel and never spins: to the nanosecond where an arrival or a rest is due. Reads the clock once for a wake-up
//! and once for an answer.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, Event};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::connection::{CachedHead, Connection, ReadBuffers, Stage};
use super::limits::{
    ARRIVALS_WAITING_MAX, CONNECTING_AT_START_MAX, DEADLINE_TICK, DRAIN_MAX, EVENTS_MAX, HANGING, READ_BYTES,
    SERVED_PER_TURN_MAX, SLEEP_MAX,
};
use super::processor::Processor;
use super::record::{Failure, Notes, Past, Record};
use super::request::{Destination, PreparedRequest};
use super::schedule::Schedule;
use super::turns::Cycle;
use crate::http2::Http2Seen;
use crate::latency::Latencies;
use crate::plan::{Protocol, Reuse, Timeouts};
use crate::tls::Handshakes;
use streams::Streams;

mod encrypted;
mod exchange;
mod sessions;
mod streams;

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
    pub requests: &'a [PreparedRequest],
    pub destinations: &'a [Destination],
    pub timeouts: Timeouts,
    pub reuse: Reuse,
    pub measured_from: u64,
    pub work: Work,
    /// The cycles of requests. Connections of a closed loop name theirs, an open loop has one.
    pub cycles: Vec<Cycle>,
    /// For each connection its cycle.
    pub connections: Vec<usize>,
    pub protocol: Protocol,
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
    pub handshakes: Handshakes,
    /// Over HTTP/2.
    pub http2: Option<Http2Seen>,
    /// Connections that this system refused to open, each time that it was tried.
    pub refused: u64,
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
    /// What of a read was encrypted. It grows once there is such a connection.
    plain: Vec<u8>,
    buffers: ReadBuffers,
    /// For each request its last answer's head.
    cached_head: Vec<CachedHead>,
    /// Rests, by their end.
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    /// Connections that may have more to read than they had turns for.
    /// And whether their end may be among it.
    again: Vec<(usize, bool)>,
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
    handshakes: Handshakes,
    refused: u64,
    /// What HTTP/2 has beside.
    streams: Option<Streams>,
}

impl<'a> Thread<'a> {
    pub(super) fn new(orders: Orders<'a>, record: Record) -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let is_open = matches!(orders.work, Work::Open { .. });
        // Each stream has a place, as each connection has over HTTP/1.1.
        let per_connection = orders.protocol.streams() as usize;
        let count = orders.connections.len() * per_connection;
        let cycles = orders.connections.iter().flat_map(|cycle| std::iter::repeat_n(*cycle, per_connection));
        let connections = cycles.map(Connection::new).collect();
        let streams = match orders.protocol {
            Protocol::Http1 => None,
            Protocol::Http2 { .. } => Some(Streams::new(orders.connections.len(), per_connection, is_open)),
        };
        let addresses = orders.destinations.len();
        let cached_head = orders.requests.iter().map(|_| CachedHead::default()).collect();
        // The first one stands last, where places are taken from.
        let places: Vec<usize> = (0..count).rev().collect();
        let vacant = places.iter().copied().filter(|place| is_open && place % per_connection == 0).collect();
        Ok(Thread {
            orders,
            origin: Instant::now(),
            epoll,
            connections,
            record,
            buffer: vec![0; READ_BYTES],
            plain: Vec::new(),
            buffers: ReadBuffers::new(),
            cached_head,
            timers: BinaryHeap::new(),
            again: Vec::new(),
            unbegun: if is_open { Vec::new() } else { places },
            idle: vec![Vec::new(); addresses],
            vacant,
            queue: VecDeque::new(),
            arrival: None,
            busy: 0,
            waiting_since: 0,
            earliest_deadline: u64::MAX,
            connecting: 0,
            lateness: Latencies::new(),
            waited: 0,
            connections_opened: 0,
            handshakes: Handshakes::default(),
            refused: 0,
            streams,
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
            // Before the end is looked at: whatever was meant to begin before it begins, or is counted.
            self.arrivals(now);
            if self.is_over(now) {
                break now;
            }
            self.record.tick(now);
            self.give_up_late(now);
            self.end_rests(now);
            self.begin_unbegun(now);
            self.read_again();
            self.serve_queue(now);
            self.serve_sessions();
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
            handshakes: self.handshakes,
            http2: self.streams.map(|streams| streams.seen),
            refused: self.refused,
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
        // Deadlines end it before.
        let Timeouts { connect, response } = self.orders.timeouts;
        let tail = response.saturating_add(connect).saturating_add(DRAIN_MAX);
        now >= end.saturating_add(nanoseconds(tail))
    }

    /// Notes what did not come to an end.
    fn settle(&mut self, now: u64) {
        let abrupt = self.orders.shared.abrupt.load(Ordering::Relaxed);
        let hangs = |begun: u64| !abrupt || now.saturating_sub(begun) >= nanoseconds(HANGING);
        for connection in &self.connections {
            if connection.is_busy() && hangs(connection.begun) {
                self.record.failure(past(connection, now), Failure::TimedOut);
            }
        }
        self.queue.retain(|(begun, _)| hangs(*begun));
        self.unsend(now);
    }

    /// Arrivals that waited in vain.
    fn unsend(&mut self, now: u64) {
        for (begun, request) in std::mem::take(&mut self.queue) {
            self.never_sent(begun, request, now);
        }
    }

    fn never_sent(&mut self, begun: u64, request: usize, now: u64) {
        let past = Past { request, begun, sent: now, now, bytes_read: 0, bytes_written: 0 };
        self.record.failure(past, Failure::Unsent);
    }

    /// Whether one more request may begin.
    fn take_turn(&self, begun: u64) -> bool {
        let shared = self.orders.shared;
        let Some(budget) = &shared.budget else { return true };
        if begun < self.orders.measured_from {
            return true;
        }
        let taken = budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if matches!(taken, Err(_) | Ok(1)) {
            shared.spent.store(true, Ordering::Relaxed);
        }
        taken.is_ok()
    }

    fn begin_unbegun(&mut self, now: u64) {
        while self.connecting < CONNECTING_AT_START_MAX {
            let Some(place) = self.unbegun.pop() else { return };
            self.request_again(place, now);
        }
    }

    /// The next request of a connection of a closed loop, at once.
    fn request_again(&mut self, place: usize, now: u64) {
        if self.is_stopping(now) || self.park(place) || !self.take_turn(now) {
            return;
        }
        let Some(connection) = self.connections.get(place) else { return };
        let Some(cycle) = self.orders.cycles.get_mut(connection.cycle) else { return };
        let request = cycle.turn();
        self.begin(place, request, now, now);
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
            let request = self.orders.cycles.first_mut().map_or(0, Cycle::turn);
            if self.queue.is_empty()
                && let Some(place) = self.free_place(request)
            {
                if begun >= self.orders.measured_from {
                    self.lateness.record(Duration::from_nanos(now.saturating_sub(begun)));
                }
                self.begin(place, request, begun, now);
                continue;
            }
            if begun >= self.orders.measured_from {
                self.waited += 1;
            }
            if self.queue.len() < ARRIVALS_WAITING_MAX {
                self.queue.push_back((begun, request));
            } else {
                self.never_sent(begun, request, now);
            }
        }
    }

    /// Gives waiting arrivals what became free, by an answer or by a failure. Where a server refuses at once each of
    /// them frees its place again: some of them for a turn, so that the clock is looked at between.
    fn serve_queue(&mut self, now: u64) {
        let timeouts = nanoseconds(self.orders.timeouts.response);
        for _ in 0..SERVED_PER_TURN_MAX {
            let Some((begun, request)) = self.queue.front().copied() else { return };
            if now.saturating_sub(begun) >= timeouts {
                self.queue.pop_front();
                self.never_sent(begun, request, now);
                continue;
            }
            let Some(place) = self.free_place(request) else { return };
            self.queue.pop_front();
            self.begin(place, request, begun, now);
        }
    }

    /// A connection for this request: the idle one that was used last, else a place for a new one.
    fn free_place(&mut self, request: usize) -> Option<usize> {
        let address = self.orders.requests.get(request)?.address;
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

    fn has_free_place(&self) -> bool {
        !self.vacant.is_empty() || self.idle.iter().any(|places| !places.is_empty())
    }

    fn end_rests(&mut self, now: u64) {
        while let Some(Reverse((at, place))) = self.timers.peek().copied() {
            if at > now {
                return;
            }
            self.timers.pop();
            let Some(connection) = self.connections.get(place).filter(|connection| connection.wake_at == at)
            else {
                continue;
            };
            match connection.stage {
                Stage::Resting => self.request_again(place, now),
                Stage::Connecting if self.has_no_socket(place) => self.connect(place),
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
                Stage::Connecting if self.refused > 0 && self.has_no_socket(place) => {
                    self.failed(
                        place,
                        Failure::Connect,
                        "this system has no port, descriptor or memory left",
                    );
                }
                Stage::Connecting => self.failed(place, Failure::Connect, "no connection in time"),
                Stage::Handshaking => self.failed(place, Failure::Tls, "no TLS handshake in time"),
                _ => self.failed(place, Failure::TimedOut, "no whole answer in time"),
            }
        }
        self.earliest_deadline = earliest.max(now.saturating_add(nanoseconds(DEADLINE_TICK)));
    }

    fn wait(&mut self, events: &mut Vec<Event>) {
        let now = self.now();
        let rest = self.timers.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        let exact = rest.min(self.arrival.unwrap_or(u64::MAX));
        let end = self.orders.shared.end.load(Ordering::Relaxed);
        let end = if end > now { end } else { u64::MAX };
        let coarse = self.record.piece_end().min(self.earliest_deadline).min(end);
        let mut timeout = Duration::from_nanos(exact.min(coarse).saturating_sub(now)).min(SLEEP_MAX);
        let can_serve = !self.queue.is_empty() && self.has_free_place();
        if can_serve
            || !self.again.is_empty()
            || self.streams.as_ref().is_some_and(Streams::has_touched)
            || (!self.unbegun.is_empty() && self.connecting < CONNECTING_AT_START_MAX)
        {
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
        request: connection.request,
        begun: connection.begun,
        sent: connection.sent,
        now,
        bytes_read: connection.got,
        bytes_written: connection.written as u64,
    }
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
