//! Which files an application's processes have loaded, and whether one of them has changed since.
//!
//! Compares what the file system says about files; never reads one. Where a worker does not report what it has loaded,
//! the sources in its folder count instead.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::limits::{LOADED_FILES_MAX, SOURCE_ENTRIES_MAX, SOURCE_FILES_MAX, SOURCE_FOLDERS_DEPTH_MAX};

/// Files by their paths, and the state that each was in when it was loaded.
pub type Files = HashMap<PathBuf, FileState>;

/// What the file system says about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// The file does not exist.
    Missing,
    /// The file changed at about the time when it was loaded: which state was loaded is not known.
    Unsure,
    /// Device and inode; of a file also bytes, and seconds and nanoseconds of its last change.
    Is(u64, u64, u64, i64, i64),
}

impl FileState {
    /// The state of now; links are followed.
    pub fn now(path: &Path) -> Self {
        fs::metadata(path).as_ref().map_or(FileState::Missing, FileState::of)
    }

    /// The state of a file that was loaded after `since`.
    fn loaded(path: &Path, since: SystemTime) -> Self {
        let Ok(found) = fs::metadata(path) else { return FileState::Missing };
        let since = since.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = u64::try_from(found.ctime()).unwrap_or_default();
        let changed = Duration::new(seconds, u32::try_from(found.ctime_nsec()).unwrap_or_default());
        if changed > since { FileState::Unsure } else { FileState::of(&found) }
    }

    fn of(found: &Metadata) -> Self {
        if found.is_dir() {
            return FileState::Is(found.dev(), found.ino(), 0, 0, 0);
        }
        FileState::Is(found.dev(), found.ino(), found.size(), found.mtime(), found.mtime_nsec())
    }
}

/// What all processes of an application have loaded: its owner writes it, a reload and `--watch` read it.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    files: Known,
    /// The files of the processes that are about to replace all others.
    next: Option<Known>,
    is_running: bool,
}

#[derive(Debug, Default, Clone)]
struct Known {
    files: Arc<Files>,
    /// All sources in this folder count.
    folder: Option<PathBuf>,
    /// More files were loaded than are remembered.
    is_incomplete: bool,
}

/// What one process has loaded.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoadedFiles {
    pub(crate) files: Files,
    /// All sources in this folder, which are among the files, count.
    pub(crate) folder: Option<PathBuf>,
    /// The folder has more of them than are looked at.
    pub(crate) is_incomplete: bool,
}

impl From<Files> for LoadedFiles {
    fn from(files: Files) -> Self {
        Self { files, ..Self::default() }
    }
}

impl LoadedFiles {
    /// Files that were loaded after `since`. Those that are gone were there for a moment only.
    pub(crate) fn after(paths: Vec<PathBuf>, since: SystemTime) -> Self {
        let states = paths.into_iter().map(|path| (FileState::loaded(&path, since), path));
        let files: Files = states
            .filter(|(state, _)| *state != FileState::Missing)
            .map(|(state, path)| (path, state))
            .collect();
        files.into()
    }

    /// All sources in a folder: what is loaded of them is not known.
    pub(crate) fn of_folder(folder: &Path) -> Self {
        let found = sources(folder, &[]);
        let is_incomplete = found.is_none();
        Self { files: found.unwrap_or_default(), folder: Some(folder.to_path_buf()), is_incomplete }
    }
}

impl Loaded {
    /// Adds the files of a process that serves, or (`is_next`) of one that is about to take over.
    pub(crate) fn add(&self, loaded: LoadedFiles, is_next: bool) {
        let mut inner = self.lock();
        let Inner { files, next, .. } = &mut *inner;
        let known = next.as_mut().filter(|_| is_next).unwrap_or(files);
        known.add(loaded);
    }

    /// All processes are about to be replaced.
    pub(crate) fn begin_roll(&self) {
        self.lock().next = Some(Known::default());
    }

    /// All processes have been replaced.
    pub(crate) fn finish_roll(&self) {
        let mut inner = self.lock();
        if let Some(next) = inner.next.take() {
            inner.files = next;
        }
    }

    /// The new processes failed: the old ones continue to serve.
    pub(crate) fn abandon_roll(&self) {
        self.lock().next = None;
    }

    /// Whether the application runs with what it has loaded. While it does not, any source may be what it waits for.
    pub(crate) fn set_running(&self, is_running: bool) {
        self.lock().is_running = is_running;
    }

    /// The files; nothing where the application does not run.
    pub(crate) fn files(&self) -> Option<Arc<Files>> {
        let inner = self.lock();
        inner.is_running.then(|| Arc::clone(&inner.files.files))
    }

    /// Whether one of the files is another than the one that was loaded.
    pub(crate) fn has_changed(&self) -> bool {
        let known = self.lock().files.clone();
        if known.is_incomplete || known.files.iter().any(|(path, state)| FileState::now(path) != *state) {
            return true;
        }
        let Some(folder) = known.folder else { return false };
        sources(&folder, &[]).is_none_or(|now| now.keys().any(|path| !known.files.contains_key(path)))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn add(&mut self, loaded: LoadedFiles) {
        let files = Arc::make_mut(&mut self.files);
        for (path, state) in loaded.files {
            let is_full = files.len() >= LOADED_FILES_MAX;
            match files.entry(path) {
                // Processes have loaded different states of it.
                Entry::Occupied(mut known) if *known.get() != state => drop(known.insert(FileState::Unsure)),
                Entry::Occupied(_) => {}
                Entry::Vacant(_) if is_full => self.is_incomplete = true,
                Entry::Vacant(entry) => drop(entry.insert(state)),
            }
        }
        self.folder = loaded.folder.or_else(|| self.folder.take());
        self.is_incomplete |= loaded.is_incomplete;
    }
}

/// Extensions of source files. Data (JSON, databases, logs) is not among them: an application that
/// writes such a file would be restarted by itself for ever.
const ENDINGS: [&str; 23] = [
    "mjs", "js", "cjs", "mts", "ts", "cts", "jsx", "tsx", "node", "wasm", "py", "rb", "php", "pl", "lua",
    "ex", "exs", "beam", "jar", "war", "dll", "so", "go",
];

/// The sources in a folder, but for packages and for what is in the folders of `served`; nothing where there are more
/// than are looked at. What cannot be read is not there.
pub fn sources(folder: &Path, served: &[PathBuf]) -> Option<Files> {
    let mut search = Search { served, files: Files::new(), entries: 0 };
    search.look_into(folder, 0).then_some(search.files)
}

struct Search<'a> {
    served: &'a [PathBuf],
    files: Files,
    entries: usize,
}

impl Search<'_> {
    /// Whether everything was looked at.
    fn look_into(&mut self, folder: &Path, depth: usize) -> bool {
        let Ok(entries) = fs::read_dir(folder) else { return true };
        entries.filter_map(Result::ok).all(|entry| {
            self.entries += 1;
            self.entries <= SOURCE_ENTRIES_MAX && self.look_at(&entry, depth)
        })
    }

    fn look_at(&mut self, entry: &fs::DirEntry, depth: usize) -> bool {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        // Packages are installed, not written; tools keep their own things under names with a dot.
        if name.starts_with('.') || name == "node_modules" || self.served.contains(&path) {
            return true;
        }
        let is_source = name == "package.json"
            || name.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending));
        let may_be_folder = entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink());
        if !is_source && !may_be_folder {
            return true;
        }
        match fs::metadata(&path) {
            Ok(file) if file.is_dir() && depth < SOURCE_FOLDERS_DEPTH_MAX => self.look_into(&path, depth + 1),
            Ok(file) if file.is_file() && is_source => {
                self.files.insert(path, FileState::of(&file));
                self.files.len() <= SOURCE_FILES_MAX
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(paths: &[&Path], since: SystemTime) -> LoadedFiles {
        LoadedFiles::after(paths.iter().map(|path| path.to_path_buf()).collect(), since)
    }

    #[test]
    fn a_file_that_was_written_while_it_was_loaded_counts_as_changed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("app.mjs");
        fs::write(&path, "one").expect("written");
        let known = Loaded::default();
        known.add(loaded(&[&path], SystemTime::now() + Duration::from_secs(1)), false);
        assert!(!known.has_changed());
        known.add(loaded(&[&path], SystemTime::now() - Duration::from_secs(60)), false);
        assert!(known.has_changed());
    }

    #[test]
    fn files_of_processes_that_are_to_take_over_count_once_they_have() {
        let folder = tempfile::tempdir().expect("a folder");
        let (old, new) = (folder.path().join("old.mjs"), folder.path().join("new.mjs"));
        fs::write(&old, "one").expect("written");
        fs::write(&new, "one").expect("written");
        let since = SystemTime::now() + Duration::from_secs(1);
        let known = Loaded::default();
        known.add(loaded(&[&old], since), false);
        known.begin_roll();
        known.add(loaded(&[&new], since), true);
        fs::write(&new, "another").expect("written");
        assert!(!known.has_changed());
        known.abandon_roll();
        assert!(!known.has_changed());
        known.begin_roll();
        known.add(loaded(&[&new], since), true);
        known.finish_roll();
        fs::remove_file(&old).expect("it was there");
        assert!(!known.has_changed());
        fs::remove_file(&new).expect("it was there");
        assert!(known.has_changed());
    }

    #[test]
    fn a_new_source_in_a_folder_counts_as_a_change_and_data_does_not() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("serve.py"), "").expect("written");
        let known = Loaded::default();
        known.add(LoadedFiles::of_folder(folder.path()), false);
        fs::write(folder.path().join("shop.db"), "").expect("written");
        assert!(!known.has_changed());
        fs::write(folder.path().join("orders.py"), "").expect("written");
        assert!(known.has_changed());
    }

    #[test]
    fn more_files_than_are_remembered_count_as_changed() {
        let known = Loaded::default();
        let files = |from: usize, to: usize| -> LoadedFiles {
            let path = |number| PathBuf::from(format!("/nowhere/{number}"));
            (from..to).map(|number| (path(number), FileState::Missing)).collect::<Files>().into()
        };
        known.add(files(0, LOADED_FILES_MAX), false);
        assert!(!known.has_changed());
        known.add(files(LOADED_FILES_MAX, LOADED_FILES_MAX + 1), false);
        assert!(known.has_changed());
    }
}
