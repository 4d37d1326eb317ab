//! `cargo xtask suites --only slowhttptest`: Debian's slowhttptest in its four modes against a server of files, and what
//! other people notice of it.
//!
//! Owns the order: people alone, people beside the slow clients, people alone again; the server's memory at each. A mode
//! is passed where p99 of the others stays below twice the idle one, all of them are answered, and memory stays what
//! `memory` counts for so many connections. Never judges p99 in a short run, which says little.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use onehop_load::engine;
use onehop_load::outcome::Run;
use onehop_load::plan::{Arrivals, Expect, Pace, Phase, Plan, Reuse, Spacing, Timeouts, Until};

use crate::steps::command;
use crate::{Outcome, install, workspace};

use super::interrupt::{self, Interruptible};
use super::probe;
use super::servers::{self, Cores};

/// Slow clients of one mode.
const CONNECTIONS: u64 = 2_000;
/// Of them that are opened in a second.
const OPENED_PER_SECOND: u64 = 500;
/// Other people's requests in a second, each on a connection of its own: enough for a p99 within seconds, and next to
/// nothing for a server.
const RATE: f64 = 300.0;
/// p99 beside the slow clients may be so many times the one without them.
const P99_FACTOR: f64 = 2.0;
/// KiB that the sum of `memory` counts for a connection.
const CONNECTION_KIB: u64 = 32;
/// KiB by which memory may differ between the beginning and the end of a time in which nothing changes.
const FLAT_KIB: u64 = 4 * 1024;
/// So many of the slow clients have to have come, so that it was a test.
const CAME_AT_LEAST: u64 = CONNECTIONS / 10 * 9;
/// The distance of two looks at the server.
const LOOK_PERIOD: Duration = Duration::from_millis(250);

/// One way of being slow.
struct Mode {
    name: &'static str,
    path: &'static str,
    words: &'static [&'static str],
}

const MODES: [Mode; 4] = [
    Mode { name: "slow header", path: "/", words: &["-H", "-i", "5", "-x", "24", "-t", "GET"] },
    Mode { name: "slow body", path: "/", words: &["-B", "-i", "5", "-x", "10", "-s", "8192"] },
    Mode { name: "range", path: "/large.bin", words: &["-R", "-t", "HEAD", "-a", "10", "-b", "3000"] },
    Mode {
        name: "slow read",
        path: "/large.bin",
        words: &["-X", "-w", "512", "-y", "1024", "-n", "5", "-z", "32", "-k", "3"],
    },
];

/// How long people are measured, and the slow clients stay.
#[derive(Clone, Copy)]
struct Times {
    measured: Duration,
    slow: Duration,
}

/// What was seen of one mode.
struct Seen {
    name: &'static str,
    /// p99 of others before, beside and after.
    p99: [Duration; 3],
    /// Of others beside the slow clients: asked, answered.
    others: (u64, u64),
    /// The most connections that were open at a time, and the slow clients that came.
    open: u64,
    came: u64,
    /// Resident KiB: at rest, at half of the time beside the slow clients, at its end, after them.
    resident: [u64; 4],
    /// What the load itself limited.
    limited: Option<String>,
    /// The tool's own word on whether a request in between was answered.
    available: String,
}

/// Runs all modes; `--smoke` makes it short.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let smoke = words.contains(&"--smoke");
    install::debian(&["slowhttptest"])?;
    install::raise_descriptor_limit();
    let seconds =
        |measured, slow| Times { measured: Duration::from_secs(measured), slow: Duration::from_secs(slow) };
    let times = if smoke { seconds(10, 14) } else { seconds(30, 45) };
    let folder = workspace::target_folder("bench")?.join("slow");
    make_site(&folder)?;
    let mut record = format!(
        "date: {}\nmachine: {:#}\nslowhttptest {}; {CONNECTIONS} connections, {OPENED_PER_SECOND} a second, for {} s in each \
         mode;\nothers: {RATE} requests a second on new connections, open loop, {} s each\n",
        workspace::date(),
        workspace::machine(),
        version(),
        times.slow.as_secs(),
        times.measured.as_secs(),
    );
    let mut problems = Vec::new();
    for mode in &MODES {
        let (line, seen) = measure(mode, &folder, times)?;
        let summary = seen.summary();
        print!("{summary}");
        write!(record, "\n{line}\n{summary}")?;
        problems.extend(seen.problems(smoke).into_iter().map(|problem| format!("{}: {problem}", mode.name)));
    }
    let kept = match smoke {
        true => workspace::target_folder("suites")?,
        false => workspace::root().join("tests/suites/results"),
    };
    let path = kept.join(format!("{}-slowhttptest.txt", workspace::date()));
    writeln!(record, "\n{}", if problems.is_empty() { "passed".to_owned() } else { problems.join("\n") })?;
    std::fs::write(&path, record)?;
    println!("    written to {}", path.display());
    std::fs::remove_dir_all(&folder)?;
    if problems.is_empty() { Ok(()) } else { Err(problems.join("; ").into()) }
}

fn make_site(folder: &Path) -> Outcome {
    let site = folder.join("site");
    std::fs::create_dir_all(&site)?;
    std::fs::write(
        site.join("index.html"),
        format!("<!doctype html><title>Others</title>{}", "x".repeat(2048)),
    )?;
    std::fs::write(site.join("large.bin"), vec![b'x'; 1024 * 1024])?;
    Ok(())
}

fn version() -> String {
    workspace::output_of("dpkg-query", &["-W", "-f", "${Version}", "slowhttptest"]).unwrap_or_default()
}

/// One mode on a fresh server; gives the tool's command line too.
fn measure(mode: &Mode, folder: &Path, times: Times) -> Outcome<(String, Seen)> {
    let (port, admin) = (servers::free_port()?, servers::free_port()?);
    let configuration = folder.join("Onehopfile");
    std::fs::write(
        &configuration,
        format!(
            "{{\n\tadmin 127.0.0.1:{admin}\n}}\nhttp://127.0.0.1:{port} {{\n\troot site\n\tfile_server\n}}\n"
        ),
    )?;
    let program = workspace::program().display().to_string();
    let words = [&program, "run", "--control", "off", "--config", &configuration.display().to_string()];
    let words = words.map(str::to_owned);
    let mut server = servers::start(&words, &[], port, Cores::All)?;
    servers::wait_until_ready(&mut server, "/", Expect::Success)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, admin));

    people(address, Duration::from_secs(1))?;
    let at_rest = resident_kib(server.pid())?;
    let before = people(address, times.measured)?;
    let line = tool_line(mode, address, times.slow);
    let came_before = metric(admin, "onehop_connections_total")?;
    let slow = Slow::start(&line)?;
    // From its beginning on: where answers are quick, slow clients are soon gone.
    let (pid, time) = (server.pid(), times.measured);
    let (beside, looked) = std::thread::scope(|scope| {
        let looks = scope.spawn(move || look(pid, admin, time).map_err(|error| error.to_string()));
        (people(address, time), looks.join())
    });
    let (beside, looks) = (beside?, looked.map_err(|_| "nobody looked at the server")??);
    let asked = asked(&beside);
    let came = metric(admin, "onehop_connections_total")?.saturating_sub(came_before + asked);
    let available = slow.finish(times.slow)?;
    let after = people(address, times.measured)?;
    let resident = [at_rest, looks.at_half, looks.at_end, resident_kib(server.pid())?];
    let seen = Seen {
        name: mode.name,
        p99: [&before, &beside, &after].map(|run| run.total.latency.at(0.99)),
        others: (asked, beside.total.good),
        open: looks.open,
        came,
        resident,
        limited: beside.generator.bottleneck.map(|bottleneck| format!("{bottleneck:?}")),
        available,
    };
    server.stop();
    Ok((line.join(" "), seen))
}

/// What is seen of the server while people are measured.
struct Looks {
    open: u64,
    at_half: u64,
    at_end: u64,
}

fn look(pid: u32, admin: SocketAddr, time: Duration) -> Outcome<Looks> {
    let begun = Instant::now();
    let (mut open, mut at_half) = (0, 0);
    while begun.elapsed() + LOOK_PERIOD < time {
        interrupt::check()?;
        open = open.max(metric(admin, "onehop_connections_open")?);
        if at_half == 0 && begun.elapsed() > time / 2 {
            at_half = resident_kib(pid)?;
        }
        std::thread::sleep(LOOK_PERIOD);
    }
    Ok(Looks { open, at_half, at_end: resident_kib(pid)? })
}

fn asked(run: &Run) -> u64 {
    run.total.good + run.total.unexpected + run.total.failures.sum()
}

/// Other people, who come at a rate that does not ask whether anybody answers.
fn people(address: SocketAddr, time: Duration) -> Outcome<Run> {
    let phase = Phase { from: RATE, to: RATE, length: time };
    let arrivals = Arrivals { spacing: Spacing::Constant, phases: vec![phase] };
    let plan = Plan {
        requests: vec![servers::ask(address, "/")?],
        pace: Pace::Open { connections: 64, arrivals },
        until: Until { time: Some(time), ..Until::default() },
        warm_up: Duration::ZERO,
        threads: 1,
        cores: Vec::new(),
        reuse: Reuse::New,
        timeouts: Timeouts::default(),
        seed: 1,
    };
    let run = engine::run(&plan, &mut Interruptible)?;
    interrupt::check()?;
    Ok(run)
}

fn tool_line(mode: &Mode, address: SocketAddr, time: Duration) -> Vec<String> {
    let url = format!("http://{address}{}", mode.path);
    // It turns without a pause; others must have a core when they want one, or their latency would be its.
    let mut line = ["nice", "-n", "19", "slowhttptest"].map(str::to_owned).to_vec();
    line.extend(mode.words.iter().map(|&word| word.to_owned()));
    for (option, value) in [
        ("-c", CONNECTIONS.to_string()),
        ("-r", OPENED_PER_SECOND.to_string()),
        ("-l", time.as_secs().to_string()),
        ("-p", "3".to_owned()),
        ("-u", url),
    ] {
        line.extend([option.to_owned(), value]);
    }
    line
}

/// The tool while it runs; it is ended with this.
struct Slow(Option<Child>);

impl Slow {
    fn start(line: &[String]) -> Outcome<Slow> {
        let words: Vec<&str> = line.iter().skip(1).map(String::as_str).collect();
        let output = std::fs::File::create(output_path()?)?;
        let mut tool = command(line.first().map_or("nice", String::as_str), &words);
        tool.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        Ok(Slow(Some(tool.spawn()?)))
    }

    /// Waits for its end; gives what it says of its own requests in between.
    fn finish(mut self, time: Duration) -> Outcome<String> {
        let Some(mut tool) = self.0.take() else { return Ok(String::new()) };
        let begun = Instant::now();
        while tool.try_wait()?.is_none() {
            interrupt::check()?;
            if begun.elapsed() > time + Duration::from_secs(10) {
                tool.kill()?;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let text = String::from_utf8_lossy(&std::fs::read(output_path()?)?).into_owned();
        let said =
            |word: &str| text.lines().any(|line| line.contains("service available") && line.contains(word));
        Ok(match (said("YES"), said("NO")) {
            (true, false) => "yes",
            (true, true) => "not always",
            _ => "no",
        }
        .to_owned())
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        if let Some(tool) = &mut self.0 {
            let _ = tool.kill();
            let _ = tool.wait();
        }
    }
}

fn output_path() -> Outcome<std::path::PathBuf> {
    Ok(workspace::target_folder("bench")?.join("slow/slowhttptest.txt"))
}

fn metric(admin: SocketAddr, name: &str) -> Outcome<u64> {
    let answer = probe::get(admin, "/metrics", &[])?;
    let text = String::from_utf8_lossy(&answer.body);
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value
        .and_then(|value| value.parse().ok())
        .ok_or_else(|| format!("the server does not tell {name}").into())
}

fn resident_kib(pid: u32) -> Outcome<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    kib.ok_or_else(|| "the server's memory is not known".into())
}

impl Seen {
    fn idle_p99(&self) -> Duration {
        self.p99[0].max(self.p99[2])
    }

    fn factor(&self) -> f64 {
        self.p99[1].as_secs_f64() / self.idle_p99().as_secs_f64().max(f64::MIN_POSITIVE)
    }

    fn summary(&self) -> String {
        let [before, beside, after] = self.p99.map(|p99| p99.as_secs_f64() * 1e3);
        let [at_rest, half, end, gone] = self.resident;
        let limited =
            self.limited.as_ref().map_or(String::new(), |what| format!("; the load itself was late: {what}"));
        format!(
            "    {}: {} slow clients came, {} connections at a time; p99 of others {before:.2} ms before, {beside:.2} beside \
             ({:.2} times), {after:.2} after; {} of {} answered{limited}; the tool's own requests answered: {}\n      \
             resident KiB: {at_rest} at rest, {half} at half of the time, {end} at its end, {gone} after it\n",
            self.name,
            self.came,
            self.open,
            self.factor(),
            self.others.1,
            self.others.0,
            self.available,
        )
    }

    fn problems(&self, smoke: bool) -> Vec<String> {
        let mut problems = Vec::new();
        let (asked, answered) = self.others;
        if !smoke && self.came < CAME_AT_LEAST {
            problems.push(format!("only {} slow clients came", self.came));
        }
        if answered < asked && self.limited.is_none() {
            problems.push(format!("{} of {asked} others were not answered", asked - answered));
        }
        if !smoke && self.limited.is_some() {
            problems.push("the load itself was late, so p99 says nothing: this machine is busy".to_owned());
        } else if !smoke && self.factor() > P99_FACTOR {
            problems.push(format!("p99 of others is {:.2} times the idle one", self.factor()));
        }
        let [at_rest, half, end, gone] = self.resident;
        let most = at_rest + CONNECTIONS * CONNECTION_KIB;
        if half.max(end) > most {
            problems.push(format!("{} KiB are resident, and {most} would be enough", half.max(end)));
        }
        // In a short run they still come, and use their buffers for the first time.
        if !smoke && end.max(gone) > half + FLAT_KIB {
            problems
                .push(format!("memory grows from {half} to {} KiB while nobody new comes", end.max(gone)));
        }
        problems
    }
}
