//! What earlier packs and servers that were killed left in the place is removed.
//!
//! Removes only what is our own, has our names and is locked by nobody: whoever writes or uses a folder holds a lock on
//! it, from whichever container.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use super::Packed;
use super::turn::{LOCK, lies_at, lock_of};
use crate::control::supervise::folder::{is_ours, own_user};
use crate::limits::{LIBRARY_KEPT_FOR, SWEPT_ENTRIES_MAX};

impl Packed {
    /// Removes what earlier packs of this user left where this one lies: finished and not used for long, or not
    /// finished, or put aside.
    pub(in crate::control) fn sweep(&self) {
        let own = self.folder.path();
        let Some(place) = own.parent() else { return };
        let Ok(entries) = fs::read_dir(place) else { return };
        let ours = format!("onehop-pack-{}-", own_user());
        for entry in entries.take(SWEPT_ENTRIES_MAX).flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(&ours)) else { continue };
            let is_lock = rest.ends_with(LOCK);
            // Nobody comes back to what was not finished.
            let kept_for = if rest.contains('-') { Duration::ZERO } else { LIBRARY_KEPT_FOR };
            let used = entry.metadata().and_then(|found| found.modified());
            let age = used.map(|used| SystemTime::now().duration_since(used).unwrap_or_default());
            let is_old = age.is_ok_and(|age| age >= kept_for);
            if !is_old || path == own || path == lock_of(own) || !is_ours(&path, !is_lock) {
                continue;
            }
            // The lock is asked for last and held while it is removed: nobody takes it into use meanwhile.
            let Ok(open) = File::open(&path) else { continue };
            if open.try_lock().is_ok() && lies_at(&open, &path) {
                let _ = if is_lock { fs::remove_file(&path) } else { fs::remove_dir_all(&path) };
            }
        }
    }
}
