//! Servers under measurement: on which cores they and the load run, how one is started and waited for.
//!
//! What starts, weighs and ends them is `onehop_load::measure`. This file must never start one that is not ended.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use onehop_load::measure::Start;
use onehop_load::measure::{self, Server};
use onehop_load::plan::{Expect, Protocol, Request, Timeouts};
use onehop_load::{Address, Url};

use crate::Outcome;

use super::interrupt;

/// A server needs milliseconds to be ready, a framework's worker a second on a quiet core; half a minute means that it
/// never will be.
const READY_DEADLINE: Duration = Duration::from_secs(30);

/// Which cores a server may use, and with it the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cores {
    /// One for each side.
    Apart,
    /// All of them for both.
    All,
}

/// Puts this thread, and what it starts from now on, on the load's core.
pub(crate) fn move_to_load_core() {
    // On a machine with one core there is nothing to choose; the report says how many there were.
    let _ = measure::bind_to(&Cores::Apart.of_load());
}

/// A port of the loopback address that is free now, and was not used a short while ago.
pub(crate) fn free_port() -> Outcome<u16> {
    measure::free_port().ok_or_else(|| "no port is free".into())
}

/// Starts a command that listens on this port.
pub(crate) fn start(
    words: &[String],
    environment: &[(String, String)],
    port: u16,
    cores: Cores,
) -> Outcome<Server> {
    interrupt::check()?;
    let start = Start {
        words: words.to_vec(),
        environment: environment.to_vec(),
        directory: None,
        port: Some(port),
        behind: Vec::new(),
        ready_within: READY_DEADLINE,
    };
    Ok(Server::start(&start, &cores.of_server())?)
}

/// Waits for the first whole answer of a kind; gives the time from the server's start to it.
pub(crate) fn wait_until_ready(server: &mut Server, path: &str, expect: Expect) -> Outcome<Duration> {
    let ask = Request { expect, ..ask(SocketAddr::from((Ipv4Addr::LOCALHOST, server.port())), path)? };
    measure::wait_until_ready(server, &ask, Timeouts::default(), READY_DEADLINE)?;
    Ok(server.started_at().elapsed())
}

/// A question without a body and with no fields beside what has to be there.
pub(crate) fn ask(address: SocketAddr, path: &str) -> Outcome<Request> {
    Ok(Request {
        tls: None,
        protocol: Protocol::Http1,
        name: path.to_owned(),
        url: Url::parse(&format!("http://{address}{path}"))?,
        address: Address::Tcp(address),
        method: "GET".to_owned(),
        fields: Vec::new(),
        body: None,
        weight: 1,
        expect: Expect::Success,
    })
}

impl Cores {
    /// The server's: one of them where it is apart, so that rivals with one thread are compared with their like.
    pub(crate) fn of_server(self) -> Vec<usize> {
        match self {
            Cores::Apart => measure::split_cores().0.into_iter().take(1).collect(),
            Cores::All => Vec::new(),
        }
    }

    /// The load's.
    pub(crate) fn of_load(self) -> Vec<usize> {
        match self {
            Cores::Apart => measure::split_cores().1.into_iter().take(1).collect(),
            Cores::All => every(),
        }
    }
}

fn every() -> Vec<usize> {
    let (server, load) = measure::split_cores();
    server.into_iter().chain(load).collect()
}
