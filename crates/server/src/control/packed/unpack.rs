//! Writes what applications need into the folder of the pack, or uses what lies there.
//!
//! Owns the promise that an application starts with exactly the code that was packed, and keeps what it wrote: a folder is
//! written beside its place and renamed when it is whole, and one that is found is compared (`prove.rs`) and repaired
//! (`repair.rs`) before it is used; one server at a time does so (`turn.rs`). Never follows a link, never writes through
//! what others may change, never removes a folder from which an application ran.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use onehop_archive::PackError;
use onehop_archive::layout::{COMPLETE, Content, Entry, EntryKind, complete, entries, is_code};

use super::Packed;
use super::place::Kind;
use super::prove::{Named, There};
use super::repair::Repaired;
use super::turn::{ASIDE, Turn, beside, fresh, lies_at};
use crate::control::supervise::folder::{hold, make, own_user};
use crate::limits::{UNPACK_ALONE_FILES_MAX, UNPACK_THREADS_MAX};

/// Why nothing is unpacked any more.
pub(super) const STOPPED: &str = "the server stops";

/// What applications need lies in the folder, as long as this lives.
#[derive(Debug)]
pub(in crate::control) struct Unpacked {
    /// Files of a new folder; none where it lay there already.
    pub(in crate::control) written: usize,
    /// What the application changed or added in a folder that lay there.
    pub(in crate::control) kept: Named,
    /// What was put back there.
    pub(in crate::control) repaired: Repaired,
    /// Where a folder of another user, or one open to others, is now that lay there.
    pub(in crate::control) aside: Option<PathBuf>,
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
pub(super) struct Flaw(
    /// For a person.
    pub(super) String,
);

impl Unpacked {
    fn with(lock: Option<File>) -> Self {
        Self { written: 0, kept: Named::default(), repaired: Repaired::default(), aside: None, lock }
    }

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
        match self.folder.kind() {
            Kind::Own => {}
            // Whoever runs as this user could not have changed it.
            Kind::Given => return Ok(Unpacked::with(hold(folder).ok())),
            Kind::Nowhere => {
                return Err("there is no folder to unpack it into: set ONEHOP_CACHE to one".to_owned());
            }
        }
        let work = Work { packed: self, entries: entries(&self.index), stop };
        if let There::Ours(lock, differences) = work.use_what_is_there()?
            && !differences.needs_repair()
        {
            return Ok(Unpacked { kept: differences.kept, ..Unpacked::with(Some(lock)) });
        }
        self.folder.make_place()?;
        let _turn = Turn::take(folder, stop)?;
        let aside = match work.use_what_is_there()? {
            There::Ours(lock, differences) => {
                let repaired =
                    if differences.needs_repair() { work.repair(&differences)? } else { Repaired::default() };
                return Ok(Unpacked { kept: differences.kept, repaired, ..Unpacked::with(Some(lock)) });
            }
            There::Nothing => None,
            There::Foreign => self.put_aside()?,
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
                There::Ours(lock, differences) if !differences.needs_repair() => {
                    Ok(Unpacked { aside, kept: differences.kept, ..Unpacked::with(Some(lock)) })
                }
                _ => Err(self.failed(folder, &error.into())),
            };
        }
        let written = work.entries.iter().filter(|entry| matches!(entry.kind, EntryKind::File(_))).count();
        Ok(Unpacked { written, aside, ..Unpacked::with(Some(lock)) })
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

    /// What lies in the folder's place makes room, and is kept: an application may have written in it.
    fn put_aside(&self) -> Result<Option<PathBuf>, String> {
        let (folder, aside) = (self.folder.path(), beside(self.folder.path(), ASIDE.trim_start_matches('-')));
        match fs::rename(folder, &aside) {
            Ok(()) => Ok(Some(aside)),
            // Another server did.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => {
                let is_foreign = fs::symlink_metadata(folder).is_ok_and(|found| found.uid() != own_user());
                let advice = if is_foreign {
                    "it belongs to another user: set ONEHOP_CACHE to a folder in which nobody else may write"
                } else {
                    "remove it"
                };
                let folder = folder.display();
                Err(format!("{folder} is not what was unpacked, and cannot be put aside: {error}; {advice}"))
            }
        }
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
        let written = self.each_file(|_, path, content| {
            let target = fresh.join(path);
            self.write_file(&target, path, content).map_err(|error| Flaw(failed(&target, error)))
        });
        written.map_err(|Flaw(reason)| reason)?;
        let said = fresh.join(COMPLETE);
        fs::write(&said, complete(self.packed.pack.place())).map_err(|error| failed(&said, error.into()))?;
        self.packed.note_record(fresh);
        Ok(())
    }

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
