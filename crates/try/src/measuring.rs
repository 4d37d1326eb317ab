//! The measurement of a side-by-side run: what is compared, for how long, and what a reader must know of it.
//!
//! Two comparisons make one table. At full load: CPU, memory and rate. Then each side gets the same load, half of what
//! the slower one bears, for the latencies: a latency at full load tells only how many were waiting. Never mixes
//! figures of the two in one row.

use std::path::Path;
use std::time::{Duration, Instant};

use onehop_bench::compare::{self, Check, Comparison, Metric, Target};
use onehop_load::caveat::{Caveat, CaveatCode};
use onehop_load::measure;
use onehop_load::plan::{Arrivals, Pace, Phase, Plan, Request, Reuse, Spacing, Timeouts, Until};
use onehop_load::progress::Observer;

use super::SideBySideError;
use super::budget::{self, Times, Wanted};
use super::settings::Settings;
use super::stacks::Stack;

/// Before a program with a just-in-time compiler is measured at full load. What it still learns after two seconds is a tenth
/// ([`onehop_bench::compare::WARM_UP_STARTED`]); more would leave too few rounds.
const WARM_UP_APPLICATION: Duration = Duration::from_secs(2);
/// Before a server of files is.
const WARM_UP_FILES: Duration = Duration::from_millis(400);
/// Ending a stack and what else a sample takes beside its start and its load.
const ENDING: Duration = Duration::from_millis(250);
/// An interval of fewer pairs is too wide to say anything.
const ROUNDS_MIN: usize = 5;
/// Latencies scatter less from start to start than CPU time does.
const LATENCY_ROUNDS_MIN: usize = 4;
/// Of the time that is left, the part for the comparison at full load. The rest is for latencies.
const FULL_LOAD_SHARE: f64 = 0.62;
/// The same where there are more than two targets: the others are in that comparison alone.
const FULL_LOAD_SHARE_OF_MANY: f64 = 0.65;
/// Of what the slower side bears: far from the point at which queues grow, near enough to be a load.
const OFFERED_SHARE: f64 = 0.5;

/// From so many times the wanted time on it is said how long it took.
const OVERRUN_REPORTED: f64 = 1.1;

/// What measurements are made with.
#[derive(Debug)]
pub(super) struct Bench<'a> {
    settings: &'a Settings,
    begun: Instant,
    /// Cores of the servers.
    pub(super) server_cores: Vec<usize>,
    load_cores: Vec<usize>,
    /// The longest start that was seen.
    start: Duration,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Measured {
    /// The figures; the latencies of control and onehop are those of `at_same_load`, where there is one.
    pub(super) comparison: Comparison,
    pub(super) at_same_load: Option<Comparison>,
    pub(super) caveats: Vec<String>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(settings: &'a Settings, begun: Instant) -> Self {
        let (server_cores, load_cores) = measure::split_cores();
        Bench { settings, begun, server_cores, load_cores, start: Duration::ZERO }
    }

    /// The program onehop.
    pub(super) fn onehop(&self) -> &'a Path {
        &self.settings.onehop
    }

    /// A stack took so long until its first answer.
    pub(super) fn saw_start(&mut self, took: Duration) {
        self.start = self.start.max(took);
    }

    /// A load at full speed, without warm-up.
    pub(super) fn plan(&self, stack: &Stack, paths: &[String], time: Duration) -> Plan {
        Plan {
            requests: requests(stack, paths),
            pace: self.closed(),
            until: Until { time: Some(time), ..Until::default() },
            warm_up: Duration::ZERO,
            threads: self.load_cores.len().max(1),
            cores: self.load_cores.clone(),
            reuse: Reuse::Kept,
            timeouts: Timeouts::default(),
            seed: self.settings.seed,
        }
    }

    /// Whether so many targets can be measured well.
    pub(super) fn has_time_for(&self, targets: usize, is_application: bool) -> bool {
        budget::fit(self.left(), self.wanted(targets, is_application)).is_some()
    }

    /// Measures; the first stack is the control, the second one onehop, others stand beside.
    pub(super) fn measure(
        &self,
        stacks: &[Stack],
        paths: &[String],
        is_application: bool,
        observer: &mut dyn Observer,
    ) -> Result<Measured, SideBySideError> {
        let targets: Vec<Target> = stacks.iter().map(|stack| target(stack, paths)).collect();
        let share = if targets.len() > 2 { FULL_LOAD_SHARE_OF_MANY } else { FULL_LOAD_SHARE };
        let wanted = self.wanted(targets.len(), is_application);
        let left = self.left();
        let times = budget::fit(left.mul_f64(share), wanted)
            .or_else(|| budget::fit(left, wanted))
            .unwrap_or_else(|| budget::squeeze(left, wanted));
        let mut caveats = vec![self.full_load_words(paths, times)];
        if times.is_short {
            caveats.push(
                "Time was short: with so few and so short rounds, and hardly a warm-up, only large differences show."
                    .to_owned(),
            );
        }
        let full = self.compare(&targets, self.closed(), times, observer)?;
        let (mut comparison, mut at_same_load) = (full, None);
        match self.latencies(&targets, &comparison, wanted.warm_up, observer)? {
            Ok((latencies, words)) => {
                comparison.rows = merged(comparison.rows, latencies.rows.clone());
                caveats.push(words);
                comparison.caveats = distinguished(comparison.caveats, latencies.caveats.clone());
                at_same_load = Some(latencies);
            }
            Err(reason) => caveats.push(reason),
        }
        // Heads may differ in what does not count; the bodies were compared byte for byte before.
        comparison.caveats.retain(|caveat| caveat.code != CaveatCode::SizesDiffer);
        Ok(Measured { comparison, at_same_load, caveats })
    }

    /// The control and onehop at the same offered load, or why not.
    fn latencies(
        &self,
        targets: &[Target],
        full: &Comparison,
        warm_up: Duration,
        observer: &mut dyn Observer,
    ) -> Result<Result<(Comparison, String), String>, SideBySideError> {
        let at_full = "Latencies are those at full load, where they mostly say how many requests wait: ";
        if observer.is_interrupted() {
            return Ok(Err(format!(
                "{at_full}it was broken off before they were measured at the same load."
            )));
        }
        let Some(rate) = slowest(full).map(|rate| (rate * OFFERED_SHARE).floor()).filter(|rate| *rate >= 1.0)
        else {
            return Ok(Err(format!("{at_full}no rate is known that both bear.")));
        };
        let targets = targets.get(..2).unwrap_or(targets);
        let wanted = Wanted {
            targets: targets.len(),
            overhead: self.start + ENDING,
            warm_up,
            rounds_min: LATENCY_ROUNDS_MIN,
        };
        let Some(times) = budget::fit(self.left(), wanted) else {
            return Ok(Err(format!("{at_full}there was no time left to measure them at the same load.")));
        };
        let pace = Pace::Open {
            connections: self.settings.connections,
            arrivals: Arrivals {
                spacing: Spacing::Poisson,
                phases: vec![Phase { from: rate, to: rate, length: times.time }],
            },
        };
        let comparison = self.compare(targets, pace, times, observer)?;
        let words = format!(
            "Latencies (p50, p99) are from a second comparison, {} rounds of {} after {} of warm-up at full load, in which \
             each side gets the same: {rate} requests per second at random moments, half of what the slower one \
             answered at full load, each counted from the moment at which it was due.",
            times.rounds,
            seconds(times.time),
            seconds(times.warm_up),
        );
        Ok(Ok((comparison, words)))
    }

    /// What is said where it took longer than it should have.
    pub(super) fn overrun_words(&self) -> Option<String> {
        let (took, within) = (self.begun.elapsed(), self.settings.within);
        (took > within.mul_f64(OVERRUN_REPORTED)).then(|| {
            format!(
                "It took {} where {} were asked for: the first look and three short rounds are done in any case.",
                seconds(took),
                seconds(within),
            )
        })
    }

    fn compare(
        &self,
        targets: &[Target],
        pace: Pace,
        times: Times,
        observer: &mut dyn Observer,
    ) -> Result<Comparison, SideBySideError> {
        let settings = compare::Settings {
            rounds: times.rounds,
            warm_up: times.warm_up,
            warm_up_pace: Some(self.closed()),
            time: times.time,
            pace,
            threads: self.load_cores.len().max(1),
            server_cores: self.server_cores.clone(),
            load_cores: self.load_cores.clone(),
            seed: self.settings.seed,
            ..compare::Settings::default()
        };
        compare::compare(targets, &settings, observer)
            .map_err(|error| SideBySideError::Measurement(error.to_string()))
    }

    fn full_load_words(&self, paths: &[String], times: Times) -> String {
        format!(
            "GET {}: {} rounds, in each of which every side is started anew, in random order, gets {} connections \
             that ask as fast as they are answered, {} as warm-up and {} that count.",
            paths.join(", GET "),
            times.rounds,
            self.settings.connections,
            seconds(times.warm_up),
            seconds(times.time),
        )
    }

    fn wanted(&self, targets: usize, is_application: bool) -> Wanted {
        let warm_up = if is_application { WARM_UP_APPLICATION } else { WARM_UP_FILES };
        Wanted { targets, overhead: self.start + ENDING, warm_up, rounds_min: ROUNDS_MIN }
    }

    fn closed(&self) -> Pace {
        Pace::Closed { connections: self.settings.connections, think: Duration::ZERO }
    }

    fn left(&self) -> Duration {
        self.settings.within.saturating_sub(self.begun.elapsed())
    }
}

fn target(stack: &Stack, paths: &[String]) -> Target {
    Target {
        name: stack.name.clone(),
        source: stack.source.clone(),
        requests: requests(stack, paths),
        check: Check::default(),
    }
}

fn requests(stack: &Stack, paths: &[String]) -> Vec<Request> {
    paths.iter().map(|path| stack.request(path)).collect()
}

/// The lowest rate of the control and onehop.
fn slowest(comparison: &Comparison) -> Option<f64> {
    let row = comparison.rows.iter().find(|row| row.metric == Metric::Rate && row.test == 1)?;
    Some(row.control_value.min(row.test_value)).filter(|rate| rate.is_finite())
}

/// The rows of the comparison at full load, with those of latencies in the place of theirs. A target that was not in
/// the second comparison has no latencies: its own would be at another load.
fn merged(full: Vec<compare::Row>, latencies: Vec<compare::Row>) -> Vec<compare::Row> {
    let is_latency = |metric: Metric| matches!(metric, Metric::P50 | Metric::P99);
    let mut rows: Vec<compare::Row> = full.into_iter().filter(|row| !is_latency(row.metric)).collect();
    let before =
        |row: &compare::Row, latency: &compare::Row| (row.test, row.metric) < (latency.test, latency.metric);
    for latency in latencies.into_iter().filter(|row| is_latency(row.metric)) {
        // Where those of full load stood: behind the last row of its target that comes before it in the table.
        let at = rows
            .iter()
            .rposition(|row| before(row, &latency) && row.test == latency.test)
            .map_or(0, |at| at + 1);
        rows.insert(at, latency);
    }
    rows
}

/// What is said of both comparisons once, the rest with the one of which it is said.
fn distinguished(full: Vec<Caveat>, latencies: Vec<Caveat>) -> Vec<Caveat> {
    let (of_both, of_full): (Vec<Caveat>, Vec<Caveat>) =
        full.into_iter().partition(|caveat| latencies.contains(caveat));
    let of_latencies = latencies.into_iter().filter(|caveat| !of_both.contains(caveat));
    let of_latencies: Vec<Caveat> = of_latencies.map(|caveat| caveat.of("of latencies")).collect();
    let of_full = of_full.into_iter().map(|caveat| caveat.of("at full load"));
    of_full.chain(of_latencies).chain(of_both).collect()
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use onehop_statistics::{Interval, Verdict};

    use super::*;

    fn row(test: usize, metric: Metric, value: f64) -> compare::Row {
        let ratio = Interval { middle: 1.0, low: 1.0, high: 1.0, confidence: 0.99 };
        let (control_value, test_value, verdict, pairs) = (value, value, Verdict::NotShown, 5);
        compare::Row { metric, test, control_value, test_value, ratio, verdict, pairs }
    }

    #[test]
    fn latencies_at_full_load_give_way_to_those_at_the_same_load() {
        let metrics = [Metric::CpuPerRequest, Metric::Rate, Metric::P50, Metric::P99, Metric::MemoryMedian];
        let full: Vec<compare::Row> =
            [1, 2].iter().flat_map(|test| metrics.map(|metric| row(*test, metric, 1.0))).collect();
        let latencies = metrics.map(|metric| row(1, metric, 2.0)).to_vec();
        let rows: Vec<(usize, Metric, f64)> =
            merged(full, latencies).iter().map(|row| (row.test, row.metric, row.test_value)).collect();
        assert_eq!(
            rows,
            [
                (1, Metric::CpuPerRequest, 1.0),
                (1, Metric::Rate, 1.0),
                (1, Metric::P50, 2.0),
                (1, Metric::P99, 2.0),
                (1, Metric::MemoryMedian, 1.0),
                (2, Metric::CpuPerRequest, 1.0),
                (2, Metric::Rate, 1.0),
                (2, Metric::MemoryMedian, 1.0),
            ]
        );
    }

    #[test]
    fn a_caveat_says_of_which_comparison_it_is() {
        let list = |words: &[&str]| words.iter().map(|word| CaveatCode::Note.says(*word)).collect::<Vec<_>>();
        let distinguished = distinguished(list(&["few cores", "a"]), list(&["few cores", "b"]));
        assert_eq!(
            distinguished.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["at full load: a", "of latencies: b", "few cores"]
        );
    }
}
