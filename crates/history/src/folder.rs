//! The files of a history: where they lie, how they are written and read.
//!
//! Nothing is kept open but the lock: a file is written a few times a minute, and a folder that was removed is noticed.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::limits::DAMAGED_FILES_MAX;

/// What the names of files begin with, by kind: the levels, then events.
const KINDS: [&str; 5] = ["10s", "5min", "1h", "1d", "events"];

/// The ending of files that were set aside.
const DAMAGED: &str = ".damaged";

/// A folder that this process alone writes in, for as long as this value lives.
pub(crate) struct Folder {
    path: PathBuf,
    _lock: File,
}

/// A file of the folder.
pub(crate) struct Found {
    pub(crate) kind: usize,
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

impl Folder {
    /// Makes the folder where it is missing, and locks it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path.join("lock"))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::new(ErrorKind::WouldBlock, "another onehop writes there"),
            TryLockError::Error(error) => error,
        })?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// Every file of a history.
    pub(crate) fn files(&self) -> io::Result<Vec<Found>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            let read = name.to_str().and_then(|name| name.strip_suffix(".hist")?.split_once('-'));
            let Some((kind, start)) = read else { continue };
            let kind = KINDS.iter().position(|known| *known == kind);
            if let (Some(kind), Ok(start)) = (kind, start.parse()) {
                found.push(Found { kind, start, bytes: entry.metadata()?.len() });
            }
        }
        Ok(found)
    }

    /// Appends to a file that has so many bytes. A failure leaves it as it was.
    pub(crate) fn append(&self, kind: usize, start: u64, has: u64, bytes: &[u8]) -> io::Result<()> {
        let path = file(&self.path, kind, start);
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        if file.metadata()?.len() != has {
            return Err(io::Error::other("a file there was changed by another program"));
        }
        file.write_all(bytes).inspect_err(|_| {
            let _ = file.set_len(has);
        })
    }

    /// Cuts a file off.
    pub(crate) fn cut(&self, kind: usize, start: u64, bytes: u64) -> io::Result<()> {
        OpenOptions::new().write(true).open(file(&self.path, kind, start))?.set_len(bytes)
    }

    /// Renames a damaged file, and writes what was whole of it anew. Gives the new name for a person.
    pub(crate) fn set_aside(&self, kind: usize, start: u64, whole: &[u8]) -> io::Result<String> {
        let path = file(&self.path, kind, start);
        let mut aside = path.clone().into_os_string();
        aside.push(DAMAGED);
        fs::rename(&path, &aside)?;
        self.remove_oldest_damaged(Path::new(&aside));
        if !whole.is_empty() {
            self.append(kind, start, 0, whole)?;
        }
        Ok(Path::new(&aside).display().to_string())
    }

    fn remove_oldest_damaged(&self, newest: &Path) {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let damaged = entries.map(|entry| entry.path()).filter(|path| {
            path != newest
                && path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.ends_with(DAMAGED))
        });
        let mut damaged: Vec<_> =
            damaged.map(|path| (path.metadata().and_then(|found| found.modified()).ok(), path)).collect();
        damaged.sort();
        let beyond = (damaged.len() + 1).saturating_sub(DAMAGED_FILES_MAX);
        for (_, path) in damaged.into_iter().take(beyond) {
            let _ = fs::remove_file(path);
        }
    }

    /// Removes a file.
    pub(crate) fn remove(&self, kind: usize, start: u64) -> io::Result<()> {
        fs::remove_file(file(&self.path, kind, start))
    }
}

/// The first bytes of a file. It may be read while the folder cannot be written.
pub(crate) fn read(folder: &Path, kind: usize, start: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let mut read = Vec::with_capacity(usize::try_from(bytes).unwrap_or_default());
    File::open(file(folder, kind, start))?.take(bytes).read_to_end(&mut read)?;
    Ok(read)
}

fn file(folder: &Path, kind: usize, start: u64) -> PathBuf {
    folder.join(format!("{}-{start}.hist", KINDS[kind]))
}
