//! The upstreams of one directive: how they come to be, and which of them requests have made.

use std::sync::Arc;
use std::time::Instant;

use super::health::Health;
use super::of_request::{Gone, OfRequest};
use super::{Member, Proxy};
use onehop_upstream::peer::{Endpoint, Peer};

impl Proxy {
    /// Whether it has exactly these upstreams and tables.
    pub(crate) fn is_made_of(&self, members: &[Arc<Member>], tables: &[Option<Arc<OfRequest>>]) -> bool {
        let is_same_member = |(one, other): (&Arc<Member>, &Arc<Member>)| {
            let is_same_active = match (&one.health.active, &other.health.active) {
                (None, None) => true,
                (Some(one), Some(other)) => Arc::ptr_eq(one, other),
                _ => false,
            };
            let is_same_place = Arc::ptr_eq(&one.peer, &other.peer)
                && Arc::ptr_eq(&one.health.standing, &other.health.standing);
            // What stands for those of requests is nobody.
            is_same_active && (is_same_place || self.of_request(one.number).is_some())
        };
        let is_same_table = |number: usize| match (self.of_request(number), tables.get(number)) {
            (None, Some(None) | None) => true,
            (Some(one), Some(Some(other))) => Arc::ptr_eq(one, other),
            _ => false,
        };
        self.members.len() == members.len()
            && self.members.iter().zip(members).all(is_same_member)
            && (0..members.len()).all(is_same_table)
    }

    /// Those that requests have made of an upstream with placeholders, and what those counted that are gone; `None` for any other.
    pub(crate) fn filled_of(&self, number: usize) -> Option<(Vec<Arc<Member>>, Gone)> {
        self.of_request(number).map(|table| (table.members(), table.gone()))
    }

    /// Forgets the upstreams that requests have made and that nobody asks any more.
    pub(crate) fn forget_unused(&self, now: Instant) {
        for table in self.of_request.iter().flatten() {
            table.forget_unused(now);
        }
    }

    fn of_request(&self, number: usize) -> Option<&Arc<OfRequest>> {
        self.of_request.get(number).and_then(Option::as_ref)
    }

    /// The upstream at an address that came with a request: `HOST:PORT`. `None` where it is none, or where no upstream
    /// has placeholders.
    pub fn member_for(&self, address: &str) -> Option<Arc<Member>> {
        self.of_request.iter().flatten().next()?.at(address, None)
    }
}

impl Member {
    /// One that counts as well.
    pub fn new(number: usize, peer: Arc<Peer>) -> Arc<Self> {
        let name = peer.label.as_str().into();
        Self::with_health(number, peer, name, Health::default())
    }

    /// One of whose address something is known already. By `name` a policy that hashes tells it apart.
    pub(crate) fn with_health(number: usize, peer: Arc<Peer>, name: Box<str>, health: Health) -> Arc<Self> {
        Arc::new(Self { peer, number, name, is_of_request: false, health })
    }

    /// One whose address came with a request.
    pub(crate) fn of_request(number: usize, peer: Arc<Peer>, health: Health) -> Arc<Self> {
        let name = peer.label.as_str().into();
        Arc::new(Self { peer, number, name, is_of_request: true, health })
    }

    /// `HOST:PORT`, or a socket's path.
    pub(crate) fn host_port(&self) -> &str {
        // Not the peer's label: others may share it who write the same address in another way.
        self.name.strip_prefix("unix/").unwrap_or(&self.name)
    }

    /// The host of that, without brackets; empty for a socket.
    pub(crate) fn host(&self) -> &str {
        let host = self.halves().map_or("", |(host, _)| host);
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// The port of that; empty for a socket.
    pub(crate) fn port(&self) -> &str {
        self.halves().map_or("", |(_, port)| port)
    }

    fn halves(&self) -> Option<(&str, &str)> {
        if matches!(self.peer.endpoint, Endpoint::Unix(..)) { None } else { self.name.rsplit_once(':') }
    }
}
