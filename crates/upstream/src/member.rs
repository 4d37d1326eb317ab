//! One upstream of one directive: its peer, and its health.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use onehop_config::checked::proxy::PassiveHealth;

use crate::health::{Health, InFlight};
use crate::limits::FAILURE_LATENCY;
use crate::peer::{Endpoint, Peer};

/// One upstream of one directive.
pub struct Member {
    /// Where it is; equal ones of several directives share theirs.
    pub peer: Arc<Peer>,
    /// Its index in the directive, from 0.
    pub number: usize,
    /// Its address as Caddy writes it: its label in logs and metrics, and what a policy hashes.
    pub name: Box<str>,
    /// Its address came with a request.
    pub is_dynamic: bool,
    /// What is known of its health.
    pub health: Health,
}

impl Member {
    /// One that counts as well.
    pub fn new(number: usize, peer: Arc<Peer>) -> Arc<Self> {
        let name = peer.label.as_str().into();
        Self::with_health(number, peer, name, Health::default())
    }

    /// One of whose address something is known already. By `name` a policy that hashes tells it apart.
    pub fn with_health(number: usize, peer: Arc<Peer>, name: Box<str>, health: Health) -> Arc<Self> {
        Arc::new(Self { peer, number, name, is_dynamic: false, health })
    }

    /// One whose address came with a request.
    pub fn dynamic(number: usize, peer: Arc<Peer>, health: Health) -> Arc<Self> {
        let name = peer.label.as_str().into();
        Arc::new(Self { peer, number, name, is_dynamic: true, health })
    }

    /// `HOST:PORT`, or a socket's path.
    pub fn host_port(&self) -> &str {
        // Not the peer's label: others may share it who write the same address in another way.
        self.name.strip_prefix("unix/").unwrap_or(&self.name)
    }

    /// The host of that, without brackets; empty for a socket.
    pub fn host(&self) -> &str {
        let host = self.halves().map_or("", |(host, _)| host);
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// The port of that; empty for a socket.
    pub fn port(&self) -> &str {
        self.halves().map_or("", |(_, port)| port)
    }

    fn halves(&self) -> Option<(&str, &str)> {
        if matches!(self.peer.endpoint, Endpoint::Unix(..)) { None } else { self.name.rsplit_once(':') }
    }
}

impl Member {
    /// Whether requests may be sent to it.
    pub fn is_available(&self, passive: &PassiveHealth) -> bool {
        self.is_available_at(passive, Instant::now)
    }

    /// Whether requests may be sent to it at a moment that is only asked for where it matters.
    pub fn is_available_at(&self, passive: &PassiveHealth, now: impl FnOnce() -> Instant) -> bool {
        !self.is_full(passive)
            && !self.health.active.as_ref().is_some_and(|active| active.is_down())
            && !self.is_failing(passive, now)
    }

    /// Requests that its address has in hand.
    pub fn in_flight(&self) -> usize {
        self.health.standing.in_flight.load(Ordering::Relaxed)
    }

    /// A request begins.
    pub fn begin(&self) -> InFlight {
        let in_flight = &self.health.standing.in_flight;
        in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(in_flight))
    }

    /// Whether it has as many requests as it may (`unhealthy_request_count`).
    pub fn is_full(&self, passive: &PassiveHealth) -> bool {
        passive.unhealthy_request_count.is_some_and(|most| self.in_flight() >= most as usize)
    }

    /// Whether as many of its failures are remembered as make it bad.
    pub fn is_failing(&self, passive: &PassiveHealth, now: impl FnOnce() -> Instant) -> bool {
        let failures = &self.health.standing.failures;
        passive.fail_duration.is_some() && failures.may_be_any() && failures.are(passive.max_fails, now())
    }

    /// No connection, or it broke before an answer's head.
    pub fn failed(&self, passive: &PassiveHealth) {
        self.failed_at(passive, Instant::now());
    }

    pub(crate) fn failed_at(&self, passive: &PassiveHealth, now: Instant) {
        let standing = &self.health.standing;
        standing.failures.remember(passive.fail_duration.unwrap_or_default(), now);
        // A refused connection is quick, and must not look like the best upstream of all.
        standing.latency.observe(FAILURE_LATENCY, now);
    }

    /// A request that failed there is tried again, wherever.
    pub fn count_retry(&self) {
        self.health.standing.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// An answer's head came so long after the request. As in Caddy a bad status and a slow head are a failure each.
    pub fn answered(&self, status: u16, asked: Instant, passive: &PassiveHealth) {
        let now = Instant::now();
        self.answered_at(status, now.saturating_duration_since(asked), passive, now);
    }

    pub(crate) fn answered_at(&self, status: u16, after: Duration, passive: &PassiveHealth, now: Instant) {
        let standing = &self.health.standing;
        standing.latency.observe(after, now);
        let remembered_for = passive.fail_duration.unwrap_or_default();
        if passive.unhealthy_status.iter().any(|bad| bad.fits(status)) {
            standing.failures.remember(remembered_for, now);
        }
        if passive.unhealthy_latency.is_some_and(|bound| after >= bound) {
            standing.failures.remember(remembered_for, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use onehop_config::checked::proxy::StatusTest;

    use super::*;
    use crate::epoch::epoch;
    use crate::health::{Active, Change, Standing};
    use crate::limits::FAILURES_REMEMBERED_MAX;
    use crate::test_members::member;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn failures_count_within_a_window_that_slides() {
        let passive =
            PassiveHealth { fail_duration: Some(10 * SECOND), max_fails: 3, ..PassiveHealth::default() };
        let (member, start) = (member(0), epoch());
        let at = |seconds: u32| start + seconds * SECOND;
        let is_available = |seconds: u32| member.is_available_at(&passive, || at(seconds));
        member.failed_at(&passive, at(0));
        member.failed_at(&passive, at(6));
        assert!(is_available(9), "two of three");
        member.failed_at(&passive, at(11));
        assert!(is_available(11), "the first is forgotten");
        member.failed_at(&passive, at(12));
        assert!(!is_available(12));
        assert!(!is_available(15));
        assert!(is_available(16), "the second is forgotten, too");
        member.failed_at(&passive, at(16));
        assert!(!is_available(16));
        assert!(is_available(30));
        assert_eq!(member.health.standing.failures(), 5);
    }

    #[test]
    fn failures_do_not_count_where_nothing_says_how_long() {
        let (member, start) = (member(0), epoch());
        for _ in 0..100 {
            member.failed_at(&PassiveHealth::default(), start);
        }
        assert!(member.is_available_at(&PassiveHealth::default(), || start));
        // Another directive, which remembers failures, does not learn of them either, as in Caddy.
        let strict = PassiveHealth { fail_duration: Some(SECOND), ..PassiveHealth::default() };
        assert!(member.is_available_at(&strict, || start));
    }

    #[test]
    fn each_directive_remembers_for_its_own_time_and_counts_what_all_remember() {
        let short = PassiveHealth { fail_duration: Some(SECOND), max_fails: 2, ..PassiveHealth::default() };
        let long =
            PassiveHealth { fail_duration: Some(60 * SECOND), max_fails: 1, ..PassiveHealth::default() };
        let (member, start) = (member(0), epoch());
        member.failed_at(&long, start);
        member.failed_at(&short, start);
        assert!(!member.is_available_at(&short, || start));
        assert!(member.is_available_at(&short, || start + 2 * SECOND), "one of two is left");
        assert!(!member.is_available_at(&long, || start + 2 * SECOND));
        assert!(member.is_available_at(&long, || start + 61 * SECOND));
    }

    #[test]
    fn more_failures_than_are_distinguished_cost_no_more_memory() {
        let passive =
            PassiveHealth { fail_duration: Some(SECOND), max_fails: u32::MAX, ..PassiveHealth::default() };
        let (member, start) = (member(0), epoch());
        for _ in 0..2 * FAILURES_REMEMBERED_MAX {
            member.failed_at(&passive, start);
        }
        assert!(!member.is_available_at(&passive, || start));
        let remembered = member.health.standing.remembered_failures(start);
        assert_eq!(remembered, FAILURES_REMEMBERED_MAX as usize);
    }

    #[test]
    fn a_wider_memory_keeps_what_the_narrow_one_had() {
        let (narrow, start) = (Standing::new(2), epoch());
        narrow.failures.remember(SECOND, start);
        narrow.failures.remember(SECOND, start);
        assert!(narrow.widened(2).is_none());
        let wide = narrow.widened(3).expect("wider");
        assert!(wide.failures.are(2, start) && !wide.failures.are(3, start));
        wide.failures.remember(SECOND, start);
        assert!(wide.failures.are(3, start));
        assert_eq!(wide.failures(), 3);
    }

    #[test]
    fn a_bad_status_and_a_slow_head_are_failures() {
        let passive = PassiveHealth {
            fail_duration: Some(SECOND),
            max_fails: 2,
            unhealthy_status: vec![StatusTest::Exactly(500), StatusTest::Class(5), StatusTest::Exactly(429)],
            unhealthy_latency: Some(SECOND),
            ..PassiveHealth::default()
        };
        let start = epoch();
        for (status, after, failures) in [
            (200, SECOND / 2, 0),
            (404, SECOND / 2, 0),
            (500, SECOND / 2, 1),
            (429, SECOND, 2),
            (200, SECOND, 1),
        ] {
            let member = member(0);
            member.answered_at(status, after, &passive, start);
            assert_eq!(member.health.standing.failures(), failures, "{status} after {after:?}");
            assert_eq!(member.is_available_at(&passive, || start), failures < 2);
        }
    }

    #[test]
    fn a_full_upstream_gets_no_more() {
        let passive = PassiveHealth { unhealthy_request_count: Some(2), ..PassiveHealth::default() };
        let member = member(0);
        let first = member.begin();
        assert!(member.is_available(&passive));
        let second = member.begin();
        assert!(!member.is_available(&passive));
        drop(first);
        assert!(member.is_available(&passive));
        drop(second);
    }

    #[test]
    fn an_upstream_that_flaps_changes_only_after_so_many_of_a_kind_in_a_row() {
        let (active, start) = (Active::default(), epoch());
        let bad = || Err("answered 503".to_owned());
        let find = |found, second: u32| active.found(found, 2, 3, start + second * SECOND);
        for (second, found, change) in [
            (0, bad(), None),
            (1, bad(), None),
            (2, Ok(()), None),
            (3, bad(), None),
            (4, bad(), None),
            (5, bad(), Some(Change::Down)),
            (6, Ok(()), None),
            (7, bad(), None),
            (8, Ok(()), None),
            (9, Ok(()), Some(Change::Up(4 * SECOND))),
            (10, bad(), None),
        ] {
            assert_eq!(find(found, second), change, "second {second}");
            assert_eq!(active.is_down(), (5..9).contains(&second), "second {second}");
        }
        assert!(active.down().is_none());
    }

    #[test]
    fn what_is_reported_of_a_down_upstream_is_what_is_wrong_now() {
        let (active, start) = (Active::default(), epoch());
        active.found(Err("refused".to_owned()), 1, 1, start);
        active.found(Err("answered 503".to_owned()), 1, 1, start + SECOND);
        let down = active.down().expect("down");
        assert_eq!((down.reason.as_str(), down.since), ("answered 503", start));
    }
}
