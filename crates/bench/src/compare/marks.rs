//! What makes a measurement unlike the others, and which of its figures that spoils.
//!
//! Owns the bounds of "unlike". Never drops a sample: marks are shown, and [`spoils`] says what they are left out of.
//! Only what the sample itself shows counts, never how far it is from other rounds: a server that is slow in some
//! rounds is slow in some rounds.

use std::time::Duration;

use onehop_load::outcome::{Bottleneck, End, Run, Slice};
use onehop_load::plan::Pace;

use super::{Mark, Metric};

/// Slices below which nothing is said about a begin: the steady rest would be too short to know.
const SLICES_MIN: usize = 8;
/// What counts as far from the steady rest, in its deviations (median absolute, scaled to the normal's standard
/// deviation: P. Rousseeuw and C. Croux, 1993, name 1.4826). Six are no chance.
const DEVIATIONS: f64 = 6.0;
const NORMAL_SCALE: f64 = 1.4826;
/// However steady the rest is, a rate within this share of it is no start-up: connections are made meanwhile.
const RATE_SHARE: f64 = 0.25;
/// However unsteady the rest is, a rate that lacks this share of it is one.
const RATE_SHARE_FAR: f64 = 0.75;
/// What counts at least and at most for the median latency.
const LATENCY_SHARE: f64 = 0.5;
const LATENCY_SHARE_FAR: f64 = 4.0;
/// Counts vary by their root at least; so many roots are no chance.
const COUNT_ROOTS: f64 = 4.0;
/// Answers of a slice below which its median latency is chance.
const SLICE_RESPONSES_MIN: u64 = 10;

/// What a run beyond capacity shows: slow starts, stalls and refusals are what was measured.
pub(super) fn of_overload(run: &Run) -> Vec<Mark> {
    let void = void_from_the_outset(run).or_else(|| (!run.has_good()).then(|| NOTHING_GOOD.to_owned()));
    void.map(Mark::Void).into_iter().chain(limit_of_load(run)).collect()
}

/// What the run itself shows.
pub(super) fn of_run(run: &Run, pace: &Pace) -> Vec<Mark> {
    let mut marks = Vec::new();
    let start_up = start_up(&run.slices, run.slice_length, pace);
    if let Some(lasted) = start_up {
        marks.push(Mark::StartUp { lasted });
    }
    // What stood still before the server was warm is its start-up and no pause of its own.
    let warm = start_up.unwrap_or_default();
    let pauses = run.stalls.iter().filter(|stall| stall.at + stall.length > warm);
    marks.extend(pauses.map(|stall| Mark::Pause { at: stall.at, length: stall.length }));
    marks.extend(void(run).map(Mark::Void));
    marks.extend(limit_of_load(run));
    marks
}

/// Where nothing was answered well, no limit of the load is the cause.
fn limit_of_load(run: &Run) -> Option<Mark> {
    Some(match run.generator.bottleneck.filter(|_| run.has_good())? {
        Bottleneck::Late { is_in_median: false, .. } => Mark::LoadWasLate,
        _ => Mark::LoadWasTheBottleneck,
    })
}

const NOTHING_GOOD: &str = "nothing was answered";

/// Why no response of a run counts, whatever they were.
fn void_from_the_outset(run: &Run) -> Option<String> {
    if run.end == End::Interrupted {
        return Some("the run was broken off".to_owned());
    }
    run.end.given_up().map(|why| format!("nothing was answered well: {why}"))
}

/// Whether a figure of a sample with this mark is left out.
///
/// A start-up is in every figure of the run. A pause is in what time tells (rate, latency, and the switches that
/// waiting costs), but not in what a request takes: CPU time, memory, bytes. Where the load was the limit, rate and
/// latency are its own; where it was late now and then, the longest latencies. What was measured before or after the run
/// stands as long as the answers were right.
pub(super) fn spoils(mark: &Mark, metric: Metric) -> bool {
    let is_of_time = matches!(metric, Metric::Rate | Metric::P50 | Metric::P99);
    let is_of_idle_connections = matches!(metric, Metric::MemoryAtRest | Metric::MemoryPerIdleConnection);
    match mark {
        Mark::StartUp { .. } => {
            !is_of_idle_connections
                && !matches!(metric, Metric::ColdStart | Metric::AfterIdle | Metric::Recovery)
        }
        Mark::Pause { .. } => is_of_time || metric == Metric::Switches,
        Mark::LoadWasTheBottleneck => is_of_time,
        Mark::LoadWasLate => metric == Metric::P99,
        Mark::Void(_) | Mark::Restarted => metric != Metric::ColdStart,
    }
}

/// Why the answers of a run do not count, in words.
fn void(run: &Run) -> Option<String> {
    if let Some(why) = void_from_the_outset(run) {
        return Some(why);
    }
    let total = &run.total;
    if total.unexpected + total.failures.sum() == 0 {
        return (!run.has_good()).then(|| NOTHING_GOOD.to_owned());
    }
    let statuses = total.statuses.iter().map(|(status, count)| format!("{count} × {status}"));
    let statuses = statuses.collect::<Vec<_>>().join(", ");
    let failures = &total.failures;
    let mut causes = Vec::new();
    if total.unexpected > 0 {
        causes
            .push(format!("{} with a status that was not expected (statuses: {statuses})", total.unexpected));
    }
    for (count, cause) in [
        (failures.connect, "without a connection"),
        (failures.tls, "without a TLS handshake"),
        (failures.closed, "closed without an answer"),
        (failures.truncated, "broken off"),
        (failures.reset, "reset by the server (RST_STREAM)"),
        (failures.goaway, "not taken by the server (GOAWAY)"),
        (failures.malformed, "answered by no HTTP"),
        (failures.timed_out, "not answered in time"),
        (failures.unsent, "never sent, since no connection was free"),
    ] {
        if count > 0 {
            causes.push(format!("{count} {cause}"));
        }
    }
    let failed = total.unexpected + failures.sum();
    Some(format!("{failed} of {} requests failed: {}", total.requests(), causes.join(", ")))
}

/// How long the begin of the run was far from its steady rest: slower, or with longer latencies. Only leading slices
/// count, and the later half is the rest that they are measured by.
fn start_up(slices: &[Slice], length: Duration, pace: &Pace) -> Option<Duration> {
    // The last slice may be a part of one.
    let whole = slices.get(..slices.len().saturating_sub(1))?;
    if whole.len() < SLICES_MIN {
        return None;
    }
    let (begin, rest) = whole.split_at(whole.len() / 2);
    let counts: Vec<f64> = rest.iter().map(|slice| slice.good as f64).collect();
    let (count, count_deviation) = centre(&counts);
    let roots = COUNT_ROOTS * count.max(1.0).sqrt();
    let far = (DEVIATIONS * count_deviation).min(RATE_SHARE_FAR * count);
    let least = count - far.max(RATE_SHARE * count).max(roots);
    let latencies: Vec<f64> = rest
        .iter()
        .filter(|slice| slice.good >= SLICE_RESPONSES_MIN)
        .map(|slice| slice.p50.as_secs_f64())
        .collect();
    let (latency, latency_deviation) = centre(&latencies);
    let far = (DEVIATIONS * latency_deviation).min(LATENCY_SHARE_FAR * latency);
    let most = latency + far.max(LATENCY_SHARE * latency);
    let is_rate_even = is_even(pace);
    let is_off = |slice: &&Slice| {
        let is_slow = is_rate_even && (slice.good as f64) < least;
        is_slow || (slice.good >= SLICE_RESPONSES_MIN && slice.p50.as_secs_f64() > most)
    };
    let leading = begin.iter().take_while(is_off).count();
    (leading > 0).then(|| length * u32::try_from(leading).unwrap_or(u32::MAX))
}

/// Whether the same rate is to be expected from begin to end.
fn is_even(pace: &Pace) -> bool {
    match pace {
        Pace::Closed { .. } => true,
        Pace::Open { arrivals, .. } => arrivals
            .phases
            .first()
            .is_some_and(|first| arrivals.phases.iter().all(|p| p.from == first.from && p.to == first.from)),
    }
}

/// Median and scaled median absolute deviation.
fn centre(values: &[f64]) -> (f64, f64) {
    let middle = onehop_statistics::median(values);
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    (middle, NORMAL_SCALE * onehop_statistics::median(&distances))
}

#[cfg(test)]
mod tests {
    use onehop_load::outcome::Stall;

    use super::super::sample::{CLOSED, run, slices};
    use super::*;

    const SLICE: Duration = Duration::from_millis(100);

    fn begin(counts: &[u64], micros: &[u64]) -> Option<Duration> {
        start_up(&slices(counts, micros), SLICE, &CLOSED)
    }

    #[test]
    fn a_start_up_inside_a_run_is_found_with_its_length() {
        let steady = [1000, 1010, 990, 1000, 1005, 1000, 995, 1000, 1000, 1010, 990, 1000];
        let usual = [100; 12];
        assert_eq!(begin(&steady, &usual), None);
        let mut slow = steady;
        slow[..3].copy_from_slice(&[0, 0, 400]);
        assert_eq!(begin(&slow, &usual), Some(SLICE * 3));
        let mut late = usual;
        late[..2].copy_from_slice(&[900, 300]);
        assert_eq!(begin(&steady, &late), Some(SLICE * 2));
        let unsteady = [4, 8, 8, 4000, 1000, 3000, 4300, 1300, 6000, 5100, 2000, 900];
        assert_eq!(begin(&unsteady, &usual), Some(SLICE * 3));
    }

    #[test]
    fn noise_a_dip_in_the_middle_and_a_slow_end_are_no_start_up() {
        let usual = [100; 12];
        assert_eq!(begin(&[820, 1150, 900, 1000, 1105, 850, 995, 1100, 1000, 1010, 890, 1000], &usual), None);
        assert_eq!(
            begin(&[1000, 1000, 1000, 10, 1000, 1000, 995, 1000, 1000, 1010, 990, 1000], &usual),
            None
        );
        assert_eq!(begin(&[1000, 1000, 1000, 990, 1000, 1000, 995, 1000, 1000, 1010, 990, 3], &usual), None);
        assert_eq!(begin(&[4, 9, 7, 8, 6, 9, 12, 7, 8, 9, 11, 8], &usual), None, "a handful of answers");
        assert_eq!(begin(&[1, 1000, 1000], &[100; 3]), None, "too short to know");
        assert_eq!(begin(&[0; 12], &[0; 12]), None);
    }

    #[test]
    fn a_rate_that_is_to_rise_is_no_start_up() {
        use onehop_load::plan::{Arrivals, Phase, Spacing};
        let phase = Phase { from: 10.0, to: 1000.0, length: Duration::from_secs(1) };
        let arrivals = Arrivals { spacing: Spacing::Constant, phases: vec![phase] };
        let ramp = Pace::Open { connections: 1, arrivals };
        let rising = slices(&[10, 100, 500, 900, 950, 1000, 1000, 1000, 1000, 1000, 1000], &[100; 11]);
        assert_eq!(start_up(&rising, SLICE, &ramp), None);
        assert!(start_up(&rising, SLICE, &CLOSED).is_some());
    }

    #[test]
    fn a_stall_is_a_pause_unless_it_belongs_to_the_start_up() {
        let stall =
            |at, length| Stall { at: Duration::from_millis(at), length: Duration::from_millis(length) };
        let mut paused = run(1000, 100);
        paused.stalls = vec![stall(500, 120)];
        let (at, length) = (Duration::from_millis(500), Duration::from_millis(120));
        assert_eq!(of_run(&paused, &CLOSED), [Mark::Pause { at, length }]);
        let mut started = paused.clone();
        started.stalls.push(stall(0, 290));
        for slice in &mut started.slices[..3] {
            *slice = Slice { at: slice.at, ..Slice::default() };
        }
        let lasted = Duration::from_millis(300);
        assert_eq!(of_run(&started, &CLOSED), [Mark::StartUp { lasted }, Mark::Pause { at, length }]);
    }

    #[test]
    fn wrong_and_missing_answers_void_a_run_and_say_how_many() {
        let mut wrong = run(1000, 100);
        wrong.total.unexpected = 3;
        wrong.total.statuses = [(200, 1000), (500, 3)].into();
        wrong.total.failures.truncated = 2;
        let mut interrupted = run(1000, 100);
        interrupted.end = End::Interrupted;
        let mut hopeless = run(0, 100);
        hopeless.end = End::Hopeless("connection refused".to_owned());
        let reported = [wrong, interrupted, hopeless, run(0, 100)].map(|run| void(&run).unwrap());
        insta::assert_snapshot!(reported.join("\n"));
        assert_eq!(void(&run(1, 100)), None);
    }

    #[test]
    fn beyond_capacity_refusals_and_stalls_are_figures_and_only_a_run_without_a_good_response_is_void() {
        use onehop_load::outcome::Stall;
        let mut refused = run(1000, 100);
        refused.total.unexpected = 3000;
        refused.total.failures.timed_out = 200;
        refused.stalls = vec![Stall { at: SLICE * 5, length: SLICE }];
        assert!(matches!(of_run(&refused, &CLOSED)[..], [Mark::Pause { .. }, Mark::Void(_)]));
        assert_eq!(of_overload(&refused), []);
        assert_eq!(of_overload(&run(0, 100)), [Mark::Void("nothing was answered".to_owned())]);
        refused.generator.bottleneck = Some(Bottleneck::Thread { share: 1.0 });
        assert_eq!(of_overload(&refused), [Mark::LoadWasTheBottleneck]);
    }

    #[test]
    fn marks_spoil_what_they_touch_and_nothing_else() {
        let pause = Mark::Pause { at: SLICE, length: SLICE };
        assert!(spoils(&pause, Metric::P99) && !spoils(&pause, Metric::CpuPerRequest));
        assert!(spoils(&Mark::LoadWasTheBottleneck, Metric::Rate));
        assert!(!spoils(&Mark::LoadWasTheBottleneck, Metric::CpuPerRequest));
        let start_up = Mark::StartUp { lasted: SLICE };
        assert!(spoils(&start_up, Metric::MemoryMedian) && !spoils(&start_up, Metric::ColdStart));
        assert!(spoils(&Mark::Restarted, Metric::AfterIdle));
        let mut limited = run(1000, 100);
        limited.generator.bottleneck = Some(Bottleneck::Thread { share: 1.0 });
        assert_eq!(of_run(&limited, &CLOSED), [Mark::LoadWasTheBottleneck]);
        let late = |is_in_median| Bottleneck::Late { p99: SLICE, is_in_median };
        limited.generator.bottleneck = Some(late(true));
        assert_eq!(of_run(&limited, &CLOSED), [Mark::LoadWasTheBottleneck]);
        limited.generator.bottleneck = Some(late(false));
        assert_eq!(of_run(&limited, &CLOSED), [Mark::LoadWasLate]);
        assert!(spoils(&Mark::LoadWasLate, Metric::P99) && !spoils(&Mark::LoadWasLate, Metric::P50));
    }
}
