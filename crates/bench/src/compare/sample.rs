//! Runs and samples for tests of what is concluded from them. Owns their numbers; starts nothing.

use std::time::Duration;

use onehop_load::measure::Usage;
use onehop_load::outcome::{Run, Slice, Tally};
use onehop_load::plan::Pace;

use super::Sample;

/// A usual pace.
pub(super) const CLOSED: Pace = Pace::Closed { connections: 8, think: Duration::ZERO };

/// Slices of a tenth of a second.
pub(super) fn slices(counts: &[u64], micros: &[u64]) -> Vec<Slice> {
    let times = (0..).map(|index| Duration::from_millis(100) * index);
    let slice = |((&good, &micros), at)| {
        let took = Duration::from_micros(micros);
        Slice { at, good, bad: 0, p50: took, p99: took, max: took }
    };
    counts.iter().zip(micros).zip(times).map(slice).collect()
}

/// A second with so many whole answers, all of this latency.
pub(super) fn run(good: u64, micros: u64) -> Run {
    let mut total = Tally { good, bytes_read: good * 1000, ..Tally::default() };
    total.latency.record_many(Duration::from_micros(micros), good);
    if good > 0 {
        total.statuses.insert(200, good);
    }
    Run {
        by_request: vec![total.clone()],
        slices: slices(&[good / 10; 10], &[micros; 10]),
        ..crate::sample::run_of_a_second(total)
    }
}

/// A measurement with this CPU time in microseconds per request.
pub(super) fn sample(target: usize, round: usize, good: u64, micros: u64, cpu_per_request: f64) -> Sample {
    let usage = Usage {
        cpu: Duration::from_secs_f64(cpu_per_request * good as f64 / 1e6),
        wall: Duration::from_secs(1),
        memory_median: 10_000_000,
        memory_p99: 11_000_000,
        switches_voluntary: 500,
        switches_involuntary: 10,
        io_bytes: good * 1100,
        processes: 2,
        threads: 2,
    };
    let cold_start = Some(Duration::from_millis(20));
    Sample {
        target,
        round,
        run: run(good, micros),
        usage: Some(usage),
        cold_start,
        idle_memory: None,
        after_idle: None,
        recovery: None,
        marks: Vec::new(),
    }
}
