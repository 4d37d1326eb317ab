//! `cargo xtask bench files`: what one small page, one large asset and one 304 cost each server.
//!
//! For each case all arms run once per round, in an order that rotates, so that the machine's drift
//! falls on all of them. The figure to trust is CPU time per request; ratios are taken within a round.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use onehop_load::measure::{cpu_of, memory_of};
use onehop_load::plan::Expect;

use crate::ground::Options;
use crate::{Outcome, ground, install};

use super::arms::{self, Arm};
use super::load::Load;
use super::outside::Outside;
use super::probe::{self, Answer};
use super::report::{Comparison, Measured, Report};
use super::servers::{self, Cores};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// The index page.
    Index,
    /// The script of 100 KiB.
    Asset,
    /// The same, brotli accepted.
    AssetBrotli,
    /// The index page with the arm's own ETag.
    NotModified,
}

struct Case {
    name: &'static str,
    wanted: Wanted,
    connections: u64,
    threads: u64,
    /// Fixed length; `None` takes the option's.
    seconds: Option<u64>,
}

const fn case(name: &'static str, wanted: Wanted, connections: u64) -> Case {
    Case { name, wanted, connections, threads: 1, seconds: None }
}

const CASES: &[Case] = &[
    case("index-c1", Wanted::Index, 1),
    case("index-c64", Wanted::Index, 64),
    case("index-c512", Wanted::Index, 512),
    Case { name: "index-c1000-t8", wanted: Wanted::Index, connections: 1000, threads: 8, seconds: Some(20) },
    case("asset-100k", Wanted::Asset, 64),
    case("asset-100k-br", Wanted::AssetBrotli, 64),
    case("not-modified", Wanted::NotModified, 64),
];

/// Starting a server and asking it once is a case too, of another kind.
const START_CASE: &str = "start";

/// Launches per arm in the start case.
const LAUNCHES: u64 = 20;

/// Length of the load before each measurement, so that caches and threads are awake.
const WARM_UP: Duration = Duration::from_secs(1);

/// Length of warm-up and measurement in a run that is only to show that it works.
const SMOKE: Duration = Duration::from_millis(300);

/// How long a coding that is made behind the first answers may take; one that lies ready takes nothing.
const CODING_DEADLINE: Duration = Duration::from_secs(10);

struct Plan {
    smoke: bool,
    rounds: u64,
    seconds: u64,
    site: PathBuf,
    asset: String,
    arms: Vec<Arm>,
}

/// Runs what the options ask for.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let mut options = Options::new(words);
    let known: Vec<&str> = CASES.iter().map(|case| case.name).chain([START_CASE]).collect();
    if options.flag("--list") {
        println!("arms:  {}\ncases: {}", arms::ALL.join(" "), known.join(" "));
        return options.finish();
    }
    let smoke = options.flag("--smoke");
    let rounds = options.number("--rounds", if smoke { 1 } else { 3 })?.max(1);
    let seconds = options.number("--seconds", 5)?.max(1);
    let arms = options.names(
        "--arms",
        arms::ALL,
        if smoke { &["floor", "onehop", "nginx"] } else { arms::USUAL },
    )?;
    let cases = options.names("--cases", &known, &known)?;
    options.finish()?;

    install::debian(&["wrk"])?;
    let (site, asset) = arms::make_site()?;
    let arms = arms.iter().map(|name| Arm::prepare(name)).collect::<Outcome<Vec<Arm>>>()?;
    install::raise_descriptor_limit();
    servers::move_to_load_core();

    let comparison = Comparison {
        name: "files".to_owned(),
        under: None,
        arms: arms::ALL,
        bases: ["floor", "nginx"],
        checked: "nginx",
    };
    let versions = arms.iter().map(|arm| (arm.name.to_owned(), arm.version.clone())).collect();
    let checked = arms.iter().find(|arm| comparison.is_checked(arm.name, arms.iter().map(|arm| arm.name)));
    let checked = checked.map_or("", |arm| arm.name);
    let mut report = Report::new(comparison, smoke, versions);
    let plan = Plan { smoke, rounds, seconds, site, asset, arms };
    for case in CASES.iter().filter(|case| cases.iter().any(|name| name == case.name)) {
        let answer = plan.floor_answer(case)?;
        for round in 0..plan.rounds {
            for arm in rotated(&plan.arms, round) {
                if case.wanted == Wanted::AssetBrotli && !arm.sends_brotli {
                    continue;
                }
                let is_checked = round == 0 && arm.name == checked;
                let measured = plan.measure(case, arm, &answer, is_checked);
                report.add(case.name, round, arm.name, measured?);
            }
        }
        report.print_case(case.name);
    }
    if cases.iter().any(|name| name == START_CASE) {
        plan.start_times(&mut report)?;
        report.print_case(START_CASE);
    }
    report.keep()
}

impl Plan {
    /// One arm, one case, once; with wrk afterwards where it is to check.
    fn measure(&self, case: &Case, arm: &Arm, answer: &Path, is_checked: bool) -> Outcome<Measured> {
        let running = arm.start(&self.site, answer)?;
        let mut fields = self.fields(case.wanted);
        if case.wanted == Wanted::NotModified {
            let first = probe::get(running.address, self.path(case.wanted), &[])?;
            fields = condition(&first);
        }
        let probed = self.settled(running.address, case.wanted, &fields)?;
        let complaint = self.complaint(case.wanted, &probed)?;
        let seconds = case.seconds.unwrap_or(self.seconds);
        let load = Load {
            method: "GET",
            path: self.path(case.wanted).to_owned(),
            fields,
            body: None,
            status: status_of(case.wanted),
            connections: case.connections,
            threads: case.threads,
            time: if self.smoke { SMOKE } else { Duration::from_secs(seconds) },
            cores: Cores::Apart,
        };
        if complaint.is_none() {
            load.warm_up(running.address, if self.smoke { SMOKE } else { WARM_UP })?;
        }
        let (seen, usage) = load.weighed(running.address, running.server.tree())?;
        let memory = memory_of(&running.server.tree().processes());
        let check = || Outside::check(&load, running.address, running.server.tree(), seen.rate, self.smoke);
        let outside = if is_checked { check()? } else { None };
        Ok(Measured {
            cpu_us: usage.cpu.as_secs_f64() * 1e6 / seen.requests.max(1) as f64,
            core_share: usage.cpu.as_secs_f64() / usage.wall.as_secs_f64().max(f64::MIN_POSITIVE),
            seen: Some(seen),
            memory: Some(memory),
            memory_samples: Some((usage.memory_median, usage.memory_p99)),
            front_peak_kib: None,
            moved_bytes: None,
            answer_bytes: probed.bytes.len(),
            complaint,
            outside,
            start_ms: None,
            server_line: running.line,
            load_line: load.line(),
        })
    }

    /// Time from the start of a program to its first complete answer.
    fn start_times(&self, report: &mut Report) -> Outcome {
        let answer = self.floor_answer(&CASES[0])?;
        for round in 0..if self.smoke { 2 } else { LAUNCHES } {
            for arm in rotated(&self.arms, round) {
                let mut running = arm.launch(&self.site, &answer)?;
                let took = running.wait_until_ready("/", Expect::Success)?;
                let tree = running.server.tree();
                let cpu = cpu_of(&tree);
                let probed = probe::get(running.address, "/", &[])?;
                report.add(
                    START_CASE,
                    round,
                    arm.name,
                    Measured {
                        cpu_us: cpu.as_secs_f64() * 1e6,
                        core_share: 0.0,
                        seen: None,
                        memory: Some(memory_of(&tree.processes())),
                        memory_samples: None,
                        front_peak_kib: None,
                        moved_bytes: None,
                        answer_bytes: probed.bytes.len(),
                        complaint: self.complaint(Wanted::Index, &probed)?,
                        outside: None,
                        start_ms: Some(took.as_secs_f64() * 1e3),
                        server_line: running.line,
                        load_line: Vec::new(),
                    },
                );
            }
        }
        Ok(())
    }

    /// The bytes that the floor sends: exactly onehop's answer. Without onehop, some of its length.
    fn floor_answer(&self, case: &Case) -> Outcome<PathBuf> {
        let path = ground::target_folder("bench")?.join(format!("answer-{}", case.name));
        let Some(arm) = self.arms.iter().find(|arm| arm.name == "onehop") else {
            let (line, body) = match case.wanted {
                Wanted::NotModified => ("304 Not Modified", Vec::new()),
                Wanted::AssetBrotli => {
                    let file = format!("{}.br", self.file(case.wanted).display());
                    ("200 OK\r\ncontent-encoding: br", std::fs::read(file)?)
                }
                wanted => ("200 OK", std::fs::read(self.file(wanted))?),
            };
            let mut bytes = format!("HTTP/1.1 {line}\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
            bytes.extend(body);
            std::fs::write(&path, bytes)?;
            return Ok(path);
        };
        let running = arm.start(&self.site, Path::new(""))?;
        let first = probe::get(running.address, self.path(case.wanted), &[])?;
        let fields = match case.wanted {
            Wanted::NotModified => condition(&first),
            wanted => self.fields(wanted),
        };
        let answer = self.settled(running.address, case.wanted, &fields)?;
        std::fs::write(&path, answer.bytes)?;
        Ok(path)
    }

    /// Our own compression goes on after the start: asks until the wanted coding is there.
    fn settled(
        &self,
        address: std::net::SocketAddr,
        wanted: Wanted,
        fields: &[(String, String)],
    ) -> Outcome<Answer> {
        let begun = Instant::now();
        loop {
            let answer = probe::get(address, self.path(wanted), &borrowed(fields))?;
            let ready = wanted != Wanted::AssetBrotli || answer.field("content-encoding") == Some("br");
            if ready || begun.elapsed() > CODING_DEADLINE {
                return Ok(answer);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn path(&self, wanted: Wanted) -> &str {
        match wanted {
            Wanted::Index | Wanted::NotModified => "/",
            Wanted::Asset | Wanted::AssetBrotli => &self.asset,
        }
    }

    fn file(&self, wanted: Wanted) -> PathBuf {
        match wanted {
            Wanted::Index | Wanted::NotModified => self.site.join("index.html"),
            Wanted::Asset | Wanted::AssetBrotli => self.site.join(self.asset.trim_start_matches('/')),
        }
    }

    fn fields(&self, wanted: Wanted) -> Vec<(String, String)> {
        match wanted {
            Wanted::AssetBrotli => vec![("Accept-Encoding".to_owned(), "br".to_owned())],
            Wanted::Index | Wanted::Asset | Wanted::NotModified => Vec::new(),
        }
    }

    /// What is wrong with an answer, if anything: a measurement of the wrong answer is void.
    fn complaint(&self, wanted: Wanted, answer: &Answer) -> Outcome<Option<String>> {
        let status = status_of(wanted);
        if answer.status != status {
            return Ok(Some(format!("answers {} instead of {status}", answer.status)));
        }
        let coding = answer.field("content-encoding");
        let expected = match wanted {
            Wanted::NotModified => return Ok(None),
            // Whose brotli it is may differ; that it is brotli, and smaller, may not.
            Wanted::AssetBrotli if coding == Some("br") => return Ok(None),
            Wanted::AssetBrotli => return Ok(Some("does not answer with brotli".to_owned())),
            Wanted::Index | Wanted::Asset => std::fs::read(self.file(wanted))?,
        };
        let same = coding.is_none() && answer.body == expected;
        Ok((!same).then(|| format!("sends {} bytes that are not the file's", answer.body.len())))
    }
}

fn status_of(wanted: Wanted) -> u16 {
    if wanted == Wanted::NotModified { 304 } else { 200 }
}

/// What makes an arm answer 304: its own ETag, or its date where it has none.
fn condition(first: &Answer) -> Vec<(String, String)> {
    let of = |field: &str, name: &str| Some((name.to_owned(), first.field(field)?.to_owned()));
    of("etag", "If-None-Match").or_else(|| of("last-modified", "If-Modified-Since")).into_iter().collect()
}

fn borrowed(fields: &[(String, String)]) -> Vec<(&str, String)> {
    fields.iter().map(|(name, value)| (name.as_str(), value.clone())).collect()
}

/// The arms in this round's order.
fn rotated(arms: &[Arm], round: u64) -> impl Iterator<Item = &Arm> {
    let start = usize::try_from(round).unwrap_or(0) % arms.len().max(1);
    arms.iter().cycle().skip(start).take(arms.len())
}
