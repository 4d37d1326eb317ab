//! Waiting for a server's first whole, expected answer.
//!
//! Owns the wait. Never takes an accepted connection, or another status, for a server that is ready.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use super::server::{Server, StartError};
use crate::client::{Client, Response};
use crate::plan::{Request, Timeouts};
use crate::url::Address;

/// Until what age of the server how long is waited between attempts: the cold start of a fast server is known to a
/// tenth of a millisecond, that of a slow one to half a per cent.
const POLLS: [(Duration, Duration); 3] = [
    (Duration::from_millis(50), Duration::from_micros(100)),
    (Duration::from_secs(1), Duration::from_millis(1)),
    (Duration::MAX, Duration::from_millis(5)),
];

/// A server that listens has done so for some time when it is looked for elsewhere: looking costs it time.
const LOOK_ELSEWHERE_EVERY: Duration = Duration::from_millis(500);

/// Bytes of an unexpected answer that are shown.
const SHOWN_BYTES: usize = 200;

/// The first whole answer that is an expected one. The time since [`Server::started_at`] is then the cold start.
///
/// # Errors
/// Where the server ended, listens on another port than it was told, or gave no expected answer in time.
pub fn wait_until_ready(
    server: &mut Server,
    request: &Request,
    timeouts: Timeouts,
    within: Duration,
) -> Result<Response, StartError> {
    loop {
        if let Some(response) = wait_until_ready_unless(server, request, timeouts, within, &|| false)? {
            return Ok(response);
        }
    }
}

/// The same, until `is_broken_off` says so: `None` then.
///
/// # Errors
/// As [`wait_until_ready`].
pub fn wait_until_ready_unless(
    server: &Server,
    request: &Request,
    timeouts: Timeouts,
    within: Duration,
    is_broken_off: &dyn Fn() -> bool,
) -> Result<Option<Response>, StartError> {
    let begun = Instant::now();
    let mut next_look = LOOK_ELSEWHERE_EVERY;
    let mut last = String::new();
    loop {
        let left = within.saturating_sub(begun.elapsed());
        match request_once(request, &request.address, timeouts, left, is_broken_off) {
            Ok(response) if request.expect.accepts(response.status) => return Ok(Some(response)),
            Ok(response) => last = shown(&response),
            Err(error) => last = keep_response(last, error),
        }
        if is_broken_off() {
            return Ok(None);
        }
        if let Some(how) = server.ended() {
            let (program, log) = (server.program().to_owned(), log_of_ended(server));
            return Err(StartError::Ended { program, how, log });
        }
        let elapsed = begun.elapsed();
        if elapsed >= next_look || elapsed >= within {
            next_look = elapsed + LOOK_ELSEWHERE_EVERY;
            if let Some(found) = elsewhere(server, request, timeouts, elapsed >= within, is_broken_off) {
                let (program, reported) = (server.program().to_owned(), server.port());
                return Err(StartError::ListensElsewhere { program, reported, found });
            }
        }
        if elapsed >= within {
            let (program, log) = (server.program().to_owned(), server.log_tail());
            return Err(StartError::NotReady { program, within, last, log });
        }
        // A wait may be one of several for the same start.
        let age = server.started_at().elapsed();
        let pause = POLLS.iter().find(|(until, _)| age < *until).map_or(Duration::ZERO, |(_, pause)| *pause);
        std::thread::sleep(pause);
    }
}

fn request_once(
    request: &Request,
    address: &Address,
    timeouts: Timeouts,
    left: Duration,
    is_broken_off: &dyn Fn() -> bool,
) -> Result<Response, String> {
    // No timeout at all is no timeout that a socket knows.
    let left = left.max(Duration::from_millis(1));
    let timeouts = Timeouts { connect: timeouts.connect.min(left), response: timeouts.response.min(left) };
    Client::new(address.clone())
        .request_unless(request, timeouts, is_broken_off)
        .map_err(|error| error.to_string())
}

/// An answer with another status tells more than the refused connection after it.
fn keep_response(last: String, error: String) -> String {
    if last.starts_with("it answered") { last } else { error }
}

fn shown(response: &Response) -> String {
    let body = response.body.get(..SHOWN_BYTES).unwrap_or(&response.body);
    let body = String::from_utf8_lossy(body);
    let body = body.split_whitespace().collect::<Vec<_>>().join(" ");
    if body.is_empty() {
        format!("it answered with status {}", response.status)
    } else {
        format!("it answered with status {}: {body}", response.status)
    }
}

/// A port other than the one told, where the server gives an expected answer; when time is over, any on which it
/// listens instead.
fn elsewhere(
    server: &Server,
    request: &Request,
    timeouts: Timeouts,
    is_over: bool,
    is_broken_off: &dyn Fn() -> bool,
) -> Option<u16> {
    let Address::Tcp(reported) = &request.address else { return None };
    let listening = server.own_listening();
    if listening.iter().any(|address| address.port() == reported.port()) {
        return None;
    }
    let mut others = listening.iter().copied();
    let responses = |other: &SocketAddr| {
        let ip = if other.ip().is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { other.ip() };
        let there = Address::Tcp(SocketAddr::new(ip, other.port()));
        request_once(request, &there, timeouts, LOOK_ELSEWHERE_EVERY, is_broken_off)
            .is_ok_and(|response| request.expect.accepts(response.status))
    };
    let found = others.find(responses);
    let found = found.or_else(|| listening.first().copied().filter(|_| is_over));
    found.map(|address| address.port())
}

/// What an ended server wrote: its last lines may still be on their way through the pipe.
fn log_of_ended(server: &Server) -> String {
    // A busy machine may keep the reading thread from its core for so long; whoever still writes is not waited for.
    const LAST_LINES_WITHIN: Duration = Duration::from_secs(1);
    let begun = Instant::now();
    while !server.has_whole_log() && begun.elapsed() < LAST_LINES_WITHIN {
        std::thread::sleep(Duration::from_millis(1));
    }
    server.log_tail()
}
