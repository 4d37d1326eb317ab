//! Ports for servers.
//!
//! Owns the choice. Never gives one that somebody listens on, or that was given a short while ago: connections of
//! an earlier round may linger there.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::process::read;

/// Ports that were given lately, and are not given again: more than the servers of some rounds.
const GIVEN_MAX: usize = 512;
/// Attempts until nothing is thought to be free.
const ATTEMPTS: usize = 1000;
/// Below are ports that people give to services.
const FIRST_PORT: u16 = 10_000;
/// Looks at a port of which a process that has just begun may hold a copy, and the pause between them: it runs its
/// program within microseconds, on a busy machine within milliseconds.
const COPY_LOOKS: u32 = 20;
const COPY_LOOK_PERIOD: Duration = Duration::from_millis(5);
/// The first port from which Linux takes those of outgoing connections (`ip_local_port_range`), unless it is told
/// otherwise. A port of that range may be taken by a connection of the load's own.
const FIRST_OUTGOING_PORT: u16 = 32_768;
/// Fewer ports than this below the outgoing ones are too few to choose from.
const PORTS_MIN: u16 = 2000;

static GIVEN: Mutex<VecDeque<u16>> = Mutex::new(VecDeque::new());

/// A port on which nobody listens; `None` where none was found.
pub fn free_port() -> Option<u16> {
    let range = range();
    for _ in 0..ATTEMPTS {
        let port = match &range {
            Some(range) => fastrand::u16(range.clone()),
            None => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?.local_addr().ok()?.port(),
        };
        let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
        if given.contains(&port) || !is_free(port) {
            continue;
        }
        given.push_back(port);
        if given.len() > GIVEN_MAX {
            given.pop_front();
        }
        return Some(port);
    }
    None
}

/// Whether a server could listen there: on the loopback address and on all addresses.
pub(crate) fn is_free(port: u16) -> bool {
    let can_listen = |result: std::io::Result<TcpListener>| match result {
        Ok(_) => true,
        // A machine without IPv6 has nobody there.
        Err(error) => {
            error.kind() == std::io::ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(97)
        }
    };
    if !can_listen(TcpListener::bind((Ipv4Addr::LOCALHOST, port))) {
        return false;
    }
    // A process that another thread has just begun holds a copy of that socket until it runs its program.
    let soon = |address: IpAddr| {
        (0..COPY_LOOKS).any(|look| {
            std::thread::sleep(COPY_LOOK_PERIOD * look.min(1));
            can_listen(TcpListener::bind((address, port)))
        })
    };
    soon(Ipv4Addr::UNSPECIFIED.into()) && soon(Ipv6Addr::UNSPECIFIED.into())
}

/// Where servers' ports are chosen: below those of outgoing connections.
fn range() -> Option<Range<u16>> {
    let text = read("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let outgoing = text.split_whitespace().next().and_then(|word| word.parse().ok());
    let end: u16 = outgoing.unwrap_or(FIRST_OUTGOING_PORT);
    (end >= FIRST_PORT + PORTS_MIN).then_some(FIRST_PORT..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_not_given_twice_and_nobody_listens_there() {
        let mut ports: Vec<u16> = (0..100).map(|_| free_port().unwrap()).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 100);
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(!is_free(taken.local_addr().unwrap().port()));
    }
}
