//! One arm, one case, once: started, asked, warmed up, loaded and weighed.

use std::time::{Duration, Instant};

use crate::Outcome;

use super::super::load::{Load, Seen};
use super::super::outside::Outside;
use super::super::report::Measured;
use super::super::servers::Cores;
use super::arms::{AppArm, Running, Surroundings};
use super::questions::{Asked, Questions};

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
    Case { name, asked, connections, workers: 1, cores: Cores::Apart }
}

/// Length of the load before each measurement: a JavaScript engine compiles what it sees often.
const WARM_UP: Duration = Duration::from_secs(2);

/// Length of a run that is only to show that it works.
const SMOKE: Duration = Duration::from_millis(300);

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
    /// One arm, one case, once; with wrk afterwards where it is to check.
    pub(super) fn measure(&self, case: &Case, arm: &AppArm, is_checked: bool) -> Outcome<Measured> {
        let running = arm.start(&self.surroundings, case.workers, case.cores)?;
        let Complaint { answer_bytes, mut text } = self.complaint(case, &running)?;
        let load = self.load(case);
        if text.is_none() {
            load.warm_up(running.address, if self.smoke { SMOKE } else { WARM_UP })?;
        }
        let (seen, usage) = load.weighed(running.address, running.tree())?;
        let (memory, front_peak) = (running.memory(), running.front_peak_bytes());
        if case.asked == Asked::Upload && text.is_none() {
            text = upload_complaint(case, &seen);
            text = text
                .map_or_else(|| self.questions.complaint_of_upload(running.address), |text| Ok(Some(text)))?;
        }
        let check = || Outside::check(&load, running.address, running.tree(), seen.rate, self.smoke);
        let outside = if is_checked { check()? } else { None };
        Ok(Measured {
            cpu_us: usage.cpu.as_secs_f64() * 1e6 / seen.requests.max(1) as f64,
            core_share: usage.cpu.as_secs_f64() / usage.wall.as_secs_f64().max(f64::MIN_POSITIVE),
            seen: Some(seen),
            memory: Some(memory),
            memory_samples: Some((usage.memory_median, usage.memory_p99)),
            front_peak_kib: Some(front_peak / 1024),
            moved_bytes: case.asked.moved_bytes(),
            answer_bytes,
            complaint: text,
            outside,
            start_ms: None,
            server_line: running.lines.join(" ; ").split(' ').map(str::to_owned).collect(),
            load_line: load.line(),
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

    fn load(&self, case: &Case) -> Load {
        let body = self.questions.body(case.asked);
        Load {
            method: if body.is_some() { "POST" } else { "GET" },
            path: case.asked.path().to_owned(),
            fields: case.asked.fields(),
            body,
            status: 200,
            connections: case.connections,
            threads: 1,
            time: if self.smoke { SMOKE } else { Duration::from_secs(self.seconds) },
            cores: case.cores,
        }
    }
}

/// A server that closes its connection after an upload would have each of them pay for a new one.
fn upload_complaint(case: &Case, seen: &Seen) -> Option<String> {
    (seen.connections_opened > case.connections).then(|| "closes its connections after uploads".to_owned())
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
