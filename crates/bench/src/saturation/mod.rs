//! The highest rate at which a percentile stays under a limit, and the curve on the way there.
//!
//! Owns the search. A short closed loop says what the server can do at most; every step after it is an open loop, so
//! that a server that falls behind is found out. After a step beyond the limit the server may empty its queues, so that
//! no step pays for the one before it.
//!
//! `bisection.rs` decides which rate is tried next, `verdict.rs` whether it was within the limit; both are pure, and
//! here it is tried.

use std::fmt;
use std::time::Duration;

use onehop_load::engine::{self, LoadError};
use onehop_load::outcome::{End, Run};
use onehop_load::plan::{Arrivals, Pace, Phase, Plan, Spacing, Until};
use onehop_load::progress::Observer;

mod bisection;
#[cfg(test)]
mod simulated;
mod verdict;

use bisection::{Bisection, Next};
pub use verdict::Verdict;

/// The closed loop only learns the order of magnitude.
const PROBE_TIME: Duration = Duration::from_secs(1);
/// Connections of the closed loop: enough to keep a server busy, few enough that one that takes 100 ms for each
/// request answers them all within seconds.
const PROBE_CONNECTIONS: usize = 64;
/// Where the closed loop had no good answer, the search begins here, requests per second.
const START_UNKNOWN: f64 = 10.0;
/// The first rate is this share of what the closed loop reached, a load that most servers bear easily.
const START_SHARE: f64 = 0.5;
/// After a step beyond the limit one connection asks alone for this time. Its first answer comes when the server is
/// through with what the step left behind.
const DRAIN_TIME: Duration = Duration::from_millis(500);
/// Answers beyond the percentile on which it rests; with fewer it is chance.
const RESPONSES_BEYOND_MIN: f64 = 10.0;
/// A step lasts longer where its rate would give too few answers, at most so many times as long.
const TIME_FACTOR_MAX: u32 = 4;
/// Requests in the longest step below which nothing can be learned of a rate.
const REQUESTS_MIN: f64 = 10.0;
/// A confirmation lasts so many times as long as a step at the same rate.
const CONFIRMATION_FACTOR: u32 = 2;

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
    /// Whether it stayed within the limit, and why not.
    pub verdict: Verdict,
}

/// How it is looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The distances between arrivals.
    pub spacing: Spacing,
    /// Length of each step; longer where a rate gives too few answers for the percentile.
    pub time: Duration,
    /// Load before each step, not counted.
    pub warm_up: Duration,
    /// The first rate, requests per second; `None` takes half of what a short closed loop reaches.
    pub start: Option<f64>,
    /// The search is over when the highest rate within the limit and the lowest beyond it differ by this share.
    pub precision: f64,
    /// Steps at most, confirmations among them.
    pub steps_max: usize,
}

/// What a search found.
#[derive(Debug, Clone)]
pub struct Saturation {
    /// What was looked for.
    pub limit: Limit,
    /// All rates that were tried, in rising order.
    pub points: Vec<Point>,
    /// The highest rate within the limit, which a longer step of its own confirmed, or why there is none.
    pub best: Result<f64, NoRate>,
    /// Where the load, not the server, was the limit: then `best` is only a lower bound.
    pub load_was_the_limit: bool,
    /// What a reader must know, for people.
    pub caveats: Vec<String>,
}

/// Why no rate was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoRate {
    /// The search was broken off.
    Interrupted,
    /// Not even the lowest rate that was tried, requests per second, was within the limit.
    LowestBeyond(f64),
    /// Rates were within the limit for a step, and none of them for a longer one.
    Unconfirmed,
    /// The steps that the search may take were used up.
    OutOfSteps,
}

impl Point {
    /// Whether it stayed within the limit.
    pub fn is_within(&self) -> bool {
        self.verdict == Verdict::Within
    }
}

impl fmt::Display for NoRate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoRate::Interrupted => out.write_str("the search was broken off before it was over"),
            NoRate::LowestBeyond(rate) => {
                write!(
                    out,
                    "not even the lowest rate that was tried, {rate:.1} requests per second, was within the limit"
                )
            }
            NoRate::Unconfirmed => out
                .write_str("rates were within the limit for a short time, and none of them for a longer one"),
            NoRate::OutOfSteps => out.write_str("the search took all its steps before a rate was confirmed"),
        }
    }
}

impl Default for Settings {
    /// Some ten steps of 5 s: a minute and a half.
    fn default() -> Self {
        Settings {
            spacing: Spacing::Poisson,
            time: Duration::from_secs(5),
            warm_up: Duration::from_secs(1),
            start: None,
            precision: 0.05,
            steps_max: 40,
        }
    }
}

/// Looks for the highest rate within the limit. The plan gives what is asked and, with its pace, how many
/// connections there may be; its own end and warm-up do not count.
///
/// An interruption is no error: the points until then are reported, without a best rate.
///
/// # Errors
/// Where the load could not begin.
pub fn search(
    plan: &Plan,
    limit: Limit,
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Saturation, LoadError> {
    find(limit, settings, &mut |measurement| load_server(plan, settings, measurement, observer))
}

/// What the search measures.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Measurement {
    /// A closed loop, to learn what it can do at most.
    Probe,
    /// An open loop at this rate.
    Step { rate: f64, time: Duration, number: usize, is_confirmation: bool },
    /// To become idle.
    Drain,
}

/// The search, of a server that `measure` loads.
fn find(
    limit: Limit,
    settings: &Settings,
    measure: &mut dyn FnMut(Measurement) -> Result<Run, LoadError>,
) -> Result<Saturation, LoadError> {
    let mut is_interrupted = false;
    let start = match settings.start {
        Some(start) => start,
        None => {
            let run = measure(Measurement::Probe)?;
            is_interrupted = run.end == End::Interrupted;
            measure(Measurement::Drain)?;
            if run.completed == 0 { START_UNKNOWN } else { run.rate() * START_SHARE }
        }
    };
    let lowest = REQUESTS_MIN / (settings.time * TIME_FACTOR_MAX).as_secs_f64().max(f64::MIN_POSITIVE);
    let mut bisection = Bisection::new(start, lowest, settings.precision, settings.steps_max);
    let mut points = Vec::new();
    while !is_interrupted {
        let (rate, is_confirmation) = match bisection.next() {
            Next::Try(rate) => (rate, false),
            Next::Confirm(rate) => (rate, true),
            Next::Done => break,
        };
        let time = length(rate, is_confirmation, limit, settings);
        let run = measure(Measurement::Step { rate, time, number: points.len() + 1, is_confirmation })?;
        let verdict = Verdict::of(&run, limit);
        points.push(Point { offered: rate, run, verdict });
        is_interrupted = verdict == Verdict::Incomplete;
        bisection.saw(verdict.seen());
        if !is_interrupted && verdict != Verdict::Within {
            is_interrupted = measure(Measurement::Drain)?.end == End::Interrupted;
        }
    }
    points.sort_by(|one, other| one.offered.total_cmp(&other.offered));
    let best = bisection.best().ok_or_else(|| why_none(is_interrupted, &bisection, &points));
    let load_was_the_limit = bisection.is_load_the_limit();
    let caveats = caveats(&points, limit, best.is_ok() && !bisection.is_precise());
    Ok(Saturation { limit, points, best, load_was_the_limit, caveats })
}

/// How long a rate is tried.
fn length(rate: f64, is_confirmation: bool, limit: Limit, settings: &Settings) -> Duration {
    let responses = RESPONSES_BEYOND_MIN / (1.0 - limit.share).max(f64::MIN_POSITIVE);
    let longest = settings.time * TIME_FACTOR_MAX;
    let wanted = Duration::try_from_secs_f64(responses / rate).unwrap_or(longest);
    let time = wanted.clamp(settings.time, longest);
    if is_confirmation { time * CONFIRMATION_FACTOR } else { time }
}

/// Measures by the engine.
fn load_server(
    plan: &Plan,
    settings: &Settings,
    measurement: Measurement,
    observer: &mut dyn Observer,
) -> Result<Run, LoadError> {
    let connections = plan.pace.connections();
    let closed = |connections| Pace::Closed { connections, think: Duration::ZERO };
    let (pace, time, warm_up, seed) = match measurement {
        Measurement::Probe => {
            observer.stage("a closed loop, to learn what the server can do at most");
            (closed(connections.min(PROBE_CONNECTIONS)), PROBE_TIME, settings.warm_up, plan.seed)
        }
        Measurement::Step { rate, time, number, is_confirmation } => {
            let what = if is_confirmation { "confirming" } else { "trying" };
            observer.stage(&format!("step {number}: {what} {rate:.0} requests per second"));
            let phases = vec![Phase { from: rate, to: rate, length: time }];
            let arrivals = Arrivals { spacing: settings.spacing, phases };
            // Other arrivals at each step, so that a confirmation is one.
            let seed = plan.seed.wrapping_add(number as u64);
            (Pace::Open { connections, arrivals }, time, settings.warm_up, seed)
        }
        Measurement::Drain => (closed(1), DRAIN_TIME, Duration::ZERO, plan.seed),
    };
    let until = Until { time: Some(time), ..Until::default() };
    engine::run(&Plan { pace, until, warm_up, seed, ..plan.clone() }, observer)
}

fn why_none(is_interrupted: bool, bisection: &Bisection, points: &[Point]) -> NoRate {
    match points.first() {
        _ if is_interrupted => NoRate::Interrupted,
        Some(lowest) if bisection.is_none_within() => NoRate::LowestBeyond(lowest.offered),
        Some(_) if bisection.is_given_up() => NoRate::Unconfirmed,
        _ => NoRate::OutOfSteps,
    }
}

fn caveats(points: &[Point], limit: Limit, is_imprecise: bool) -> Vec<String> {
    let mut caveats = Vec::new();
    if is_imprecise {
        caveats.push(format!(
            "the search ended after {} steps, before it was as precise as it was to be",
            points.len()
        ));
    }
    let has_few = |point: &&Point| (point.run.total.good as f64) * (1.0 - limit.share) < RESPONSES_BEYOND_MIN;
    let few = points.iter().filter(has_few).count();
    if few > 0 {
        caveats.push(format!(
            "at {few} of {} steps the percentile is based on fewer than ten answers: a longer --time tells more",
            points.len()
        ));
    }
    caveats
}
