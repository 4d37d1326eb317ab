//! One request on one connection: from its begin to its whole answer, or to what it failed of.
//!
//! Owns the writes and reads, and what a connection does when its request is over.

use std::cmp::Reverse;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::super::connection::{Connection, Fed, Stage};
use super::super::encryption::Encryption;
use super::super::limits::{BACK_OFF_MAX, BACK_OFF_MIN, BACKLOG_RETRY, READ_BYTES, READS_PER_TURN_MAX};
use super::super::record::Failure;
use super::super::socket;
use super::{Thread, Work, nanoseconds, past};
use crate::plan::Reuse;
use crate::url::Address;

impl Thread<'_> {
    pub(super) fn begin(&mut self, place: usize, request: usize, begun: u64, now: u64) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        let Some(prepared) = self.orders.requests.get(request) else { return };
        if self.busy == 0 {
            self.waiting_since = now;
        }
        self.busy += 1;
        connection.request = request;
        connection.begun = begun;
        connection.sent = now;
        connection.expect_response();
        if self.streams.is_some() {
            return self.begin_on_stream(place, now);
        }
        if connection.socket.is_some() && connection.address != prepared.address {
            connection.close();
        }
        if connection.socket.is_some() {
            connection.stage = Stage::Sending;
            self.set_deadline(place, now, self.orders.timeouts.response);
            self.send(place);
        } else {
            connection.stage = Stage::Connecting;
            self.connecting += 1;
            self.set_deadline(place, now, self.orders.timeouts.connect);
            self.connect(place);
        }
    }

    pub(super) fn set_deadline(&mut self, place: usize, now: u64, timeout: Duration) {
        let deadline = now.saturating_add(nanoseconds(timeout));
        if let Some(connection) = self.connections.get_mut(place) {
            connection.deadline = deadline;
        }
        self.earliest_deadline = self.earliest_deadline.min(deadline);
    }

    pub(super) fn connect(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        let address = self.orders.requests.get(connection.request).map_or(0, |request| request.address);
        let Some(to) = self.orders.destinations.get(address) else { return };
        match socket::open(&to.address) {
            Ok(socket) if self.streams.is_some() => self.opened(place, socket, address),
            Ok(socket) => {
                let data = event_data(place, connection.generation);
                if let Err(error) = socket::watch(&self.epoll, &socket, &to.address, data) {
                    self.failed(place, Failure::Connect, &format!("no connection: {error}"));
                    return;
                }
                let tls = match to.tls.as_ref().map(Encryption::new).transpose() {
                    Ok(tls) => tls.map(Box::new),
                    Err(error) => return self.failed(place, Failure::Tls, &error.to_string()),
                };
                connection.opened(socket, tls, address);
                self.connections_opened += 1;
                // On the machine itself most are connected already; where one is not, it says so.
                self.send(place);
            }
            // The backlog of a Unix socket is full.
            Err(Errno::AGAIN) => {
                self.try_again(place);
            }
            // The system of the load, not the server: tried again until the timeout is over, and told.
            Err(Errno::ADDRNOTAVAIL | Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                self.refused += 1;
                self.try_again(place);
            }
            Err(error) => self.failed(place, Failure::Connect, &format!("no connection: {error}")),
        }
    }

    fn try_again(&mut self, place: usize) {
        let at = self.now().saturating_add(nanoseconds(BACKLOG_RETRY));
        self.wake_at(place, at);
    }

    /// Writes what the socket takes.
    fn send(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        if connection.tls.is_some() {
            return self.send_encrypted(place);
        }
        let Some(request) = self.orders.requests.get(connection.request) else { return };
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

    pub(super) fn connected(&mut self, place: usize) {
        self.connecting = self.connecting.saturating_sub(1);
        let now = self.now();
        self.set_deadline(place, now, self.orders.timeouts.response);
    }

    pub(super) fn wait_for_room(&mut self, place: usize) {
        let Some(connection) = self.connections.get(place) else { return };
        let to = self.orders.destinations.get(connection.address);
        let is_unix = to.is_some_and(|to| matches!(to.address, Address::Unix(_)));
        if let (true, Some(socket)) = (is_unix, &connection.socket) {
            let data = event_data(place, connection.generation);
            // Where this fails the deadline ends the request.
            let _ = socket::watch_for_room(&self.epoll, socket, data);
        }
    }

    pub(super) fn send_failed(&mut self, place: usize, error: Errno) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        if connection.stage == Stage::Connecting {
            return self.failed(place, Failure::Connect, &format!("no connection: {error}"));
        }
        if connection.stage == Stage::Handshaking {
            return self.cut_off(place);
        }
        if connection.responses > 0 && connection.written == 0 {
            // It was closed before the request, of which nothing went out: this is no fault of anybody.
            connection.close();
            connection.stage = Stage::Connecting;
            self.connecting += 1;
            let now = self.now();
            self.set_deadline(place, now, self.orders.timeouts.connect);
            return self.connect(place);
        }
        // The server takes no more, and may have said why.
        connection.stage = Stage::Waiting;
        self.receive(place, true);
    }

    pub(super) fn event(&mut self, data: u64, flags: EventFlags) {
        if self.streams.is_some() {
            return self.session_event(data, flags);
        }
        let place = (data & u64::from(u32::MAX)) as usize;
        let Some(connection) = self.connections.get_mut(place) else { return };
        if event_data(place, connection.generation) != data {
            return;
        }
        let closing = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        match connection.stage {
            Stage::Connecting => self.event_of_connecting(place, flags, closing),
            Stage::Handshaking | Stage::Sending | Stage::Waiting => {
                if connection.stage != Stage::Waiting && flags.contains(EventFlags::OUT) {
                    self.send(place);
                }
                let generation = (data >> 32) as u32;
                let is_same =
                    |connection: &Connection| connection.generation == generation && is_asked(connection);
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
                if closing && self.connections.get(place).is_some_and(is_asked) {
                    self.receive(place, true);
                }
            }
            Ok(Ok(())) => {}
            Ok(Err(error)) | Err(error) => {
                self.failed(place, Failure::Connect, &format!("no connection: {error}"));
            }
        }
    }

    /// Something came, or ended, on a connection that asked for nothing: it is of no more use. This is how kept
    /// connections end, and no fault.
    fn unasked(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        let Some(socket) = &connection.socket else { return };
        if connection.tls.is_some() {
            if !self.is_of_tls(place) {
                self.close_unasked(place);
            }
            return;
        }
        let read = rustix::net::recv(socket, &mut self.buffer[..], RecvFlags::empty());
        if !matches!(read, Err(Errno::AGAIN | Errno::INTR)) {
            self.close_unasked(place);
        }
    }

    fn close_unasked(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place) else { return };
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
        if self.connections.get(place).is_some_and(|connection| connection.tls.is_some()) {
            return self.receive_encrypted(place, closing);
        }
        for _ in 0..READS_PER_TURN_MAX {
            let Some(connection) = self.connections.get_mut(place) else { return };
            let Some(socket) = &connection.socket else { return };
            match rustix::net::recv(socket, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((0, _)) => return self.ended(place),
                Ok((count, _)) => {
                    let fresh = self.buffer.get(..count).unwrap_or_default();
                    let Some(request) = self.orders.requests.get(connection.request) else { return };
                    let Some(cached_head) = self.cached_head.get_mut(connection.request) else { return };
                    match connection.feed(fresh, request, cached_head, &mut self.buffers) {
                        Fed::Whole { status, reusable } => {
                            return self.answered(place, status, reusable && !closing);
                        }
                        Fed::Malformed => {
                            return self.failed(place, Failure::Malformed, "what came is no HTTP/1.1 answer");
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
        self.again.push((place, closing));
    }

    pub(super) fn read_again(&mut self) {
        for (place, closing) in std::mem::take(&mut self.again) {
            if self.connections.get(place).is_some_and(is_asked) {
                self.receive(place, closing);
            }
        }
    }

    /// The other side closed.
    pub(super) fn ended(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        match connection.end() {
            Some(status) => self.answered(place, status, false),
            None => self.cut_off(place),
        }
    }

    pub(super) fn cut_off(&mut self, place: usize) {
        let Some(connection) = self.connections.get(place) else { return };
        if connection.stage == Stage::Handshaking {
            self.failed(place, Failure::Tls, "the server ended the connection within the TLS handshake");
        } else if connection.got == 0 {
            self.failed(place, Failure::Closed, "the connection was closed without an answer");
        } else {
            self.failed(place, Failure::Truncated, "the answer broke off");
        }
    }

    pub(super) fn answered(&mut self, place: usize, status: u16, reusable: bool) {
        let now = self.note_response(place, status);
        let Some(connection) = self.connections.get_mut(place) else { return };
        let Some(request) = self.orders.requests.get(connection.request) else { return };
        let is_used_up = match self.orders.reuse {
            Reuse::Kept => false,
            Reuse::New => true,
            Reuse::Requests(most) => connection.responses >= most,
        };
        if !reusable || is_used_up || connection.written < request.bytes.len() {
            connection.close();
        }
        self.go_on(place, now);
    }

    /// A whole answer to the request of a place, whose stream is over.
    pub(super) fn answered_on_stream(&mut self, place: usize, status: u16) {
        let now = self.note_response(place, status);
        self.go_on(place, now);
    }

    /// Notes a whole answer, and gives the time of it.
    fn note_response(&mut self, place: usize, status: u16) -> u64 {
        let now = self.now();
        let in_time = now < self.orders.shared.end.load(Ordering::Relaxed);
        let Some(connection) = self.connections.get_mut(place) else { return now };
        let Some(request) = self.orders.requests.get(connection.request) else { return now };
        let expected = request.expect.accepts(status);
        self.record.response(past(connection, now), status, expected, self.waiting_since, in_time);
        connection.failures = 0;
        connection.responses = connection.responses.saturating_add(1);
        self.busy = self.busy.saturating_sub(1);
        now
    }

    /// What a place does after its answer.
    fn go_on(&mut self, place: usize, now: u64) {
        match &self.orders.work {
            Work::Closed { think } if think.is_zero() => {
                if let Some(connection) = self.connections.get_mut(place) {
                    connection.stage = Stage::Free;
                }
                self.request_again(place, now);
            }
            Work::Closed { think } => {
                let at = now.saturating_add(nanoseconds(*think));
                self.rest(place, at);
            }
            Work::Open { .. } => self.release(place, now),
        }
    }

    pub(super) fn failed(&mut self, place: usize, failure: Failure, why: &str) {
        let now = self.now();
        self.leave(place);
        let Some(connection) = self.connections.get_mut(place) else { return };
        self.record.failure(past(connection, now), failure);
        if matches!(connection.stage, Stage::Connecting | Stage::Handshaking) {
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
        self.wake_at(place, until);
    }

    /// Sets the one timer of a connection; an earlier one is void.
    fn wake_at(&mut self, place: usize, at: u64) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        connection.wake_at = at;
        self.timers.push(Reverse((at, place)));
    }

    /// A connection of an open loop is free: whoever waits longest gets it.
    fn release(&mut self, place: usize, now: u64) {
        self.set_free(place);
        self.serve_queue(now);
    }

    pub(super) fn set_free(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        connection.stage = Stage::Free;
        if self.streams.is_some() {
            let address = self.orders.requests.get(connection.request).map_or(0, |request| request.address);
            return self.set_stream_free(place, address);
        }
        match (connection.socket.is_some(), self.idle.get_mut(connection.address)) {
            (true, Some(idle)) => idle.push(place),
            _ => self.vacant.push(place),
        }
    }
}

/// Whether bytes that come are its server's word to the request, or to the handshake before it.
fn is_asked(connection: &Connection) -> bool {
    matches!(connection.stage, Stage::Handshaking | Stage::Sending | Stage::Waiting)
}

pub(super) fn event_data(place: usize, generation: u32) -> u64 {
    (u64::from(generation) << 32) | place as u64
}
