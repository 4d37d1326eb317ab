//! One place that speaks HTTP/1, as all cores see it: where it is, how it is spoken to, and the little that is counted
//! for the whole process.
//!
//! Lives as long as somebody holds it: a reload that keeps an upstream keeps its peer, and with it its connections.
//! Never dials and holds no connection: those are each core's own ([`super::pool`]).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::request::core::Padded;

/// A place that requests go to.
pub struct Peer {
    /// Unique in the life of the server.
    pub id: PeerId,
    /// The `upstream` label in metrics and logs.
    pub label: String,
    /// Where it is.
    pub place: Place,
    /// How it is spoken to.
    pub terms: Terms,
    /// Requests that it was handed and has not finished, of all cores.
    in_flight: Padded<AtomicUsize>,
    /// Nobody asks it any more: what is idle is closed.
    is_withdrawn: AtomicBool,
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
    /// Idle ones that are kept, over all cores.
    pub idle_max: usize,
    /// So many are open at all times, over all cores.
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

/// A request that a peer has in hand, until this is dropped.
pub(crate) struct InFlight(Arc<Peer>);

impl Peer {
    /// A peer that nobody has asked yet.
    pub fn new(label: String, place: Place, terms: Terms) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self {
            id: PeerId(NEXT.fetch_add(1, Ordering::Relaxed)),
            label,
            place,
            terms,
            in_flight: Padded(AtomicUsize::new(0)),
            is_withdrawn: AtomicBool::new(false),
        })
    }

    /// Requests that it has in hand.
    pub fn in_flight(&self) -> usize {
        self.in_flight.0.load(Ordering::Relaxed)
    }

    /// A request begins.
    pub(crate) fn begin(self: &Arc<Self>) -> InFlight {
        self.in_flight.0.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }

    /// Nobody asks it any more.
    pub fn withdraw(&self) {
        self.is_withdrawn.store(true, Ordering::Release);
    }

    /// Whether nobody asks it any more.
    pub fn is_withdrawn(&self) -> bool {
        self.is_withdrawn.load(Ordering::Acquire)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.0.fetch_sub(1, Ordering::Relaxed);
    }
}
