//! The worker's library for Node and Bun: embedded in this binary, unpacked into a folder.
//!
//! Nothing has to be installed. The files are unpacked once, found again by their content, and compared before every start,
//! since temporary folders may be cleaned.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use onehop_archive::private_folder::{hold, is_ours, make, own_user};
use xxhash_rust::xxh3::xxh3_128;

use crate::folder::in_first_place;

/// The folder of the library, which is unpacked if it is not there yet. The entries are `preload.mjs` (Node) and `worker.mjs` (Bun).
pub(crate) fn unpacked() -> Result<PathBuf, String> {
    // For work on the library itself: a build for debugging takes the sources from there instead.
    if cfg!(debug_assertions)
        && let Some(folder) = std::env::var_os("ONEHOP_WORKER_LIBRARY")
    {
        return Ok(folder.into());
    }
    static HELD: Mutex<Option<std::fs::File>> = Mutex::new(None);
    let path = in_first_place(|base| unpack_in(base, FILES))?;
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    // A folder that was made anew needs a lock of its own.
    *held = hold(&path).ok();
    Ok(path)
}

/// The name of its folder.
pub(crate) fn library_name() -> String {
    folder_name(FILES)
}

/// What the name of its folder begins with.
pub(crate) const LIBRARY_FOLDER: &str = "onehop-node-";

/// A file by name and content.
type File = (&'static str, &'static str);

/// All of `sdk/node/src`; `build.rs` makes the list.
const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/worker_library.rs"));

fn folder_name(files: &[File]) -> String {
    format!("{LIBRARY_FOLDER}{}-{:032x}", own_user(), hash(files))
}

fn unpack_in(base: &Path, files: &[File]) -> Result<PathBuf, String> {
    // Without links: Node names the modules that it loads by their real paths, and the library compares them with its own.
    let base = base.canonicalize().map_err(|error| error.to_string())?;
    let name = folder_name(files);
    let path = base.join(&name);
    if is_intact(&path, files) {
        return Ok(path);
    }
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let fresh = base.join(format!("{name}-{}-{count}", std::process::id()));
    let written = write(&fresh, files).and_then(|()| std::fs::rename(&fresh, &path));
    if written.is_ok() {
        return Ok(path);
    }
    if is_intact(&path, files) {
        // Another process was quicker.
        let _ = std::fs::remove_dir_all(&fresh);
        return Ok(path);
    }
    // The folder in the way is not ours, or holds other files: it is left alone, and not used.
    if is_intact(&fresh, files) {
        Ok(fresh)
    } else {
        Err(written.err().map_or_else(String::new, |e| e.to_string()))
    }
}

fn write(folder: &Path, files: &[File]) -> std::io::Result<()> {
    // Its content is public; what matters is that no other user may write there. Workers of other users read it.
    make(folder, 0o755)?;
    for (name, content) in files {
        let path = folder.join(name);
        if let Some(parent) = path.parent()
            && !parent.is_dir()
        {
            make(parent, 0o755)?;
        }
        std::fs::write(&path, content)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644))?;
    }
    Ok(())
}

fn is_intact(folder: &Path, files: &[File]) -> bool {
    is_ours(folder, true)
        && files.iter().all(|(name, content)| {
            let path = folder.join(name);
            // Folders within it belong to its owner.
            is_ours(&path, false) && std::fs::read(&path).is_ok_and(|found| found == content.as_bytes())
        })
}

fn hash(files: &[File]) -> u128 {
    let mut all = Vec::new();
    for (name, content) in files {
        for part in [name, content] {
            all.extend_from_slice(&(part.len() as u64).to_le_bytes());
            all.extend_from_slice(part.as_bytes());
        }
    }
    xxh3_128(&all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: &[File] = &[("worker.mjs", "import './a.mjs';\n"), ("a.mjs", "1;\n")];

    #[test]
    fn every_source_of_the_library_is_in_the_binary() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/node/src");
        let mut there = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("listed") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "mjs") {
                    let name = path.strip_prefix(&root).expect("below");
                    there.push(name.to_str().expect("text").to_owned());
                }
            }
        }
        there.sort();
        let mut known: Vec<_> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        known.sort();
        assert_eq!(known, there);
    }

    #[test]
    fn the_library_is_unpacked_once_and_found_again() {
        let base = tempfile::tempdir().expect("a folder");
        let first = unpack_in(base.path(), SOME).expect("unpacked");
        assert_eq!(std::fs::read_to_string(first.join("a.mjs")).expect("there"), "1;\n");
        assert_eq!(unpack_in(base.path(), SOME).expect("found"), first);
        assert_eq!(std::fs::read_dir(base.path()).expect("listed").count(), 1);
    }

    #[test]
    fn a_folder_whose_content_was_changed_is_not_used() {
        let base = tempfile::tempdir().expect("a folder");
        let first = unpack_in(base.path(), SOME).expect("unpacked");
        std::fs::write(first.join("a.mjs"), "2;\n").expect("written");
        let second = unpack_in(base.path(), SOME).expect("unpacked");
        assert_ne!(first, second);
        assert_eq!(std::fs::read_to_string(second.join("a.mjs")).expect("there"), "1;\n");
    }

    #[test]
    fn a_place_that_is_a_link_is_named_by_where_it_leads() {
        let base = tempfile::tempdir().expect("a folder");
        let (real, link) = (base.path().join("private"), base.path().join("link"));
        std::fs::create_dir(&real).expect("made");
        std::os::unix::fs::symlink(&real, &link).expect("linked");
        let library = unpack_in(&link, SOME).expect("unpacked");
        assert_eq!(library.parent(), Some(real.canonicalize().expect("there").as_path()));
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let base = tempfile::tempdir().expect("a folder");
        let first = unpack_in(base.path(), SOME).expect("unpacked");
        let moved = base.path().join("moved");
        std::fs::rename(&first, &moved).expect("moved");
        std::os::unix::fs::symlink(&moved, &first).expect("linked");
        assert_ne!(unpack_in(base.path(), SOME).expect("unpacked"), first);
    }
}
