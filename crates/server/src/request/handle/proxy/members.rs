//! The upstreams of one directive: how they come to be, and which of them requests have made.

use std::sync::Arc;
use std::time::Instant;

use onehop_upstream::member::Member;

use super::Proxy;
use super::of_request::{Gone, OfRequest};

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
