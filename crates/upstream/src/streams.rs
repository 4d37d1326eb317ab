//! One core's connections of HTTP/2 to one peer, and what is counted of the requests that wait for them. Opens nothing:
//! [`crate::acquire_stream`] does.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use tokio::sync::Notify;

use crate::connect_error::ConnectError;
use crate::multiplexed::Multiplexed;
use crate::peer::Peer;

/// The connections of one core to one peer, and the requests that wait for them.
#[derive(Default)]
pub(crate) struct Streams {
    pub(crate) connections: Vec<Rc<Multiplexed>>,
    pub(crate) changed: Rc<Notify>,
    pub(crate) waiting: Rc<Cell<usize>>,
    pub(crate) is_dialling: Rc<Cell<bool>>,
    /// How many dials have failed, and why the last one did.
    pub(crate) failures: u64,
    /// See [`Self::failures`].
    pub(crate) failure: Option<ConnectError>,
}

impl Streams {
    /// Asks peers that are silent, and closes what is of no more use; `false` where there is nothing.
    pub(crate) fn sweep(&mut self, peer: &Peer, now: Instant) -> bool {
        self.connections.retain(|connection| {
            let idle = now.saturating_duration_since(connection.idle_since.get());
            let is_due = connection.is_idle() && idle >= peer.settings.idle_timeout;
            if let Some(interval) = peer.settings.probe_interval {
                connection.check_peer(now, interval);
            }
            connection.is_open()
                && !peer.is_withdrawn()
                && peer.is_current_http2(connection)
                && !(is_due && connection.release_above(peer.connections_min()))
        });
        !self.connections.is_empty() || self.is_dialling.get() || self.waiting.get() > 0
    }

    /// Connections without a request.
    pub(crate) fn idle(&self) -> usize {
        self.connections.iter().filter(|connection| connection.is_idle()).count()
    }
}
