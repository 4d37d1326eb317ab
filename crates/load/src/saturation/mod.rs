//! The highest rate at which a percentile stays under a limit, and the curve on the way there.
//!
//! Owns the search. Every point is an open loop, so that a server that falls behind is seen to.

use std::time::Duration;

use crate::outcome::Run;

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The percentile as a share, 0.99 for p99.
    pub share: f64,
    /// What it must not exceed.
    pub latency: Duration,
    /// The share of requests that may fail, 0.001 for one of a thousand.
    pub failures: f64,
}

/// One rate that was tried.
#[derive(Debug, Clone)]
pub struct Point {
    /// Requests per second that were offered.
    pub offered: f64,
    /// What came of it.
    pub run: Run,
    /// Whether it stayed within the limit.
    pub is_within: bool,
}

/// What a search found.
#[derive(Debug, Clone)]
pub struct Saturation {
    /// What was looked for.
    pub limit: Limit,
    /// All rates that were tried, in rising order.
    pub points: Vec<Point>,
    /// The highest rate within the limit that was confirmed by a second run; `None` where not even the lowest was.
    pub best: Option<f64>,
    /// Where the load, not the server, was the limit: then `best` is only a lower bound.
    pub load_was_the_limit: bool,
    /// What a reader must know, for people.
    pub caveats: Vec<String>,
}
