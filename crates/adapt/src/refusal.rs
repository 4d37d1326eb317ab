//! Why a configuration cannot be translated, for the person whose configuration it is.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::position::Position;

/// What a comment about a directive that was not translated begins with, so that it can be looked for.
pub(crate) const LEFT_OUT: &str = "NOT CARRIED OVER";

/// A directive or file that has no equal in an Onehopfile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; none where the file as a whole is refused.
    pub line: Option<u32>,
    /// What the reason is.
    pub cause: String,
    /// What to do about it.
    pub next: String,
}

impl Refusal {
    /// Refuses a directive.
    pub(crate) fn at(place: &Position, cause: impl Into<String>, next: impl Into<String>) -> Refusal {
        let (file, line) = (place.file.to_path_buf(), Some(place.line));
        Refusal { file, line, cause: cause.into(), next: next.into() }
    }

    /// Refuses a whole file.
    pub(crate) fn of_file(path: &Path, cause: impl Into<String>, next: impl Into<String>) -> Refusal {
        Refusal { file: path.to_owned(), line: None, cause: cause.into(), next: next.into() }
    }

    /// Refuses a file that cannot be read.
    pub fn unreadable(path: &Path, error: &io::Error) -> Refusal {
        let cause = match error.kind() {
            io::ErrorKind::NotFound => "there is no such file".to_owned(),
            io::ErrorKind::PermissionDenied => "this user may not read it".to_owned(),
            _ => format!("it cannot be read: {error}"),
        };
        Refusal::of_file(path, cause, "name a file or folder that is there and may be read")
    }

    /// `nginx.conf:4`, or the file alone.
    pub fn place(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line}", self.file.display()),
            None => self.file.display().to_string(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}\n  {}", self.place(), self.cause, self.next)
    }
}

impl std::error::Error for Refusal {}
