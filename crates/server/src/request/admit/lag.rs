//! The rule about an application's event loop: how late it may be before requests are refused.
//!
//! PURE: lateness and chance are handed in. The supervisor measures, the gate asks. The rule is the one that people
//! know from toobusy-js (github.com/STRML/node-toobusy, `toobusy.js`): nobody is refused up to the longest lag that
//! is allowed, everybody from twice of it, and in between the share grows evenly.

use std::time::Duration;

/// What a new measurement weighs against those before it: a third, as in toobusy-js, so that one collection of
/// garbage refuses nobody and a loop that stays late is known after three measurements.
const SMOOTHING: f64 = 1.0 / 3.0;

/// The lag that counts after a measurement, exponentially smoothed.
#[must_use]
pub fn smoothed(before: Duration, measured: Duration) -> Duration {
    let seconds = SMOOTHING * measured.as_secs_f64() + (1.0 - SMOOTHING) * before.as_secs_f64();
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// Whether a request is refused at this lag, where `max` is allowed. `chance` is random, from 0 to below 1.
#[must_use]
pub fn refuses(lag: Duration, max: Duration, chance: f64) -> bool {
    if lag <= max {
        return false;
    }
    // A `max` of nothing divides by zero: the share is then infinite, and everybody is refused.
    let share = (lag - max).as_secs_f64() / max.as_secs_f64();
    chance < share
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_millis(70);

    fn share_refused_at(milliseconds: u64) -> f64 {
        let lag = Duration::from_millis(milliseconds);
        let refused = (0..1_000).filter(|step| refuses(lag, MAX, f64::from(*step) / 1_000.0)).count();
        refused as f64 / 1_000.0
    }

    #[test]
    fn up_to_the_longest_lag_nobody_is_refused_and_from_twice_of_it_everybody() {
        for (milliseconds, share) in [(0, 0.0), (69, 0.0), (70, 0.0), (105, 0.5), (140, 1.0), (10_000, 1.0)] {
            let refused = share_refused_at(milliseconds);
            assert!((refused - share).abs() < 0.002, "at {milliseconds} ms {refused} instead of {share}");
        }
    }

    #[test]
    fn without_any_lag_allowed_every_late_loop_refuses() {
        assert!(!refuses(Duration::ZERO, Duration::ZERO, 0.0));
        assert!(refuses(Duration::from_micros(1), Duration::ZERO, 0.999));
        assert!(refuses(Duration::MAX, Duration::from_nanos(1), 0.999));
    }

    #[test]
    fn one_late_turn_refuses_nobody_and_three_of_them_do() {
        let late = 2 * MAX;
        let once = smoothed(Duration::ZERO, late);
        assert!(!refuses(once, MAX, 0.0), "one of 140 ms counts as {once:?}");
        let thrice = smoothed(smoothed(once, late), late);
        assert!(refuses(thrice, MAX, 0.3), "three of 140 ms count as {thrice:?}");
    }

    #[test]
    fn a_loop_that_turns_again_refuses_nobody_after_two_measurements() {
        let lag = smoothed(smoothed(2 * MAX, Duration::ZERO), Duration::ZERO);
        assert!(!refuses(lag, MAX, 0.0), "{lag:?}");
    }

    #[test]
    fn the_longest_durations_do_not_overflow() {
        assert_eq!(smoothed(Duration::MAX, Duration::MAX), Duration::MAX);
    }
}
