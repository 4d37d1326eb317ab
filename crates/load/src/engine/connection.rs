//! One connection of the load: the request that is on its way, and the answer as far as it has come.
//!
//! Owns the reading of answers from bytes. Knows no clock and makes no system call but to close. Takes no part of an
//! answer for the whole, and no byte that was not asked for.

use std::ops::Range;
use std::os::fd::OwnedFd;

use onehop_http1::{AnswerBody, AnswerRead, BodyRead, ClientCodec, ResponseHead};

use super::encryption::Encryption;
use super::request::PreparedRequest;
use crate::client::CODEC_LIMITS;

/// What a connection is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It has no request, and nothing is planned for it.
    Free,
    /// It has no request; a timer will give it one.
    Resting,
    /// It has a request, and the socket is not connected yet.
    Connecting,
    /// The socket is connected, and TLS is agreed on.
    Handshaking,
    /// A part of the request is out.
    Sending,
    /// The answer is waited for.
    Waiting,
}

/// A place for a connection. It outlives its sockets.
#[derive(Debug)]
pub(super) struct Connection {
    /// The socket, while there is one.
    pub socket: Option<OwnedFd>,
    /// How it is encrypted; `None` in the clear.
    pub tls: Option<Box<Encryption>>,
    /// Where the socket leads.
    pub address: usize,
    /// Sockets that this place had: events of an earlier one are nobody's.
    pub generation: u32,
    /// What it is at.
    pub stage: Stage,
    /// The cycle that it takes its requests from.
    pub cycle: usize,
    /// The request, its place in the plan.
    pub request: usize,
    /// When the request was meant to begin, nanoseconds of the run.
    pub begun: u64,
    /// When it was sent.
    pub sent: u64,
    /// When it is given up.
    pub deadline: u64,
    /// When its timer is due; others are void.
    pub wake_at: u64,
    /// Bytes of it that are out.
    pub written: usize,
    /// Bytes of its answer, heads and framing included.
    pub got: u64,
    /// Whole answers that came over this socket.
    pub responses: u32,
    /// Failures in a row.
    pub failures: u32,
    /// What is said of the requests and answers.
    codec: ClientCodec,
    /// The codec knows of the request.
    is_announced: bool,
    /// Bytes that came and could not be used yet. Empty unless an answer is cut in an unlucky place.
    held: Vec<u8>,
    /// The status, once the head is read.
    status: Option<u16>,
    /// Where the head stood in the bytes that it was read from.
    head_at: Range<usize>,
}

/// What bytes of an answer came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fed {
    /// More are needed.
    Incomplete,
    /// The answer is whole.
    Whole {
        /// Its status.
        status: u16,
        /// Whether the connection may be asked again.
        reusable: bool,
    },
    /// This is no HTTP.
    Malformed,
}

impl Connection {
    pub(super) fn new(cycle: usize) -> Connection {
        Connection {
            socket: None,
            tls: None,
            address: 0,
            generation: 0,
            stage: Stage::Free,
            cycle,
            request: 0,
            begun: 0,
            sent: 0,
            deadline: u64::MAX,
            wake_at: u64::MAX,
            written: 0,
            got: 0,
            responses: 0,
            failures: 0,
            codec: ClientCodec::new(CODEC_LIMITS),
            is_announced: false,
            held: Vec::new(),
            status: None,
            head_at: 0..0,
        }
    }

    /// Whether a request is on its way.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.stage, Stage::Connecting | Stage::Handshaking | Stage::Sending | Stage::Waiting)
    }

    /// Takes a socket.
    pub(super) fn opened(&mut self, socket: OwnedFd, tls: Option<Box<Encryption>>, address: usize) {
        self.socket = Some(socket);
        self.tls = tls;
        self.address = address;
        self.responses = 0;
        self.codec = ClientCodec::new(CODEC_LIMITS);
        self.is_announced = false;
    }

    /// Closes the socket, where there is one.
    pub(super) fn close(&mut self) {
        if let (Some(mut tls), Some(socket)) = (self.tls.take(), &self.socket) {
            tls.end(socket);
        }
        self.socket = None;
        self.generation = self.generation.wrapping_add(1);
        self.held = Vec::new();
        self.status = None;
    }

    /// Makes ready for an answer.
    pub(super) fn expect_response(&mut self) {
        self.written = 0;
        self.got = 0;
        self.status = None;
        self.is_announced = false;
    }

    /// Takes bytes that came. `cached_head` is the last answer's head to the same request.
    #[inline]
    pub(super) fn feed(
        &mut self,
        fresh: &[u8],
        request: &PreparedRequest,
        cached_head: &mut CachedHead,
        buffers: &mut ReadBuffers,
    ) -> Fed {
        let is_first = self.got == 0;
        self.got += fresh.len() as u64;
        if is_first && cached_head.is_whole_response(fresh) {
            return Fed::Whole { status: cached_head.status, reusable: true };
        }
        self.feed_codec(fresh, request, buffers, is_first.then_some(cached_head))
    }

    fn feed_codec(
        &mut self,
        fresh: &[u8],
        request: &PreparedRequest,
        buffers: &mut ReadBuffers,
        cached_head: Option<&mut CachedHead>,
    ) -> Fed {
        if !self.announce(request, buffers) {
            return Fed::Malformed;
        }
        if self.held.is_empty() {
            let (fed, used) = self.read(fresh, &mut buffers.head);
            match (fed, cached_head) {
                (Fed::Incomplete, _) => {
                    self.held.extend_from_slice(fresh.get(used..).unwrap_or_default());
                }
                (Fed::Whole { status, reusable: true }, Some(cached_head)) => {
                    cached_head.remember(fresh, status, self.codec.answer_body(), self.head_at.clone());
                }
                _ => {}
            }
            return fed;
        }
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(fresh);
        let (fed, used) = self.read(&held, &mut buffers.head);
        if fed == Fed::Incomplete {
            held.drain(..used.min(held.len()));
            self.held = held;
        }
        fed
    }

    /// The other side closed: the status of an answer that is whole with that.
    pub(super) fn end(&mut self) -> Option<u16> {
        self.codec.read_eof(self.held.len()).ok()?;
        self.status
    }

    /// Tells the codec of the request, once there is something to judge.
    fn announce(&mut self, request: &PreparedRequest, buffers: &mut ReadBuffers) -> bool {
        if !self.is_announced {
            self.is_announced = request.announce(&mut self.codec, &mut buffers.scratch).is_ok();
        }
        self.is_announced
    }

    /// Reads as far as the bytes go, and says how many were used.
    fn read(&mut self, input: &[u8], head: &mut ResponseHead) -> (Fed, usize) {
        let mut used = 0;
        let status = match self.status {
            Some(status) => status,
            None => loop {
                match self.codec.read_head(input.get(used..).unwrap_or_default(), head) {
                    Ok(Some(AnswerRead::Informational { consumed })) => used += consumed,
                    Ok(Some(AnswerRead::Final { consumed })) => {
                        self.head_at = used..used + consumed;
                        used += consumed;
                        self.status = Some(head.status());
                        break head.status();
                    }
                    Ok(None) => return (Fed::Incomplete, used),
                    // A tunnel was never asked for; one that a CONNECT opened cannot be measured in answers.
                    Ok(Some(AnswerRead::Tunnel { .. })) | Err(_) => return (Fed::Malformed, used),
                }
            },
        };
        while !self.codec.body_is_read() {
            match self.codec.read_body(input.get(used..).unwrap_or_default()) {
                Ok(BodyRead::Data { consumed, .. } | BodyRead::End { consumed }) => used += consumed,
                Ok(BodyRead::NeedMore) => return (Fed::Incomplete, used),
                Err(_) => return (Fed::Malformed, used),
            }
        }
        // More than the answer's length: a length that is wrong, or an answer that nobody asked for.
        if used < input.len() {
            return (Fed::Malformed, used);
        }
        (Fed::Whole { status, reusable: self.codec.reuse(0) }, used)
    }
}

/// What all connections of a thread read with.
#[derive(Debug)]
pub(super) struct ReadBuffers {
    head: ResponseHead,
    scratch: Vec<u8>,
}

impl ReadBuffers {
    pub(super) fn new() -> ReadBuffers {
        ReadBuffers { head: ResponseHead::new(), scratch: Vec::new() }
    }
}

/// The head of the last whole answer to a request, where its body had a known length and its connection could be used
/// again. What the codec says of an answer follows from the request and the answer's bytes alone: the very same head,
/// on a connection that is as fresh, with a body of the very same length says the same. Servers send the same head
/// for as long as their `Date` says the same second, so that most answers cost one comparison.
#[derive(Debug, Default)]
pub(super) struct CachedHead {
    head: Vec<u8>,
    /// Bytes of the whole answer; 0 where nothing is remembered.
    length: usize,
    status: u16,
}

impl CachedHead {
    #[inline]
    fn is_whole_response(&self, bytes: &[u8]) -> bool {
        self.length != 0 && bytes.len() == self.length && bytes.starts_with(&self.head)
    }

    /// `bytes` are one read and one whole answer, with its head at `head`.
    fn remember(&mut self, bytes: &[u8], status: u16, body: AnswerBody, head: Range<usize>) {
        let body = match body {
            AnswerBody::None => Some(0),
            AnswerBody::Known(length) => usize::try_from(length).ok(),
            AnswerBody::Chunked | AnswerBody::UntilClose => None,
        };
        self.length = 0;
        // Nothing but the body stands beside the head: no informational answer came before it.
        if head.start == 0
            && body.and_then(|body| body.checked_add(head.end)) == Some(bytes.len())
            && let Some(head) = bytes.get(head)
        {
            self.head.clear();
            self.head.extend_from_slice(head);
            self.length = bytes.len();
            self.status = status;
        }
    }
}
