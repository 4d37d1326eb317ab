//! How many connections a peer has, and who waits for one where it has as many as it may.
//!
//! A connection that is open, or being made, holds a [`Slot`]; so the count is exact whatever happens to it. Those who
//! wait are served first come first served, over all cores, with a connection that came back or with the slot of one
//! that ended. Whoever gives up leaves the queue, and passes on what was handed to it. Locks only where somebody waits.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use onehop_limits::wait_queue::{Length, WaitList};
use tokio::sync::oneshot;

use super::connection::{Connection, Travelling};
use super::peer::Peer;
use super::pool::{self, NoConnection, Wish};
use crate::request::core::Core;

/// The right to have one connection to a peer open. Dropped, somebody else may have it.
pub(crate) struct Slot(Option<Arc<Peer>>);

/// A connection that is a tunnel's, until this is dropped: it comes back to nobody, and the floor does not count it.
pub(super) struct Tunnel(Arc<Peer>);

/// The requests that wait.
#[derive(Default)]
pub(super) struct Queue {
    waiting: WaitList<Waiter>,
    /// The number of the next request.
    next: u64,
}

/// A request that waits, as those see it that have a connection for it.
pub(super) struct Waiter {
    /// Its core.
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
            peer.queue.0.lock().waiting.mark_half_closed(ticket);
        }
    }
}

impl Length for Queue {
    fn length(&self) -> usize {
        self.waiting.length()
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

/// Gives free slots to those who wait.
fn hand_out(peer: &Arc<Peer>) {
    while peer.waiting() > 0 {
        let Some((waiter, slot)) = next_pair(peer) else { return };
        // One who has just given up drops it, which comes here again.
        drop(waiter.to.send(Handed::Slot(slot)));
    }
}

fn next_pair(peer: &Arc<Peer>) -> Option<(Waiter, Slot)> {
    let mut queue = peer.queue.0.lock();
    queue.waiting.first()?;
    let slot = Slot::take(peer)?;
    Some((queue.waiting.pop_first()?, slot))
}

/// The first one who waits; it waits no more and has to be given something.
pub(super) fn first(peer: &Peer) -> Option<Waiter> {
    peer.queue.0.lock().waiting.pop_first()
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
        let mut queue = peer.queue.0.lock_to_wait();
        if queue.waiting.is_empty()
            && let Some(slot) = Slot::take(peer)
        {
            return Ok(Handed::Slot(slot));
        }
        if queue.waiting.length() >= length_max && queue.waiting.pop_half_closed().is_none() {
            return Err(NoConnection::QueueFull);
        }
        let ticket = queue.next;
        queue.next += 1;
        let (to, from) = oneshot::channel();
        queue.waiting.push(ticket, Waiter { core: core.number, wish, to });
        client.ticket.set(Some(ticket));
        if client.is_half_closed.get() {
            queue.waiting.mark_half_closed(ticket);
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
        if self.peer.queue.0.lock().waiting.remove(self.ticket).is_some() {
            return;
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
