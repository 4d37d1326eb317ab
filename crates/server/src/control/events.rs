//! What the control plane has to say; the program decides how it is shown.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Receives events, from any thread; must not block for long.
pub type EventSink = Arc<dyn Fn(Event) + Send + Sync>;

/// Something that a person or a log wants to know.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Files of a root are being read: so many until now.
    Reading {
        /// The root.
        root: PathBuf,
        /// Files until now.
        files: usize,
        /// Bytes until now.
        bytes: u64,
    },
    /// A root is in memory.
    Stored {
        /// The root.
        root: PathBuf,
        /// Files.
        files: usize,
        /// Their bytes.
        bytes: u64,
        /// How many of them stay on disk.
        on_disk: usize,
        /// How long it took.
        took: Duration,
    },
    /// Compression of a root goes on behind: so many files of so many.
    Compressing {
        /// The root.
        root: PathBuf,
        /// Files done.
        done: usize,
        /// Files in all.
        total: usize,
    },
    /// All forms of a root are ready.
    Compressed {
        /// The root.
        root: PathBuf,
        /// Bytes of the compressed forms.
        compressed_bytes: u64,
        /// How long it took.
        took: Duration,
    },
    /// A listener is bound.
    Listening {
        /// `http://127.0.0.1:8080`, or `unix//run/onehop.sock`.
        url: String,
        /// `127.0.0.1:8080`, as bound; the path for a Unix socket.
        address: String,
    },
    /// The admin endpoint is bound.
    AdminListening {
        /// Its address.
        address: String,
    },
    /// Requests are answered from now on.
    Ready {
        /// Since the start of the process.
        took: Duration,
    },
    /// A changed tree was published.
    TreePublished {
        /// The root.
        root: PathBuf,
        /// Files that are new or changed.
        changed: usize,
        /// Files in all.
        files: usize,
    },
    /// A reload was published.
    Reloaded {
        /// Sites now.
        sites: usize,
    },
    /// A reload changed nothing; why.
    ReloadFailed {
        /// For a person.
        reason: String,
    },
    /// A stop has begun; so many requests are in flight.
    Stopping {
        /// Requests in flight.
        in_flight: u64,
    },
    /// Everything in flight was answered, or the grace period is over.
    Stopped {
        /// Connections that were cut off.
        cut_off: u64,
    },
    /// Something is not as it should be, and the server goes on.
    Warning {
        /// For a person: place, cause, next step.
        message: String,
    },
}
