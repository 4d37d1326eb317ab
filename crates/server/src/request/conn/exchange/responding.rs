//! A request whose handler sends the response piece by piece: its permits, and what counts when the head of the response
//! is ready.

use std::cell::Cell;
use std::time::Instant;

use onehop_connection::{Extent, Permits};
use onehop_metrics::route::RouteHandler;
use onehop_metrics::site::{Delivery, SiteCounters};

use crate::request::admission::SharedPermits;

/// Counts an open stream while it lives.
pub(super) struct Responding<'g> {
    pub(super) permits: SharedPermits<'g>,
    counters: &'g SiteCounters,
    at: RouteHandler,
    /// When the request's head was complete.
    received: Instant,
    delivery: Cell<Delivery>,
    /// When the head of the response was ready.
    started: Cell<Option<Instant>>,
}

impl<'g> Responding<'g> {
    /// A request without permits. Its response counts for the route and handler `at`.
    pub(super) fn new(counters: &'g SiteCounters, at: RouteHandler, received: Instant) -> Self {
        let (delivery, started) = (Cell::default(), Cell::default());
        Self { permits: SharedPermits::none(), counters, at, received, delivery, started }
    }

    /// How the response is delivered, as far as that is known.
    pub(super) fn delivery(&self) -> Delivery {
        self.delivery.get()
    }

    /// When the head of the response was ready, if it was sent before its body was complete.
    pub(super) fn started(&self) -> Option<Instant> {
        self.started.get()
    }
}

impl Permits for Responding<'_> {
    fn holds_any(&self) -> bool {
        self.permits.holds_any()
    }

    fn pause(&self) {
        self.permits.pause();
    }

    fn resume(&self) {
        self.permits.resume();
    }

    fn response_started(&self, status: u16, extent: Extent) {
        self.permits.response_started(status, extent);
        let now = Instant::now();
        let first_byte = now.saturating_duration_since(self.received);
        self.started.set(Some(now));
        self.delivery.set(match extent {
            Extent::Known => Delivery::Pieces { first_byte, has_length: true },
            Extent::Unknown => Delivery::Pieces { first_byte, has_length: false },
            Extent::Stream => {
                self.counters.stream_started(self.at, first_byte);
                Delivery::Stream
            }
        });
    }
}

impl Drop for Responding<'_> {
    fn drop(&mut self) {
        if self.delivery() == Delivery::Stream {
            self.counters.stream_ended(self.at);
        }
    }
}
