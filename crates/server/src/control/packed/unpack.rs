//! Writes what applications need into the folder of the pack, or proves what lies there.
//!
//! Owns the promise that an application starts with exactly what was packed: a folder is written beside its place and
//! renamed when it is whole, and one that is found is compared file by file with the pack before it is used. Never
//! follows a link, never writes through what others may change. What was changed is put aside, not repaired: a server
//! that runs from it keeps it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::SystemTime;

use onehop_archive::PackError;
use onehop_archive::layout::{COMPLETE, Content, Entry, EntryKind, complete, entries};
use rustix::fs::OFlags;

use super::Packed;
use super::place::Kind;
use crate::control::supervise::folder::{hold, is_ours, make, own_user};
use crate::limits::{
    LIBRARY_KEPT_FOR, SWEPT_ENTRIES_MAX, UNPACK_ALONE_FILES_MAX, UNPACK_THREADS_MAX, UNPACK_UNFINISHED_AGE,
};

/// What applications need lies in the folder, as long as this lives.
#[derive(Debug)]
pub(in crate::control) struct Unpacked {
    /// Files that were written; none where they lay there already.
    pub(in crate::control) written: usize,
    /// Why what lay there was not used, if something did.
    pub(in crate::control) changed: Option<String>,
    /// Where a file system has locks, it keeps others from taking the folder for left behind.
    _lock: Option<File>,
}

impl Packed {
    /// Unpacks, or proves what was unpacked before. Blocks. An error is for a person.
    pub(in crate::control) fn unpack(&self) -> Result<Unpacked, String> {
        let folder = self.folder.path();
        match self.folder.kind() {
            Kind::Own => {}
            // Whoever runs as this user could not have changed it.
            Kind::Given => return Ok(Unpacked { written: 0, changed: None, _lock: hold(folder).ok() }),
            Kind::Nowhere => {
                return Err("there is no folder to unpack it into: set ONEHOP_CACHE to one".to_owned());
            }
        }
        let entries = entries(&self.index);
        let mut changed = None;
        if fs::symlink_metadata(folder).is_ok() {
            match self.use_what_is_there(&entries) {
                Ok(lock) => return Ok(Unpacked { written: 0, changed: None, _lock: Some(lock) }),
                Err(what) => changed = Some(what),
            }
            self.put_aside()?;
        }
        let fresh = self.beside("");
        // Its lock keeps others from sweeping it away while it is written, and stays with the folder.
        let written = make(&fresh, 0o700)
            .and_then(|()| hold(&fresh))
            .map_err(|error| self.failed(&fresh, &error.into()))
            .and_then(|lock| self.write(&fresh, &entries).map(|()| lock));
        let lock = match written {
            Ok(lock) => lock,
            Err(reason) => {
                let _ = fs::remove_dir_all(&fresh);
                return Err(reason);
            }
        };
        let written = entries.iter().filter(|entry| matches!(entry.kind, EntryKind::File(_))).count();
        match fs::rename(&fresh, folder) {
            Ok(()) => Ok(Unpacked { written, changed, _lock: Some(lock) }),
            Err(error) => {
                let _ = fs::remove_dir_all(&fresh);
                // Another server of the same pack was quicker, or something is in the way.
                let lock =
                    self.use_what_is_there(&entries).map_err(|_| self.failed(folder, &error.into()))?;
                Ok(Unpacked { written: 0, changed, _lock: Some(lock) })
            }
        }
    }

    /// Lets users other than our own come by, as whom applications run.
    pub(in crate::control) fn open_to_others(&self) -> io::Result<()> {
        let folder = self.folder.path();
        if *self.folder.kind() != Kind::Own || folder.metadata()?.mode() & 0o777 == 0o755 {
            return Ok(());
        }
        fs::set_permissions(folder, Permissions::from_mode(0o755))
    }

    /// Removes what earlier packs of this user left where this one lies: finished and not used for long, or not
    /// finished.
    pub(in crate::control) fn sweep(&self) {
        let Some(place) = self.folder.path().parent() else { return };
        let Ok(entries) = fs::read_dir(place) else { return };
        let ours = format!("onehop-pack-{}-", own_user());
        for entry in entries.take(SWEPT_ENTRIES_MAX).flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(&ours)) else { continue };
            let kept_for = if rest.contains('-') { UNPACK_UNFINISHED_AGE } else { LIBRARY_KEPT_FOR };
            let used = entry.metadata().and_then(|found| found.modified());
            let age = used.ok().and_then(|used| SystemTime::now().duration_since(used).ok());
            let is_old = age.is_some_and(|age| age > kept_for);
            // The lock is asked for last and held while it is removed: nobody takes it into use meanwhile.
            if is_old && path != self.folder.path() && is_ours(&path, true) {
                let Ok(folder) = File::open(&path) else { continue };
                if folder.try_lock().is_ok() {
                    let _ = fs::remove_dir_all(&path);
                }
            }
        }
    }

    /// The folder is in use from now on, if it is what was unpacked; else what of it is not.
    fn use_what_is_there(&self, entries: &[Entry<'_>]) -> Result<File, String> {
        let folder = self.folder.path();
        if !is_ours(folder, true) {
            return Err(folder.display().to_string());
        }
        // Before it is looked at: from now on nobody sweeps it away.
        let lock = hold(folder).map_err(|error| format!("{} ({error})", folder.display()))?;
        self.prove(entries)?;
        // Only so that it is not taken for unused.
        let _ = lock.set_modified(SystemTime::now());
        Ok(lock)
    }

    /// A name beside the folder, which nobody has.
    fn beside(&self, what: &str) -> PathBuf {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut name = self.folder.path().as_os_str().to_owned();
        name.push(format!("-{what}{}-{count}", std::process::id()));
        name.into()
    }

    /// What lies in the folder's place makes room. It stays while a server runs from it.
    fn put_aside(&self) -> Result<(), String> {
        let (folder, aside) = (self.folder.path(), self.beside("changed-"));
        fs::rename(folder, &aside).map_err(|error| {
            format!(
                "{} is not what was unpacked, and cannot be put aside: {error}; remove it",
                folder.display()
            )
        })?;
        let is_free =
            is_ours(&aside, true) && File::open(&aside).is_ok_and(|folder| folder.try_lock().is_ok());
        if is_free {
            let _ = fs::remove_dir_all(&aside);
        }
        Ok(())
    }

    fn write(&self, fresh: &Path, entries: &[Entry<'_>]) -> Result<(), String> {
        for entry in entries {
            let path = fresh.join(&entry.path);
            match &entry.kind {
                EntryKind::Folder => make(&path, 0o755),
                EntryKind::Link { to } => symlink(to, &path),
                EntryKind::File(_) => Ok(()),
            }
            .map_err(|error| self.failed(&path, &error.into()))?;
        }
        self.each_file(entries, |path, content| {
            let target = fresh.join(path);
            self.write_file(&target, path, content).map_err(|error| self.failed(&target, &error))
        })?;
        let said = fresh.join(COMPLETE);
        fs::write(&said, complete(self.pack.place())).map_err(|error| self.failed(&said, &error.into()))
    }

    fn write_file(&self, target: &Path, path: &str, content: &Content<'_>) -> Result<(), PackError> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(target)?;
        content.copy(&self.pack, path, self.folder.path(), &mut file)?;
        file.set_permissions(Permissions::from_mode(mode_of(content)))?;
        Ok(())
    }

    /// Whether everything lies in the folder as it was packed; else what does not.
    fn prove(&self, entries: &[Entry<'_>]) -> Result<(), String> {
        let folder = self.folder.path();
        let differs = |path: &Path| Err(path.display().to_string());
        let said = folder.join(COMPLETE);
        let is_whole = fs::read_to_string(&said).is_ok_and(|said| said == complete(self.pack.place()));
        if !is_whole {
            return differs(folder);
        }
        // Folders first: behind one that is a link nothing counts.
        for entry in entries {
            let path = folder.join(&entry.path);
            let is_right = match &entry.kind {
                EntryKind::Folder => is_ours(&path, true),
                EntryKind::Link { to } => fs::read_link(&path).is_ok_and(|found| found == Path::new(to)),
                EntryKind::File(_) => true,
            };
            if !is_right {
                return differs(&path);
            }
        }
        self.each_file(entries, |path, content| {
            let place = folder.join(path);
            if self.is_proved(&place, path, content) { Ok(()) } else { differs(&place) }
        })
    }

    fn is_proved(&self, place: &Path, path: &str, content: &Content<'_>) -> bool {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let opened = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(place);
        let Ok(file) = opened else { return false };
        let is_right = file.metadata().is_ok_and(|found| {
            found.is_file()
                && found.uid() == own_user()
                && found.mode() & 0o777 == mode_of(content)
                && found.len() == content.length()
        });
        let mut compared = Compared { file, buffer: Vec::new() };
        is_right && content.copy(&self.pack, path, self.folder.path(), &mut compared).is_ok()
    }

    /// Does something with each file, on a few threads where there are many; the first failure ends it.
    fn each_file(
        &self,
        entries: &[Entry<'_>],
        work: impl Fn(&str, &Content<'_>) -> Result<(), String> + Sync,
    ) -> Result<(), String> {
        let files: Vec<_> = entries
            .iter()
            .filter_map(|entry| match &entry.kind {
                EntryKind::File(content) => Some((entry.path.as_str(), content)),
                _ => None,
            })
            .collect();
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = if files.len() <= UNPACK_ALONE_FILES_MAX { 1 } else { cores.min(UNPACK_THREADS_MAX) };
        let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
        let (work, files) = (&work, &files);
        let run = || {
            while let Some((path, content)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(reason) = work(path, content) {
                    next.store(files.len(), Ordering::Relaxed);
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
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
        failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn failed(&self, path: &Path, error: &PackError) -> String {
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

/// Read-only: what runs is what was packed.
fn mode_of(content: &Content<'_>) -> u32 {
    if content.executable { 0o555 } else { 0o444 }
}

/// Takes only what a file holds, in its order.
struct Compared {
    file: File,
    buffer: Vec<u8>,
}

impl Write for Compared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.resize(bytes.len(), 0);
        self.file.read_exact(&mut self.buffer)?;
        if self.buffer == bytes { Ok(bytes.len()) } else { Err(ErrorKind::InvalidData.into()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
