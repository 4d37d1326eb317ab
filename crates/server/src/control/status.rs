//! What `onehop status` and the control socket tell; documented in docs/control-api.md.

use std::path::PathBuf;

use serde::Serialize;

use crate::request::handle::files::store::Store;

/// What `onehop status` shows; documented in docs/control-api.md.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    /// The program's version.
    pub version: String,
    /// Process id.
    pub pid: u32,
    /// Seconds since the start.
    pub uptime_seconds: u64,
    /// Core threads.
    pub threads: usize,
    /// Bound addresses.
    pub listening: Vec<String>,
    /// Address of `/metrics`, if any.
    pub admin: Option<String>,
    /// Reloads since the start.
    pub reloads: u64,
    /// Connections now.
    pub open_connections: u64,
    /// Requests since the start.
    pub requests: u64,
    /// Each site.
    pub sites: Vec<SiteStatus>,
    /// Each root in memory.
    pub stores: Vec<StoreStatus>,
    /// Each application.
    pub apps: Vec<AppStatus>,
}

/// An application in [`Status`].
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
    /// Workers that ended without being told to, since the start.
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

/// A site in [`Status`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SiteStatus {
    /// Its label.
    pub site: String,
    /// Requests since the start.
    pub requests: u64,
}

/// A root in [`Status`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoreStatus {
    /// The root.
    pub root: PathBuf,
    /// Files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes in memory as they are.
    pub stored_bytes: u64,
    /// Bytes in memory in compressed forms.
    pub compressed_bytes: u64,
    /// Files streamed from disk.
    pub on_disk: usize,
}

impl StoreStatus {
    /// What a store holds.
    pub(super) fn of(store: &Store) -> Self {
        let totals = &store.totals;
        Self {
            root: store.root.clone(),
            files: totals.files,
            bytes: totals.bytes,
            stored_bytes: totals.stored_bytes,
            compressed_bytes: totals.compressed_bytes,
            on_disk: totals.on_disk,
        }
    }
}

/// What a reload did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReloadSummary {
    /// Sites now.
    pub sites: usize,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}
