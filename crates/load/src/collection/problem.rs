//! Why a collection cannot be run: place, cause and next step.

use std::path::{Path, PathBuf};

/// Why a collection cannot be read. Its text is for a person.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", file.display())]
pub struct CollectionError {
    /// The file, the collection's or the environment's.
    pub file: PathBuf,
    problem: Problem,
}

/// The same without the file, which only the outermost knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    place: Option<String>,
    cause: String,
    next: String,
}

impl Problem {
    pub(super) fn new(cause: impl Into<String>, next: impl Into<String>) -> Problem {
        Problem { place: None, cause: cause.into(), next: next.into() }
    }

    pub(super) fn at(place: impl Into<String>, cause: impl Into<String>, next: impl Into<String>) -> Problem {
        Problem { place: Some(place.into()), cause: cause.into(), next: next.into() }
    }

    /// The same with its place, where it has none yet.
    pub(super) fn placed(self, place: impl Into<String>) -> Problem {
        Problem { place: self.place.or_else(|| Some(place.into())), ..self }
    }

    pub(super) fn of(self, file: &Path) -> CollectionError {
        CollectionError { file: file.to_owned(), problem: self }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(place) = &self.place {
            write!(formatter, "{place}: ")?;
        }
        write!(formatter, "{}. {}", self.cause, self.next)
    }
}
