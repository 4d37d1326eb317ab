//! The requests that wait for a permit: the highest priority first, and within one first come first served while the queue
//! drains, newest first while it stands.
//!
//! A standing queue makes every request late, and first come first served then answers those whose clients are about to
//! leave. So while the oldest request has waited for long, and that for long (as in CoDel, RFC 8289 section 4.2, which looks
//! at the age of the oldest and not at the length), or grows for a while, or more wait than can be admitted in time, the newest
//! are admitted, and those that have waited for more than the target are rejected (adaptive LIFO and controlled delay;
//! Maurer, "Fail at Scale", ACM Queue 13(8), 2015); a request that would come to wait so long is rejected at once. Once the
//! queue was empty, and no request was rejected for a while, it is in order again.
//!
//! Knows the requests and their order, not whether there is room. The time is an argument.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use onehop_config::checked::limit::Priority;
use onehop_message::error::LimitCause;
use tokio::sync::oneshot;

use crate::limits::{
    LIMIT_QUEUE_GROWTH_PART, LIMIT_QUEUE_LATE_PART, LIMIT_QUEUE_LENGTH_PART, LIMIT_QUEUE_STANDING_PART,
    LIMIT_QUEUE_TARGET_PART,
};
use crate::wait_queue::{Length, WaitList};

/// The pace at which a queue drains is measured over so long, …
const PACE_TIME: Duration = Duration::from_millis(500);

/// … and over at least so many admissions: some applications answer many requests at a time.
const PACE_BY_MIN: u64 = 16;

/// How often the number of admissions is noted.
const PACE_MARK_PERIOD: Duration = Duration::from_millis(50);

/// However slowly a standing queue drains, so many may wait in it: enough for a pace that varies.
const STANDING_MIN: u128 = 8;

/// A queue has grown where a quarter more wait than before, …
const GROWTH: (usize, usize) = (5, 4);

/// … and so many: the few of a slow application come and go by chance.
const GROWTH_MIN: usize = 8;

/// Requests rejected for their age at a time: each is a response to write, and others want to be served meanwhile.
const STALE_AT_ONCE: usize = 4;

/// Where the decision about a waiting request is sent.
pub type Sender = oneshot::Sender<Decision>;

/// The decision about a request that waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It has a permit.
    Admitted,
    /// It is rejected.
    Rejected(LimitCause),
}

/// Names a request in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    priority: Priority,
    /// Grows with every request.
    number: u64,
}

/// Requests that wait, by priority. At most `length_max`.
#[derive(Debug)]
pub struct Queue {
    /// By priority, the lowest first.
    classes: [Class; 3],
    length_max: usize,
    /// The number of the next request.
    next: u64,
    ages: Ages,
}

/// Whether there is room for one more request.
#[derive(Debug)]
pub enum Room {
    /// There is.
    Free,
    /// There is once this request of a lower priority, which was removed, is rejected.
    InsteadOf(Sender),
    /// The same for a request whose client has closed its sending side.
    InsteadOfHalfClosed(Sender),
    /// There is none.
    None,
}

/// Waiting times that distinguish a queue that drains from one that stands.
#[derive(Debug, Clone, Copy)]
struct Ages {
    /// In a queue that drains the oldest request has waited for less.
    late: Duration,
    /// A queue stands once its oldest request was that late for so long.
    standing: Duration,
    /// In a standing queue no request waits for longer. A queue in which too many wait for so long stands.
    target: Duration,
    /// A queue stands once it has grown for so long.
    growth: Duration,
    /// No request waits for longer.
    wait: Duration,
}

/// The requests of one priority.
#[derive(Debug, Default)]
struct Class {
    waiting: WaitList<Waiter>,
    health: Health,
    /// Admissions since it was empty, …
    taken: u64,
    /// … and how many there had been at some moments, oldest first; see PACE_TIME.
    marks: VecDeque<(Instant, u64)>,
    /// Since when more requests wait than are admitted in time, or nearly so.
    full_since: Option<Instant>,
    /// How it grows, while its oldest request has waited for longer than the target.
    growth: Option<Growth>,
    /// When a request was rejected last because the queue stood.
    refused: Option<Instant>,
}

/// How many waited at some moments.
#[derive(Debug)]
struct Growth {
    since: Instant,
    length: usize,
    /// Half-way to the decision.
    halfway: Option<usize>,
}

#[derive(Debug)]
struct Waiter {
    since: Instant,
    to: Sender,
}

/// How a class is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Health {
    /// The oldest request has not waited for long.
    #[default]
    Draining,
    /// The oldest request was late at every look since then.
    Late { since: Instant },
    /// It was late for long, and the queue was not empty since.
    Standing,
}

impl Queue {
    /// Makes an empty queue of at most so many requests, in which each waits for at most so long.
    pub fn new(length_max: usize, wait: Duration) -> Self {
        let ages = Ages {
            late: wait / LIMIT_QUEUE_LATE_PART,
            standing: wait / LIMIT_QUEUE_STANDING_PART,
            target: wait / LIMIT_QUEUE_TARGET_PART,
            growth: wait / LIMIT_QUEUE_GROWTH_PART,
            wait,
        };
        Self { classes: Default::default(), length_max, next: 0, ages }
    }

    /// Whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.length() == 0
    }

    /// Whether a request waits that is admitted before a new one: of a higher priority, or of the same.
    pub fn is_ahead_of(&self, priority: Priority) -> bool {
        self.classes.iter().skip(priority as usize).any(|class| !class.waiting.is_empty())
    }

    /// Whether a new request may wait. In a full queue a request of no higher priority makes room whose client has closed its
    /// sending side and may have left; otherwise the newest of the lowest priority for one of a higher: it has waited for the
    /// shortest time. Of a class that stands no more wait than are admitted before they are too old: a request that would
    /// wait in vain is rejected at once.
    pub fn make_room(&mut self, priority: Priority, now: Instant) -> Room {
        let ages = self.ages;
        let own = priority as usize;
        let is_class_full = self.classes.get_mut(own).is_some_and(|class| class.is_full(now, ages));
        if !is_class_full && self.length() < self.length_max {
            return Room::Free;
        }
        let lowest = if is_class_full { own } else { 0 };
        let mut candidates = self.classes.iter_mut().take(own + 1).skip(lowest);
        if let Some(waiter) = candidates.find_map(|class| class.waiting.pop_half_closed()) {
            return Room::InsteadOfHalfClosed(waiter.to);
        }
        if is_class_full {
            return Room::None;
        }
        let mut lower = self.classes.iter_mut().take(own);
        let Some(outranked) = lower.find_map(|class| class.waiting.pop_last()) else {
            return Room::None;
        };
        Room::InsteadOf(outranked.to)
    }

    /// Appends a request. There must be room.
    pub fn push(&mut self, priority: Priority, now: Instant, to: Sender) -> Ticket {
        debug_assert!(self.length() < self.length_max, "room was made");
        let ticket = Ticket { priority, number: self.next };
        self.next += 1;
        if let Some(class) = self.classes.get_mut(priority as usize) {
            class.observe(now, self.ages);
            class.waiting.push(ticket.number, Waiter { since: now, to });
        }
        ticket
    }

    /// Removes the request that is admitted next.
    pub fn take_next(&mut self, now: Instant) -> Option<Sender> {
        let ages = self.ages;
        let taken = self.classes.iter_mut().rev().find_map(|class| {
            class.observe(now, ages);
            class.take(now)
        });
        let waiter = taken?;
        Some(waiter.to)
    }

    /// Notes that the client of a waiting request has closed its sending side.
    pub fn half_closed(&mut self, ticket: Ticket) {
        if let Some(class) = self.classes.get_mut(ticket.priority as usize) {
            class.waiting.mark_half_closed(ticket.number);
        }
    }

    /// Removes some of the requests that have waited for too long in a class that stands, first those whose clients have
    /// closed their sending sides. Its newest stays, however old: a standing queue must not become a gap (RFC 8289
    /// section 4.2 never drops the last one either).
    pub fn take_stale(&mut self, now: Instant) -> Vec<Sender> {
        let mut stale = Vec::new();
        for class in &mut self.classes {
            class.observe(now, self.ages);
            while class.health == Health::Standing
                && stale.len() < STALE_AT_ONCE
                && class.waiting.length() > 1
            {
                let is_old = class.age(now).is_some_and(|age| age > self.ages.target);
                let taken = match class.waiting.pop_half_closed() {
                    None if is_old => class.waiting.pop_first(),
                    taken => taken,
                };
                let Some(waiter) = taken else { break };
                stale.push(waiter.to);
                class.refused = Some(now);
            }
        }
        stale
    }

    /// Removes a request; `false` if it had been removed already.
    pub fn remove(&mut self, ticket: Ticket) -> bool {
        let class = self.classes.get_mut(ticket.priority as usize);
        class.and_then(|class| class.waiting.remove(ticket.number)).is_some()
    }
}

impl Length for Queue {
    fn length(&self) -> usize {
        self.classes.iter().map(|class| class.waiting.length()).sum()
    }
}

impl Class {
    /// How long the oldest request has waited.
    fn age(&self, now: Instant) -> Option<Duration> {
        let (_, oldest) = self.waiting.first()?;
        Some(now.saturating_duration_since(oldest.since))
    }

    /// Removes the request that is admitted next.
    fn take(&mut self, now: Instant) -> Option<Waiter> {
        let waiter = match self.health {
            Health::Standing => self.waiting.pop_last(),
            Health::Draining | Health::Late { .. } => self.waiting.pop_first(),
        }?;
        self.taken += 1;
        if self.marks.back().is_none_or(|mark| now.saturating_duration_since(mark.0) >= PACE_MARK_PERIOD) {
            self.marks.push_back((now, self.taken));
        }
        let is_enough = |mark: &(Instant, u64)| {
            now.saturating_duration_since(mark.0) >= PACE_TIME && self.taken - mark.1 >= PACE_BY_MIN
        };
        while self.marks.get(1).is_some_and(is_enough) {
            self.marks.pop_front();
        }
        Some(waiter)
    }

    /// Whether there is no room for a new request, which can only be so in a class that stands. It stands, too, where for a
    /// while more requests wait than are admitted before they are too old.
    fn is_full(&mut self, now: Instant, ages: Ages) -> bool {
        let length = self.waiting.length() as u128;
        if self.health != Health::Standing {
            let places = self.places(ages.wait, now);
            let since = if length >= places { *self.full_since.get_or_insert(now) } else { now };
            if length < places / 2 {
                self.full_since = None;
            }
            if now.saturating_duration_since(since) < ages.target {
                return false;
            }
            self.health = Health::Standing;
        }
        let is_full = length >= self.places(ages.target / LIMIT_QUEUE_LENGTH_PART, now).max(STANDING_MIN);
        self.refused = if is_full { Some(now) } else { self.refused };
        is_full
    }

    /// How many requests are admitted within this time at the current pace; at least one, and any number where the pace is
    /// not known.
    fn places(&self, time: Duration, now: Instant) -> u128 {
        let Some((since, before)) = self.marks.front() else { return u128::MAX };
        let (took, taken) = (now.saturating_duration_since(*since), self.taken - before);
        if taken < PACE_BY_MIN || took < PACE_MARK_PERIOD {
            return u128::MAX;
        }
        (time.as_nanos() * u128::from(taken)).div_ceil(took.as_nanos())
    }

    fn observe(&mut self, now: Instant, ages: Ages) {
        let refused_lately =
            || self.refused.is_some_and(|at| now.saturating_duration_since(at) < ages.standing);
        if self.waiting.is_empty() && self.health == Health::Standing && refused_lately() {
            // The flood continues: without this the next requests would be served late, and then rejected all at once.
            self.growth = None;
            return;
        }
        if self.waiting.is_empty() {
            self.taken = 0;
            self.marks.clear();
            self.full_since = None;
        }
        self.health = match (self.health, self.age(now)) {
            (_, None) => Health::Draining,
            (Health::Standing, Some(_)) => Health::Standing,
            (_, Some(age)) if age < ages.late => Health::Draining,
            (Health::Draining, Some(_)) => Health::Late { since: now },
            (Health::Late { since }, Some(_)) if now.saturating_duration_since(since) >= ages.standing => {
                Health::Standing
            }
            (late @ Health::Late { .. }, Some(_)) => late,
        };
        if self.has_grown(now, ages) {
            self.health = Health::Standing;
        }
    }

    /// Whether more wait now than some time ago, and still more come than are admitted.
    fn has_grown(&mut self, now: Instant, ages: Ages) -> bool {
        let length = self.waiting.length();
        if self.age(now).is_none_or(|age| age < ages.target) {
            self.growth = None;
            return false;
        }
        let growth = self.growth.get_or_insert(Growth { since: now, length, halfway: None });
        let took = now.saturating_duration_since(growth.since);
        if took < ages.growth {
            if took >= ages.growth / 2 {
                growth.halfway.get_or_insert(length);
            }
            return false;
        }
        let (more, less) = GROWTH;
        let is_more = length * less >= growth.length * more && length >= growth.length + GROWTH_MIN;
        let has_grown = is_more && growth.halfway.is_none_or(|halfway| length > halfway);
        self.growth = None;
        has_grown
    }
}

#[cfg(test)]
#[path = "queue/tests.rs"]
mod tests;
