//! Why a collection cannot be run: place, cause and next step.

use std::path::{Path, PathBuf};

use super::limits::SHOWN_LETTERS_MAX;

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
        Problem { place: None, cause: printable(&cause.into()), next: next.into() }
    }

    pub(super) fn at(place: impl Into<String>, cause: impl Into<String>, next: impl Into<String>) -> Problem {
        Problem::new(cause, next).placed(place)
    }

    /// The same with its place, where it has none yet.
    pub(super) fn placed(self, place: impl Into<String>) -> Problem {
        Problem { place: self.place.or_else(|| Some(printable(&place.into()))), ..self }
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
        let end = if self.cause.ends_with(['?', '.']) { "" } else { "." };
        write!(formatter, "{}{end} {}", self.cause, self.next)
    }
}

/// A file's text as it may stand in a line for a person: what would steer a terminal is shown as a box, what is very
/// long is cut.
pub(super) fn printable(text: &str) -> String {
    let shown = |letter: char| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter };
    let mut out: String = text.chars().take(SHOWN_LETTERS_MAX).map(shown).collect();
    if text.chars().nth(SHOWN_LETTERS_MAX).is_some() {
        out.push('…');
    }
    out
}
