//! How a request gets a connection: an idle one of its core, else one of another core, else a new one; where the peer
//! has as many as it may, the request waits for one, within a bound.

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onehop_message::error::is_exhaustion;
use rustix::io::Errno;
use tokio::sync::oneshot;

use crate::acquire_stream::Taken;
use crate::connect_error::ConnectError;
use crate::connection::{ConnectionPermit, Handover};
use crate::dial;
use crate::link::Link;
use crate::peer::Peer;
use crate::pool::Pools;
use crate::slots::{Granted, Joined, QueuedClient, Reuse};

/// The client of a request that may have to wait for a connection to a peer.
#[derive(Default)]
pub struct WaitingClient {
    place: QueuedClient,
    waited: Cell<Duration>,
    taken_at: Cell<Option<Instant>>,
}

impl WaitingClient {
    /// Notes that it has closed its sending side and may have left: in a full queue its request makes room for another.
    pub fn half_closed(&self, peer: &Peer) {
        peer.slots.half_closed(&self.place);
    }

    /// For how long its request has waited for a connection that others had.
    pub fn waited(&self) -> Duration {
        self.waited.get()
    }

    /// When it took an idle connection of its core, where it did.
    pub fn taken_at(&self) -> Option<Instant> {
        self.taken_at.get()
    }
}

/// A request that waits. Dropped, it waits no more.
struct Waiting<'a> {
    pools: &'a Pools,
    peer: &'a Arc<Peer>,
    ticket: u64,
    from: oneshot::Receiver<Granted<Handover>>,
}

impl Pools {
    /// Gets a connection for one exchange. Give it back with [`Pools::give_back`], or drop it to close it. Dropping the
    /// future is safe at any time.
    pub async fn get(&self, peer: &Arc<Peer>, reuse: Reuse) -> Result<Link, ConnectError> {
        self.get_for(peer, reuse, &WaitingClient::default()).await
    }

    /// Gets a connection for a client of which more may be known while its request waits.
    pub async fn get_for(
        &self,
        peer: &Arc<Peer>,
        reuse: Reuse,
        client: &WaitingClient,
    ) -> Result<Link, ConnectError> {
        if !peer.is_http1() {
            if let Taken::Stream(link) = self.take_stream(peer) {
                return Ok(link);
            }
            if let Some(link) = Box::pin(self.get_stream(peer)).await? {
                return Ok(link);
            }
        }
        let now = Instant::now();
        let newer = if reuse == Reuse::Never || !peer.is_far() {
            None
        } else {
            peer.newer_elsewhere(&self.core, now)
        };
        // Requests that wait have come before.
        if peer.waiting() == 0
            && newer.is_none()
            && let Some(connection) = self.take_at(peer, reuse, now)
        {
            client.taken_at.set(Some(now));
            peer.counters(&self.core).taken_idle.count();
            return Ok(Link::Http1(connection));
        }
        // Large, and rarely needed: in a box of its own it costs the others nothing.
        Box::pin(self.get_elsewhere(peer, reuse, newer, client)).await
    }

    /// `newer`: the core with a connection that was used later than those that are idle here.
    async fn get_elsewhere(
        &self,
        peer: &Arc<Peer>,
        reuse: Reuse,
        newer: Option<usize>,
        client: &WaitingClient,
    ) -> Result<Link, ConnectError> {
        if peer.waiting() == 0 {
            if let Some(holder) = newer {
                if let Some(connection) = self.steal_from(holder, peer, reuse).await {
                    peer.counters(&self.core).stolen.count();
                    return Ok(Link::Http1(connection));
                }
                if let Some(connection) = self.take(peer, reuse) {
                    peer.counters(&self.core).taken_idle.count();
                    return Ok(Link::Http1(connection));
                }
            }
            if reuse != Reuse::Never
                && self.should_steal(peer)
                && let Some(connection) = self.steal(peer, reuse).await
            {
                peer.counters(&self.core).stolen.count();
                return Ok(Link::Http1(connection));
            }
            // An idle connection that will not do makes room, where there is none.
            if let Some(permit) = peer.slots.take().or_else(|| self.take_permit(peer)) {
                return self.dial(peer, permit).await;
            }
        }
        match self.wait(peer, reuse, client).await? {
            Granted::Connection(Handover::Local(connection)) => Ok(Link::Http1(connection)),
            Granted::Connection(Handover::Detached(detached)) => {
                detached.attach().map(Link::Http1).map_err(ConnectError::Refused)
            }
            Granted::Permit(permit) => self.dial(peer, permit).await,
        }
    }

    /// Dials. Where no descriptor is left, an idle connection of this core makes room, whatever its peer: idle ones are
    /// bounded for each peer, descriptors for all.
    async fn dial(&self, peer: &Arc<Peer>, permit: ConnectionPermit) -> Result<Link, ConnectError> {
        let dialled = match dial::dial(peer, permit, peer.counters(&self.core)).await {
            Err(ConnectError::Refused(error))
                if Errno::from_io_error(&error).is_some_and(is_exhaustion) && self.close_oldest() =>
            {
                let permit = peer.slots.take().ok_or(ConnectError::Refused(error))?;
                dial::dial(peer, permit, peer.counters(&self.core)).await
            }
            dialled => dialled,
        };
        let over = || ConnectError::Http2("it closed the connection".to_owned());
        self.keep_dialled(peer, dialled?).ok_or_else(over)
    }

    /// Waits for a connection, or for the right to make one. Not to be called where there is one already.
    async fn wait(
        &self,
        peer: &Arc<Peer>,
        reuse: Reuse,
        client: &WaitingClient,
    ) -> Result<Granted<Handover>, ConnectError> {
        let (length_max, timeout) = peer.settings.queue;
        let mut waiting = match peer.slots.join(length_max, self.core.number, reuse, &client.place) {
            Joined::Permit(permit) => return Ok(Granted::Permit(permit)),
            Joined::Full => return Err(ConnectError::QueueFull),
            Joined::Waits(ticket, from) => Waiting { pools: self, peer, ticket, from },
        };
        peer.counters(&self.core).waited.count();
        // A connection may have come back before any core could see that a request waits.
        self.serve_waiting(peer);
        self.wake_other_cores(peer);
        let since = Instant::now();
        let granted = tokio::time::timeout(timeout, &mut waiting.from).await;
        client.waited.set(since.elapsed());
        match granted {
            Ok(Ok(granted)) => Ok(granted),
            // It had to make room.
            Ok(Err(_)) => Err(ConnectError::QueueFull),
            Err(_) => Err(ConnectError::QueueTimeout),
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.peer.slots.leave(self.ticket) {
            return;
        }
        // It was given something, which it may have taken already.
        self.from.close();
        match self.from.try_recv() {
            Ok(Granted::Connection(Handover::Local(connection))) => {
                self.pools.put_back(self.peer, connection)
            }
            Ok(Granted::Connection(Handover::Detached(detached))) => self.pools.adopt(self.peer, detached),
            // The next request that waits gets it.
            Ok(Granted::Permit(permit)) => drop(permit),
            Err(_) => {}
        }
    }
}
