//! Collections of requests, asked one after the other: Postman v2.1, HAR, a plain list of URLs.
//!
//! Owns reading them and the run in order. Never executes a script of a collection, and says so.

use std::time::Duration;

use crate::latency::Latencies;
use crate::plan::Ask;

/// A collection that was read, with its variables filled in.
#[derive(Debug, Clone)]
pub struct Collection {
    /// Its name.
    pub name: String,
    /// Its requests, in order; folders are part of the names (`Blogs / one`).
    pub asks: Vec<Ask>,
    /// What it holds that is not done (scripts, files that are missing), for people.
    pub notes: Vec<String>,
}

/// What a collection's run saw.
#[derive(Debug, Clone)]
pub struct CollectionRun {
    /// The collection's name.
    pub name: String,
    /// Iterations that were made.
    pub iterations: u64,
    /// From the first request to the last answer.
    pub elapsed: Duration,
    /// Each request, in the collection's order.
    pub requests: Vec<RequestFigures>,
    /// All requests together.
    pub latency: Latencies,
    /// It was broken off.
    pub is_interrupted: bool,
    /// The notes of the collection, and what else a reader must know.
    pub caveats: Vec<String>,
}

/// One request of a collection over all iterations.
#[derive(Debug, Clone)]
pub struct RequestFigures {
    /// Its name.
    pub name: String,
    /// Method and URL.
    pub line: String,
    /// Latencies of whole answers with the expected status.
    pub latency: Latencies,
    /// How many those are.
    pub passed: u64,
    /// Whole answers with another status, and failures.
    pub failed: u64,
    /// What was expected and what came, first each kind with its count (`status 500 instead of 200`).
    pub complaints: Vec<(String, u64)>,
}
