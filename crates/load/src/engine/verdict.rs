//! What the notes of all threads say together: stalls, what a closed loop left out, and whether the load limited
//! itself.
//!
//! Owns the rules, each with its reason. Says nothing that the notes do not carry: where it is open whether the load
//! or the server was the limit, it was not the load.

use std::time::Duration;

use super::limits::{STALL_FACTOR, STALL_MIN};
use super::record::Quiet;
use super::thread::nanoseconds;
use crate::latency::Latencies;
use crate::outcome::{Bottleneck, Omitted, Slice, Stall};

/// A thread that used more of a core than this could not have asked more. One that waits for a server sleeps
/// between answers, also where that server has no time left.
const THREAD_SHARE_MAX: f64 = 0.95;

/// A thread that was kept from its core for more of the time than this saw answers later than they came.
const WAITING_SHARE_MAX: f64 = 0.10;

/// A thread that ran or was ready to for more of the time than this had none to spare, however that is divided.
const TAKEN_SHARE_MAX: f64 = 0.97;

/// Lateness below this is the kernel's usual wake-up.
const LATE_MIN: Duration = Duration::from_millis(1);

/// Lateness matters where it is more than this share of the latency at the same quantile: an answer of 25 ms is told
/// rightly though one request in a hundred was sent a millisecond late.
const LATE_SHARE_MAX: f64 = 0.1;

/// Arrivals that had to wait for a connection matter from this share of all.
const WAITED_SHARE_MIN: f64 = 0.01;

/// Connections that the load's own system refused matter from this share of all requests on: each is tried again a
/// millisecond later, and that is in the latencies.
const REFUSED_SHARE_MIN: f64 = 0.001;

/// With this share of its connections busy on average, a load has none to spare.
const BUSY_SHARE_MIN: f64 = 0.9;

/// A server whose usual answer takes no longer than so many times its fastest is not loaded: more connections would
/// have got more answers.
const UNLOADED_FACTOR: u32 = 2;

/// An answer within so many times the usual is the server's spread. A connection that waited longer would have
/// asked again meanwhile.
const OMISSION_FACTOR: u32 = 10;

/// Omission is told from this share of all requests on.
const OMISSION_SHARE_MIN: f64 = 0.001;

/// Steps in which the requests are added that one long wait kept from beginning; beyond that several share one.
const OMISSION_STEPS_MAX: u64 = 10_000;

/// Times in which no thread had an answer while one at least waited for some.
///
/// A stall is longer than [`STALL_MIN`] and than [`STALL_FACTOR`] times the usual 99th percentile: the median of the
/// slices' p99, which a stall in one slice does not move. So a server that is slow, or slow now and then, is not
/// said to stand still.
pub(super) fn stalls(threads: &[Vec<Quiet>], slices: &[Slice], measured_from: u64, until: u64) -> Vec<Stall> {
    let mut usual: Vec<Duration> =
        slices.iter().filter(|slice| slice.good > 0).map(|slice| slice.p99).collect();
    usual.sort_unstable();
    let usual = usual.get(usual.len() / 2).copied().unwrap_or_default();
    let bound = STALL_MIN.max(usual * STALL_FACTOR);
    let Some((first, rest)) = threads.split_first() else { return Vec::new() };
    let quiet = rest.iter().fold(first.clone(), |all, thread| intersection(&all, thread));
    let stalls = quiet.iter().filter_map(|quiet| {
        let from = quiet.from.max(quiet.waiting?).max(measured_from);
        let length = Duration::from_nanos(quiet.to.min(until).saturating_sub(from));
        (length > bound).then(|| Stall { at: Duration::from_nanos(from - measured_from), length })
    });
    stalls.collect()
}

/// The times that are quiet in both. Both are in rising order.
fn intersection(one: &[Quiet], other: &[Quiet]) -> Vec<Quiet> {
    let mut both = Vec::new();
    let (mut left, mut right) = (one.iter().peekable(), other.iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let (from, to) = (a.from.max(b.from), a.to.min(b.to));
        if from < to {
            let waiting = [a.waiting, b.waiting].into_iter().flatten().min().filter(|since| *since < to);
            both.push(Quiet { from, to, waiting });
        }
        if a.to < b.to {
            left.next()
        } else {
            right.next()
        };
    }
    both
}

/// What a closed loop left out, as HdrHistogram corrects it (Tene, How NOT to Measure Latency): for an answer that
/// took far longer than the usual distance of a connection's requests, those that would have begun meanwhile are
/// added, each with the rest of the wait that it would have had. Waits that were `given_up` are the longest of all.
pub(super) fn omitted(
    latency: &Latencies,
    given_up: &Latencies,
    think: Duration,
    stalls: &[Stall],
) -> Option<Omitted> {
    if latency.count() == 0 {
        return None;
    }
    let interval = (latency.at(0.5) + think).max(Duration::from_nanos(1));
    let bound = interval * OMISSION_FACTOR;
    let mut corrected = latency.clone();
    let mut requests = 0_u64;
    for (took, count) in latency.steps().chain(given_up.steps()) {
        if took <= bound {
            continue;
        }
        let missing = (took.as_nanos() / interval.as_nanos()).saturating_sub(1);
        let missing = u64::try_from(missing).unwrap_or(u64::MAX);
        let stride = missing.div_ceil(OMISSION_STEPS_MAX).max(1);
        let mut step = 1;
        while step <= missing {
            let share = stride.min(missing - step + 1);
            let later = Duration::from_nanos(nanoseconds(interval).saturating_mul(step));
            corrected.record_many(took.saturating_sub(later), count.saturating_mul(share));
            requests = requests.saturating_add(count.saturating_mul(share));
            step += stride;
        }
    }
    let matters = !stalls.is_empty() || requests as f64 > OMISSION_SHARE_MIN * latency.count() as f64;
    (requests > 0 && matters).then_some(Omitted { requests, corrected })
}

/// What the load's threads showed.
#[derive(Debug, Clone, Default)]
pub(super) struct Load {
    pub busiest: f64,
    pub waiting: f64,
    /// The largest sum of both of one thread.
    pub taken: f64,
    /// Connections that this system refused to open.
    pub refused: u64,
    pub lateness: Latencies,
    /// Arrivals that waited for a connection.
    pub waited: u64,
    /// All arrivals.
    pub arrivals: u64,
    pub connections: usize,
    pub length: Duration,
    /// Latencies from the intended start, and from the sending.
    pub latency: Latencies,
    pub service: Latencies,
    pub has_stalls: bool,
}

/// What the load itself limited, if anything: the first that applies, from the surest.
pub(super) fn bottleneck(load: &Load) -> Option<Bottleneck> {
    if load.busiest > THREAD_SHARE_MAX {
        return Some(Bottleneck::Thread { share: load.busiest });
    }
    if load.waiting > WAITING_SHARE_MAX {
        return Some(Bottleneck::Core { share: load.waiting });
    }
    if load.taken > TAKEN_SHARE_MAX {
        return Some(Bottleneck::Thread { share: load.busiest });
    }
    if load.refused as f64 > REFUSED_SHARE_MIN * load.arrivals as f64 {
        return Some(Bottleneck::System { refused: load.refused });
    }
    let is_in_median = is_late(load, 0.5);
    if is_in_median || is_late(load, 0.99) {
        return Some(Bottleneck::Late { p99: load.lateness.at(0.99), is_in_median });
    }
    let arrivals = load.waited;
    connections_were_too_few(load).then_some(Bottleneck::Connections { arrivals })
}

/// Whether the latency at a quantile is in good part the load's own lateness.
fn is_late(load: &Load, quantile: f64) -> bool {
    load.lateness.at(quantile) > LATE_MIN.max(load.latency.at(quantile).mul_f64(LATE_SHARE_MAX))
}

/// Whether arrivals waited because there were too few connections, and not because the server was slow. By Little's
/// law rate times service time connections are busy. A server that is overloaded, or stands still, keeps all of them
/// busy too, and that is its own fault: then its answers take longer than those of the moments in which it had
/// time.
fn connections_were_too_few(load: &Load) -> bool {
    let usual = load.service.at(0.5);
    let busy = load.arrivals as f64 / load.length.as_secs_f64().max(f64::MIN_POSITIVE) * usual.as_secs_f64();
    load.waited as f64 > WAITED_SHARE_MIN * load.arrivals as f64
        && !load.has_stalls
        && busy > BUSY_SHARE_MIN * load.connections as f64
        && usual <= load.service.at(0.01) * UNLOADED_FACTOR
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn quiet(from: u64, to: u64, waiting: Option<u64>) -> Quiet {
        Quiet { from: from * MS, to: to * MS, waiting: waiting.map(|since| since * MS) }
    }

    fn slices(p99: u64) -> Vec<Slice> {
        vec![Slice { good: 10, p99: Duration::from_millis(p99), ..Slice::default() }; 5]
    }

    fn latencies(values: &[(u64, u64)]) -> Latencies {
        let mut latencies = Latencies::new();
        for (millis, count) in values {
            latencies.record_many(Duration::from_millis(*millis), *count);
        }
        latencies
    }

    #[test]
    fn a_stall_is_quiet_on_all_threads_and_waited_through() {
        let one = vec![quiet(100, 900, Some(110)), quiet(2000, 2400, Some(2000))];
        let other = vec![quiet(0, 700, Some(300)), quiet(1900, 3000, None)];
        let found = stalls(&[one, other], &slices(1), 0, u64::MAX);
        let expected = [(110, 590), (2000, 400)];
        let expected: Vec<Stall> = expected
            .iter()
            .map(|(at, length)| Stall {
                at: Duration::from_millis(*at),
                length: Duration::from_millis(*length),
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_slow_server_and_a_time_without_requests_are_no_stalls() {
        let waits = vec![quiet(0, 300, Some(0)), quiet(300, 600, Some(300))];
        assert_eq!(stalls(&[waits], &slices(290), 0, u64::MAX), []);
        // 1.5 s in which nobody asked, and one answer of 10 ms.
        assert_eq!(stalls(&[vec![quiet(0, 1500, Some(1490))]], &slices(10), 0, u64::MAX), []);
        // Before the measurement began.
        assert_eq!(stalls(&[vec![quiet(0, 1500, Some(0))]], &slices(1), 1490 * MS, u64::MAX), []);
    }

    #[test]
    fn a_long_wait_stands_for_the_requests_that_did_not_begin() {
        let reported =
            omitted(&latencies(&[(10, 9999), (1000, 1)]), &Latencies::new(), Duration::ZERO, &[]).unwrap();
        assert!((98..=99).contains(&reported.requests), "{}", reported.requests);
        assert!(reported.corrected.at(0.995) > Duration::from_millis(400));
        assert!(
            omitted(&latencies(&[(10, 900), (90, 100)]), &Latencies::new(), Duration::ZERO, &[]).is_none()
        );
        // Too little to tell, unless the server stood still.
        let little = latencies(&[(10, 1_000_000), (1000, 1)]);
        assert!(omitted(&little, &Latencies::new(), Duration::ZERO, &[]).is_none());
        let stall = Stall { at: Duration::ZERO, length: Duration::from_secs(1) };
        assert!(omitted(&little, &Latencies::new(), Duration::ZERO, &[stall]).is_some());
    }

    #[test]
    fn a_wait_that_was_given_up_leaves_out_as_much_as_one_that_was_answered() {
        let usual = latencies(&[(10, 10_000)]);
        let reported = omitted(&usual, &latencies(&[(1000, 4)]), Duration::ZERO, &[]).unwrap();
        assert!((4 * 98..=4 * 99).contains(&reported.requests), "{}", reported.requests);
        assert!(reported.corrected.at(0.99) > Duration::from_millis(500));
        // Nothing was answered: there is no usual pace.
        assert!(omitted(&Latencies::new(), &usual, Duration::ZERO, &[]).is_none());
    }

    #[test]
    fn a_wait_of_an_hour_among_microseconds_is_corrected_in_few_steps() {
        let mut latencies = latencies(&[(3_600_000, 1)]);
        latencies.record_many(Duration::from_micros(1), 100);
        let reported = omitted(&latencies, &Latencies::new(), Duration::ZERO, &[]).unwrap();
        assert!((reported.requests as f64 / 3.6e9 - 1.0).abs() < 0.01, "{}", reported.requests);
        let half = reported.corrected.at(0.5).as_secs_f64() / 1800.0;
        assert!((half - 1.0).abs() < 0.01, "{half}");
    }

    fn open_load(service: &[(u64, u64)], waited: u64) -> Load {
        Load {
            waited,
            arrivals: 1000,
            connections: 10,
            length: Duration::from_secs(1),
            latency: latencies(service),
            service: latencies(service),
            ..Load::default()
        }
    }

    #[test]
    fn too_few_connections_are_the_loads_fault_only_where_the_server_was_at_ease() {
        // 1000 a second at 20 ms each keep 20 connections busy, and there are 10.
        let few = bottleneck(&open_load(&[(20, 1000)], 500));
        assert_eq!(few, Some(Bottleneck::Connections { arrivals: 500 }));
        // It can do 1 ms, and does not under this load.
        assert_eq!(bottleneck(&open_load(&[(1, 50), (20, 950)], 500)), None);
        // Enough connections; it was slow once.
        assert_eq!(bottleneck(&open_load(&[(2, 1000)], 500)), None);
        let stalled = Load { has_stalls: true, ..open_load(&[(20, 1000)], 500) };
        assert_eq!(bottleneck(&stalled), None);
    }

    #[test]
    fn a_thread_without_time_a_core_that_is_shared_and_late_requests_are_reported() {
        let load = Load { busiest: 0.99, waiting: 0.5, ..Load::default() };
        assert_eq!(bottleneck(&load), Some(Bottleneck::Thread { share: 0.99 }));
        let load = Load { busiest: 0.5, waiting: 0.5, ..Load::default() };
        assert_eq!(bottleneck(&load), Some(Bottleneck::Core { share: 0.5 }));
        // Neither alone is much, and yet it never slept.
        let load = Load { busiest: 0.93, waiting: 0.07, taken: 1.0, ..Load::default() };
        assert_eq!(bottleneck(&load), Some(Bottleneck::Thread { share: 0.93 }));
        let load = Load { refused: 2, arrivals: 1000, ..Load::default() };
        assert_eq!(bottleneck(&load), Some(Bottleneck::System { refused: 2 }));
        let late = |latency: u64| Load {
            lateness: latencies(&[(3, 100)]),
            latency: latencies(&[(latency, 100)]),
            ..Load::default()
        };
        assert!(matches!(bottleneck(&late(5)), Some(Bottleneck::Late { .. })));
        assert_eq!(bottleneck(&late(100)), None);
    }

    #[test]
    fn lateness_counts_at_the_quantile_at_which_it_is_a_good_part_of_the_latency() {
        let load = |lateness: &[(u64, u64)], latency: &[(u64, u64)]| Load {
            lateness: latencies(lateness),
            latency: latencies(latency),
            ..Load::default()
        };
        let rarely = [(0, 980), (2, 20)];
        // The server's own 99th percentile is far above; half of the requests were on time.
        assert_eq!(bottleneck(&load(&rarely, &[(1, 980), (30, 20)])), None);
        // It is hardly more than the lateness.
        let near = bottleneck(&load(&rarely, &[(1, 980), (3, 20)]));
        assert!(matches!(near, Some(Bottleneck::Late { is_in_median: false, .. })), "{near:?}");
        // The tail is the server's, the median is the load's.
        let often = bottleneck(&load(&[(2, 1000)], &[(3, 900), (300, 100)]));
        assert!(matches!(often, Some(Bottleneck::Late { is_in_median: true, .. })), "{often:?}");
    }
}
