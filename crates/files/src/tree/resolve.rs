//! Follows symbolic links one step at a time.
//!
//! Owns the question where a path leads and over which links, because every link on the way has to be
//! watched. Never opens what it finds.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::limits::LINKS_MAX;

/// Where a path leads.
#[derive(Debug, Clone)]
pub(super) struct Resolved {
    /// The place itself, free of links.
    pub(super) place: PathBuf,
    /// Links on the way: the folder that holds the link, free of links, and its name there.
    pub(super) links: Vec<(PathBuf, OsString)>,
}

/// A way that does not lead to anything.
#[derive(Debug)]
pub(super) struct Lost {
    /// Why.
    pub(super) error: io::Error,
    /// The last folder on the way that exists, free of links.
    pub(super) nearest: PathBuf,
    /// What is missing in it.
    pub(super) missing: OsString,
    /// Links on the way.
    pub(super) links: Vec<(PathBuf, OsString)>,
}

/// Follows an absolute path to its end.
pub(super) fn resolve(path: &Path) -> Result<Resolved, Lost> {
    let mut place = PathBuf::from("/");
    let mut links = Vec::new();
    let mut ahead: VecDeque<OsString> = parts(path);
    while let Some(part) = ahead.pop_front() {
        if part == ".." {
            place.pop();
            continue;
        }
        let next = place.join(&part);
        let step = fs::symlink_metadata(&next).and_then(|found| match found.file_type() {
            kind if kind.is_symlink() => fs::read_link(&next).map(Some),
            _ => Ok(None),
        });
        let target = match step {
            Ok(target) => target,
            Err(error) => return Err(Lost { error, nearest: place, missing: part, links }),
        };
        let Some(target) = target else {
            place = next;
            continue;
        };
        links.push((place.clone(), part.clone()));
        if links.len() > LINKS_MAX {
            let error = io::Error::other("too many symbolic links");
            return Err(Lost { error, nearest: place, missing: part, links });
        }
        if target.is_absolute() {
            place = PathBuf::from("/");
        }
        for part in parts(&target).into_iter().rev() {
            ahead.push_front(part);
        }
    }
    Ok(Resolved { place, links })
}

fn parts(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_os_string()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn every_link_on_the_way_is_named() {
        let folder = tempfile::tempdir().expect("folder");
        let base = fs::canonicalize(folder.path()).expect("exists");
        fs::create_dir_all(base.join("releases/42/dist")).expect("create");
        symlink("releases/42", base.join("current")).expect("link");
        symlink(base.join("current/../42/dist"), base.join("www")).expect("link");
        let found = resolve(&base.join("www")).expect("leads somewhere");
        assert_eq!(found.place, base.join("releases/42/dist"));
        assert_eq!(found.links, [(base.clone(), "www".into()), (base.clone(), "current".into())]);
    }

    #[test]
    fn links_in_a_circle_end_in_an_error() {
        let folder = tempfile::tempdir().expect("folder");
        symlink("b", folder.path().join("a")).expect("link");
        symlink("a", folder.path().join("b")).expect("link");
        assert!(resolve(&folder.path().join("a")).is_err());
    }

    #[test]
    fn a_missing_place_names_what_exists_before_it() {
        let folder = tempfile::tempdir().expect("folder");
        let base = fs::canonicalize(folder.path()).expect("exists");
        let lost = resolve(&base.join("site/dist")).expect_err("missing");
        assert_eq!((lost.nearest, lost.missing), (base, "site".into()));
    }
}
