//! What earlier packs and servers that were killed left in the place is removed.
//!
//! Removes only what is our own, has our names and is locked by nobody: whoever writes or uses a folder holds a lock on
//! it, from whichever container. Never removes a folder in which an application wrote (`record.rs`): it is reported.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::lock::{ASIDE, LOCK, lies_at, lock_of};
use super::named::Named;
use super::{Packed, record};
use crate::limits::{LIBRARY_KEPT_FOR, SWEPT_ENTRIES_MAX};
use crate::private_folder::{is_ours, own_user};

/// The folder of an earlier version, in which its application wrote.
#[derive(Debug, PartialEq, Eq)]
pub struct Earlier {
    /// Where it is.
    pub folder: PathBuf,
    /// Files that are newer than the unpacking.
    pub files: Named,
}

/// What an entry of the place is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Lock,
    /// No application ever ran from it.
    Unfinished,
    Finished,
}

impl Packed {
    /// Removes what earlier packs of this user left where this one lies: finished and not used for long, or not
    /// finished. Returns the folders of earlier versions that stay because an application wrote in them.
    pub fn sweep(&self) -> Vec<Earlier> {
        let own = self.folder.path();
        let mut earlier = Vec::new();
        let Some(place) = own.parent() else { return earlier };
        let Ok(entries) = fs::read_dir(place) else { return earlier };
        let ours = format!("onehop-pack-{}-", own_user());
        for entry in entries.take(SWEPT_ENTRIES_MAX).flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(&ours)) else { continue };
            if rest.contains(ASIDE) {
                continue;
            }
            let what = match rest {
                rest if rest.ends_with(LOCK) => What::Lock,
                rest if rest.contains('-') => What::Unfinished,
                _ => What::Finished,
            };
            if path == own || path == lock_of(own) || !is_ours(&path, what != What::Lock) {
                continue;
            }
            let used = entry.metadata().and_then(|found| found.modified());
            let age = used.map(|used| SystemTime::now().duration_since(used).unwrap_or_default());
            let kept_for = if what == What::Unfinished { Duration::ZERO } else { LIBRARY_KEPT_FOR };
            let is_old = age.is_ok_and(|age| age >= kept_for);
            // Of a pack of another name only what may be removed is looked at: that takes a look at each file.
            let is_earlier =
                what == What::Finished && record::pack_of(&path).as_ref() == Some(&self.index.name);
            if !is_old && !is_earlier {
                continue;
            }
            // The lock is asked for last and held while it is removed: nobody takes it into use meanwhile.
            let Ok(open) = File::open(&path) else { continue };
            if open.try_lock().is_err() || !lies_at(&open, &path) {
                continue;
            }
            if what == What::Finished && !record::is_untouched(&path) {
                if is_earlier {
                    earlier.push(Earlier { files: record::newer(&path), folder: path });
                }
            } else if is_old {
                let _ = if what == What::Lock { fs::remove_file(&path) } else { fs::remove_dir_all(&path) };
            }
        }
        earlier.sort_by(|one, other| one.folder.cmp(&other.folder));
        earlier
    }
}
