//! One arm, one case, once: started, asked, warmed up, loaded and weighed.

use std::time::{Duration, Instant};

use crate::Outcome;

use super::super::load::{Load, Seen};
use super::super::process::{Cores, spent_between};
use super::super::report::Measured;
use super::arms::{AppArm, Running, Surroundings};
use super::questions::{Asked, Questions};
use super::upload;

/// What is measured.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) asked: Asked,
    pub(super) connections: u64,
    /// Processes that answer.
    pub(super) workers: u64,
    /// Cores of the arm and of the load.
    pub(super) cores: Cores,
}

/// One process on one core.
pub(super) const fn case(name: &'static str, asked: Asked, connections: u64) -> Case {
    Case { name, asked, connections, workers: 1, cores: Cores::Server }
}

/// Length of the load before each measurement: a JavaScript engine compiles what it sees often.
const WARM_UP_SECONDS: u64 = 2;

/// Workers load their application before the first answer; ten seconds mean that they never will.
const FIRST_ANSWER_DEADLINE: Duration = Duration::from_secs(10);

/// What is the same for all measurements of a run.
pub(super) struct Plan {
    pub(super) smoke: bool,
    pub(super) seconds: u64,
    pub(super) surroundings: Surroundings,
    pub(super) questions: Questions,
}

impl Plan {
    /// One arm, one case, once.
    pub(super) fn measure(&self, case: &Case, arm: &AppArm) -> Outcome<Measured> {
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
pub(super) fn rotated(arms: &[AppArm], round: u64) -> impl Iterator<Item = &AppArm> {
    let start = usize::try_from(round).unwrap_or(0) % arms.len().max(1);
    arms.iter().cycle().skip(start).take(arms.len())
}
