//! How long an upstream takes to answer, for `peak_ewma`: a moving average that follows a peak at once and forgets it
//! slowly.
//!
//! The estimate is Finagle's (com.twitter.finagle.loadbalancer.distributor and `p2c` with PeakEwma; Linkerd and tower's
//! `load::PeakEwma` use the same): a slower answer replaces the average, a quicker one pulls it down by
//! `1 - e^(-elapsed / decay)`. Both numbers stand in one atomic, so that every core may write without a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::epoch::epoch;

/// The time in which a peak falls to a third; Finagle's default.
const DECAY: Duration = Duration::from_secs(10);

/// What an upstream counts as that has requests and never answered one, in seconds for each of them: Finagle's penalty.
/// One without requests costs nothing, so that it is tried.
const UNKNOWN_SECONDS: f64 = 1e6;

/// A moving average: bits of a 32-bit float of seconds above, milliseconds after the beginning below. 0: nothing known.
#[derive(Debug, Default)]
pub struct Latency(AtomicU64);

impl Latency {
    /// An answer took so long.
    pub fn observe(&self, took: Duration, now: Instant) {
        let (took, now) = (took.as_secs_f32().max(f32::MIN_POSITIVE), milliseconds(now));
        let mut before = self.0.load(Ordering::Relaxed);
        loop {
            let (average, at) = unpack(before);
            let average = if before == 0 || took > average {
                took
            } else {
                let kept = weight(now, at);
                average * kept + took * (1.0 - kept)
            };
            // A core's clock may be read before another one's that has written already: time never goes back.
            let at = if before != 0 && elapsed(now, at).is_zero() { at } else { now };
            match self.0.compare_exchange_weak(
                before,
                pack(average, at),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(newer) => before = newer,
            }
        }
    }

    /// What one more request would cost beside so many that are under way: less is better.
    pub fn cost(&self, in_flight: usize, now: Instant) -> f64 {
        let value = self.0.load(Ordering::Relaxed);
        if value == 0 {
            return in_flight as f64 * UNKNOWN_SECONDS;
        }
        let (average, at) = unpack(value);
        // Nobody may ask for a while an upstream that once was slow: what is remembered of it fades by itself.
        f64::from(average * weight(milliseconds(now), at)) * (in_flight as f64 + 1.0)
    }

    /// The average as it stands; `None` before the first answer.
    pub fn average(&self) -> Option<Duration> {
        let value = self.0.load(Ordering::Relaxed);
        (value != 0).then(|| Duration::try_from_secs_f32(unpack(value).0).unwrap_or(Duration::MAX))
    }
}

impl Clone for Latency {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}

fn pack(average: f32, at: u32) -> u64 {
    u64::from(average.to_bits()) << 32 | u64::from(at)
}

fn unpack(value: u64) -> (f32, u32) {
    (f32::from_bits((value >> 32) as u32), value as u32)
}

/// How much of the average is left that was written at `at`.
fn weight(now: u32, at: u32) -> f32 {
    (-elapsed(now, at).as_secs_f32() / DECAY.as_secs_f32()).exp()
}

/// The clock goes round in 49 days; what looks like the future was written by a core that was a moment faster.
fn elapsed(now: u32, at: u32) -> Duration {
    let since = now.wrapping_sub(at);
    Duration::from_millis(if since > u32::MAX / 2 { 0 } else { u64::from(since) })
}

fn milliseconds(moment: Instant) -> u32 {
    moment.saturating_duration_since(epoch()).as_millis() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn a_peak_counts_at_once_and_fades() {
        let (latency, start) = (Latency::default(), epoch());
        latency.observe(10 * MILLISECOND, start);
        latency.observe(200 * MILLISECOND, start);
        assert_eq!(latency.average().unwrap().as_millis(), 200);
        latency.observe(10 * MILLISECOND, start);
        assert_eq!(latency.average().unwrap().as_millis(), 200, "no time has passed");
        latency.observe(10 * MILLISECOND, start + DECAY);
        let third = latency.average().unwrap().as_millis();
        assert!((75..=85).contains(&third), "{third}");
        for second in 11..200 {
            latency.observe(10 * MILLISECOND, start + Duration::from_secs(second));
        }
        assert_eq!(latency.average().unwrap().as_millis(), 10);
    }

    #[test]
    fn many_quick_answers_pull_the_average_down_as_fast_as_few() {
        let average = |per_second: u32| {
            let (latency, start) = (Latency::default(), epoch());
            latency.observe(100 * MILLISECOND, start);
            for number in 1..=10 * per_second {
                latency.observe(MILLISECOND, start + Duration::from_secs(1) * number / per_second);
            }
            latency.average().unwrap().as_secs_f64()
        };
        let (few, many) = (average(1), average(5_000));
        assert!((few / many - 1.0).abs() < 0.05, "{few} {many}");
    }

    #[test]
    fn an_upstream_that_nobody_has_asked_is_tried_once_and_then_waited_for() {
        let (unknown, known, now) = (Latency::default(), Latency::default(), epoch());
        known.observe(MILLISECOND, now);
        assert!(unknown.cost(0, now) < known.cost(0, now));
        assert!(unknown.cost(1, now) > known.cost(1_000, now));
        assert!(known.cost(1, now) > known.cost(0, now));
    }

    #[test]
    fn a_clock_that_went_round_does_no_harm() {
        assert_eq!(elapsed(3, u32::MAX - 1), 5 * MILLISECOND);
        assert_eq!(elapsed(3, 4), Duration::ZERO);
    }
}
