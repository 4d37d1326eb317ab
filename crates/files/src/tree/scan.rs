//! Lists what is served of a tree, without opening any file.
//!
//! Owns the rules for dotfiles, links, special files and the bounds on size and depth. Follows links
//! within the root and notes every link on the way, so that it can be watched. Never follows a link
//! out of the root unless told to.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use xxhash_rust::xxh3::Xxh3;

use super::resolve::{Lost, resolve};
use super::{StoreError, StoreSpec};
use crate::limits::{SKIPPED_LISTED_MAX, STORE_DEPTH_MAX, STORE_FILES_MAX};
use crate::serve::hidden::is_hidden;
use crate::store::{Node, SkipReason, Skipped, Stamp};

/// What is served of a tree.
#[derive(Debug)]
pub(super) struct Tree {
    /// The root, free of links.
    pub(super) root: PathBuf,
    /// Folders; 0 is the root.
    pub(super) folders: Vec<FoundFolder>,
    /// Files, sorted within each folder.
    pub(super) files: Vec<Found>,
    /// What was left out.
    pub(super) skipped: Skipped,
    /// Names that matter in folders which are not served: links on the way and where they lead.
    pub(super) ways: Vec<(PathBuf, OsString)>,
}

/// A folder.
#[derive(Debug)]
pub(super) struct FoundFolder {
    /// Below the root.
    pub(super) path: Box<[u8]>,
    /// Where it really is, free of links.
    pub(super) place: PathBuf,
    /// Last change.
    pub(super) modified: SystemTime,
    /// What it holds.
    pub(super) entries: Vec<(Box<[u8]>, Node)>,
}

/// A file.
#[derive(Debug)]
pub(super) struct Found {
    /// Below the root.
    pub(super) path: Box<[u8]>,
    /// Number of its folder.
    folder: u32,
    /// Where it really is, if a link leads there.
    target: Option<Box<Path>>,
    /// As it stood when it was listed.
    pub(super) stamp: Stamp,
}

/// Lists a tree.
pub(super) fn scan(spec: &StoreSpec) -> Result<Tree, StoreError> {
    let resolved = resolve(&spec.root).map_err(|lost| missing_root(spec, lost))?;
    let found = fs::metadata(&resolved.place)
        .map_err(|source| StoreError::Unreadable { path: resolved.place.clone(), source })?;
    if !found.is_dir() {
        return Err(StoreError::NotAFolder { root: spec.root.clone() });
    }
    let tree = Tree {
        root: resolved.place.clone(),
        folders: Vec::new(),
        files: Vec::new(),
        skipped: Skipped::default(),
        ways: resolved.links,
    };
    let mut scanner = Scanner { spec, tree, chain: Vec::new() };
    scanner.folder(Box::default(), resolved.place, &found)?;
    Ok(scanner.tree)
}

impl Tree {
    /// Where a file really is.
    pub(super) fn place(&self, file: &Found) -> PathBuf {
        match (&file.target, self.folders.get(file.folder as usize)) {
            (None, Some(folder)) => {
                let name = file.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
                folder.place.join(OsStr::from_bytes(name))
            }
            (Some(target), _) => target.to_path_buf(),
            // A file is only ever listed with its folder.
            (None, None) => self.root.join(OsStr::from_bytes(&file.path)),
        }
    }

    /// Tells listings apart without keeping them.
    pub(super) fn signature(&self) -> u128 {
        let mut hash = Xxh3::new();
        hash.update(self.root.as_os_str().as_bytes());
        for folder in &self.folders {
            hash.update(&folder.path);
            hash.update(b"/\n");
        }
        for file in &self.files {
            let stamp = &file.stamp;
            hash.update(&file.path);
            for number in [
                stamp.length,
                stamp.modified.0 as u64,
                u64::from(stamp.modified.1),
                stamp.changed.0 as u64,
                u64::from(stamp.changed.1),
                stamp.identity.0,
                stamp.identity.1,
            ] {
                hash.update(&number.to_ne_bytes());
            }
        }
        hash.digest128()
    }

    /// Whether another look at the tree found the same.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.root == other.root
            && self.files.len() == other.files.len()
            && self.folders.len() == other.folders.len()
            && self.files.iter().zip(&other.files).all(|(a, b)| a.stamp == b.stamp && a.path == b.path)
            && self.folders.iter().zip(&other.folders).all(|(a, b)| a.path == b.path && a.place == b.place)
    }
}

/// Whether an entry of a folder, which is free of links, is served by its name.
pub(super) fn is_shown(spec: &StoreSpec, folder: &Path, name: &[u8]) -> bool {
    let is_dotfile = name.starts_with(b".") && name != b".well-known";
    (spec.dotfiles || !is_dotfile) && !is_hidden(folder, name, &spec.absent)
}

/// The stamp of a file.
pub(super) fn stamp(found: &Metadata) -> Stamp {
    Stamp {
        length: found.len(),
        modified: (found.mtime(), u32::try_from(found.mtime_nsec()).unwrap_or(0)),
        changed: (found.ctime(), u32::try_from(found.ctime_nsec()).unwrap_or(0)),
        identity: (found.dev(), found.ino()),
    }
}

/// Whole seconds, as they stand in Last-Modified.
pub(super) fn modified(stamp: &Stamp) -> SystemTime {
    let seconds = Duration::from_secs(stamp.modified.0.unsigned_abs());
    let time = match stamp.modified.0 {
        0.. => SystemTime::UNIX_EPOCH.checked_add(seconds),
        _ => SystemTime::UNIX_EPOCH.checked_sub(seconds),
    };
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Notes an entry that is left out.
pub(super) fn skip(skipped: &mut Skipped, path: &[u8], reason: SkipReason) {
    skipped.count += 1;
    if skipped.listed.len() < SKIPPED_LISTED_MAX {
        skipped.listed.push((PathBuf::from(OsStr::from_bytes(path)), reason));
    }
}

struct Scanner<'a> {
    spec: &'a StoreSpec,
    tree: Tree,
    /// Folders that hold the one being listed, by device and inode.
    chain: Vec<(u64, u64)>,
}

impl Scanner<'_> {
    /// Lists a folder and all below it; `None` if it went away or may not be read.
    fn folder(
        &mut self,
        path: Box<[u8]>,
        place: PathBuf,
        found: &Metadata,
    ) -> Result<Option<Node>, StoreError> {
        if self.chain.len() >= STORE_DEPTH_MAX {
            return Err(StoreError::TooDeep { path: place, max: STORE_DEPTH_MAX });
        }
        let mut listing = match list(&place, self.spec) {
            Ok(listing) => listing,
            Err(error) => return self.unlisted(&path, place, error),
        };
        listing.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        self.bound(listing.len())?;
        let number = self.tree.folders.len() as u32;
        let time = modified(&stamp(found));
        let folder =
            FoundFolder { path: path.clone(), place: place.clone(), modified: time, entries: vec![] };
        self.tree.folders.push(folder);
        self.chain.push((found.dev(), found.ino()));
        let mut entries = Vec::with_capacity(listing.len());
        for (name, found) in listing {
            let below = join(&path, name.as_bytes());
            if let Some(node) = self.entry(number, below, place.join(&name), &found)? {
                entries.push((name.as_bytes().into(), node));
            }
        }
        self.chain.pop();
        if let Some(folder) = self.tree.folders.get_mut(number as usize) {
            folder.entries = entries;
        }
        Ok(Some(Node::Folder(number)))
    }

    fn entry(
        &mut self,
        folder: u32,
        path: Box<[u8]>,
        place: PathBuf,
        found: &Metadata,
    ) -> Result<Option<Node>, StoreError> {
        let kind = found.file_type();
        if kind.is_dir() {
            return self.folder(path, place, found);
        }
        if kind.is_file() {
            return Ok(Some(self.file(folder, path, None, found)));
        }
        if kind.is_symlink() {
            return self.link(folder, path, &place);
        }
        skip(&mut self.tree.skipped, &path, SkipReason::Special);
        Ok(None)
    }

    fn link(&mut self, folder: u32, path: Box<[u8]>, place: &Path) -> Result<Option<Node>, StoreError> {
        let resolved = match resolve(place) {
            Ok(resolved) => resolved,
            Err(lost) => {
                self.tree.ways.extend(lost.links);
                self.tree.ways.push((lost.nearest, lost.missing));
                skip(&mut self.tree.skipped, &path, SkipReason::BrokenLink);
                return Ok(None);
            }
        };
        self.tree.ways.extend(resolved.links);
        if !self.spec.follow_outside && !resolved.place.starts_with(&self.tree.root) {
            skip(&mut self.tree.skipped, &path, SkipReason::LeavesRoot);
            return Ok(None);
        }
        let found = match fs::symlink_metadata(&resolved.place) {
            Ok(found) => found,
            Err(error) => return self.unlisted(&path, resolved.place, error),
        };
        let kind = found.file_type();
        if kind.is_dir() {
            if self.chain.contains(&(found.dev(), found.ino())) {
                skip(&mut self.tree.skipped, &path, SkipReason::LinkLoop);
                return Ok(None);
            }
            return self.folder(path, resolved.place, &found);
        }
        if !kind.is_file() {
            skip(&mut self.tree.skipped, &path, SkipReason::Special);
            return Ok(None);
        }
        if let (Some(parent), Some(name)) = (resolved.place.parent(), resolved.place.file_name()) {
            self.tree.ways.push((parent.to_path_buf(), name.to_os_string()));
        }
        Ok(Some(self.file(folder, path, Some(resolved.place.into()), &found)))
    }

    fn file(&mut self, folder: u32, path: Box<[u8]>, target: Option<Box<Path>>, found: &Metadata) -> Node {
        let number = self.tree.files.len() as u32;
        self.tree.files.push(Found { path, folder, target, stamp: stamp(found) });
        Node::File(number)
    }

    /// What it means that an entry cannot be looked at.
    fn unlisted(
        &mut self,
        path: &[u8],
        place: PathBuf,
        error: io::Error,
    ) -> Result<Option<Node>, StoreError> {
        match error.kind() {
            // It went away meanwhile: the second look at the tree will notice.
            ErrorKind::NotFound | ErrorKind::NotADirectory if !path.is_empty() => Ok(None),
            ErrorKind::PermissionDenied if !path.is_empty() => {
                skip(&mut self.tree.skipped, path, SkipReason::Unreadable);
                Ok(None)
            }
            _ => Err(StoreError::Unreadable { path: place, source: error }),
        }
    }

    fn bound(&self, more: usize) -> Result<(), StoreError> {
        let listed = self.tree.files.len() + self.tree.folders.len() + self.tree.skipped.count;
        if listed + more > STORE_FILES_MAX {
            return Err(StoreError::TooManyFiles { root: self.spec.root.clone(), max: STORE_FILES_MAX });
        }
        Ok(())
    }
}

fn missing_root(spec: &StoreSpec, lost: Lost) -> StoreError {
    match lost.error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            StoreError::MissingRoot { root: spec.root.clone(), nearest: lost.nearest, missing: lost.missing }
        }
        _ => StoreError::Unreadable { path: spec.root.clone(), source: lost.error },
    }
}

/// Names and kinds in a folder; stops at one more than a store may hold.
fn list(place: &Path, spec: &StoreSpec) -> io::Result<Vec<(OsString, Metadata)>> {
    let mut listing = Vec::new();
    for entry in fs::read_dir(place)? {
        let entry = entry?;
        let name = entry.file_name();
        if !is_shown(spec, place, name.as_bytes()) {
            continue;
        }
        match entry.metadata() {
            Ok(found) => listing.push((name, found)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        if listing.len() > STORE_FILES_MAX {
            break;
        }
    }
    Ok(listing)
}

fn join(folder: &[u8], name: &[u8]) -> Box<[u8]> {
    if folder.is_empty() {
        return name.into();
    }
    [folder, b"/", name].concat().into()
}
