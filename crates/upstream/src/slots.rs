//! How many connections a peer has, and which requests wait for one where it has as many as it may.
//!
//! A connection that is open, or being made, holds a [`Permit`], so the count is exact whatever happens to it. Requests
//! that wait are served first come first served, over all cores, with a connection that came back or with the permit of
//! one that ended. A request that gives up leaves the queue and passes on what it was given. Locks only where a request
//! waits. Knows neither connections nor cores.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use onehop_limits::wait_queue::{Length, WaitList, WaitQueue};
use tokio::sync::oneshot;

/// Which of the open connections a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// Any: the request may be sent again if the connection turns out to be dead.
    Any,
    /// One that is all but certainly alive: the request may be sent once only.
    Alive,
    /// None: one has just turned out to be dead.
    Never,
}

/// The connections of one peer, of all cores. `T` is how a connection is handed to a request that waits.
pub(crate) struct Slots<T> {
    /// Maximum connections.
    max: Option<usize>,
    /// Connections that are open or being made. Only a [`Permit`] changes it.
    open: CachePadded<AtomicUsize>,
    /// Those of them that are tunnels now.
    tunnels: CachePadded<AtomicUsize>,
    queue: CachePadded<WaitQueue<Queue<T>>>,
}

/// The right to have one connection to a peer open. Dropped, another connection may have it.
pub(crate) struct Permit<T>(Option<Arc<Slots<T>>>);

/// Counts a connection as a tunnel until this is dropped: no other request gets it, and it does not count towards the
/// minimum of open connections.
pub(crate) struct Tunnel<T>(Arc<Slots<T>>);

/// The requests that wait.
struct Queue<T> {
    waiting: WaitList<Waiter<T>>,
    /// The number of the next request.
    next: u64,
}

/// A request that waits, as seen by a core that has a connection for it.
pub(crate) struct Waiter<T> {
    /// Its core.
    pub(crate) core: usize,
    pub(crate) reuse: Reuse,
    pub(crate) to: oneshot::Sender<Granted<T>>,
}

/// What a request that waits is given.
pub(crate) enum Granted<T> {
    /// A connection.
    Connection(T),
    /// The right to dial.
    Permit(Permit<T>),
}

/// What came of joining the queue.
pub(crate) enum Joined<T> {
    /// There is room for a new connection.
    Permit(Permit<T>),
    /// As many requests wait as may.
    Full,
    /// The request waits, under this number.
    Waits(u64, oneshot::Receiver<Granted<T>>),
}

/// The client of a request that may have to wait, as the queue knows it.
#[derive(Default)]
pub(crate) struct QueuedClient {
    is_half_closed: Cell<bool>,
    ticket: Cell<Option<u64>>,
}

impl<T> Length for Queue<T> {
    fn length(&self) -> usize {
        self.waiting.length()
    }
}

impl<T> Slots<T> {
    /// Room for so many connections.
    pub(crate) fn new(max: Option<usize>) -> Arc<Self> {
        Arc::new(Self {
            max,
            open: CachePadded::default(),
            tunnels: CachePadded::default(),
            queue: CachePadded::new(WaitQueue::new(Queue { waiting: WaitList::default(), next: 0 })),
        })
    }

    /// Connections that are open or being made.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Those of them that are tunnels.
    pub(crate) fn tunnels(&self) -> usize {
        self.tunnels.load(Ordering::SeqCst)
    }

    /// Requests that wait, or are about to.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Takes a permit where the peer may have one more connection.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Permit<T>> {
        self.take_below(self.max.unwrap_or(usize::MAX))
    }

    /// Takes a permit where the peer has fewer connections than this.
    pub(crate) fn take_below(self: &Arc<Self>, bound: usize) -> Option<Permit<T>> {
        let raise = |open| (open < bound).then_some(open + 1);
        let raised = self.open.fetch_update(Ordering::SeqCst, Ordering::SeqCst, raise);
        raised.ok().map(|_| Permit(Some(Arc::clone(self))))
    }

    /// Queues a request where there is no room. At most `length_max` wait; one whose client has half-closed makes room
    /// for another.
    pub(crate) fn join(
        self: &Arc<Self>,
        length_max: usize,
        core: usize,
        reuse: Reuse,
        client: &QueuedClient,
    ) -> Joined<T> {
        let mut queue = self.queue.lock_to_wait();
        if queue.waiting.is_empty()
            && let Some(permit) = self.take()
        {
            return Joined::Permit(permit);
        }
        if queue.waiting.length() >= length_max && queue.waiting.pop_half_closed().is_none() {
            return Joined::Full;
        }
        let ticket = queue.next;
        queue.next += 1;
        let (to, from) = oneshot::channel();
        queue.waiting.push(ticket, Waiter { core, reuse, to });
        client.ticket.set(Some(ticket));
        if client.is_half_closed.get() {
            queue.waiting.mark_half_closed(ticket);
        }
        Joined::Waits(ticket, from)
    }

    /// Removes the first request that waits; it has to be given something.
    pub(crate) fn pop_first(&self) -> Option<Waiter<T>> {
        self.queue.lock().waiting.pop_first()
    }

    /// Removes a request; `false` where it was given something, or had to make room.
    pub(crate) fn leave(&self, ticket: u64) -> bool {
        self.queue.lock().waiting.remove(ticket).is_some()
    }

    /// Notes that the client has closed its sending side and may have left: in a full queue its request makes room for
    /// another.
    pub(crate) fn half_closed(&self, client: &QueuedClient) {
        client.is_half_closed.set(true);
        if let Some(ticket) = client.ticket.get() {
            self.queue.lock().waiting.mark_half_closed(ticket);
        }
    }

    /// Gives free permits to requests that wait.
    fn hand_out(self: &Arc<Self>) {
        while self.waiting() > 0 {
            let Some((waiter, permit)) = self.next_pair() else { return };
            // A request that has just given up drops the permit, which comes here again.
            drop(waiter.to.send(Granted::Permit(permit)));
        }
    }

    fn next_pair(self: &Arc<Self>) -> Option<(Waiter<T>, Permit<T>)> {
        let mut queue = self.queue.lock();
        queue.waiting.first()?;
        let permit = self.take()?;
        Some((queue.waiting.pop_first()?, permit))
    }
}

impl<T> Permit<T> {
    /// Counts its connection as a tunnel: no other request can use it from now on.
    pub(crate) fn become_tunnel(&self) -> Option<Tunnel<T>> {
        let slots = self.0.as_ref()?;
        slots.tunnels.fetch_add(1, Ordering::SeqCst);
        Some(Tunnel(Arc::clone(slots)))
    }

    /// Gives the permit up where the peer has more than so many connections.
    pub(crate) fn release_above(mut self, min: usize) -> Result<(), Self> {
        let Some(slots) = self.0.take() else { return Ok(()) };
        let lower = |open| (open > min).then(|| open - 1);
        match slots.open.fetch_update(Ordering::SeqCst, Ordering::SeqCst, lower) {
            Ok(_) => {
                slots.hand_out();
                Ok(())
            }
            Err(_) => Err(Self(Some(slots))),
        }
    }
}

impl<T> Drop for Tunnel<T> {
    fn drop(&mut self) {
        self.0.tunnels.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<T> Drop for Permit<T> {
    fn drop(&mut self) {
        if let Some(slots) = self.0.take() {
            slots.open.fetch_sub(1, Ordering::SeqCst);
            slots.hand_out();
        }
    }
}
