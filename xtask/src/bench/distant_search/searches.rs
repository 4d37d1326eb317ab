//! Searches, one after the other, and what the packets say about each.
//!
//! A search is a request of a client that has no connection yet. Its time runs from the moment before the connection is
//! opened to the last byte of the answer. It must never be repeated: an error is a figure.

use std::process::Command;
use std::time::{Duration, Instant};

use onehop_testkit::distance::{Exchange, exchange, openings};

use crate::Outcome;

use super::super::interrupt;
use super::super::probe;
use super::plan::{Target, Transport};
use super::world::{Shared, World};

/// The field in which the search service tells from which port it was asked.
const ASKED_FROM: &str = "X-Asked-From";

/// A search that takes longer has failed.
const CURL_SECONDS_MAX: &str = "10";

/// One search.
pub(super) struct Search {
    /// How long it took; or what went wrong.
    pub(super) took: Result<Duration, String>,
    /// The near end's port of the connection that carried it; unknown after an error.
    pub(super) carried_by: Option<u16>,
    /// What passed on that connection meanwhile.
    pub(super) exchange: Option<Exchange>,
}

/// A row of searches.
pub(super) struct Row {
    pub(super) searches: Vec<Search>,
    /// Connections to the far end that were opened meanwhile, on a request's path or beside it.
    pub(super) opened: usize,
}

/// What a client sees of an answer.
struct Seen {
    took: Duration,
    status: u16,
    bytes: usize,
    asked_from: Option<u16>,
}

/// Searches so many times.
pub(super) fn row(world: &World, shared: &Shared, count: u64) -> Outcome<Row> {
    let begun = Instant::now();
    let mut raw = Vec::new();
    for _ in 0..count {
        interrupt::check()?;
        std::thread::sleep(world.case.pause());
        let from = Instant::now();
        let seen = search(world, shared).map_err(|error| error.to_string());
        raw.push((from, Instant::now(), seen));
    }
    let passed = world.passed_since(begun);
    let opened = openings(&passed, begun, Instant::now());
    let case = world.case;
    let judged = |(from, to, seen): (Instant, Instant, Result<Seen, String>)| {
        let port = seen.as_ref().ok().and_then(|seen| seen.asked_from);
        let exchange = port.map(|port| exchange(&passed, port, from, to));
        let took = seen.and_then(|seen| match (seen.status, seen.bytes) {
            (200, bytes) if bytes == case.size.bytes => Ok(seen.took),
            (200, bytes) => Err(format!("{bytes} bytes instead of {}", case.size.bytes)),
            (status, _) => Err(format!("status {status}")),
        });
        Search { took, carried_by: port, exchange }
    };
    Ok(Row { searches: raw.into_iter().map(judged).collect(), opened })
}

fn search(world: &World, shared: &Shared) -> Outcome<Seen> {
    let path = world.case.path();
    if world.target == Target::Direct && world.case.transport != Transport::Plain {
        return curl(world, shared, &path);
    }
    let address = world.address();
    world.near(|| {
        let begun = Instant::now();
        let answer = probe::get(address, &path, &[])?;
        let took = begun.elapsed();
        let asked_from = answer.field(ASKED_FROM).and_then(|port| port.parse().ok());
        Ok(Seen { took, status: answer.status, bytes: answer.body.len(), asked_from })
    })
}

/// Our own client speaks no TLS; curl takes HTTP/2 where the service has it. The time is curl's own, without that of its start.
fn curl(world: &World, shared: &Shared, path: &str) -> Outcome<Seen> {
    let url = format!("https://{}{path}", world.address());
    let format = format!("%{{http_code}} %{{size_download}} %{{time_total}} %header{{{ASKED_FROM}}}");
    let authority = shared.authority().display().to_string();
    let words = ["--silent", "--show-error", "--max-time", CURL_SECONDS_MAX, "--cacert", &authority];
    let output = world.near(|| {
        Ok(Command::new("curl")
            .args(words)
            .args(["--output", "/dev/null", "--write-out", &format, &url])
            .output()?)
    })?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned().into());
    }
    seen_by_curl(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| "curl told no figures".into())
}

fn seen_by_curl(line: &str) -> Option<Seen> {
    let mut words = line.split_whitespace();
    let (status, bytes) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let took = Duration::try_from_secs_f64(words.next()?.parse().ok()?).ok()?;
    Some(Seen { took, status, bytes, asked_from: words.next().and_then(|port| port.parse().ok()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_curl_are_read() {
        let seen = seen_by_curl("200 1024 0.548732 40122").unwrap();
        assert_eq!((seen.status, seen.bytes, seen.asked_from), (200, 1024, Some(40_122)));
        assert_eq!(seen.took, Duration::from_micros(548_732));
        assert_eq!(seen_by_curl("502 0 0.1 ").unwrap().asked_from, None);
        assert!(seen_by_curl("curl: (7) Failed").is_none());
    }
}
