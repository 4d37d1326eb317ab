//! Made-up comparisons and side-by-side runs.
//!
//! Owns their samples and rows. The rows are written down, not worked out: how they are is none of a report's matter.

use std::path::PathBuf;
use std::time::Duration;

use onehop_bench::compare::{Comparison, Mark, Metric, Row, Sample, Settings};
use onehop_bench::scenario::{Bound, BoundResult, CaseRun, Figure, Held, ScenarioRun};
use onehop_load::caveat::CaveatCode;
use onehop_load::measure::{IdleMemory, Usage};
use onehop_load::outcome::Bottleneck;
use onehop_load::plan::{Pace, Reuse, Timeouts};
use onehop_statistics::{Interval, Verdict};
use onehop_try::{Compared, Found, Origin, Route, SideBySide, SkipReason, Skipped};

use super::run;

/// Rounds of a made-up comparison.
const ROUNDS: usize = 10;

fn settings() -> Settings {
    Settings {
        rounds: ROUNDS,
        until_decided: false,
        warm_up: Duration::from_millis(500),
        warm_up_pace: None,
        time: Duration::from_secs(2),
        pace: Pace::Closed { connections: 16, think: Duration::ZERO },
        reuse: Reuse::Kept,
        timeouts: Timeouts::default(),
        threads: 2,
        server_cores: vec![0, 1],
        load_cores: vec![2, 3],
        idle: None,
        idle_connections: 0,
        recovery: None,
        is_overload: false,
        confidence: 0.99,
        least_difference: 0.01,
        seed: 1,
    }
}

fn row(metric: Metric, values: (f64, f64), ratio: (f64, f64, f64), verdict: Verdict) -> Row {
    let (middle, low, high) = ratio;
    Row {
        metric,
        test: 1,
        control_value: values.0,
        test_value: values.1,
        ratio: Interval { middle, low, high, confidence: 0.99 },
        verdict,
        pairs: 9,
    }
}

fn rows() -> Vec<Row> {
    vec![
        row(Metric::CpuPerRequest, (41.2, 25.6), (0.62, 0.58, 0.66), Verdict::Less),
        row(Metric::Rate, (21_400.0, 33_900.0), (1.58, 1.49, 1.68), Verdict::More),
        row(Metric::P50, (690.0, 421.0), (0.61, 0.57, 0.67), Verdict::Less),
        row(Metric::P99, (1840.0, 1790.0), (0.97, 0.88, 1.07), Verdict::NotShown),
        row(Metric::MemoryMedian, (71e6, 88e6), (1.24, 1.22, 1.26), Verdict::More),
        row(Metric::MemoryP99, (75e6, 91e6), (1.21, 1.18, 1.26), Verdict::More),
        row(Metric::Switches, (0.82, 0.11), (0.13, 0.11, 0.16), Verdict::Less),
        row(Metric::IoBytes, (2900.0, 2890.0), (0.997, 0.995, 0.999), Verdict::NotShown),
        row(Metric::ColdStart, (310_000.0, 352_000.0), (1.13, 0.98, 1.31), Verdict::NotShown),
        row(Metric::AfterIdle, (0.0, 0.0), (f64::NAN, f64::NAN, f64::NAN), Verdict::Unknown),
    ]
}

fn samples(targets: usize) -> Vec<Sample> {
    let mut samples = Vec::new();
    for round in 0..ROUNDS {
        for target in 0..targets {
            let (rate, median, spread) =
                if target == 0 { (21_400.0, 690.0, 0.21) } else { (33_900.0, 421.0, 0.31) };
            let marks = match (round, target) {
                (3, 0) => {
                    vec![Mark::Pause { at: Duration::from_millis(812), length: Duration::from_millis(240) }]
                }
                (7, 1) => vec![Mark::StartUp { lasted: Duration::from_millis(630) }, Mark::Restarted],
                (8, 1) => vec![Mark::Void("12 of 67,800 answers had status 502".to_owned())],
                _ => Vec::new(),
            };
            samples.push(Sample {
                target,
                round,
                run: run(rate, 2.0, median, spread),
                usage: Some(Usage {
                    cpu: Duration::from_millis(1760),
                    wall: Duration::from_secs(2),
                    memory_median: 71_000_000,
                    memory_p99: 75_000_000,
                    switches_voluntary: 35_000,
                    switches_involuntary: 120,
                    io_bytes: 124_000_000,
                    processes: 2,
                    threads: 14,
                }),
                cold_start: Some(Duration::from_millis(310)),
                idle_memory: None,
                after_idle: None,
                recovery: None,
                marks,
            });
        }
    }
    samples
}

/// Two targets.
pub(super) fn comparison() -> Comparison {
    Comparison {
        targets: vec!["nginx + node".to_owned(), "onehop".to_owned()],
        samples: samples(2),
        rows: rows(),
        settings: settings(),
        caveats: vec![
            CaveatCode::RanAlready
                .says("Processes of `nginx + node` were found by who listens on port 8080."),
        ],
    }
}

/// Three targets, one of which is thirty times as dear.
pub(super) fn three_targets() -> Comparison {
    let mut found = comparison();
    found.targets.push("http://127.0.0.1:8081/".to_owned());
    found.samples = samples(3);
    found.rows.push(Row {
        test: 2,
        ..row(Metric::CpuPerRequest, (41.2, 1280.0), (31.0, 28.1, 35.4), Verdict::More)
    });
    found
        .rows
        .push(Row { test: 2, ..row(Metric::P99, (1840.0, 80.0), (0.043, 0.041, 0.047), Verdict::Less) });
    found
}

/// Two targets with many idle connections.
fn beside_idle_connections() -> Comparison {
    let mut found = comparison();
    found.settings.idle_connections = 10_000;
    for sample in &mut found.samples {
        let (at_rest_bytes, held_bytes) =
            if sample.target == 0 { (18_700_000, 24_300_000) } else { (6_400_000, 27_200_000) };
        sample.idle_memory = Some(IdleMemory { connections: 10_000, at_rest_bytes, held_bytes });
    }
    found.rows.push(row(Metric::MemoryAtRest, (18.7e6, 6.4e6), (0.34, 0.33, 0.35), Verdict::Less));
    found.rows.push(row(Metric::MemoryPerIdleConnection, (560.0, 2080.0), (3.71, 3.66, 3.77), Verdict::More));
    found
}

/// Two cases of a scenario, with a bound of each kind of verdict.
pub(super) fn scenario() -> ScenarioRun {
    let bound = |against: &str, held: Held, low: f64, high: f64| BoundResult {
        bound: Bound {
            case: "page".to_owned(),
            against: against.to_owned(),
            figure: Figure::default(),
            at_most: Some(1.05),
            at_least: None,
        },
        ratio: Some(Interval { low, middle: (low + high) / 2.0, high, confidence: 0.99 }),
        held,
    };
    ScenarioRun {
        name: "proxy".to_owned(),
        about: "What it costs to stand before a server".to_owned(),
        cases: vec![
            CaseRun {
                name: "page".to_owned(),
                requests: vec!["GET /".to_owned()],
                comparison: three_targets(),
            },
            CaseRun {
                name: "asset".to_owned(),
                requests: vec!["GET /a".to_owned(), "GET /b".to_owned()],
                comparison: beside_idle_connections(),
            },
        ],
        bounds: vec![
            bound("onehop", Held::No, 2.1, 2.5),
            bound("http://127.0.0.1:8081/", Held::Yes, 0.03, 0.04),
            bound("onehop", Held::NotDecided, 1.01, 1.1),
        ],
        failures: Vec::new(),
        is_broken_off: false,
    }
}

/// Two targets, in each sample of which the load was at its own limit.
pub(super) fn limited() -> Comparison {
    let mut found = comparison();
    for sample in &mut found.samples {
        sample.marks = vec![Mark::LoadWasTheBottleneck];
        sample.run.generator.bottleneck = Some(Bottleneck::Thread { share: 0.99 });
    }
    let nothing = Interval { middle: f64::NAN, low: f64::NAN, high: f64::NAN, confidence: 0.99 };
    for row in &mut found.rows {
        let is_latency = matches!(row.metric, Metric::P50 | Metric::P99);
        if is_latency {
            (row.control_value, row.test_value) = (f64::NAN, f64::NAN);
        }
        if is_latency || row.metric == Metric::Rate {
            (row.ratio, row.verdict, row.pairs) = (nothing, Verdict::Unknown, 0);
        }
    }
    found
}

/// An application whose answers are the same.
pub(super) fn side_by_side() -> SideBySide {
    let compared = ["GET /", "GET /blogs", "GET /blogs/001", "GET /not-found"];
    SideBySide {
        found: Found {
            path: PathBuf::from("shop/package.json"),
            description: "an Express application (express 5.1.0 in package.json, start: node server.js)".to_owned(),
        },
        today: vec![
            "nginx 1.22.1 in front, 2 workers".to_owned(),
            "node v20.19.2 server.js, one process".to_owned(),
        ],
        onehop: vec!["onehop 0.1.0 with one worker (node v20.19.2)".to_owned()],
        onehopfile: "localhost {\n\thandle /* {\n\t\theader_up Authorization \"Basic s3cr3t\"\n\t\tapp server.js\n\t}\n}\n"
            .to_owned(),
        routes: [("/", Origin::StartPage), ("/blogs", Origin::Link("/".to_owned()))]
            .map(|(path, origin)| Route { path: path.to_owned(), origin })
            .to_vec(),
        skipped: [
            ("/api/items", SkipReason::Guess),
            ("/users/:id", SkipReason::Parameter),
            ("/login?token=s3cr3t", SkipReason::Guess),
        ]
        .map(|(path, reason)| Skipped { path: path.to_owned(), reason })
        .to_vec(),
        compared: compared
            .into_iter()
            .map(|request| Compared { request: request.to_owned(), differences: Vec::new() })
            .collect(),
        measured: vec!["/blogs".to_owned()],
        comparison: Some(comparison()),
        unmeasured: None,
        at_same_load: None,
        own_figures: vec![
            "nginx counted 428,000 requests where the load counted 428,013 with its last ones: no contradiction."
                .to_owned(),
        ],
        caveats: vec!["The application keeps its sessions in memory: both ran with one process.".to_owned()],
    }
}

/// One whose answers differ.
pub(super) fn different() -> SideBySide {
    let mut found = side_by_side();
    found.compared.push(Compared {
        request: "GET /time?token=s3cr3t".to_owned(),
        differences: vec![
            "body: 1,204 bytes instead of 1,311, first at byte 97".to_owned(),
            "field ETag: `\"a1\"` instead of none".to_owned(),
        ],
    });
    found.measured.clear();
    found.comparison = None;
    found.unmeasured =
        Some("the responses to /time differ (body); --path names a path with equal ones".to_owned());
    found
}
