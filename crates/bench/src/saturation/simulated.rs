//! Searches of servers that are simulated arrival by arrival: their highest rate is known, and no machine's noise
//! decides whether a test passes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use onehop_load::latency::Latencies;
use onehop_load::outcome::{Failures, Run, Tally};
use onehop_load::plan::Spacing;

use super::{Limit, Measurement, NoRate, PROBE_CONNECTIONS, Saturation, Settings, Verdict, find};

/// A server with a queue.
struct Simulated {
    /// Requests that it works at at a time.
    workers: usize,
    /// Seconds that one takes.
    service: f64,
    /// Service times are exponentially distributed, else they vary by a tenth.
    is_exponential: bool,
    /// Requests that it lets wait; it refuses more.
    waiting_max: usize,
    /// The share of measurements in which the machine runs nothing for 150 ms.
    stalls: f64,
    spacing: Spacing,
    random: fastrand::Rng,
    measurements: usize,
}

impl Simulated {
    fn new(workers: usize, service: f64) -> Simulated {
        Simulated {
            workers,
            service,
            is_exponential: false,
            waiting_max: usize::MAX,
            stalls: 0.0,
            spacing: Spacing::Poisson,
            random: fastrand::Rng::with_seed(7),
            measurements: 0,
        }
    }

    fn capacity(&self) -> f64 {
        self.workers as f64 / self.service
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.random.f64()).ln()
    }

    fn measure(&mut self, measurement: Measurement) -> Run {
        self.measurements += 1;
        match measurement {
            Measurement::Probe => {
                let busy = self.workers.min(PROBE_CONNECTIONS) as f64;
                let completed = (busy / self.service) as u64;
                run(completed, Latencies::new(), 0, (completed, Duration::from_secs(1)))
            }
            Measurement::Drain => run(1, Latencies::new(), 0, (1, Duration::from_secs(1))),
            Measurement::Step { rate, time, .. } => self.step(rate, time),
        }
    }

    /// First come, first served, with a warm-up of a second.
    fn step(&mut self, rate: f64, time: Duration) -> Run {
        let (warm_up, end) = (1.0, 1.0 + time.as_secs_f64());
        let stall_at = if self.random.f64() < self.stalls { warm_up + self.random.f64() } else { f64::MAX };
        let mut free: BinaryHeap<Reverse<u64>> = (0..self.workers).map(|_| Reverse(0)).collect();
        let mut waiting: VecDeque<f64> = VecDeque::new();
        let (mut latency, mut good, mut refused, mut in_time) = (Latencies::new(), 0, 0, 0_u64);
        let mut at = 0.0;
        loop {
            at += match self.spacing {
                Spacing::Constant => 1.0 / rate,
                Spacing::Poisson => self.exponential() / rate,
            };
            if at >= end {
                break;
            }
            while waiting.front().is_some_and(|starts| *starts <= at) {
                waiting.pop_front();
            }
            if waiting.len() >= self.waiting_max {
                refused += u64::from(at >= warm_up);
                continue;
            }
            let Reverse(first) = free.pop().unwrap();
            let mut starts = (first as f64 / 1e9).max(at);
            if (stall_at..stall_at + 0.15).contains(&starts) {
                starts = stall_at + 0.15;
            }
            waiting.push_back(starts);
            let varied =
                if self.is_exponential { self.exponential() } else { 0.95 + 0.1 * self.random.f64() };
            let ends = starts + self.service * varied;
            free.push(Reverse((ends * 1e9) as u64));
            in_time += u64::from((warm_up..end).contains(&ends));
            if at >= warm_up {
                good += 1;
                latency.record(Duration::from_secs_f64(ends - at));
            }
        }
        run(good, latency, refused, (in_time, time))
    }

    fn search(&mut self, limit: Limit) -> Saturation {
        find(limit, &Settings::default(), &mut |measurement| Ok(self.measure(measurement))).unwrap()
    }
}

fn run(good: u64, latency: Latencies, refused: u64, (completed, elapsed): (u64, Duration)) -> Run {
    let failures = Failures { closed: refused, ..Failures::default() };
    let total = Tally { good, latency, failures, ..Tally::default() };
    Run { elapsed, completed, ..crate::sample::run_of_a_second(total) }
}

fn p99(millis: u64) -> Limit {
    Limit { share: 0.99, latency: Duration::from_millis(millis), failures: 0.001 }
}

/// Searches, and expects what is found to be within 10 % of what is true.
fn check(mut server: Simulated, limit: Limit, truth: f64) {
    // Large ones take long, and chance is small among many requests.
    let seeds = if truth > 20_000.0 { 1 } else { 5 };
    for seed in 0..seeds {
        server.random = fastrand::Rng::with_seed(seed);
        server.measurements = 0;
        let found = server.search(limit);
        let rates: Vec<(f64, Verdict)> =
            found.points.iter().map(|point| (point.offered, point.verdict)).collect();
        let best = found.best.unwrap_or_else(|why| panic!("{why}: {rates:?}"));
        assert!((best / truth - 1.0).abs() < 0.1, "seed {seed}: {best} is not near {truth}: {rates:?}");
        assert!(!found.load_was_the_limit);
        assert!(server.measurements < 50, "{} measurements", server.measurements);
    }
}

/// The highest rate of a queue with one worker and exponential service times (M/M/1) under a limit: the time in it is
/// exponentially distributed with the rate `capacity - arrivals`.
fn of_exponential(capacity: f64, limit: Limit) -> f64 {
    capacity + (1.0 - limit.share).ln() / limit.latency.as_secs_f64()
}

#[test]
fn a_sharp_knee_is_found() {
    let server = Simulated::new(2, 0.001);
    let capacity = server.capacity();
    check(server, p99(50), capacity);
}

#[test]
fn a_sharp_knee_is_found_on_a_machine_that_stalls_in_every_tenth_step() {
    let server = Simulated { stalls: 0.1, ..Simulated::new(2, 0.001) };
    let capacity = server.capacity();
    check(server, p99(50), capacity);
}

#[test]
fn latency_that_rises_slowly_is_followed_to_the_limit() {
    let server = Simulated { is_exponential: true, ..Simulated::new(1, 0.001) };
    let truth = of_exponential(server.capacity(), p99(10));
    check(server, p99(10), truth);
}

#[test]
fn a_queue_that_grows_is_too_much_also_where_the_limit_allows_for_it() {
    let server = Simulated::new(4, 0.002);
    let capacity = server.capacity();
    check(server, p99(3000), capacity);
}

#[test]
fn a_server_that_refuses_what_is_too_much_is_found_by_its_refusals() {
    let server = Simulated { waiting_max: 80, ..Simulated::new(8, 0.004) };
    let capacity = server.capacity();
    check(server, p99(50), capacity);
}

#[test]
fn ten_requests_per_second_are_found() {
    let server = Simulated { spacing: Spacing::Constant, ..Simulated::new(1, 0.1) };
    let capacity = server.capacity();
    check(server, p99(300), capacity);
}

#[test]
fn a_hundred_thousand_requests_per_second_are_found() {
    let server = Simulated::new(16, 0.000_16);
    let capacity = server.capacity();
    check(server, p99(5), capacity);
}

#[test]
fn a_server_that_takes_more_at_a_time_than_the_closed_loop_asks_is_found_by_doubling() {
    let server = Simulated::new(500, 0.1);
    assert!(server.capacity() > 5.0 * PROBE_CONNECTIONS as f64 / server.service);
    let capacity = server.capacity();
    check(server, p99(150), capacity);
}

#[test]
fn a_limit_below_the_latency_of_a_single_request_has_no_rate_and_a_reason() {
    let found = Simulated::new(1, 0.02).search(p99(10));
    assert!(matches!(found.best, Err(NoRate::LowestBeyond(rate)) if rate < 1.0), "{:?}", found.best);
    assert!(found.points.iter().all(|point| point.verdict == Verdict::Slow));
}
