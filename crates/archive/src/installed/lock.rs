//! That servers of one pack do not unpack it into one place at the same time.
//!
//! Owns the lock beside the folder, which is held while something is put into its place, and new folders that nobody
//! takes for left behind. Never waits for a lock that it cannot have: one that a stranger made is not asked for.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Instant, SystemTime};

use rustix::fs::OFlags;

use crate::limits::{UNPACK_NAMES_TRIED_MAX, UNPACK_TURN_PAUSE, UNPACK_TURN_WAIT_MAX};
use crate::private_folder::{make, own_user};

/// Why nothing is unpacked any more.
pub(super) const STOPPED: &str = "the server stops";

/// What the name of the lock ends with.
pub(super) const LOCK: &str = ".lock";

/// What the name of a folder holds that was put aside: an application may have written in it, so it is never removed.
pub(super) const ASIDE: &str = "-changed-";

/// No other server puts something into the folder's place, as long as this lives.
pub(super) struct Turn {
    /// None where the file system has no locks.
    _lock: Option<File>,
}

impl Turn {
    /// Waits for it. An error is for a person.
    pub(super) fn take(folder: &Path, stop: &AtomicBool) -> Result<Self, String> {
        let path = lock_of(folder);
        let begun = Instant::now();
        let without = Ok(Self { _lock: None });
        loop {
            let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
            let opened =
                OpenOptions::new().write(true).create(true).mode(0o600).custom_flags(flags).open(&path);
            // What cannot be written here is told by who writes more than this.
            let Ok(file) = opened else { return without };
            if !file.metadata().is_ok_and(|found| found.is_file() && found.uid() == own_user()) {
                return without;
            }
            match file.try_lock() {
                // One that was swept away meanwhile keeps nobody out.
                Ok(()) if !lies_at(&file, &path) => continue,
                Ok(()) => {
                    let _ = file.set_modified(SystemTime::now());
                    return Ok(Self { _lock: Some(file) });
                }
                Err(TryLockError::Error(_)) => return without,
                Err(TryLockError::WouldBlock) => {}
            }
            if stop.load(Ordering::Relaxed) {
                return Err(STOPPED.to_owned());
            }
            if begun.elapsed() > UNPACK_TURN_WAIT_MAX {
                return Err(format!(
                    "another server has been unpacking {} for {} seconds: end it, or set ONEHOP_CACHE to another folder",
                    folder.display(),
                    UNPACK_TURN_WAIT_MAX.as_secs()
                ));
            }
            thread::sleep(UNPACK_TURN_PAUSE);
        }
    }
}

/// The lock beside a folder.
pub(super) fn lock_of(folder: &Path) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(LOCK);
    name.into()
}

/// A name beside the folder, which nobody has: process numbers repeat in containers and after a start of the machine.
pub(super) fn beside(folder: &Path, what: &str) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let chance = RandomState::new().hash_one(count);
    let mut name = folder.as_os_str().to_owned();
    name.push(format!("-{what}{}-{count}-{chance:016x}", std::process::id()));
    name.into()
}

/// A new folder of these names, with the lock that keeps others from sweeping it away.
pub(super) fn fresh(mut name: impl FnMut() -> PathBuf) -> Result<(PathBuf, File), (PathBuf, io::Error)> {
    let mut taken = (PathBuf::new(), ErrorKind::AlreadyExists.into());
    for _ in 0..UNPACK_NAMES_TRIED_MAX {
        let path = name();
        match make(&path, 0o700).and_then(|()| lock_new(&path)) {
            Ok(Some(lock)) => return Ok((path, lock)),
            // Somebody swept it away before it was locked.
            Ok(None) => {}
            // Somebody has this name: what lies there is not ours to touch.
            Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {
                taken = (path, error);
            }
            Err(error) => return Err((path, error)),
        }
    }
    Err(taken)
}

fn lock_new(path: &Path) -> io::Result<Option<File>> {
    let folder = File::open(path)?;
    let is_swept = matches!(folder.try_lock_shared(), Err(TryLockError::WouldBlock));
    let is_there = !is_swept && lies_at(&folder, path);
    Ok(is_there.then_some(folder))
}

/// Whether what is open is what lies there.
pub(super) fn lies_at(open: &File, path: &Path) -> bool {
    let (Ok(open), Ok(there)) = (open.metadata(), fs::symlink_metadata(path)) else { return false };
    (open.dev(), open.ino()) == (there.dev(), there.ino())
}
