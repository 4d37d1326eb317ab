//! `cargo xtask bench limits`: what limits cost a request that none of them holds up.
//!
//! Twice: user instructions of a server within a process that callgrind counts, where a difference of one in a thousand
//! is seen; and CPU time of the whole program in interleaved pairs, where the kernel counts too. Owns both counts; a
//! difference that noise could have made is never told as one.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use onehop_bench::compare::{self, Check, Metric, Settings, Source, Target};
use onehop_load::measure::Start;
use onehop_load::plan::{Expect, Pace, Protocol, Request};
use onehop_load::{Address, Url};
use serde_json::{Value, json};

use crate::steps::{command, quiet};
use crate::workspace::Options;
use crate::{Outcome, install, workspace};

use super::interrupt::{self, Interruptible};
use super::report::write_result;
use super::rivals;
use super::servers::{self, Cores, free_port};

/// What `limit_cost` knows, the one without limits first.
const KINDS: [&str; 6] = ["none", "fixed", "adaptive", "rate", "three", "all"];
/// Requests of the two runs whose difference counts.
const REQUESTS: [u64; 2] = [2_000, 22_000];
/// Of a smoke run, which counts the last kind alone: each takes many seconds to start.
const SMOKE_REQUESTS: [u64; 2] = [50, 150];
/// More instructions than this share is too much for one bound.
const MORE_MAX: f64 = 0.02;
/// Pairs for each kind.
const PAIRS: u64 = 20;
/// Long enough for a proxy to read its settings.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// The settings of a pair, and what is compared with none.
const PAIR: &str = "limit in_flight 64 queue 128\n\tlimit / adaptive queue 128 priority high";

/// Runs what the options ask for.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let mut options = Options::new(words);
    let smoke = options.flag("--smoke");
    let pairs = options.number("--pairs", if smoke { 3 } else { PAIRS })?;
    options.finish()?;
    install::debian(&["valgrind"])?;

    let counted = count(smoke)?;
    let compared = in_pairs(pairs, smoke)?;
    let value = json!({
        "what": "limits", "date": workspace::date(), "machine": workspace::machine(),
        "instructions_per_request": counted, "cpu_time_with_limits_by_without": compared,
    });
    println!("written to {}", write_result("limits", smoke, &value)?.display());
    Ok(())
}

/// User instructions a request, for each kind of limits.
fn count(smoke: bool) -> Outcome<Value> {
    let program = harness(smoke)?;
    let [few, many] = if smoke { SMOKE_REQUESTS } else { REQUESTS };
    let mut rows = serde_json::Map::new();
    let mut without = None;
    let is_run = |kind: &&str| !smoke || KINDS.last() == Some(kind);
    for kind in KINDS.into_iter().filter(is_run) {
        interrupt::check()?;
        let more = instructions(&program, kind, many)?.saturating_sub(instructions(&program, kind, few)?);
        let each = more as f64 / (many - few) as f64;
        let share = each / *without.get_or_insert(each) - 1.0;
        let verdict = match kind {
            "none" => "",
            "fixed" | "adaptive" | "rate" if share <= MORE_MAX => "  met",
            "fixed" | "adaptive" | "rate" => "  MISSED",
            _ => "",
        };
        println!("{kind:<10} {each:>9.0} instructions a request, {:+.1} %{verdict}", share * 100.0);
        rows.insert(kind.to_owned(), json!({ "instructions": each, "more": share }));
    }
    Ok(rows.into())
}

/// The server in a process of its own. A smoke run takes what the tests have built: of all packages, because features
/// are those that the chosen ones ask for together.
fn harness(smoke: bool) -> Outcome<PathBuf> {
    let mut words = vec!["build", "--quiet", "--locked", "--example", "limit_cost"];
    words.extend(if smoke {
        ["--workspace"].as_slice()
    } else {
        &["--package", "onehop-server", "--profile", workspace::PUBLISHED_PROFILE]
    });
    quiet(&mut command("cargo", &words))?;
    let profile = if smoke { "debug" } else { workspace::PUBLISHED_PROFILE };
    Ok(workspace::target().join(profile).join("examples/limit_cost"))
}

fn instructions(program: &Path, kind: &str, requests: u64) -> Outcome<u64> {
    let (program, requests) = (program.display().to_string(), requests.to_string());
    let words = ["--tool=callgrind", "--callgrind-out-file=/dev/null", &program, kind, &requests];
    let output = command("valgrind", &words).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let number = said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    number.filter(|_| output.status.success()).ok_or_else(|| format!("{kind}: callgrind says\n{said}").into())
}

/// CPU time of the program with limits by that without, before a server that costs nothing.
fn in_pairs(pairs: u64, smoke: bool) -> Outcome<Value> {
    let work = workspace::target_folder("bench/limits")?;
    let port = free_port()?;
    let upstream = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let words = [rivals::build("floor")?.display().to_string(), upstream.to_string()];
    let mut floor = servers::start(&words, &[], port, Cores::Apart)?;
    servers::wait_until_ready(&mut floor, "/", Expect::Success)?;

    let arms = [arm("without", "", upstream, &work)?, arm("with", PAIR, upstream, &work)?];
    let time = if smoke { Duration::from_millis(200) } else { Duration::from_millis(1_000) };
    let usual = Settings::default();
    let settings = Settings {
        rounds: usize::try_from(pairs)?,
        time,
        warm_up: Duration::from_millis(200),
        pace: Pace::Closed { connections: 16, think: Duration::ZERO },
        confidence: 0.95,
        ..usual
    };
    let found = compare::compare(&arms, &settings, &mut Interruptible)?;
    interrupt::check()?;
    let row = found.rows.iter().find(|row| row.metric == Metric::CpuPerRequest);
    let row = row.ok_or("CPU time was not compared")?;
    let (ratio, pairs) = (&row.ratio, row.pairs);
    println!(
        "CPU time with limits by that without: {:.3} ({:.3} to {:.3} in 95 of 100, {pairs} pairs)",
        ratio.middle, ratio.low, ratio.high
    );
    Ok(json!({ "low": ratio.low, "middle": ratio.middle, "high": ratio.high, "pairs": pairs }))
}

fn arm(name: &str, limits: &str, upstream: SocketAddr, work: &Path) -> Outcome<Target> {
    let file = work.join(format!("{name}.Onehopfile"));
    let text = format!(
        "{{\n\tadmin off\n}}\nhttp://127.0.0.1:{{$PORT}} {{\n\t{limits}\n\treverse_proxy {upstream}\n}}\n"
    );
    std::fs::write(&file, text)?;
    let [program, file] = [workspace::program(), file].map(|path| path.display().to_string());
    let control = work.join(format!("control-{name}")).display().to_string();
    let start = Start {
        words: vec![program, "run".to_owned(), "--config".to_owned(), file],
        environment: vec![("ONEHOP_CONTROL".to_owned(), control)],
        directory: None,
        port: None,
        behind: Vec::new(),
        ready_within: READY_WITHIN,
    };
    let target = Url::parse("http://127.0.0.1:0/")?;
    let address: SocketAddr = target.authority.parse()?;
    let ask = Request {
        tls: None,
        protocol: Protocol::Http1,
        name: "page".to_owned(),
        url: target,
        address: Address::Tcp(address),
        method: "GET".to_owned(),
        fields: Vec::new(),
        body: None,
        weight: 1,
        expect: Expect::Success,
    };
    Ok(Target {
        name: name.to_owned(),
        source: Source::Command(start),
        requests: vec![ask],
        check: Check::default(),
    })
}
