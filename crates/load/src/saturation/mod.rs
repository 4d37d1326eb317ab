//! The highest rate at which a percentile stays under a limit, and the curve on the way there.
//!
//! Owns the search. Every point is an open loop, so that a server that falls behind is seen to.
//!
//! `path.rs` decides which rate is tried next, and is pure; here it is tried.

use std::time::Duration;

use crate::engine::{self, LoadError};
use crate::outcome::{Bottleneck, End, Run};
use crate::plan::{Arrivals, Pace, Phase, Plan, Spacing, Until};
use crate::progress::Observer;

mod path;

use path::{Path, Seen, Step};

/// The first closed loop only learns the order of magnitude.
const LOOK_TIME: Duration = Duration::from_secs(1);
/// Where that learned nothing, the search begins here, requests per second.
const START_UNKNOWN: f64 = 100.0;
/// The lowest rate is this share of what the closed loop reached: surely within any limit that can be met at all.
const START_SHARE: f64 = 0.05;
/// Answers beyond the percentile on which it stands; with fewer it is chance.
const RESPONSES_BEYOND_MIN: f64 = 10.0;

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The percentile as a share, 0.99 for p99.
    pub share: f64,
    /// What it must not exceed.
    pub latency: Duration,
    /// The share of requests that may fail, 0.001 for one of a thousand.
    pub failures: f64,
}

/// One rate that was tried.
#[derive(Debug, Clone)]
pub struct Point {
    /// Requests per second that were offered.
    pub offered: f64,
    /// What came of it.
    pub run: Run,
    /// Whether it stayed within the limit.
    pub is_within: bool,
}

/// How it is looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The distances between arrivals.
    pub spacing: Spacing,
    /// Length of each point.
    pub time: Duration,
    /// Load before each point, not counted.
    pub warm_up: Duration,
    /// The first rate, requests per second; `None` takes a twentieth of what a short closed loop reaches.
    pub start: Option<f64>,
    /// The search is over when the best rate and the lowest that is too much differ by this share.
    pub precision: f64,
    /// Points at most, confirmations among them.
    pub points_max: usize,
}

/// What a search found.
#[derive(Debug, Clone)]
pub struct Saturation {
    /// What was looked for.
    pub limit: Limit,
    /// All rates that were tried, in rising order.
    pub points: Vec<Point>,
    /// The highest rate within the limit that was confirmed by a second run; `None` where not even the lowest was.
    pub best: Option<f64>,
    /// Where the load, not the server, was the limit: then `best` is only a lower bound.
    pub load_was_the_limit: bool,
    /// What a reader must know, for people.
    pub caveats: Vec<String>,
}

impl Default for Settings {
    /// Some 15 points of 5 s: a minute and a half.
    fn default() -> Self {
        Settings {
            spacing: Spacing::Poisson,
            time: Duration::from_secs(5),
            warm_up: Duration::from_secs(1),
            start: None,
            precision: 0.05,
            points_max: 30,
        }
    }
}

/// Looks for the highest rate within the limit. The plan gives what is asked and, with its pace, how many
/// connections there may be; its own end and warm-up do not count.
///
/// An interruption is no error: the points until then are told, with a caveat and without a best rate.
///
/// # Errors
/// Where the load could not begin.
pub fn search(
    plan: &Plan,
    limit: Limit,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Saturation, LoadError> {
    let mut search = Search { plan, limit, settings, observer, points: Vec::new() };
    let start = search.start()?;
    let mut path = Path::new(start, settings.precision, settings.points_max);
    let mut is_broken_off = search.observer.is_interrupted();
    while !is_broken_off {
        let (rate, words) = match path.next() {
            Step::Try(rate) => (rate, "trying"),
            Step::Confirm(rate) => (rate, "confirming"),
            Step::Done => break,
        };
        let seen = search.point(rate, words, path.tried())?;
        is_broken_off = search.points.last().is_some_and(|point| point.run.end == End::Interrupted);
        path.saw(seen);
    }
    let mut points = search.points;
    points.sort_by(|one, other| one.offered.total_cmp(&other.offered));
    let best = path.best();
    let load_was_the_limit = path.is_load_the_limit();
    let caveats = caveats(&points, limit, &path, is_broken_off);
    Ok(Saturation { limit, points, best, load_was_the_limit, caveats })
}

struct Search<'a> {
    plan: &'a Plan,
    limit: Limit,
    settings: &'a Settings,
    observer: &'a mut dyn Observer,
    points: Vec<Point>,
}

impl Search<'_> {
    /// The first rate.
    fn start(&mut self) -> Result<f64, LoadError> {
        if let Some(start) = self.settings.start {
            return Ok(start);
        }
        self.observer.stage("looking what the server can do at all");
        let pace = Pace::Closed { connections: self.plan.pace.connections(), think: Duration::ZERO };
        let until = Until { time: Some(LOOK_TIME), ..Until::default() };
        let plan = Plan { pace, until, warm_up: self.settings.warm_up, ..self.plan.clone() };
        let run = engine::run(&plan, self.observer)?;
        Ok(if run.total.good == 0 { START_UNKNOWN } else { run.rate() * START_SHARE })
    }

    /// Tries one rate.
    fn point(&mut self, rate: f64, words: &str, tried: usize) -> Result<Seen, LoadError> {
        self.observer.stage(&format!("point {}: {words} {rate:.0} requests per second", tried + 1));
        let phases = vec![Phase { from: rate, to: rate, length: self.settings.time }];
        let arrivals = Arrivals { spacing: self.settings.spacing, phases };
        let plan = Plan {
            pace: Pace::Open { connections: self.plan.pace.connections(), arrivals },
            until: Until { time: Some(self.settings.time), ..Until::default() },
            warm_up: self.settings.warm_up,
            // Other arrivals at each point, so that a confirmation is one.
            seed: self.plan.seed.wrapping_add(tried as u64),
            ..self.plan.clone()
        };
        let run = engine::run(&plan, self.observer)?;
        let seen = judge(&run, self.limit);
        self.points.push(Point { offered: rate, run, is_within: seen == Seen::Within });
        Ok(seen)
    }
}

/// Whether a run stayed within the limit, and whose fault it is if not.
///
/// Connections that are all busy are the server's doing: it holds them, and arrivals that wait for one are in the
/// latency already.
fn judge(run: &Run, limit: Limit) -> Seen {
    use Bottleneck::{Core, Late, System, Thread};
    let bottleneck = run.generator.bottleneck.filter(|_| run.total.good > 0);
    if let Some(Thread { .. } | Core { .. } | System { .. } | Late { .. }) = bottleneck {
        return Seen::LoadAtItsLimit;
    }
    let total = &run.total;
    let failed = (total.unexpected + total.failures.sum()) as f64 / (total.requests() as f64).max(1.0);
    let is_whole = !run.end.is_early();
    let is_answered = total.good > 0 && failed <= limit.failures;
    if is_whole && is_answered && total.latency.at(limit.share) <= limit.latency {
        Seen::Within
    } else {
        Seen::Beyond
    }
}

fn caveats(points: &[Point], limit: Limit, path: &Path, is_broken_off: bool) -> Vec<String> {
    let mut caveats = Vec::new();
    if is_broken_off {
        caveats.push("it was broken off before the search was over: there is no best rate yet".to_owned());
    } else if path.is_out_of_points() {
        let count = points.len();
        caveats
            .push(format!("the search ended after {count} points, before it was as precise as it was to be"));
    }
    if path.is_load_the_limit() {
        caveats.push(
            "the load was at its own limit: the server may take more than the best rate. Give the load more threads \
             and cores"
                .to_owned(),
        );
    }
    if path.best().is_none() && !is_broken_off {
        caveats.push(format!(
            "no rate that was tried stayed within the limit twice: p{} below {:?}, failures up to {} %",
            limit.share * 100.0,
            limit.latency,
            limit.failures * 100.0
        ));
    }
    let has_few = |point: &&Point| (point.run.total.good as f64) * (1.0 - limit.share) < RESPONSES_BEYOND_MIN;
    let few = points.iter().filter(has_few).count();
    if few > 0 {
        caveats.push(format!(
            "at {few} of {} points the percentile stands on fewer than ten answers: longer points tell more",
            points.len()
        ));
    }
    caveats
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::outcome::{Generator, Tally};

    const LIMIT: Limit = Limit { share: 0.99, latency: Duration::from_millis(10), failures: 0.001 };

    fn run(good: u64, millis: u64, failed: u64) -> Run {
        let mut total = Tally { good, ..Tally::default() };
        total.latency.record_many(Duration::from_millis(millis), good);
        total.failures.timed_out = failed;
        Run {
            begun: SystemTime::UNIX_EPOCH,
            elapsed: Duration::from_secs(1),
            completed: good,
            total,
            by_request: Vec::new(),
            slices: Vec::new(),
            slice_length: Duration::from_millis(100),
            stalls: Vec::new(),
            omitted: None,
            generator: Generator::default(),
            end: End::Time,
        }
    }

    fn limited(bottleneck: Bottleneck) -> Run {
        let generator = Generator { bottleneck: Some(bottleneck), ..Generator::default() };
        Run { generator, ..run(1000, 5, 0) }
    }

    #[test]
    fn a_point_is_within_only_with_its_latency_its_answers_and_a_load_that_kept_up() {
        assert_eq!(judge(&run(1000, 9, 1), LIMIT), Seen::Within);
        assert_eq!(judge(&run(1000, 11, 0), LIMIT), Seen::Beyond);
        assert_eq!(judge(&run(1000, 5, 3), LIMIT), Seen::Beyond);
        assert_eq!(judge(&run(0, 5, 0), LIMIT), Seen::Beyond);
        assert_eq!(judge(&limited(Bottleneck::Thread { share: 1.0 }), LIMIT), Seen::LoadAtItsLimit);
        assert_eq!(judge(&limited(Bottleneck::Connections { arrivals: 9 }), LIMIT), Seen::Within);
        let interrupted = Run { end: End::Interrupted, ..run(1000, 5, 0) };
        assert_eq!(judge(&interrupted, LIMIT), Seen::Beyond);
    }

    #[test]
    fn what_a_reader_must_know_is_said() {
        let mut path = Path::new(10.0, 0.05, 30);
        for _ in 0..4 {
            path.next();
            path.saw(Seen::LoadAtItsLimit);
        }
        let points = [Point { offered: 10.0, run: run(10, 1, 0), is_within: false }];
        let reported = [caveats(&points, LIMIT, &path, false), caveats(&points, LIMIT, &path, true)].concat();
        insta::assert_snapshot!(reported.join("\n"));
    }
}
