//! The load: requests at a rate that does not ask whether anybody answers, and a static file beside them.
//!
//! Owns what people bear: after two seconds nobody waits any more. An answer that comes later is no answer, a connection
//! that is waited for counts from the moment at which its request was meant to begin.

use std::net::SocketAddr;
use std::thread::{ScopedJoinHandle, scope};
use std::time::Duration;

use onehop_load::engine::{self, LoadError};
use onehop_load::outcome::Run;
use onehop_load::plan::{Arrivals, Expect, Pace, Phase, Plan, Request, Reuse, Spacing, Timeouts, Until};

use crate::Outcome;

use super::super::interrupt::{self, Interruptible};
use super::super::servers::{self, Cores};
use super::steps::{Application, WEIGHTS};

/// Where the static file is.
pub(super) const FILE_PATH: &str = "/static/page.html";

/// An answer that takes longer is of no use to the person who waits; the client goes away.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);

/// Most connections at a time: what arrives within the patience at 10 C, with some room.
const CONNECTIONS: usize = 6000;

/// Requests for the file each second: enough for a p99 within seconds, and next to nothing for a server.
const FILE_RATE: f64 = 400.0;

/// Connections for them, more than are ever needed at once.
const FILE_CONNECTIONS: usize = 64;

/// Connections of the closed loop that finds the capacity: the pool has five, all of them are busy with this many, and
/// nobody waits long.
const CAPACITY_CONNECTIONS: usize = 10;

/// A load on the application.
pub(super) struct Offer {
    pub(super) application: Application,
    /// Rates in requests per second.
    pub(super) phases: Vec<Phase>,
    pub(super) warm_up: Duration,
    pub(super) time: Duration,
}

/// What came of it, and of the file meanwhile.
pub(super) struct Offered {
    /// Requests of the route that matters most are its second tally.
    pub(super) run: Run,
    pub(super) file: Run,
}

impl Offer {
    /// The same rate all the time.
    pub(super) fn steady(application: Application, rate: f64, time: Duration) -> Offer {
        Offer { application, phases: vec![steady(rate, time)], warm_up: Duration::ZERO, time }
    }

    /// Puts it on a server, with the file beside it.
    pub(super) fn put_on(&self, address: SocketAddr) -> Outcome<Offered> {
        let asks = vec![
            Request { weight: WEIGHTS.1, ..ask(address, self.application.path())? },
            Request { weight: WEIGHTS.0, ..ask(address, self.application.high_path())? },
        ];
        let work =
            Plan { warm_up: self.warm_up, ..plan(asks, open(CONNECTIONS, self.phases.clone()), self.time) };
        let file = Plan { warm_up: self.warm_up, ..file_plan(address, self.time)? };
        let (run, file) = scope(|scope| {
            let file = scope.spawn(|| run_on(&file));
            let run = scope.spawn(|| run_on(&work));
            (joined(run), joined(file))
        });
        interrupt::check()?;
        Ok(Offered { run: run?, file: file? })
    }
}

/// The file alone.
pub(super) fn file_alone(address: SocketAddr, time: Duration) -> Outcome<Run> {
    let plan = file_plan(address, time)?;
    let run = scope(|scope| joined(scope.spawn(|| run_on(&plan))));
    interrupt::check()?;
    run
}

/// Answers per second to clients that ask again as soon as they have theirs: all that the application can do.
pub(super) fn capacity(application: Application, address: SocketAddr, time: Duration) -> Outcome<f64> {
    let closed = Pace::Closed { connections: CAPACITY_CONNECTIONS, think: Duration::ZERO };
    let asks = vec![ask(address, application.path())?];
    let plan = Plan { warm_up: time / 2, ..plan(asks, closed, time) };
    let run = scope(|scope| joined(scope.spawn(|| run_on(&plan))));
    interrupt::check()?;
    let run = run?;
    let failures = run.total.unexpected + run.total.failures.sum();
    if run.total.good == 0 || failures > 0 {
        let name = application.name();
        return Err(format!("the capacity of {name} is not known: {failures} requests failed").into());
    }
    Ok(run.rate())
}

/// One rate.
pub(super) fn steady(rate: f64, length: Duration) -> Phase {
    Phase { from: rate, to: rate, length }
}

fn ask(address: SocketAddr, path: &str) -> Outcome<Request> {
    Ok(Request { expect: Expect::Exactly(vec![200]), ..servers::ask(address, path)? })
}

fn open(connections: usize, phases: Vec<Phase>) -> Pace {
    Pace::Open { connections, arrivals: Arrivals { spacing: Spacing::Constant, phases } }
}

fn file_plan(address: SocketAddr, time: Duration) -> Outcome<Plan> {
    let pace = open(FILE_CONNECTIONS, vec![steady(FILE_RATE, time)]);
    Ok(plan(vec![ask(address, FILE_PATH)?], pace, time))
}

fn plan(asks: Vec<Request>, pace: Pace, time: Duration) -> Plan {
    Plan {
        requests: asks,
        pace,
        until: Until { time: Some(time), ..Until::default() },
        warm_up: Duration::ZERO,
        threads: 1,
        cores: Cores::Apart.of_load(),
        reuse: Reuse::Kept,
        timeouts: Timeouts { connect: TIMEOUT, response: TIMEOUT },
        seed: 1,
    }
}

fn run_on(plan: &Plan) -> Result<Run, LoadError> {
    engine::run(plan, &mut Interruptible)
}

fn joined(load: ScopedJoinHandle<'_, Result<Run, LoadError>>) -> Outcome<Run> {
    Ok(load.join().map_err(|_| "the load broke")??)
}
