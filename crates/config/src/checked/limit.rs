//! The checked settings of `limit` and `rate_limit`: how much of what comes is let in.
//!
//! Bounds as numbers, every default spelled out. `onehop-limits` applies them.

use std::time::Duration;

use super::{Network, Template};

/// One `limit`: maximum concurrent requests, and how requests above it are treated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// What it is called in metrics and logs: `server`, a site's label and the matchers around it as written, or `app` and
    /// the application's name. No two have the same.
    pub label: String,
    /// How many requests may be in flight.
    pub bound: Bound,
    /// Requests that wait for one of those; 0 refuses at once.
    pub queue: u32,
    /// How long one waits there at most; zero where there is no queue.
    pub wait: Duration,
    /// An application's event loop that is late by this much refuses some, by twice of it all.
    pub lag: Option<Duration>,
    /// What those are answered that are not let in.
    pub shed_status: u16,
}

/// How many requests may be in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// As many as come: only `lag` refuses.
    Unbounded,
    /// So many.
    Fixed(u32),
    /// As many as do not make each other wait, found out from latencies, within these.
    Adaptive {
        /// At least so many.
        min: u32,
        /// At most so many.
        max: u32,
    },
}

/// Whom a bound lets in first where it cannot let in everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Priority {
    /// Shed first.
    Low,
    /// Where nothing is said.
    #[default]
    Normal,
    /// Shed last.
    High,
}

/// One zone of a `rate_limit`: requests per client or other key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimit {
    /// Its name; equal names with equal settings share their counts over routes and reloads, and different settings
    /// never have one name.
    pub zone: String,
    /// Who counts as the same.
    pub key: RateKey,
    /// So many requests …
    pub events: u32,
    /// … in this time, of which each has at least a microsecond.
    pub window: Duration,
    /// So many of them may come at once, at least one. Until as many may come again takes 366 days at most.
    pub burst: u32,
    /// Keys that are remembered.
    pub keys_max: u32,
    /// Trusted proxies of the global block, which name the client in `X-Forwarded-For`.
    pub trusted_proxies: Vec<Network>,
    /// Answers to requests that are let in tell how many more may come, too; refusals always do.
    pub announce: bool,
}

/// Who counts as the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RateKey {
    /// The client's address, as trusted proxies tell it; of IPv6 its /64.
    ClientAddress,
    /// The value of a request's header field, lower case name.
    Header(String),
    /// The value of a cookie.
    Cookie(String),
    /// Whatever placeholders make of the request; a text without any is one count for all, and never empty.
    Template(Template),
}
