//! Folders that no other user can have prepared: for what is unpacked, and for sockets of programs.
//!
//! A folder is used only where it belongs to this user, no other user may write in it, and its parent does not let
//! others rename what is ours. Never follows a link that lies in the place of a folder.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The effective user of this process.
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The folder that ONEHOP_CACHE names; a relative one begins in the working directory.
pub fn named_place() -> Option<PathBuf> {
    let named = std::env::var_os("ONEHOP_CACHE").filter(|named| !named.is_empty())?;
    std::path::absolute(named).ok()
}

/// Makes a folder that did not exist, with exactly this mode.
///
/// # Errors
///
/// It exists already, or the system refuses.
pub fn make(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)?;
    // Beyond what the umask allowed.
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// A lock on a folder that is in use: while it lives, no server takes the folder for left behind.
///
/// # Errors
///
/// The folder cannot be opened.
pub fn hold(path: &Path) -> io::Result<File> {
    let folder = File::open(path)?;
    // On a file system without locks no server gets one to remove the folder either.
    let _ = folder.try_lock_shared();
    Ok(folder)
}

/// Whether this is a folder (`true`) or file of this user in which no other user may write.
pub fn is_ours(path: &Path, is_folder: bool) -> bool {
    let Ok(found) = fs::symlink_metadata(path) else { return false };
    let kind = if is_folder { found.is_dir() } else { found.is_file() };
    kind && found.uid() == own_user() && found.mode() & 0o022 == 0
}

/// Whether others cannot rename our entries in this folder: where they may write, too, it needs the sticky bit.
pub fn keeps_what_is_ours(base: &Path) -> bool {
    let Ok(found) = fs::metadata(base) else { return false };
    let owner = found.uid();
    let is_trusted = owner == own_user() || owner == 0;
    found.is_dir() && is_trusted && (found.mode() & 0o022 == 0 || found.mode() & 0o1000 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_or_a_folder_in_which_others_may_write_is_not_ours() {
        let folder = tempfile::tempdir().expect("a folder");
        let (open, link) = (folder.path().join("open"), folder.path().join("link"));
        make(&open, 0o777).expect("made");
        std::os::unix::fs::symlink(folder.path(), &link).expect("made");
        assert!(!is_ours(&open, true));
        assert!(!is_ours(&link, true));
        assert!(!keeps_what_is_ours(&open));
        fs::set_permissions(&open, Permissions::from_mode(0o1777)).expect("set");
        assert!(keeps_what_is_ours(&open));
    }
}
