//! Why a store cannot be used, for a person: the place, the cause and the next step.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use crate::limits::LOCK_WAIT_MAX;

/// What to do about an error of the operating system, where that is known.
fn next_step(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "; free some space on this disk",
        ErrorKind::FileTooLarge => "; raise the limit on the size of files (`ulimit -f`)",
        ErrorKind::ReadOnlyFilesystem => "; make this file system writable",
        ErrorKind::PermissionDenied => "; the server's user needs access to it",
        _ => "",
    }
}

/// Why a store did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A name or a key that no store takes.
    #[error("{name:?} cannot be a name in the certificate store: {why}")]
    Name {
        /// The name as it was given.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The operating system refused.
    #[error("cannot {action} {}: {source}{}", path.display(), next_step(source))]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// A file or folder with more in it than the store reads.
    #[error("{} is larger than the certificate store reads ({bound}): move it away", path.display())]
    TooLarge {
        /// The file or folder.
        path: PathBuf,
        /// The bound, with its unit.
        bound: String,
    },
    /// Other users could read or replace the private keys in the folder.
    #[error("{} holds private keys, but {why}: run `{command}`", path.display())]
    Exposed {
        /// The folder.
        path: PathBuf,
        /// Who else has access.
        why: String,
        /// The command that fixes it.
        command: String,
    },
    /// Another process holds a lock for longer than it may.
    #[error(
        "another process holds the lock {name:?} of the certificate store since {} seconds: end it, or give this \
         server a store of its own", LOCK_WAIT_MAX.as_secs()
    )]
    Locked {
        /// The lock.
        name: String,
    },
}
