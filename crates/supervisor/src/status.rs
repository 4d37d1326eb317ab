//! What people and metrics see of an application.

use serde::Serialize;

/// An application in a server's status.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AppStatus {
    /// Its name.
    pub app: String,
    /// `starting`, `serving` or `failing`.
    pub state: &'static str,
    /// Why it fails, if it does.
    pub reason: Option<String>,
    /// Workers that are wanted.
    pub wanted: usize,
    /// Requests that wait for a worker.
    pub queued: usize,
    /// Workers that ended although they were wanted, since the start.
    pub failures: u64,
    /// Each process.
    pub workers: Vec<WorkerStatus>,
}

/// A process in [`AppStatus`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerStatus {
    /// Process id.
    pub pid: u32,
    /// `starting`, `serving`, `draining` or `stuck`.
    pub state: &'static str,
    /// How it is spoken to: `frames` or `http`; none before it is ready.
    pub protocol: Option<&'static str>,
    /// Requests that it has.
    pub in_flight: usize,
    /// Requests that it is handed at a time; none before it is ready.
    pub concurrency: Option<usize>,
    /// Requests that it was ever handed.
    pub requests: u64,
    /// Seconds since its start.
    pub age_seconds: u64,
    /// Resident bytes, as it last said.
    pub resident_bytes: u64,
    /// Longest delay of its event loop at the last look, in milliseconds.
    pub lag_ms: f64,
}
