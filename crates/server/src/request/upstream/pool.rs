//! One core's connections to peers: those that are idle, those that are to be open, those that are waited for.
//!
//! A connection is taken from the idle ones, else borrowed from another core ([`super::lend`]), else dialled
//! ([`super::dial`]); where the peer has as many as it may, one is waited for, within a bound ([`super::queue`]).
//! [`super::floor`] looks after those that rest. Never sends anything.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hashbrown::HashMap;
use onehop_message::error::is_exhaustion;
use rustix::io::Errno;

use super::connection::{Buffers, Connection, Travelling};
use super::floor::Refill;
use super::link::Silence;
use super::peer::{Peer, PeerId};
use super::queue::{self, Client, Handed, Slot, Waiter};
use super::{dial, lend, rest};
use crate::limits::{UPSTREAM_IDLE_MARGIN, UPSTREAM_IDLE_ONCE_ONLY};
use crate::request::core::Core;
use onehop_connection::buffer_pool::BufferPool;

/// Which of the kept connections a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Any: the request may be sent again should the connection turn out to be dead.
    Any,
    /// One of which it is all but certain that it lives: the request may be sent once only.
    Alive,
    /// None: one has just turned out to be dead.
    Fresh,
}

/// Why there is no connection. Nothing of the request has left.
#[derive(Debug)]
pub(crate) enum NoConnection {
    /// Nobody listens there, or it is out of reach.
    Refused(io::Error),
    /// It took too long.
    Late,
    /// The name leads nowhere.
    Name(String),
    /// The handshake failed: the reason, for logs.
    Tls(String),
    /// As many requests wait for a connection as may.
    QueueFull,
    /// None became free in time.
    QueueLate,
}

impl fmt::Display for NoConnection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoConnection::Refused(error) => write!(out, "no connection: {error}"),
            NoConnection::Late => out.write_str("no connection in time"),
            NoConnection::Name(reason) => out.write_str(reason),
            NoConnection::Tls(reason) => write!(out, "no TLS: {reason}"),
            NoConnection::QueueFull => out.write_str("too many requests wait for a connection"),
            NoConnection::QueueLate => out.write_str("no connection became free in time"),
        }
    }
}

/// What one core keeps for its next exchanges.
#[derive(Default)]
pub(crate) struct Upstreams {
    pub(super) stocks: RefCell<HashMap<PeerId, Stock, foldhash::fast::RandomState>>,
    /// The snapshot whose peers are known.
    pub(super) seen: Cell<u64>,
    /// For the next exchanges.
    pub(crate) buffers: BufferPool<Buffers>,
    /// When this core looks again for upstreams that requests have named and nobody names any more.
    pub(super) look_at: Cell<Option<Instant>>,
}

/// One core's connections to one peer.
pub(super) struct Stock {
    pub(super) peer: Arc<Peer>,
    /// Those that rest, the one used last at the end.
    pub(super) idle: VecDeque<Connection>,
    /// The snapshot names the peer: its floor is kept.
    pub(super) is_named: bool,
    /// How the floor is kept.
    pub(super) refill: Refill,
}

/// A connection for one exchange. Give it back with [`give_back`], or drop it to close it. Dropping the future is safe
/// at any time.
pub(crate) async fn get(core: &Rc<Core>, peer: &Arc<Peer>, wish: Wish) -> Result<Connection, NoConnection> {
    get_for(core, peer, wish, &Client::default()).await
}

/// The same for a client of which more may be known while its request waits for a connection.
pub(crate) async fn get_for(
    core: &Rc<Core>,
    peer: &Arc<Peer>,
    wish: Wish,
    client: &Client,
) -> Result<Connection, NoConnection> {
    let newer =
        if wish == Wish::Fresh || !peer.is_far() { None } else { peer.newer_elsewhere(core, Instant::now()) };
    // Who waits has come before.
    if peer.waiting() == 0
        && newer.is_none()
        && let Some(connection) = core.upstreams.take(core, peer, wish)
    {
        peer.side(core).taken_idle.count();
        return Ok(connection);
    }
    // Large, and rarely needed: in a box of its own it costs the others nothing.
    Box::pin(get_elsewhere(core, peer, wish, newer, client)).await
}

/// `newer`: the core that has one which was used later than those that rest here.
async fn get_elsewhere(
    core: &Rc<Core>,
    peer: &Arc<Peer>,
    wish: Wish,
    newer: Option<usize>,
    client: &Client,
) -> Result<Connection, NoConnection> {
    if peer.waiting() == 0 {
        if let Some(holder) = newer {
            if let Some(connection) = lend::borrow_from(core, peer, wish, holder).await {
                peer.side(core).borrowed.count();
                return Ok(connection);
            }
            if let Some(connection) = core.upstreams.take(core, peer, wish) {
                peer.side(core).taken_idle.count();
                return Ok(connection);
            }
        }
        if wish != Wish::Fresh
            && lend::is_worthwhile(core, peer)
            && let Some(connection) = lend::borrow(core, peer, wish).await
        {
            peer.side(core).borrowed.count();
            return Ok(connection);
        }
        // One that rests here and will not do makes room, where there is none.
        if let Some(slot) = Slot::take(peer).or_else(|| core.upstreams.take_slot(core, peer)) {
            return dial(core, peer, slot).await;
        }
    }
    match queue::wait(core, peer, wish, client).await? {
        Handed::Here(connection) => Ok(connection),
        Handed::Travelling(travelling) => travelling.arrive().map_err(NoConnection::Refused),
        Handed::Slot(slot) => dial(core, peer, slot).await,
    }
}

/// Dials. Where no descriptor is left, an idle connection of this core makes room, whatever its upstream: idle ones are
/// bounded for each upstream, descriptors for all.
async fn dial(core: &Rc<Core>, peer: &Arc<Peer>, slot: Slot) -> Result<Connection, NoConnection> {
    match dial::dial(peer, slot, peer.side(core)).await {
        Err(NoConnection::Refused(error))
            if Errno::from_io_error(&error).is_some_and(is_exhaustion)
                && core.upstreams.close_oldest(core) =>
        {
            let slot = Slot::take(peer).ok_or(NoConnection::Refused(error))?;
            dial::dial(peer, slot, peer.side(core)).await
        }
        dialled => dialled,
    }
}

/// Keeps a connection that [`Connection::reuse`] has found ready for another request.
pub(crate) fn give_back(core: &Rc<Core>, peer: &Arc<Peer>, mut connection: Connection) {
    connection.rest(Instant::now());
    let floor = peer.floor();
    let is_spent =
        peer.is_withdrawn() || !peer.is_current(&connection) || peer.rest_for(&connection).is_zero();
    if is_spent || peer.terms.keep.is_zero() && connection.release_above(floor) {
        return;
    }
    put_back(core, peer, connection);
}

/// Keeps a connection that was not used, or hands it to one who waits.
pub(super) fn put_back(core: &Rc<Core>, peer: &Arc<Peer>, connection: Connection) {
    core.upstreams.push(core, peer, connection);
    if peer.waiting() > 0 {
        serve_waiting(core, peer);
    }
}

/// Keeps a connection of another core that nobody took.
pub(super) fn adopt(core: &Rc<Core>, peer: &Arc<Peer>, travelling: Travelling) {
    if let Ok(connection) = travelling.arrive() {
        put_back(core, peer, connection);
    }
}

/// Hands what rests here to those who wait, wherever they are.
pub(super) fn serve_waiting(core: &Rc<Core>, peer: &Arc<Peer>) {
    while peer.waiting() > 0 {
        let Some(connection) = core.upstreams.take(core, peer, Wish::Any) else { return };
        let Some(waiter) = queue::first(peer) else {
            core.upstreams.push(core, peer, connection);
            return;
        };
        hand(core, peer, waiter, connection);
    }
}

fn hand(core: &Rc<Core>, peer: &Arc<Peer>, waiter: Waiter, connection: Connection) {
    let will_do = match waiter.wish {
        Wish::Any => true,
        Wish::Alive => is_surely_alive(peer, &connection, Instant::now()),
        Wish::Fresh => false,
    };
    let handed = if !will_do {
        connection.into_slot().map(Handed::Slot)
    } else if waiter.core == core.number {
        Some(Handed::Here(connection))
    } else {
        connection.leave().ok().map(Handed::Travelling)
    };
    // Without anything in hand the waiter is gone from the queue for nothing; it is told at once.
    let Some(handed) = handed else { return };
    match waiter.to.send(handed) {
        Ok(()) => {}
        // It has just given up.
        Err(Handed::Here(connection)) => core.upstreams.push(core, peer, connection),
        Err(Handed::Travelling(travelling)) => {
            if let Ok(connection) = travelling.arrive() {
                core.upstreams.push(core, peer, connection);
            }
        }
        Err(Handed::Slot(slot)) => drop(slot),
    }
}

/// Whether a connection that rests may be used for a request that may be sent once only: it rested for a moment, or
/// is known to be kept for longer. Of a far upstream it is also enough that nothing speaks against it: a handshake costs
/// each such request round trips, while one can meet an unforeseen closing only until two of them were seen.
fn is_surely_alive(peer: &Peer, connection: &Connection, now: Instant) -> bool {
    let rested = now.saturating_duration_since(connection.rests_since());
    let is_known = match peer.patience_with(connection) {
        Some(patience) => rested + UPSTREAM_IDLE_MARGIN < rest::rests_at_most(patience),
        None => {
            let habit = peer.habit(connection);
            habit.is_outlived(rested) || peer.is_far() && !habit.was_closed_around(rested)
        }
    };
    rested <= UPSTREAM_IDLE_ONCE_ONLY || is_known
}

impl Upstreams {
    /// A connection that rests here and is good as far as can be known.
    pub(super) fn take(&self, core: &Core, peer: &Arc<Peer>, wish: Wish) -> Option<Connection> {
        if wish == Wish::Fresh {
            return None;
        }
        let mut stocks = self.stocks.borrow_mut();
        let stock = stocks.get_mut(&peer.id)?;
        if stock.idle.is_empty() {
            return None;
        }
        let now = Instant::now();
        while let Some(last) = stock.idle.back() {
            if wish == Wish::Alive && !is_surely_alive(peer, last, now) {
                break;
            }
            let Some(connection) = stock.idle.pop_back() else { break };
            stock.tell(core);
            let rested = now.saturating_duration_since(connection.rests_since());
            if rested >= peer.rest_for(&connection) {
                peer.side(core).retired.count();
                continue;
            }
            let heard = match wish {
                Wish::Any => connection.listen_to_events(),
                Wish::Alive | Wish::Fresh => connection.listen(),
            };
            if heard == Silence::Kept {
                return Some(connection);
            }
            note_closed(core, peer, &connection, now);
        }
        None
    }

    /// The slot of the connection that has rested here longest, which is closed.
    fn take_slot(&self, core: &Core, peer: &Arc<Peer>) -> Option<Slot> {
        let mut stocks = self.stocks.borrow_mut();
        let stock = stocks.get_mut(&peer.id)?;
        let oldest = stock.idle.pop_front();
        stock.tell(core);
        oldest.and_then(Connection::into_slot)
    }

    /// Closes the connection that has been idle here longest, of all peers; `false` where none is.
    fn close_oldest(&self, core: &Core) -> bool {
        let mut stocks = self.stocks.borrow_mut();
        let idle = stocks.values_mut().filter(|stock| !stock.idle.is_empty());
        let Some(stock) = idle.min_by_key(|stock| stock.idle.front().map(Connection::rests_since)) else {
            return false;
        };
        let oldest = stock.idle.pop_front();
        stock.tell(core);
        stock.peer.side(core).retired.count();
        oldest.is_some()
    }

    /// Lays a connection where it belongs by its rest.
    pub(super) fn push(&self, core: &Core, peer: &Arc<Peer>, connection: Connection) {
        let mut stocks = self.stocks.borrow_mut();
        let stock = stocks.entry(peer.id).or_insert_with(|| Stock::new(peer));
        let since = connection.rests_since();
        connection.keep();
        let is_last = stock.idle.back().is_none_or(|last| last.rests_since() <= since);
        if is_last {
            stock.idle.push_back(connection);
        } else {
            let place = stock.idle.partition_point(|other| other.rests_since() <= since);
            stock.idle.insert(place, connection);
        }
        stock.tell(core);
    }
}

impl Stock {
    pub(super) fn new(peer: &Arc<Peer>) -> Self {
        Self { peer: Arc::clone(peer), idle: VecDeque::new(), is_named: false, refill: Refill::default() }
    }

    /// Tells the others how many rest here.
    pub(super) fn tell(&self, core: &Core) {
        // Where there is a queue, whoever enters it sees this number, or whoever wrote it sees the queue; without
        // one it may be late.
        let order = if self.peer.terms.ceiling.is_some() { Ordering::SeqCst } else { Ordering::Relaxed };
        self.peer.side(core).idle.store(self.idle.len(), order);
        if self.peer.is_far() {
            self.peer.tell_newest(core, self.idle.back());
        }
    }
}

/// An upstream has closed a connection that rested, or spoke on it.
pub(super) fn note_closed(core: &Core, peer: &Peer, connection: &Connection, now: Instant) {
    peer.side(core).closed_idle.count();
    // What it says is of no use either way, and mostly a goodbye: Node answers a connection without a request with 408
    // when its patience ends.
    let habit = peer.habit(connection);
    habit.closed(connection.rests_since(), connection.rested_at_least(), now);
}
