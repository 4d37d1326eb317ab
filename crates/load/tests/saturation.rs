//! The highest rate of a server whose capacity is known.
//!
//! It sleeps instead of working: what else the machine does may lower its capacity, and never raises it. So the upper
//! bound holds always; that the rate is near the capacity is asked only of points that kept the limit.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use onehop_load::measure::Start;
use onehop_load::measure::{Server, wait_until_ready};
use onehop_load::plan::{Expect, Pace, Plan, Request, Reuse, Timeouts, Until};
use onehop_load::saturation::{Limit, Settings, search};
use onehop_load::{Address, Observer, Unobserved, Url};

#[expect(unreachable_pub, reason = "it is a program's main elsewhere")]
#[path = "../examples/fixed_cost_server.rs"]
mod fixed_cost_server;

const CONNECTIONS: usize = 4;
/// Each request takes so long, and each connection has one at a time: 2000 requests per second at most.
const REQUEST_MICROS: u64 = 2000;
const CAPACITY: f64 = CONNECTIONS as f64 * 1e6 / REQUEST_MICROS as f64;

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
    let variables = [("SLOW_MS", 3_600_000), ("SLOW_REQUEST_US", REQUEST_MICROS)];
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

fn settings() -> Settings {
    Settings {
        time: Duration::from_millis(300),
        warm_up: Duration::from_millis(50),
        start: Some(250.0),
        precision: 0.2,
        points_max: 12,
        ..Settings::default()
    }
}

const LIMIT: Limit = Limit { share: 0.9, latency: Duration::from_millis(30), failures: 0.0 };

#[test]
fn the_highest_rate_is_below_the_capacity_and_as_near_as_the_points_above_it() {
    let _alone = alone();
    let (_server, plan) = sleeping_server();
    let found = search(&plan, LIMIT, &settings(), &mut Unobserved).unwrap();
    let rates: Vec<(f64, bool)> = found.points.iter().map(|point| (point.offered, point.is_within)).collect();
    assert!(rates.is_sorted_by(|one, other| one.0 <= other.0), "{rates:?}");
    assert!(rates.len() <= 12, "{rates:?}");
    for point in &found.points {
        // A short run may be within the limit a little above the capacity: the queue is not long yet.
        assert!(!point.is_within || point.offered < CAPACITY * 1.2, "{rates:?}");
        // Far below the capacity only the machine keeps the server, or the load, from keeping up; the run shows it.
        let run = &point.run;
        let is_late = run.total.latency.at(LIMIT.share) > LIMIT.latency;
        // Down at a request in a second a short run has none at all.
        let is_empty = run.total.good == 0;
        let is_short =
            is_late || is_empty || run.generator.bottleneck.is_some() || run.total.failures.sum() > 0;
        assert!(
            point.is_within || point.offered > CAPACITY * 0.5 || is_short,
            "{rates:?} {:?}",
            run.generator.bottleneck
        );
        assert!(!(point.is_within && is_late), "{rates:?} {:?}", run.generator.bottleneck);
    }
    let Some(best) = found.best else {
        assert!(found.caveats.iter().any(|caveat| caveat.contains("no rate that was tried")), "{rates:?}");
        return;
    };
    assert_eq!(rates.iter().filter(|point| **point == (best, true)).count(), 2, "{rates:?}");
    let beyond = rates.iter().find(|(rate, is_within)| *rate > best && !is_within);
    let is_near = beyond.is_some_and(|(rate, _)| *rate <= best * (1.0 + settings().precision) * 1.001);
    let is_reported = found.caveats.iter().any(|caveat| caveat.contains("before it was as precise"));
    assert!(is_near || is_reported, "{rates:?} {:?}", found.caveats);
}

#[test]
fn a_limit_that_cannot_be_met_is_no_rate_at_all() {
    let _alone = alone();
    let (_server, plan) = sleeping_server();
    let limit = Limit { latency: Duration::from_micros(500), ..LIMIT };
    let found = search(&plan, limit, &settings(), &mut Unobserved).unwrap();
    assert_eq!(found.best, None);
    assert!(
        found.caveats.iter().any(|caveat| caveat.contains("no rate that was tried")),
        "{:?}",
        found.caveats
    );
}

struct BreaksOff(bool);

impl Observer for BreaksOff {
    fn stage(&mut self, words: &str) {
        self.0 |= words.contains("point 3");
    }

    fn is_interrupted(&self) -> bool {
        self.0
    }
}

#[test]
fn whoever_breaks_off_has_the_points_until_then_and_no_best_rate() {
    let _alone = alone();
    let (_server, plan) = sleeping_server();
    let found = search(&plan, LIMIT, &settings(), &mut BreaksOff(false)).unwrap();
    assert_eq!((found.best, found.points.len()), (None, 3));
    assert!(found.caveats.iter().any(|caveat| caveat.contains("broken off")), "{:?}", found.caveats);
}
