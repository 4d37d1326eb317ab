//! Puts back what is missing in the folder of the pack, and code that was changed.
//!
//! Owns the promise that nothing is lost by it: what lies in the way is renamed, and stays beside its old place. Never
//! writes into a file that is there: a new one is written beside the folder and renamed.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::PackError;
use crate::layout::{COMPLETE, Entry, EntryKind, complete};

use super::Packed;
use super::lock::{beside, fresh};
use super::named::Named;
use super::verify::{Differences, Fix};
use super::work::{Work, mode_of};
use crate::limits::ASIDE_NAMES_TRIED_MAX;
use crate::private_folder::make;

/// What was done to a folder.
#[derive(Debug, Default)]
pub struct Repaired {
    /// Files that were missing.
    pub missing: Named,
    /// What was in the way, under its new name.
    pub aside: Named,
}

impl Work<'_> {
    /// Puts everything back. An error is for a person.
    pub(super) fn repair(&self, differences: &Differences) -> Result<Repaired, String> {
        let folder = self.packed.folder.path();
        let mut repaired = Repaired::default();
        // What is written there is not mistaken for the application's, should this end early: it is swept away.
        let (drafts, _lock) =
            fresh(|| beside(folder, "")).map_err(|(path, error)| self.packed.failed(&path, &error.into()))?;
        let done = differences.wrong.iter().try_for_each(|wrong| {
            let Some(entry) = self.entries.get(wrong.entry) else { return Ok(()) };
            let path = folder.join(&entry.path);
            self.put_back(entry, wrong.fix, &drafts, &mut repaired)
                .map_err(|error| self.packed.failed(&path, &error))
        });
        let _ = fs::remove_dir_all(&drafts);
        done?;
        if differences.is_unfinished {
            let said = folder.join(COMPLETE);
            let written = fs::write(&said, complete(self.packed.pack.location()));
            written.map_err(|error| self.packed.failed(&said, &error.into()))?;
        }
        if differences.kept.count == 0 && repaired.aside.count == 0 {
            // Nothing in it is the application's: it may be swept away once it is old.
            self.packed.note_record(folder);
        }
        Ok(repaired)
    }

    fn put_back(
        &self,
        entry: &Entry<'_>,
        fix: Fix,
        drafts: &Path,
        repaired: &mut Repaired,
    ) -> Result<(), PackError> {
        let path = self.packed.folder.path().join(&entry.path);
        if fix == Fix::Mode {
            let mode = match &entry.kind {
                EntryKind::File(content) => mode_of(&entry.path, content),
                EntryKind::Folder | EntryKind::Link { .. } => 0o755,
            };
            fs::set_permissions(&path, Permissions::from_mode(mode))?;
            return Ok(());
        }
        if fix == Fix::Replace {
            let aside = set_aside(&path)?;
            let name = aside.strip_prefix(self.packed.folder.path()).unwrap_or(&aside);
            repaired.aside.add(name.display().to_string());
        } else if !matches!(entry.kind, EntryKind::Folder) {
            repaired.missing.add(entry.path.clone());
        }
        match &entry.kind {
            EntryKind::Folder => make(&path, 0o755)?,
            EntryKind::Link { to } => symlink(to, &path)?,
            EntryKind::File(content) => {
                let draft = drafts.join("file");
                // One that failed before it was renamed.
                let _ = fs::remove_file(&draft);
                self.write_file(&draft, &entry.path, content)?;
                fs::rename(&draft, &path)?;
            }
        }
        Ok(())
    }
}

/// Renames what lies there, to a name beside it that nothing has.
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    for number in 1..=ASIDE_NAMES_TRIED_MAX {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".changed-{number}"));
        let aside = PathBuf::from(name);
        // Another server does not rename in the meantime: this one has its turn.
        if fs::symlink_metadata(&aside).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            fs::rename(path, &aside)?;
            return Ok(aside);
        }
    }
    Err(io::Error::other(format!(
        "{ASIDE_NAMES_TRIED_MAX} changed versions of it lie beside it already; remove some"
    )))
}

impl Packed {
    /// Notes what lies in the folder.
    pub(super) fn note_record(&self, folder: &Path) {
        let path = folder.join(super::record::NAME);
        let _ = fs::remove_file(&path);
        // Without the note the folder counts as changed, and stays.
        if let Some(record) = super::record::of(folder, &self.index.name) {
            let _ = fs::write(&path, record);
        }
    }
}
