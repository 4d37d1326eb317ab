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
use onehop_load::measure::Server;
use onehop_load::outcome::Run;
use onehop_load::plan::{Arrivals, Expect, Pace, Patience, Phase, Plan, Reuse, Spacing, Until};

use crate::steps::command;
use crate::{Outcome, ground, install};

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
/// So many of the slow clients have to be there at a time, so that it was a test: servers end some sooner.
const SEEN_AT_LEAST: u64 = CONNECTIONS / 4;

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
    /// The most connections that were open.
    connections: u64,
    /// Resident KiB: at rest, when the slow clients had come, when they had been there, after them.
    resident: [u64; 4],
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
    let times = if smoke { seconds(5, 14) } else { seconds(30, 45) };
    let folder = ground::target_folder("bench")?.join("slow");
    make_site(&folder)?;
    let mut record = format!(
        "date: {}\nmachine: {:#}\nslowhttptest {}; {CONNECTIONS} connections, {OPENED_PER_SECOND} a second, for {} s in each \
         mode;\nothers: {RATE} requests a second on new connections, open loop, {} s each\n",
        ground::date(),
        ground::machine(),
        version(),
        times.slow.as_secs(),
        times.measured.as_secs(),
    );
    let mut problems = Vec::new();
    for mode in &MODES {
        let (line, seen) = measure(mode, &folder, times)?;
        let told = seen.told();
        print!("{told}");
        write!(record, "\n{line}\n{told}")?;
        problems.extend(seen.problems(smoke).into_iter().map(|problem| format!("{}: {problem}", mode.name)));
    }
    let kept = match smoke {
        true => ground::target_folder("suites")?,
        false => ground::root().join("tests/suites/results"),
    };
    let path = kept.join(format!("{}-slowhttptest.txt", ground::date()));
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
    ground::output_of("dpkg-query", &["-W", "-f", "${Version}", "slowhttptest"]).unwrap_or_default()
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
    let program = ground::program().display().to_string();
    let words = [&program, "run", "--control", "off", "--config", &configuration.display().to_string()];
    let words = words.map(str::to_owned);
    let mut server = servers::start(&words, &[], port, Cores::All)?;
    servers::wait_until_ready(&mut server, "/", Expect::Success)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, admin));

    people(address, Duration::from_secs(1))?;
    let at_rest = resident_kib(&server)?;
    let before = people(address, times.measured)?;
    let line = tool_line(mode, address, times.slow);
    let mut slow = Slow::start(&line)?;
    let come = slow.wait_until_there(admin)?;
    let with_them = resident_kib(&server)?;
    let beside = people(address, times.measured)?;
    let connections = come.max(open_connections(admin)?);
    let at_their_end = resident_kib(&server)?;
    let available = slow.finish(times.slow)?;
    let after = people(address, times.measured)?;
    let seen = Seen {
        name: mode.name,
        p99: [&before, &beside, &after].map(|run| run.total.latency.at(0.99)),
        others: (beside.total.good + beside.total.unexpected + beside.total.faults.sum(), beside.total.good),
        connections,
        resident: [at_rest, with_them, at_their_end, resident_kib(&server)?],
        available,
    };
    server.stop();
    Ok((line.join(" "), seen))
}

/// Other people, who come at a rate that does not ask whether anybody answers.
fn people(address: SocketAddr, time: Duration) -> Outcome<Run> {
    let phase = Phase { from: RATE, to: RATE, length: time };
    let arrivals = Arrivals { spacing: Spacing::Constant, phases: vec![phase] };
    let plan = Plan {
        asks: vec![servers::ask(address, "/")?],
        pace: Pace::Open { connections: 64, arrivals },
        until: Until { time: Some(time), ..Until::default() },
        warm_up: Duration::ZERO,
        threads: 1,
        cores: Vec::new(),
        reuse: Reuse::New,
        patience: Patience::default(),
        seed: 1,
    };
    let run = engine::run(&plan, &mut Interruptible)?;
    interrupt::check()?;
    Ok(run)
}

fn tool_line(mode: &Mode, address: SocketAddr, time: Duration) -> Vec<String> {
    let url = format!("http://{address}{}", mode.path);
    let mut line = vec!["slowhttptest".to_owned()];
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
        let mut tool = command(line.first().map_or("slowhttptest", String::as_str), &words);
        tool.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        Ok(Slow(Some(tool.spawn()?)))
    }

    /// Waits until its connections are there; gives the most that were seen. A server may end some before the last
    /// ones come.
    fn wait_until_there(&mut self, admin: SocketAddr) -> Outcome<u64> {
        let takes = Duration::from_secs(CONNECTIONS / OPENED_PER_SECOND + 1);
        let (begun, mut most) = (Instant::now(), 0);
        while begun.elapsed() < takes && most < CONNECTIONS {
            interrupt::check()?;
            most = most.max(open_connections(admin)?);
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(most)
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
    Ok(ground::target_folder("bench")?.join("slow/slowhttptest.txt"))
}

fn open_connections(admin: SocketAddr) -> Outcome<u64> {
    let answer = probe::get(admin, "/metrics", &[])?;
    let text = String::from_utf8_lossy(&answer.body);
    let line = text.lines().find_map(|line| line.strip_prefix("onehop_connections_open "));
    line.and_then(|value| value.parse().ok())
        .ok_or_else(|| "the server does not count its connections".into())
}

fn resident_kib(server: &Server) -> Outcome<u64> {
    let text = std::fs::read_to_string(format!("/proc/{}/status", server.pid()))?;
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

    fn told(&self) -> String {
        let [before, beside, after] = self.p99.map(|p99| p99.as_secs_f64() * 1e3);
        let [at_rest, come, end, gone] = self.resident;
        format!(
            "    {}: {} connections; p99 of others {before:.2} ms before, {beside:.2} beside ({:.2} times), {after:.2} after; \
             {} of {} answered; tool's own requests answered: {}\n      resident KiB: {at_rest} at rest, {come} when they had \
             come, {end} when they had been there, {gone} after them\n",
            self.name,
            self.connections,
            self.factor(),
            self.others.1,
            self.others.0,
            self.available,
        )
    }

    fn problems(&self, smoke: bool) -> Vec<String> {
        let mut problems = Vec::new();
        let (asked, answered) = self.others;
        if self.connections < SEEN_AT_LEAST {
            problems.push(format!("only {} slow clients were there", self.connections));
        }
        if answered < asked {
            problems.push(format!("{} of {asked} others were not answered", asked - answered));
        }
        if !smoke && self.factor() > P99_FACTOR {
            problems.push(format!("p99 of others is {:.2} times the idle one", self.factor()));
        }
        let [at_rest, come, end, gone] = self.resident;
        let most = at_rest + self.connections.max(CONNECTIONS) * CONNECTION_KIB;
        if come.max(end) > most {
            problems.push(format!("{} KiB are resident, and {most} would be enough", come.max(end)));
        }
        if end > come.max(gone) + FLAT_KIB {
            problems.push(format!("memory grows from {come} to {end} KiB while nobody new comes"));
        }
        problems
    }
}
