//! Writes what applications need into the folder of the pack, or uses what lies there.
//!
//! Owns the promise that an application starts with exactly what was packed: a folder is written beside its place and
//! renamed when it is whole, and one that is found is proved (`prove.rs`) before it is used; one server at a time does so
//! (`turn.rs`). Never follows a link, never writes through what others may change, never removes what it did not make.
//! What was changed is put aside, not repaired: a server that runs from it keeps it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use onehop_archive::PackError;
use onehop_archive::layout::{COMPLETE, Content, Entry, EntryKind, complete, entries};

use super::Packed;
use super::place::Kind;
use super::prove::There;
use super::turn::{Turn, beside, fresh, lies_at};
use crate::control::supervise::folder::{hold, is_ours, make, own_user};
use crate::limits::{UNPACK_ALONE_FILES_MAX, UNPACK_THREADS_MAX};

/// Why nothing is unpacked any more.
pub(super) const STOPPED: &str = "the server stops";

/// What applications need lies in the folder, as long as this lives.
#[derive(Debug)]
pub(in crate::control) struct Unpacked {
    /// Files that were written; none where they lay there already.
    pub(in crate::control) written: usize,
    /// Why what lay there was not used, if something did.
    pub(in crate::control) changed: Option<String>,
    /// Where a file system has locks, it keeps others from taking the folder for left behind.
    lock: Option<File>,
}

/// One time that a folder is proved or written.
pub(super) struct Work<'a> {
    pub(super) packed: &'a Packed,
    pub(super) entries: Vec<Entry<'a>>,
    /// Nobody wants it any more.
    pub(super) stop: &'a AtomicBool,
}

/// What ends the work on files.
pub(super) enum Flaw {
    /// This in the folder is not what was packed.
    Differs(String),
    /// It cannot be done; for a person.
    Failed(String),
}

impl Unpacked {
    /// Whether it still lies there: caches are what people and cleaners of folders empty.
    pub(in crate::control) fn lies_in(&self, folder: &Path) -> bool {
        folder.join(COMPLETE).is_file() && self.lock.as_ref().is_none_or(|lock| lies_at(lock, folder))
    }
}

impl Packed {
    /// Unpacks, or proves what was unpacked before; ends early, and leaves nothing, once `stop` is set. Blocks. An error
    /// is for a person.
    pub(in crate::control) fn unpack(&self, stop: &AtomicBool) -> Result<Unpacked, String> {
        let folder = self.folder.path();
        let found = |lock| Unpacked { written: 0, changed: None, lock: Some(lock) };
        match self.folder.kind() {
            Kind::Own => {}
            // Whoever runs as this user could not have changed it.
            Kind::Given => return Ok(Unpacked { written: 0, changed: None, lock: hold(folder).ok() }),
            Kind::Nowhere => {
                return Err("there is no folder to unpack it into: set ONEHOP_CACHE to one".to_owned());
            }
        }
        let work = Work { packed: self, entries: entries(&self.index), stop };
        if let There::Right(lock) = work.use_what_is_there()? {
            return Ok(found(lock));
        }
        self.folder.make_place()?;
        let _turn = Turn::take(folder, stop)?;
        let changed = match work.use_what_is_there()? {
            There::Right(lock) => return Ok(found(lock)),
            There::Nothing => None,
            There::Changed(what) => {
                self.put_aside()?;
                Some(what)
            }
        };
        // What others left there may take the room that is needed.
        self.sweep();
        let (fresh, lock) =
            fresh(|| beside(folder, "")).map_err(|(path, error)| self.failed(&path, &error.into()))?;
        if let Err(reason) = work.write(&fresh) {
            let _ = fs::remove_dir_all(&fresh);
            return Err(reason);
        }
        if let Err(error) = fs::rename(&fresh, folder) {
            let _ = fs::remove_dir_all(&fresh);
            // Where there are no locks another server may have been quicker; or something is in the way.
            return match work.use_what_is_there()? {
                There::Right(lock) => Ok(Unpacked { changed, ..found(lock) }),
                _ => Err(self.failed(folder, &error.into())),
            };
        }
        let written = work.entries.iter().filter(|entry| matches!(entry.kind, EntryKind::File(_))).count();
        Ok(Unpacked { written, changed, lock: Some(lock) })
    }

    /// Lets the user come by as whom an application runs. An error is for a person.
    pub(in crate::control) fn open_to(&self, user: u32) -> Result<(), String> {
        let folder = self.folder.path();
        if *self.folder.kind() == Kind::Own {
            let opened = folder.metadata().and_then(|found| match found.mode() & 0o777 {
                0o755 => Ok(()),
                _ => fs::set_permissions(folder, Permissions::from_mode(0o755)),
            });
            opened.map_err(|error| {
                format!("its user cannot be let into the folder of the pack, {}: {error}", folder.display())
            })?;
        }
        for above in folder.ancestors().skip(1).filter(|_| user != 0) {
            let Ok(found) = above.metadata() else { continue };
            // Whether the user is of a group that may enter is not known here.
            if found.uid() != user && found.mode() & 0o011 == 0 {
                return Err(format!(
                    "its user cannot come by {above}, in which the pack is unpacked: open that with \
                     `chmod a+x {above}`, or set ONEHOP_CACHE to a folder that others may enter",
                    above = above.display()
                ));
            }
        }
        Ok(())
    }

    /// What lies in the folder's place makes room. It stays while a server runs from it.
    fn put_aside(&self) -> Result<(), String> {
        let (folder, aside) = (self.folder.path(), beside(self.folder.path(), "changed-"));
        let moved = fs::rename(folder, &aside);
        if moved.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            // Somebody else did.
            return Ok(());
        }
        moved.map_err(|error| {
            let is_foreign = fs::symlink_metadata(folder).is_ok_and(|found| found.uid() != own_user());
            let advice = if is_foreign {
                "it belongs to another user: set ONEHOP_CACHE to a folder in which nobody else may write"
            } else {
                "remove it"
            };
            let folder = folder.display();
            format!("{folder} is not what was unpacked, and cannot be put aside: {error}; {advice}")
        })?;
        let is_free =
            is_ours(&aside, true) && File::open(&aside).is_ok_and(|folder| folder.try_lock().is_ok());
        if is_free {
            let _ = fs::remove_dir_all(&aside);
        }
        Ok(())
    }

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

impl Work<'_> {
    fn write(&self, fresh: &Path) -> Result<(), String> {
        let failed = |path: &Path, error: PackError| self.packed.failed(path, &error);
        for entry in &self.entries {
            let path = fresh.join(&entry.path);
            match &entry.kind {
                EntryKind::Folder => make(&path, 0o755),
                EntryKind::Link { to } => symlink(to, &path),
                EntryKind::File(_) => Ok(()),
            }
            .map_err(|error| failed(&path, error.into()))?;
        }
        let written = self.each_file(|path, content| {
            let target = fresh.join(path);
            self.write_file(&target, path, content).map_err(|error| Flaw::Failed(failed(&target, error)))
        });
        written.map_err(|(Flaw::Differs(reason) | Flaw::Failed(reason))| reason)?;
        let said = fresh.join(COMPLETE);
        fs::write(&said, complete(self.packed.pack.place())).map_err(|error| failed(&said, error.into()))
    }

    fn write_file(&self, target: &Path, path: &str, content: &Content<'_>) -> Result<(), PackError> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(target)?;
        let mut file = self.stoppable(file);
        content.copy(&self.packed.pack, path, self.packed.folder.path(), &mut file)?;
        file.to.set_permissions(Permissions::from_mode(mode_of(content)))?;
        Ok(())
    }

    /// Does something with each file, on a few threads where there are many; the first flaw ends it.
    pub(super) fn each_file(
        &self,
        work: impl Fn(&str, &Content<'_>) -> Result<(), Flaw> + Sync,
    ) -> Result<(), Flaw> {
        let files: Vec<_> = self
            .entries
            .iter()
            .filter_map(|entry| match &entry.kind {
                EntryKind::File(content) => Some((entry.path.as_str(), content)),
                _ => None,
            })
            .collect();
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = if files.len() <= UNPACK_ALONE_FILES_MAX { 1 } else { cores.min(UNPACK_THREADS_MAX) };
        let (next, flaw) = (AtomicUsize::new(0), Mutex::new(None));
        let (work, files, flaw) = (&work, &files, &flaw);
        let run = || {
            while let Some((path, content)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                let done =
                    if self.stops() { Err(Flaw::Failed(STOPPED.to_owned())) } else { work(path, content) };
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
        found.map_or(Ok(()), |found| Err(if self.stops() { Flaw::Failed(STOPPED.to_owned()) } else { found }))
    }

    pub(super) fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Takes nothing more once the work is to stop.
    pub(super) fn stoppable<W: Write>(&self, to: W) -> Stoppable<'_, W> {
        Stoppable { to, stop: self.stop }
    }
}

/// Read-only: what runs is what was packed.
pub(super) fn mode_of(content: &Content<'_>) -> u32 {
    if content.executable { 0o555 } else { 0o444 }
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
