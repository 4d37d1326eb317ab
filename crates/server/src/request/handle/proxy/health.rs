//! Whether an upstream is well: by what requests meet (passive), and by what it answers when asked (active).
//!
//! [`Standing`] is what requests have met at one address, for the whole process: all cores, all directives, over
//! reloads. [`Active`] is what questions have found. Both are read by every request with a few loads and no lock.
//! Asks nobody and waits for nobody: the questions are `control/upstreams/health.rs`.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use onehop_config::checked::proxy::PassiveHealth;

use super::Member;
use super::balance::latency::Latency;
use crate::limits::{PROXY_FAILURE_COUNTS_AS, PROXY_FAILURES_REMEMBERED_MAX};
use crate::request::core::Padded;

/// What is known of an upstream's health.
#[derive(Default)]
pub(crate) struct Health {
    /// By what requests met at its address, whichever directive sent them.
    pub(crate) standing: Arc<Standing>,
    /// By active questions, where there are any.
    pub(crate) active: Option<Arc<Active>>,
}

/// What requests have met at one address.
pub(crate) struct Standing {
    /// Requests that it was handed and has not finished, of all cores and directives, however they are sent there.
    in_flight: Arc<Padded<AtomicUsize>>,
    failures: Failures,
    /// Requests that were tried again after they had failed there.
    retries: AtomicU64,
    /// How long its answers take.
    pub(crate) latency: Latency,
}

/// A request that an upstream has in hand, until this is dropped.
pub(crate) struct InFlight(Arc<Padded<AtomicUsize>>);

/// The last failures, each with the time at which it is forgotten. Bounded; no timer, no lock: what is forgotten is
/// not counted, and its place is taken by a later one.
struct Failures {
    /// Nanoseconds after [`beginning`]; 0 for none yet.
    forgotten_at: Box<[AtomicU64]>,
    next: AtomicUsize,
    /// Nothing is remembered after this. All that a request reads while all is well.
    latest: Padded<AtomicU64>,
    /// Since the start.
    total: AtomicU64,
}

/// What active questions have found. Requests only see whether it is down.
#[derive(Default)]
pub(crate) struct Active {
    is_down: AtomicBool,
    course: Mutex<Course>,
}

#[derive(Default)]
struct Course {
    good_in_a_row: u32,
    bad_in_a_row: u32,
    down: Option<Down>,
}

/// Since when and why an upstream is down.
#[derive(Debug, Clone)]
pub(crate) struct Down {
    pub(crate) since: Instant,
    pub(crate) reason: String,
}

/// What one more answer to a question has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// It gets no more requests.
    Down,
    /// It gets requests again, after so long.
    Up(Duration),
}

impl Member {
    /// Whether requests may be sent to it.
    #[cfg(test)]
    pub(crate) fn is_available(&self, passive: &PassiveHealth) -> bool {
        self.is_available_at(passive, Instant::now)
    }

    /// Whether requests may be sent to it at a moment that is only asked for where it matters.
    pub(super) fn is_available_at(&self, passive: &PassiveHealth, now: impl FnOnce() -> Instant) -> bool {
        !self.is_full(passive)
            && !self.health.active.as_ref().is_some_and(|active| active.is_down())
            && !self.is_failing(passive, now)
    }

    /// Requests that its address has in hand.
    pub(crate) fn in_flight(&self) -> usize {
        self.health.standing.in_flight.0.load(Ordering::Relaxed)
    }

    /// A request begins.
    pub(crate) fn begin(&self) -> InFlight {
        let in_flight = &self.health.standing.in_flight;
        in_flight.0.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(in_flight))
    }

    /// Whether it has as many requests as it may (`unhealthy_request_count`).
    pub(crate) fn is_full(&self, passive: &PassiveHealth) -> bool {
        passive.unhealthy_request_count.is_some_and(|most| self.in_flight() >= most as usize)
    }

    /// Whether as many of its failures are remembered as make it bad.
    pub(crate) fn is_failing(&self, passive: &PassiveHealth, now: impl FnOnce() -> Instant) -> bool {
        let failures = &self.health.standing.failures;
        passive.fail_duration.is_some() && failures.may_be_any() && failures.are(passive.max_fails, now())
    }

    /// No connection, or it broke before an answer's head.
    pub(crate) fn failed(&self, passive: &PassiveHealth) {
        self.failed_at(passive, Instant::now());
    }

    pub(super) fn failed_at(&self, passive: &PassiveHealth, now: Instant) {
        let standing = &self.health.standing;
        standing.failures.remember(passive.fail_duration.unwrap_or_default(), now);
        // A refused connection is quick, and must not look like the best upstream of all.
        standing.latency.observe(PROXY_FAILURE_COUNTS_AS, now);
    }

    /// A request that failed there is tried again, wherever.
    pub(crate) fn count_retry(&self) {
        self.health.standing.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// An answer's head came so long after the request. As in Caddy a bad status and a slow head are a failure each.
    pub(crate) fn answered(&self, status: u16, after: Duration, passive: &PassiveHealth) {
        self.answered_at(status, after, passive, Instant::now());
    }

    pub(super) fn answered_at(&self, status: u16, after: Duration, passive: &PassiveHealth, now: Instant) {
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

impl Standing {
    /// Of an address that nobody has asked yet; so many failures have to be told apart.
    pub(crate) fn new(failures_told_apart: u32) -> Self {
        let failures = Failures::new(failures_told_apart);
        let in_flight = Arc::new(Padded(AtomicUsize::new(0)));
        Self { in_flight, failures, retries: AtomicU64::new(0), latency: Latency::default() }
    }

    /// The same with room for more failures, where there is too little for so many.
    pub(crate) fn widened(&self, failures_told_apart: u32) -> Option<Self> {
        let wider = Failures::new(failures_told_apart);
        if wider.forgotten_at.len() <= self.failures.forgotten_at.len() {
            return None;
        }
        for (to, from) in wider.forgotten_at.iter().zip(&self.failures.forgotten_at) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let filled = self.failures.next.load(Ordering::Relaxed).min(self.failures.forgotten_at.len());
        wider.next.store(filled, Ordering::Relaxed);
        wider.total.store(self.failures.total.load(Ordering::Relaxed), Ordering::Relaxed);
        wider.latest.0.store(self.failures.latest.0.load(Ordering::Acquire), Ordering::Release);
        let retries = AtomicU64::new(self.retries());
        let in_flight = Arc::clone(&self.in_flight);
        Some(Self { in_flight, failures: wider, retries, latency: self.latency.clone() })
    }

    /// Requests that were tried again since the start.
    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Failures since the start.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.total.load(Ordering::Relaxed)
    }

    /// Failures that are remembered.
    pub(crate) fn remembered_failures(&self, now: Instant) -> usize {
        let now = nanoseconds(now);
        self.failures.forgotten_at.iter().filter(|at| at.load(Ordering::Relaxed) > now).count()
    }
}

impl Default for Standing {
    fn default() -> Self {
        Self::new(PROXY_FAILURES_REMEMBERED_MAX)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Failures {
    fn new(told_apart: u32) -> Self {
        let places = told_apart.clamp(1, PROXY_FAILURES_REMEMBERED_MAX);
        Self {
            forgotten_at: (0..places).map(|_| AtomicU64::new(0)).collect(),
            next: AtomicUsize::new(0),
            latest: Padded(AtomicU64::new(0)),
            total: AtomicU64::new(0),
        }
    }

    fn remember(&self, time: Duration, now: Instant) {
        self.total.fetch_add(1, Ordering::Relaxed);
        if time.is_zero() {
            return;
        }
        let until = nanoseconds(now).saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(place) = self.forgotten_at.get(number % self.forgotten_at.len().max(1)) {
            place.store(until, Ordering::Relaxed);
        }
        // Whoever sees this sees the place too.
        self.latest.0.fetch_max(until, Ordering::Release);
    }

    /// Whether there ever was one: without it nobody asks for the time.
    fn may_be_any(&self) -> bool {
        self.latest.0.load(Ordering::Relaxed) != 0
    }

    /// Whether so many are remembered.
    fn are(&self, most: u32, now: Instant) -> bool {
        let now = nanoseconds(now);
        if self.latest.0.load(Ordering::Acquire) <= now {
            return false;
        }
        let most = most.clamp(1, PROXY_FAILURES_REMEMBERED_MAX) as usize;
        let remembered = self.forgotten_at.iter().filter(|at| at.load(Ordering::Relaxed) > now);
        remembered.take(most).count() >= most
    }
}

impl Active {
    /// Whether it gets no requests.
    pub(crate) fn is_down(&self) -> bool {
        self.is_down.load(Ordering::Relaxed)
    }

    /// Since when and why.
    pub(crate) fn down(&self) -> Option<Down> {
        self.course.lock().unwrap_or_else(PoisonError::into_inner).down.clone()
    }

    /// It was asked, and is well or not: so many answers of one kind in a row change what it counts as.
    pub(crate) fn found(
        &self,
        found: Result<(), String>,
        passes: u32,
        fails: u32,
        now: Instant,
    ) -> Option<Change> {
        let mut course = self.course.lock().unwrap_or_else(PoisonError::into_inner);
        match found {
            Ok(()) => {
                course.bad_in_a_row = 0;
                course.good_in_a_row = course.good_in_a_row.saturating_add(1);
                if course.good_in_a_row < passes {
                    return None;
                }
                let down = course.down.take()?;
                self.is_down.store(false, Ordering::Relaxed);
                Some(Change::Up(now.saturating_duration_since(down.since)))
            }
            Err(reason) => {
                course.good_in_a_row = 0;
                course.bad_in_a_row = course.bad_in_a_row.saturating_add(1);
                if let Some(down) = &mut course.down {
                    // What is told is what is wrong now.
                    down.reason = reason;
                    return None;
                }
                if course.bad_in_a_row < fails {
                    return None;
                }
                course.down = Some(Down { since: now, reason });
                self.is_down.store(true, Ordering::Relaxed);
                Some(Change::Down)
            }
        }
    }
}

/// The moment from which times are counted that stand in one atomic number.
pub(super) fn beginning() -> Instant {
    static BEGINNING: OnceLock<Instant> = OnceLock::new();
    *BEGINNING.get_or_init(Instant::now)
}

/// At least 1, so that 0 can stand for never.
fn nanoseconds(moment: Instant) -> u64 {
    let since = moment.saturating_duration_since(beginning()).as_nanos();
    u64::try_from(since).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use onehop_config::checked::proxy::StatusTest;

    use super::*;
    use crate::request::handle::proxy::balance::tests::{member, passive};

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn failures_count_within_a_window_that_slides() {
        let passive = PassiveHealth { fail_duration: Some(10 * SECOND), max_fails: 3, ..passive() };
        let (member, start) = (member(0), beginning());
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
        let (member, start) = (member(0), beginning());
        for _ in 0..100 {
            member.failed_at(&passive(), start);
        }
        assert!(member.is_available_at(&passive(), || start));
        // Another directive, which remembers failures, does not learn of them either, as in Caddy.
        let strict = PassiveHealth { fail_duration: Some(SECOND), ..passive() };
        assert!(member.is_available_at(&strict, || start));
    }

    #[test]
    fn each_directive_remembers_for_its_own_time_and_counts_what_all_remember() {
        let short = PassiveHealth { fail_duration: Some(SECOND), max_fails: 2, ..passive() };
        let long = PassiveHealth { fail_duration: Some(60 * SECOND), max_fails: 1, ..passive() };
        let (member, start) = (member(0), beginning());
        member.failed_at(&long, start);
        member.failed_at(&short, start);
        assert!(!member.is_available_at(&short, || start));
        assert!(member.is_available_at(&short, || start + 2 * SECOND), "one of two is left");
        assert!(!member.is_available_at(&long, || start + 2 * SECOND));
        assert!(member.is_available_at(&long, || start + 61 * SECOND));
    }

    #[test]
    fn more_failures_than_are_told_apart_cost_no_more_memory() {
        let passive = PassiveHealth { fail_duration: Some(SECOND), max_fails: u32::MAX, ..passive() };
        let (member, start) = (member(0), beginning());
        for _ in 0..2 * PROXY_FAILURES_REMEMBERED_MAX {
            member.failed_at(&passive, start);
        }
        assert!(!member.is_available_at(&passive, || start));
        let remembered = member.health.standing.remembered_failures(start);
        assert_eq!(remembered, PROXY_FAILURES_REMEMBERED_MAX as usize);
    }

    #[test]
    fn a_wider_memory_keeps_what_the_narrow_one_had() {
        let (narrow, start) = (Standing::new(2), beginning());
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
            ..passive()
        };
        let start = beginning();
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
        let passive = PassiveHealth { unhealthy_request_count: Some(2), ..passive() };
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
        let (active, start) = (Active::default(), beginning());
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
    fn what_is_told_of_a_down_upstream_is_what_is_wrong_now() {
        let (active, start) = (Active::default(), beginning());
        active.found(Err("refused".to_owned()), 1, 1, start);
        active.found(Err("answered 503".to_owned()), 1, 1, start + SECOND);
        let down = active.down().expect("down");
        assert_eq!((down.reason.as_str(), down.since), ("answered 503", start));
    }
}
