//! Removes the private folders that killed servers left, and ends the processes that they left.
//!
//! Removes only folders of our own user whose name is ours and whose lock no process holds: every server holds a
//! lock on the folders that it uses, which ends with it however it ends, in whichever container it runs. Never
//! follows a link.

use std::fs::{DirEntry, File};
use std::path::Path;
use std::time::SystemTime;

use onehop_archive::limits::{LIBRARY_KEPT_FOR, SWEPT_ENTRIES_MAX};
use onehop_archive::private_folder::{is_ours, keeps_what_is_ours, own_user};
use rustix::process::{Pid, test_kill_process};

use crate::embedded::{LIBRARY_FOLDER, library_name};
use crate::folder::{APPS_FOLDER, places};
use crate::leftovers::Invocation;

/// Looks through all directories that may hold private folders. A later start tries again what cannot be removed.
pub(crate) fn sweep() {
    for base in places().into_iter().filter(|base| keeps_what_is_ours(base)) {
        sweep_in(&base);
    }
}

fn sweep_in(base: &Path) {
    let Ok(entries) = std::fs::read_dir(base) else { return };
    for entry in entries.take(SWEPT_ENTRIES_MAX).flatten() {
        if is_left_behind(&entry) && is_ours(&entry.path(), true) && nobody_holds(&entry.path()) {
            if let Some(invocation) = Invocation::read(&entry.path()) {
                invocation.end_processes();
            }
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn is_left_behind(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let Some(name) = name.to_str() else { return false };
    let user = own_user();
    if let Some(rest) = name.strip_prefix(&format!("{APPS_FOLDER}{user}-")) {
        // Its server may not have locked it yet.
        let pid = rest.split('-').next().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
        return pid.is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH));
    }
    name.starts_with(&format!("{LIBRARY_FOLDER}{user}-")) && name != library_name() && is_old(entry)
}

fn is_old(entry: &DirEntry) -> bool {
    let made = entry.metadata().and_then(|found| found.modified());
    made.is_ok_and(|made| SystemTime::now().duration_since(made).is_ok_and(|age| age > LIBRARY_KEPT_FOR))
}

fn nobody_holds(folder: &Path) -> bool {
    File::open(folder).is_ok_and(|folder| folder.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use onehop_archive::private_folder::make;

    /// A process id that no process has.
    fn dead() -> u32 {
        let mut child = std::process::Command::new("true").spawn().expect("started");
        child.wait().expect("ended");
        child.id()
    }

    #[test]
    fn folders_of_servers_that_have_gone_are_removed_and_no_others() {
        let base = tempfile::tempdir().expect("a folder");
        let (user, dead, alive) = (own_user(), dead(), std::process::id());
        let made = |name: String| -> PathBuf {
            let path = base.path().join(name);
            make(&path, 0o711).expect("made");
            path
        };
        let left = made(format!("{APPS_FOLDER}{user}-{dead}-0"));
        std::fs::write(left.join("app.sock"), "").expect("written");
        let held = made(format!("{APPS_FOLDER}{user}-{dead}-1"));
        let lock = File::open(&held).expect("opened");
        lock.try_lock().expect("locked");
        let living = made(format!("{APPS_FOLDER}{user}-{alive}-0"));
        let others = made(format!("{APPS_FOLDER}{}-{dead}-0", user + 1));
        let foreign = made(format!("someone-{dead}-0"));
        let link = base.path().join(format!("{APPS_FOLDER}{user}-{dead}-2"));
        std::os::unix::fs::symlink(&foreign, &link).expect("linked");
        sweep_in(base.path());
        assert!(!left.exists());
        for kept in [held, living, others, foreign, link] {
            assert!(kept.exists(), "{}", kept.display());
        }
    }

    #[test]
    fn libraries_of_other_versions_are_removed_once_they_are_old_and_unused() {
        let base = tempfile::tempdir().expect("a folder");
        let old = SystemTime::now() - 2 * LIBRARY_KEPT_FOR;
        let made = |name: String, is_old: bool| -> PathBuf {
            let path = base.path().join(name);
            make(&path, 0o755).expect("made");
            std::fs::write(path.join("worker.mjs"), "").expect("written");
            if is_old {
                File::open(&path).and_then(|folder| folder.set_modified(old)).expect("set");
            }
            path
        };
        let name = |hash: &str| format!("{LIBRARY_FOLDER}{}-{hash}", own_user());
        let (gone, young) = (made(name("1"), true), made(name("2"), false));
        let (used, own) = (made(name("3"), true), made(library_name(), true));
        let lock = File::open(&used).expect("opened");
        lock.try_lock_shared().expect("locked");
        sweep_in(base.path());
        assert!(!gone.exists());
        assert!(young.exists() && used.exists() && own.exists());
    }
}
