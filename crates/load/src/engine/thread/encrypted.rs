//! The writes and reads of a connection over TLS: its handshake, and requests and answers as records.
//!
//! Owns nothing of its own: what a request needs beside is in `exchange.rs`. A handshake is part of making the
//! connection: it has that deadline, and its end is when a connection over TCP would be made.

use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::super::connection::{Connection, Fed, Stage};
use super::super::limits::{READ_BYTES, READS_PER_TURN_MAX};
use super::super::record::Failure;
use super::Thread;

/// What a read brought.
enum Brought {
    /// Bytes of HTTP, or none; how many came, and whether they are the last.
    Plain { count: usize, has_closed: bool },
    /// Nothing is there.
    Nothing,
    /// It is over with this connection, and that is noted.
    Over,
}

impl Thread<'_> {
    /// Writes what the socket takes: the handshake, and behind it the request.
    pub(super) fn send_encrypted(&mut self, place: usize) {
        let Some(connection) = self.connections.get_mut(place) else { return };
        let Some(request) = self.orders.requests.get(connection.request) else { return };
        let (Some(socket), Some(tls)) = (&connection.socket, &mut connection.tls) else { return };
        let (written, sent) = (connection.written, tls.sent());
        let flushed = loop {
            if !tls.is_handshaking() {
                let rest = request.bytes.get(connection.written..).unwrap_or_default();
                connection.written += tls.write(rest);
            }
            let flushed = tls.flush(socket);
            let is_done = tls.is_handshaking() || connection.written >= request.bytes.len();
            if is_done || flushed.is_err() {
                break flushed;
            }
        };
        if connection.stage == Stage::Connecting && tls.sent() > sent {
            connection.stage = Stage::Handshaking;
        }
        let is_made = connection.stage == Stage::Handshaking && !tls.is_handshaking();
        if is_made {
            tls.note(&mut self.handshakes);
            connection.stage = Stage::Sending;
        }
        match flushed {
            Ok(()) if connection.stage == Stage::Sending => connection.stage = Stage::Waiting,
            // Nothing of the request is out, and nothing more will be.
            Err(error) if error != Errno::AGAIN && tls.sent() == sent => connection.written = written,
            _ => {}
        }
        if is_made {
            self.connected(place);
        }
        match flushed {
            Ok(()) => {}
            Err(Errno::AGAIN) => self.wait_for_room(place),
            Err(error) => self.send_failed(place, error),
        }
    }

    /// Reads what is there. `closing` says that the end may be among it.
    pub(super) fn receive_encrypted(&mut self, place: usize, closing: bool) {
        for _ in 0..READS_PER_TURN_MAX {
            let (count, has_closed) = match self.decrypt(place) {
                Brought::Plain { count, has_closed } => (count, has_closed),
                Brought::Nothing | Brought::Over => return,
            };
            let Some(connection) = self.connections.get_mut(place) else { return };
            let fed = if self.plain.is_empty() {
                Fed::Incomplete
            } else {
                let Some(request) = self.orders.requests.get(connection.request) else { return };
                let Some(cached_head) = self.cached_head.get_mut(connection.request) else { return };
                connection.feed(&self.plain, request, cached_head, &mut self.buffers)
            };
            match fed {
                Fed::Whole { status, reusable } => {
                    return self.answered(place, status, reusable && !closing && !has_closed);
                }
                Fed::Malformed => {
                    return self.failed(place, Failure::Malformed, "what came is no HTTP/1.1 answer");
                }
                Fed::Incomplete if has_closed => return self.ended(place),
                // A short read left nothing behind (epoll(7)), and what comes later is another edge.
                Fed::Incomplete if count < READ_BYTES && !closing => return,
                Fed::Incomplete => {}
            }
        }
        self.again.push((place, closing));
    }

    /// One read, decrypted into `plain`; what the handshake has to say to it goes out, and the request behind it.
    fn decrypt(&mut self, place: usize) -> Brought {
        self.plain.clear();
        let Some(connection) = self.connections.get_mut(place) else { return Brought::Over };
        let (Some(socket), Some(tls)) = (&connection.socket, &mut connection.tls) else {
            return Brought::Over;
        };
        let count = match rustix::net::recv(socket, &mut self.buffer[..], RecvFlags::empty()) {
            Ok((count @ 1.., _)) => count,
            Err(Errno::INTR) => return Brought::Plain { count: READ_BYTES, has_closed: false },
            Err(Errno::AGAIN) => return Brought::Nothing,
            // An end without TLS's own: nothing is whole with that (RFC 9112 section 9.8).
            Ok(_) | Err(_) => {
                self.cut_off(place);
                return Brought::Over;
            }
        };
        match tls.decrypt(self.buffer.get(..count).unwrap_or_default(), &mut self.plain) {
            Ok(has_closed) => {
                let generation = connection.generation;
                if connection.stage == Stage::Handshaking || tls.has_unsent() {
                    self.send_encrypted(place);
                }
                let is_same = |connection: &Connection| connection.generation == generation;
                match self.connections.get(place).is_some_and(is_same) {
                    true => Brought::Plain { count, has_closed },
                    false => Brought::Over,
                }
            }
            Err(error) => {
                // The alert that says why.
                let _ = tls.flush(socket);
                let why = tls.explain(&error);
                self.failed(place, Failure::Tls, &why);
                Brought::Over
            }
        }
    }

    /// Whether what came on a connection that asked for nothing is TLS's own (a ticket, a new key) and no end.
    pub(super) fn is_of_tls(&mut self, place: usize) -> bool {
        loop {
            let Some(connection) = self.connections.get_mut(place) else { return false };
            let (Some(socket), Some(tls)) = (&connection.socket, &mut connection.tls) else { return false };
            self.plain.clear();
            let count = match rustix::net::recv(socket, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((count @ 1.., _)) => count,
                Err(Errno::AGAIN) => return true,
                Err(Errno::INTR) => continue,
                Ok(_) | Err(_) => return false,
            };
            let read = tls.decrypt(self.buffer.get(..count).unwrap_or_default(), &mut self.plain);
            if !matches!(read, Ok(false)) || !self.plain.is_empty() || tls.flush(socket).is_err() {
                return false;
            }
        }
    }
}
