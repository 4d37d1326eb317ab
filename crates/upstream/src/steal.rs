//! Connections between cores: a core without an idle connection asks another for one before it dials.
//!
//! The core that asks waits a moment and no longer; a connection that comes too late is kept by the core where it is
//! then, not closed.

use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::connection::{Connection, Detached};
use crate::limits::STEAL_WORTH_DIAL_TIME;
use crate::mailboxes::Message;
use crate::peer::Peer;
use crate::pool::Pools;
use crate::slots::Reuse;

/// The other core did not respond in time.
struct Late;

/// A connection that was asked for. Dropped, one that comes all the same is kept here.
struct Pending<'a> {
    pools: &'a Pools,
    peer: &'a Arc<Peer>,
    from: oneshot::Receiver<Option<Detached>>,
}

impl Pools {
    /// Hands connections to the other cores for as long as this core runs.
    pub async fn serve_other_cores(self: Rc<Self>) {
        let Some(mut messages) = self.mailboxes.take_receiver(self.core.number) else { return };
        while let Some(message) = messages.recv().await {
            match message {
                Message::Steal { peer, reuse, to } => self.hand_over(&peer, reuse, to),
                Message::Serve { peer } => self.serve_waiting(&peer),
            }
        }
    }

    fn hand_over(&self, peer: &Arc<Peer>, reuse: Reuse, to: oneshot::Sender<Option<Detached>>) {
        // The core that asked has dialled meanwhile.
        if to.is_closed() {
            return;
        }
        let stolen = self.take(peer, reuse).and_then(|connection| connection.detach().ok());
        if let Err(Some(detached)) = to.send(stolen) {
            self.adopt(peer, detached);
        }
    }

    /// Whether another core is asked before a connection is dialled. Where a dial costs less than asking, cores under
    /// load make what they need instead of sending the same few connections to and fro.
    pub(crate) fn should_steal(&self, peer: &Peer) -> bool {
        let is_quiet = || {
            // Connections that were opened beforehand are there to be used.
            let open = peer.open();
            open <= peer.connections_min() || open.saturating_sub(peer.idle()) <= self.core.cores()
        };
        peer.is_shared() && (peer.dial_time() >= STEAL_WORTH_DIAL_TIME || is_quiet())
    }

    /// Takes an idle connection of any other core.
    pub(crate) async fn steal(&self, peer: &Arc<Peer>, reuse: Reuse) -> Option<Box<Connection>> {
        let mut deadline = None;
        for other in self.mailboxes.others(self.core.number) {
            if peer.idle_on(other) == 0 {
                continue;
            }
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + self.mailboxes.steal_timeout);
            match self.request(peer, reuse, other, deadline).await {
                Ok(Some(connection)) => return Some(connection),
                Ok(None) => {}
                Err(Late) => return None,
            }
        }
        None
    }

    /// Takes the idle connection that one other core used last.
    pub(crate) async fn steal_from(
        &self,
        core: usize,
        peer: &Arc<Peer>,
        reuse: Reuse,
    ) -> Option<Box<Connection>> {
        self.request(peer, reuse, core, Instant::now() + self.mailboxes.steal_timeout).await.ok().flatten()
    }

    async fn request(
        &self,
        peer: &Arc<Peer>,
        reuse: Reuse,
        core: usize,
        deadline: Instant,
    ) -> Result<Option<Box<Connection>>, Late> {
        let (to, from) = oneshot::channel();
        if !self.mailboxes.send(core, Message::Steal { peer: Arc::clone(peer), reuse, to }) {
            return Ok(None);
        }
        let mut pending = Pending { pools: self, peer, from };
        match timeout_at(deadline, &mut pending.from).await {
            Ok(Ok(Some(detached))) => Ok(detached.attach().ok()),
            Ok(Ok(None) | Err(_)) => Ok(None),
            Err(_) => Err(Late),
        }
    }

    /// Tells the other cores that a request waits, where they have idle connections.
    pub(crate) fn wake_other_cores(&self, peer: &Arc<Peer>) {
        for other in self.mailboxes.others(self.core.number) {
            if peer.idle_on(other) > 0 {
                // A core whose mailbox is full sees it at its next tick.
                self.mailboxes.send(other, Message::Serve { peer: Arc::clone(peer) });
            }
        }
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.from.close();
        if let Ok(Some(detached)) = self.from.try_recv() {
            self.pools.adopt(self.peer, detached);
        }
    }
}
