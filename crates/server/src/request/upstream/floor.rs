//! Connections that rest, looked after at each tick of their core: those that the upstream has closed go, those that
//! it is about to close are replaced before, and there are always as many as the floor says.
//!
//! The floor counts for the whole process, and tunnels do not count for it. Each core opens its share; what is still
//! missing at the next tick is opened by whoever sees it. Where the upstream refuses, one is tried at a time, more and
//! more rarely. Never waits for a request, and no request waits for this.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::connection::Connection;
use super::link::Silence;
use super::peer::Peer;
use super::pool::{self, Stock};
use super::queue::Slot;
use super::{dial, rest};
use crate::limits::{
    FLOOR_DIALS_MAX, FLOOR_PAUSE_MAX, FLOOR_PAUSE_MIN, FLOOR_SOUND_AFTER, PROXY_OF_REQUEST_LOOK,
    UPSTREAM_IDLE_COUNTED_AFTER,
};
use crate::request::core::Core;

/// How one core keeps its part of a peer's floor.
#[derive(Default)]
pub(super) struct Refill {
    /// Connections that are being made.
    dialling: usize,
    /// Looks in a row at which some were missing that are not this core's to open.
    missed: u32,
    /// The pause after the next failure; zero while all is well.
    pause: Duration,
    /// Nothing is opened before.
    not_before: Option<Instant>,
}

/// Looks after every peer's connections.
pub(crate) fn tick(core: &Rc<Core>) {
    know_peers(core);
    let now = Instant::now();
    forget_unused(core, now);
    let mut kept = Vec::new();
    core.upstreams.stocks.borrow_mut().retain(|_, stock| {
        let is_wanted = stock.sweep(core, now);
        if is_wanted && (stock.is_named && stock.peer.terms.floor > 0 || stock.peer.waiting() > 0) {
            kept.push(Arc::clone(&stock.peer));
        }
        is_wanted
    });
    for peer in kept {
        // Whoever gave something back may have missed that somebody waits.
        pool::serve_waiting(core, &peer);
        refill(core, &peer, true);
    }
}

/// The floors of a new snapshot's peers are kept from now on, and those of the old one's not.
fn know_peers(core: &Rc<Core>) {
    let view = core.view();
    if core.upstreams.seen.replace(core.generation()) == core.generation() {
        return;
    }
    let mut stocks = core.upstreams.stocks.borrow_mut();
    for stock in stocks.values_mut() {
        stock.is_named = false;
    }
    for member in view.snapshot.proxies.iter().flat_map(|proxy| &proxy.members) {
        let stock = stocks.entry(member.peer.id).or_insert_with(|| Stock::new(&member.peer));
        stock.is_named = true;
    }
}

/// Now and then, and on one core: the tables are everybody's.
fn forget_unused(core: &Rc<Core>, now: Instant) {
    let look_at = &core.upstreams.look_at;
    if core.number != 0 || look_at.get().is_some_and(|time| now < time) {
        return;
    }
    look_at.set(now.checked_add(PROXY_OF_REQUEST_LOOK));
    for proxy in &core.view().snapshot.proxies {
        proxy.forget_unused(now);
    }
}

/// As if a snapshot named this peer.
#[cfg(test)]
pub(super) fn name(core: &Rc<Core>, peer: &Arc<Peer>) {
    let mut stocks = core.upstreams.stocks.borrow_mut();
    stocks.entry(peer.id).or_insert_with(|| Stock::new(peer)).is_named = true;
}

/// Opens what is missing. `is_look`: at a tick.
fn refill(core: &Rc<Core>, peer: &Arc<Peer>, is_look: bool) {
    if core.connection.is_stopping() {
        return;
    }
    let bound = {
        let mut stocks = core.upstreams.stocks.borrow_mut();
        let Some(stock) = stocks.get_mut(&peer.id).filter(|stock| stock.is_named) else { return };
        let bound = bound(peer);
        let missing = bound.saturating_sub(peer.open());
        stock
            .refill
            .dialling_allowed(core, &stock.peer, stock.idle.len(), missing, is_look)
            .map(|n| (n, bound))
    };
    let Some((count, bound)) = bound else { return };
    for _ in 0..count {
        let Some(slot) = Slot::take_below(peer, bound) else { return };
        if let Some(stock) = core.upstreams.stocks.borrow_mut().get_mut(&peer.id) {
            stock.refill.dialling += 1;
        }
        tokio::task::spawn_local(open(Rc::clone(core), Arc::clone(peer), slot));
    }
}

/// As many as are to be open: those that will soon be closed are replaced before.
fn bound(peer: &Peer) -> usize {
    let ceiling = peer.terms.ceiling.unwrap_or(usize::MAX);
    (peer.floor() + peer.fading()).min(ceiling)
}

/// Opens one.
async fn open(core: Rc<Core>, peer: Arc<Peer>, slot: Slot) {
    let dialled = dial::dial(&peer, slot, peer.side(&core)).await;
    {
        let mut stocks = core.upstreams.stocks.borrow_mut();
        let Some(stock) = stocks.get_mut(&peer.id) else { return };
        stock.refill.dialling = stock.refill.dialling.saturating_sub(1);
        match &dialled {
            Ok(_) => stock.refill.not_before = None,
            Err(_) => stock.refill.back_off(Instant::now()),
        }
    }
    if let Ok(connection) = dialled
        && !peer.is_withdrawn()
    {
        pool::put_back(&core, &peer, connection);
        // The upstream is there: so may the others be.
        refill(&core, &peer, false);
    }
}

impl Refill {
    /// How many may be begun now, of so many that are missing in the whole process.
    fn dialling_allowed(
        &mut self,
        core: &Core,
        peer: &Peer,
        idle: usize,
        missing: usize,
        is_look: bool,
    ) -> Option<usize> {
        if missing == 0 {
            self.missed = 0;
            return None;
        }
        if self.not_before.is_some_and(|time| Instant::now() < time) {
            return None;
        }
        let fading = peer.side(core).fading.load(Ordering::Relaxed);
        let own = (share(core, peer) + fading).saturating_sub(idle + self.dialling);
        let count = match own {
            // Others have not opened theirs since the last look.
            0 if self.missed > 0 => missing,
            _ => own.min(missing),
        };
        if is_look {
            self.missed = if own == 0 { self.missed.saturating_add(1) } else { 0 };
        }
        let most = if self.pause.is_zero() { FLOOR_DIALS_MAX } else { 1 };
        Some(count.min(most.saturating_sub(self.dialling))).filter(|count| *count > 0)
    }

    fn back_off(&mut self, now: Instant) {
        self.pause = (self.pause * 2).clamp(FLOOR_PAUSE_MIN, FLOOR_PAUSE_MAX);
        self.not_before = Some(now + self.pause);
    }
}

/// How many of a peer's floor are this core's to open. What is left over goes to other cores with each peer.
fn share(core: &Core, peer: &Peer) -> usize {
    let (floor, cores) = (peer.terms.floor, core.connection.cores().max(1));
    let turn = usize::try_from(peer.id.0 % cores as u64).unwrap_or(0);
    floor / cores + usize::from((core.number + turn) % cores < floor % cores)
}

impl Stock {
    /// Closes what is of no more use; `false` where nothing of this has to be kept.
    fn sweep(&mut self, core: &Core, now: Instant) -> bool {
        let peer = Arc::clone(&self.peer);
        peer.forget_habits_at(now);
        if peer.is_withdrawn() {
            self.idle.clear();
        }
        let mut fading = 0;
        let (mut is_sound, mut is_refused) = (false, false);
        self.idle.retain(|connection| {
            let rested = now.saturating_duration_since(connection.rests_since());
            match connection.listen_to_events() {
                Silence::Kept => {}
                Silence::Closed | Silence::Broken => {
                    is_refused |= !connection.is_used() && connection.rested_at_least() < FLOOR_SOUND_AFTER;
                    pool::note_closed(core, &peer, connection, now);
                    return false;
                }
            }
            connection.note_silence(now);
            peer.habit(connection).outlived(rested);
            is_sound |= rested >= FLOOR_SOUND_AFTER;
            if rested >= peer.rest_for(connection) {
                peer.side(core).retired.count();
                return false;
            }
            let will_fade = peer
                .patience_with(connection)
                .is_some_and(|patience| rested + rest::lead(patience) >= rest::rests_at_most(patience));
            fading += usize::from(will_fade || !peer.is_current(connection));
            true
        });
        self.retire_oldest(core, now);
        self.evict_above_bound(core, now);
        if is_refused {
            self.refill.back_off(now);
        } else if is_sound {
            self.refill.pause = Duration::ZERO;
        }
        peer.side(core).fading.store(fading.min(self.idle.len()), Ordering::Relaxed);
        self.tell(core);
        let is_busy = !self.idle.is_empty() || self.refill.dialling > 0;
        is_busy || self.is_named && !peer.is_withdrawn()
    }

    /// Closes what has rested for longer than is wished, down to the floor.
    fn retire_oldest(&mut self, core: &Core, now: Instant) {
        while let Some(oldest) = self.idle.front_mut() {
            let rested = now.saturating_duration_since(oldest.rests_since());
            if rested < self.peer.terms.keep || !oldest.release_above(self.peer.floor()) {
                return;
            }
            self.idle.pop_front();
            self.peer.side(core).retired.count();
        }
    }

    /// Closes the oldest idle connections while more than `idle_max` have been idle for long. Connections come back in
    /// waves, one for each request that ends, and the next requests take them: closing them as they come back would make
    /// a busy proxy dial for every other request.
    fn evict_above_bound(&mut self, core: &Core, now: Instant) {
        let peer = &self.peer;
        let is_long = |idle: &Connection| {
            now.saturating_duration_since(idle.rests_since()) >= UPSTREAM_IDLE_COUNTED_AFTER
        };
        let mut long = self.idle.partition_point(is_long);
        peer.note_idle_long(core, long);
        // Cores look at the same time: each leaves the others their share.
        let own_share = peer.terms.idle_max.max(peer.terms.floor) / core.connection.cores().max(1);
        while long > own_share && peer.is_idle_over_bound(core) {
            self.idle.pop_front();
            peer.side(core).retired.count();
            long -= 1;
        }
    }
}
