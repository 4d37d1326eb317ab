//! How many connections a peer has, and who waits for one where it has as many as it may.
//!
//! A connection that is open, or being made, holds a [`Slot`]; so the count is exact whatever happens to it. Those who
//! wait are served first come first served, over all cores, with a connection that came back or with the slot of one
//! that ended. Whoever gives up leaves the queue, and passes on what was handed to it. Locks only where somebody waits.

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use super::connection::{Connection, Travelling};
use super::peer::Peer;
use super::pool::{self, NoConnection, Wish};
use crate::request::core::Core;

/// The right to have one connection to a peer open. Dropped, somebody else may have it.
pub(crate) struct Slot(Option<Arc<Peer>>);

/// A connection that is a tunnel's, until this is dropped: it comes back to nobody, and the floor does not count it.
pub(super) struct Tunnel(Arc<Peer>);

/// Those who wait.
#[derive(Default)]
pub(super) struct Queue {
    waiters: VecDeque<Waiter>,
    /// Tickets of those among them whose clients have closed their sending sides.
    half_closed: BTreeSet<u64>,
    next_ticket: u64,
}

/// A request that waits, as those see it who have something for it.
pub(super) struct Waiter {
    ticket: u64,
    /// Where it is.
    pub(super) core: usize,
    pub(super) wish: Wish,
    pub(super) to: oneshot::Sender<Handed>,
}

/// The client of a request that may have to wait, as its queue knows it.
#[derive(Default)]
pub(crate) struct Client {
    is_half_closed: Cell<bool>,
    ticket: Cell<Option<u64>>,
}

impl Client {
    /// It has closed its sending side, and may have left: in a full queue its request makes room for another.
    pub(crate) fn half_closed(&self, peer: &Peer) {
        self.is_half_closed.set(true);
        if let Some(ticket) = self.ticket.get() {
            peer.lock_queue().half_closed(ticket);
        }
    }
}

impl Queue {
    fn half_closed(&mut self, ticket: u64) {
        if self.at(ticket).is_some() {
            self.half_closed.insert(ticket);
        }
    }

    /// Drops the first one whose client has closed its sending side; `false` where there is none.
    fn drop_half_closed(&mut self) -> bool {
        self.half_closed.pop_first().and_then(|ticket| self.remove(ticket)).is_some()
    }

    fn pop_first(&mut self) -> Option<Waiter> {
        let waiter = self.waiters.pop_front()?;
        self.half_closed.remove(&waiter.ticket);
        Some(waiter)
    }

    fn remove(&mut self, ticket: u64) -> Option<Waiter> {
        self.half_closed.remove(&ticket);
        self.waiters.remove(self.at(ticket)?)
    }

    fn at(&self, ticket: u64) -> Option<usize> {
        self.waiters.binary_search_by_key(&ticket, |waiter| waiter.ticket).ok()
    }
}

/// What one who waits is given.
pub(super) enum Handed {
    /// A connection of its own core.
    Here(Connection),
    /// One of another core.
    Travelling(Travelling),
    /// The right to dial.
    Slot(Slot),
}

impl Slot {
    /// One more, where the peer may have one more.
    pub(super) fn take(peer: &Arc<Peer>) -> Option<Self> {
        Self::take_below(peer, peer.terms.ceiling.unwrap_or(usize::MAX))
    }

    /// One more, where the peer has fewer than this.
    pub(super) fn take_below(peer: &Arc<Peer>, bound: usize) -> Option<Self> {
        let raise = |open| (open < bound).then_some(open + 1);
        let raised = peer.open.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, raise);
        raised.ok().map(|_| Self(Some(Arc::clone(peer))))
    }

    /// Its connection is of no use to any other request from now on.
    pub(super) fn become_tunnel(&self) -> Option<Tunnel> {
        let peer = self.0.as_ref()?;
        peer.tunnels.0.fetch_add(1, Ordering::SeqCst);
        Some(Tunnel(Arc::clone(peer)))
    }

    /// Gives it up where the peer has more than so many.
    pub(super) fn give_up_above(mut self, floor: usize) -> Result<(), Self> {
        let Some(peer) = self.0.take() else { return Ok(()) };
        let lower = |open| (open > floor).then(|| open - 1);
        match peer.open.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, lower) {
            Ok(_) => {
                hand_out(&peer);
                Ok(())
            }
            Err(_) => Err(Self(Some(peer))),
        }
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.0.tunnels.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(peer) = self.0.take() {
            peer.open.0.fetch_sub(1, Ordering::SeqCst);
            hand_out(&peer);
        }
    }
}

#[cfg(test)]
impl Queue {
    pub(super) fn len(&self) -> usize {
        self.waiters.len()
    }
}

/// Gives free slots to those who wait.
fn hand_out(peer: &Arc<Peer>) {
    while peer.waiting() > 0 {
        let Some((waiter, slot)) = next_pair(peer) else { return };
        // One who has just given up drops it, which comes here again.
        drop(waiter.to.send(Handed::Slot(slot)));
    }
}

fn next_pair(peer: &Arc<Peer>) -> Option<(Waiter, Slot)> {
    let mut queue = peer.lock_queue();
    queue.waiters.front()?;
    let slot = Slot::take(peer)?;
    let waiter = queue.pop_first()?;
    peer.set_waiting(queue.waiters.len());
    Some((waiter, slot))
}

/// The first one who waits; it waits no more and has to be given something.
pub(super) fn first(peer: &Peer) -> Option<Waiter> {
    let mut queue = peer.lock_queue();
    let waiter = queue.pop_first()?;
    peer.set_waiting(queue.waiters.len());
    Some(waiter)
}

/// Waits for a connection, or for the right to make one. Not to be called where there is one already.
pub(super) async fn wait(
    core: &Rc<Core>,
    peer: &Arc<Peer>,
    wish: Wish,
    client: &Client,
) -> Result<Handed, NoConnection> {
    let (length_max, time) = peer.terms.queue;
    let mut waiting = {
        let mut queue = peer.lock_queue();
        // Who comes sees the slot that became free, or who frees it sees who came: the length is told first.
        peer.set_waiting(queue.waiters.len() + 1);
        if queue.waiters.is_empty()
            && let Some(slot) = Slot::take(peer)
        {
            peer.set_waiting(0);
            return Ok(Handed::Slot(slot));
        }
        if queue.waiters.len() >= length_max && !queue.drop_half_closed() {
            peer.set_waiting(queue.waiters.len());
            return Err(NoConnection::QueueFull);
        }
        let ticket = queue.next_ticket;
        queue.next_ticket += 1;
        let (to, from) = oneshot::channel();
        queue.waiters.push_back(Waiter { ticket, core: core.number, wish, to });
        peer.set_waiting(queue.waiters.len());
        client.ticket.set(Some(ticket));
        if client.is_half_closed.get() {
            queue.half_closed(ticket);
        }
        Waiting { core, peer, ticket, from }
    };
    peer.side(core).waited.count();
    // One may have come back before anybody could see that somebody waits.
    pool::serve_waiting(core, peer);
    super::lend::rouse(core, peer);
    match tokio::time::timeout(time, &mut waiting.from).await {
        Ok(Ok(handed)) => Ok(handed),
        // It had to make room.
        Ok(Err(_)) => Err(NoConnection::QueueFull),
        Err(_) => Err(NoConnection::QueueLate),
    }
}

/// A request that waits, as itself sees it. Dropped, it waits no more.
struct Waiting<'a> {
    core: &'a Rc<Core>,
    peer: &'a Arc<Peer>,
    ticket: u64,
    from: oneshot::Receiver<Handed>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        {
            let mut queue = self.peer.lock_queue();
            if queue.remove(self.ticket).is_some() {
                self.peer.set_waiting(queue.waiters.len());
                return;
            }
        }
        // It was handed something, which it may have taken already.
        self.from.close();
        match self.from.try_recv() {
            Ok(Handed::Here(connection)) => pool::put_back(self.core, self.peer, connection),
            Ok(Handed::Travelling(travelling)) => pool::adopt(self.core, self.peer, travelling),
            // Whoever waits next has it.
            Ok(Handed::Slot(slot)) => drop(slot),
            Err(_) => {}
        }
    }
}
