//! A position in a configuration: file and line.

use std::path::Path;
use std::sync::Arc;

/// Where a directive stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The file.
    pub file: Arc<Path>,
    /// The line, from 1.
    pub line: u32,
}

impl std::fmt::Display for Position {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}", self.file.display(), self.line)
    }
}

impl Position {
    /// `line 4 of nginx.conf`.
    pub fn words(&self) -> String {
        format!("line {} of {}", self.line, self.file.file_name().unwrap_or_default().to_string_lossy())
    }
}
