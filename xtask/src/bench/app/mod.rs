//! `cargo xtask bench app`: the same small application, called by onehop and served by others.
//!
//! `arms.rs` starts who is measured, `questions.rs` knows what is asked and which bytes must come back,
//! `upload.rs` sends large bodies; this file goes through the cases. For each case all arms run once per
//! round, in an order that rotates. Cases of one group take turns within a round, because their figures
//! are divided by each other. The figure to trust is CPU time per request over all processes of an arm.

mod arms;
mod questions;
mod upload;

use std::time::{Duration, Instant};

use crate::ground::Options;
use crate::{Outcome, ground, install};

use super::load::{Load, Seen};
use super::process::{self, Cores, spent_between};
use super::report::{Comparison, Measured, Report};
use arms::{AppArm, Running, Surroundings};
use questions::{Asked, Questions};

struct Case {
    name: &'static str,
    asked: Asked,
    connections: u64,
    /// Processes that answer.
    workers: u64,
    /// Cores of the arm and of the load.
    cores: Cores,
}

const fn case(name: &'static str, asked: Asked, connections: u64) -> Case {
    Case { name, asked, connections, workers: 1, cores: Cores::Server }
}

const CASES: &[Case] = &[
    case("json-c1", Asked::Item, 1),
    case("json-c64", Asked::Item, 64),
    case("json-c256", Asked::Item, 256),
    case("json-c64-browser", Asked::ItemFromBrowser, 64),
    case("post-c64", Asked::Echo, 64),
    // One process that burns fills a core: two need both cores, which they then share with the load.
    Case { name: BURN_ONE, asked: Asked::Burn, connections: 64, workers: 1, cores: Cores::All },
    Case { name: BURN_TWO, asked: Asked::Burn, connections: 64, workers: 2, cores: Cores::All },
    case("stream-1m", Asked::Stream, 16),
    case("upload-50m", Asked::Upload, 1),
    case("upload-50m-c4", Asked::Upload, 4),
];

const BURN_ONE: &str = "burn-1";
const BURN_TWO: &str = "burn-2";

/// Length of the load before each measurement: a JavaScript engine compiles what it sees often.
const WARM_UP_SECONDS: u64 = 2;

/// Workers load their application before the first answer; ten seconds mean that they never will.
const FIRST_ANSWER_DEADLINE: Duration = Duration::from_secs(10);

struct Plan {
    smoke: bool,
    seconds: u64,
    surroundings: Surroundings,
    questions: Questions,
}

/// Runs what the options ask for.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let mut options = Options::new(words);
    let known: Vec<&str> = CASES.iter().map(|case| case.name).collect();
    if options.flag("--list") {
        println!("arms:  {}\ncases: {}", arms::ALL.join(" "), known.join(" "));
        return options.finish();
    }
    let smoke = options.flag("--smoke");
    let rounds = options.number("--rounds", if smoke { 1 } else { 3 })?.max(1);
    let seconds = options.number("--seconds", if smoke { 1 } else { 5 })?.max(1);
    let names = options.names("--arms", arms::ALL, if smoke { arms::SMOKE } else { arms::ALL })?;
    let cases = options.names("--cases", &known, &known)?;
    let node = options.value("--node")?.unwrap_or_else(|| "node".to_owned());
    options.finish()?;

    install::debian(&["wrk"])?;
    let arms = names.iter().map(|name| AppArm::prepare(name, &node)).collect::<Outcome<Vec<_>>>()?;
    install::raise_descriptor_limit();
    process::move_to_load_core();
    let work = ground::target_folder("bench/app")?;
    let questions = Questions::prepare(&node, &work)?;
    let surroundings = Surroundings { node, work, burn_rounds: questions.burn_rounds };
    let plan = Plan { smoke, seconds, surroundings, questions };

    let comparison = Comparison { name: "app", arms: arms::ALL, bases: ["fastify", "nginx-fastify"] };
    let versions = arms.iter().map(|arm| (arm.name.to_owned(), arm.version.clone())).collect();
    let mut report = Report::new(comparison, smoke, versions);
    let chosen: Vec<&Case> = CASES.iter().filter(|case| cases.iter().any(|name| name == case.name)).collect();
    for group in chosen.chunk_by(|one, other| one.asked == Asked::Burn && other.asked == Asked::Burn) {
        for round in 0..rounds {
            for arm in rotated(&arms, round) {
                for case in group.iter().filter(|case| arm.can_run(case.asked)) {
                    let measured = plan.measure(case, arm);
                    let measured =
                        measured.map_err(|error| format!("{}, {}: {error}", case.name, arm.name))?;
                    report.add(case.name, round, arm.name, measured);
                }
            }
        }
        for case in group {
            report.print_case(case.name);
        }
        if group.len() > 1 {
            report.print_rates_of(BURN_TWO, BURN_ONE);
        }
    }
    report.keep()
}

impl Plan {
    /// One arm, one case, once.
    fn measure(&self, case: &Case, arm: &AppArm) -> Outcome<Measured> {
        let running = arm.start(&self.surroundings, case.workers, case.cores)?;
        let complaint = self.complaint(case, &running)?;
        if !self.smoke {
            self.load(case, &running, WARM_UP_SECONDS)?;
        }
        let before = running.times();
        let begun = Instant::now();
        let (seen, load_line) = self.load(case, &running, self.seconds)?;
        let spent = spent_between(&before, &running.times());
        let wall = begun.elapsed().as_nanos().max(1) as f64;
        Ok(Measured {
            cpu_us: spent as f64 / 1e3 / seen.requests.max(1) as f64,
            core_share: spent as f64 / wall,
            load_share: seen.load_cpu_seconds * 1e9 / wall,
            seen: Some(seen),
            memory: Some(running.memory()),
            front_peak_kib: Some(running.front_peak_kib()),
            moved_bytes: case.asked.moved_bytes(),
            answer_bytes: complaint.answer_bytes,
            complaint: complaint.text,
            start_ms: None,
            server_line: running.lines.join(" ; ").split(' ').map(str::to_owned).collect(),
            load_line,
        })
    }

    /// Asks until there is an answer of the application, and looks at it.
    fn complaint(&self, case: &Case, running: &Running) -> Outcome<Complaint> {
        let begun = Instant::now();
        let answer = loop {
            match self.questions.ask(case.asked, running.address) {
                Ok(answer) if answer.status < 500 => break answer,
                Ok(answer) if begun.elapsed() > FIRST_ANSWER_DEADLINE => break answer,
                Err(error) if begun.elapsed() > FIRST_ANSWER_DEADLINE => return Err(error),
                _ => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let text = self.questions.complaint(case.asked, &answer);
        Ok(Complaint { answer_bytes: answer.bytes.len(), text })
    }

    fn load(&self, case: &Case, running: &Running, seconds: u64) -> Outcome<(Seen, Vec<String>)> {
        if case.asked == Asked::Upload {
            let expected = self.questions.expected_body(case.asked);
            let length = if self.smoke { Duration::from_millis(300) } else { Duration::from_secs(seconds) };
            let seen = upload::run(running.address, case.connections, length, &expected)?;
            return Ok((seen, vec![format!("{} uploads at once, for {length:?}", case.connections)]));
        }
        let load = Load {
            path: case.asked.path().to_owned(),
            fields: case.asked.fields(),
            connections: case.connections,
            threads: 1,
            seconds,
            body: self.questions.body_file(case.asked),
            cores: (case.cores == Cores::All).then_some(Cores::All),
            is_brief: self.smoke,
        };
        Ok((load.run(running.address)?, load.line(running.address)))
    }
}

/// What was seen of an arm's answer before it is measured.
struct Complaint {
    answer_bytes: usize,
    text: Option<String>,
}

/// The arms in this round's order.
fn rotated(arms: &[AppArm], round: u64) -> impl Iterator<Item = &AppArm> {
    let start = usize::try_from(round).unwrap_or(0) % arms.len().max(1);
    arms.iter().cycle().skip(start).take(arms.len())
}
