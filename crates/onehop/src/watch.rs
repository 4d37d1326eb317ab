//! `run --watch`: looks whether a file that the configuration was read from has changed.
//!
//! Looks at a handful of files a few times a second instead of asking the kernel for events: that sees
//! a rename over the file, a link that was turned and a network file system alike.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::signals::Wish;

/// How often the files are looked at. A change must look the same twice before it counts, so that a
/// file that is still being written is not read: 250 to 500 ms after the last write.
const LOOK_PERIOD: Duration = Duration::from_millis(250);

/// The files that the configuration was last read from.
pub(crate) type WatchedFiles = Arc<Mutex<Vec<PathBuf>>>;

/// Sends a wish to reload after every change, for as long as somebody listens.
pub(crate) fn start(files: WatchedFiles, wishes: Sender<Wish>) -> io::Result<()> {
    let mut read = look(&files);
    thread::Builder::new().name("watch".into()).spawn(move || {
        let mut before = read.clone();
        loop {
            thread::sleep(LOOK_PERIOD);
            let now = look(&files);
            if differs(&read, &now) && now == before {
                if wishes.send(Wish::Reload).is_err() {
                    return;
                }
                read.clone_from(&now);
            }
            // A file that a reload has just begun to import was read in this state.
            for (path, seen) in &now {
                read.entry(path.clone()).or_insert(*seen);
            }
            before = now;
        }
    })?;
    Ok(())
}

/// Device, inode, length and time of the last change of one file; `None` where it is missing.
type Seen = Option<(u64, u64, u64, i64, i64)>;

fn differs(read: &HashMap<PathBuf, Seen>, now: &HashMap<PathBuf, Seen>) -> bool {
    now.iter().any(|(path, seen)| read.get(path).is_some_and(|before| before != seen))
}

fn look(files: &WatchedFiles) -> HashMap<PathBuf, Seen> {
    let files = files.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let see = |path: PathBuf| {
        let seen = fs::metadata(&path)
            .ok()
            .map(|file| (file.dev(), file.ino(), file.size(), file.mtime(), file.mtime_nsec()));
        (path, seen)
    };
    files.into_iter().map(see).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_or_vanished_file_differs_and_a_new_import_does_not() {
        let state = |seen: Seen| HashMap::from([(PathBuf::from("a"), seen)]);
        let first = state(Some((1, 1, 1, 1, 1)));
        assert!(differs(&first, &state(Some((1, 1, 1, 1, 2)))));
        assert!(differs(&first, &state(None)));
        let mut imported = first.clone();
        imported.insert("b".into(), Some((1, 2, 1, 1, 1)));
        assert!(!differs(&first, &imported));
    }
}
