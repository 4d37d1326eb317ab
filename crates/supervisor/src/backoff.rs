//! How long a worker that ended is not started again.
//!
//! Pure: knows no clock and starts nothing. Workers that were started together and fail together count once.

use std::time::Duration;

use crate::limits::{
    CRASH_LOOP_LIFE, CRASH_LOOP_STARTS, RESTART_PAUSE_MAX, RESTART_PAUSE_MIN, WORKER_HEALTHY_AFTER,
};

/// What earlier ends mean for the next start.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    /// Ends in a row after a life that was not healthy.
    unhealthy: u32,
    /// Starts in a row that led to nothing.
    futile: u32,
    /// Grows with every end that counted; see [`Backoff::round`].
    round: u64,
}

impl Backoff {
    /// The round of a worker that starts now; hand it back when the worker ends.
    pub(crate) fn round(&self) -> u64 {
        self.round
    }

    /// A worker ended that was ready for this time, or never. Returns for how long no other is started. `spread` from 0 to 1 keeps the restarts of many
    /// applications apart.
    pub(crate) fn ended(&mut self, round: u64, ready_for: Option<Duration>, spread: f64) -> Duration {
        if ready_for.is_some_and(|life| life >= WORKER_HEALTHY_AFTER) {
            *self = Self { round: self.round + 1, ..Self::default() };
            return Duration::ZERO;
        }
        if round == self.round {
            self.round += 1;
            self.unhealthy = self.unhealthy.saturating_add(1);
            let is_futile = ready_for.is_none_or(|life| life < CRASH_LOOP_LIFE);
            self.futile = if is_futile { self.futile.saturating_add(1) } else { 0 };
        }
        // The first one after a healthy time may be an accident; one that never was ready is none.
        let doublings = match (self.unhealthy, ready_for) {
            (0 | 1, Some(_)) => return Duration::ZERO,
            (unhealthy, Some(_)) => unhealthy.saturating_sub(2),
            (unhealthy, None) => unhealthy.saturating_sub(1),
        };
        let pause = RESTART_PAUSE_MIN.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX));
        pause.min(RESTART_PAUSE_MAX).mul_f64(1.0 - SPREAD * spread.clamp(0.0, 1.0))
    }

    /// Whether workers fail so often that requests should not wait for one.
    pub(crate) fn is_crash_loop(&self) -> bool {
        self.futile >= CRASH_LOOP_STARTS
    }

    /// Starts in a row that led to nothing.
    pub(crate) fn futile(&self) -> u32 {
        self.futile
    }

    /// Forgets all ends: something has changed that may fix what failed.
    pub(crate) fn forget(&mut self) {
        *self = Self { round: self.round + 1, ..Self::default() };
    }
}

/// The share of a pause that chance may take away.
const SPREAD: f64 = 0.2;

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(lives: &[Option<u64>]) -> (Vec<u128>, bool) {
        let mut backoff = Backoff::default();
        let all = lives.iter().map(|life| {
            let round = backoff.round();
            backoff.ended(round, life.map(Duration::from_millis), 0.0).as_millis()
        });
        (all.collect(), backoff.is_crash_loop())
    }

    #[test]
    fn the_first_restart_after_a_life_is_immediate_and_later_ones_wait_twice_as_long_each() {
        let lives = [Some(2_000); 5];
        assert_eq!(pauses(&lives), (vec![0, 100, 200, 400, 800], false));
        assert_eq!(pauses(&[Some(60_000); 3]).0, [0, 0, 0]);
        assert_eq!(pauses(&[None; 3]), (vec![100, 200, 400], true));
        assert_eq!(pauses(&[None; 40]).0.last(), Some(&10_000));
    }

    #[test]
    fn dying_within_a_second_of_being_ready_three_times_is_a_crash_loop() {
        assert!(pauses(&[Some(10), Some(10), Some(10)]).1);
        assert!(!pauses(&[Some(10), Some(10), Some(1_500)]).1);
        assert!(!pauses(&[None, None]).1);
    }

    #[test]
    fn workers_that_fail_together_count_once() {
        let mut backoff = Backoff::default();
        let round = backoff.round();
        for _ in 0..8 {
            assert_eq!(backoff.ended(round, None, 0.0).as_millis(), 100);
        }
        assert!(!backoff.is_crash_loop());
    }

    #[test]
    fn chance_only_shortens_a_pause() {
        for spread in [0.0, 0.5, 1.0, 7.0] {
            let pause = Backoff::default().ended(0, None, spread);
            assert!(pause <= RESTART_PAUSE_MIN && pause >= RESTART_PAUSE_MIN.mul_f64(0.79), "{pause:?}");
        }
    }
}
