//! Whether what lies in the folder of the pack is what was packed.
//!
//! Owns the comparison of every folder, link and file with the pack, and that nothing else lies there. Tells what was
//! changed in the folder from a pack that was changed itself: only the first is a reason to unpack anew. Never follows
//! a link.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::SystemTime;

use onehop_archive::layout::{COMPLETE, Content, EntryKind, complete};
use rustix::fs::OFlags;

use super::turn::lies_at;
use super::unpack::{Flaw, Work, mode_of};
use crate::control::supervise::folder::{hold, is_ours, own_user};

/// What lies in the folder's place.
pub(super) enum There {
    /// Nothing.
    Nothing,
    /// What was packed; it is in use as long as this lives.
    Right(File),
    /// This is not what was unpacked.
    Changed(String),
}

impl Work<'_> {
    /// The folder is in use from now on, if it is what was unpacked.
    pub(super) fn use_what_is_there(&self) -> Result<There, String> {
        let folder = self.packed.folder.path();
        if fs::symlink_metadata(folder).is_err() {
            return Ok(There::Nothing);
        }
        if !is_ours(folder, true) {
            return Ok(There::Changed(folder.display().to_string()));
        }
        // Before it is looked at: from now on nobody sweeps it away.
        let lock = match hold(folder) {
            Ok(lock) => lock,
            Err(error) => return Ok(There::Changed(format!("{} ({error})", folder.display()))),
        };
        match self.prove() {
            // Another server put something else there meanwhile.
            Ok(()) if !lies_at(&lock, folder) => Ok(There::Changed(folder.display().to_string())),
            Ok(()) => {
                // Only so that it is not taken for unused.
                let _ = lock.set_modified(SystemTime::now());
                Ok(There::Right(lock))
            }
            Err(Flaw::Differs(what)) => Ok(There::Changed(what)),
            Err(Flaw::Failed(reason)) => Err(reason),
        }
    }

    /// Whether everything lies in the folder as it was packed, and nothing else.
    fn prove(&self) -> Result<(), Flaw> {
        let folder = self.packed.folder.path();
        let said = folder.join(COMPLETE);
        let is_whole = fs::read_to_string(&said).is_ok_and(|said| said == complete(self.packed.pack.place()));
        if !is_whole {
            return Err(differs(folder));
        }
        // Folders first: behind one that is a link nothing counts.
        for entry in &self.entries {
            let path = folder.join(&entry.path);
            let is_right = match &entry.kind {
                EntryKind::Folder => is_ours(&path, true),
                EntryKind::Link { to } => fs::read_link(&path).is_ok_and(|found| found == Path::new(to)),
                EntryKind::File(_) => true,
            };
            if !is_right {
                return Err(differs(&path));
            }
        }
        self.prove_names()?;
        self.each_file(|path, content| self.prove_file(path, content))
    }

    /// A file that was added is one that an application may find.
    fn prove_names(&self) -> Result<(), Flaw> {
        let folder = self.packed.folder.path();
        let known: HashSet<&Path> =
            self.entries.iter().map(|entry| Path::new(&entry.path)).chain([Path::new(COMPLETE)]).collect();
        let folders = self.entries.iter().filter(|entry| matches!(entry.kind, EntryKind::Folder));
        for below in [Path::new("")].into_iter().chain(folders.map(|entry| Path::new(&entry.path))) {
            let path = folder.join(below);
            let entries = fs::read_dir(&path).map_err(|_| differs(&path))?;
            for entry in entries {
                let found = entry.map_err(|_| differs(&path))?;
                if !known.contains(below.join(found.file_name()).as_path()) {
                    return Err(differs(&found.path()));
                }
            }
        }
        Ok(())
    }

    fn prove_file(&self, path: &str, content: &Content<'_>) -> Result<(), Flaw> {
        let place = self.packed.folder.path().join(path);
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let opened = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(&place);
        let Ok(file) = opened else { return Err(differs(&place)) };
        let is_right = file.metadata().is_ok_and(|found| {
            found.is_file()
                && found.uid() == own_user()
                && found.mode() & 0o777 == mode_of(content)
                && found.len() == content.length()
        });
        if !is_right {
            return Err(differs(&place));
        }
        let mut compared = self.stoppable(Compared { file, buffer: Vec::new() });
        let copied = content.copy(&self.packed.pack, path, self.packed.folder.path(), &mut compared);
        if copied.is_ok() {
            return Ok(());
        }
        // They differ; whose fault is it? A folder is not given up for a pack that was changed itself.
        if !self.stops()
            && let Err(error) = self.packed.pack.prove(content.blob, path)
        {
            return Err(Flaw::Failed(self.packed.failed(&place, &error)));
        }
        Err(differs(&place))
    }
}

fn differs(path: &Path) -> Flaw {
    Flaw::Differs(path.display().to_string())
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
