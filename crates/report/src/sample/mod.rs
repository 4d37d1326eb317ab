//! Made-up reports of every kind, for tests and for looking at: none of their figures was ever measured.
//!
//! Owns values that agree with each other (counts with histograms, rates with times). Never depends on a clock or on
//! chance, so that snapshots stay the same.

mod targets;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use onehop_bench::collection::{CollectionRun, RequestFigures};
use onehop_bench::saturation::{Limit, Point, Saturation, Verdict};
use onehop_load::caveat::CaveatCode;
use onehop_load::latency::Latencies;
use onehop_load::measure::Machine;
use onehop_load::outcome::{Bottleneck, End, Failures, Generator, Omitted, Run, Slice, Stall, Tally};
use onehop_load::plan::{
    Arrivals, Expect, Pace, Phase, Plan, Protocol, Request, Reuse, Spacing, Timeouts, Until,
};
use onehop_load::tls::{Handshakes, Parameters};
use onehop_load::url::{Address, Url};

use super::{Findings, Load, Report};

/// Slices of a made-up run.
const SLICES: u32 = 100;

/// Every kind of report, with a name for its file.
pub fn reports() -> Vec<(&'static str, Report)> {
    vec![
        ("load", report(Findings::Loads(vec![closed()]))),
        ("open", report(Findings::Loads(vec![open()]))),
        ("limited", report(Findings::Loads(vec![limited()]))),
        ("failed", report(Findings::Loads(vec![failed()]))),
        ("sweep", report(Findings::Loads(sweep()))),
        ("comparison", report(Findings::Comparison(targets::comparison()))),
        ("arms", report(Findings::Comparison(targets::three_targets()))),
        ("limited_arms", report(Findings::Comparison(targets::limited()))),
        ("scenario", report(Findings::Scenario(targets::scenario()))),
        ("max", report(Findings::Saturation(saturation()))),
        ("collection", report(Findings::Collection(collection()))),
        ("trial", report(Findings::SideBySide(Box::new(targets::side_by_side())))),
        ("different", report(Findings::SideBySide(Box::new(targets::different())))),
        ("hostile", report(Findings::Collection(hostile()))),
    ]
}

/// A report around findings.
pub fn report(findings: Findings) -> Report {
    Report {
        command: "onehop bench -c 64 -H 'Authorization: Bearer s3cr3t' http://127.0.0.1:3000/".to_owned(),
        version: "0.1.0".to_owned(),
        date: "2026-01-02T03:04:05Z".to_owned(),
        machine: Machine {
            processor: "Example Processor 9000".to_owned(),
            cores: 4,
            kernel: "6.1.0-44-amd64".to_owned(),
            system: "Debian GNU/Linux 12 (bookworm)".to_owned(),
            memory_bytes: 8_589_934_592,
            inside: "virtual machine (hypervisor flag of the processor)".to_owned(),
            governor: None,
            load_average: 0.31,
        },
        steal: Some(0.012),
        versions: vec![("nginx".to_owned(), "1.22.1".to_owned()), ("node".to_owned(), "v20.19.2".to_owned())],
        findings,
        caveats: vec![CaveatCode::FewCores.says("Few cores: the load and the server share 4.")],
    }
}

/// Latencies around a median, with a tail: `spread` is how far apart the percentiles lie.
pub(super) fn latencies(count: u64, median_micros: f64, spread: f64) -> Latencies {
    let mut latencies = Latencies::new();
    let pieces = count.min(2000);
    let mut left = count;
    for piece in 0..pieces {
        let share = (piece as f64 + 0.5) / pieces as f64;
        // The logistic distribution of the logarithm: a body and a tail, without a special function.
        let micros = median_micros * (share / (1.0 - share)).powf(spread);
        let many = left / (pieces - piece);
        left -= many;
        latencies.record_many(Duration::from_secs_f64(micros / 1e6), many);
    }
    latencies
}

/// A run of `seconds` at this rate.
pub(super) fn run(rate: f64, seconds: f64, median_micros: f64, spread: f64) -> Run {
    let good = (rate * seconds) as u64;
    let latency = latencies(good, median_micros, spread);
    let mut chance = fastrand::Rng::with_seed(7);
    let slice_length = Duration::from_secs_f64(seconds / f64::from(SLICES));
    let slices = (0..SLICES).map(|place| {
        let noise = 0.97 + 0.06 * chance.f64();
        Slice {
            at: slice_length * place,
            good: (good as f64 / f64::from(SLICES) * noise) as u64,
            bad: 0,
            p50: latency.at(0.5).mul_f64(noise),
            p99: latency.at(0.99).mul_f64(0.8 + 0.4 * chance.f64()),
            max: latency.at(0.9999).mul_f64(0.6 + 0.4 * chance.f64()),
        }
    });
    let slices = slices.collect();
    let total = Tally {
        latency,
        good,
        statuses: BTreeMap::from([(200, good)]),
        bytes_read: good * 1234,
        bytes_written: good * 61,
        ..Tally::default()
    };
    Run {
        begun: SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_045),
        elapsed: Duration::from_secs_f64(seconds),
        completed: good,
        by_request: vec![total.clone()],
        total,
        slices,
        slice_length,
        stalls: Vec::new(),
        omitted: None,
        handshakes: Handshakes::default(),
        http2: None,
        generator: Generator {
            cpu: Duration::from_secs_f64(seconds * 0.82),
            busiest: 0.43,
            waiting: 0.02,
            lateness: Latencies::new(),
            connections_opened: 64,
            bottleneck: None,
        },
        end: End::Time,
    }
}

/// A closed loop over so many connections.
pub(super) fn plan(connections: usize) -> Plan {
    Plan {
        requests: vec![request("/", "front page")],
        pace: Pace::Closed { connections, think: Duration::ZERO },
        until: Until { time: Some(Duration::from_secs(10)), ..Until::default() },
        warm_up: Duration::from_secs(1),
        threads: 2,
        cores: vec![2, 3],
        reuse: Reuse::Kept,
        timeouts: Timeouts::default(),
        seed: 1,
    }
}

fn request(path: &str, name: &str) -> Request {
    let address = SocketAddr::from(([127, 0, 0, 1], 3000));
    Request {
        name: name.to_owned(),
        url: Url {
            scheme: onehop_load::url::Scheme::Http,
            endpoint: onehop_load::url::Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: 3000 },
            authority: address.to_string(),
            path: path.to_owned(),
        },
        address: Address::Tcp(address),
        tls: None,
        protocol: Protocol::Http1,
        method: "GET".to_owned(),
        fields: vec![
            ("Accept".to_owned(), "text/html".to_owned()),
            ("Authorization".to_owned(), "Bearer s3cr3t".to_owned()),
            ("Cookie".to_owned(), "session=s3cr3t".to_owned()),
        ],
        body: None,
        weight: 1,
        expect: Expect::Success,
    }
}

fn closed() -> Load {
    let mut stalled = run(48_210.0, 10.0, 1250.0, 0.18);
    stall(&mut stalled, Duration::from_millis(3200), Duration::from_secs(1));
    Load {
        plan: plan(64),
        runs: vec![stalled, run(51_780.0, 10.0, 1180.0, 0.18)],
        disagreements: vec![
            "The rates of the two runs differ by 7.1 %, more than their slices do: measure again when the machine is \
             quiet."
                .to_owned(),
        ],
    }
}

fn stall(run: &mut Run, at: Duration, length: Duration) {
    for slice in run.slices.iter_mut().filter(|slice| slice.at >= at && slice.at < at + length) {
        *slice = Slice { at: slice.at, ..Slice::default() };
    }
    run.total.latency.record_many(length, 64);
    run.stalls.push(Stall { at, length });
    let mut corrected = run.total.latency.clone();
    for part in 1..=480u32 {
        corrected.record_many(length.mul_f64(f64::from(part) / 480.0), 100);
    }
    run.omitted = Some(Omitted { requests: 48_000, corrected });
}

fn open() -> Load {
    let phases = vec![
        Phase { from: 1000.0, to: 12_000.0, length: Duration::from_secs(5) },
        Phase { from: 12_000.0, to: 12_000.0, length: Duration::from_secs(10) },
    ];
    let pace = Pace::Open { connections: 256, arrivals: Arrivals { spacing: Spacing::Poisson, phases } };
    let mut requests = vec![
        request("/", "front page"),
        request("/search?q=a|b&token=s3cr3t", "search"),
        request("/big.js", "script"),
    ];
    requests.iter_mut().for_each(|request| request.url.scheme = onehop_load::url::Scheme::Https);
    let mut seen = run(9_800.0, 15.0, 640.0, 0.31);
    let agreed = Parameters {
        version: "TLS 1.3",
        cipher_suite: "TLS_AES_256_GCM_SHA384".to_owned(),
        group: Some("X25519MLKEM768"),
    };
    seen.handshakes = Handshakes { full: 256, resumed: 3, parameters: BTreeMap::from([(agreed, 259)]) };
    seen.total.service = latencies(seen.total.good, 600.0, 0.22);
    seen.generator.lateness = latencies(seen.total.good, 11.0, 0.2);
    seen.total.unexpected = 41;
    seen.total.statuses.insert(503, 41);
    seen.total.failures = Failures { tls: 2, truncated: 3, timed_out: 12, ..Failures::default() };
    for slice in seen.slices.iter_mut().skip(70).take(6) {
        slice.bad = 9;
    }
    seen.by_request = [(0.5, 500.0), (0.3, 900.0), (0.2, 1900.0)]
        .into_iter()
        .map(|(share, median)| {
            let good = (seen.total.good as f64 * share) as u64;
            Tally { latency: latencies(good, median, 0.3), good, ..Tally::default() }
        })
        .collect();
    seen.generator.bottleneck = Some(Bottleneck::Connections { arrivals: 1234 });
    Load { plan: Plan { requests, pace, ..plan(256) }, runs: vec![seen], disagreements: Vec::new() }
}

fn limited() -> Load {
    let mut seen = run(210_400.0, 5.0, 290.0, 0.1);
    seen.generator.bottleneck = Some(Bottleneck::Thread { share: 0.993 });
    seen.generator.busiest = 0.993;
    let mut again = seen.clone();
    again.elapsed = Duration::from_millis(5050);
    Load { plan: Plan { threads: 1, ..plan(64) }, runs: vec![seen, again], disagreements: Vec::new() }
}

fn failed() -> Load {
    let mut seen = run(0.0, 1.2, 290.0, 0.1);
    seen.slices.clear();
    seen.total.failures = Failures { connect: 500, closed: 24, ..Failures::default() };
    // Failures cost the load more than answers do.
    seen.generator.bottleneck = Some(Bottleneck::Thread { share: 0.99 });
    seen.end = End::Hopeless("connection refused by 127.0.0.1:3000, 524 times in a row".to_owned());
    Load { plan: plan(64), runs: vec![seen], disagreements: Vec::new() }
}

/// A server that gets ten times what it can do: all that it answered was due before the measured time.
#[cfg(test)]
pub(crate) fn overloaded() -> Report {
    let mut seen = run(0.0, 10.0, 290.0, 0.1);
    seen.completed = 4800;
    seen.total.failures = Failures { unsent: 48_000, ..Failures::default() };
    let phases = vec![Phase { from: 4800.0, to: 4800.0, length: Duration::from_secs(10) }];
    let pace = Pace::Open { connections: 64, arrivals: Arrivals { spacing: Spacing::Constant, phases } };
    let load = Load { plan: Plan { pace, ..plan(64) }, runs: vec![seen], disagreements: Vec::new() };
    report(Findings::Loads(vec![load]))
}

fn sweep() -> Vec<Load> {
    let steps = [(1, 9_100.0, 98.0), (8, 39_000.0, 190.0), (64, 48_200.0, 1250.0), (256, 49_100.0, 5100.0)];
    let loads = steps.into_iter().map(|(connections, rate, median)| {
        let mut seen = run(rate, 5.0, median, 0.16);
        if connections == 256 {
            seen.generator.bottleneck = Some(Bottleneck::Core { share: 0.22 });
        }
        let again = run(rate * 1.01, 5.0, median * 0.99, 0.16);
        Load { plan: plan(connections), runs: vec![seen, again], disagreements: Vec::new() }
    });
    loads.collect()
}

fn saturation() -> Saturation {
    let tried = [
        (1_000.0, 210.0, 0.10),
        (2_000.0, 214.0, 0.10),
        (4_000.0, 222.0, 0.11),
        (8_000.0, 260.0, 0.13),
        (12_000.0, 330.0, 0.17),
        (14_000.0, 480.0, 0.22),
        (14_500.0, 700.0, 0.30),
        (15_000.0, 2_300.0, 0.40),
        (16_000.0, 41_000.0, 0.50),
    ];
    let points = tried.into_iter().map(|(offered, median, spread)| {
        let seen = run(if offered > 15_000.0 { 15_100.0 } else { offered }, 5.0, median, spread);
        let verdict = if offered <= 14_500.0 { Verdict::Within } else { Verdict::Slow };
        Point { offered, verdict, run: seen }
    });
    Saturation {
        limit: Limit { share: 0.99, latency: Duration::from_millis(5), failures: 0.001 },
        points: points.collect(),
        best: Ok(14_500.0),
        load_was_the_limit: false,
        caveats: vec!["The two runs at the highest rate differ by 1.2 % in their p99.".to_owned()],
    }
}

fn collection() -> CollectionRun {
    let requests = [
        ("Front page", "GET http://127.0.0.1:3000/", 412.0, 0),
        ("Blogs / all", "GET http://127.0.0.1:3000/blogs", 980.0, 0),
        ("Blogs / one", "GET http://127.0.0.1:3000/blogs/001", 530.0, 3),
        ("Version", "GET http://127.0.0.1:3000/version", 95.0, 0),
        ("Not found", "GET http://127.0.0.1:3000/not-found", 120.0, 0),
    ];
    let requests = requests.map(|(name, line, median, failed)| figures(name, line, median, failed));
    collection_of("Small site", requests.to_vec())
}

fn collection_of(name: &str, requests: Vec<RequestFigures>) -> CollectionRun {
    let mut latency = Latencies::new();
    requests.iter().for_each(|request| latency.merge(&request.latency));
    CollectionRun {
        name: name.to_owned(),
        iterations: 1000,
        elapsed: Duration::from_millis(2345),
        requests,
        latency,
        is_interrupted: false,
        caveats: vec!["The collection has 2 test scripts, which were not run.".to_owned()],
    }
}

fn figures(name: &str, line: &str, median: f64, failed: u64) -> RequestFigures {
    let complaints = match failed {
        0 => Vec::new(),
        failed => vec![("status 500 instead of 200".to_owned(), failed)],
    };
    RequestFigures {
        name: name.to_owned(),
        line: line.to_owned(),
        latency: latencies(1000 - failed, median, 0.2),
        passed: 1000 - failed,
        failed,
        complaints,
    }
}

/// Names and words that try to be more than that.
fn hostile() -> CollectionRun {
    let name = "<script>alert(1)</script>\u{1b}[31m`|*b* @you #1 \u{202e}";
    let line = "GET http://ann:s3cr3t@127.0.0.1:3000/?a=\"><img src=http://127.0.0.1:1/x onerror=alert(1)>";
    let mut request = figures(name, line, 100.0, 1);
    request.complaints = vec![("</td></table><script>alert(2)</script>".to_owned(), 1)];
    let long = figures(&"a-very-long-name-".repeat(20), "GET /", 3000.0, 0);
    let empty = RequestFigures { latency: Latencies::new(), passed: 0, ..figures("", "", 1.0, 1000) };
    let mut run = collection_of("]]></title><script>", vec![request, long, empty]);
    run.caveats.push("a caveat with <b>markup</b> and ` one backtick".to_owned());
    run
}
