//! The state of one exchange on a worker connection: how far it is, what came for it, what may be sent.
//!
//! Checks that the worker's frames come in an order that the protocol allows. Knows no socket and no client.

use std::task::Waker;

use onehop_wire::limits::{FREE_BODY_BYTES, INFORMATIONAL_MAX};
use onehop_wire::{Broken, Frame, Meter, Payload, Window};

use crate::limits::{CONNECTION_INBOX_KEPT_BYTES_MAX, FILE_PARTS_WAITING_MAX};

/// How far an exchange is, as the worker's frames tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Progress {
    /// No final response has come.
    Requested,
    /// The response's head is there.
    Responding,
    /// The exchange has become a tunnel.
    Tunnel,
    /// A tunnel whose worker has ended its direction.
    HalfClosed,
    /// The worker has ended it.
    #[default]
    Over,
}

/// The exchange in a slot, or what is left of the last one.
pub(crate) struct StreamState {
    generation: u32,
    pub(crate) progress: Progress,
    informational: usize,
    /// Parts of files that the worker has requested and that are not sent.
    pub(crate) file_parts: usize,
    /// Whole frames that the request has not taken. Bounded by credit, and by the number of frames without it.
    pub(crate) inbox: Vec<u8>,
    pub(crate) reader: Option<Waker>,
    pub(crate) sender: Option<Waker>,
    pub(crate) send: Window,
    pub(crate) receive: Meter,
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
    /// Starts a new exchange.
    pub(crate) fn start(&mut self, generation: u32, window: u32) {
        let inbox = std::mem::take(&mut self.inbox);
        *self = Self {
            generation,
            progress: Progress::Requested,
            inbox,
            send: Window::new(window),
            receive: Meter::new(window),
            ..Self::default()
        };
        self.inbox.clear();
    }

    /// Ends the exchange and gives the bytes that were not passed on. `keeps`: the next exchange may have the buffer.
    pub(crate) fn end(&mut self, keeps: bool) -> usize {
        self.inbox.clear();
        if !keeps || self.inbox.capacity() > CONNECTION_INBOX_KEPT_BYTES_MAX {
            self.inbox = Vec::new();
        }
        self.reader = None;
        self.sender = None;
        self.receive.unread() as usize
    }

    /// Whether the worker itself ended the exchange of that generation.
    pub(crate) fn was_ended_by_worker(&self, generation: u32) -> bool {
        self.generation == generation && self.progress == Progress::Over
    }

    pub(crate) fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    pub(crate) fn wake_sender(&mut self) {
        if let Some(sender) = self.sender.take() {
            sender.wake();
        }
    }

    pub(crate) fn wake(&mut self) {
        self.wake_reader();
        self.wake_sender();
    }

    /// Checks that a frame may come now, and notes what it changes.
    pub(crate) fn advance(&mut self, frame: &Frame<'_>, body: usize) -> Result<(), String> {
        let as_text = |broken: Broken| broken.to_string();
        if matches!(self.progress, Progress::Over | Progress::HalfClosed) {
            match frame.payload {
                Payload::Credit(_) => {}
                // A tunnel is over for both sides with this; after a response's end it changes nothing.
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
            Payload::Response(response) if self.progress == Progress::Requested => {
                let upgrade = response.status == 101;
                self.progress = if upgrade { Progress::Tunnel } else { Progress::Responding };
                if upgrade && (frame.end || !response.body.is_empty()) {
                    return Err("it sends more than a head to upgrade".to_owned());
                }
            }
            Payload::File(_) if self.progress == Progress::Requested => {}
            Payload::Response(_) | Payload::File(_) => return Err("it answers a request twice".to_owned()),
            Payload::Informational(_) if self.progress == Progress::Requested => {
                self.informational += 1;
                if self.informational > INFORMATIONAL_MAX {
                    return Err("it sends too many informational answers to one request".to_owned());
                }
            }
            Payload::FilePart(_) if self.progress == Progress::Responding => {
                self.file_parts += 1;
                if self.file_parts > FILE_PARTS_WAITING_MAX {
                    return Err("it asks for more of files before they could be sent".to_owned());
                }
            }
            Payload::Data(_) if matches!(self.progress, Progress::Responding | Progress::Tunnel) => {}
            Payload::Trailers(_) if self.progress == Progress::Responding => {}
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
pub(crate) fn body_bytes(frame: &Frame<'_>) -> usize {
    match &frame.payload {
        Payload::Response(response) if frame.end && response.body.len() <= FREE_BODY_BYTES => 0,
        Payload::Response(response) => response.body.len(),
        Payload::Data(data) => data.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_few_small_buffers_are_kept_for_the_next_exchange() {
        let kept_after = |bytes: usize, keeps: bool| {
            let mut stream = StreamState::default();
            stream.start(1, 1 << 20);
            stream.inbox.extend(std::iter::repeat_n(0, bytes));
            stream.end(keeps);
            assert!(stream.inbox.is_empty());
            stream.inbox.capacity()
        };
        assert!(kept_after(CONNECTION_INBOX_KEPT_BYTES_MAX, true) >= CONNECTION_INBOX_KEPT_BYTES_MAX);
        assert_eq!(kept_after(CONNECTION_INBOX_KEPT_BYTES_MAX * 16, true), 0, "that of a long response");
        assert_eq!(kept_after(100, false), 0, "that of a burst's exchange");
    }
}
