//! How long it takes after an overload until responses are as they were before it.
//!
//! Pure: the slices of a run in, a time out. Never takes a good moment for the end of a bad time: what counts is the
//! moment after which nothing is wrong any more.

use std::time::Duration;

use onehop_load::outcome::{Run, Slice};
use onehop_load::plan::{Arrivals, Pace, Phase, Spacing};

/// How long the overload lasts before the rate falls: queues with a wait of seconds are full by then.
const OVERLOAD: Duration = Duration::from_secs(3);
/// Responses are normal again where their p99 is no more than so many times that of the load before the overload.
const NORMAL_FACTOR: u32 = 3;

/// A load beyond capacity that falls to one within it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recovery {
    /// Requests per second of the overload.
    pub overload_per_second: f64,
    /// Requests per second after it.
    pub after_per_second: f64,
    /// How long is looked at after it.
    pub time: Duration,
}

impl Recovery {
    /// The whole load.
    pub(super) fn pace(&self, connections: usize) -> Pace {
        let phase = |rate, length| Phase { from: rate, to: rate, length };
        let phases = vec![phase(self.overload_per_second, OVERLOAD), phase(self.after_per_second, self.time)];
        Pace::Open { connections, arrivals: Arrivals { spacing: Spacing::Poisson, phases } }
    }

    /// How long the whole load lasts.
    pub(super) fn length(&self) -> Duration {
        OVERLOAD + self.time
    }

    /// How long the recovery took: at least one slice, which is the resolution, and the whole time where responses were not
    /// normal again.
    pub(super) fn took(&self, run: &Run, p99_before: Duration) -> Duration {
        let took = until_normal(&run.slices, run.slice_length, OVERLOAD, p99_before * NORMAL_FACTOR);
        took.unwrap_or(self.time).clamp(run.slice_length.min(self.time), self.time)
    }
}

/// One slow slice is the machine; another one so near to it is the server.
const NEAR: usize = 5;

/// The time from `from` until the begin of the first slice after which nobody is refused or lost, and no two slices near each
/// other are slower than `slow` at p99. `None` where that never comes.
fn until_normal(
    slices: &[Slice],
    slice_length: Duration,
    from: Duration,
    slow: Duration,
) -> Option<Duration> {
    let after: Vec<&Slice> = slices.iter().filter(|slice| slice.at >= from).collect();
    // Where nothing was answered somebody waited.
    let is_slow = |slice: &Slice| slice.good == 0 || slice.p99 > slow;
    let is_abnormal = |place: usize| {
        let (low, high) = (place.saturating_sub(NEAR), (place + NEAR + 1).min(after.len()));
        let slow_around =
            after.get(low..high).unwrap_or_default().iter().filter(|slice| is_slow(slice)).count();
        after.get(place).is_some_and(|slice| slice.bad > 0 || (is_slow(slice) && slow_around > 1))
    };
    match (0..after.len()).rfind(|place| is_abnormal(*place)) {
        None => (!after.is_empty()).then_some(Duration::ZERO),
        Some(last) if last + 1 == after.len() => None,
        Some(last) => Some((after.get(last)?.at + slice_length).saturating_sub(from)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_millis(100);
    const SWITCH: Duration = Duration::from_secs(1);
    const SLOW: Duration = Duration::from_millis(10);

    /// Each letter is a slice: `.` is normal, `s` slow, `r` has a refusal, `-` has no answer.
    fn until(letters: &str) -> Option<Duration> {
        let slices: Vec<Slice> = (0_u32..)
            .zip(letters.chars())
            .map(|(place, letter)| Slice {
                at: LENGTH * place,
                good: u64::from(letter != '-') * 12,
                bad: u64::from(letter == 'r'),
                p99: if letter == 's' { SLOW * 2 } else { SLOW / 2 },
                ..Slice::default()
            })
            .collect();
        until_normal(&slices, LENGTH, SWITCH, SLOW)
    }

    #[test]
    fn what_was_before_the_switch_does_not_count() {
        assert_eq!(until("rrrrsssrrr....."), Some(Duration::ZERO));
        assert_eq!(until("rrrrrrrrrr"), None, "nothing was seen of the time after it");
    }

    #[test]
    fn a_refusal_counts_whenever_it_comes() {
        assert_eq!(until("..........r......"), Some(LENGTH));
        assert_eq!(until("..........r.....r.."), Some(LENGTH * 7));
        assert_eq!(until("................r"), None);
    }

    #[test]
    fn slow_slices_count_where_there_is_more_than_one() {
        assert_eq!(until("..........ss......"), Some(LENGTH * 2));
        assert_eq!(until("..........s.....s.."), Some(Duration::ZERO), "far from each other: the machine");
        assert_eq!(until("..........s..-....."), Some(LENGTH * 4), "a time without answers is slow");
        assert_eq!(until("..........sssss"), None);
    }
}
