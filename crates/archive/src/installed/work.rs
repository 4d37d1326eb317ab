//! What verifying, repairing and writing a pack's folder share: its entries, threads, and the order to stop.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::Packed;
use super::lock::STOPPED;
use crate::PackError;
use crate::layout::{Content, Entry, EntryKind, entries, is_code};
use crate::limits::{UNPACK_ALONE_FILES_MAX, UNPACK_THREADS_MAX};

/// One time that a folder is verified or written.
pub(super) struct Work<'a> {
    pub(super) packed: &'a Packed,
    pub(super) entries: Vec<Entry<'a>>,
    /// No caller waits for it any more.
    pub(super) stop: &'a AtomicBool,
}

/// What ends the work on files.
pub(super) struct Flaw(
    /// For a person.
    pub(super) String,
);

impl Work<'_> {
    pub(super) fn write_file(
        &self,
        target: &Path,
        path: &str,
        content: &Content<'_>,
    ) -> Result<(), PackError> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(target)?;
        let mut file = self.stoppable(file);
        content.copy(&self.packed.pack, path, self.packed.folder.path(), &mut file)?;
        file.to.set_permissions(Permissions::from_mode(mode_of(path, content)))?;
        Ok(())
    }

    /// Does something with each file, on a few threads where there are many; the first flaw ends it.
    pub(super) fn each_file(
        &self,
        work: impl Fn(usize, &str, &Content<'_>) -> Result<(), Flaw> + Sync,
    ) -> Result<(), Flaw> {
        let files: Vec<_> = self
            .entries
            .iter()
            .enumerate()
            .filter_map(|(number, entry)| match &entry.kind {
                EntryKind::File(content) => Some((number, entry.path.as_str(), content)),
                _ => None,
            })
            .collect();
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = if files.len() <= UNPACK_ALONE_FILES_MAX { 1 } else { cores.min(UNPACK_THREADS_MAX) };
        let (next, flaw) = (AtomicUsize::new(0), Mutex::new(None));
        let (work, files, flaw) = (&work, &files, &flaw);
        let run = || {
            while let Some((number, path, content)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                let done =
                    if self.stops() { Err(Flaw(STOPPED.to_owned())) } else { work(*number, path, content) };
                if let Err(found) = done {
                    next.store(files.len(), Ordering::Relaxed);
                    flaw.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(found);
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..threads {
                // What one that cannot be started would have done is done by the others.
                let _ = thread::Builder::new().spawn_scoped(scope, run);
            }
            run();
        });
        let found = flaw.lock().unwrap_or_else(PoisonError::into_inner).take();
        // What was interrupted says nothing about a file.
        found.map_or(Ok(()), |found| Err(if self.stops() { Flaw(STOPPED.to_owned()) } else { found }))
    }

    pub(super) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Takes nothing more once the work is to stop.
    pub(super) fn stoppable<W: Write>(&self, to: W) -> Stoppable<'_, W> {
        Stoppable { to, stop: self.stop }
    }
}

/// Code is read-only: what runs is what was packed. Data may be written by its owner.
pub(super) fn mode_of(path: &str, content: &Content<'_>) -> u32 {
    match (content.executable, is_code(path, content.executable)) {
        (true, _) => 0o555,
        (false, true) => 0o444,
        (false, false) => 0o644,
    }
}

/// See [`Work::stoppable`].
pub(super) struct Stoppable<'a, W> {
    to: W,
    stop: &'a AtomicBool,
}

impl<W: Write> Write for Stoppable<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::Error::other(STOPPED));
        }
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl Packed {
    pub(super) fn failed(&self, path: &Path, error: &PackError) -> String {
        let path = path.display();
        let PackError::Io(error) = error else { return format!("{} {error}", self.index.name) };
        let bytes: u64 = entries(&self.index)
            .iter()
            .map(|entry| if let EntryKind::File(content) = &entry.kind { content.length() } else { 0 })
            .sum();
        let room = bytes.div_ceil(1024 * 1024);
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => format!(
                "cannot unpack {path}: {error}; make room for {room} MiB, or set ONEHOP_CACHE to a folder that has it"
            ),
            _ => format!(
                "cannot unpack {path}: {error}; set ONEHOP_CACHE to a folder that this user may write in"
            ),
        }
    }
}
