//! Why a side-by-side run cannot be made, for the person who asked for it: the place, the cause, the next step.
//!
//! One table for finding out and for running. Never an internal mistake: those are panics of tests.

use std::fmt::Display;
use std::io;
use std::path::Path;

use onehop_adapt::Refusal;

/// Why a side-by-side run cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SideBySideError {
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

impl SideBySideError {
    /// What is there cannot be tried.
    pub fn found(place: impl Display, cause: impl Into<String>, next: impl Into<String>) -> SideBySideError {
        SideBySideError::Found { place: place.to_string(), cause: cause.into(), next: next.into() }
    }

    /// A file that cannot be read.
    pub fn unreadable(path: &Path, error: &io::Error) -> SideBySideError {
        Refusal::unreadable(path, error).into()
    }
}

impl From<Refusal> for SideBySideError {
    fn from(refusal: Refusal) -> SideBySideError {
        SideBySideError::Found { place: refusal.place(), cause: refusal.cause, next: refusal.next }
    }
}
