//! Writes what applications need into the folder of the pack, or uses what lies there.
//!
//! Owns the promise that an application starts with exactly the code that was packed, and keeps what it wrote: a folder is
//! written beside its place and renamed when it is whole, and one that is found is compared (`verify.rs`) and repaired
//! (`repair.rs`) before it is used; one server at a time does so (`lock.rs`). Never follows a link, never writes through
//! what others may change, never removes a folder from which an application ran.

use std::fs::{self, File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::Packed;
use super::directory::Kind;
use super::lock::{ASIDE, Turn, beside, fresh, lies_at};
use super::named::Named;
use super::repair::Repaired;
use super::verify::There;
use super::work::{Flaw, Work};
use crate::PackError;
use crate::layout::{COMPLETE, EntryKind, complete, entries};
use crate::private_folder::{hold, make, own_user};

/// What applications need lies in the folder, as long as this lives.
#[derive(Debug)]
pub struct Unpacked {
    /// Files of a new folder; none where it lay there already.
    pub written: usize,
    /// What the application changed or added in a folder that lay there.
    pub kept: Named,
    /// What was put back there.
    pub repaired: Repaired,
    /// Where a folder of another user, or one open to others, is now that lay there.
    pub aside: Option<PathBuf>,
    /// Where a file system has locks, it keeps others from taking the folder for left behind.
    lock: Option<File>,
}

impl Unpacked {
    fn with(lock: Option<File>) -> Self {
        Self { written: 0, kept: Named::default(), repaired: Repaired::default(), aside: None, lock }
    }

    /// Whether it still lies there: caches are what people and cleaners of folders empty.
    pub fn lies_in(&self, folder: &Path) -> bool {
        folder.join(COMPLETE).is_file() && self.lock.as_ref().is_none_or(|lock| lies_at(lock, folder))
    }
}

impl Packed {
    /// Unpacks, or verifies what was unpacked before; ends early, and leaves nothing, once `stop` is set. Blocks. An error
    /// is for a person.
    pub fn unpack(&self, stop: &AtomicBool) -> Result<Unpacked, String> {
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
    pub fn open_to(&self, user: u32) -> Result<(), String> {
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
        fs::write(&said, complete(self.packed.pack.location()))
            .map_err(|error| failed(&said, error.into()))?;
        self.packed.note_record(fresh);
        Ok(())
    }
}
