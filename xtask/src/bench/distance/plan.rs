//! What `bench distance` measures: targets, cases, and the bounds of their figures.
//!
//! Data only; it starts nothing.

use std::time::Duration;

/// Bytes.
const KIBIBYTE: usize = 1024;

/// What a search may take beyond its one round trip: both proxies' and the server's own work.
const BEYOND_ROUND_TRIP: Duration = Duration::from_millis(5);

/// How the client's machine reaches the search server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// By itself: a fresh connection over the whole distance for each search.
    Direct,
    /// Caddy with the file.
    Caddy,
    /// onehop with the same file.
    Onehop,
    /// onehop with `pool min 4`.
    OnehopFour,
    /// nginx with kept connections, and a client that keeps its own to nginx.
    NginxKept,
}

/// All targets, in the order in which they are printed.
pub(super) const TARGETS: &[Target] =
    &[Target::Direct, Target::Caddy, Target::Onehop, Target::OnehopFour, Target::NginxKept];

/// What is asked and how the search server behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) name: &'static str,
    /// Content of an answer.
    pub(super) bytes: usize,
    pub(super) tls: bool,
    /// The server closes connections that have been idle for a short time; otherwise it keeps them for a day.
    pub(super) closes: bool,
}

const fn case(name: &'static str, kibibytes: usize, tls: bool, closes: bool) -> Case {
    Case { name, bytes: kibibytes * KIBIBYTE, tls, closes }
}

/// All cases, in the order in which they are measured.
pub(super) const CASES: &[Case] = &[
    case("1k-plain", 1, false, false),
    case("1k-tls", 1, true, false),
    case("1k-plain-closing", 1, false, true),
    case("1k-tls-closing", 1, true, true),
    case("50k-plain", 50, false, false),
    case("50k-tls", 50, true, false),
    case("50k-plain-closing", 50, false, true),
    case("50k-tls-closing", 50, true, true),
    case("200k-plain", 200, false, false),
    case("200k-tls", 200, true, false),
    case("200k-plain-closing", 200, false, true),
    case("200k-tls-closing", 200, true, true),
];

/// The case of clients that are far away from onehop; it has no proxy and no search server.
pub(super) const CLIENTS: &str = "clients";

/// Cases of a run that is only to show that it works.
pub(super) const SMOKE_CASES: &[&str] = &["1k-plain", "1k-tls", CLIENTS];

/// Options of a run.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Searches in a row, before the idle time and after it.
    pub(super) searches: u64,
    /// Length of the idle time.
    pub(super) idle: Duration,
    /// After so long a server that closes idle connections does so.
    pub(super) close_after: Duration,
    /// Half a round trip.
    pub(super) one_way: Duration,
    /// The kernel's congestion control at both ends.
    pub(super) congestion: String,
    /// `tcp_slow_start_after_idle` of the search server's machine.
    pub(super) slow_start_after_idle: bool,
}

impl Plan {
    /// What an answer that fits into the first window may take.
    pub(super) fn bound(&self) -> Duration {
        self.one_way * 2 + BEYOND_ROUND_TRIP
    }
}

impl Target {
    /// Its name in tables and files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Target::Direct => "direct",
            Target::Caddy => "caddy",
            Target::Onehop => "onehop",
            Target::OnehopFour => "onehop-min4",
            Target::NginxKept => "nginx-kept-client",
        }
    }

    /// Whether the bounds are about it.
    pub(super) fn is_bound(self) -> bool {
        matches!(self, Target::Onehop | Target::OnehopFour)
    }

    /// Its file below benchmarks/proxy/distance, where it has one.
    pub(super) fn settings(self, tls: bool) -> Option<&'static str> {
        match (self, tls) {
            (Target::Direct, _) => None,
            (Target::Caddy | Target::Onehop, false) => Some("Caddyfile"),
            (Target::Caddy | Target::Onehop, true) => Some("tls.Caddyfile"),
            (Target::OnehopFour, false) => Some("min4.Onehopfile"),
            (Target::OnehopFour, true) => Some("tls-min4.Onehopfile"),
            (Target::NginxKept, _) => Some("near-nginx.conf"),
        }
    }
}

impl Case {
    /// The path of its answer.
    pub(super) fn path(&self) -> String {
        format!("/{}", self.bytes)
    }
}
