//! How a request gets a stream: on a connection of its core that has room, else on a new one; where no further one may be
//! opened, and while one is being opened, the request waits within a bound: requests that come together share it.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::Notify;
use tokio::time::timeout_at;

use crate::connect_error::ConnectError;
use crate::connection::ConnectionPermit;
use crate::dial::{self, Dialled};
use crate::limits::HTTP2_TURNS_MAX;
use crate::link::Link;
use crate::multiplexed::Multiplexed;
use crate::peer::Peer;
use crate::pool::{Pool, Pools};

/// A request that waits.
struct Waiting<'a> {
    peer: &'a Peer,
    count: Rc<Cell<usize>>,
    changed: Rc<Notify>,
}

/// A connection that is being opened. Dropped, the next request may open one.
struct Dialling {
    is_dialling: Rc<Cell<bool>>,
    changed: Rc<Notify>,
}

/// What came of looking for a stream.
pub(crate) enum Taken {
    Stream(Link),
    /// The connection that has room has something to read.
    Unread(Rc<Multiplexed>),
    Nothing,
}

/// What a request without a stream does.
enum Step {
    Dial(ConnectionPermit, Dialling),
    Wait { changed: Rc<Notify>, failures: u64 },
}

impl Pools {
    /// Gets a stream; where the peer negotiates HTTP/1.1, the connection that was made. `None` where that has become known
    /// meanwhile.
    pub(crate) async fn get_stream(&self, peer: &Arc<Peer>) -> Result<Option<Link>, ConnectError> {
        let (length_max, timeout) = peer.settings.queue;
        let deadline = tokio::time::Instant::now() + timeout;
        let mut waiting = None;
        loop {
            let link = self.look_and_take_stream(peer).await;
            if link.is_some() || peer.is_http1() {
                if let Some(Waiting { changed, .. }) = &waiting {
                    // There may be room for the next one, too, or nothing that it has to wait for.
                    changed.notify_one();
                }
                return Ok(link);
            }
            match self.step(peer) {
                Step::Dial(permit, dialling) => {
                    if let Some(link) = self.dial_stream(peer, permit, dialling).await? {
                        return Ok(Some(link));
                    }
                }
                Step::Wait { changed, failures } => {
                    if waiting.is_none() {
                        waiting = Some(self.join(peer, length_max)?);
                    }
                    if timeout_at(deadline, changed.notified()).await.is_err() {
                        return Err(ConnectError::QueueTimeout);
                    }
                    if let Some(failure) = self.failure_since(peer, failures) {
                        changed.notify_one();
                        return Err(failure);
                    }
                }
            }
        }
    }

    /// Takes a stream on a connection of this core that has room and is alive as far as can be known.
    pub(crate) fn take_stream(&self, peer: &Arc<Peer>) -> Taken {
        let connection = {
            let mut pools = self.by_peer.borrow_mut();
            let Some(pool) = pools.get_mut(&peer.id) else { return Taken::Nothing };
            let connections = &mut pool.http2.connections;
            connections.retain(|connection| connection.is_open() && peer.is_current_http2(connection));
            match connections.iter().find(|connection| connection.has_room()) {
                Some(connection) => Rc::clone(connection),
                None => return Taken::Nothing,
            }
        };
        // What has come since the last request may be its end.
        if connection.is_idle() && connection.has_unread() {
            return Taken::Unread(connection);
        }
        if connection.is_used.get() {
            peer.counters(&self.core).taken_idle.count();
        }
        connection.stream().map_or(Taken::Nothing, |stream| Taken::Stream(Link::Http2(stream)))
    }

    /// The same, and lets the drivers read first where something has come.
    async fn look_and_take_stream(&self, peer: &Arc<Peer>) -> Option<Link> {
        for _ in 0..HTTP2_TURNS_MAX {
            match self.take_stream(peer) {
                Taken::Stream(link) => return Some(link),
                Taken::Nothing => return None,
                Taken::Unread(_) => tokio::task::yield_now().await,
            }
        }
        if let Taken::Unread(connection) = self.take_stream(peer) {
            connection.retire();
        }
        None
    }

    fn step(&self, peer: &Arc<Peer>) -> Step {
        let mut pools = self.by_peer.borrow_mut();
        let pool = pools.entry(peer.id).or_insert_with(|| Pool::new(peer));
        let streams = &pool.http2;
        let wait = Step::Wait { changed: Rc::clone(&streams.changed), failures: streams.failures };
        // A connection that is being opened for `pool min` will do for this request. So will one that waits for the
        // server's SETTINGS: it accepts more requests after them.
        let is_settling = streams.connections.iter().any(|connection| connection.is_settling());
        if streams.is_dialling.get() || pool.refill.dialling > 0 || is_settling {
            return wait;
        }
        // Connections stay on their core, so each may have one.
        let permit = if streams.connections.is_empty() {
            peer.slots.take_below(usize::MAX)
        } else {
            peer.slots.take()
        };
        let Some(permit) = permit else { return wait };
        streams.is_dialling.set(true);
        let (is_dialling, changed) = (Rc::clone(&streams.is_dialling), Rc::clone(&streams.changed));
        Step::Dial(permit, Dialling { is_dialling, changed })
    }

    async fn dial_stream(
        &self,
        peer: &Arc<Peer>,
        permit: ConnectionPermit,
        dialling: Dialling,
    ) -> Result<Option<Link>, ConnectError> {
        let dialled = dial::dial(peer, permit, peer.counters(&self.core)).await;
        if let Err(failure) = &dialled
            && let Some(pool) = self.by_peer.borrow_mut().get_mut(&peer.id)
        {
            pool.http2.failures += 1;
            pool.http2.failure = Some(failure.shared());
        }
        let link = self.keep_dialled(peer, dialled?);
        drop(dialling);
        Ok(link)
    }

    /// Keeps a connection of HTTP/2 and opens a stream on it.
    pub(crate) fn keep_dialled(&self, peer: &Arc<Peer>, dialled: Dialled) -> Option<Link> {
        match dialled {
            Dialled::Http1(connection) => Some(Link::Http1(connection)),
            Dialled::Http2(connection) => {
                self.keep_multiplexed(peer, &connection);
                connection.stream().map(Link::Http2)
            }
        }
    }

    /// Keeps a connection for requests.
    pub(crate) fn keep_multiplexed(&self, peer: &Arc<Peer>, connection: &Rc<Multiplexed>) {
        let mut pools = self.by_peer.borrow_mut();
        let streams = &mut pools.entry(peer.id).or_insert_with(|| Pool::new(peer)).http2;
        *connection.changed.borrow_mut() = Rc::downgrade(&streams.changed);
        streams.connections.push(Rc::clone(connection));
        streams.changed.notify_one();
    }

    fn join<'a>(&self, peer: &'a Peer, length_max: usize) -> Result<Waiting<'a>, ConnectError> {
        let pools = self.by_peer.borrow();
        let Some(pool) = pools.get(&peer.id) else { return Err(ConnectError::QueueFull) };
        let (count, changed) = (Rc::clone(&pool.http2.waiting), Rc::clone(&pool.http2.changed));
        if count.get() >= length_max {
            return Err(ConnectError::QueueFull);
        }
        count.set(count.get() + 1);
        peer.waiting_for_streams.fetch_add(1, Ordering::Relaxed);
        peer.counters(&self.core).waited.count();
        Ok(Waiting { peer, count, changed })
    }

    fn failure_since(&self, peer: &Peer, failures: u64) -> Option<ConnectError> {
        let pools = self.by_peer.borrow();
        let streams = &pools.get(&peer.id)?.http2;
        streams.failure.as_ref().filter(|_| streams.failures > failures).map(ConnectError::shared)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.count.set(self.count.get().saturating_sub(1));
        self.peer.waiting_for_streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Dialling {
    fn drop(&mut self) {
        self.is_dialling.set(false);
        self.changed.notify_one();
    }
}
