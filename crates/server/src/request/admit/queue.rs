//! Those who wait to be let in: the highest priority first, and in each first come first served while the queue is
//! emptied as it should be, newest first while it stands.
//!
//! A queue that stands makes everybody late, and first come first served then answers those whose clients are about to
//! leave. So while the first one has waited for long, and that for long (as in CoDel, RFC 8289 section 4.2, which looks
//! at the age of what stands first and not at the length), or more wait for a while than can be let in in time, the
//! newest are let in, and what has waited for more than the target is told so (adaptive LIFO and controlled delay; Maurer,
//! "Fail at Scale", ACM Queue 13(8), 2015), as is at once who would come to wait so long. Once it was empty, and nobody
//! was refused for a while, it is in order again.
//!
//! Knows who waits and in which order; not who has room. The time is an argument.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use onehop_config::checked::limit::Priority;
use tokio::sync::oneshot;

use super::gate::Word;
use crate::limits::{
    LIMIT_QUEUE_LATE_PART, LIMIT_QUEUE_LENGTH_PART, LIMIT_QUEUE_STANDING_PART, LIMIT_QUEUE_TARGET_PART,
};

/// The pace at which a queue is emptied is that of so long, …
const PACE_TIME: Duration = Duration::from_millis(500);

/// … and of so many at least: some answer many at a time.
const PACE_BY_MIN: u64 = 16;

/// It is noted so often how many were let in.
const PACE_MARK_PERIOD: Duration = Duration::from_millis(50);

/// However slowly it is emptied, so many wait in a queue that stands: enough for a pace that varies.
const STANDING_MIN: u128 = 8;

/// So many are sent away at a time: each is an answer to write, and others want to be served meanwhile.
const STALE_AT_ONCE: usize = 4;

/// Where somebody is told that he waits no more.
pub(super) type Sender = oneshot::Sender<Word>;

/// Whom a queue knows by this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket {
    priority: Priority,
    /// Grows with every one who comes.
    number: u64,
}

/// Invariant: `length` is the sum of the classes' lengths, and never above `length_max`.
#[derive(Debug)]
pub(super) struct Queue {
    /// By priority, the lowest first.
    classes: [Class; 3],
    length: usize,
    length_max: usize,
    /// The number of who comes next.
    next: u64,
    ages: Ages,
}

/// Whether there is room for one more.
#[derive(Debug)]
pub(super) enum Room {
    /// There is.
    Free,
    /// There is, once this one, who is of a lower priority, is told. He is out of the queue.
    InsteadOf(Sender),
    /// The same of one whose client has closed its sending side.
    InsteadOfHalfClosed(Sender),
    /// There is none.
    None,
}

/// What tells a queue that is emptied from one that stands.
#[derive(Debug, Clone, Copy)]
struct Ages {
    /// The first one of a queue that is emptied has not waited for so long.
    late: Duration,
    /// One whose first one had, for so long, stands.
    standing: Duration,
    /// In one that stands nobody waits for longer. One in which too many wait for so long stands.
    target: Duration,
    /// Nobody waits for longer.
    wait: Duration,
}

/// Those of one priority.
#[derive(Debug, Default)]
struct Class {
    /// By number, so the first one has waited for the longest time.
    waiting: BTreeMap<u64, Waiter>,
    /// The numbers of those among them whose clients have closed their sending sides.
    half_closed: BTreeSet<u64>,
    health: Health,
    /// How many were let in since it was empty, …
    taken: u64,
    /// … and had been at some moments, oldest first; see PACE_TIME.
    marks: VecDeque<(Instant, u64)>,
    /// Since when more wait than are let in in time, or nearly so.
    full_since: Option<Instant>,
    /// When somebody was refused last because it stood.
    refused: Option<Instant>,
}

#[derive(Debug)]
struct Waiter {
    since: Instant,
    to: Sender,
}

/// How a class is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Health {
    /// Its first one has not waited for long.
    #[default]
    Emptied,
    /// Its first one had, at every look since then.
    Late { since: Instant },
    /// That was so for long, and it was not empty since.
    Standing,
}

impl Queue {
    /// An empty queue of so many at most, in which one waits for so long at most.
    pub(super) fn new(length_max: usize, wait: Duration) -> Self {
        let ages = Ages {
            late: wait / LIMIT_QUEUE_LATE_PART,
            standing: wait / LIMIT_QUEUE_STANDING_PART,
            target: wait / LIMIT_QUEUE_TARGET_PART,
            wait,
        };
        Self { classes: Default::default(), length: 0, length_max, next: 0, ages }
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Whether somebody waits who comes before a newcomer, or came before him with the same priority.
    pub(super) fn is_ahead_of(&self, priority: Priority) -> bool {
        self.classes.iter().skip(priority as usize).any(|class| !class.waiting.is_empty())
    }

    /// Whether a newcomer may wait. In a queue that is full, one of no higher priority makes room whose client has closed
    /// its sending side and may have left; else the newest of the lowest priority for a higher one: he has waited for the
    /// shortest time. Of a class no more wait than are let in before they are too
    /// old: who would wait for nothing is told so at once.
    pub(super) fn make_room(&mut self, priority: Priority, now: Instant) -> Room {
        let ages = self.ages;
        let own = priority as usize;
        let is_class_full = self.classes.get_mut(own).is_some_and(|class| class.is_full(now, ages));
        if !is_class_full && self.length < self.length_max {
            return Room::Free;
        }
        let lowest = if is_class_full { own } else { 0 };
        let mut candidates = self.classes.iter_mut().take(own + 1).skip(lowest);
        if let Some(waiter) = candidates.find_map(Class::take_half_closed) {
            self.length -= 1;
            return Room::InsteadOfHalfClosed(waiter.to);
        }
        if is_class_full {
            return Room::None;
        }
        let mut lower = self.classes.iter_mut().take(own);
        let Some(outranked) = lower.find_map(|class| class.take_out(BTreeMap::pop_last)) else {
            return Room::None;
        };
        self.length -= 1;
        Room::InsteadOf(outranked.to)
    }

    /// One more. There must be room.
    pub(super) fn push(&mut self, priority: Priority, now: Instant, to: Sender) -> Ticket {
        debug_assert!(self.length < self.length_max, "room was made");
        let ticket = Ticket { priority, number: self.next };
        self.next += 1;
        if let Some(class) = self.classes.get_mut(priority as usize) {
            class.observe(now, self.ages);
            class.waiting.insert(ticket.number, Waiter { since: now, to });
            self.length += 1;
        }
        ticket
    }

    /// Takes out who is let in next.
    pub(super) fn take_next(&mut self, now: Instant) -> Option<Sender> {
        let ages = self.ages;
        let taken = self.classes.iter_mut().rev().find_map(|class| {
            class.observe(now, ages);
            class.take(now)
        });
        let waiter = taken?;
        self.length -= 1;
        Some(waiter.to)
    }

    /// The client of one who waits has closed its sending side.
    pub(super) fn half_closed(&mut self, ticket: Ticket) {
        if let Some(class) = self.classes.get_mut(ticket.priority as usize)
            && class.waiting.contains_key(&ticket.number)
        {
            class.half_closed.insert(ticket.number);
        }
    }

    /// Takes out some of those who have waited for too long in a class that stands, and first those whose clients have
    /// closed their sending sides. Its newest stays, however old: what stands
    /// is not to become a gap (RFC 8289 section 4.2 never drops the last one either).
    pub(super) fn take_stale(&mut self, now: Instant) -> Vec<Sender> {
        let mut stale = Vec::new();
        for class in &mut self.classes {
            class.observe(now, self.ages);
            while class.health == Health::Standing && stale.len() < STALE_AT_ONCE && class.waiting.len() > 1 {
                let is_old = class.age(now).is_some_and(|age| age > self.ages.target);
                let taken = match class.take_half_closed() {
                    None if is_old => class.take_out(BTreeMap::pop_first),
                    taken => taken,
                };
                let Some(waiter) = taken else { break };
                stale.push(waiter.to);
                class.refused = Some(now);
            }
        }
        self.length -= stale.len();
        stale
    }

    /// One who waits no more; `false` where he had been taken out already.
    pub(super) fn remove(&mut self, ticket: Ticket) -> bool {
        let class = self.classes.get_mut(ticket.priority as usize);
        let taken = class.and_then(|class| class.take_out(|waiting| waiting.remove_entry(&ticket.number)));
        let was_there = taken.is_some();
        self.length -= usize::from(was_there);
        was_there
    }
}

impl Class {
    /// How long the first one has waited.
    fn age(&self, now: Instant) -> Option<Duration> {
        let (_, first) = self.waiting.first_key_value()?;
        Some(now.saturating_duration_since(first.since))
    }

    /// Takes out the one that `pop` takes.
    fn take_out(
        &mut self,
        pop: impl FnOnce(&mut BTreeMap<u64, Waiter>) -> Option<(u64, Waiter)>,
    ) -> Option<Waiter> {
        let (number, waiter) = pop(&mut self.waiting)?;
        self.half_closed.remove(&number);
        Some(waiter)
    }

    /// Takes out the oldest one whose client has closed its sending side.
    fn take_half_closed(&mut self) -> Option<Waiter> {
        let number = self.half_closed.pop_first()?;
        self.waiting.remove(&number)
    }

    /// Takes out who is let in next.
    fn take(&mut self, now: Instant) -> Option<Waiter> {
        let waiter = match self.health {
            Health::Standing => self.take_out(BTreeMap::pop_last),
            Health::Emptied | Health::Late { .. } => self.take_out(BTreeMap::pop_first),
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

    /// Whether there is no room for a newcomer, which is so only in a class that stands: where for a while more wait than
    /// are let in before they are too old, it does.
    fn is_full(&mut self, now: Instant, ages: Ages) -> bool {
        let length = self.waiting.len() as u128;
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

    /// How many are let in within this time at the pace of now; one at least, and no end of them where it is not known.
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
            // What floods it goes on: without this the next ones would be served late, and then refused all at once.
            return;
        }
        if self.waiting.is_empty() {
            self.taken = 0;
            self.marks.clear();
            self.full_since = None;
        }
        self.health = match (self.health, self.age(now)) {
            (_, None) => Health::Emptied,
            (Health::Standing, Some(_)) => Health::Standing,
            (_, Some(age)) if age < ages.late => Health::Emptied,
            (Health::Emptied, Some(_)) => Health::Late { since: now },
            (Health::Late { since }, Some(_)) if now.saturating_duration_since(since) >= ages.standing => {
                Health::Standing
            }
            (late @ Health::Late { .. }, Some(_)) => late,
        };
    }
}

#[cfg(test)]
mod tests;
