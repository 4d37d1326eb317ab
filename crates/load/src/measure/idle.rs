//! Memory of a server with many idle connections.
//!
//! Owns the connections and the wait until memory is steady. Each connection has had one whole, expected response, as a
//! browser's kept connection has. Counts the memory of processes: what the kernel holds for a socket is not in it.

use std::time::{Duration, Instant};

use super::memory::{own_of, weight_of};
use super::tree::Tree;
use crate::client::{Client, IdleConnection, RequestError};
use crate::engine::{self, LoadError};
use crate::plan::{Request, Timeouts};

/// Memory is steady where it did not change for so long: garbage collectors and allocators return memory late.
const STEADY_FOR: Duration = Duration::from_secs(2);
/// It is taken as it is after this long.
const STEADY_WITHIN: Duration = Duration::from_secs(15);
/// Between two looks.
const POLL: Duration = Duration::from_millis(100);
/// Bytes by which steady memory may change: timers and collectors of a server at rest move some pages.
const STEADY_BYTES: u64 = 64 * 1024;

/// Idle connections that are held open. Dropping them closes them.
#[derive(Debug)]
pub struct IdleConnections {
    connections: Vec<IdleConnection>,
    memory: IdleMemory,
}

/// Memory of a server at rest and with idle connections, bytes. At rest: proportional shares where the kernel tells them, else
/// resident pages. What connections add is counted in anonymous and shared memory only: the share of a file's pages falls when
/// another program maps the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleMemory {
    /// Idle connections.
    pub connections: usize,
    /// Before the first of them.
    pub at_rest_bytes: u64,
    /// With all of them.
    pub held_bytes: u64,
}

/// Why the connections could not be held. Its text is for a person.
#[derive(Debug, thiserror::Error)]
pub enum IdleError {
    /// Too few descriptors.
    #[error(transparent)]
    Descriptors(#[from] LoadError),
    /// A connection without a response.
    #[error("idle connection {number} of {of}: {source}")]
    Request {
        /// Which one, from 1.
        number: usize,
        /// Of how many.
        of: usize,
        /// What happened.
        source: RequestError,
    },
    /// A connection with another response, or one that the server closed behind it.
    #[error("idle connection {number} of {of}: the response with status {status} {what}")]
    Response {
        /// Which one, from 1.
        number: usize,
        /// Of how many.
        of: usize,
        /// The status.
        status: u16,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A server that closes connections would look frugal.
    #[error("the server closed {closed} of {of} idle connections while its memory was measured")]
    Closed {
        /// Closed ones.
        closed: usize,
        /// Of how many.
        of: usize,
    },
}

impl IdleConnections {
    /// Opens this many connections to the server with the processes `tree`, sends one request on each, and measures its memory
    /// before and after, both times once it is steady. `None` where `is_interrupted` says so.
    ///
    /// # Errors
    /// Where one of them has no expected response, or does not stay open.
    pub fn open(
        tree: &Tree,
        request: &Request,
        count: usize,
        timeouts: Timeouts,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<IdleConnections>, IdleError> {
        engine::make_room(count, 1)?;
        let own_at_rest = steady_own(tree, is_interrupted);
        let at_rest_bytes: u64 =
            tree.processes().into_iter().filter_map(weight_of).map(|(bytes, _)| bytes).sum();
        let mut connections = Vec::with_capacity(count);
        for number in 1..=count {
            match connection(request, (number, count), timeouts, is_interrupted) {
                Err(IdleError::Request { source: RequestError::BrokenOff, .. }) => return Ok(None),
                other => connections.push(other?),
            }
        }
        let own = steady_own(tree, is_interrupted);
        if is_interrupted() {
            return Ok(None);
        }
        let held_bytes = (at_rest_bytes + own).saturating_sub(own_at_rest);
        let memory = IdleMemory { connections: count, at_rest_bytes, held_bytes };
        let opened = IdleConnections { connections, memory };
        match opened.connections.iter().filter(|connection| !connection.is_open()).count() {
            0 => Ok(Some(opened)),
            closed => Err(IdleError::Closed { closed, of: count }),
        }
    }

    /// What the server's processes held without and with them.
    pub fn memory(&self) -> IdleMemory {
        self.memory
    }
}

impl IdleMemory {
    /// Bytes that each connection added.
    pub fn per_connection(self) -> f64 {
        (self.held_bytes as f64 - self.at_rest_bytes as f64) / self.connections as f64
    }
}

/// One connection with a response behind it.
fn connection(
    request: &Request,
    (number, of): (usize, usize),
    timeouts: Timeouts,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<IdleConnection, IdleError> {
    let mut client = Client::new(request.address.clone());
    let response = client
        .request_unless(request, timeouts, is_interrupted)
        .map_err(|source| IdleError::Request { number, of, source })?;
    let wrong = |what| IdleError::Response { number, of, status: response.status, what };
    if !request.expect.accepts(response.status) {
        return Err(wrong("is not expected"));
    }
    client.into_idle().ok_or_else(|| wrong("closed the connection"))
}

/// The processes' own memory once it has stopped changing.
fn steady_own(tree: &Tree, is_interrupted: &dyn Fn() -> bool) -> u64 {
    let memory = || tree.processes().into_iter().filter_map(own_of).sum();
    let begun = Instant::now();
    let (mut since, mut last): (Instant, u64) = (begun, memory());
    while since.elapsed() < STEADY_FOR && begun.elapsed() < STEADY_WITHIN && !is_interrupted() {
        std::thread::sleep(POLL);
        let now = memory();
        if now.abs_diff(last) > STEADY_BYTES {
            (since, last) = (Instant::now(), now);
        }
    }
    memory()
}

#[cfg(test)]
mod tests {
    use super::super::sample::{NODE_SERVER, TIMEOUTS, request, started};
    use super::super::wait_until_ready;
    use super::*;

    fn open(script: &str, count: usize) -> Result<IdleMemory, String> {
        let mut server = started(&["node", "-e", script]);
        let request = request("/", server.port());
        wait_until_ready(&mut server, &request, Timeouts::default(), TIMEOUTS).unwrap();
        let opened = IdleConnections::open(&server.tree(), &request, count, Timeouts::default(), &|| false);
        opened.map(|opened| opened.unwrap().memory()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_server_that_keeps_a_megabyte_for_each_connection_is_found() {
        let keeps = format!("{NODE_SERVER}{KEEPS}");
        let memory = open(&keeps, 20).unwrap();
        let each = memory.per_connection();
        assert!(memory.connections == 20 && memory.at_rest_bytes > 1_000_000, "{memory:?}");
        assert!((900_000.0..3_000_000.0).contains(&each), "{each} {memory:?}");
    }

    /// Fills what it keeps, so that it is resident.
    const KEEPS: &str = r#"
const { Server } = require("node:http");
const { emit } = Server.prototype;
Server.prototype.emit = function (name, ...rest) {
  if (name === "connection") rest[0].kept = Buffer.alloc(1024 * 1024, 1);
  return emit.call(this, name, ...rest);
};
"#;

    #[test]
    fn connections_that_the_server_closes_are_no_idle_connections() {
        let once = r#"require("node:http").createServer((request, response) => {
            response.setHeader("connection", "close"); response.end("bye"); }).listen(process.env.PORT, "127.0.0.1");"#;
        let error = open(once, 2).unwrap_err();
        assert_eq!(error, "idle connection 1 of 2: the response with status 200 closed the connection");
        let soon = format!(
            "const h = require('node:http'); const c = h.createServer; h.createServer = (f) => c({{ keepAliveTimeout: 100 }}, f);{NODE_SERVER}"
        );
        let error = open(&soon, 2).unwrap_err();
        assert_eq!(error, "the server closed 2 of 2 idle connections while its memory was measured");
    }
}
