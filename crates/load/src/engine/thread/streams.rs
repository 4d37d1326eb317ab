//! Requests over HTTP/2: which connection a place has its stream on, and how a stream and a connection end.
//!
//! Owns the connections of a thread and the streams of its places. A place has one request at a time, as over HTTP/1.1; the
//! places of one connection of the plan share its socket. A connection that takes no more requests is replaced at once
//! and ends with its last stream. `sessions.rs` moves the bytes.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use h2::Reason;
use rustix::io::Errno;

use super::super::connection::Stage;
use super::super::encryption::Encryption;
use super::super::limits::RESENT_MAX;
use super::super::record::Failure;
use super::super::session::{Broken, Session};
use super::super::socket;
use super::{Thread, Work};
use crate::http2::{Ended, Exchange, Http2, Http2Seen, STREAMS_PER_CONNECTION_MAX, code_name};
use crate::plan::Reuse;

/// What a thread has for HTTP/2.
#[derive(Debug)]
pub(super) struct Streams {
    /// Places of one connection.
    pub per_connection: usize,
    pub slots: Vec<Slot>,
    /// Connections by their number; those that drain are no slot's any more.
    pub sessions: Vec<Option<Box<Session>>>,
    /// Wakes each of them.
    pub alarms: Vec<Arc<Alarm>>,
    /// Numbers that are free.
    free: Vec<usize>,
    /// For each place its stream.
    streams: Vec<Stream>,
    generation: u32,
    /// Places whose streams may have something.
    pub woken: Numbers,
    /// Connections that may have something to do.
    pub touched: Numbers,
    pub seen: Http2Seen,
}

/// Numbers of places or connections, put there by wakers.
pub(super) type Numbers = Arc<Mutex<Vec<usize>>>;

/// One connection of the plan. It outlives its sockets.
#[derive(Debug, Default)]
pub(super) struct Slot {
    pub state: SlotState,
    /// Places with a request that wait until the connection is open.
    pub waiting: Vec<usize>,
    /// Places without a request, which would be more than the connection has room for.
    pub parked: Vec<usize>,
}

/// What it is at.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotState {
    /// No place has been given the opening of it.
    #[default]
    Closed,
    /// A place waits for a request to open it for.
    Offered,
    /// It is being opened; with its connection, once there is a socket.
    Opening(Option<usize>),
    /// Its connection takes requests.
    Open(usize),
}

/// The stream of a place.
#[derive(Debug)]
struct Stream {
    session: Option<usize>,
    exchange: Option<Exchange>,
    alarm: Arc<Alarm>,
    waker: Waker,
    /// How often its request was sent again.
    resent: u8,
}

/// Puts a number on a list, once until it is taken from there.
#[derive(Debug)]
pub(super) struct Alarm {
    number: usize,
    list: Numbers,
    pub is_set: AtomicBool,
}

impl Alarm {
    fn new(number: usize, list: &Numbers) -> Arc<Alarm> {
        Arc::new(Alarm { number, list: Arc::clone(list), is_set: AtomicBool::new(false) })
    }

    fn set(&self) {
        if !self.is_set.swap(true, Ordering::Relaxed) {
            self.list.lock().unwrap_or_else(PoisonError::into_inner).push(self.number);
        }
    }
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.set();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.set();
    }
}

/// Takes all numbers off the list.
pub(super) fn taken(numbers: &Numbers) -> Vec<usize> {
    std::mem::take(&mut *numbers.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Streams {
    /// For so many connections with so many places each. In an open loop the first place of each is there for a
    /// request, and the others when it is open.
    pub(super) fn new(connections: usize, per_connection: usize, is_open: bool) -> Streams {
        let woken = Numbers::default();
        let stream = |place| {
            let alarm = Alarm::new(place, &woken);
            Stream { session: None, exchange: None, waker: Waker::from(Arc::clone(&alarm)), alarm, resent: 0 }
        };
        let streams = (0..connections * per_connection).map(stream).collect();
        let slot = |number: usize| match is_open {
            true => Slot {
                state: SlotState::Offered,
                parked: (number * per_connection + 1..(number + 1) * per_connection).rev().collect(),
                ..Slot::default()
            },
            false => Slot::default(),
        };
        Streams {
            per_connection,
            slots: (0..connections).map(slot).collect(),
            sessions: Vec::new(),
            alarms: Vec::new(),
            free: Vec::new(),
            streams,
            generation: 0,
            woken,
            touched: Numbers::default(),
            seen: Http2Seen {
                streams: u32::try_from(per_connection).unwrap_or(u32::MAX),
                ..Http2Seen::default()
            },
        }
    }

    /// The connection of the plan that a place belongs to.
    pub(super) fn slot_of(&mut self, place: usize) -> Option<&mut Slot> {
        self.slots.get_mut(place / self.per_connection)
    }

    pub(super) fn session(&mut self, number: usize) -> Option<&mut Session> {
        self.sessions.get_mut(number)?.as_deref_mut()
    }

    /// Has a connection get its turn.
    pub(super) fn touch(&self, number: usize) {
        if let Some(alarm) = self.alarms.get(number) {
            alarm.set();
        }
    }

    /// Whether any has.
    pub(super) fn has_touched(&self) -> bool {
        !self.touched.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Places of a slot that may have streams at a time on its connection.
    fn allowed(&self, session: usize) -> usize {
        let session = self.sessions.get(session).and_then(Option::as_deref);
        // One that allows none any more has its next request wait, until that is too late.
        session.map_or(0, |session| session.http2.streams_allowed()).clamp(1, self.per_connection)
    }

    /// Whether a place without a request is more than its connection has room for.
    pub(super) fn is_superfluous(&mut self, place: usize) -> bool {
        let per_connection = self.per_connection;
        let Some(slot) = self.slot_of(place) else { return false };
        match slot.state {
            SlotState::Open(session) => {
                let active = per_connection - slot.parked.len();
                active > self.allowed(session)
            }
            SlotState::Opening(_) => true,
            SlotState::Closed | SlotState::Offered => false,
        }
    }

    /// A place that its connection has room for now.
    fn unpark(&mut self, number: usize) -> Option<usize> {
        let per_connection = self.per_connection;
        let SlotState::Open(session) = self.slots.get(number)?.state else { return None };
        let allowed = self.allowed(session);
        let slot = self.slots.get_mut(number)?;
        (per_connection - slot.parked.len() < allowed).then(|| slot.parked.pop()).flatten()
    }

    fn add(&mut self, session: impl FnOnce(u32) -> Session) -> usize {
        self.generation = self.generation.wrapping_add(1);
        let session = Some(Box::new(session(self.generation)));
        if let Some(number) = self.free.pop()
            && let Some(place) = self.sessions.get_mut(number)
        {
            *place = session;
            return number;
        }
        self.sessions.push(session);
        self.alarms.push(Alarm::new(self.alarms.len(), &self.touched));
        self.sessions.len() - 1
    }

    /// Takes a connection out; its streams know nothing of that.
    fn remove(&mut self, number: usize) -> Option<Box<Session>> {
        let session = self.sessions.get_mut(number)?.take()?;
        self.free.push(number);
        Some(session)
    }

    /// Ends what a place has, and gives the bytes that were read and written meanwhile.
    fn detach(&mut self, place: usize) -> (u64, u64) {
        let Some(stream) = self.streams.get_mut(place) else { return (0, 0) };
        // One that is not whole is reset.
        stream.exchange = None;
        let Some(number) = stream.session.take() else { return (0, 0) };
        self.touch(number);
        let Some(session) = self.session(number) else { return (0, 0) };
        session.streams = session.streams.saturating_sub(1);
        session.take_bytes()
    }
}

impl Thread<'_> {
    /// Whether a connection of a closed loop has no room for one more request of this place; the place is kept for later.
    pub(super) fn park(&mut self, place: usize) -> bool {
        let Some(streams) = &mut self.streams else { return false };
        if !streams.is_superfluous(place) {
            return false;
        }
        if let Some(slot) = streams.slot_of(place) {
            slot.parked.push(place);
        }
        true
    }

    /// Sends the request of a place, on a connection that is open or is opened for it.
    pub(super) fn begin_on_stream(&mut self, place: usize, now: u64) {
        let Some(slot) = self.streams.as_mut().and_then(|streams| streams.slot_of(place)) else { return };
        if let SlotState::Open(session) = slot.state {
            self.set_deadline(place, now, self.orders.timeouts.response);
            return self.start(place, session);
        }
        let Some(connection) = self.connections.get_mut(place) else { return };
        connection.stage = Stage::Connecting;
        self.connecting += 1;
        slot.waiting.push(place);
        let is_opener = !matches!(slot.state, SlotState::Opening(_));
        if is_opener {
            slot.state = SlotState::Opening(None);
        }
        self.set_deadline(place, now, self.orders.timeouts.connect);
        if is_opener {
            self.connect(place);
        }
    }

    /// A socket for the connection of a place.
    pub(super) fn opened(&mut self, place: usize, socket: OwnedFd, address: usize) {
        let Some(to) = self.orders.destinations.get(address) else { return };
        let Some(streams) = &mut self.streams else { return };
        let slot = place / streams.per_connection;
        let tls = match to.tls.as_ref().map(Encryption::new).transpose() {
            Ok(tls) => tls.map(Box::new),
            Err(error) => return self.failed(place, Failure::Tls, &error.to_string()),
        };
        let http2 = match Http2::begin() {
            Ok(http2) => http2,
            Err(error) => return self.failed(place, Failure::Malformed, &error.to_string()),
        };
        let number = streams.add(|generation| Session::new(socket, tls, http2, generation, slot));
        let Some(session) = streams.session(number) else { return };
        let data = super::exchange::event_data(number, session.generation);
        if let Err(error) = socket::watch(&self.epoll, &session.socket, &to.address, data) {
            streams.remove(number);
            return self.failed(place, Failure::Connect, &format!("no connection: {error}"));
        }
        if let Some(slot) = streams.slots.get_mut(slot) {
            slot.state = SlotState::Opening(Some(number));
        }
        self.connections_opened += 1;
        // On the machine itself most are connected already; where one is not, it says so.
        streams.touch(number);
    }

    /// A connection takes requests: those that waited for it, and as many more as it has room for.
    pub(super) fn opened_for_requests(&mut self, number: usize) {
        let Some(streams) = &mut self.streams else { return };
        let Some(slot) = streams.session(number).map(|session| session.slot) else { return };
        let allowed = streams.allowed(number);
        if allowed < streams.per_connection {
            let allowed = u32::try_from(allowed).unwrap_or(u32::MAX);
            streams.seen.streams_allowed = streams.seen.streams_allowed.into_iter().chain([allowed]).min();
        }
        let Some(of_slot) = streams.slots.get_mut(slot) else { return };
        of_slot.state = SlotState::Open(number);
        for place in std::mem::take(&mut of_slot.waiting) {
            self.connected(place);
            self.start(place, number);
        }
        self.unpark(slot);
    }

    /// Gives places what room their connection has.
    pub(super) fn unpark(&mut self, slot: usize) {
        let now = self.now();
        while let Some(place) = self.streams.as_mut().and_then(|streams| streams.unpark(slot)) {
            self.revive(place, now);
        }
    }

    fn revive(&mut self, place: usize, now: u64) {
        match &self.orders.work {
            Work::Closed { .. } => self.request_again(place, now),
            Work::Open { .. } => self.set_free(place),
        }
    }

    /// Sends the request of a place on an open connection.
    fn start(&mut self, place: usize, number: usize) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        let prepared =
            self.orders.requests.get(connection.request).and_then(|request| request.http2.as_ref());
        let (Some(prepared), Some(streams)) = (prepared, &mut self.streams) else { return };
        let most = match self.orders.reuse {
            Reuse::Kept => STREAMS_PER_CONNECTION_MAX,
            Reuse::New => 1,
            Reuse::Requests(most) => most.min(STREAMS_PER_CONNECTION_MAX),
        };
        let Some(session) = streams.session(number) else { return };
        connection.stage = Stage::Waiting;
        let exchange = match session.http2.request(prepared) {
            Ok(exchange) => exchange,
            Err(error) => {
                return self.failed(place, Failure::Malformed, &format!("no stream: {error}"));
            }
        };
        session.streams += 1;
        session.requests += 1;
        let is_used_up = session.requests >= most;
        streams.seen.streams_opened += 1;
        streams.touch(number);
        if let Some(stream) = streams.streams.get_mut(place) {
            stream.session = Some(number);
            stream.exchange = Some(exchange);
            // Looked at once, it is woken when there is something.
            stream.alarm.set();
        }
        if is_used_up {
            self.retire(number);
        }
    }

    /// A connection takes no more requests: the next ones go to another.
    pub(super) fn retire(&mut self, number: usize) {
        let Some(streams) = &mut self.streams else { return };
        let Some(session) = streams.session(number) else { return };
        session.is_draining = true;
        let slot = session.slot;
        streams.touch(number);
        let per_connection = streams.per_connection;
        let Some(of_slot) = streams.slots.get_mut(slot) else { return };
        if of_slot.state != SlotState::Open(number) {
            return;
        }
        of_slot.state = SlotState::Closed;
        for idle in &mut self.idle {
            of_slot.parked.extend(idle.extract_if(.., |place| *place / per_connection == slot));
        }
        // Somebody has to open the next.
        let next = of_slot.parked.pop();
        if let Some(place) = next {
            let now = self.now();
            self.revive(place, now);
        }
    }

    /// Takes what came for a place.
    pub(super) fn poll_stream(&mut self, place: usize) {
        let Some(stream) = self.streams.as_mut().and_then(|streams| streams.streams.get_mut(place)) else {
            return;
        };
        stream.alarm.is_set.store(false, Ordering::Relaxed);
        let Stream { exchange: Some(exchange), waker, .. } = stream else { return };
        let polled = exchange.poll(&mut Context::from_waker(waker), &mut |_| {});
        match polled {
            Poll::Pending => {}
            Poll::Ready(Ok(status)) => {
                self.leave(place);
                self.answered_on_stream(place, status);
            }
            Poll::Ready(Err(ended)) => self.ended_stream(place, &ended),
        }
    }

    fn ended_stream(&mut self, place: usize, ended: &Ended) {
        let number = self.streams.as_ref().and_then(|streams| streams.streams.get(place)?.session);
        let goaway = number.and_then(|number| self.streams.as_mut()?.session(number)?.goaway);
        let goaway = goaway.filter(|code| *code != Reason::NO_ERROR);
        if let (Ended::Lost { .. }, Some(code)) = (ended, goaway) {
            return self.ended_by(place, Failure::GoAway, code);
        }
        match ended {
            Ended::GoAway(Reason::NO_ERROR) if self.may_resend(place) => self.resend(place),
            Ended::GoAway(code) => self.ended_by(place, Failure::GoAway, *code),
            Ended::Reset(code) => self.ended_by(place, Failure::Reset, *code),
            Ended::Truncated => {
                self.failed(place, Failure::Truncated, "the body is not as long as its Content-Length");
            }
            Ended::Malformed => self.failed(place, Failure::Malformed, "what came is no valid HTTP/2"),
            Ended::Lost { has_head: true } => self.failed(place, Failure::Truncated, "the answer broke off"),
            Ended::Lost { has_head: false } => {
                self.failed(place, Failure::Closed, "the connection was closed without an answer");
            }
        }
    }

    fn ended_by(&mut self, place: usize, failure: Failure, code: Reason) {
        let begun = self.connections.get(place).map_or(0, |connection| connection.begun);
        if failure == Failure::Reset
            && begun >= self.orders.measured_from
            && let Some(streams) = &mut self.streams
        {
            *streams.seen.resets.entry(code.into()).or_default() += 1;
        }
        let frame = if failure == Failure::Reset { "RST_STREAM" } else { "GOAWAY" };
        self.failed(place, failure, &format!("the server sent {frame}, {}", code_name(code.into())));
    }

    fn may_resend(&self, place: usize) -> bool {
        let stream = self.streams.as_ref().and_then(|streams| streams.streams.get(place));
        stream.is_some_and(|stream| stream.resent < RESENT_MAX)
    }

    /// Sends the request of a place on another connection: the server did not process it (RFC 9113 section 6.8). It is as
    /// late as it is.
    fn resend(&mut self, place: usize) {
        let Some(streams) = &mut self.streams else { return };
        streams.seen.resent += 1;
        if let Some(stream) = streams.streams.get_mut(place) {
            stream.resent += 1;
        }
        let number = streams.streams.get(place).and_then(|stream| stream.session);
        streams.detach(place);
        number.into_iter().for_each(|number| self.retire(number));
        let now = self.now();
        self.begin_on_stream(place, now);
    }

    /// Ends what a place has to do with a connection, and notes the bytes of that.
    pub(super) fn leave(&mut self, place: usize) {
        let Some(streams) = &mut self.streams else { return };
        let (read, written) = streams.detach(place);
        if let Some(stream) = streams.streams.get_mut(place) {
            stream.resent = 0;
        }
        if let Some(connection) = self.connections.get_mut(place) {
            connection.got = read;
            connection.written = usize::try_from(written).unwrap_or(usize::MAX);
        }
        let Some(slot) = streams.slot_of(place) else { return };
        let was_waiting = slot.waiting.len();
        slot.waiting.retain(|other| *other != place);
        // The last that waited for a connection gives it up.
        if let SlotState::Opening(number) = slot.state
            && slot.waiting.is_empty()
            && was_waiting > 0
        {
            slot.state = SlotState::Closed;
            number.and_then(|number| streams.remove(number)).into_iter().for_each(|session| session.close());
        }
    }

    /// A connection that carries no HTTP/2: whoever waited for it failed.
    pub(super) fn broken(&mut self, number: usize, broken: &Broken) {
        let (failure, why) = match broken {
            Broken::Connect(error) => (Failure::Connect, format!("no connection: {error}")),
            Broken::Tls(why) | Broken::Protocol(why) => (Failure::Tls, why.clone()),
        };
        self.lost(number, failure, &why);
    }

    /// A connection is over. Its streams have heard of that, unless it was never open.
    pub(super) fn lost(&mut self, number: usize, failure: Failure, why: &str) {
        self.retire(number);
        let Some(streams) = &mut self.streams else { return };
        let Some(session) = streams.remove(number) else { return };
        let slot = session.slot;
        session.close();
        let places = slot * streams.per_connection..(slot + 1) * streams.per_connection;
        let mut left: Vec<usize> = places
            .filter(|place| streams.streams.get(*place).is_some_and(|stream| stream.session == Some(number)))
            .collect();
        if let Some(of_slot) = streams.slots.get_mut(slot)
            && of_slot.state == SlotState::Opening(Some(number))
        {
            of_slot.state = SlotState::Closed;
            left.append(&mut of_slot.waiting);
        }
        for place in left {
            self.failed(place, failure, why);
        }
    }

    /// Closes a connection that drained.
    pub(super) fn close_drained(&mut self, number: usize) {
        let Some(streams) = &mut self.streams else { return };
        let is_drained = |session: &mut Session| session.is_draining && session.streams == 0;
        if streams.session(number).is_some_and(is_drained)
            && let Some(session) = streams.remove(number)
        {
            session.close();
        }
    }

    /// The place of a connection of an open loop that has no request.
    pub(super) fn set_stream_free(&mut self, place: usize, address: usize) {
        let Some(streams) = &mut self.streams else { return };
        let is_superfluous = streams.is_superfluous(place);
        let Some(slot) = streams.slot_of(place) else { return };
        match slot.state {
            SlotState::Open(_) if !is_superfluous => {
                self.idle.get_mut(address).into_iter().for_each(|idle| idle.push(place));
            }
            SlotState::Closed => {
                slot.state = SlotState::Offered;
                self.vacant.push(place);
            }
            _ => slot.parked.push(place),
        }
    }

    /// Whether a socket could not be opened as yet for a place.
    pub(super) fn has_no_socket(&self, place: usize) -> bool {
        match &self.streams {
            None => self.connections.get(place).is_some_and(|connection| connection.socket.is_none()),
            Some(streams) => {
                let slot = streams.slots.get(place / streams.per_connection);
                slot.is_some_and(|slot| slot.state == SlotState::Opening(None))
            }
        }
    }

    /// The stage of places that wait for a connection: what they are given up for.
    pub(super) fn set_stage_of_waiting(&mut self, number: usize, stage: Stage) {
        let Some(streams) = &mut self.streams else { return };
        let Some(slot) = streams.session(number).map(|session| session.slot) else { return };
        for place in streams.slots.get(slot).map(|slot| slot.waiting.as_slice()).unwrap_or_default() {
            if let Some(connection) = self.connections.get_mut(*place) {
                connection.stage = stage;
            }
        }
    }

    /// Has epoll tell when a Unix socket takes bytes again.
    pub(super) fn wait_for_room_of(&mut self, number: usize) {
        let Some(streams) = &mut self.streams else { return };
        let Some(session) = streams.session(number) else { return };
        let data = super::exchange::event_data(number, session.generation);
        // Where this fails the deadline ends the requests.
        let _: Result<(), Errno> = socket::watch_for_room(&self.epoll, &session.socket, data);
    }
}
