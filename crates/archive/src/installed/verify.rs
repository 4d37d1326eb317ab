//! Compares the folder of the pack with the pack.
//!
//! Owns the comparison of every folder, link and file, and the decision what of a difference is kept: data that changed
//! since it was unpacked, and whatever was added, belong to the application. Code that changed, and what is missing, is put
//! back (`repair.rs`). Distinguishes a changed folder from a pack that was changed itself. Never writes, never follows a
//! link.

use std::collections::HashSet;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::layout::{COMPLETE, Content, EntryKind, RECORD, complete, is_code};
use rustix::fs::OFlags;

use super::lock::lies_at;
use super::named::Named;
use super::work::{Flaw, Work, mode_of};
use crate::limits::UNPACKED_ADDED_COUNTED_MAX;
use crate::private_folder::{hold, is_ours, own_user};

/// What lies in the folder's place.
pub(super) enum There {
    /// Nothing.
    Nothing,
    /// Our own folder; it is in use as long as the lock lives.
    Ours(File, Differences),
    /// Something else.
    Foreign,
}

/// How the folder differs from the pack.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// What has to be put back, each after the folder that it lies in.
    pub(super) wrong: Vec<Wrong>,
    /// What the application changed or added.
    pub(super) kept: Named,
    /// The note that everything was written is not there, or another one.
    pub(super) is_unfinished: bool,
}

impl Differences {
    /// Whether something has to be written before the folder can be used.
    pub(super) fn needs_repair(&self) -> bool {
        self.is_unfinished || !self.wrong.is_empty()
    }
}

/// An entry that is not as it was packed.
#[derive(Debug)]
pub(super) struct Wrong {
    /// Its number among the entries.
    pub(super) entry: usize,
    pub(super) fix: Fix,
}

/// What is to be done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fix {
    /// It is missing.
    Write,
    /// Only its mode is wrong.
    Mode,
    /// What lies there makes room.
    Replace,
}

impl Work<'_> {
    /// The folder is in use from now on, if it is our own.
    pub(super) fn use_what_is_there(&self) -> Result<There, String> {
        let folder = self.packed.folder.path();
        if fs::symlink_metadata(folder).is_err() {
            return Ok(There::Nothing);
        }
        if !is_ours(folder, true) {
            return Ok(There::Foreign);
        }
        // Before it is looked at: from now on no server sweeps it away.
        let Ok(lock) = hold(folder) else { return Ok(There::Foreign) };
        let differences = self.compare()?;
        if !lies_at(&lock, folder) {
            // Another server put something else there meanwhile.
            return Ok(There::Foreign);
        }
        // Only so that it is not taken for unused.
        let _ = lock.set_modified(SystemTime::now());
        Ok(There::Ours(lock, differences))
    }

    fn compare(&self) -> Result<Differences, String> {
        let folder = self.packed.folder.path();
        let said = folder.join(COMPLETE);
        // What is older was not changed by the application: it is damaged.
        let written = fs::symlink_metadata(&said).and_then(|found| found.modified()).ok();
        let is_unfinished =
            !fs::read_to_string(&said).is_ok_and(|said| said == complete(self.packed.pack.location()));
        let found = Differences { is_unfinished, ..Differences::default() };
        let code = self.code();
        let mut compared = Compared { work: self, written, code, found };
        let behind = compared.folders_and_links();
        compared.names(&behind);
        let files = Mutex::new(Vec::new());
        let looked_at = self.each_file(|entry, path, content| {
            if is_behind(&behind.kept, path) {
                return Ok(());
            }
            let fix = if is_behind(&behind.replaced, path) {
                Some(Difference::Fix(Fix::Write))
            } else {
                compared.file(path, content)?
            };
            if let Some(difference) = fix {
                files.lock().unwrap_or_else(PoisonError::into_inner).push((entry, difference));
            }
            Ok(())
        });
        if let Err(Flaw(reason)) = looked_at {
            return Err(reason);
        }
        let mut files = files.into_inner().unwrap_or_else(PoisonError::into_inner);
        files.sort_by_key(|(entry, _)| *entry);
        let mut found = compared.found;
        for (entry, difference) in files {
            match difference {
                Difference::Fix(fix) => found.wrong.push(Wrong { entry, fix }),
                Difference::Kept => found.kept.add(self.path_of(entry)),
            }
        }
        found.wrong.sort_by_key(|wrong| wrong.entry);
        Ok(found)
    }

    fn path_of(&self, entry: usize) -> &str {
        self.entries.get(entry).map_or("", |entry| entry.path.as_str())
    }

    /// Paths of code, and of the folders that hold some.
    fn code(&self) -> HashSet<&str> {
        let mut code = HashSet::new();
        for entry in &self.entries {
            let EntryKind::File(content) = &entry.kind else { continue };
            let mut at = is_code(&entry.path, content.executable).then_some(entry.path.as_str());
            while let Some(path) = at.filter(|path| code.insert(*path)) {
                at = path.rsplit_once('/').map(|(above, _)| above);
            }
        }
        code
    }
}

/// A comparison on its way.
struct Compared<'w, 'a> {
    work: &'w Work<'a>,
    /// When everything had been written.
    written: Option<SystemTime>,
    /// Paths of code, and of the folders that hold some.
    code: HashSet<&'w str>,
    found: Differences,
}

/// Folders in whose place something else lies.
#[derive(Default)]
struct Behind<'w> {
    /// It makes room: nothing that lies behind it counts.
    replaced: HashSet<&'w str>,
    /// It is the application's: nothing is expected behind it.
    kept: HashSet<&'w str>,
}

/// How a file differs.
enum Difference {
    Fix(Fix),
    Kept,
}

impl<'w> Compared<'w, '_> {
    /// Folders first: behind one that is a link nothing counts.
    fn folders_and_links(&mut self) -> Behind<'w> {
        let mut behind = Behind::default();
        let work = self.work;
        for (number, entry) in work.entries.iter().enumerate() {
            let path = entry.path.as_str();
            if is_behind(&behind.kept, path) || matches!(entry.kind, EntryKind::File(_)) {
                continue;
            }
            let place = work.packed.folder.path().join(path);
            let found = fs::symlink_metadata(&place).ok().filter(|_| !is_behind(&behind.replaced, path));
            let difference = match (&entry.kind, found) {
                (_, None) => Some(Difference::Fix(Fix::Write)),
                (EntryKind::Folder, Some(found)) => self.folder(path, &found),
                (EntryKind::Link { to }, Some(_))
                    if fs::read_link(&place).is_ok_and(|found| found == Path::new(to)) =>
                {
                    None
                }
                (_, Some(_)) if self.leads_to_code(path, &entry.kind) => Some(Difference::Fix(Fix::Replace)),
                (_, Some(_)) => Some(Difference::Kept),
            };
            let is_folder = entry.kind == EntryKind::Folder;
            match difference {
                None => {}
                Some(Difference::Kept) => {
                    self.found.kept.add(path);
                    if is_folder {
                        behind.kept.insert(path);
                    }
                }
                Some(Difference::Fix(fix)) => {
                    self.found.wrong.push(Wrong { entry: number, fix });
                    if is_folder && fix != Fix::Mode {
                        behind.replaced.insert(path);
                    }
                }
            }
        }
        behind
    }

    fn folder(&self, path: &str, found: &Metadata) -> Option<Difference> {
        let is_own = found.is_dir() && found.uid() == own_user();
        match (is_own, found.mode() & 0o022 == 0, self.code.contains(path)) {
            (true, true, _) => None,
            // Others could have put code there; from now on they cannot.
            (true, false, true) => Some(Difference::Fix(Fix::Mode)),
            (false, _, true) => Some(Difference::Fix(Fix::Replace)),
            // A folder of data may be another user's, or lie elsewhere.
            (true, false, false) => None,
            (false, _, false) if found.is_dir() => None,
            (false, _, false) => Some(Difference::Kept),
        }
    }

    /// A link belongs to the code if it leads to some, or is one of a package manager's.
    fn leads_to_code(&self, path: &str, kind: &EntryKind<'_>) -> bool {
        let EntryKind::Link { to } = kind else { return true };
        let target = super::target(path, to);
        is_code(path, false) || target.is_some_and(|target| self.code.contains(target.as_str()))
    }

    /// What was added is the application's.
    fn names(&mut self, behind: &Behind<'_>) {
        let work = self.work;
        let folder = work.packed.folder.path();
        let known = work.entries.iter().map(|entry| Path::new(&entry.path));
        let known: HashSet<&Path> = known.chain([Path::new(COMPLETE), Path::new(RECORD)]).collect();
        let folders = work.entries.iter().filter(|entry| entry.kind == EntryKind::Folder);
        for below in [""].into_iter().chain(folders.map(|entry| entry.path.as_str())) {
            let is_there = !is_behind(&behind.kept, below) && !is_behind(&behind.replaced, below);
            let Some(entries) = is_there.then(|| fs::read_dir(folder.join(below)).ok()).flatten() else {
                continue;
            };
            for entry in entries.flatten() {
                let path = Path::new(below).join(entry.file_name());
                if !known.contains(path.as_path()) {
                    self.found.kept.add(path.display().to_string());
                }
                if self.found.kept.count >= UNPACKED_ADDED_COUNTED_MAX {
                    return;
                }
            }
        }
    }

    fn file(&self, path: &str, content: &Content<'_>) -> Result<Option<Difference>, Flaw> {
        let work = self.work;
        let place = work.packed.folder.path().join(path);
        let is_code = self.code.contains(path);
        let found = match fs::symlink_metadata(&place) {
            Ok(found) => found,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Some(Difference::Fix(Fix::Write)));
            }
            Err(_) => return Ok(Some(Difference::Fix(Fix::Replace))),
        };
        let is_own = found.is_file() && found.uid() == own_user();
        if (is_own || found.is_file() && !is_code) && work.holds(path, content, &found)? {
            let has_mode = !is_code || found.mode() & 0o777 == mode_of(path, content);
            return Ok((!has_mode).then_some(Difference::Fix(Fix::Mode)));
        }
        let is_changed = match (found.modified(), self.written) {
            (Ok(changed), Some(written)) => changed >= written,
            _ => true,
        };
        Ok(Some(if is_code || !is_changed { Difference::Fix(Fix::Replace) } else { Difference::Kept }))
    }
}

impl Work<'_> {
    /// Whether a file holds what was packed.
    fn holds(&self, path: &str, content: &Content<'_>, found: &Metadata) -> Result<bool, Flaw> {
        if found.len() != content.length() {
            return Ok(false);
        }
        let root = self.packed.folder.path();
        let place = root.join(path);
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let opened = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(&place);
        let Ok(file) = opened else { return Ok(false) };
        let mut compared = self.stoppable(Comparison { file, buffer: Vec::new() });
        if content.copy(&self.packed.pack, path, root, &mut compared).is_ok() {
            return Ok(true);
        }
        // They differ; which of the two was changed? A folder is not repaired with a pack that was changed itself.
        if !self.stops()
            && let Err(error) = self.packed.pack.verify(content.blob, path)
        {
            return Err(Flaw(self.packed.failed(&place, &error)));
        }
        Ok(false)
    }
}

fn is_behind(folders: &HashSet<&str>, path: &str) -> bool {
    !folders.is_empty()
        && (folders.contains(path)
            || path
                .match_indices('/')
                .any(|(at, _)| path.get(..at).is_some_and(|above| folders.contains(above))))
}

/// Takes only what a file holds, in its order.
struct Comparison {
    file: File,
    buffer: Vec<u8>,
}

impl Write for Comparison {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.resize(bytes.len(), 0);
        self.file.read_exact(&mut self.buffer)?;
        if self.buffer == bytes { Ok(bytes.len()) } else { Err(ErrorKind::InvalidData.into()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
