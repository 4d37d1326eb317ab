//! `cargo xtask bench attacks`: what attackers over HTTP/2 do to a server and to its other clients.
//!
//! Owns the order: each attack has a server of its own, and so has the harmless client that uses the same share of a core; which
//! of the two comes first changes with each round. The attacker has one core, the server and its other clients have all. An
//! attack is passed where p99 of the others is at most twice the one beside the harmless client, all of them are answered,
//! memory stays within the attack's bound, and the attacker is disconnected within the bound of docs/http2.md. A smoke run
//! judges only the answers. `kinds.rs` has the attacks, `attacker.rs` sends them.

mod attacker;
mod kinds;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use onehop_load::engine;
use onehop_load::latency::Latencies;
use onehop_load::measure::{self, Server, cpu_of, forget_peak, memory_of};
use onehop_load::plan::{Arrivals, Expect, Pace, Phase, Plan, Protocol, Reuse, Spacing, Timeouts, Until};
use onehop_statistics::median;
use serde_json::{Value, json};

use crate::workspace::Options;
use crate::{Outcome, install, workspace};

use super::interrupt::{self, Interruptible};
use super::report::write_result;
use super::servers::{self, Cores};
use attacker::Done;
use kinds::{ATTACKS, Attack, Kind, PAGE, PROXIED};

/// Seconds of each attack.
const SECONDS: u64 = 30;
const ROUNDS: u64 = 3;
/// Requests of other clients in a second, over each version of HTTP.
const RATE: f64 = 150.0;
/// Their connections, over each version.
const CONNECTIONS: usize = 8;
/// How long they ask before anything is measured.
const WARM_UP: Duration = Duration::from_millis(500);
/// p99 of other clients beside an attacker may be so many times the one beside the harmless client.
const P99_FACTOR: f64 = 2.0;
/// Bytes beyond a bound that may be on their way when it is met: buffers of both kernels.
const ON_THEIR_WAY_BYTES: f64 = MIB;
const MIB: f64 = 1024.0 * 1024.0;
/// Bytes of the file that attackers do not take.
const LARGE_BYTES: usize = 8 * 1024 * 1024;

/// Above the table.
const HEADER: &str = "attack               p99 ms: harmless   attack  times   core  MiB: harmless   attack  connections    ended  most rounds";

/// What was seen of a server and its other clients.
struct Seen {
    /// Measured after the other one of its pair.
    is_second: bool,
    /// Seconds.
    p99: f64,
    asked: u64,
    answered: u64,
    /// What the load of other clients itself was limited by.
    limited: Vec<String>,
    /// Bytes, resident.
    at_rest: u64,
    peak: u64,
    /// Cores that the server used.
    server_cores: f64,
    done: Done,
}

/// Runs what the options ask for.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let names = ATTACKS.map(|attack| attack.name);
    let mut options = Options::new(words);
    let smoke = options.flag("--smoke");
    let seconds = options.number("--seconds", if smoke { 1 } else { SECONDS })?.max(1);
    let rounds = options.number("--rounds", if smoke { 1 } else { ROUNDS })?.max(1);
    let chosen = options.names("--only", &names, &names)?;
    options.finish()?;
    install::raise_descriptor_limit();
    let folder = workspace::target_folder("bench/attacks")?;
    make_site(&folder)?;
    let time = Duration::from_secs(seconds);
    let attacks: Vec<&Attack> =
        ATTACKS.iter().filter(|attack| chosen.contains(&attack.name.to_owned())).collect();
    let mut pairs: Vec<Vec<[Seen; 2]>> = attacks.iter().map(|_| Vec::new()).collect();
    for round in 1..=rounds {
        for (attack, pairs) in attacks.iter().zip(&mut pairs) {
            println!("round {round} of {rounds}: {}", attack.name);
            pairs.push(both(attack, pairs.last(), &folder, time)?);
        }
    }
    println!("{HEADER}");
    let (mut rows, mut problems) = (Vec::new(), Vec::new());
    for (attack, pairs) in attacks.iter().zip(&pairs) {
        print_row(attack, pairs);
        problems.extend(found_in(attack, pairs, smoke));
        rows.push(json!({
            "attack": attack.name,
            "rounds": pairs.iter().map(|[beside, attacked]| json!({
                "beside_harmless": value_of(beside), "beside_attack": value_of(attacked),
            })).collect::<Vec<_>>(),
        }));
    }
    let value = json!({
        "what": "attacks", "date": workspace::date(), "machine": workspace::machine(),
        "version": workspace::output_of(workspace::program(), &["--version"]),
        "seconds": seconds, "rate_of_others": RATE * 2.0, "rows": rows, "problems": problems,
    });
    println!("written to {}", write_result("attacks", smoke, &value)?.display());
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n").into()) }
}

/// One attack and the harmless client, which uses the share of a core that the attacker did just now, or in the round before.
fn both(attack: &Attack, before: Option<&[Seen; 2]>, folder: &Path, time: Duration) -> Outcome<[Seen; 2]> {
    let Some([_, attacked]) = before.filter(|[beside, _]| beside.is_second) else {
        let attacked = measure(attack, None, folder, time)?;
        let beside = measure(attack, Some(attacked.done.share), folder, time)?;
        return Ok([Seen { is_second: true, ..beside }, attacked]);
    };
    Ok([measure(attack, Some(attacked.done.share), folder, time)?, measure(attack, None, folder, time)?])
}

fn make_site(folder: &Path) -> Outcome {
    let site = folder.join("site");
    std::fs::create_dir_all(&site)?;
    std::fs::write(
        site.join("index.html"),
        format!("<!doctype html><title>Others</title>{}", "x".repeat(750)),
    )?;
    Ok(std::fs::write(site.join("large.bin"), vec![b'x'; LARGE_BYTES])?)
}

/// A server whose second site is the upstream of its first.
fn start(folder: &Path) -> Outcome<Server> {
    let (port, upstream) = (servers::free_port()?, servers::free_port()?);
    let configuration = folder.join("Onehopfile");
    let text = format!(
        "{{\n\tadmin off\n}}\nhttp://127.0.0.1:{port} {{\n\thandle {PROXIED} {{\n\t\treverse_proxy 127.0.0.1:{upstream}\n\t}}\n\
         \thandle {{\n\t\troot site\n\t\tfile_server\n\t}}\n}}\nhttp://127.0.0.1:{upstream} {{\n\trespond proxied\n}}\n"
    );
    std::fs::write(&configuration, text)?;
    let program = workspace::program().display().to_string();
    let words = [&program, "run", "--control", "off", "--config", &configuration.display().to_string()];
    let mut server = servers::start(&words.map(str::to_owned), &[], port, Cores::All)?;
    servers::wait_until_ready(&mut server, PAGE, Expect::Success)?;
    Ok(server)
}

/// A server beside an attacker, or beside the harmless client with this share of a core.
fn measure(attack: &Attack, harmless: Option<f64>, folder: &Path, time: Duration) -> Outcome<Seen> {
    interrupt::check()?;
    let server = start(folder)?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port()));
    others(address, WARM_UP)?;
    let processes = server.tree().processes();
    let at_rest = memory_of(&processes).resident_bytes;
    if !forget_peak(&processes) {
        return Err("the kernel does not forget the server's peak".into());
    }
    let (cpu, end) = (cpu_of(&server.tree()), Instant::now() + time);
    let beside = || {
        measure::bind_to(&Cores::Apart.of_load());
        // What is asked for is the same as far as a harmless client may ask for it.
        let path = if attack.path == PROXIED { PROXIED } else { PAGE };
        let done = match harmless {
            Some(share) => attacker::harmless(path, address, end, share),
            None => attacker::attack(attack, address, end),
        };
        done.map_err(|error| error.to_string())
    };
    let (clients, done) = std::thread::scope(|scope| {
        let beside = scope.spawn(beside);
        (others(address, time), beside.join())
    });
    let server_cores = (cpu_of(&server.tree()) - cpu).as_secs_f64() / time.as_secs_f64();
    let peak = memory_of(&processes).peak_bytes;
    if let Some(why) = server.ended() {
        return Err(format!("{}: the server ended: {why}", attack.name).into());
    }
    server.stop();
    let done =
        done.map_err(|_| "the attacker broke")?.map_err(|error| format!("{}: {error}", attack.name))?;
    Ok(Seen { at_rest, peak, server_cores, done, ..clients? })
}

/// Other clients, over both versions of HTTP at a rate that does not ask whether anybody answers.
fn others(address: SocketAddr, time: Duration) -> Outcome<Seen> {
    let load = |protocol| {
        let ask = servers::ask(address, PAGE).map_err(|error| error.to_string())?;
        let phase = Phase { from: RATE, to: RATE, length: time };
        let plan = Plan {
            requests: vec![onehop_load::plan::Request { protocol, ..ask }],
            pace: Pace::Open {
                connections: CONNECTIONS,
                arrivals: Arrivals { spacing: Spacing::Constant, phases: vec![phase] },
            },
            until: Until { time: Some(time), ..Until::default() },
            warm_up: Duration::ZERO,
            threads: 1,
            cores: Vec::new(),
            reuse: Reuse::Kept,
            timeouts: Timeouts::default(),
            seed: 1,
        };
        engine::run(&plan, &mut Interruptible).map_err(|error| error.to_string())
    };
    let runs = std::thread::scope(|scope| {
        let loads = [Protocol::Http1, Protocol::Http2 { streams: 4 }]
            .map(|protocol| scope.spawn(move || load(protocol)));
        loads.map(|load| load.join().unwrap_or_else(|_| Err("the load broke".to_owned())))
    });
    interrupt::check()?;
    let (mut latency, mut asked, mut answered, mut limited) = (Latencies::new(), 0, 0, Vec::new());
    for run in runs {
        let run = run?;
        latency.merge(&run.total.latency);
        asked += run.total.good + run.total.unexpected + run.total.failures.sum();
        answered += run.total.good;
        limited.extend(run.generator.bottleneck.map(super::load::in_words));
    }
    let (is_second, p99) = (false, latency.at(0.99).as_secs_f64());
    let (at_rest, peak, server_cores, done) = (0, 0, 0.0, Done::default());
    Ok(Seen { is_second, p99, asked, answered, limited, at_rest, peak, server_cores, done })
}

/// Medians of both sides over the rounds.
fn medians(pairs: &[[Seen; 2]], of: impl Fn(&Seen) -> f64) -> [f64; 2] {
    [0, 1].map(|side| median(&pairs.iter().map(|pair| of(&pair[side])).collect::<Vec<_>>()))
}

fn attacked(pairs: &[[Seen; 2]]) -> impl Iterator<Item = &Seen> {
    pairs.iter().map(|[_, attacked]| attacked)
}

fn print_row(attack: &Attack, pairs: &[[Seen; 2]]) {
    let [beside, beside_attack] = medians(pairs, |seen| seen.p99 * 1e3);
    let [_, share] = medians(pairs, |seen| seen.done.share);
    let [peak, peak_attack] = medians(pairs, |seen| seen.peak as f64 / MIB);
    let (connections, ended) = attacked(pairs)
        .fold((0, 0), |(all, ended), seen| (all + seen.done.connections, ended + seen.done.ended));
    let most = attacked(pairs).flat_map(|seen| &seen.done.lives).map(|(rounds, _)| *rounds).max();
    let most = most.map_or_else(|| "-".to_owned(), |most| most.to_string());
    println!(
        "{:<20} {beside:>16.2} {beside_attack:>8.2} {:>6.2} {share:>6.2} {peak:>14.1} {peak_attack:>8.1} {connections:>12} \
         {ended:>8} {most:>12}",
        attack.name,
        beside_attack / beside,
    );
}

/// What is not as it has to be.
fn found_in(attack: &Attack, pairs: &[[Seen; 2]], smoke: bool) -> Vec<String> {
    let mut problems = Vec::new();
    for seen in pairs.iter().flatten().filter(|seen| seen.answered < seen.asked) {
        problems.push(format!("{} of {} others were not answered", seen.asked - seen.answered, seen.asked));
    }
    let [beside, beside_attack] = medians(pairs, |seen| seen.p99);
    if !smoke && beside_attack > beside * P99_FACTOR {
        problems.push(format!(
            "p99 of others is {:.2} times the one beside harmless load",
            beside_attack / beside
        ));
    }
    for seen in attacked(pairs).filter(|_| !smoke) {
        let grown = seen.peak.saturating_sub(seen.at_rest) as f64 / MIB;
        if grown > attack.growth_mib as f64 {
            problems.push(format!("the server grew by {grown:.1} MiB, more than {}", attack.growth_mib));
        }
        let Kind::Flood(flood) = &attack.kind else { continue };
        if seen.done.ended == 0 {
            problems.push("the server ended no connection".to_owned());
        }
        let late = ON_THEIR_WAY_BYTES / (flood.round)(attack.path, 1).len() as f64;
        let most = |seconds: f64| f64::from(flood.bound.0) + f64::from(flood.bound.1) * seconds + late;
        let over = seen.done.lives.iter().find(|(rounds, seconds)| f64::from(*rounds) > most(*seconds));
        problems.extend(
            over.map(|(rounds, seconds)| format!("a connection took {rounds} rounds in {seconds:.1} s")),
        );
    }
    problems.into_iter().map(|problem| format!("{}: {problem}", attack.name)).collect()
}

fn value_of(seen: &Seen) -> Value {
    let rounds: Vec<f64> = seen.done.lives.iter().map(|(rounds, _)| f64::from(*rounds)).collect();
    let most = |of: fn(&(u32, f64)) -> f64| seen.done.lives.iter().map(of).reduce(f64::max);
    json!({
        "p99_ms": seen.p99 * 1e3, "asked": seen.asked, "answered": seen.answered,
        "load_limited_by": seen.limited, "at_rest_bytes": seen.at_rest, "peak_bytes": seen.peak,
        "server_cores": seen.server_cores, "share_of_a_core": seen.done.share, "rounds": seen.done.rounds,
        "connections": seen.done.connections, "ended_by_server": seen.done.ended,
        "told_enhance_your_calm": seen.done.calmed,
        "rounds_until_the_end": { "median": (!rounds.is_empty()).then(|| median(&rounds)), "most": most(|life| f64::from(life.0)) },
        "seconds_until_the_end_most": most(|life| life.1),
    })
}
