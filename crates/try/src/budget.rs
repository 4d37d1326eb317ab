//! How the time of a side-by-side run is spent: rounds, warm-up, length of a measurement.
//!
//! Pure arithmetic. Fewer rounds rather than a cold program: a just-in-time compiler that still compiles is measured
//! for what it will not be.

use std::time::Duration;

/// Times of one comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) rounds: usize,
    pub(super) warm_up: Duration,
    pub(super) time: Duration,
    /// There was not enough time to do it well.
    pub(super) is_short: bool,
}

/// What is to be fitted in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// Targets in each round.
    pub(super) targets: usize,
    /// What a sample takes beside load: starting, being ready, ending.
    pub(super) overhead: Duration,
    /// Load before a measurement.
    pub(super) warm_up: Duration,
    /// At least so many rounds.
    pub(super) rounds_min: usize,
}

/// More rounds make an interval narrower by less and less.
const ROUNDS_MAX: usize = 10;
/// Of a measurement that is good for its median and its 99th percentile, at a few thousand requests a second.
const TIME_GOOD: Duration = Duration::from_millis(800);
const TIME_MIN: Duration = Duration::from_millis(500);
/// A longer one says no more than another round would.
const TIME_MAX: Duration = Duration::from_secs(2);
/// What is done in any case.
const TIME_FLOOR: Duration = Duration::from_millis(200);
const ROUNDS_FLOOR: usize = 3;

/// The most rounds that fit; `None` where not even the fewest do.
pub(super) fn fit(budget: Duration, wanted: Wanted) -> Option<Times> {
    let time_with = |rounds: usize| {
        let samples = u32::try_from(rounds * wanted.targets.max(1)).unwrap_or(u32::MAX);
        (budget / samples).checked_sub(wanted.overhead + wanted.warm_up)
    };
    let rounds = (wanted.rounds_min..=ROUNDS_MAX)
        .rev()
        .find(|rounds| time_with(*rounds).is_some_and(|time| time >= TIME_GOOD))
        .unwrap_or(wanted.rounds_min);
    let time = time_with(rounds).filter(|time| *time >= TIME_MIN)?.min(TIME_MAX);
    Some(Times { rounds, warm_up: wanted.warm_up, time, is_short: false })
}

/// What is done where nothing fits: a poor measurement, which is called that.
pub(super) fn squeeze(budget: Duration, wanted: Wanted) -> Times {
    let samples = u32::try_from(ROUNDS_FLOOR * wanted.targets.max(1)).unwrap_or(u32::MAX);
    let left = (budget / samples).saturating_sub(wanted.overhead);
    let warm_up = (left / 2).clamp(TIME_FLOOR, wanted.warm_up.max(TIME_FLOOR));
    let time = left.saturating_sub(warm_up).clamp(TIME_FLOOR, TIME_MAX);
    Times { rounds: ROUNDS_FLOOR, warm_up, time, is_short: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn wanted(targets: usize, overhead_ms: u64) -> Wanted {
        Wanted { targets, overhead: Duration::from_millis(overhead_ms), warm_up: SECOND, rounds_min: 5 }
    }

    #[test]
    fn a_comparison_fits_into_its_time() {
        for (budget, targets, overhead_ms) in
            [(27, 2, 700), (33, 3, 600), (20, 2, 100), (300, 2, 100), (40, 4, 100)]
        {
            let wanted = wanted(targets, overhead_ms);
            let times = fit(SECOND * budget, wanted).unwrap();
            let samples = u32::try_from(times.rounds * targets).unwrap();
            let needed = (wanted.overhead + times.warm_up + times.time) * samples;
            assert!(needed <= SECOND * budget, "{needed:?} of {budget} s");
            assert!(times.rounds >= 5 && times.warm_up == SECOND && times.time >= TIME_MIN);
        }
        assert_eq!(fit(SECOND * 300, wanted(2, 100)).unwrap().rounds, ROUNDS_MAX);
    }

    #[test]
    fn where_nothing_fits_it_is_short_and_says_so() {
        assert_eq!(fit(SECOND * 10, wanted(2, 700)), None);
        let times = squeeze(SECOND * 10, wanted(2, 700));
        assert!(times.is_short && times.rounds == ROUNDS_FLOOR);
        assert_eq!(squeeze(Duration::ZERO, wanted(2, 700)).time, TIME_FLOOR);
    }
}
