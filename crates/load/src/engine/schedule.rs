//! When the requests of an open loop are meant to begin.
//!
//! Owns the arithmetic of arrivals: rates that change evenly are integrated exactly, so that a ramp has as many
//! arrivals as the area under it. Knows no clock; times are nanoseconds from the begin of the load. Threads share
//! the arrivals without speaking to each other: of evenly spaced ones each takes every n-th, and independent
//! Poisson streams of a part of the rate add up to one of the whole (Kingman, Poisson Processes, 1993, section
//! 2.2).

use std::time::Duration;

use crate::plan::{Arrivals, Phase, Spacing};

/// The arrivals of one thread, in rising order.
#[derive(Debug)]
pub(super) struct Schedule {
    phases: Vec<Piece>,
    spacing: Spacing,
    random: fastrand::Rng,
    /// Arrivals of all threads together until the next one of this thread.
    reached: f64,
    /// How many of all arrivals go by with each one of this thread.
    stride: f64,
    /// The phase of the last one.
    current: usize,
}

/// A phase with where it begins.
#[derive(Debug, Clone, Copy)]
struct Piece {
    /// Seconds from the begin of the load.
    at: f64,
    /// Arrivals before it.
    before: f64,
    from: f64,
    to: f64,
    seconds: f64,
}

impl Schedule {
    /// The arrivals of the thread `thread` of `threads`. During the warm-up the rate is that of the first phase's
    /// begin; the phases begin after it.
    pub(super) fn new(
        arrivals: &Arrivals,
        warm_up: Duration,
        (thread, threads): (usize, usize),
        seed: u64,
    ) -> Schedule {
        let first = arrivals.phases.first().map_or(0.0, |phase| phase.from);
        let warm = Phase { from: first, to: first, length: warm_up };
        let last = arrivals.phases.last().map_or(0.0, |phase| phase.to);
        let rest = Phase { from: last, to: last, length: Duration::MAX };
        let (mut at, mut before) = (0.0, 0.0);
        let mut pieces = Vec::with_capacity(arrivals.phases.len() + 2);
        for phase in std::iter::once(&warm).chain(&arrivals.phases).chain(std::iter::once(&rest)) {
            let seconds = phase.length.as_secs_f64();
            pieces.push(Piece { at, before, from: phase.from, to: phase.to, seconds });
            at += seconds;
            before += (phase.from + phase.to) / 2.0 * seconds;
        }
        let mut random = fastrand::Rng::with_seed(seed ^ (thread as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let stride = threads.max(1) as f64;
        let reached = match arrivals.spacing {
            Spacing::Constant => thread as f64,
            Spacing::Poisson => exponential(&mut random) * stride,
        };
        Schedule { phases: pieces, spacing: arrivals.spacing, random, reached, stride, current: 0 }
    }

    /// Until when, seconds, so many arrivals come; `None` where no more will.
    fn time_of(&mut self, reached: f64) -> Option<f64> {
        loop {
            let piece = self.phases.get(self.current)?;
            let next = self.phases.get(self.current + 1);
            if next.is_some_and(|next| reached >= next.before) {
                self.current += 1;
                continue;
            }
            let inside = reached - piece.before;
            if piece.from <= 0.0 && piece.to <= 0.0 {
                // Nobody comes in this phase, and the last of the phases never ends.
                next?;
                self.current += 1;
                continue;
            }
            let slope = if piece.from == piece.to { 0.0 } else { (piece.to - piece.from) / piece.seconds };
            // The solution of from t + slope t^2 / 2 = inside that does not lose digits to a difference.
            let root = slope.mul_add(2.0 * inside, piece.from * piece.from).max(0.0).sqrt();
            let divisor = piece.from + root;
            let seconds = if divisor > 0.0 { 2.0 * inside / divisor } else { 0.0 };
            return seconds.is_finite().then(|| piece.at + seconds.min(piece.seconds));
        }
    }
}

impl Iterator for Schedule {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let reached = self.reached;
        let seconds = self.time_of(reached)?;
        self.reached += match self.spacing {
            Spacing::Constant => self.stride,
            Spacing::Poisson => exponential(&mut self.random) * self.stride,
        };
        // Saturates at the largest, which no run reaches.
        Some((seconds * 1e9) as u64)
    }
}

/// Exponentially distributed with a mean of 1.
fn exponential(random: &mut fastrand::Rng) -> f64 {
    // 1 - [0, 1) is never 0, whose logarithm is infinite.
    -(1.0 - random.f64()).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn phase(from: f64, to: f64, seconds: u64) -> Phase {
        Phase { from, to, length: Duration::from_secs(seconds) }
    }

    fn merged(spacing: Spacing, phases: Vec<Phase>, threads: usize, until: u64) -> Vec<u64> {
        let arrivals = Arrivals { spacing, phases };
        let mut all: Vec<u64> = (0..threads)
            .flat_map(|thread| {
                Schedule::new(&arrivals, Duration::ZERO, (thread, threads), 7).take_while(|at| *at < until)
            })
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn constant_arrivals_of_several_threads_are_evenly_spaced_together() {
        for threads in [1, 2, 3, 7] {
            let all = merged(Spacing::Constant, vec![phase(1000.0, 1000.0, 1)], threads, 5 * SECOND);
            assert_eq!(all.len(), 5000);
            assert!(all.iter().enumerate().all(|(place, at)| at.abs_diff(place as u64 * 1_000_000) <= 1));
        }
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_the_variance_of_their_distribution() {
        for threads in [1, 4] {
            let all = merged(Spacing::Poisson, vec![phase(1000.0, 1000.0, 1)], threads, 200 * SECOND);
            let gaps: Vec<f64> = all.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e9).collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            // 200,000 draws: the mean is within 5 standard errors of 1 ms, 1.2 %.
            assert!((mean * 1000.0 - 1.0).abs() < 0.012, "{mean}");
            assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "{variance}");
            let over = gaps.iter().filter(|gap| **gap > 0.003).count() as f64 / gaps.len() as f64;
            assert!((over - (-3.0_f64).exp()).abs() < 0.002, "{over}");
        }
    }

    #[test]
    fn ramps_and_steps_have_as_many_arrivals_as_the_area_under_them() {
        let phases = vec![phase(0.0, 1000.0, 4), phase(1000.0, 1000.0, 1), phase(200.0, 100.0, 2)];
        let all = merged(Spacing::Constant, phases.clone(), 3, 9 * SECOND);
        let within = |from: u64, to: u64| {
            all.iter().filter(|at| (from * SECOND..to * SECOND).contains(*at)).count() as i64
        };
        // The last rate goes on.
        for ((from, to), expected) in
            [((0, 4), 2000), ((0, 2), 500), ((4, 5), 1000), ((5, 7), 300), ((7, 9), 200)]
        {
            assert!((within(from, to) - expected).abs() <= 1, "{from}..{to}: {}", within(from, to));
        }
        let poisson = merged(Spacing::Poisson, phases, 3, 7 * SECOND).len() as f64;
        // 3,300 expected, within 5 standard deviations.
        assert!((poisson - 3300.0).abs() < 5.0 * 3300.0_f64.sqrt(), "{poisson}");
    }

    #[test]
    fn a_warm_up_has_the_rate_of_the_begin_and_moves_the_phases_behind_it() {
        let arrivals = Arrivals { spacing: Spacing::Constant, phases: vec![phase(100.0, 300.0, 2)] };
        let all: Vec<u64> = Schedule::new(&arrivals, Duration::from_secs(1), (0, 1), 1)
            .take_while(|at| *at < 3 * SECOND)
            .collect();
        let warm = all.iter().filter(|at| **at < SECOND).count();
        assert!((warm, all.len()) == (100, 500), "{warm} of {}", all.len());
    }

    #[test]
    fn a_rate_that_falls_to_nothing_ends_and_one_of_nothing_never_begins() {
        let all = merged(Spacing::Constant, vec![phase(100.0, 0.0, 2)], 1, u64::MAX);
        assert!((99..=101).contains(&all.len()), "{}", all.len());
        assert!(merged(Spacing::Poisson, vec![phase(0.0, 0.0, 2)], 2, u64::MAX).is_empty());
        assert!(merged(Spacing::Constant, Vec::new(), 2, u64::MAX).is_empty());
        let later = merged(Spacing::Constant, vec![phase(0.0, 0.0, 2), phase(10.0, 10.0, 1)], 1, 3 * SECOND);
        assert_eq!(later.first(), Some(&(2 * SECOND)));
    }
}
