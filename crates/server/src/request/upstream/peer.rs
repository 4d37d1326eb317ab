//! One place that speaks HTTP/1, as all cores see it: where it is, how it is spoken to, and the little that is counted
//! for the whole process.
//!
//! Lives as long as somebody holds it: a reload that keeps an upstream keeps its peer, and with it its connections.
//! Never dials and holds no connection: those are each core's own ([`super::pool`]).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use onehop_limits::wait_queue::WaitQueue;
use tokio::sync::Notify;

use super::addresses::Addresses;
use super::connection::Connection;
use super::pool::NoConnection;
use super::queue::Queue;
use super::rest::{self, Habit};
use crate::limits::{UPSTREAM_FAR, UPSTREAM_WINDOW_KEPT};
use crate::request::core::{Core, Padded};

/// A place that requests go to.
pub struct Peer {
    /// Unique in the life of the server.
    pub id: PeerId,
    made: Instant,
    /// What it is called. A directive may write the same address in another way.
    pub label: String,
    /// Where it is.
    pub place: Place,
    /// How it is spoken to.
    pub terms: Terms,
    /// Nobody asks it any more: what is idle is closed.
    is_withdrawn: AtomicBool,
    /// A core without an idle connection asks the others for theirs before it dials.
    is_borrowed: bool,
    /// Connections that are open or being made, of all cores. Only a [`super::queue::Slot`] changes it.
    pub(super) open: Padded<AtomicUsize>,
    /// Those of them that are tunnels now.
    pub(super) tunnels: Padded<AtomicUsize>,
    /// The sum of [`Side::idle_long`], changed at ticks alone.
    idle_long: Padded<AtomicUsize>,
    pub(super) queue: Padded<WaitQueue<Queue>>,
    /// Why the last connection that failed has failed.
    last_failure: Mutex<Option<String>>,
    /// Microseconds that the last new connection took, its handshake too.
    dial_micros: AtomicU64,
    /// Where the name leads, if the place is one.
    pub(super) addresses: Addresses,
    /// What is known of how long it keeps connections that were never used, and those that were.
    habits: [Habit; 2],
    /// What each core counts, each on its own cache lines; made by the first that asks.
    sides: OnceLock<Box<[Side]>>,
    /// For a core that is none.
    spare: Side,
}

/// What one core counts; it alone writes.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Side {
    /// Connections that rest here: others look before they ask for one.
    pub(super) idle: AtomicUsize,
    /// Milliseconds of the peer's life at which the one that was used last began to rest, and one more; 0 where none
    /// rests here that was ever used.
    newest: AtomicU64,
    /// Those among them that have been idle for [`crate::limits::UPSTREAM_IDLE_COUNTED_AFTER`], as of the last tick.
    idle_long: AtomicUsize,
    /// Those among them that will soon be closed, and are to be replaced before.
    pub(super) fading: AtomicUsize,
    pub(super) dials: Tally,
    pub(super) dial_failures: Tally,
    pub(super) handshakes: Tally,
    pub(super) resumptions: Tally,
    pub(super) taken_idle: Tally,
    pub(super) borrowed: Tally,
    pub(super) waited: Tally,
    pub(super) closed_idle: Tally,
    pub(super) retired: Tally,
}

/// A number that grows, with one writer.
#[derive(Default)]
pub(super) struct Tally(AtomicU64);

/// What a peer has and what happened to it, of all cores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PeerCounts {
    /// Connections that are open or being made, now.
    pub open: u64,
    /// Connections that rest, now.
    pub idle: u64,
    /// Requests that wait for a connection, now.
    pub waiting: u64,
    /// Connections that were begun.
    pub dials: u64,
    /// Those of them that came to nothing, their handshakes among them.
    pub dial_failures: u64,
    /// TLS handshakes that succeeded.
    pub handshakes: u64,
    /// Those of them that resumed a session.
    pub resumptions: u64,
    /// Requests that took a connection that rested on their core.
    pub taken_idle: u64,
    /// Requests that took one of another core.
    pub borrowed: u64,
    /// Requests that waited for one.
    pub waited: u64,
    /// Connections that the upstream closed, or broke, while they rested.
    pub closed_idle: u64,
    /// Connections that were closed for their rest.
    pub retired: u64,
}

/// Unique in the life of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u64);

/// Where a peer is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Place {
    /// An address.
    Address(SocketAddr),
    /// A name that is resolved, again and again, and a port.
    Name(String, u16),
    /// A Unix socket, and who must listen there where that matters (see [`super::connection::connect_unix`]).
    Unix(PathBuf, Option<u32>),
}

/// How connections to a peer are made and kept.
#[derive(Clone)]
pub struct Terms {
    /// Encrypted; `None`: in the clear.
    pub tls: Option<Tls>,
    /// Resolving and connecting together.
    pub dial_timeout: Duration,
    /// How long the second family of addresses waits for the first; `None`: for its failure.
    pub fallback_delay: Option<Duration>,
    /// The distance of TCP's own probes.
    pub probe: Option<Duration>,
    /// How long a connection beyond the floor is kept without a request; zero: not at all.
    pub keep: Duration,
    /// Maximum idle connections over all cores. Only connections that have been idle for
    /// [`crate::limits::UPSTREAM_IDLE_COUNTED_AFTER`] count.
    pub idle_max: usize,
    /// So many are open at all times, over all cores, tunnels not counted.
    pub floor: usize,
    /// So many at most, over all cores.
    pub ceiling: Option<usize>,
    /// Requests that wait for one of those, over all cores, and for how long.
    pub queue: (usize, Duration),
}

/// How a peer's connections are encrypted.
#[derive(Clone)]
pub struct Tls {
    /// Whom to believe, what to show.
    pub config: Arc<rustls::ClientConfig>,
    /// The name that is asked for and verified.
    pub name: rustls::pki_types::ServerName<'static>,
    /// How long the handshake may take.
    pub timeout: Duration,
}

impl Peer {
    /// A peer that nobody has asked yet.
    pub fn new(label: String, place: Place, terms: Terms) -> Arc<Self> {
        Self::with(label, place, terms, true)
    }

    /// The same for one on this machine, where a new connection costs less than asking another core for one.
    pub(crate) fn nearby(label: String, place: Place, terms: Terms) -> Arc<Self> {
        Self::with(label, place, terms, false)
    }

    fn with(label: String, place: Place, terms: Terms, is_borrowed: bool) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self {
            id: PeerId(NEXT.fetch_add(1, Ordering::Relaxed)),
            made: Instant::now(),
            label,
            place,
            terms,
            is_withdrawn: AtomicBool::new(false),
            is_borrowed,
            open: Padded(AtomicUsize::new(0)),
            tunnels: Padded(AtomicUsize::new(0)),
            idle_long: Padded(AtomicUsize::new(0)),
            queue: Padded(WaitQueue::new(Queue::default())),
            last_failure: Mutex::default(),
            dial_micros: AtomicU64::new(u64::MAX),
            addresses: Addresses::default(),
            habits: Default::default(),
            sides: OnceLock::new(),
            spare: Side::default(),
        })
    }

    /// Nobody asks it any more.
    pub fn withdraw(&self) {
        self.is_withdrawn.store(true, Ordering::Release);
    }

    /// Whether nobody asks it any more.
    pub fn is_withdrawn(&self) -> bool {
        self.is_withdrawn.load(Ordering::Acquire)
    }

    /// Where its name leads now; what is known by then stays where this is empty. Connections to addresses that are
    /// not named any more are used up.
    pub fn publish_addresses(&self, addresses: Vec<SocketAddr>) {
        self.addresses.publish(addresses);
    }

    /// Its name was not resolved: the reason, for logs. Whatever is known of it stays.
    pub fn publish_failure(&self, reason: String) {
        self.addresses.fail(reason);
    }

    /// Told when a connection to its name has failed: it may lead elsewhere by now.
    pub fn follow_doubts(&self, told: Arc<Notify>) {
        self.addresses.follow_doubts(told);
    }

    /// Whether [`Peer::follow_doubts`] was told about this one, since this was last asked.
    pub fn take_doubt(&self) -> bool {
        self.addresses.take_doubt()
    }

    /// Where its name leads, as far as is known.
    pub fn addresses(&self) -> Arc<[SocketAddr]> {
        self.addresses.known()
    }

    /// What it has, and what happened to it.
    pub fn counts(&self) -> PeerCounts {
        let sides = self.sides.get().map(|sides| &sides[..]).unwrap_or_default();
        let sum = |tally: fn(&Side) -> &Tally| sides.iter().map(|side| tally(side).get()).sum::<u64>();
        PeerCounts {
            open: self.open.0.load(Ordering::SeqCst) as u64,
            idle: self.idle() as u64,
            waiting: self.waiting() as u64,
            dials: sum(|side| &side.dials),
            dial_failures: sum(|side| &side.dial_failures),
            handshakes: sum(|side| &side.handshakes),
            resumptions: sum(|side| &side.resumptions),
            taken_idle: sum(|side| &side.taken_idle),
            borrowed: sum(|side| &side.borrowed),
            waited: sum(|side| &side.waited),
            closed_idle: sum(|side| &side.closed_idle),
            retired: sum(|side| &side.retired),
        }
    }

    /// Connections that are open or being made.
    pub fn open(&self) -> usize {
        self.open.0.load(Ordering::SeqCst)
    }

    /// So many are to be open at least: those that are tunnels for hours leave none for the next request.
    pub(super) fn floor(&self) -> usize {
        self.terms.floor.saturating_add(self.tunnels.0.load(Ordering::SeqCst))
    }

    /// Connections that rest, of all cores.
    pub fn idle(&self) -> usize {
        self.each_side().map(|side| side.idle.load(Ordering::SeqCst)).sum()
    }

    /// Requests that wait for a connection.
    pub fn waiting(&self) -> usize {
        self.queue.0.len()
    }

    /// How long it keeps a connection without a request, as far as that was learned from those it closed.
    pub fn closes_after(&self) -> Option<Duration> {
        self.habits.iter().filter_map(Habit::closes_after).min()
    }

    /// Why the last connection that could not be made could not be made, for a person.
    pub fn last_failure(&self) -> Option<String> {
        self.last_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn note_failure(&self, reason: &NoConnection) {
        *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.to_string());
    }

    /// How long the last new connection took, its handshake too; very long where there was none yet.
    pub(super) fn dial_took(&self) -> Duration {
        Duration::from_micros(self.dial_micros.load(Ordering::Relaxed))
    }

    pub(super) fn note_dial(&self, took: Duration) {
        self.dial_micros.store(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Whether it is so far away that it matters which of its connections is taken.
    pub(super) fn is_far(&self) -> bool {
        let took = self.dial_took();
        self.is_borrowed && took >= UPSTREAM_FAR
    }

    /// Tells the others when the newest of a core's connections was used last.
    pub(super) fn tell_newest(&self, core: &Core, newest: Option<&Connection>) {
        let used = newest.filter(|connection| connection.is_used());
        let newest = used.map_or(0, |connection| self.age_at(connection.rests_since()));
        self.side(core).newest.store(newest, Ordering::Relaxed);
    }

    /// The other core whose newest connection was used later than this core's, where that one's window may be gone.
    pub(super) fn newer_elsewhere(&self, core: &Core, now: Instant) -> Option<usize> {
        let ours = self.side(core).newest.load(Ordering::Relaxed);
        let kept = u64::try_from(UPSTREAM_WINDOW_KEPT.as_millis()).unwrap_or(u64::MAX);
        if ours > 0 && self.age_at(now).saturating_sub(ours) < kept {
            return None;
        }
        let sides = self.each_side().enumerate();
        let newest = sides.map(|(number, side)| (side.newest.load(Ordering::Relaxed), number)).max()?;
        (newest.0 > ours).then_some(newest.1)
    }

    fn age_at(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.made).as_millis())
            .unwrap_or(u64::MAX)
            .saturating_add(1)
    }

    /// Whether a core asks others for their idle connections.
    pub(super) fn is_borrowed(&self) -> bool {
        self.is_borrowed
    }

    /// Reports how many of a core's connections count towards `idle_max`.
    pub(super) fn note_idle_long(&self, core: &Core, count: usize) {
        let before = self.side(core).idle_long.swap(count, Ordering::Relaxed);
        self.idle_long.0.fetch_add(count.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Whether one of those is over the bound; it counts no more and has to be closed.
    pub(super) fn is_idle_over_bound(&self, core: &Core) -> bool {
        let bound = self.terms.idle_max.max(self.terms.floor);
        let lower = |count| (count > bound).then(|| count - 1);
        let is_over = self.idle_long.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lower).is_ok();
        if is_over {
            self.side(core).idle_long.fetch_sub(1, Ordering::Relaxed);
        }
        is_over
    }

    /// Connections that will soon be closed, of all cores.
    pub(super) fn fading(&self) -> usize {
        self.each_side().map(|side| side.fading.load(Ordering::Relaxed)).sum()
    }

    /// What this core counts.
    pub(super) fn side(&self, core: &Core) -> &Side {
        let sides =
            self.sides.get_or_init(|| (0..core.connection.cores()).map(|_| Side::default()).collect());
        sides.get(core.number).unwrap_or(&self.spare)
    }

    /// Connections that rest on a core.
    pub(super) fn idle_of(&self, core: usize) -> usize {
        let side = self.sides.get().and_then(|sides| sides.get(core));
        side.map_or(0, |side| side.idle.load(Ordering::SeqCst))
    }

    /// What is known of how long it keeps connections like this one.
    pub(super) fn habit(&self, connection: &Connection) -> &Habit {
        let [unused, used] = &self.habits;
        if connection.is_used() { used } else { unused }
    }

    /// Every habit.
    pub(super) fn forget_habits_at(&self, now: Instant) {
        for habit in &self.habits {
            habit.forget_at(now);
        }
    }

    /// After how long a rest it closes this connection, as far as is known.
    pub(super) fn patience_with(&self, connection: &Connection) -> Option<Duration> {
        let learned = self.habit(connection).closes_after();
        [connection.kept_for(), learned].into_iter().flatten().min()
    }

    /// How long this connection may rest for the upstream's sake.
    pub(super) fn rest_for(&self, connection: &Connection) -> Duration {
        self.patience_with(connection).map_or(Duration::MAX, rest::rests_at_most)
    }

    /// Whether the address that a connection leads to is still one of the peer's.
    pub(super) fn is_current(&self, connection: &Connection) -> bool {
        self.addresses.is_current(connection)
    }

    fn each_side(&self) -> impl Iterator<Item = &Side> {
        self.sides.get().map(|sides| &sides[..]).unwrap_or_default().iter()
    }
}

#[cfg(test)]
impl Peer {
    pub(crate) fn doubt_for_test(&self) {
        self.addresses.doubt();
    }

    pub(crate) fn failure_for_test(&self) -> Option<Arc<str>> {
        self.addresses.failure()
    }
}

impl Tally {
    /// Only the core whose side it is calls this, so that no locked instruction is needed.
    pub(super) fn count(&self) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
