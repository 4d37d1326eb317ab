//! Start, reload, stop.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use onehop_config::checked::Checked;
use serde::Serialize;

use super::events::EventSink;

/// What the program decides, besides the checked settings.
pub struct Options {
    /// Core threads; overrides the file's.
    pub threads: Option<NonZeroUsize>,
    /// Where events go.
    pub events: EventSink,
    /// Path of the control socket; none means that there is none.
    pub control_socket: Option<PathBuf>,
    /// Reads the configuration anew for a reload; the error is for a person.
    pub load: Arc<dyn Fn() -> Result<Checked, String> + Send + Sync>,
}

/// The server before it runs.
pub struct Server;

/// A server that runs. Dropping it stops it.
pub struct Running {}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address is taken, or may not be bound.
    #[error("cannot listen on {address}: {reason}")]
    Bind {
        /// As configured.
        address: String,
        /// The system's words and the next step.
        reason: String,
    },
    /// A root is missing or cannot be read.
    #[error("{0}")]
    Store(String),
    /// A site wants TLS, which is not there yet.
    #[error("{0}")]
    TlsNotYet(String),
    /// A thread or a runtime could not be made.
    #[error("cannot start: {0}")]
    System(#[from] std::io::Error),
}

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

/// What a reload did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReloadSummary {
    /// Sites now.
    pub sites: usize,
    /// How long it took.
    pub took_ms: u64,
}

impl Server {
    /// Builds the snapshot, binds every listener and answers requests.
    pub fn start(checked: Checked, options: Options) -> Result<Running, StartError> {
        let _ = (checked, options);
        Err(StartError::Store("not written yet".into()))
    }
}

impl Running {
    /// Bound addresses, in the order of the listeners.
    pub fn addresses(&self) -> Vec<String> {
        Vec::new()
    }

    /// Builds a snapshot from what `Options::load` reads, then publishes it. A failure changes nothing.
    pub fn reload(&self) -> Result<ReloadSummary, String> {
        Err("not written yet".into())
    }

    /// Begins to stop: no new connections, what is in flight is finished within the grace period.
    pub fn stop(&self) {}

    /// Waits until the server has stopped, by whomever; the number of connections that were cut off.
    pub fn wait(self) -> u64 {
        0
    }

    /// What the server is doing.
    pub fn status(&self) -> Status {
        unreachable!("not written yet")
    }

    /// How long `stop` waits at most.
    pub fn grace_period(&self) -> Duration {
        Duration::ZERO
    }
}
