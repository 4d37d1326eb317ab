//! Files read with a bound, and walked with one.
//!
//! Every path may be a user's: huge, odd, a loop of links. Never follows a link to a folder.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use onehop_config::{Entry, FileSource, Source};

pub(super) use onehop_adapt::paths::{below, normal};

/// Bytes of one file of configuration or source: more is not written by hand.
pub(super) const TEXT_BYTES_MAX: u64 = 2 * 1024 * 1024;
/// Entries that a walk looks at.
const ENTRIES_MAX: usize = 4000;
/// Folders that hold other people's code, or what a build leaves.
const SKIPPED: [&str; 8] =
    ["node_modules", "dist", "build", "coverage", "test", "tests", "__tests__", "bower_components"];

/// The text of a file of at most so many bytes.
pub(super) fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<String> {
    let file = std::fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is too large"));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Files below a folder, the nearest first and then by name, at most so many that are wanted.
pub(super) fn walk(folder: &Path, files_max: usize, is_wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = VecDeque::from([folder.to_owned()]);
    let mut looked_at = 0;
    while let Some(folder) = folders.pop_front() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut paths = Vec::new();
        for entry in entries.flatten() {
            looked_at += 1;
            if looked_at > ENTRIES_MAX {
                break;
            }
            paths.push((entry.path(), entry.file_type().ok()));
        }
        paths.sort_by(|one, other| one.0.cmp(&other.0));
        for (path, kind) in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with('.') {
                continue;
            }
            match kind {
                Some(kind) if kind.is_dir() && !SKIPPED.contains(&name.as_ref()) => folders.push_back(path),
                Some(kind) if kind.is_file() && found.len() < files_max && is_wanted(&path) => {
                    found.push(path);
                }
                _ => {}
            }
        }
        if found.len() >= files_max || looked_at > ENTRIES_MAX {
            break;
        }
    }
    found
}

/// A folder and those above it, at most so many.
pub(super) fn upwards(folder: &Path) -> impl Iterator<Item = &Path> {
    /// Monorepos nest about three deep.
    const LEVELS_MAX: usize = 8;
    folder.ancestors().take(LEVELS_MAX)
}

/// The file system, with [`read_bounded`] for texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct BoundedSource;

impl Source for BoundedSource {
    fn read(&self, path: &Path) -> io::Result<String> {
        read_bounded(path, TEXT_BYTES_MAX)
    }

    fn entry(&self, path: &Path) -> Option<Entry> {
        FileSource.entry(path)
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        FileSource.glob(pattern)
    }

    fn env(&self, name: &str) -> Option<String> {
        FileSource.env(name)
    }

    fn working_directory(&self) -> PathBuf {
        FileSource.working_directory()
    }
}
