//! Whether an unpacked folder still holds exactly what was written there.
//!
//! Owns a note in the folder: a digest over names, lengths and times of all that lies in it. It needs no pack, so it also
//! answers for folders of earlier versions. Where the note is missing or cannot be compared, the folder counts as changed.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::Digest;
use crate::layout::{COMPLETE, RECORD};
use crate::limits::ENTRIES_MAX;

use super::named::Named;

/// The note's name in the folder.
pub(super) const NAME: &str = RECORD;

/// The note for a folder as it is now; `None` where it cannot be read.
pub(super) fn of(folder: &Path, pack: &str) -> Option<String> {
    let digest = Digest::of(listing(folder)?.as_bytes());
    Some(format!("{digest}\n{pack}\n"))
}

/// The name of the pack that was unpacked there.
pub(super) fn pack_of(folder: &Path) -> Option<String> {
    let note = fs::read_to_string(folder.join(NAME)).ok()?;
    note.lines().nth(1).map(str::to_owned)
}

/// Whether nothing was changed, added or removed since it was unpacked.
pub(super) fn is_untouched(folder: &Path) -> bool {
    let note = fs::read_to_string(folder.join(NAME));
    note.is_ok_and(|note| {
        let pack = note.lines().nth(1).unwrap_or_default();
        of(folder, pack).is_some_and(|now| now == note)
    })
}

/// Files that are newer than the unpacking, for a person.
pub(super) fn newer(folder: &Path) -> Named {
    let mut named = Named::default();
    let written = fs::symlink_metadata(folder.join(COMPLETE)).and_then(|found| found.modified()).ok();
    walk(folder, |path, found| {
        let is_newer = found.modified().ok().zip(written).is_none_or(|(changed, written)| changed > written);
        if is_newer && !found.is_dir() && path != Path::new(COMPLETE) {
            named.add(path.display().to_string());
        }
    });
    named
}

fn listing(folder: &Path) -> Option<String> {
    let mut lines = Vec::new();
    let is_whole = walk(folder, |path, found| {
        let mut line = String::new();
        for byte in path.as_os_str().as_bytes() {
            let _ = write!(line, "{byte:02x}");
        }
        if !found.is_dir() {
            let _ = write!(line, " {} {} {}", found.len(), found.mtime(), found.mtime_nsec());
        }
        lines.push(line);
    });
    lines.sort_unstable();
    is_whole.then(|| lines.join("\n"))
}

/// Visits everything below the folder but the note; says whether all could be seen.
fn walk(folder: &Path, mut visit: impl FnMut(&Path, &fs::Metadata)) -> bool {
    let mut folders = vec![folder.to_path_buf()];
    let mut count = 0;
    while let Some(at) = folders.pop() {
        let Ok(entries) = fs::read_dir(&at) else { return false };
        for entry in entries {
            let Ok((entry, found)) = entry.and_then(|entry| entry.metadata().map(|found| (entry, found)))
            else {
                return false;
            };
            let path = entry.path();
            let Ok(below) = path.strip_prefix(folder) else { return false };
            if below == Path::new(NAME) {
                continue;
            }
            count += 1;
            if count > ENTRIES_MAX {
                return false;
            }
            visit(below, &found);
            if found.is_dir() {
                folders.push(path);
            }
        }
    }
    true
}
