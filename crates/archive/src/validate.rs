//! What an index must keep to before anybody acts on it: nothing outside of the file, nothing outside of the base.

use crate::error::PackError;
use crate::index::{BlobNumber, Coding, Index, Runtime, Source, SourceKind, path_order};
use crate::limits::{ABSOLUTE_PATHS_MAX, ENTRIES_MAX, PATH_BYTES_MAX};
use crate::slot::Location;

/// Checks an index against the location that named it.
pub(crate) fn check(index: &Index, location: &Location) -> Result<(), PackError> {
    let damaged = |what: String| Err(PackError::Damaged(what));
    for (number, blob) in index.blobs.iter().enumerate() {
        let end = blob.offset.checked_add(blob.stored);
        let is_within =
            blob.offset >= location.program && end.is_some_and(|end| end <= location.index_offset);
        let is_plain = blob.coding == Coding::Plain;
        if !is_within || (is_plain && blob.length != blob.stored) {
            return damaged(format!("piece {number} lies outside of it"));
        }
    }
    let files: usize = index.trees.iter().map(|tree| tree.files.len() + tree.folders.len()).sum();
    let runtime = index.runtime.as_ref().map_or(&[][..], |runtime| &runtime.files);
    if files.saturating_add(index.sources.len()).saturating_add(runtime.len()) > ENTRIES_MAX {
        return damaged(format!("it has more than {ENTRIES_MAX} files"));
    }
    for tree in &index.trees {
        if !tree.root.is_empty() {
            is_below(&tree.root)?;
        }
        for folder in &tree.folders {
            is_name(folder)?;
        }
        for file in &tree.files {
            is_name(&file.path)?;
            let forms = [Some(file.identity), file.gzip, file.brotli, file.zstd];
            for number in forms.into_iter().flatten() {
                is_blob(index, number)?;
                // Trees are sent as stored.
                if index.blobs.get(number as usize).is_none_or(|blob| blob.coding != Coding::Plain) {
                    return damaged(format!("{} cannot be sent as it is", file.path.escape_ascii()));
                }
            }
        }
    }
    sources(index, &index.sources)?;
    sources(index, runtime)?;
    if let Some(runtime) = &index.runtime {
        absolute_paths(index, runtime)?;
    }
    is_below(&index.configuration.path)
}

/// Room for paths lies within the files that it is said to be in.
fn absolute_paths(index: &Index, runtime: &Runtime) -> Result<(), PackError> {
    if runtime.paths.len() > ABSOLUTE_PATHS_MAX {
        return Err(PackError::Damaged(format!("{} has more paths than it can have", runtime.name)));
    }
    for absolute in &runtime.paths {
        is_below(&absolute.path)?;
        let length = runtime.files.iter().find_map(|source| match source.kind {
            SourceKind::File { content, .. } if source.path == absolute.file => {
                index.blobs.get(content as usize).map(|blob| blob.length)
            }
            _ => None,
        });
        let end = absolute.offset.checked_add(absolute.room);
        let fits = end.is_some_and(|end| length.is_some_and(|length| end <= length));
        if !fits || absolute.room == 0 || absolute.room > PATH_BYTES_MAX as u64 {
            return Err(PackError::Damaged(format!("{:?} has no room for a path", absolute.file)));
        }
    }
    Ok(())
}

fn sources(index: &Index, sources: &[Source]) -> Result<(), PackError> {
    let mut before: Option<&str> = None;
    for source in sources {
        is_below(&source.path)?;
        if before.is_some_and(|before| path_order(before, &source.path).is_ge()) {
            return Err(PackError::Damaged(format!("{:?} does not stand where it should", source.path)));
        }
        before = Some(&source.path);
        match &source.kind {
            SourceKind::Folder => {}
            SourceKind::File { content, .. } => is_blob(index, *content)?,
            SourceKind::Link { to } => stays_below(&source.path, to)?,
        }
    }
    // Nothing may be written through a link, nor below a file.
    let mut closed: Option<&str> = None;
    for source in sources {
        if closed
            .is_some_and(|closed| source.path.strip_prefix(closed).is_some_and(|rest| rest.starts_with('/')))
        {
            return Err(PackError::Damaged(format!("{:?} lies below what is no folder", source.path)));
        }
        if source.kind != SourceKind::Folder {
            closed = Some(&source.path);
        }
    }
    Ok(())
}

fn is_blob(index: &Index, number: BlobNumber) -> Result<(), PackError> {
    match index.blobs.get(number as usize) {
        Some(_) => Ok(()),
        None => Err(PackError::Damaged(format!("there is no piece {number}"))),
    }
}

/// A path below a base: names, with a slash between them.
pub(crate) fn is_below(path: &str) -> Result<(), PackError> {
    is_name(path.as_bytes())
}

fn is_name(path: &[u8]) -> Result<(), PackError> {
    let is_bad = |part: &[u8]| part.is_empty() || part == b"." || part == b".." || part.contains(&0);
    if path.len() > PATH_BYTES_MAX || path.split(|byte| *byte == b'/').any(is_bad) {
        return Err(PackError::Damaged(format!("\"{}\" is no path below its folder", path.escape_ascii())));
    }
    Ok(())
}

/// A link's target, from the folder of the link, stays below the base.
fn stays_below(path: &str, to: &str) -> Result<(), PackError> {
    let bad = || PackError::Damaged(format!("the link {path:?} leads out, to {to:?}"));
    if to.is_empty() || to.starts_with('/') || to.contains('\0') || to.len() > PATH_BYTES_MAX {
        return Err(bad());
    }
    let mut depth = path.split('/').count() - 1;
    for part in to.split('/') {
        match part {
            "" | "." => {}
            ".." => depth = depth.checked_sub(1).ok_or_else(bad)?,
            _ => depth += 1,
        }
    }
    Ok(())
}
