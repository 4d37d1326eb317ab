//! The highest rate of a server whose capacity is known.
//!
//! It sleeps instead of working: what else the machine does may lower its capacity, and never raises it. So the upper
//! bound holds always, and the lower one is what it answered when it was asked for more.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use onehop_bench::saturation::{Limit, NoRate, Settings, Verdict, search};
use onehop_load::measure::Start;
use onehop_load::measure::{Server, wait_until_ready};
use onehop_load::plan::{Expect, Pace, Plan, Protocol, Request, Reuse, Spacing, Timeouts, Until};
use onehop_load::{Address, Observer, Unobserved, Url};

#[expect(unreachable_pub, reason = "it is a program's main elsewhere")]
#[path = "../examples/fixed_cost_server.rs"]
mod fixed_cost_server;

const CONNECTIONS: usize = 64;
/// Each request takes so long, one after the other: 50 requests per second at most.
const REQUEST_MICROS: u64 = 20_000;
const CAPACITY: f64 = 1e6 / REQUEST_MICROS as f64;

#[test]
#[ignore = "the server that the other tests start"]
fn serve() {
    fixed_cost_server::main();
}

/// One search at a time: they would be each other's noise.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sleeping_server() -> (Server, Plan) {
    let program = std::env::current_exe().unwrap().display().to_string();
    let variables = [("SLOW_MS", 3_600_000), ("SLOW_REQUEST_US", REQUEST_MICROS), ("SERIAL", 1)];
    let start = Start {
        words: [program.as_str(), "--exact", "serve", "--ignored", "--nocapture"].map(str::to_owned).to_vec(),
        environment: variables.map(|(name, value)| (name.to_owned(), value.to_string())).to_vec(),
        directory: None,
        port: None,
        behind: Vec::new(),
        ready_within: Duration::from_secs(20),
    };
    let mut server = Server::start(&start, &[]).unwrap();
    let url = Url::parse(&format!("http://127.0.0.1:{}/", server.port())).unwrap();
    let request = Request {
        tls: None,
        protocol: Protocol::Http1,
        name: "page".to_owned(),
        address: Address::Tcp(url.authority.parse().unwrap()),
        url,
        method: "GET".to_owned(),
        fields: Vec::new(),
        body: None,
        weight: 1,
        expect: Expect::Success,
    };
    wait_until_ready(&mut server, &request, Timeouts::default(), Duration::from_secs(20)).unwrap();
    let plan = Plan {
        requests: vec![request],
        pace: Pace::Closed { connections: CONNECTIONS, think: Duration::ZERO },
        until: Until::default(),
        warm_up: Duration::ZERO,
        threads: 1,
        cores: Vec::new(),
        reuse: Reuse::Kept,
        timeouts: Timeouts::default(),
        seed: 1,
    };
    (server, plan)
}

/// Steps of 2 s and a limit of 100 ms, so that a machine that stands still for some 50 ms decides no step. At 1.1 times the
/// capacity a request waits for 160 ms after four fifths of a step: beyond the limit.
fn settings() -> Settings {
    Settings {
        spacing: Spacing::Constant,
        time: Duration::from_secs(2),
        warm_up: Duration::from_millis(200),
        ..Settings::default()
    }
}

const LIMIT: Limit = Limit { share: 0.8, latency: Duration::from_millis(100), failures: 0.0 };

#[test]
fn a_handler_of_20_ms_that_takes_one_at_a_time_is_found_to_take_50_per_second() {
    let _alone = alone();
    let (_server, plan) = sleeping_server();
    let found = search(&plan, LIMIT, &settings(), &mut Unobserved).unwrap();
    let tried: Vec<_> = found.points.iter().map(|point| (point.offered, point.verdict)).collect();
    assert!(tried.is_sorted_by(|one, other| one.0 <= other.0), "{tried:?}");
    for point in &found.points {
        let is_late = point.run.total.latency.at(LIMIT.share) > LIMIT.latency;
        assert!(!(point.is_within() && is_late), "{tried:?}");
    }
    let best = found.best.unwrap_or_else(|why| panic!("{why}: {tried:?}"));
    assert!(best < CAPACITY * 1.1, "{best}: {tried:?}");
    let confirmed = tried.iter().filter(|point| **point == (best, Verdict::Within)).count();
    assert!(confirmed >= 2, "{best}: {tried:?}");
    let beyond = found.points.iter().filter(|point| !point.is_within());
    let answered = beyond.map(|point| point.run.rate()).reduce(f64::min);
    assert!(answered.is_some_and(|answered| best > answered * 0.9), "{best}, {answered:?}: {tried:?}");
}

#[test]
fn a_limit_that_cannot_be_met_is_no_rate_at_all() {
    let _alone = alone();
    let (_server, plan) = sleeping_server();
    let limit = Limit { latency: Duration::from_millis(10), ..LIMIT };
    let settings = Settings { time: Duration::from_millis(100), ..settings() };
    let found = search(&plan, limit, &settings, &mut Unobserved).unwrap();
    assert!(matches!(found.best, Err(NoRate::LowestBeyond(_))), "{:?}", found.best);
    assert!(found.points.iter().all(|point| point.verdict == Verdict::Slow));
}

struct BreaksOff(bool);

impl Observer for BreaksOff {
    fn stage(&mut self, words: &str) {
        self.0 |= words.contains("step 3");
    }

    fn is_interrupted(&self) -> bool {
        self.0
    }
}

#[test]
fn a_search_that_is_broken_off_has_the_points_until_then_and_no_best_rate() {
    let _alone = alone();
    let (_server, plan) = sleeping_server();
    let settings = Settings { time: Duration::from_millis(500), ..settings() };
    let found = search(&plan, LIMIT, &settings, &mut BreaksOff(false)).unwrap();
    assert_eq!((found.best, found.points.len()), (Err(NoRate::Interrupted), 3));
}
