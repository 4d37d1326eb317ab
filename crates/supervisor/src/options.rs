//! What the program decides about workers.

use std::ffi::OsString;
use std::path::PathBuf;

/// A program, and its first arguments.
pub type ProgramLine = (PathBuf, Vec<OsString>);

/// How workers are started.
#[derive(Debug, Clone, Default)]
pub struct SuperviseOptions {
    /// The program that prepares a worker's process and then becomes it; `None` starts workers directly, without
    /// limits and without a parent whose death they notice.
    pub launcher: Option<ProgramLine>,
    /// The program that runs [`guard_workers`](crate::guard_workers); `None` does without.
    pub guard: Option<ProgramLine>,
    /// A developer works on the applications: browsers are shown why one does not start, and handlers run with
    /// NODE_ENV=development. A change of their files is a reload.
    pub watch: bool,
}
