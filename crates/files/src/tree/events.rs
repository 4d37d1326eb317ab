//! What a keeper reports, and how it publishes a store.

use std::sync::Arc;
use std::time::Duration;

use super::StoreError;
use crate::store::{Skipped, Store};

/// What a keeper reports, for the log.
#[derive(Debug)]
pub enum KeeperEvent {
    /// A changed tree is served.
    Published {
        /// Files in it.
        files: usize,
        /// Files that are new, different or gone.
        changed: usize,
        /// From the first sign of a change.
        took: Duration,
    },
    /// Every compressed form is there.
    Compressed {
        /// Bytes of all compressed forms.
        bytes: u64,
        /// How long it took.
        took: Duration,
    },
    /// The process that compresses could not be started: the server does it itself.
    CompressorMissing {
        /// Why.
        reason: String,
    },
    /// The process that compresses ended too early, or answered nonsense. The file stays as it is.
    CompressorLost {
        /// The file, below the root.
        path: String,
        /// How it ended.
        reason: String,
        /// Another one goes on with the rest; otherwise it waits until the tree changes.
        goes_on: bool,
    },
    /// A changed tree is not served yet, because these paths are missing.
    HeldBack {
        /// Below the root.
        missing: Vec<String>,
    },
    /// A tree is served although these paths are still missing.
    PublishedIncomplete {
        /// Below the root.
        missing: Vec<String>,
    },
    /// Other entries than before are left out.
    Skipped(Skipped),
    /// The root is gone; the last store is still served.
    RootVanished,
    /// The root is there again.
    RootBack,
    /// Changes came faster than they were taken; the whole tree is looked at.
    Overflow,
    /// The tree is looked at from time to time, because its changes cannot be watched.
    Polling {
        /// Why.
        reason: String,
    },
    /// The tree could not be read; the last store is still served.
    Failed {
        /// Why.
        error: StoreError,
    },
}

/// Hands a store to the data plane.
pub type Publish = Arc<dyn Fn(Arc<Store>) + Send + Sync>;

/// Hears what happens.
pub type Events = Arc<dyn Fn(KeeperEvent) + Send + Sync>;
