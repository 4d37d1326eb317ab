//! `cargo xtask bench proxy`: what it costs to stand between a client and a server that costs nothing.
//!
//! The upstream is the floor with kept connections. On two cores it shares one with the proxy, so that rates and latencies
//! are those of both; CPU time per request is the proxy's alone. `arms.rs` starts who is measured, `bounds.rs` judges; this
//! file goes through the cases. All arms of a case run once per round, in an order that rotates.

mod arms;
mod bounds;

use std::path::PathBuf;
use std::time::Duration;

use onehop_load::measure::memory_of;
use serde_json::json;

use crate::ground::Options;
use crate::{Outcome, ground, install};

use super::load::Load;
use super::outside::Outside;
use super::probe;
use super::report::{Comparison, Measured, Report};
use super::servers::{self, Cores};
use arms::{Floor, ProxyArm};
use bounds::Figures;

struct Case {
    name: &'static str,
    /// Content of an answer.
    bytes: usize,
    connections: u64,
}

/// Bytes.
const KIBIBYTE: usize = 1024;

/// The size of the page of `bench files`.
const PAGE_BYTES: usize = 788;

const CASES: &[Case] = &[
    Case { name: "page-c1", bytes: PAGE_BYTES, connections: 1 },
    Case { name: "page-c64", bytes: PAGE_BYTES, connections: 64 },
    Case { name: "page-c512", bytes: PAGE_BYTES, connections: 512 },
    Case { name: "body-100k", bytes: 100 * KIBIBYTE, connections: 64 },
    Case { name: "body-10m", bytes: 10 * KIBIBYTE * KIBIBYTE, connections: 4 },
];

/// Cases of a run that is only to show that it works.
const SMOKE_CASES: &[&str] = &["page-c1", "page-c64", "body-100k"];

/// From here on a case is about bytes rather than requests; wrk reads in small pieces and is not asked.
const LARGE_BYTES: usize = 64 * KIBIBYTE;

/// Length of the load before each measurement, so that connections, caches and threads are awake.
const WARM_UP: Duration = Duration::from_secs(1);

/// Length of warm-up and measurement in a run that is only to show that it works.
const SMOKE: Duration = Duration::from_millis(300);

const SURROUNDINGS: &str = "proxy and upstream share a core, the load has another; CPU of the proxy alone";

struct Plan {
    smoke: bool,
    time: Duration,
    work: PathBuf,
    floor: Floor,
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
    let seconds = options.number("--seconds", 5)?.max(1);
    let names = options.names("--arms", arms::ALL, if smoke { arms::SMOKE } else { arms::ALL })?;
    let cases = options.names("--cases", &known, if smoke { SMOKE_CASES } else { &known })?;
    options.finish()?;

    install::debian(&["wrk"])?;
    let arms = names.iter().map(|name| ProxyArm::prepare(name)).collect::<Outcome<Vec<ProxyArm>>>()?;
    let plan = Plan {
        smoke,
        time: if smoke { SMOKE } else { Duration::from_secs(seconds) },
        work: ground::target_folder("bench/proxy")?,
        floor: Floor::prepare()?,
    };
    install::raise_descriptor_limit();
    servers::move_to_load_core();

    let comparison = Comparison {
        name: "proxy".to_owned(),
        under: Some(SURROUNDINGS.to_owned()),
        arms: arms::ALL,
        bases: ["nginx", "caddy"],
        checked: "nginx",
    };
    let versions = arms.iter().map(|arm| (arm.name.to_owned(), arm.version.clone())).collect();
    let mut report = Report::new(comparison.clone(), smoke, versions);
    let cases: Vec<&Case> = CASES.iter().filter(|case| cases.iter().any(|name| name == case.name)).collect();
    for case in &cases {
        for round in 0..rounds {
            for arm in rotated(&arms, round) {
                let is_checked = round == 0
                    && case.bytes < LARGE_BYTES
                    && comparison.is_checked(arm.name, arms.iter().map(|arm| arm.name));
                let measured = plan.measure(case, arm, is_checked);
                let measured = measured.map_err(|error| format!("{}, {}: {error}", case.name, arm.name))?;
                report.add(case.name, round, arm.name, measured);
            }
        }
        report.print_case(case.name);
    }
    judge(&mut report, &cases);
    report.keep()
}

impl Plan {
    /// One arm, one case, once; with wrk afterwards where it is to check.
    fn measure(&self, case: &Case, arm: &ProxyArm, is_checked: bool) -> Outcome<Measured> {
        let (answer, content) = self.answer(case)?;
        let running = arm.start(&self.floor, &answer, &self.work)?;
        let probed = probe::get(running.address, "/", &[])?;
        let complaint = match probed.status {
            200 if probed.body == content => None,
            200 => Some(format!("sends {} bytes that are not the upstream's", probed.body.len())),
            status => Some(format!("answers {status}")),
        };
        let load = Load {
            method: "GET",
            path: "/".to_owned(),
            fields: Vec::new(),
            body: None,
            status: 200,
            connections: case.connections,
            threads: 1,
            time: self.time,
            cores: Cores::Apart,
        };
        if complaint.is_none() {
            load.warm_up(running.address, if self.smoke { SMOKE } else { WARM_UP })?;
        }
        let (seen, usage) = load.weighed(running.address, running.weighed().tree())?;
        let memory = memory_of(&running.weighed().tree().processes());
        let check =
            || Outside::check(&load, running.address, running.weighed().tree(), seen.rate, self.smoke);
        let outside = if is_checked { check()? } else { None };
        Ok(Measured {
            cpu_us: usage.cpu.as_secs_f64() * 1e6 / seen.requests.max(1) as f64,
            core_share: usage.cpu.as_secs_f64() / usage.wall.as_secs_f64().max(f64::MIN_POSITIVE),
            seen: Some(seen),
            memory: Some(memory),
            memory_samples: Some((usage.memory_median, usage.memory_p99)),
            front_peak_kib: None,
            moved_bytes: (case.bytes >= LARGE_BYTES).then_some(case.bytes as u64),
            answer_bytes: probed.bytes.len(),
            complaint,
            outside,
            start_ms: None,
            server_line: running.line,
            load_line: load.line(),
        })
    }

    /// The file with the whole answer of the floor, and its content.
    fn answer(&self, case: &Case) -> Outcome<(PathBuf, Vec<u8>)> {
        let content: Vec<u8> = b"0123456789abcdef".iter().copied().cycle().take(case.bytes).collect();
        let mut bytes =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n", case.bytes)
                .into_bytes();
        bytes.extend(&content);
        let path = self.work.join(format!("answer-{}", case.bytes));
        std::fs::write(&path, bytes)?;
        Ok((path, content))
    }
}

/// Prints every bound of the cases that were measured, and keeps it with the figures.
fn judge(report: &mut Report, cases: &[&Case]) {
    let names: Vec<&str> = cases.iter().map(|case| case.name).collect();
    let verdicts = bounds::verdicts(&names, |case, arm| {
        let is_measured = report.has_measured(case, arm);
        let figures = report.counting(case, arm).filter_map(|(round, measured)| {
            let seen = measured.seen.as_ref()?;
            Some(Figures { round, cpu_us: measured.cpu_us, rate: seen.rate, p50_us: seen.p50_us as f64 })
        });
        is_measured.then(|| figures.collect())
    });
    println!();
    for verdict in verdicts {
        println!("{:<6} {}", verdict.word(), verdict.text);
        report.add_bound(json!({ "text": verdict.text, "is_met": verdict.is_met }));
    }
}

/// The arms in this round's order.
fn rotated(arms: &[ProxyArm], round: u64) -> impl Iterator<Item = &ProxyArm> {
    let start = usize::try_from(round).unwrap_or(0) % arms.len().max(1);
    arms.iter().cycle().skip(start).take(arms.len())
}
