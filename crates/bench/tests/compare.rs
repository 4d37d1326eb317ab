//! Comparisons of servers whose cost is known.
//!
//! The servers are this test's own binary, started anew with the one test that serves. What the machine does meanwhile
//! is noise, so bounds are wide where time is measured, and exact where marks and words are.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use onehop_bench::compare::{Check, CompareError, Mark, Metric, Row, Settings, Source, Target, compare};
use onehop_load::measure::Start;
use onehop_load::plan::{Expect, Pace, Protocol, Request, Timeouts};
use onehop_load::{Address, Observer, Unobserved, Url};
use onehop_statistics::Verdict;

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

fn server(name: &str, environment: &[(&str, u64)]) -> Target {
    let program = std::env::current_exe().unwrap().display().to_string();
    let words = [program.as_str(), "--exact", "serve", "--ignored", "--nocapture"].map(str::to_owned);
    command(name, &words, environment)
}

fn command(name: &str, words: &[String], environment: &[(&str, u64)]) -> Target {
    let start = Start {
        words: words.to_vec(),
        environment: environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.to_string()))
            .collect(),
        directory: None,
        port: None,
        behind: Vec::new(),
        ready_within: Duration::from_secs(5),
    };
    Target {
        name: name.to_owned(),
        source: Source::Command(start),
        requests: vec![request("http://127.0.0.1:0/")],
        check: Check::default(),
    }
}

fn request(url: &str) -> Request {
    let url = Url::parse(url).unwrap();
    let address = Address::Tcp(url.authority.parse().unwrap());
    let (method, fields) = ("GET".to_owned(), Vec::new());
    let name = "page".to_owned();
    Request {
        name,
        url,
        address,
        tls: None,
        protocol: Protocol::Http1,
        method,
        fields,
        body: None,
        weight: 1,
        expect: Expect::Success,
    }
}

fn settings(rounds: usize, time: Duration) -> Settings {
    Settings {
        rounds,
        time,
        warm_up: Duration::from_millis(50),
        pace: Pace::Closed { connections: 4, think: Duration::ZERO },
        // Others may have the cores for half of the time: what is three times as dear is found, what is equal is within a
        // tenth. How small a difference is found on a quiet machine is what `cargo xtask bench trust` shows.
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
fn equal_servers_show_no_difference_and_one_that_costs_more_is_found() {
    let _alone = alone();
    let targets = [
        server("control", &[("COST", COST)]),
        server("equal", &[("COST", COST)]),
        server("dearer", &[("COST", COST * 3)]),
    ];
    let found = compare(&targets, &settings(7, Duration::from_millis(150)), &mut Unobserved).unwrap();
    assert_eq!(found.samples.len(), 21, "{:?}", found.caveats);
    let cpu = |test: usize| {
        let of_test = |row: &&Row| row.test == test && row.metric == Metric::CpuPerRequest;
        found.rows.iter().find(of_test).unwrap()
    };
    assert_eq!(cpu(1).verdict, Verdict::NotShown, "{:?} {:?}", cpu(1), found.caveats);
    assert_eq!(cpu(2).verdict, Verdict::More, "{:?} {:?}", cpu(2), found.caveats);
    // Three times the work, and what the system does for each request besides.
    assert!((1.7..3.3).contains(&cpu(2).ratio.middle), "{:?}", cpu(2));
    assert!(cpu(1).control_value > 20.0, "microseconds: {:?}", cpu(1));
    let cold = row(&found.rows, Metric::ColdStart);
    assert!(cold.pairs == 7 && cold.control_value > 100.0, "{cold:?}");
    let memory = row(&found.rows, Metric::MemoryMedian);
    assert!(memory.control_value > 100_000.0, "{memory:?}");
}

#[test]
fn a_comparison_until_decided_ends_early_where_it_is_and_has_four_times_the_rounds_where_it_is_not() {
    let _alone = alone();
    let until_decided = Settings { until_decided: true, ..settings(4, Duration::from_millis(150)) };
    // Looks come after 4, 8 and 16 rounds. A difference of four times is decided before the last one, also where others take
    // the core in some of the first rounds.
    for (cost, verdict) in [(COST * 4, Verdict::More), (COST, Verdict::NotShown)] {
        let targets = [server("control", &[("COST", COST)]), server("other", &[("COST", cost)])];
        let found = compare(&targets, &until_decided, &mut Unobserved).unwrap();
        let cpu = row(&found.rows, Metric::CpuPerRequest);
        let rounds = found.settings.rounds;
        assert_eq!(cpu.verdict, verdict, "{rounds} rounds: {cpu:?} {:?}", found.caveats);
        let looks: &[usize] = if verdict == Verdict::More { &[4, 8] } else { &[16] };
        assert!(looks.contains(&rounds), "{rounds} rounds: {cpu:?} {:?}", found.caveats);
        assert_eq!(found.samples.len(), 2 * rounds, "{:?}", found.caveats);
        // Three looks share the doubt of 5 %.
        assert!((cpu.ratio.confidence - (1.0 - 0.05 / 3.0)).abs() < 1e-9, "{cpu:?}");
    }
}

#[test]
fn a_start_up_inside_a_run_is_marked_and_left_out() {
    let _alone = alone();
    let slow = [("COST", 1000), ("SLOW_MS", 1500), ("SLOW_REQUEST_US", 50_000)];
    let targets = [server("warm", &[("COST", 1000)]), server("cold", &slow)];
    let settings = Settings { warm_up: Duration::ZERO, ..settings(1, Duration::from_millis(3400)) };
    let found = compare(&targets, &settings, &mut Unobserved).unwrap();
    let cold = found.samples.iter().find(|sample| sample.target == 1).unwrap();
    let start_up = cold.marks.iter().find_map(|mark| match mark {
        Mark::StartUp { lasted } => Some(*lasted),
        _ => None,
    });
    let lasted = start_up.unwrap_or_else(|| panic!("{:?} {:?}", cold.marks, cold.run.slices));
    assert!((200..=1700).contains(&lasted.as_millis()), "{lasted:?}");
    assert_eq!(row(&found.rows, Metric::P99).pairs, 0);
    assert!(
        found.caveats.iter().any(|caveat| caveat.text.contains("`cold` was not warm yet")),
        "{:?}",
        found.caveats
    );
}

#[test]
fn wrong_answers_void_a_measurement() {
    let _alone = alone();
    let targets = [server("good", &[]), server("failing", &[("FAIL_AFTER", 20)])];
    let settings = Settings { warm_up: Duration::ZERO, ..settings(1, Duration::from_millis(200)) };
    let found = compare(&targets, &settings, &mut Unobserved).unwrap();
    let failing = found.samples.iter().find(|sample| sample.target == 1).unwrap();
    let is_void = |mark: &Mark| matches!(mark, Mark::Void(why) if why.contains("500"));
    assert!(failing.marks.iter().any(is_void), "{:?}", failing.marks);
    assert_eq!(row(&found.rows, Metric::CpuPerRequest).verdict, Verdict::Unknown);
    assert!(
        found.caveats.iter().any(|caveat| caveat.text.contains("the statuses differ")),
        "{:?}",
        found.caveats
    );
}

#[test]
fn the_first_answer_after_idleness_is_its_own_figure() {
    let _alone = alone();
    let targets = [server("one", &[]), server("other", &[])];
    let idle = Some(Duration::from_millis(100));
    let settings = Settings { idle, ..settings(1, Duration::from_millis(100)) };
    let found = compare(&targets, &settings, &mut Unobserved).unwrap();
    assert!(found.samples.iter().all(|sample| sample.after_idle.is_some()), "{:?}", found.samples);
    assert!(row(&found.rows, Metric::AfterIdle).control_value > 1.0);
}

#[test]
fn idle_connections_are_held_and_their_memory_is_its_own_figure() {
    let _alone = alone();
    let targets = [server("one", &[]), server("other", &[])];
    let settings = Settings { idle_connections: 50, ..settings(1, Duration::from_millis(100)) };
    let found = compare(&targets, &settings, &mut Unobserved).unwrap();
    let memory = found.samples.iter().map(|sample| sample.idle_memory.unwrap());
    assert!(memory.into_iter().all(|memory| memory.connections == 50), "{:?}", found.caveats);
    assert!(row(&found.rows, Metric::MemoryAtRest).control_value > 100_000.0);
    // The server has a thread, with a stack, for each connection.
    assert!(row(&found.rows, Metric::MemoryPerIdleConnection).control_value > 1000.0, "{:?}", found.rows);
}

fn error(targets: &[Target], settings: &Settings) -> String {
    compare(targets, settings, &mut Unobserved).unwrap_err().to_string()
}

#[test]
fn an_arm_that_cannot_be_measured_is_a_clear_error() {
    let _alone = alone();
    let settings = settings(1, Duration::from_millis(100));
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let good = server("good", &[]);
    let with = |target: Target| error(&[good.clone(), target], &settings);

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
    fails.requests.push(Request { name: "second".to_owned(), ..request("http://127.0.0.1:0/other") });
    let fails = with(fails);
    assert!(fails.contains("was answered with status 500"), "{fails}");

    assert!(error(std::slice::from_ref(&good), &settings).contains("at least one arm beside it"));
    let none = Settings { rounds: 0, ..settings.clone() };
    assert!(error(&[good.clone(), good.clone()], &none).contains("at least one round"));
    let nothing = Target { requests: Vec::new(), ..good.clone() };
    let requests_nothing = compare(&[good, nothing], &settings, &mut Unobserved).unwrap_err();
    assert!(matches!(requests_nothing, CompareError::NoRequests { .. }), "{requests_nothing}");
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
    let targets = [server("one", &[]), server("other", &[("SILENT_MS", 60_000)])];
    let settings = settings(3, Duration::from_millis(100));
    let check = |targets: &[Target], at: &'static str, samples: usize| {
        let begun = Instant::now();
        let mut observer = BreaksOff { at, is_over: Cell::new(false) };
        let found = compare(targets, &settings, &mut observer).unwrap();
        assert_eq!(found.samples.len(), samples, "{at}");
        assert!(found.caveats.iter().any(|caveat| caveat.text.contains("broken off")), "{:?}", found.caveats);
        assert!(begun.elapsed() < Duration::from_secs(20), "{at}");
    };
    check(&targets, "other, starting", usize::from(is_first(&targets, &settings)));
    check(&[targets[0].clone(), targets[0].clone()], "round 2 of 3", 2);
}

#[test]
fn a_first_answer_that_takes_longer_than_a_second_is_waited_for() {
    let _alone = alone();
    let slow = [("SLOW_MS", 600_000), ("SLOW_REQUEST_US", 1_200_000)];
    let targets = [server("quick", &[]), server("slow", &slow)];
    let settings = Settings { warm_up: Duration::ZERO, ..settings(1, Duration::from_millis(100)) };
    let found = compare(&targets, &settings, &mut Unobserved).unwrap();
    let slow = found.samples.iter().find(|sample| sample.target == 1).unwrap();
    assert!(slow.cold_start.is_some_and(|took| took >= Duration::from_millis(1200)), "{slow:?}");
}

/// Breaks off some time after the first word.
struct BreaksOffLater {
    first: Option<Instant>,
}

impl Observer for BreaksOffLater {
    fn stage(&mut self, _: &str) {
        self.first.get_or_insert_with(Instant::now);
    }

    fn is_interrupted(&self) -> bool {
        self.first.is_some_and(|first| first.elapsed() > Duration::from_millis(300))
    }
}

#[test]
fn whoever_breaks_off_does_not_wait_for_a_server_that_neither_starts_nor_ends() {
    let _alone = alone();
    let words = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"].map(str::to_owned);
    let mut stubborn = command("stubborn", &words, &[]);
    if let Source::Command(start) = &mut stubborn.source {
        start.ready_within = Duration::from_secs(60);
    }
    let begun = Instant::now();
    let targets = [stubborn.clone(), stubborn];
    let mut observer = BreaksOffLater { first: None };
    let found = compare(&targets, &settings(1, Duration::from_millis(100)), &mut observer).unwrap();
    assert!(
        found.samples.is_empty() && found.caveats.iter().any(|caveat| caveat.text.contains("broken off"))
    );
    // A server that is asked to end has five seconds else.
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

/// Whether the first target is the first in the first round, by the seed.
fn is_first(targets: &[Target], settings: &Settings) -> bool {
    let mut places: Vec<usize> = (0..targets.len()).collect();
    fastrand::Rng::with_seed(settings.seed).shuffle(&mut places);
    places[0] == 0
}

#[test]
fn arms_that_run_already_are_found_by_where_they_listen() {
    let _alone = alone();
    let start = |target: &Target| match &target.source {
        Source::Command(start) => onehop_load::measure::Server::start(start, &[]).unwrap(),
        Source::Running | Source::Staged(_) => unreachable!(),
    };
    let target = server("one", &[]);
    let mut servers = [start(&target), start(&target)];
    let running = |server: &onehop_load::measure::Server| {
        let requests = vec![request(&format!("http://127.0.0.1:{}/", server.port()))];
        Target {
            name: format!("on {}", server.port()),
            source: Source::Running,
            requests,
            check: Check::default(),
        }
    };
    let targets = servers.each_ref().map(running);
    for (server, target) in servers.iter_mut().zip(&targets) {
        let within = Duration::from_secs(5);
        onehop_load::measure::wait_until_ready(server, &target.requests[0], Timeouts::default(), within)
            .unwrap();
    }
    let found = compare(&targets, &settings(1, Duration::from_millis(200)), &mut Unobserved).unwrap();
    assert!(found.samples.iter().all(|sample| sample.usage.is_some()), "{:?}", found.caveats);
    assert!(found.samples.iter().all(|sample| sample.cold_start.is_none()));
    assert!(found.caveats.iter().any(|caveat| caveat.text.contains("ran already")), "{:?}", found.caveats);
}
