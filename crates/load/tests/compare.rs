//! Comparisons of servers whose cost is known.
//!
//! The servers are this test's own binary, started anew with the one test that serves. What the machine does meanwhile
//! is noise, so bounds are wide where time is measured, and exact where marks and words are. That equal servers show no
//! difference, and small differences are found, shows on a quiet machine only: `cargo xtask bench trust`.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use onehop_load::compare::{Arm, CompareError, Mark, Metric, Row, Sample, Settings, Source, Start, compare};
use onehop_load::plan::{Ask, Expect, Pace, Patience};
use onehop_load::statistics::{self, Verdict};
use onehop_load::{Address, Observer, Target, Unobserved};

#[expect(unreachable_pub, reason = "it is a program's main elsewhere")]
#[path = "../examples/fixed_cost_server.rs"]
mod fixed_cost_server;

/// Some 100 µs on a core: more than all that the system does for a request.
const COST: u64 = 60_000;

#[test]
#[ignore = "the server that the other tests start"]
fn serve() {
    fixed_cost_server::main();
}

fn server(name: &str, environment: &[(&str, u64)]) -> Arm {
    let program = std::env::current_exe().unwrap().display().to_string();
    let words = [program.as_str(), "--exact", "serve", "--ignored", "--nocapture"].map(str::to_owned);
    command(name, &words, environment)
}

fn command(name: &str, words: &[String], environment: &[(&str, u64)]) -> Arm {
    let start = Start {
        words: words.to_vec(),
        environment: environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.to_string()))
            .collect(),
        directory: None,
        port: None,
        behind: Vec::new(),
        ready_within: Duration::from_secs(20),
    };
    Arm { name: name.to_owned(), source: Source::Command(start), asks: vec![ask("http://127.0.0.1:0/")] }
}

fn ask(url: &str) -> Ask {
    let target = Target::parse(url).unwrap();
    let address = Address::Tcp(target.authority.parse().unwrap());
    let (method, fields) = ("GET".to_owned(), Vec::new());
    let name = "page".to_owned();
    Ask { name, target, address, method, fields, body: None, weight: 1, expect: Expect::Success }
}

fn settings(rounds: usize, time: Duration) -> Settings {
    Settings {
        rounds,
        time,
        warm_up: Duration::from_millis(50),
        pace: Pace::Closed { connections: 4, think: Duration::ZERO },
        confidence: 0.95,
        least_difference: 0.1,
        ..Settings::default()
    }
}

/// One measurement at a time: they would be each other's noise.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn row(rows: &[Row], metric: Metric) -> &Row {
    rows.iter().find(|row| row.metric == metric).unwrap_or_else(|| panic!("no {metric:?}: {rows:?}"))
}

#[test]
fn one_that_costs_four_times_as_much_is_found_and_its_figures_are_its_samples() {
    let _alone = alone();
    let arms = [
        server("control", &[("COST", COST)]),
        server("equal", &[("COST", COST)]),
        server("dearer", &[("COST", COST * 4)]),
    ];
    let found = compare(&arms, &settings(7, Duration::from_millis(150)), &mut Unobserved).unwrap();
    assert_eq!(found.samples.len(), 21, "{:?}", found.caveats);
    let cpu = |test: usize| {
        let of_test = |row: &&Row| row.test == test && row.metric == Metric::CpuPerRequest;
        found.rows.iter().find(of_test).unwrap()
    };
    assert_eq!(cpu(2).verdict, Verdict::More, "{:?} {:?}", cpu(2), found.caveats);
    // Less than four times, since what the system does for a request is the same; half and double are for neighbours.
    assert!((1.8..7.0).contains(&cpu(2).ratio.middle), "{:?}", cpu(2));
    assert!(cpu(1).ratio.middle < cpu(2).ratio.middle, "{:?} {:?}", cpu(1), cpu(2));
    for row in found.rows.iter().filter(|row| row.pairs >= statistics::PAIRS_MIN) {
        assert_eq!(row.verdict, statistics::verdict(&row.ratio, 0.1), "{row:?}");
    }
    let of_control = |sample: &Sample| {
        (sample.arm == 0)
            .then(|| sample.usage.unwrap().cpu.as_secs_f64() * 1e6 / sample.run.total.good as f64)
    };
    let micros: Vec<f64> = found.samples.iter().filter_map(of_control).collect();
    if cpu(2).pairs == micros.len() {
        let told = cpu(2).control_value;
        assert!((told / statistics::median(&micros) - 1.0).abs() < 0.001, "{told} {micros:?}");
    }
    assert!(cpu(1).control_value > 20.0, "microseconds: {:?}", cpu(1));
    let cold = row(&found.rows, Metric::ColdStart);
    assert!(cold.pairs == 7 && cold.control_value > 100.0, "{cold:?}");
    let memory = row(&found.rows, Metric::MemoryMedian);
    assert!(memory.control_value > 100_000.0, "{memory:?}");
}

#[test]
fn a_start_up_inside_a_run_is_marked_and_left_out() {
    let _alone = alone();
    // Forty requests, four at a time, two of them before the run: 450 ms at least, whenever they come.
    let slow = [("COST", 1000), ("SLOW_REQUESTS", 40), ("SLOW_REQUEST_US", 50_000)];
    let arms = [server("warm", &[("COST", 1000)]), server("cold", &slow)];
    let settings = Settings { warm_up: Duration::ZERO, ..settings(1, Duration::from_millis(1600)) };
    let found = compare(&arms, &settings, &mut Unobserved).unwrap();
    let cold = found.samples.iter().find(|sample| sample.arm == 1).unwrap();
    let start_up = cold.marks.iter().find_map(|mark| match mark {
        Mark::StartUp { lasted } => Some(*lasted),
        _ => None,
    });
    let lasted = start_up.unwrap_or_else(|| panic!("{:?} {:?}", cold.marks, cold.run.slices));
    // Whole slices only, and no more than the first half.
    assert!((200..=800).contains(&lasted.as_millis()), "{lasted:?}");
    assert_eq!(row(&found.rows, Metric::P99).pairs, 0);
    assert!(
        found.caveats.iter().any(|caveat| caveat.contains("`cold` was not warm yet")),
        "{:?}",
        found.caveats
    );
}

#[test]
fn wrong_answers_void_a_measurement() {
    let _alone = alone();
    let arms = [server("good", &[]), server("failing", &[("FAIL_AFTER", 20)])];
    let settings = Settings { warm_up: Duration::ZERO, ..settings(1, Duration::from_millis(500)) };
    let found = compare(&arms, &settings, &mut Unobserved).unwrap();
    let failing = found.samples.iter().find(|sample| sample.arm == 1).unwrap();
    let is_void = |mark: &Mark| matches!(mark, Mark::Void(why) if why.contains("500"));
    assert!(failing.marks.iter().any(is_void), "{:?}", failing.marks);
    assert_eq!(row(&found.rows, Metric::CpuPerRequest).verdict, Verdict::Unknown);
    assert!(found.caveats.iter().any(|caveat| caveat.contains("the statuses differ")), "{:?}", found.caveats);
}

#[test]
fn the_first_answer_after_idleness_is_its_own_figure() {
    let _alone = alone();
    let arms = [server("one", &[]), server("other", &[])];
    let idle = Some(Duration::from_millis(100));
    let settings = Settings { idle, ..settings(1, Duration::from_millis(100)) };
    let found = compare(&arms, &settings, &mut Unobserved).unwrap();
    assert!(found.samples.iter().all(|sample| sample.after_idle.is_some()), "{:?}", found.samples);
    assert!(row(&found.rows, Metric::AfterIdle).control_value > 1.0);
}

fn error(arms: &[Arm], settings: &Settings) -> String {
    compare(arms, settings, &mut Unobserved).unwrap_err().to_string()
}

#[test]
fn an_arm_that_cannot_be_measured_is_a_clear_error() {
    let _alone = alone();
    let settings = settings(1, Duration::from_millis(100));
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let good = server("good", &[]);
    let with = |arm: Arm| error(&[good.clone(), arm], &settings);

    let missing = with(command("missing", &words(&["/no/such/program"]), &[]));
    assert!(missing.contains("`missing`") && missing.contains("no such program"), "{missing}");
    let ends = with(command("ends", &words(&["sh", "-c", "echo went wrong; exit 3"]), &[]));
    assert!(ends.contains("ended before it answered") && ends.contains("went wrong"), "{ends}");
    let mut never = command("never", &words(&["sleep", "60"]), &[]);
    if let Source::Command(start) = &mut never.source {
        start.ready_within = Duration::from_millis(1200);
    }
    let never = with(never);
    assert!(never.contains("no expected answer within 1.2s"), "{never}");
    let mut fails = server("fails", &[("FAIL_AFTER", 1)]);
    fails.asks.push(Ask { name: "second".to_owned(), ..ask("http://127.0.0.1:0/other") });
    let fails = with(fails);
    assert!(fails.contains("was answered with status 500"), "{fails}");

    assert!(error(std::slice::from_ref(&good), &settings).contains("at least one arm beside it"));
    let none = Settings { rounds: 0, ..settings.clone() };
    assert!(error(&[good.clone(), good.clone()], &none).contains("at least one round"));
    let nothing = Arm { asks: Vec::new(), ..good.clone() };
    let asks_nothing = compare(&[good, nothing], &settings, &mut Unobserved).unwrap_err();
    assert!(matches!(asks_nothing, CompareError::NoAsks { .. }), "{asks_nothing}");
}

/// Breaks off at the first word that contains this.
struct BreaksOff {
    at: &'static str,
    is_over: Cell<bool>,
}

impl Observer for BreaksOff {
    fn stage(&mut self, words: &str) {
        self.is_over.set(self.is_over.get() || words.contains(self.at));
    }

    fn is_interrupted(&self) -> bool {
        self.is_over.get()
    }
}

#[test]
fn whoever_breaks_off_hears_what_was_measured_until_then() {
    let _alone = alone();
    let arms = [server("one", &[]), server("other", &[("SILENT_MS", 60_000)])];
    let settings = settings(3, Duration::from_millis(100));
    let check = |arms: &[Arm], at: &'static str, samples: usize| {
        let begun = Instant::now();
        let mut observer = BreaksOff { at, is_over: Cell::new(false) };
        let found = compare(arms, &settings, &mut observer).unwrap();
        assert_eq!(found.samples.len(), samples, "{at}");
        assert!(found.caveats.iter().any(|caveat| caveat.contains("broken off")), "{:?}", found.caveats);
        assert!(begun.elapsed() < Duration::from_secs(40), "{at}");
    };
    check(&arms, "other, starting", usize::from(is_first(&arms, &settings)));
    check(&[arms[0].clone(), arms[0].clone()], "round 2 of 3", 2);
}

/// Whether the first arm is the first in the first round, by the seed.
fn is_first(arms: &[Arm], settings: &Settings) -> bool {
    let mut places: Vec<usize> = (0..arms.len()).collect();
    fastrand::Rng::with_seed(settings.seed).shuffle(&mut places);
    places[0] == 0
}

#[test]
fn arms_that_run_already_are_found_by_where_they_listen() {
    let _alone = alone();
    let start = |arm: &Arm| match &arm.source {
        Source::Command(start) => onehop_load::measure::Server::start(start, &[]).unwrap(),
        Source::Running => unreachable!(),
    };
    let arm = server("one", &[]);
    let mut servers = [start(&arm), start(&arm)];
    let running = |server: &onehop_load::measure::Server| {
        let asks = vec![ask(&format!("http://127.0.0.1:{}/", server.port()))];
        Arm { name: format!("on {}", server.port()), source: Source::Running, asks }
    };
    let arms = servers.each_ref().map(running);
    for (server, arm) in servers.iter_mut().zip(&arms) {
        let within = Duration::from_secs(20);
        onehop_load::measure::wait_until_ready(server, &arm.asks[0], Patience::default(), within).unwrap();
    }
    let found = compare(&arms, &settings(1, Duration::from_millis(200)), &mut Unobserved).unwrap();
    assert!(found.samples.iter().all(|sample| sample.usage.is_some()), "{:?}", found.caveats);
    assert!(found.samples.iter().all(|sample| sample.cold_start.is_none()));
    assert!(found.caveats.iter().any(|caveat| caveat.contains("ran already")), "{:?}", found.caveats);
}
