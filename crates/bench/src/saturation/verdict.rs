//! Whether a step stayed within the limit, and why not.
//!
//! The one place that decides it: reports print what is decided here. Every rule is a measured figure of the step.
//! A step within the limit is within it however busy the load was, because lateness of the load only adds to the
//! latency; only a step beyond the limit can be the load's fault.

use std::fmt;

use onehop_load::outcome::{Bottleneck, End, Run};

use super::Limit;
use super::bisection::Seen;

/// A thread of the load that ran, or was ready to run, for more of the time than this had none left to ask more.
const TAKEN_SHARE_MAX: f64 = 0.97;

/// Answers that come at less than this share of the arrivals' rate are a queue that grows, however long the limit
/// still allows it to be: 5 % in 5 s are a wait of 250 ms, which gets longer for as long as the load lasts.
const KEPT_UP_MIN: f64 = 0.95;

/// Answers that may be missing at any rate: at ten requests per second, one or two are on their way at the end.
const OWED_MAX: f64 = 5.0;

/// What a step showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Latency and failures were within the limit, and the answers kept up with the arrivals.
    Within,
    /// The percentile was above its limit.
    Slow,
    /// More requests failed than may, or there was no good answer.
    Failed,
    /// The answers came slower than the requests: a queue grew.
    FellBehind,
    /// Beyond the limit, and the load is why: a thread had no time left, it sent its requests so late that this is
    /// the difference, or its system refused connections.
    LoadAtItsLimit,
    /// Broken off.
    Incomplete,
}

impl Verdict {
    /// Judges a step.
    pub fn of(run: &Run, limit: Limit) -> Verdict {
        let total = &run.total;
        let requests = total.requests() as f64;
        let failed = (total.unexpected + total.failures.sum()) as f64;
        let beyond = match run.end {
            End::Interrupted => return Verdict::Incomplete,
            _ if !run.has_good() => return Verdict::Failed,
            _ if run.end.is_early() => Verdict::Failed,
            _ if failed > limit.failures * requests => Verdict::Failed,
            _ if total.latency.at(limit.share) > limit.latency => Verdict::Slow,
            _ if total.good == 0 || fell_behind(run) => Verdict::FellBehind,
            _ => return Verdict::Within,
        };
        if load_had_no_time(run) || (beyond == Verdict::Slow && load_was_late(run, limit)) {
            Verdict::LoadAtItsLimit
        } else {
            beyond
        }
    }

    /// Its name in JSON.
    pub fn code(self) -> &'static str {
        match self {
            Verdict::Within => "within",
            Verdict::Slow => "slow",
            Verdict::Failed => "failed",
            Verdict::FellBehind => "fell_behind",
            Verdict::LoadAtItsLimit => "load_at_its_limit",
            Verdict::Incomplete => "incomplete",
        }
    }

    pub(super) fn seen(self) -> Seen {
        match self {
            Verdict::Within => Seen::Within,
            Verdict::LoadAtItsLimit => Seen::LoadAtItsLimit,
            Verdict::Slow | Verdict::Failed | Verdict::FellBehind | Verdict::Incomplete => Seen::Beyond,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Verdict::Within => "yes",
            Verdict::Slow => "no, slow",
            Verdict::Failed => "no, failures",
            Verdict::FellBehind => "no, fell behind",
            Verdict::LoadAtItsLimit => "no, by the load",
            Verdict::Incomplete => "broken off",
        })
    }
}

/// Whether fewer answers came in the time than were due in it, by more than requests on their way explain.
fn fell_behind(run: &Run) -> bool {
    run.completed as f64 + OWED_MAX < KEPT_UP_MIN * run.total.good as f64
}

fn load_had_no_time(run: &Run) -> bool {
    let generator = &run.generator;
    generator.busiest + generator.waiting > TAKEN_SHARE_MAX
        || matches!(generator.bottleneck, Some(Bottleneck::System { .. }))
}

/// Whether the percentile would have been within the limit, had the load sent its requests when they were due.
fn load_was_late(run: &Run, limit: Limit) -> bool {
    let own = run.generator.lateness.at(limit.share);
    run.total.latency.at(limit.share).saturating_sub(own) <= limit.latency
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use onehop_load::outcome::{Generator, Tally};

    use super::*;

    const LIMIT: Limit = Limit { share: 0.99, latency: Duration::from_millis(10), failures: 0.001 };

    fn run(good: u64, millis: u64, failed: u64) -> Run {
        let mut total = Tally { good, ..Tally::default() };
        total.latency.record_many(Duration::from_millis(millis), good);
        total.failures.timed_out = failed;
        crate::sample::run_of_a_second(total)
    }

    fn check(run: &Run, verdict: Verdict) {
        assert_eq!(Verdict::of(run, LIMIT), verdict);
        let is_within_limit = run.total.latency.at(0.99) <= LIMIT.latency;
        assert!(is_within_limit || verdict != Verdict::Within);
    }

    #[test]
    fn a_step_is_within_with_its_latency_its_failures_and_answers_that_keep_up() {
        check(&run(1000, 9, 1), Verdict::Within);
        check(&run(1000, 11, 0), Verdict::Slow);
        check(&run(1000, 5, 3), Verdict::Failed);
        check(&run(0, 5, 0), Verdict::Failed);
        check(&Run { completed: 900, ..run(1000, 5, 0) }, Verdict::FellBehind);
        check(&Run { completed: 4, ..run(8, 5, 0) }, Verdict::Within);
        // What it answered was due before.
        check(&Run { completed: 900, ..run(0, 5, 0) }, Verdict::FellBehind);
        check(&Run { end: End::Interrupted, ..run(1000, 5, 0) }, Verdict::Incomplete);
        check(&Run { end: End::Hopeless(String::new()), ..run(1000, 5, 0) }, Verdict::Failed);
    }

    #[test]
    fn a_load_that_is_late_or_busy_within_the_limit_is_no_reason_against_the_server() {
        let mut lateness = onehop_load::latency::Latencies::new();
        lateness.record_many(Duration::from_millis(4), 1000);
        for bottleneck in [
            Bottleneck::Late { p99: Duration::from_millis(4), is_in_median: true },
            Bottleneck::Core { share: 0.3 },
            Bottleneck::Thread { share: 0.99 },
            Bottleneck::Connections { arrivals: 9 },
        ] {
            let generator = Generator {
                busiest: 0.99,
                lateness: lateness.clone(),
                bottleneck: Some(bottleneck),
                ..Generator::default()
            };
            check(&Run { generator, ..run(1000, 5, 0) }, Verdict::Within);
        }
    }

    #[test]
    fn beyond_the_limit_the_load_is_blamed_for_its_measured_lateness_and_time_alone() {
        let of = |busiest, waiting, late| {
            let mut lateness = onehop_load::latency::Latencies::new();
            lateness.record_many(Duration::from_millis(late), 1000);
            let bottleneck = Some(Bottleneck::Core { share: waiting });
            let generator = Generator { busiest, waiting, lateness, bottleneck, ..Generator::default() };
            Run { generator, ..run(1000, 14, 0) }
        };
        // Without its 5 ms they would be 9.
        check(&of(0.03, 0.0, 5), Verdict::LoadAtItsLimit);
        check(&of(0.03, 0.0, 2), Verdict::Slow);
        check(&of(0.98, 0.0, 2), Verdict::LoadAtItsLimit);
        check(&of(0.4, 0.58, 2), Verdict::LoadAtItsLimit);
        // It slept, and so it had time.
        check(&of(0.4, 0.2, 2), Verdict::Slow);
    }
}
