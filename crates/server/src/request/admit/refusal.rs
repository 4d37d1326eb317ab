//! What those are told that are not let in, and how often that is written down.
//!
//! A refusal costs less than any answer: nothing is made for it that is not there already.

use std::cell::Cell;

use crate::limits::{RETRY_AFTER_SECONDS_MAX, SHED_LINES_PER_TICK_MAX};
use crate::request::answer::Answer;

/// Why a request was not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// As many are in flight as may be, and nobody may wait.
    InFlight,
    /// As many are in flight and as many wait as may.
    QueueFull,
    /// It waited for as long as one may.
    WaitedOut,
    /// It waited in a queue that stands, where the newest come first.
    QueueAge,
    /// It waited, and one of a higher priority took its place in a queue that was full.
    Outranked,
    /// The application's event loop is late.
    Lag,
}

impl Cause {
    /// Every cause, in the order of their numbers.
    pub const ALL: [Self; 6] =
        [Self::InFlight, Self::QueueFull, Self::WaitedOut, Self::QueueAge, Self::Outranked, Self::Lag];

    /// The `cause` label of what counts refusals by limit.
    pub fn name(self) -> &'static str {
        match self {
            Self::InFlight => "in_flight",
            Self::QueueFull => "queue_full",
            Self::WaitedOut => "wait",
            Self::QueueAge => "queue_age",
            Self::Outranked => "outranked",
            Self::Lag => "lag",
        }
    }

    /// The same among all reasons for which a request was not answered.
    pub fn fault_name(self) -> &'static str {
        match self {
            Self::InFlight => "limit_in_flight",
            Self::QueueFull => "limit_queue_full",
            Self::WaitedOut => "limit_wait",
            Self::QueueAge => "limit_queue_age",
            Self::Outranked => "limit_outranked",
            Self::Lag => "limit_lag",
        }
    }
}

/// Says when asking again makes sense (RFC 9110 section 10.2.3).
pub(crate) fn fill(answer: &mut Answer, retry_after_seconds: u32) {
    let number = retry_after_seconds.clamp(1, RETRY_AFTER_SECONDS_MAX) as usize - 1;
    answer.fields.add("Retry-After", SECONDS.get(number).copied().unwrap_or("1").as_bytes());
}

const SECONDS: [&str; RETRY_AFTER_SECONDS_MAX as usize] = [
    "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19",
    "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30",
];

/// Which refusals a core writes into access logs: the first ones of each tick.
pub(crate) struct Sampling {
    left: Cell<u32>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { left: Cell::new(SHED_LINES_PER_TICK_MAX) }
    }
}

impl Sampling {
    /// Whether this one is written.
    pub(crate) fn takes(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }

    /// A tick has passed.
    pub(crate) fn tick(&self) {
        self.left.set(SHED_LINES_PER_TICK_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_that_is_told_is_written_as_such() {
        for seconds in 1..=RETRY_AFTER_SECONDS_MAX {
            let mut answer = Answer::default();
            fill(&mut answer, seconds);
            assert_eq!(answer.fields.get("retry-after"), Some(seconds.to_string().as_bytes()));
        }
        let mut answer = Answer::default();
        fill(&mut answer, 0);
        assert_eq!(answer.fields.get("retry-after"), Some(&b"1"[..]));
    }

    #[test]
    fn a_flood_of_refusals_is_a_few_lines_in_each_tick() {
        let sampling = Sampling::default();
        let written = (0..10_000).filter(|_| sampling.takes()).count();
        assert_eq!(written, SHED_LINES_PER_TICK_MAX as usize);
        sampling.tick();
        assert!(sampling.takes());
    }
}
