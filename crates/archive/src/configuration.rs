//! What a configuration in a pack reads: paths below the base are in the pack, all others on the machine.
//!
//! Reads small files out of the pack, verified; unpacks nothing and looks at no disk below the base.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onehop_config::limits::FILE_BYTES_MAX;
use onehop_config::{Entry, FileSource, Source, name_fits};

use crate::index::{Source as Entity, SourceKind, Tree, path_order};
use crate::limits::{LINKS_MAX, PATH_BYTES_MAX};
use crate::{Index, Pack};

/// The configuration of a pack, with the machine around it.
#[derive(Debug)]
pub struct PackSource {
    pack: Arc<Pack>,
    index: Arc<Index>,
    base: PathBuf,
}

impl PackSource {
    /// Paths below `base` are in the pack.
    pub fn new(pack: Arc<Pack>, index: Arc<Index>, base: &Path) -> Self {
        Self { pack, index, base: base.to_path_buf() }
    }

    /// The path below the base, without `.` and `..`; nothing where it leads elsewhere.
    fn below(&self, path: &Path) -> Option<String> {
        let absolute = self.base.join(path);
        let below = absolute.strip_prefix(&self.base).ok()?;
        joined("", below.to_str()?)
    }

    fn find(&self, path: &str) -> Option<&Entity> {
        let sources = &self.index.sources;
        let at = sources.binary_search_by(|source| path_order(&source.path, path)).ok()?;
        sources.get(at)
    }

    /// What a path stands for once links on its way are followed.
    fn resolved(&self, path: &str) -> Option<String> {
        let mut path = path.to_owned();
        for _ in 0..LINKS_MAX {
            match self.first_link(&path) {
                None => return Some(path),
                Some((link, to)) => {
                    let folder = link.rsplit_once('/').map_or("", |(folder, _)| folder);
                    let rest = path.get(link.len()..).unwrap_or_default();
                    path = joined(folder, &format!("{to}{rest}"))?;
                }
            }
        }
        None
    }

    /// The first link on the way of a path, and where it leads.
    fn first_link<'p>(&self, path: &'p str) -> Option<(&'p str, &str)> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        ends.filter_map(|end| path.get(..end)).find_map(|part| {
            match self.find(part).map(|source| &source.kind) {
                Some(SourceKind::Link { to }) => Some((part, to.as_str())),
                _ => None,
            }
        })
    }

    fn kind(&self, path: &str) -> Option<Entry> {
        if path.is_empty() {
            return Some(Entry::Folder);
        }
        let resolved = self.resolved(path);
        match resolved.as_deref().and_then(|path| Some(&self.find(path)?.kind)) {
            Some(SourceKind::File { .. }) => Some(Entry::File),
            Some(SourceKind::Folder) => Some(Entry::Folder),
            Some(SourceKind::Link { .. }) | None => {
                self.index.trees.iter().find_map(|tree| in_tree(tree, path))
            }
        }
    }

    fn text(&self, path: &str) -> io::Result<String> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let resolved = self.resolved(path).ok_or_else(missing)?;
        let Some(SourceKind::File { content, .. }) = self.find(&resolved).map(|source| &source.kind) else {
            return Err(missing());
        };
        let blob = self.index.blobs.get(*content as usize).ok_or_else(missing)?;
        if blob.length > FILE_BYTES_MAX as u64 {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                "the file is too large for a configuration",
            ));
        }
        let bytes = self.pack.content(blob, path).map_err(|error| match error {
            crate::PackError::Io(error) => error,
            error => io::Error::new(io::ErrorKind::InvalidData, format!("the pack {error}")),
        })?;
        String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

/// A path from a folder, without `.` and `..`; nothing where it leads out of the base.
fn joined(folder: &str, path: &str) -> Option<String> {
    if path.len() > PATH_BYTES_MAX {
        return None;
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// What stands at a path of a tree that is served.
fn in_tree(tree: &Tree, path: &str) -> Option<Entry> {
    // Folders on the way to a root are there, too.
    if tree.root == path || tree.root.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')) {
        return Some(Entry::Folder);
    }
    let below = match tree.root.as_str() {
        "" => path,
        root => path.strip_prefix(root)?.strip_prefix('/')?,
    };
    let below = below.as_bytes();
    if tree.files.binary_search_by(|file| file.path.as_slice().cmp(below)).is_ok() {
        return Some(Entry::File);
    }
    tree.folders.iter().any(|folder| folder == below).then_some(Entry::Folder)
}

impl Source for PackSource {
    fn read(&self, path: &Path) -> io::Result<String> {
        match self.below(path) {
            Some(path) => self.text(&path),
            None => FileSource.read(path),
        }
    }

    fn entry(&self, path: &Path) -> Option<Entry> {
        match self.below(path) {
            Some(path) => self.kind(&path),
            None => FileSource.entry(path),
        }
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        let Some(wanted) = self.below(pattern) else { return FileSource.glob(pattern) };
        let parts: Vec<&str> = wanted.split('/').collect();
        let fits = |path: &str| {
            path.split('/').count() == parts.len()
                && path.split('/').zip(&parts).all(|(name, pattern)| name_fits(pattern, name))
        };
        let found: HashSet<PathBuf> = self
            .index
            .sources
            .iter()
            .filter(|source| fits(&source.path))
            .map(|source| self.base.join(&source.path))
            .collect();
        let mut found: Vec<PathBuf> = found.into_iter().collect();
        found.sort();
        Ok(found)
    }

    fn env(&self, name: &str) -> Option<String> {
        FileSource.env(name)
    }

    fn working_directory(&self) -> PathBuf {
        // Where it was for a Caddyfile that was packed.
        self.base.clone()
    }

    fn stand_in(&self) -> Option<PathBuf> {
        Some(self.base.clone())
    }

    fn name_of_stand_in(&self) -> Option<String> {
        Some(self.index.folder.clone()).filter(|folder| !folder.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_below_the_base() {
        for (folder, path, expected) in [
            ("", "a/b", Some("a/b")),
            ("a/b", "../c", Some("a/c")),
            ("a", "./x//y/", Some("a/x/y")),
            ("a", "../..", None),
            ("", "..", None),
            ("", "", Some("")),
        ] {
            assert_eq!(joined(folder, path).as_deref(), expected, "{folder} {path}");
        }
    }

    #[test]
    fn a_tree_has_its_files_its_folders_and_those_on_the_way() {
        let tree = Tree { root: "web/dist".to_owned(), folders: vec![b"img".to_vec()], ..empty() };
        for (path, expected) in [
            ("web", Some(Entry::Folder)),
            ("web/dist", Some(Entry::Folder)),
            ("web/dist/img", Some(Entry::Folder)),
            ("web/dist/none", None),
            ("we", None),
            ("website", None),
        ] {
            assert_eq!(in_tree(&tree, path), expected, "{path}");
        }
    }

    fn empty() -> Tree {
        Tree {
            root: String::new(),
            dotfiles: false,
            follow_outside: false,
            folders: Vec::new(),
            files: Vec::new(),
        }
    }
}
