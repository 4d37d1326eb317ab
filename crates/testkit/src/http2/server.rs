//! The server's side of HTTP/2 for a scripted upstream: it reads frames and heads, and sends what the script says.
//!
//! It acknowledges SETTINGS and PING. Windows are the script's: bodies of some KiB need none.

use std::collections::VecDeque;
use std::time::Instant;

use super::frame::{Frame, PREFACE, flag, kind};
use super::hpack::{Decoder, Fields, literals};
use crate::upstream::{Connection, Received};

/// Octets of a frame's header (RFC 9113 section 4.1).
const HEADER_BYTES: usize = 9;

/// A connection of an [`Upstream`](crate::upstream::Upstream) that speaks HTTP/2.
pub struct Http2Server<'c> {
    /// The connection below.
    pub connection: &'c mut Connection,
    decoder: Decoder,
    requests: usize,
    /// Frames that came before the acknowledgement of our SETTINGS.
    early: VecDeque<Frame>,
}

impl<'c> Http2Server<'c> {
    /// Reads the client's preface, sends these settings and waits until the client has applied them (RFC 9113 section 6.5.3),
    /// so that what it does later follows them; `None` where the client sends something else, or has gone.
    pub fn start(connection: &'c mut Connection, settings: &[(u16, u32)]) -> Option<Self> {
        if connection.exactly(PREFACE.len())? != PREFACE {
            return None;
        }
        let mut server = Self { connection, decoder: Decoder::new(), requests: 0, early: VecDeque::new() };
        if !server.send(&[Frame::settings(settings)]) {
            return None;
        }
        loop {
            let frame = server.read()?;
            if frame.kind == kind::SETTINGS && frame.has(flag::ACK) {
                return Some(server);
            }
            let frame = server.acknowledge(frame);
            server.early.extend(frame);
        }
    }

    /// The next frame that is none of SETTINGS, PING and WINDOW_UPDATE; `None` where the client has gone.
    pub fn frame(&mut self) -> Option<Frame> {
        if let Some(frame) = self.early.pop_front() {
            return Some(frame);
        }
        loop {
            let frame = self.read()?;
            if let Some(frame) = self.acknowledge(frame) {
                return Some(frame);
            }
        }
    }

    fn read(&mut self) -> Option<Frame> {
        let mut bytes = self.connection.exactly(HEADER_BYTES)?;
        let length = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
        bytes.extend(self.connection.exactly(length as usize)?);
        Frame::read(&mut bytes.as_slice()).ok()
    }

    /// Acknowledges SETTINGS and PING; gives back what scripts read.
    fn acknowledge(&mut self, frame: Frame) -> Option<Frame> {
        match frame.kind {
            kind::SETTINGS if !frame.has(flag::ACK) => {
                self.send(&[Frame::new(kind::SETTINGS, flag::ACK, 0, [])]);
            }
            kind::PING if !frame.has(flag::ACK) => {
                self.send(&[Frame { flags: flag::ACK, ..frame }]);
            }
            kind::SETTINGS | kind::PING | kind::WINDOW_UPDATE => {}
            _ => return Some(frame),
        }
        None
    }

    /// The fields of HEADERS, each of which has to be read for the next ones to be understood.
    pub fn fields(&mut self, headers: &Frame) -> Option<Fields> {
        self.decoder.decode(headers.content()).ok()
    }

    /// The head of the next request and its stream, without its body; frames before it are left out. It is kept for
    /// [`Upstream::seen`](crate::upstream::Upstream::seen).
    pub fn request(&mut self) -> Option<(u32, Received)> {
        loop {
            let frame = self.frame()?;
            if frame.kind == kind::HEADERS {
                return Some((frame.stream, self.head(&frame)?));
            }
        }
    }

    /// The request that HEADERS opens, in the form of HTTP/1.
    pub fn head(&mut self, headers: &Frame) -> Option<Received> {
        let fields = self.fields(headers)?;
        let value = |wanted: &str| fields.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
        let mut head = format!("{} {} HTTP/2", value(":method")?, value(":path")?);
        for (name, value) in &fields {
            head.push_str(&format!("\r\n{name}: {value}"));
        }
        let (connection, on_connection) = (self.connection.number, self.requests);
        self.requests += 1;
        let (body, trailers) = (Vec::new(), Vec::new());
        let request = Received { connection, on_connection, at: Instant::now(), head, body, trailers };
        self.connection.keep(&request);
        Some(request)
    }

    /// Sends frames in one write; `false` where the client has gone.
    pub fn send(&mut self, frames: &[Frame]) -> bool {
        self.connection.send(frames.iter().flat_map(Frame::bytes).collect::<Vec<u8>>())
    }

    /// Sends a whole response.
    pub fn respond(&mut self, stream: u32, status: &str, body: &str) -> bool {
        self.send(&response(stream, status, body))
    }
}

/// The frames of a whole response.
pub fn response(stream: u32, status: &str, body: &str) -> [Frame; 2] {
    [head(stream, status), Frame::new(kind::DATA, flag::END_STREAM, stream, body)]
}

/// HEADERS of a response whose body follows.
pub fn head(stream: u32, status: &str) -> Frame {
    Frame::new(kind::HEADERS, flag::END_HEADERS, stream, literals(&[(":status", status)]))
}
