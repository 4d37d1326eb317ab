//! `cargo xtask bench trust`: whether comparisons may be believed.
//!
//! nginx is compared with itself again and again: every difference that is shown is false. Then two servers of which
//! one does 5 % more work for each request: every one that is not found is missed. Owns both counts; never leaves out
//! a comparison because it went wrong.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use onehop_bench::compare::{self, Check, Comparison, Metric, Row, Settings, Source, Target};
use onehop_load::measure;
use onehop_load::measure::Start;
use onehop_load::measure::{Meter, Server};
use onehop_load::plan::{Expect, Pace, Protocol, Request};
use onehop_load::{Address, Url};
use onehop_statistics::Verdict;
use serde_json::{Value, json};

use crate::steps::{command, quiet};
use crate::workspace::Options;
use crate::{Outcome, workspace};

use super::interrupt::{self, Interruptible};
use super::report::write_result;
use super::rivals;

/// Comparisons of each kind: 19 of 20 equal ones are to show nothing.
const COMPARISONS: u64 = 20;

/// Turns of the dear server's loop for each request, some 500 µs: what the system does for a request is a few
/// hundredths of it, so that 5 % more turns are 5 % more CPU time.
const TURNS: u64 = 300_000;
/// The truth about the second of two servers that differ.
const WORK_RATIO: f64 = 1.05;

/// How long a server at rest is weighed.
const METERED_FOR: Duration = Duration::from_secs(2);
/// Share of a core; it is about a hundredth.
const METERING_SHARE_MAX: f64 = 0.1;

/// Long enough for a server to read its settings.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// What all comparisons of one kind showed.
#[derive(Default)]
struct Shown {
    comparisons: u64,
    /// Comparisons in which at least one metric differs.
    different: u64,
    /// Comparisons in which CPU time differs in the direction of the truth.
    cpu_more: u64,
    by_metric: BTreeMap<String, BTreeMap<String, u64>>,
    cpu_ratios: Vec<[f64; 3]>,
}

/// Runs what the options ask for.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let mut options = Options::new(words);
    let smoke = options.flag("--smoke");
    let only = options.value("--only")?;
    let (name, takes_equal, takes_apart) = match only.as_deref() {
        None => ("trust", true, true),
        Some("equal") => ("trust-equal", true, false),
        Some("apart") => ("trust-apart", false, true),
        Some(_) => return Err("--only takes `equal` or `apart`".into()),
    };
    let usual = Settings::default();
    let comparisons = options.number("--comparisons", if smoke { 1 } else { COMPARISONS })?;
    let rounds = options.number("--rounds", if smoke { 3 } else { usual.rounds as u64 })?;
    let milliseconds = if smoke { 200 } else { usual.time.as_millis() as u64 };
    let milliseconds = options.number("--milliseconds", milliseconds)?;
    options.finish()?;
    let settings = Settings {
        rounds: usize::try_from(rounds)?,
        time: Duration::from_millis(milliseconds),
        // Neither server has anything to learn.
        warm_up: Duration::from_millis(200),
        ..usual
    };
    rivals::make_site()?;
    let server = fixed_cost_server()?;

    let own = metering_share(&server)?;
    println!("weighing a server takes {:.1} % of a core", own * 100.0);
    let equal = [nginx_arm("nginx")?, nginx_arm("nginx again")?];
    let equal = repeat("nginx with itself", &equal, &settings, if takes_equal { comparisons } else { 0 })?;
    // Few connections: each request takes half a millisecond, and more would only wait.
    let busy = Settings { pace: Pace::Closed { connections: 4, think: Duration::ZERO }, ..settings.clone() };
    let dearer = (TURNS as f64 * WORK_RATIO) as u64;
    let apart = [fixed_cost_arm("less work", &server, TURNS)?, fixed_cost_arm("more work", &server, dearer)?];
    let apart = repeat("two servers 5 % apart", &apart, &busy, if takes_apart { comparisons } else { 0 })?;

    println!(
        "nginx with itself: no difference shown in {} of {}; two servers 5 % apart: a difference in {} of {}, more \
         CPU time in {}",
        equal.comparisons - equal.different,
        equal.comparisons,
        apart.different,
        apart.comparisons,
        apart.cpu_more
    );
    let value = json!({
        "machine": workspace::machine(),
        "nginx": measure::version_of("/usr/sbin/nginx"),
        "metering_share_of_a_core": own,
        "rounds": rounds,
        "milliseconds": milliseconds,
        "confidence": settings.confidence,
        "least_difference": settings.least_difference,
        "nginx_with_itself": equal.to_json(),
        "five_percent_apart": apart.to_json(),
    });
    let path = write_result(name, smoke, &value)?;
    println!("{}", path.display());
    Ok(())
}

/// What share of a core the meter uses while it weighs a server at rest: nearly nothing, or it would be noise.
fn metering_share(program: &Path) -> Outcome<f64> {
    let server = Server::start(&start(vec![program.display().to_string()]), &[])?;
    let meter = Meter::start(server.tree());
    std::thread::sleep(METERED_FOR);
    let measured = meter.finish()?;
    let share = measured.own_cpu.as_secs_f64() / measured.usage.wall.as_secs_f64().max(f64::MIN_POSITIVE);
    if share > METERING_SHARE_MAX {
        return Err(
            format!("weighing a server takes {:.1} % of a core: is it quiet here?", share * 100.0).into()
        );
    }
    Ok(share)
}

/// Compares again and again, each time with another seed, and prints each comparison in a line.
fn repeat(what: &str, arms: &[Target], settings: &Settings, comparisons: u64) -> Outcome<Shown> {
    let mut shown = Shown::default();
    for seed in 1..=comparisons {
        let settings = Settings { seed, ..settings.clone() };
        let found = compare::compare(arms, &settings, &mut Interruptible)?;
        // The last comparison was cut short: it shows nothing.
        interrupt::check()?;
        let line = found.rows.iter().filter_map(in_a_word).collect::<Vec<_>>().join(", ");
        println!(
            "{what}, {seed} of {comparisons}: {}",
            if line.is_empty() { "no difference shown" } else { &line }
        );
        if seed == 1 {
            found.caveats.iter().for_each(|caveat| println!("  {caveat}"));
        }
        shown.add(&found);
    }
    Ok(shown)
}

fn in_a_word(row: &Row) -> Option<String> {
    let is_different = matches!(row.verdict, Verdict::Less | Verdict::More);
    let (ratio, pairs) = (&row.ratio, row.pairs);
    is_different.then(|| {
        format!(
            "{:?} × {:.3} ({:.3} to {:.3}, {pairs} pairs)",
            row.metric, ratio.middle, ratio.low, ratio.high
        )
    })
}

impl Shown {
    fn add(&mut self, found: &Comparison) {
        self.comparisons += 1;
        self.different += u64::from(found.rows.iter().any(|row| in_a_word(row).is_some()));
        for row in &found.rows {
            let verdicts = self.by_metric.entry(format!("{:?}", row.metric)).or_default();
            *verdicts.entry(format!("{:?}", row.verdict)).or_default() += 1;
            if row.metric == Metric::CpuPerRequest {
                self.cpu_more += u64::from(row.verdict == Verdict::More);
                self.cpu_ratios.push([row.ratio.low, row.ratio.middle, row.ratio.high]);
            }
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "comparisons": self.comparisons,
            "with_a_difference_shown": self.different,
            "with_more_cpu_time_shown": self.cpu_more,
            "verdicts_by_metric": self.by_metric,
            "cpu_time_ratio_low_middle_high": self.cpu_ratios,
        })
    }
}

fn nginx_arm(name: &str) -> Outcome<Target> {
    arm(name, Source::Staged(rivals::stage("nginx", &[])?))
}

fn fixed_cost_arm(name: &str, program: &Path, turns: u64) -> Outcome<Target> {
    let start = Start {
        environment: vec![("COST".to_owned(), turns.to_string())],
        ..start(vec![program.display().to_string()])
    };
    arm(name, Source::Command(start))
}

fn start(words: Vec<String>) -> Start {
    Start {
        words,
        environment: Vec::new(),
        directory: None,
        port: None,
        behind: Vec::new(),
        ready_within: READY_WITHIN,
    }
}

fn arm(name: &str, source: Source) -> Outcome<Target> {
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
    Ok(Target { name: name.to_owned(), source, requests: vec![ask], check: Check::default() })
}

fn fixed_cost_server() -> Outcome<PathBuf> {
    let example = ["build", "--quiet", "--package", "onehop-bench", "--example", "fixed_cost_server"];
    quiet(&mut command("cargo", &example))?;
    Ok(workspace::target().join("debug/examples/fixed_cost_server"))
}
