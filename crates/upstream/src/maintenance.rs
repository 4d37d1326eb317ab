//! What each core does for its connections at each tick: those that the peer has closed go, those that it is about to
//! close are replaced before, and there are always as many as the minimum says.
//!
//! The minimum counts for the whole process, and tunnels do not count towards it. Each core opens its share; what is
//! still missing at the next tick is opened by the core that sees it. Never waits for a request; a request of HTTP/2 waits
//! for a connection that is being opened here, as it would for its own.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use onehop_connection::core::Core;

use crate::connection::{Connection, ConnectionPermit};
use crate::dial::Dialled;
use crate::limits::{CONNECTION_SOUND_AFTER, IDLE_COUNTED_AFTER};
use crate::peer::Peer;
use crate::pool::{Pool, Pools};
use crate::refill::Missing;
use crate::transport::Liveness;
use crate::{dial, learned_timeout};

impl Pools {
    /// Keeps the minimum of connections to these peers open from now on, and of no others. Does nothing where this
    /// generation of the configuration is known already.
    pub fn keep_open<'a>(&self, generation: u64, peers: impl IntoIterator<Item = &'a Arc<Peer>>) {
        if self.generation.replace(Some(generation)) == Some(generation) {
            return;
        }
        let mut pools = self.by_peer.borrow_mut();
        for pool in pools.values_mut() {
            pool.is_named = false;
        }
        for peer in peers {
            pools.entry(peer.id).or_insert_with(|| Pool::new(peer)).is_named = true;
        }
    }

    /// Looks after the connections to every peer.
    pub fn tick(self: &Rc<Self>) {
        self.buffers.tick();
        let now = Instant::now();
        let mut watched = Vec::new();
        self.by_peer.borrow_mut().retain(|_, pool| {
            let is_wanted = pool.sweep(&self.core, now);
            let has_min = pool.is_named && pool.peer.settings.connections_min > 0;
            if is_wanted && (has_min || pool.peer.waiting() > 0) {
                watched.push(Arc::clone(&pool.peer));
            }
            is_wanted
        });
        for peer in watched {
            // A core that gave a connection back may have missed that a request waits.
            self.serve_waiting(&peer);
            self.refill(&peer, true);
        }
    }

    /// Opens what is missing.
    fn refill(self: &Rc<Self>, peer: &Arc<Peer>, is_tick: bool) {
        if self.core.is_stopping() {
            return;
        }
        let (count, wanted) = {
            let mut pools = self.by_peer.borrow_mut();
            let Some(pool) = pools.get_mut(&peer.id).filter(|pool| pool.is_named) else { return };
            let wanted = wanted(peer);
            let missing = Missing {
                in_all: wanted.saturating_sub(peer.open()),
                share: share(&self.core, peer) + peer.counters(&self.core).fading.load(Ordering::Relaxed),
                idle: pool.idle.len() + pool.http2.connections.len(),
            };
            let Some(count) = pool.refill.dials_allowed(missing, is_tick) else { return };
            (count, wanted)
        };
        for _ in 0..count {
            let Some(permit) = peer.slots.take_below(wanted) else { return };
            if let Some(pool) = self.by_peer.borrow_mut().get_mut(&peer.id) {
                pool.refill.dialling += 1;
            }
            tokio::task::spawn_local(open(Rc::clone(self), Arc::clone(peer), permit));
        }
    }
}

/// Opens one connection.
async fn open(pools: Rc<Pools>, peer: Arc<Peer>, permit: ConnectionPermit) {
    let dialled = dial::dial(&peer, permit, peer.counters(&pools.core)).await;
    {
        let mut by_peer = pools.by_peer.borrow_mut();
        let Some(pool) = by_peer.get_mut(&peer.id) else { return };
        pool.refill.dialling = pool.refill.dialling.saturating_sub(1);
        // Without a connection for them, one of those that wait opens one.
        pool.http2.changed.notify_one();
        match &dialled {
            Ok(_) => pool.refill.dialled(),
            Err(_) => pool.refill.back_off(Instant::now()),
        }
    }
    if let Ok(connection) = dialled
        && !peer.is_withdrawn()
    {
        match connection {
            Dialled::Http1(connection) => pools.put_back(&peer, connection),
            Dialled::Http2(connection) => pools.keep_multiplexed(&peer, &connection),
        }
        // The peer is there, so the other connections may be opened, too.
        pools.refill(&peer, false);
    }
}

/// How many connections are to be open: those that will soon be closed are replaced before.
fn wanted(peer: &Peer) -> usize {
    let max = peer.settings.connections_max.unwrap_or(usize::MAX);
    (peer.connections_min() + peer.fading()).min(max)
}

/// How many of a peer's minimum are this core's to open. The remainder goes to other cores with each peer.
fn share(core: &Core, peer: &Peer) -> usize {
    let (min, cores) = (peer.idle_min(), core.cores().max(1));
    let turn = usize::try_from(peer.id.0 % cores as u64).unwrap_or(0);
    min / cores + usize::from((core.number + turn) % cores < min % cores)
}

impl Pool {
    /// Closes what is of no more use; `false` where nothing of this pool has to be kept.
    fn sweep(&mut self, core: &Core, now: Instant) -> bool {
        let peer = Arc::clone(&self.peer);
        peer.forget_learned(now);
        if peer.is_withdrawn() {
            self.idle.clear();
        }
        let mut fading = 0;
        let (mut is_sound, mut is_refused) = (false, false);
        self.idle.retain(|connection| {
            match connection.check_events() {
                Liveness::Alive => {}
                Liveness::Closed | Liveness::Broken => {
                    is_refused |=
                        !connection.is_used() && connection.idle_at_least() < CONNECTION_SOUND_AFTER;
                    peer.note_closed(core, connection, now);
                    return false;
                }
            }
            let idle = connection.idle_time(now);
            connection.note_alive(now);
            peer.learned(connection).outlived(idle);
            is_sound |= idle >= CONNECTION_SOUND_AFTER;
            if idle >= peer.idle_time_max(connection) {
                peer.counters(core).retired.count();
                return false;
            }
            let will_fade = peer
                .idle_timeout_of(connection)
                .is_some_and(|timeout| learned_timeout::is_fading(timeout, idle));
            fading += usize::from(will_fade || !peer.is_current(connection));
            true
        });
        self.retire_oldest(core, now);
        self.evict_above_bound(core, now);
        if is_refused {
            self.refill.back_off(now);
        } else if is_sound {
            self.refill.recover();
        }
        peer.counters(core).fading.store(fading.min(self.idle.len()), Ordering::Relaxed);
        let has_streams = self.http2.sweep(&peer, now);
        self.publish(core);
        let is_busy = has_streams || !self.idle.is_empty() || self.refill.dialling > 0;
        is_busy || self.is_named && !peer.is_withdrawn()
    }

    /// Closes connections that have been idle for longer than the idle timeout, down to the minimum.
    fn retire_oldest(&mut self, core: &Core, now: Instant) {
        while let Some(oldest) = self.idle.front_mut() {
            let is_due = oldest.idle_time(now) >= self.peer.settings.idle_timeout;
            if !is_due || !oldest.release_above(self.peer.connections_min()) {
                return;
            }
            self.idle.pop_front();
            self.peer.counters(core).retired.count();
        }
    }

    /// Closes the oldest idle connections while more than `idle_max` have been idle for long. Connections come back in
    /// waves, one for each request that ends, and the next requests take them: closing them as they come back would make
    /// a busy proxy dial for every other request.
    fn evict_above_bound(&mut self, core: &Core, now: Instant) {
        let peer = &self.peer;
        let is_long = |idle: &Connection| idle.idle_time(now) >= IDLE_COUNTED_AFTER;
        let mut long = self.idle.partition_point(|idle| is_long(idle));
        peer.note_idle_long(core, long);
        // Cores look at the same time: each leaves the others their share.
        let own_share = peer.settings.idle_max.max(peer.settings.connections_min) / core.cores().max(1);
        while long > own_share && peer.is_idle_over_bound(core) {
            self.idle.pop_front();
            peer.counters(core).retired.count();
            long -= 1;
        }
    }
}
