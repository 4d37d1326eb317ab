//! Two or more servers, asked the same in interleaved rounds.
//!
//! Owns the order of things (start, ready, warm up, measure, stop; targets in random order within each round) and the
//! table that comes of it. Never averages over targets, never compares figures of different rounds, and never lets a
//! cold start into the figures of a warm server.
//!
//! `rounds.rs` orders all that happens, `target.rs` is one target from its start to its end, `checked.rs` looks at
//! its first answers, `recovery.rs` at what follows on an overload, `marks.rs` says what makes a measurement unlike the others, `table.rs` makes rows of those that remain, `caveats.rs` says what to know first.

use std::time::Duration;

use onehop_load::caveat::{Caveat, CaveatCode};
use onehop_load::engine::{self, LoadError};
use onehop_load::measure::{self, IdleError, IdleMemory, Stage, Start, StartError, Usage};
use onehop_load::outcome::Run;
use onehop_load::plan::{Pace, Request, Reuse, Timeouts};
use onehop_load::progress::Observer;
use onehop_statistics::{Interval, Verdict};

mod caveats;
mod checked;
mod marks;
mod recovery;
mod rounds;
#[cfg(test)]
mod sample;
mod table;
mod target;

pub use recovery::Recovery;

/// Rounds of a comparison. With 60 a difference of 5 % is found where the figures of a server vary by 5 % from round to round, as
/// they do on shared machines; with 15 where they vary by 2 % (`onehop_statistics::detectable`).
const ROUNDS: usize = 60;
/// Rounds beyond are a mistake in typing: a day of them.
const ROUNDS_MAX: usize = 10_000;
/// How often a comparison that goes on until it is decided looks whether it is: at twice as many rounds each time, four
/// times as many at most.
const LOOKS: usize = 3;
/// One measurement. More rounds tell more than longer ones: luck changes with the start of a process, and a machine changes its speed
/// less between two measurements that follow each other soon.
const TIME: Duration = Duration::from_millis(500);
/// Long enough for connections and caches to be there.
const WARM_UP: Duration = Duration::from_millis(500);
/// The default before a server that is started for each round: just-in-time compilers work for seconds.
/// An Express application that is measured half a second after its start takes 1.5 to 1.8 times the CPU of one that has run for four
/// or eight seconds, and one after two seconds 1.0 to 1.1 times (2026-11-29, two cores, 64 connections).
pub const WARM_UP_STARTED: Duration = Duration::from_secs(3);
/// Enough to keep a server of a few cores busy, few enough for latency to be the server's and not the queue's.
const CONNECTIONS: usize = 32;

/// One of the servers.
#[derive(Debug, Clone)]
pub struct Target {
    /// What it is called in reports.
    pub name: String,
    /// Where it comes from.
    pub source: Source,
    /// What is asked of it. The addresses of a target that is started are filled in when it is ready; `{port}` in
    /// [`Source::Command`] and the port of these targets are then the same.
    pub requests: Vec<Request>,
    /// What its answers must be like.
    pub check: Check,
}

/// What the first answer to each request must be like, beside its status, for a target to be measured at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Check {
    /// Bytes of the body.
    pub body_bytes: Option<u64>,
    /// The content coding. It is waited for: some servers compress after their start.
    pub encoding: Option<String>,
    /// Requests are asked with the validator of their first answer, and 304 is then expected (RFC 9110 section 13).
    pub is_conditional: bool,
}

/// Where a target comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// It runs already; nothing is started or ended. Its processes are looked for by who listens there.
    Running,
    /// It is started for each round and ended after it.
    Command(Start),
    /// The same, with files and servers around it that are set up before.
    Staged(Stage),
}

/// How targets are compared.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Rounds; each target is measured once in each.
    pub rounds: usize,
    /// Go on with twice as many rounds, and twice again, until CPU time per request (where it is not known, the rate or the
    /// median latency) is decided for every target. Three looks at the data would be wrong three times as often, so each
    /// look may be wrong a third as often as [`Settings::confidence`] allows (Bonferroni correction).
    pub until_decided: bool,
    /// Load before each measurement, not counted.
    pub warm_up: Duration,
    /// When requests of the warm-up begin, where that is another way than [`Settings::pace`]. A low rate does not warm
    /// a just-in-time compiler: it counts calls, not time.
    pub warm_up_pace: Option<Pace>,
    /// Length of each measurement.
    pub time: Duration,
    /// When requests begin.
    pub pace: Pace,
    /// How long a connection is used.
    pub reuse: Reuse,
    /// How long is waited for what.
    pub timeouts: Timeouts,
    /// More is asked than can be answered: refusals and requests without a response do not void a measurement, and the rate
    /// of an open loop is that of the expected responses.
    pub is_overload: bool,
    /// Threads of the load.
    pub threads: usize,
    /// Cores of the servers; empty leaves it to the system.
    pub server_cores: Vec<usize>,
    /// Cores of the load; empty leaves it to the system.
    pub load_cores: Vec<usize>,
    /// Also measure the first answer after so long without a request.
    pub idle: Option<Duration>,
    /// Idle connections that are open before and during the load; also measure the memory that they take. 0 for none.
    pub idle_connections: usize,
    /// Also measure the recovery from an overload. Needs a warm-up, whose p99 is the normal one.
    pub recovery: Option<Recovery>,
    /// How sure a verdict is, 0.99 for 99 %.
    pub confidence: f64,
    /// A difference below this share counts as none, 0.01 for 1 %.
    pub least_difference: f64,
    /// The seed of all that is random.
    pub seed: u64,
}

/// Why nothing could be compared. Its text is for a person.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// One target or none.
    #[error("there is nothing to compare: name a control and at least one arm beside it")]
    TooFewTargets,
    /// A target of which nothing is asked.
    #[error("nothing is asked of `{target}`: give it at least one URL")]
    NoRequests {
        /// The target.
        target: String,
    },
    /// Settings that cannot be worked with.
    #[error("{0}")]
    Settings(&'static str),
    /// A target does not run.
    #[error("`{target}` cannot be measured: {source}")]
    Start {
        /// The target.
        target: String,
        /// What happened.
        source: StartError,
    },
    /// A target runs, but not all is answered as expected.
    #[error(
        "`{target}` cannot be measured: the request `{request}` {why}. Correct it, or say which statuses are expected"
    )]
    NotAsExpected {
        /// The target.
        target: String,
        /// The request.
        request: String,
        /// What came instead.
        why: String,
    },
    /// Idle connections could not be held.
    #[error("`{target}` cannot be measured: {source}")]
    Idle {
        /// The target.
        target: String,
        /// What happened.
        source: IdleError,
    },
    /// The load could not begin.
    #[error("`{target}` cannot be measured: {source}")]
    Load {
        /// The target.
        target: String,
        /// What happened.
        source: LoadError,
    },
}

/// Measures all targets in every round, in random order, and compares each with the first.
///
/// An interruption is no error: what was measured until then is told, with a caveat.
///
/// # Errors
/// Where the settings cannot be worked with, or a target fails in the first round in which it is measured. One that
/// fails later is left out of that round, with a caveat.
pub fn compare(
    targets: &[Target],
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<Comparison, CompareError> {
    check(targets, settings)?;
    let raised = engine::make_room_early(settings.pace.connections() + settings.idle_connections);
    let of_each_look = Settings { confidence: settings.confidence_of_each_look(), ..settings.clone() };
    let mut measured = rounds::Measured::nothing(targets, &of_each_look);
    let mut rows = Vec::new();
    for rounds in settings.looks() {
        measured.until(rounds, observer)?;
        rows = table::rows(targets.len(), &measured.samples, &of_each_look);
        if measured.is_broken_off || table::is_decided(targets.len(), &rows) {
            break;
        }
    }
    let rounds::Measured { samples, mut caveats, rounds, .. } = measured;
    let settings = &Settings { rounds, ..of_each_look };
    let is_started = targets.iter().any(|target| !matches!(target.source, Source::Running));
    caveats.extend(raised.filter(|_| is_started).map(|limit| {
        CaveatCode::Descriptors.says(format!(
            "the load needs more descriptors than `ulimit -n` allowed: the servers had {limit} in all rounds"
        ))
    }));
    caveats.extend(caveats::of(targets, settings, &samples, &rows));
    caveats.extend(measure::core_caveats(&settings.server_cores, &settings.load_cores));
    Ok(Comparison {
        targets: targets.iter().map(|target| target.name.clone()).collect(),
        samples,
        rows,
        settings: settings.clone(),
        caveats,
    })
}

fn check(targets: &[Target], settings: &Settings) -> Result<(), CompareError> {
    if targets.len() < 2 {
        return Err(CompareError::TooFewTargets);
    }
    if let Some(target) = targets.iter().find(|target| target.requests.is_empty()) {
        return Err(CompareError::NoRequests { target: target.name.clone() });
    }
    let wrong = match settings {
        Settings { rounds: 0, .. } => "a comparison needs at least one round, and three for a verdict",
        Settings { rounds, .. } if *rounds > ROUNDS_MAX => "more than 10,000 rounds take days: use fewer",
        Settings { time, .. } if time.is_zero() => "a measurement needs a length: a second or two",
        Settings { confidence, .. } if !(0.5..1.0).contains(confidence) => {
            "the confidence is a share from 0.5 to below 1: 0.99 is usual"
        }
        Settings { least_difference, .. } if !(0.0..1.0).contains(least_difference) => {
            "the least difference is a share from 0 to below 1: 0.01 is usual"
        }
        _ => return Ok(()),
    };
    Err(CompareError::Settings(wrong))
}

impl Default for Settings {
    /// A closed loop, each side on cores of its own where there are two.
    fn default() -> Self {
        let (server_cores, load_cores) = measure::split_cores();
        Settings {
            rounds: ROUNDS,
            until_decided: false,
            warm_up: WARM_UP,
            warm_up_pace: None,
            time: TIME,
            pace: Pace::Closed { connections: CONNECTIONS, think: Duration::ZERO },
            reuse: Reuse::Kept,
            timeouts: Timeouts::default(),
            is_overload: false,
            threads: 1,
            server_cores,
            load_cores,
            idle: None,
            idle_connections: 0,
            recovery: None,
            confidence: 0.99,
            least_difference: 0.01,
            seed: 1,
        }
    }
}

impl Settings {
    /// The numbers of rounds after which it may end, rising.
    pub fn looks(&self) -> impl Iterator<Item = usize> + use<> {
        let (rounds, looks) = (self.rounds, if self.until_decided { LOOKS } else { 1 });
        (0..looks).map(move |look| rounds << look)
    }

    /// The smallest difference, 0.05 for 5 %, that 95 of 100 such comparisons find where the figure of each server varies
    /// by this share from round to round (standard deviation).
    pub fn detectable(&self, noise: f64) -> f64 {
        let rounds = self.looks().last().unwrap_or(self.rounds);
        onehop_statistics::detectable(rounds, noise, self.confidence_of_each_look(), self.least_difference)
    }

    fn confidence_of_each_look(&self) -> f64 {
        1.0 - (1.0 - self.confidence) / self.looks().count() as f64
    }
}

/// What a comparison found.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// Names of the targets; the first is the control.
    pub targets: Vec<String>,
    /// Every measurement.
    pub samples: Vec<Sample>,
    /// One row for each metric and each target beside the control.
    pub rows: Vec<Row>,
    /// The settings.
    pub settings: Settings,
    /// What a reader must know before believing a row.
    pub caveats: Vec<Caveat>,
}

/// One target in one round.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The target's place in [`Comparison::targets`].
    pub target: usize,
    /// The round, from 0.
    pub round: usize,
    /// What the load saw.
    pub run: Run,
    /// What the target's processes used meanwhile; `None` where they could not be found or read.
    pub usage: Option<Usage>,
    /// From the start of the program to its first whole answer.
    pub cold_start: Option<Duration>,
    /// The server's memory without and with idle connections.
    pub idle_memory: Option<IdleMemory>,
    /// The first answer after idleness.
    pub after_idle: Option<Duration>,
    /// From the end of an overload until responses were normal again, see [`Settings::recovery`].
    pub recovery: Option<Duration>,
    /// What makes this sample unlike the others.
    pub marks: Vec<Mark>,
}

/// What makes a sample unlike the others. Marked samples are shown, and left out of the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// The run began before the server was warm: its first slices are far from the rest.
    StartUp {
        /// How long it took until the figures were steady.
        lasted: Duration,
    },
    /// The server (or the machine) stood still.
    Pause {
        /// Begin, from the begin of the measurement.
        at: Duration,
        /// How long.
        length: Duration,
    },
    /// Wrong or missing answers: the sample is void.
    Void(String),
    /// The load limited itself.
    LoadWasTheBottleneck,
    /// The load sent some requests late: the longest latencies hold that, the median does not.
    LoadWasLate,
    /// The target was started anew, or ended, within the run.
    Restarted,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// CPU time per whole, expected answer, microseconds. Less is better.
    CpuPerRequest,
    /// Whole, expected answers per second. More is better.
    Rate,
    /// Median latency, microseconds.
    P50,
    /// 99th percentile of latency, microseconds.
    P99,
    /// Median resident memory, bytes.
    MemoryMedian,
    /// 99th percentile of resident memory, bytes.
    MemoryP99,
    /// Memory before the first idle connection, bytes.
    MemoryAtRest,
    /// Memory that each idle connection adds, bytes.
    MemoryPerIdleConnection,
    /// Context switches per request.
    Switches,
    /// Bytes through read and write calls per request.
    IoBytes,
    /// From the start to the first answer, microseconds.
    ColdStart,
    /// First answer after idleness, microseconds.
    AfterIdle,
    /// From the end of an overload until responses are normal again, microseconds.
    Recovery,
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What is compared.
    pub metric: Metric,
    /// The target beside the control.
    pub test: usize,
    /// The control's figure that the middle of `ratio` belongs to, see [`estimates`](onehop_statistics::estimates).
    /// Without a pair, or where the load was the limit mostly, not a number; but a rate is then the median of all
    /// rounds, and no more than a lower bound.
    pub control_value: f64,
    /// The target's.
    pub test_value: f64,
    /// The ratio test / control, of pairs within rounds, with its interval.
    pub ratio: Interval,
    /// What may be said.
    pub verdict: Verdict,
    /// Pairs that the interval stands on.
    pub pairs: usize,
}
