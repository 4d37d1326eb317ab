//! What the body and the response of one request share of its connection.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use crate::client_stream::ClientStream;
use crate::codec::Codec;
use crate::core::Core;
use crate::deadline::Deadline;
use crate::slow_clients::Reservation;

/// The permits that a request holds of the limits on its route, as far as the pace of its client matters to them.
pub trait Permits {
    /// Whether the request holds a permit that others could use.
    fn holds_any(&self) -> bool;
    /// Releases the permits while the request waits for its client.
    fn pause(&self);
    /// Takes them back without waiting: the client continues.
    fn resume(&self);
    /// The head of the response is ready.
    fn response_started(&self, status: u16, extent: Extent);
}

/// How long a response may go on, as far as its head tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The length of its body is known.
    Known,
    /// The length of its body is not known.
    Unknown,
    /// It is a stream, which may last for ever: events, or another protocol.
    Stream,
}

/// A connection while a handler answers one request piece by piece.
pub struct ExchangeIo<'c> {
    pub(crate) core: &'c Rc<Core>,
    pub(crate) socket: RefCell<&'c mut ClientStream>,
    pub(crate) codec: RefCell<&'c mut Codec>,
    pub(crate) deadline: &'c Deadline,
    /// How long a handler may take from the last byte of its request on.
    pub(crate) handler_time: Cell<Duration>,
    /// The response's head is out.
    pub(crate) is_responding: Cell<bool>,
    /// The response is a stream of events, which has no end that its client could wait for.
    pub(crate) is_event_stream: Cell<bool>,
    pub(crate) permits: &'c dyn Permits,
    /// Counts a body that arrives while its request has a slot, until the response starts.
    pub(crate) streaming: RefCell<Option<Reservation>>,
    /// Counts the bytes of a body that arrived before its request took a slot.
    buffered: RefCell<Option<Reservation>>,
    /// For how long the response has waited for its client to take what was written.
    pub(crate) write_wait: Cell<Duration>,
    /// The client's network, as far as the client or the proxies in front of it are trusted.
    pub(crate) address: Cell<Option<u64>>,
}

impl<'c> ExchangeIo<'c> {
    /// Lends a connection to the handler of one request.
    pub fn new(
        core: &'c Rc<Core>,
        socket: &'c mut ClientStream,
        codec: &'c mut Codec,
        deadline: &'c Deadline,
        permits: &'c dyn Permits,
    ) -> Self {
        Self {
            core,
            socket: RefCell::new(socket),
            codec: RefCell::new(codec),
            deadline,
            handler_time: Cell::new(Duration::MAX),
            is_responding: Cell::new(false),
            is_event_stream: Cell::new(false),
            permits,
            streaming: RefCell::default(),
            buffered: RefCell::default(),
            write_wait: Cell::default(),
            address: Cell::new(None),
        }
    }

    /// For how long the response has waited for its client.
    pub fn write_wait(&self) -> Duration {
        self.write_wait.get()
    }

    /// The core that serves the connection.
    pub fn core(&self) -> &'c Rc<Core> {
        self.core
    }

    /// Keeps the reservation of a body that is streamed, until the response starts.
    pub fn keep_streaming(&self, reservation: Option<Reservation>) {
        self.streaming.replace(reservation);
    }

    /// Keeps the reservation of a body that is buffered, until the exchange ends.
    pub fn keep_buffered(&self, reservation: Option<Reservation>) {
        self.buffered.replace(reservation);
    }
}
