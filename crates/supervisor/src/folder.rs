//! Folders that no other user can have prepared: for the runtime's files, and for the sockets of programs.
//!
//! A folder is used only where it is our own, no other user may write in it, and its parent does not let others
//! rename what is ours. Never follows a link that it finds in the place of a folder.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use onehop_archive::layout;
use onehop_archive::private_folder::{hold, keeps_what_is_ours, make, named_place, own_user};

use crate::leftovers::Invocation;

/// A folder that is removed with its content when this is dropped.
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    path: PathBuf,
    /// What processes of this server have in their environment.
    pub(crate) invocation: Invocation,
    /// Locked, so that no other server removes the folder as left behind.
    _lock: File,
}

impl PrivateFolder {
    /// Makes a new folder in the first directory that allows it.
    pub(crate) fn create() -> Result<Self, String> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = |count| format!("{APPS_FOLDER}{}-{}-{count}", own_user(), std::process::id());
        in_first_place(|base| {
            for _ in 0..NAMES_TRIED_MAX {
                let path = base.join(name(COUNT.fetch_add(1, Ordering::Relaxed)));
                match make(&path, 0o711) {
                    Ok(()) => {
                        let _lock = hold(&path).map_err(|error| error.to_string())?;
                        let invocation = Invocation::new();
                        invocation.write(&path).map_err(|error| error.to_string())?;
                        return Ok(Self { path, invocation, _lock });
                    }
                    // A process of the same number that has gone left it, or another process takes the name.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(error.to_string()),
                }
            }
            Err("every name is taken".to_owned())
        })
    }

    /// Makes a folder in it that only this user may enter.
    pub(crate) fn subfolder(&self, name: &str, owner: Option<(u32, u32)>) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        match make(&path, 0o700) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if let Some((uid, gid)) = owner {
            std::os::unix::fs::chown(&path, Some(uid), Some(gid))?;
        }
        Ok(path)
    }
}

impl PrivateFolder {
    /// Removes it with its content.
    pub(crate) fn remove(&self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The prefix of the name of a private folder.
pub(crate) const APPS_FOLDER: &str = "onehop-apps-";

/// Runs this in each directory that may hold private folders until one of them works.
pub(crate) fn in_first_place<T>(mut make: impl FnMut(&Path) -> Result<T, String>) -> Result<T, String> {
    let mut reasons = Vec::new();
    for base in places() {
        let tried =
            if keeps_what_is_ours(&base) { make(&base) } else { Err("others may rename there".into()) };
        match tried {
            Ok(made) => return Ok(made),
            Err(reason) => reasons.push(format!("{}: {reason}", base.display())),
        }
    }
    Err(format!("no place for a private folder ({}); set TMPDIR to one", reasons.join("; ")))
}

/// Names that are tried for a folder.
const NAMES_TRIED_MAX: usize = 64;

/// The directories that may hold private folders, the best first.
pub(crate) fn places() -> Vec<PathBuf> {
    let named = |name| std::env::var_os(name).map(PathBuf::from);
    // root's runtime folder is closed to the users that it runs applications as.
    let runtime = named("XDG_RUNTIME_DIR").filter(|_| own_user() != 0);
    let all = [runtime, Some("/dev/shm".into()), named("TMPDIR"), Some("/tmp".into())];
    // Where a pack is unpacked there is room as well: in a root directory that holds nothing else, only there.
    let cache = |name, below: &str| named(name).map(|path| path.join(below));
    let system = Some(layout::SYSTEM_PLACE.into()).filter(|_| own_user() == 0);
    let unpacked = [named_place(), system, cache("XDG_CACHE_HOME", "onehop"), cache("HOME", ".cache/onehop")];
    all.into_iter().chain(unpacked).flatten().filter(|path| path.is_absolute()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use onehop_archive::private_folder::is_ours;

    use super::*;

    #[test]
    fn a_folder_is_new_closed_to_others_and_gone_in_the_end() {
        let folder = PrivateFolder::create().expect("a place");
        let other = PrivateFolder::create().expect("a place");
        assert_ne!(folder.path, other.path);
        let inner = folder.subfolder("app-0", None).expect("made");
        assert_eq!(inner.metadata().expect("there").mode() & 0o777, 0o700);
        assert!(is_ours(&inner, true) && !is_ours(&inner, false));
        let path = folder.path.clone();
        drop(folder);
        assert!(!path.exists());
    }
}
