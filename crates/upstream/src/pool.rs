//! One core's idle connections to peers.
//!
//! The connection that was used last is taken first. What comes back is kept, or handed to a request that waits. Never
//! dials, waits or sends anything: [`crate::acquire`] dials and waits, [`crate::maintenance`] closes what has been idle
//! for too long and opens what is missing.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hashbrown::HashMap;
use onehop_connection::buffer_pool::BufferPool;
use onehop_connection::core::Core;

use crate::connection::{Buffers, Connection, ConnectionPermit, Detached, Handover};
use crate::learned_timeout;
use crate::limits::{IDLE_MARGIN, IDLE_ONCE_ONLY};
use crate::link::Link;
use crate::mailboxes::Mailboxes;
use crate::peer::{Peer, PeerId};
use crate::refill::Refill;
use crate::slots::{Granted, Reuse, Waiter};
use crate::streams::Streams;
use crate::transport::Liveness;

/// One core's connections to all peers, and what it keeps for its next exchanges.
pub struct Pools {
    pub(crate) core: Rc<Core>,
    pub(crate) mailboxes: Arc<Mailboxes>,
    pub(crate) by_peer: RefCell<HashMap<PeerId, Pool, foldhash::fast::RandomState>>,
    /// The configuration whose peers have their minimum of connections.
    pub(crate) generation: Cell<Option<u64>>,
    /// For the next exchanges.
    pub buffers: BufferPool<Buffers>,
}

/// One core's connections to one peer.
pub(crate) struct Pool {
    pub(crate) peer: Arc<Peer>,
    /// Idle connections; the one used last is at the end.
    pub(crate) idle: VecDeque<Box<Connection>>,
    /// Connections of HTTP/2.
    pub(crate) http2: Streams,
    /// The configuration names the peer, so its minimum of connections is kept open.
    pub(crate) is_named: bool,
    /// How that is done.
    pub(crate) refill: Refill,
}

impl Pools {
    /// A core's pools, without a connection.
    pub fn new(core: Rc<Core>, mailboxes: Arc<Mailboxes>) -> Rc<Self> {
        Rc::new(Self {
            core,
            mailboxes,
            by_peer: RefCell::default(),
            generation: Cell::new(None),
            buffers: BufferPool::default(),
        })
    }

    /// What connections need of this core.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Keeps a connection that [`Link::reuse`] has found ready for another request.
    pub fn give_back(&self, peer: &Arc<Peer>, link: Link) {
        let Link::Http1(mut connection) = link else { return };
        connection.note_idle(Instant::now());
        let is_spent =
            peer.is_withdrawn() || !peer.is_current(&connection) || peer.idle_time_max(&connection).is_zero();
        let is_kept = !peer.settings.idle_timeout.is_zero();
        if is_spent || !is_kept && connection.release_above(peer.connections_min()) {
            return;
        }
        self.put_back(peer, connection);
    }

    /// Keeps a connection that was not used, or hands it to a request that waits.
    pub(crate) fn put_back(&self, peer: &Arc<Peer>, connection: Box<Connection>) {
        self.push(peer, connection);
        if peer.waiting() > 0 {
            self.serve_waiting(peer);
        }
    }

    /// Keeps a connection of another core that no request took.
    pub(crate) fn adopt(&self, peer: &Arc<Peer>, detached: Detached) {
        if let Ok(connection) = detached.attach() {
            self.put_back(peer, connection);
        }
    }

    /// Hands idle connections to the requests that wait, whatever their core.
    pub(crate) fn serve_waiting(&self, peer: &Arc<Peer>) {
        while peer.waiting() > 0 {
            let Some(connection) = self.take(peer, Reuse::Any) else { return };
            let Some(waiter) = peer.slots.pop_first() else {
                self.push(peer, connection);
                return;
            };
            self.grant(peer, waiter, connection);
        }
    }

    fn grant(&self, peer: &Arc<Peer>, waiter: Waiter<Handover>, connection: Box<Connection>) {
        let will_do = match waiter.reuse {
            Reuse::Any => true,
            Reuse::Alive => is_surely_alive(peer, &connection, Instant::now()),
            Reuse::Never => false,
        };
        let granted = if !will_do {
            connection.into_permit().map(Granted::Permit)
        } else if waiter.core == self.core.number {
            Some(Granted::Connection(Handover::Local(connection)))
        } else {
            connection.detach().ok().map(|detached| Granted::Connection(Handover::Detached(detached)))
        };
        // Without anything to grant the request has left the queue for nothing; it learns that at once.
        let Some(granted) = granted else { return };
        match waiter.to.send(granted) {
            Ok(()) => {}
            // It has just given up.
            Err(Granted::Connection(Handover::Local(connection))) => self.push(peer, connection),
            Err(Granted::Connection(Handover::Detached(detached))) => {
                if let Ok(connection) = detached.attach() {
                    self.push(peer, connection);
                }
            }
            Err(Granted::Permit(permit)) => drop(permit),
        }
    }

    /// Takes the idle connection of this core that was used last and is good as far as can be known.
    pub(crate) fn take(&self, peer: &Peer, reuse: Reuse) -> Option<Box<Connection>> {
        self.take_at(peer, reuse, Instant::now())
    }

    /// The same, at this time.
    pub(crate) fn take_at(&self, peer: &Peer, reuse: Reuse, now: Instant) -> Option<Box<Connection>> {
        if reuse == Reuse::Never {
            return None;
        }
        let mut pools = self.by_peer.borrow_mut();
        let pool = pools.get_mut(&peer.id)?;
        if pool.idle.is_empty() {
            return None;
        }
        while let Some(last) = pool.idle.back() {
            if reuse == Reuse::Alive && !is_surely_alive(peer, last, now) {
                break;
            }
            let Some(connection) = pool.idle.pop_back() else { break };
            pool.publish(&self.core);
            if connection.idle_time(now) >= peer.idle_time_max(&connection) {
                peer.counters(&self.core).retired.count();
                continue;
            }
            let liveness = match reuse {
                Reuse::Any => connection.check_events(),
                Reuse::Alive | Reuse::Never => connection.check_kernel(),
            };
            if liveness == Liveness::Alive {
                return Some(connection);
            }
            peer.note_closed(&self.core, &connection, now);
        }
        None
    }

    /// Closes the connection that has been idle here longest and keeps its permit.
    pub(crate) fn take_permit(&self, peer: &Peer) -> Option<ConnectionPermit> {
        let mut pools = self.by_peer.borrow_mut();
        let pool = pools.get_mut(&peer.id)?;
        let oldest = pool.idle.pop_front();
        pool.publish(&self.core);
        oldest.and_then(|oldest| oldest.into_permit())
    }

    /// Closes the connection that has been idle here longest, of all peers; `false` where none is.
    pub(crate) fn close_oldest(&self) -> bool {
        let mut pools = self.by_peer.borrow_mut();
        let idle = pools.values_mut().filter(|pool| !pool.idle.is_empty());
        let Some(pool) = idle.min_by_key(|pool| pool.idle.front().map(|front| front.idle_since())) else {
            return false;
        };
        let oldest = pool.idle.pop_front();
        pool.publish(&self.core);
        pool.peer.counters(&self.core).retired.count();
        oldest.is_some()
    }

    /// Inserts a connection by the time since which it is idle.
    fn push(&self, peer: &Arc<Peer>, connection: Box<Connection>) {
        let mut pools = self.by_peer.borrow_mut();
        let pool = pools.entry(peer.id).or_insert_with(|| Pool::new(peer));
        let since = connection.idle_since();
        connection.note_kept();
        let is_last = pool.idle.back().is_none_or(|last| last.idle_since() <= since);
        if is_last {
            pool.idle.push_back(connection);
        } else {
            let index = pool.idle.partition_point(|other| other.idle_since() <= since);
            pool.idle.insert(index, connection);
        }
        pool.publish(&self.core);
    }
}

impl Pool {
    pub(crate) fn new(peer: &Arc<Peer>) -> Self {
        Self {
            peer: Arc::clone(peer),
            idle: VecDeque::new(),
            http2: Streams::default(),
            is_named: false,
            refill: Refill::default(),
        }
    }

    /// Tells the other cores how many connections are idle here.
    pub(crate) fn publish(&self, core: &Core) {
        // Where there is a queue, a request that joins it sees this number, or this core sees the queue; without one
        // the number may be late.
        let order =
            if self.peer.settings.connections_max.is_some() { Ordering::SeqCst } else { Ordering::Relaxed };
        self.peer.counters(core).idle.store(self.idle.len() + self.http2.idle(), order);
        if self.peer.is_far() {
            self.peer.publish_newest(core, self.idle.back().map(Box::as_ref));
        }
    }
}

/// Whether an idle connection may be used for a request that may be sent once only: it was used a moment ago, or is
/// known to be kept for longer. Of a far peer it is also enough that nothing speaks against it: a handshake costs each
/// such request round trips, while one can meet an unforeseen close only until two of them were seen.
fn is_surely_alive(peer: &Peer, connection: &Connection, now: Instant) -> bool {
    let idle = connection.idle_time(now);
    let is_known = match peer.idle_timeout_of(connection) {
        Some(timeout) => idle + IDLE_MARGIN < learned_timeout::idle_time_max(timeout),
        None => {
            let learned = peer.learned(connection);
            learned.is_outlived(idle) || peer.is_far() && !learned.was_closed_around(idle)
        }
    };
    idle <= IDLE_ONCE_ONLY || is_known
}
