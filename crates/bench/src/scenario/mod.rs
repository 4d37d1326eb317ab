//! Scenarios: comparisons that are written down, so that anybody can run them again.
//!
//! A scenario is a folder with a `scenario.toml`: servers with the commands that start them, cases (what is asked, over how
//! many connections), and bounds. Owns reading it and going through its cases; each case is one comparison, and all that
//! `compare` says of a comparison holds for it. Never judges a figure itself: intervals and verdicts are those of
//! `statistics`.
//!
//! `file.rs` is how it is written, `bounds.rs` says which bounds hold.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use onehop_load::caveat::Caveat;
use onehop_load::measure::{self, Behind, Stage, Start};
use onehop_load::plan::{Arrivals, Expect, Pace, Phase, Protocol, Request, Reuse, Spacing, Timeouts};
use onehop_load::progress::Observer;
use onehop_load::tls;
use onehop_load::url::{Address, Url};

use crate::compare::{self, Check, CompareError, Comparison, Recovery, Settings, Source, Target};
use crate::shell_words;

mod bounds;
mod file;

pub use bounds::{BoundResult, Held};
pub use file::{Bound, Case, Cores, FIGURES, Figure, File};

/// Rounds that show what servers can answer, before a share of that is asked.
const CAPACITY_ROUNDS: usize = 3;
/// Length of each of them, at most: a longer one says no more.
const CAPACITY_TIME_MAX: Duration = Duration::from_secs(5);

/// A load that a server answers whatever its capacity: enough to keep it busy, too few to be refused.
const WITHIN_CAPACITY: Pace = Pace::Closed { connections: 10, think: Duration::ZERO };

/// The share of the capacity that is asked after an overload, where recovery is measured.
const AFTER_OVERLOAD: f64 = 0.5;

/// What a scenario's file is called.
pub const FILE_NAME: &str = "scenario.toml";

/// A scenario that was read.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The name of its folder.
    pub name: String,
    /// The file.
    path: PathBuf,
    /// Where it lies; commands run there, and files are relative to it.
    pub folder: PathBuf,
    /// What stands in it.
    pub file: File,
}

/// What is run of it, where it is not all as written.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Cases by their names; all, where none is named.
    pub cases: Vec<String>,
    /// Servers by their names; all, where none is named. The first one of the scenario takes part in any case.
    pub servers: Vec<String>,
    /// Rounds instead of the scenario's.
    pub rounds: Option<usize>,
    /// The length of each measurement instead of the scenario's and the cases'.
    pub time: Option<Duration>,
    /// The load before each measurement instead of the scenario's and the cases'.
    pub warm_up: Option<Duration>,
    /// Goes on until every case is decided, see [`Settings::until_decided`].
    pub until_decided: bool,
}

/// What a scenario found.
#[derive(Debug, Clone)]
pub struct ScenarioRun {
    /// Its name.
    pub name: String,
    /// What it is about, as written.
    pub about: String,
    /// One comparison for each case that was measured.
    pub cases: Vec<CaseRun>,
    /// Each bound of these cases.
    pub bounds: Vec<BoundResult>,
    /// Why other cases were not measured, for a person: one for each that failed.
    pub failures: Vec<String>,
    /// It was broken off before all cases were measured.
    pub is_broken_off: bool,
}

/// What a case found.
#[derive(Debug, Clone)]
pub struct CaseRun {
    /// Its name.
    pub name: String,
    /// What was asked, in the order of a run's tallies.
    pub requests: Vec<String>,
    /// The first server beside each other one.
    pub comparison: Comparison,
}

/// Why a scenario cannot be run. Its text is for a person.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file is not there or cannot be read.
    #[error(
        "{file}: {source}. Name a folder with a scenario.toml; `onehop bench init FOLDER` writes one to begin with"
    )]
    Unreadable {
        /// The file.
        file: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// What stands in it cannot be run.
    #[error("{file}: {why}")]
    Wrong {
        /// The file.
        file: String,
        /// What is wrong.
        why: String,
    },
    /// A name that the scenario does not have.
    #[error("there is no {kind} `{name}` in the scenario; there are {known}")]
    Unknown {
        /// Case or server.
        kind: &'static str,
        /// As typed.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// Programs that are not installed.
    #[error("not found in PATH: {0}. Install what is missing, or leave its server out with --servers")]
    Missing(String),
    /// A case could not be measured.
    #[error("case `{case}`: {source}")]
    Case {
        /// The case.
        case: String,
        /// Why.
        source: Box<CompareError>,
    },
}

impl Scenario {
    /// Reads the scenario of a folder, or the file itself.
    ///
    /// # Errors
    /// Where it cannot be read, has a key that is unknown, or names what it does not have.
    pub fn read(place: &Path) -> Result<Scenario, ScenarioError> {
        let path = if place.is_dir() { place.join(FILE_NAME) } else { place.to_owned() };
        let unreadable = |source| ScenarioError::Unreadable { file: path.display().to_string(), source };
        let text = std::fs::read_to_string(&path).map_err(unreadable)?;
        let file = File::parse(&text, &path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = std::path::absolute(folder).map_err(unreadable)?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Scenario { name, path, folder, file })
    }

    /// Checks that all that is chosen is there: names, and programs in PATH.
    ///
    /// # Errors
    /// Names what is missing.
    pub fn check(&self, choice: &Choice) -> Result<(), ScenarioError> {
        let cases: Vec<&str> = self.file.cases.iter().map(|case| case.name.as_str()).collect();
        let servers: Vec<&str> = self.file.servers.iter().map(|server| server.name.as_str()).collect();
        for (kind, chosen, known) in [("case", &choice.cases, &cases), ("server", &choice.servers, &servers)]
        {
            if let Some(name) = chosen.iter().find(|name| !known.contains(&name.as_str())) {
                return Err(ScenarioError::Unknown { kind, name: name.clone(), known: known.join(", ") });
            }
        }
        if self.settings(choice).is_empty() {
            let of = choice.servers.join(", ");
            return Err(self.wrong(format!("no chosen case compares {of} with the first server")));
        }
        let mut missing = BTreeSet::new();
        for program in self.programs(choice)?.into_iter().chain(self.file.needs.iter().cloned()) {
            if !is_in_path(&program) {
                missing.insert(program);
            }
        }
        match missing.is_empty() {
            true => Ok(()),
            false => Err(ScenarioError::Missing(missing.into_iter().collect::<Vec<_>>().join(", "))),
        }
    }

    /// How it is measured: one entry for each case that is chosen.
    pub fn settings(&self, choice: &Choice) -> Vec<(&Case, Settings)> {
        // A case of which only the first server is left compares nothing.
        let others = |case: &&Case| self.taking_part(case, choice).count() > 1;
        let is_named = |case: &&Case| choice.cases.is_empty() || choice.cases.contains(&case.name);
        let chosen = |case: &&Case| is_named(case) && others(case);
        self.file.cases.iter().filter(chosen).map(|case| (case, self.settings_of(case, choice))).collect()
    }

    /// The servers that a case compares, the first one of the scenario first.
    ///
    /// # Errors
    /// Where a command cannot be split into words.
    pub fn targets(&self, case: &Case, choice: &Choice) -> Result<Vec<Target>, ScenarioError> {
        self.taking_part(case, choice).map(|server| self.target(server, case)).collect()
    }

    /// The servers that a case compares: those that are chosen, and the first one in any case.
    fn taking_part<'a>(
        &'a self,
        case: &'a Case,
        choice: &'a Choice,
    ) -> impl Iterator<Item = &'a file::Server> {
        let first = self.file.servers.first().map(|server| server.name.as_str());
        let takes_part = move |server: &&file::Server| {
            let is_chosen = choice.servers.is_empty() || choice.servers.contains(&server.name);
            case.has(&server.name) && (is_chosen || first == Some(server.name.as_str()))
        };
        self.file.servers.iter().filter(takes_part)
    }

    fn target(&self, server: &file::Server, case: &Case) -> Result<Target, ScenarioError> {
        let mut behind = Vec::new();
        for one in self.file.behind.iter().filter(|one| server.behind.contains(&one.name)) {
            behind.push(Behind {
                name: one.name.clone(),
                start: self.start(&one.command, &one.environment, case)?,
                is_weighed: one.weighed,
            });
        }
        let files = server.files.iter().map(|file| self.folder.join(file)).collect();
        let stage = Stage { start: self.start(&server.command, &server.environment, case)?, files, behind };
        let check = Check {
            body_bytes: case.body_bytes,
            encoding: case.encoding.clone(),
            is_conditional: case.conditional,
        };
        let tls = tls::Client::new(tls::Settings {
            cacert: server.cacert.as_ref().map(|file| self.folder.join(file)),
            is_insecure: server.insecure,
            sessions: case.tls_sessions,
            curves: case.tls_curves.clone(),
            is_http2: case.http2,
        });
        let protocol = match case.http2 {
            true => Protocol::Http2 { streams: case.streams() },
            false => Protocol::Http1,
        };
        let site = if server.https { "https://localhost:0" } else { "http://127.0.0.1:0" };
        let request = |written| self.request(site, written, &tls, protocol);
        let requests = case.requests.iter().map(request).collect::<Result<_, _>>()?;
        Ok(Target { name: server.name.clone(), source: Source::Staged(stage), requests, check })
    }

    fn start(
        &self,
        command: &str,
        environment: &BTreeMap<String, String>,
        case: &Case,
    ) -> Result<Start, ScenarioError> {
        let (variables, rest) = shell_words::variables(command);
        let words = shell_words::words(rest);
        let words = words.map_err(|why| self.wrong(format!("the command `{command}`: {why}")))?;
        Ok(Start {
            words,
            environment: case
                .environment
                .clone()
                .into_iter()
                .chain(environment.clone())
                .chain(variables)
                .collect(),
            directory: Some(self.folder.clone()),
            port: None,
            behind: Vec::new(),
            ready_within: self.file.ready_within,
        })
    }

    fn request(
        &self,
        site: &str,
        written: &file::CaseRequest,
        tls: &tls::Client,
        protocol: Protocol,
    ) -> Result<Request, ScenarioError> {
        let usual = if written.body.is_some() { "POST" } else { "GET" };
        let method = written.method.clone().unwrap_or_else(|| usual.to_owned());
        let url =
            Url::parse(&format!("{site}{}", written.path)).map_err(|error| self.wrong(error.to_string()))?;
        let request = Request {
            name: format!("{method} {}", written.path),
            tls: tls.of(&url).map_err(|error| self.wrong(error.to_string()))?,
            url,
            protocol,
            address: Address::Tcp(([127, 0, 0, 1], 0).into()),
            method,
            fields: written.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            body: written.body.clone().map(String::into_bytes),
            weight: written.weight,
            expect: if written.status.is_empty() {
                Expect::Success
            } else {
                Expect::Exactly(written.status.clone())
            },
        };
        request.field_lines().map_err(|error| self.wrong(format!("{}: {error}", request.name)))?;
        Ok(request)
    }

    fn settings_of(&self, case: &Case, choice: &Choice) -> Settings {
        let time = choice.time.or(case.time).unwrap_or(self.file.time);
        let usual = Settings::default();
        let (server_cores, load_cores) = match self.file.cores {
            Cores::Apart => measure::split_cores(),
            Cores::Shared => (Vec::new(), Vec::new()),
        };
        let timeouts = match case.timeout {
            Some(timeout) => Timeouts { connect: timeout, response: timeout },
            None => usual.timeouts,
        };
        Settings {
            rounds: choice.rounds.unwrap_or(self.file.rounds),
            until_decided: choice.until_decided,
            warm_up: choice.warm_up.or(case.warm_up).unwrap_or(self.file.warm_up),
            time,
            // What warms up beyond capacity leaves full queues behind.
            warm_up_pace: case.overload.then_some(WITHIN_CAPACITY),
            pace: pace(case, time),
            timeouts,
            is_overload: case.overload,
            reuse: if case.new_connections { Reuse::New } else { Reuse::Kept },
            threads: load_cores.len().clamp(1, case.connections),
            server_cores,
            load_cores,
            idle: case.idle,
            idle_connections: case.idle_connections,
            ..usual
        }
    }

    /// The programs that the servers of the chosen cases, and those behind them, are looked up in PATH for. What is handed
    /// to a shell is for that to find.
    ///
    /// # Errors
    /// Where a command cannot be split into words.
    pub fn programs(&self, choice: &Choice) -> Result<BTreeSet<String>, ScenarioError> {
        let mut programs = BTreeSet::new();
        for (case, _) in self.settings(choice) {
            for target in self.targets(case, choice)? {
                let Source::Staged(stage) = target.source else { continue };
                let starts = stage.behind.iter().map(|one| &one.start).chain([&stage.start]);
                let words = starts.filter_map(|start| start.words.first());
                let is_name = |word: &&String| *word != "sh" && !word.contains(['/', '{']);
                programs.extend(words.filter(is_name).cloned());
            }
        }
        Ok(programs)
    }

    fn wrong(&self, why: String) -> ScenarioError {
        ScenarioError::Wrong { file: self.path.display().to_string(), why }
    }
}

/// Measures every case that is chosen, one after the other.
///
/// An interruption is no error. A case that fails does not end the run: the reason goes into
/// [`ScenarioRun::failures`], and the next case follows.
///
/// # Errors
/// Where nothing can be started: a name that is unknown, a program that is missing, a command that is none.
pub fn run(
    scenario: &Scenario,
    choice: &Choice,
    observer: &mut dyn Observer,
) -> Result<ScenarioRun, ScenarioError> {
    scenario.check(choice)?;
    let mut cases = Vec::new();
    let mut failures = Vec::new();
    let settings = scenario.settings(choice);
    let count = settings.len();
    for (place, (case, settings)) in settings.into_iter().enumerate() {
        if observer.is_interrupted() {
            break;
        }
        let targets = scenario.targets(case, choice)?;
        let mut observer =
            Named { name: format!("{} ({} of {count})", case.name, place + 1), inner: observer };
        match measure(case, &targets, settings, &mut observer) {
            // Broken off before anything of it was measured.
            Ok(comparison) if comparison.samples.is_empty() => break,
            Ok(comparison) => {
                let requests = targets.first().map(|target| target.requests.as_slice()).unwrap_or_default();
                let requests = requests.iter().map(|request| request.name.clone()).collect();
                cases.push(CaseRun { name: case.name.clone(), requests, comparison });
            }
            Err(source) => {
                let error = ScenarioError::Case { case: case.name.clone(), source: Box::new(source) };
                failures.push(error.to_string());
            }
        }
    }
    let bounds = bounds::judge(&scenario.file.bounds, &cases);
    let (name, about) = (scenario.name.clone(), scenario.file.about.clone());
    Ok(ScenarioRun { name, about, cases, bounds, failures, is_broken_off: observer.is_interrupted() })
}

/// One case, at a share of the capacity where it says so.
fn measure(
    case: &Case,
    targets: &[Target],
    settings: Settings,
    observer: &mut dyn Observer,
) -> Result<Comparison, CompareError> {
    let Some(share) = case.share_of_capacity else { return compare::compare(targets, &settings, observer) };
    let capacity = capacity(targets, &settings, observer)?;
    let rate = share * capacity;
    let pace = open(rate, settings.time, case.connections);
    let recovery = case.recovery.map(|time| Recovery {
        overload_per_second: rate,
        after_per_second: capacity * AFTER_OVERLOAD,
        time,
    });
    compare::compare(targets, &Settings { pace, recovery, ..settings }, observer)
}

impl ScenarioRun {
    /// What a reader must know first, each with the case that it is about.
    pub fn caveats(&self) -> Vec<Caveat> {
        let of_case = |case: &CaseRun| -> Vec<Caveat> {
            case.comparison
                .caveats
                .iter()
                .map(|caveat| caveat.clone().of(&format!("With `{}`", case.name)))
                .collect()
        };
        self.cases.iter().flat_map(of_case).collect()
    }
}

/// Says of which case a stage is.
struct Named<'a> {
    name: String,
    inner: &'a mut dyn Observer,
}

impl Observer for Named<'_> {
    fn stage(&mut self, words: &str) {
        self.inner.stage(&format!("{}, {words}", self.name));
    }

    fn progress(&mut self, progress: &onehop_load::progress::Progress) {
        self.inner.progress(progress);
    }

    fn is_interrupted(&self) -> bool {
        self.inner.is_interrupted()
    }
}

fn pace(case: &Case, time: Duration) -> Pace {
    match case.rate {
        None => Pace::Closed { connections: case.connections, think: Duration::ZERO },
        Some(rate) => open(rate, time, case.connections),
    }
}

fn open(rate: f64, time: Duration, connections: usize) -> Pace {
    let phases = vec![Phase { from: rate, to: rate, length: time }];
    Pace::Open { connections, arrivals: Arrivals { spacing: Spacing::Poisson, phases } }
}

/// The rate of the slowest of them as fast as it answers, the median of some rounds.
fn capacity(
    targets: &[Target],
    settings: &Settings,
    observer: &mut dyn Observer,
) -> Result<f64, CompareError> {
    let settings = Settings {
        rounds: CAPACITY_ROUNDS,
        until_decided: false,
        idle: None,
        idle_connections: 0,
        pace: if settings.is_overload { WITHIN_CAPACITY } else { settings.pace.clone() },
        is_overload: false,
        // Also before a cold start: a share is one of what warm servers answer.
        warm_up: settings.warm_up.max(Settings::default().warm_up),
        time: settings.time.min(CAPACITY_TIME_MAX),
        ..settings.clone()
    };
    let found = compare::compare(targets, &settings, observer)?;
    let rate = |target: usize| {
        let own = found.samples.iter().filter(|sample| sample.target == target);
        onehop_statistics::median(&own.map(|sample| sample.run.rate()).collect::<Vec<f64>>())
    };
    let slowest = (0..targets.len()).map(rate).fold(f64::INFINITY, f64::min);
    // Interrupted before the first answer: the comparison that follows ends at once.
    Ok(if slowest.is_finite() && slowest > 0.0 { slowest } else { 1.0 })
}

fn is_in_path(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests;
