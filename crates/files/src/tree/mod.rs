//! Builds stores out of directory trees and keeps them up to date.
//!
//! Owns everything between the file system and a published [`Store`](crate::store::Store): what is served of a tree
//! (`scan.rs`), its bytes (`read.rs`), compressed forms (`compress.rs`, `variants.rs`, in a process of their
//! own: `compressor_process.rs` and `compressor.rs`), and the thread that watches a tree and publishes its changes as one store (`keeper.rs`). Never publishes bytes that no
//! file had, a tree that no moment had, or a file outside the root; never makes a request wait.
//!
//! Read next: `read.rs`, then `keeper.rs`.

mod absent;
mod assemble;
mod compress;
mod compressor;
mod compressor_process;
mod events;
mod frames;
mod hash;
mod hold;
mod index_assets;
mod inotify;
mod keeper;
mod packed;
mod prepare;
mod publisher;
mod read;
mod releases;
mod resolve;
mod scan;
mod stop;
mod variants;
mod watcher;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use onehop_config::checked::Encoding;

pub use self::absent::absent_below;
pub use self::compressor::{prepare_forms, prepare_forms_for_server};
pub use self::compressor_process::CompressorProgram;
pub use self::events::{Events, KeeperEvent, Publish};
pub use self::keeper::Keeper;
pub use self::packed::packed;
pub use self::prepare::{Prepared, prepare};
pub use self::read::read;
pub use crate::store::budget::MemoryBudget;

/// Which tree is served, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreSpec {
    /// The root, absolute. It may be a symbolic link and is resolved at each read.
    pub root: PathBuf,
    /// Files and folders whose name begins with a dot are served too; `.well-known` always is.
    pub dotfiles: bool,
    /// Symbolic links that leave the root are followed.
    pub follow_outside: bool,
    /// Files and folders that are treated as if they were not there, as [`absent_below`] gives them.
    pub absent: Vec<String>,
    /// Compressed forms to prepare.
    pub compress: Vec<Encoding>,
    /// A single-page app's index page, below the root. Changes are not published while it, or an asset
    /// that it names, is missing.
    pub index: Option<String>,
    /// Builds before the latest one whose hashed assets are kept.
    pub keep_releases: usize,
    /// How long changes are held back at most; [`crate::limits::HOLD_BACK_MAX`] unless a test says otherwise.
    pub hold_back: Duration,
}

/// Whether a tree can be served: lists it, and opens no file.
///
/// # Errors
///
/// What a read would fail with.
pub fn check(spec: &StoreSpec) -> Result<(), StoreError> {
    scan::scan(spec).map(drop)
}

/// Hears how far a read is; for a progress bar. Called from several threads.
pub trait Progress: Sync {
    /// The tree holds so many files and bytes that are to be read.
    fn found(&self, files: usize, bytes: u64) {
        let _ = (files, bytes);
    }

    /// So many files and bytes have been read.
    fn files(&self, done: usize, bytes: u64) {
        let _ = (done, bytes);
    }

    /// Of so many files that are worth compressing, so many have their forms.
    fn forms(&self, done: usize, of: usize) {
        let _ = (done, of);
    }
}

/// Nobody listens.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Progress for Silent {}

/// Why a tree cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing stands at the root.
    #[error("there is no folder {}: {} exists, but nothing named {missing:?} is in it", root.display(), nearest.display())]
    MissingRoot {
        /// As configured.
        root: PathBuf,
        /// The nearest parent that exists.
        nearest: PathBuf,
        /// The name that is missing there.
        missing: std::ffi::OsString,
    },
    /// The root is a file.
    #[error("{} is not a folder", root.display())]
    NotAFolder {
        /// As configured.
        root: PathBuf,
    },
    /// More files and folders than a store may hold.
    #[error("{} holds more than {max} files and folders: is it the folder that should be served?", root.display())]
    TooManyFiles {
        /// As configured.
        root: PathBuf,
        /// The bound.
        max: usize,
    },
    /// Folders within folders beyond the bound.
    #[error("{} lies more than {max} folders deep", path.display())]
    TooDeep {
        /// The folder.
        path: PathBuf,
        /// The bound.
        max: usize,
    },
    /// The system refuses, and not for want of permission on a single file.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// What was read.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The server stops.
    #[error("cancelled")]
    Cancelled,
}

impl StoreError {
    /// What a person may try.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::MissingRoot { root, .. } => {
                let name = root.file_name()?.to_str()?;
                BUILD_FOLDERS.contains(&name).then(|| {
                    format!("`{name}` is usually made by a build: did you run it (`npm run build`)?")
                })
            }
            _ => None,
        }
    }
}

/// Names that build tools give to the folder they write.
const BUILD_FOLDERS: [&str; 6] = ["dist", "build", "out", "public", "_site", "www"];

#[cfg(test)]
mod tests;
