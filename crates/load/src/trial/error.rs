//! Why a trial cannot be made, for the person who asked for it: the place, the cause, the next step.
//!
//! One table for finding out and for running. Never an internal mistake: those are panics of tests.

use std::fmt::Display;
use std::io;
use std::path::Path;

/// Why a trial cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrialError {
    /// What is there cannot be tried as it is.
    #[error("{place}: {cause}\n  {next}")]
    Found {
        /// A file, with its line where there is one.
        place: String,
        /// What is the matter.
        cause: String,
        /// What to do about it.
        next: String,
    },
    /// One of the two sides does not run.
    #[error("{side}: {cause}\n  {next}")]
    Side {
        /// Which one: `nginx 1.22.1`, `onehop`.
        side: String,
        /// What happened, with the end of its log where there is one.
        cause: String,
        /// What to do about it.
        next: String,
    },
    /// The measurement itself failed.
    #[error("{0}")]
    Measurement(String),
    /// Somebody ended it.
    #[error("interrupted")]
    Interrupted,
}

impl TrialError {
    /// What is there cannot be tried.
    pub fn found(place: impl Display, cause: impl Into<String>, next: impl Into<String>) -> TrialError {
        TrialError::Found { place: place.to_string(), cause: cause.into(), next: next.into() }
    }

    /// A file that cannot be read.
    pub fn unreadable(path: &Path, error: &io::Error) -> TrialError {
        let cause = match error.kind() {
            io::ErrorKind::NotFound => "there is no such file".to_owned(),
            io::ErrorKind::PermissionDenied => "this user may not read it".to_owned(),
            _ => format!("it cannot be read: {error}"),
        };
        TrialError::found(path.display(), cause, "name a file or folder that is there and may be read")
    }
}
