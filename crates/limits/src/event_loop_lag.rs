//! How late an application's event loop may be before requests are rejected.
//!
//! Pure: lag and chance are arguments. The caller measures. The rule is that of toobusy-js (github.com/STRML/node-toobusy,
//! `toobusy.js`): up to the longest lag that is allowed no request is rejected, from twice of it all are, and in between
//! the share grows evenly.

use std::time::Duration;

/// What a new measurement weighs against those before it: a third, as in toobusy-js, so that one garbage
/// collection rejects no request and a loop that stays late is known after three measurements.
const SMOOTHING: f64 = 1.0 / 3.0;

/// The lag that counts after a measurement, exponentially smoothed.
#[must_use]
pub fn smoothed(before: Duration, measured: Duration) -> Duration {
    let seconds = SMOOTHING * measured.as_secs_f64() + (1.0 - SMOOTHING) * before.as_secs_f64();
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// The lag that counts while a ping has not been answered for so long: an event loop that is stuck cannot report its lag,
/// which is at least that. It is not smoothed, since it ends at once with the answer.
#[must_use]
pub fn with_unanswered(smoothed: Duration, unanswered: Option<Duration>) -> Duration {
    smoothed.max(unanswered.unwrap_or_default())
}

/// Whether a request is rejected at this lag, where `max` is allowed. `chance` is random, from 0 to below 1.
#[must_use]
pub fn rejects(lag: Duration, max: Duration, chance: f64) -> bool {
    if lag <= max {
        return false;
    }
    // A `max` of zero divides by zero: the share is then infinite, and every request is rejected.
    let share = (lag - max).as_secs_f64() / max.as_secs_f64();
    chance < share
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often a busy event loop is measured.
    const PING_PERIOD: Duration = Duration::from_millis(50);

    const MAX: Duration = Duration::from_millis(70);

    fn share_refused_at(milliseconds: u64) -> f64 {
        let lag = Duration::from_millis(milliseconds);
        let refused = (0..1_000).filter(|step| rejects(lag, MAX, f64::from(*step) / 1_000.0)).count();
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
    fn without_any_lag_allowed_every_late_loop_rejects() {
        assert!(!rejects(Duration::ZERO, Duration::ZERO, 0.0));
        assert!(rejects(Duration::from_micros(1), Duration::ZERO, 0.999));
        assert!(rejects(Duration::MAX, Duration::from_nanos(1), 0.999));
    }

    #[test]
    fn one_late_turn_refuses_nobody_and_three_of_them_do() {
        let late = 2 * MAX;
        let once = smoothed(Duration::ZERO, late);
        assert!(!rejects(once, MAX, 0.0), "one of 140 ms counts as {once:?}");
        let thrice = smoothed(smoothed(once, late), late);
        assert!(rejects(thrice, MAX, 0.3), "three of 140 ms count as {thrice:?}");
    }

    #[test]
    fn a_loop_that_turns_again_refuses_nobody_after_two_measurements() {
        let lag = smoothed(smoothed(2 * MAX, Duration::ZERO), Duration::ZERO);
        assert!(!rejects(lag, MAX, 0.0), "{lag:?}");
    }

    /// An event loop that each request keeps for 5 ms, for half a minute: the share of its time in which it had work, and
    /// the longest that a request waited before its turn.
    fn busy_and_longest_wait(load: f64) -> (f64, f64) {
        const STEP: f64 = 0.001;
        let period = PING_PERIOD.as_secs_f64();
        let mut random = fastrand::Rng::with_seed(7);
        let (mut backlog, mut busy, mut longest) = (0.0_f64, 0.0, 0.0_f64);
        let (mut lag, mut asked, mut ask_at) = (Duration::ZERO, None, 0.0);
        for step in 0..30_000 {
            let now = f64::from(step) * STEP;
            // A question is answered when the loop has done what had come before it.
            if let Some((_, answered_at, late)) = asked
                && now >= answered_at
            {
                lag = smoothed(lag, Duration::from_secs_f64(late));
                asked = None;
            }
            if now >= ask_at && asked.is_none() {
                asked = Some((now, now + backlog, backlog));
                ask_at = now + period;
            }
            let unanswered = asked.map(|(since, ..)| Duration::from_secs_f64(now - since));
            let counts = with_unanswered(lag, unanswered);
            let mut arrivals = load * STEP / 0.005;
            while arrivals > 0.0 {
                if random.f64() < arrivals && !rejects(counts, MAX, random.f64()) {
                    longest = longest.max(backlog);
                    backlog += 0.005;
                }
                arrivals -= 1.0;
            }
            busy += backlog.min(STEP);
            backlog = (backlog - STEP).max(0.0);
        }
        (busy / 30.0, longest)
    }

    #[test]
    fn at_any_load_the_loop_stays_busy_and_nobody_waits_for_more_than_two_seconds() {
        for load in [1.0, 2.0, 5.0, 10.0] {
            let (busy, longest) = busy_and_longest_wait(load);
            assert!(busy >= 0.9 && longest <= 2.0, "load {load}: {busy} busy, {longest} s at most");
        }
        let (_, longest) = busy_and_longest_wait(0.5);
        assert!(longest < MAX.as_secs_f64(), "{longest}");
    }

    #[test]
    fn a_loop_that_answers_nothing_is_as_late_as_its_silence_is_long() {
        let share = |unanswered| {
            let counts = with_unanswered(Duration::from_millis(20), unanswered);
            (0..1_000).filter(|step| rejects(counts, MAX, f64::from(*step) / 1_000.0)).count()
        };
        assert_eq!(share(None), 0);
        assert_eq!(share(Some(MAX)), 0);
        assert_eq!(share(Some(MAX * 3 / 2)), 500);
        assert_eq!(share(Some(2 * MAX)), 1_000);
    }

    #[test]
    fn the_longest_durations_do_not_overflow() {
        assert_eq!(smoothed(Duration::MAX, Duration::MAX), Duration::MAX);
    }
}
