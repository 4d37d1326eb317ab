//! The load against a server that notes what it does itself.

mod paces;
mod plain;
mod responses;
mod server;
mod truth;

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use onehop_load::plan::{Arrivals, Expect, Pace, Phase, Protocol, Request, Reuse, Spacing, Timeouts, Until};
use onehop_load::{Address, Plan, Run, Unobserved, Url};

use server::Server;

static MACHINE: RwLock<()> = RwLock::new(());

/// Tests that measure time have the machine for themselves, as far as that is ours to say.
pub(crate) fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// The other tests run side by side.
pub(crate) fn with_others() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// A GET of `/`.
pub(crate) fn request(address: Address) -> Request {
    Request {
        tls: None,
        protocol: Protocol::Http1,
        name: "it".to_owned(),
        url: Url::parse("http://localhost/").unwrap(),
        address,
        method: "GET".to_owned(),
        fields: Vec::new(),
        body: None,
        weight: 1,
        expect: Expect::Success,
    }
}

/// A closed loop of some requests on some connections.
pub(crate) fn closed(address: Address, connections: usize, requests: u64) -> Plan {
    Plan {
        requests: vec![request(address)],
        pace: Pace::Closed { connections, think: Duration::ZERO },
        until: Until { requests: Some(requests), ..Until::default() },
        warm_up: Duration::ZERO,
        threads: 1,
        cores: Vec::new(),
        reuse: Reuse::Kept,
        timeouts: Timeouts::default(),
        seed: 1,
    }
}

/// An open loop for some time.
pub(crate) fn open(address: Address, connections: usize, rate: f64, time: Duration) -> Plan {
    let phases = vec![Phase { from: rate, to: rate, length: time }];
    Plan {
        pace: Pace::Open { connections, arrivals: Arrivals { spacing: Spacing::Constant, phases } },
        until: Until { time: Some(time), ..Until::default() },
        ..closed(address, connections, 1)
    }
}

pub(crate) fn at(server: &Server) -> Address {
    Address::Tcp(server.address.unwrap())
}

pub(crate) fn run(plan: &Plan) -> Run {
    onehop_load::engine::run(plan, &mut Unobserved).unwrap()
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Whether `seen` is within this share of `truth`.
pub(crate) fn is_within(seen: Duration, truth: Duration, share: f64) -> bool {
    (seen.as_secs_f64() / truth.as_secs_f64() - 1.0).abs() <= share
}
