//! From the notes of all threads to what the run saw.
//!
//! Owns the length of the run, see [`run`](super::run).

use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use super::record::Quiet;
use super::series::Series;
use super::thread::{Seen, Shared, nanoseconds};
use super::verdict::{self, Load};
use crate::latency::Latencies;
use crate::outcome::{End, Generator, Run, Tally};
use crate::plan::{Pace, Plan};
use crate::tls::Handshakes;

/// Puts everything together.
pub(super) fn gather(
    plan: &Plan,
    begun: SystemTime,
    end: End,
    series: Series,
    shared: &Shared,
    seen: &[Seen],
) -> Run {
    let mut by_request = vec![Tally::default(); plan.requests.len()];
    for thread in seen {
        for (tally, other) in by_request.iter_mut().zip(&thread.notes.tallies) {
            tally.merge(other);
        }
    }
    let mut total = Tally::default();
    for tally in &by_request {
        total.merge(tally);
    }
    let measured_from = nanoseconds(plan.warm_up);
    let time_over = shared.end.load(Ordering::Relaxed);
    let last_end = seen.iter().map(|thread| thread.notes.last_end).max().unwrap_or(0).max(measured_from);
    let until = if end == End::Requests || time_over == u64::MAX { last_end } else { time_over };
    let elapsed = Duration::from_nanos(until.saturating_sub(measured_from));
    let completed = seen.iter().map(|thread| thread.notes.completed).sum();
    let (slices, slice_length) = series.finish(elapsed);
    let quiets: Vec<Vec<Quiet>> = seen.iter().map(|thread| thread.notes.quiets.clone()).collect();
    let stalls = verdict::stalls(&quiets, &slices, measured_from, last_end.max(until));
    let omitted = match &plan.pace {
        Pace::Closed { think, .. } => {
            let mut given_up = Latencies::new();
            for thread in seen {
                given_up.merge(&thread.notes.given_up);
            }
            verdict::omitted(&total.latency, &given_up, *think, &stalls)
        }
        Pace::Open { .. } => None,
    };
    let generator = generator(plan, seen, &total, elapsed, !stalls.is_empty());
    let mut handshakes = Handshakes::default();
    for thread in seen {
        handshakes.merge(&thread.handshakes);
    }
    let http2 = seen.iter().filter_map(|thread| thread.http2.clone()).reduce(|mut all, other| {
        all.merge(&other);
        all
    });
    Run {
        begun,
        elapsed,
        completed,
        total,
        by_request,
        slices,
        slice_length,
        stalls,
        omitted,
        handshakes,
        http2,
        generator,
        end,
    }
}

fn generator(plan: &Plan, seen: &[Seen], total: &Tally, measured: Duration, has_stalls: bool) -> Generator {
    let most = |of: fn(&Seen) -> f64| seen.iter().map(of).fold(0.0, f64::max);
    let mut lateness = Latencies::new();
    for thread in seen {
        lateness.merge(&thread.lateness);
    }
    let load = Load {
        busiest: most(|thread| thread.processor.share()),
        waiting: most(|thread| thread.processor.waiting()),
        taken: most(|thread| thread.processor.share() + thread.processor.waiting()),
        refused: seen.iter().map(|thread| thread.refused).sum(),
        waited: seen.iter().map(|thread| thread.waited).sum(),
        arrivals: total.requests(),
        connections: plan.pace.connections().saturating_mul(plan.protocol().streams() as usize),
        length: measured,
        latency: total.latency.clone(),
        service: total.service.clone(),
        has_stalls,
        lateness,
    };
    Generator {
        cpu: seen.iter().map(|thread| thread.processor.used()).sum(),
        busiest: load.busiest,
        waiting: load.waiting,
        connections_opened: seen.iter().map(|thread| thread.connections_opened).sum(),
        bottleneck: verdict::bottleneck(&load),
        lateness: load.lateness,
    }
}
