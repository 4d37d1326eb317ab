//! The turns of HTTP/2 connections: what came is read, streams take their part and begin the next requests, what they
//! have to say goes out in one write.
//!
//! Owns the order of that. What a stream or a connection comes to is in `streams.rs`.

use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use super::super::connection::Stage;
use super::super::limits::{ROUNDS_PER_TURN_MAX, TURNS_MAX};
use super::super::record::Failure;
use super::super::session::{Broken, SessionStage};
use super::streams::taken;
use super::{Thread, exchange};
use crate::http2;

impl Thread<'_> {
    /// Something happened at a connection's socket.
    pub(super) fn session_event(&mut self, data: u64, flags: EventFlags) {
        let number = (data & u64::from(u32::MAX)) as usize;
        let Some(streams) = &mut self.streams else { return };
        let Some(session) = streams.session(number) else { return };
        if exchange::event_data(number, session.generation) != data {
            return;
        }
        let is_closing = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        session.is_closing |= is_closing;
        session.is_readable |= is_closing || flags.contains(EventFlags::IN);
        let error = match session.stage {
            SessionStage::Connecting => rustix::net::sockopt::socket_error(&session.socket),
            _ => Ok(Ok(())),
        };
        match error {
            Ok(Ok(())) => streams.touch(number),
            Ok(Err(error)) | Err(error) => self.broken(number, &Broken::Connect(error)),
        }
    }

    /// Gives every connection its turn that may have something to do.
    pub(super) fn serve_sessions(&mut self) {
        for _ in 0..TURNS_MAX {
            let Some(streams) = &self.streams else { return };
            let touched = taken(&streams.touched);
            if touched.is_empty() {
                return;
            }
            for number in touched {
                let alarm = self.streams.as_ref().and_then(|streams| streams.alarms.get(number));
                // One that had its turn meanwhile has nothing to do.
                if alarm.is_some_and(|alarm| alarm.is_set.swap(false, Ordering::Relaxed)) {
                    self.serve(number);
                }
            }
        }
    }

    fn serve(&mut self, number: usize) {
        let Some(session) = self.streams.as_mut().and_then(|streams| streams.session(number)) else { return };
        if session.is_readable
            && session.stage != SessionStage::Connecting
            && let Err(broken) = session.fill(&mut self.buffer, &mut self.handshakes)
        {
            return self.broken(number, &broken);
        }
        let has_more = session.is_readable;
        if !self.process(number) {
            return;
        }
        if !self.flush(number) {
            return;
        }
        let Some(streams) = &mut self.streams else { return };
        if has_more {
            streams.touch(number);
        }
        self.close_drained(number);
    }

    /// Has HTTP/2 take what came, and the streams what that is for them. Whether the connection is still there.
    fn process(&mut self, number: usize) -> bool {
        for _ in 0..ROUNDS_PER_TURN_MAX {
            let Some(streams) = &mut self.streams else { return false };
            let Some(alarm) = streams.alarms.get(number).cloned() else { return false };
            let Some(session) = streams.session(number) else { return false };
            let generation = session.generation;
            let polled = session.http2.poll(&mut Context::from_waker(&Waker::from(alarm.clone())));
            self.look_for_goaway(number);
            self.look_for_settings(number);
            self.unpark_of(number);
            self.poll_streams();
            let Some(session) = self.streams.as_mut().and_then(|streams| streams.session(number)) else {
                return false;
            };
            if session.generation != generation {
                return false;
            }
            if let Poll::Ready(outcome) = polled {
                let why = outcome.err().map(|error| (error.is_io(), http2::explain(&error)));
                let _ = session.flush();
                match why {
                    Some((false, why)) => self.lost(number, Failure::Malformed, &why),
                    _ => self.lost(number, Failure::Closed, "the connection was closed without an answer"),
                }
                return false;
            }
            let is_woken = alarm.is_set.swap(false, Ordering::Relaxed);
            if !is_woken {
                return true;
            }
        }
        // It gets another turn.
        self.streams.iter().for_each(|streams| streams.touch(number));
        true
    }

    /// With the server's SETTINGS a connection is open, unless it takes no request anyway.
    fn look_for_settings(&mut self, number: usize) {
        let Some(session) = self.streams.as_mut().and_then(|streams| streams.session(number)) else { return };
        if session.stage != SessionStage::Settings || session.http2.streams_allowed() == 0 {
            return;
        }
        if let Some(code) = session.goaway {
            let why = format!("the server sent GOAWAY, {}", http2::code_name(code.into()));
            return self.lost(number, Failure::GoAway, &why);
        }
        session.stage = SessionStage::Open;
        self.opened_for_requests(number);
    }

    /// A server that sent GOAWAY takes no more requests on the connection (RFC 9113 section 6.8).
    fn look_for_goaway(&mut self, number: usize) {
        let Some(streams) = &mut self.streams else { return };
        let Some(session) = streams.session(number).filter(|session| session.goaway.is_none()) else {
            return;
        };
        let Some(code) = session.http2.goaway() else { return };
        session.goaway = Some(code);
        *streams.seen.goaways.entry(code.into()).or_default() += 1;
        self.retire(number);
    }

    /// A server that allows more streams than before gets them.
    fn unpark_of(&mut self, number: usize) {
        let Some(streams) = &mut self.streams else { return };
        let Some(slot) = streams.session(number).map(|session| session.slot) else { return };
        if streams.slots.get(slot).is_some_and(|slot| !slot.parked.is_empty()) {
            self.unpark(slot);
        }
    }

    fn poll_streams(&mut self) {
        loop {
            let Some(streams) = &self.streams else { return };
            let woken = taken(&streams.woken);
            if woken.is_empty() {
                return;
            }
            for place in woken {
                self.poll_stream(place);
            }
        }
    }

    /// Writes what the socket takes. Whether the connection is still there.
    fn flush(&mut self, number: usize) -> bool {
        let Some(session) = self.streams.as_mut().and_then(|streams| streams.session(number)) else {
            return false;
        };
        let before = session.stage;
        let flushed = session.flush();
        let stage = session.stage;
        // What had no room waits in the streams.
        let was_full = session.http2.was_full();
        if before == SessionStage::Connecting && stage == SessionStage::Handshaking {
            self.set_stage_of_waiting(number, Stage::Handshaking);
        }
        match flushed {
            Ok(()) => {
                self.streams.iter().filter(|_| was_full).for_each(|streams| streams.touch(number));
                true
            }
            Err(Errno::AGAIN) => {
                self.wait_for_room_of(number);
                true
            }
            Err(error) if stage == SessionStage::Connecting => {
                self.broken(number, &Broken::Connect(error));
                false
            }
            Err(_) => {
                // The server takes no more, and may have said why.
                let Some(session) = self.streams.as_mut().and_then(|streams| streams.session(number)) else {
                    return false;
                };
                let first = !session.is_closing;
                session.is_closing = true;
                session.is_readable = true;
                if first {
                    self.streams.iter().for_each(|streams| streams.touch(number));
                }
                true
            }
        }
    }
}
