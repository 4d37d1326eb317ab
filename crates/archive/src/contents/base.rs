//! The folder that a pack begins at, and what a configuration means that may lie anywhere.
//!
//! Owns the difference between a path that was written relative, which a pack brings along, and one that names a place
//! of the machine. To see it, the configuration is read as if it lay in a folder that no machine has. Never writes.

use std::cell::Cell;
use std::io;
use std::path::{Component, Path, PathBuf};

use onehop_config::checked::Checked;
use onehop_config::{Entry, FileKind, FileSource, Source, telling_folder};

use super::error::ContentsError;
use super::variables::StandIns;
use crate::index::Configuration;

/// The folder that no machine has is so many folders deep, each of this name: what leads out of it upwards is still seen
/// to have begun in it.
const DEPTH: usize = 32;
const NAME: &str = ".onehop-base";

/// The folder of the Onehopfile; for a Caddyfile the working directory, where its relative paths begin.
#[derive(Debug)]
pub struct Base {
    /// Absolute, by the words alone.
    folder: PathBuf,
    /// Free of links.
    resolved: PathBuf,
    /// Where the configuration thinks that it lies.
    nowhere: PathBuf,
    /// An application is called after the folder.
    names_applications: Cell<bool>,
    /// What variables mean that are set where the pack runs.
    stand_ins: StandIns,
}

/// Where a path of the configuration lies.
#[derive(Debug, PartialEq, Eq)]
pub enum PathLocation {
    /// Below the base; empty: the base itself.
    Within(String),
    /// Written relative, and out of the base: as `../x`.
    LeadsOut(String),
    /// Written absolute although it lies below the base, there.
    WrittenAbsolute(String),
    /// Elsewhere on the machine.
    Outside(PathBuf),
}

/// What is packed.
pub struct Subject {
    /// Where it lies.
    pub base: Base,
    /// The main file.
    pub configuration: Configuration,
    /// What it means; its paths are for [`Base::locate`].
    pub checked: Checked,
    /// Every file that was read, below the base.
    pub files: Vec<String>,
}

impl Subject {
    /// Reads a configuration that is known to be sound.
    ///
    /// # Errors
    ///
    /// It is wrong, or imports what does not lie below its folder.
    pub fn read(file: &Path, kind: FileKind, stand_ins: StandIns) -> Result<Self, ContentsError> {
        let base = Base::of(file, kind, stand_ins)?;
        let main = absolute(file)?;
        let main = main
            .strip_prefix(&base.folder)
            .ok()
            .and_then(Path::to_str)
            .ok_or_else(|| ContentsError::OutsideWorkingDirectory(file.to_owned()))?;
        let loaded = onehop_config::load(&base.nowhere.join(main), kind, &base)
            .map_err(ContentsError::Configuration)?;
        let mut files = Vec::new();
        for path in &loaded.files {
            match base.locate(path) {
                PathLocation::Within(path) => files.push(path),
                other => {
                    let path = base.shown(&other);
                    return Err(ContentsError::ImportsFromOutside { path, base: base.folder.clone() });
                }
            }
        }
        let configuration = Configuration { path: main.to_owned(), caddyfile: kind == FileKind::Caddyfile };
        Ok(Self { base, configuration, checked: loaded.checked, files })
    }
}

impl Base {
    fn of(file: &Path, kind: FileKind, stand_ins: StandIns) -> Result<Self, ContentsError> {
        let folder = match kind {
            FileKind::Caddyfile => FileSource.working_directory(),
            FileKind::Onehopfile => {
                let path = absolute(file)?;
                path.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned)
            }
        };
        let resolved = std::fs::canonicalize(&folder)
            .map_err(|error| ContentsError::Unreadable { path: folder.clone(), error })?;
        let mut nowhere = PathBuf::from("/");
        nowhere.extend(std::iter::repeat_n(NAME, DEPTH));
        Ok(Self { folder, resolved, nowhere, names_applications: Cell::new(false), stand_ins })
    }

    /// As it was named, absolute.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Free of links.
    pub fn resolved(&self) -> &Path {
        &self.resolved
    }

    /// What variables mean that are set where the pack runs.
    pub fn stand_ins(&self) -> &StandIns {
        &self.stand_ins
    }

    /// What it says, where an application is called after it; else empty.
    pub fn name_of_applications(&self) -> String {
        let name =
            Some(()).filter(|()| self.names_applications.get()).and_then(|()| telling_folder(&self.folder));
        name.unwrap_or_default()
    }

    /// Something below it, on this machine.
    pub fn at(&self, below: &str) -> PathBuf {
        if below.is_empty() { self.resolved.clone() } else { self.resolved.join(below) }
    }

    /// Where a path of the configuration lies.
    pub fn locate(&self, path: &Path) -> PathLocation {
        let path = without_dots(path);
        if let Some(below) = path.strip_prefix(&self.nowhere).ok().and_then(Path::to_str) {
            return PathLocation::Within(below.to_owned());
        }
        if path.starts_with(Path::new("/").join(NAME)) {
            return PathLocation::LeadsOut(self.upwards(&path));
        }
        for own in [&self.folder, &self.resolved] {
            if let Some(below) = path.strip_prefix(own).ok().and_then(Path::to_str) {
                return PathLocation::WrittenAbsolute(below.to_owned());
            }
        }
        PathLocation::Outside(path)
    }

    /// A place for a person.
    pub fn shown(&self, location: &PathLocation) -> String {
        match location {
            PathLocation::Within(path) | PathLocation::LeadsOut(path) => path.clone(),
            PathLocation::WrittenAbsolute(path) => self.folder.join(path).display().to_string(),
            PathLocation::Outside(path) => path.display().to_string(),
        }
    }

    /// `../x` for what leads out of the folder that no machine has.
    fn upwards(&self, path: &Path) -> String {
        let (ups, rest) = self.ups(path);
        format!("{}{}", "../".repeat(ups), rest.display())
    }

    fn ups(&self, path: &Path) -> (usize, PathBuf) {
        let mut names = path.components().skip(1).peekable();
        let mut common = 0;
        while common < DEPTH && names.peek().is_some_and(|name| name.as_os_str() == NAME) {
            names.next();
            common += 1;
        }
        (DEPTH - common, names.collect())
    }

    /// What a path of the configuration means on this machine.
    fn real(&self, path: &Path) -> PathBuf {
        let path = without_dots(path);
        if !path.starts_with(Path::new("/").join(NAME)) {
            return path;
        }
        let (ups, rest) = self.ups(&path);
        let from = self.folder.ancestors().nth(ups).unwrap_or(Path::new("/"));
        if rest.as_os_str().is_empty() { from.to_owned() } else { from.join(rest) }
    }
}

impl Source for Base {
    fn read(&self, path: &Path) -> io::Result<String> {
        FileSource.read(&self.real(path))
    }

    fn entry(&self, path: &Path) -> Option<Entry> {
        FileSource.entry(&self.real(path))
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        let found = FileSource.glob(&self.real(pattern))?;
        let back = found.into_iter().map(|path| match path.strip_prefix(&self.folder) {
            Ok(below) => self.nowhere.join(below),
            Err(_) => path,
        });
        Ok(back.collect())
    }

    fn env(&self, name: &str) -> Option<String> {
        self.stand_ins.value(name)
    }

    fn working_directory(&self) -> PathBuf {
        self.nowhere.clone()
    }

    fn stand_in(&self) -> Option<PathBuf> {
        Some(self.nowhere.clone())
    }

    fn name_of_stand_in(&self) -> Option<String> {
        self.names_applications.set(true);
        telling_folder(&self.folder)
    }
}

fn absolute(path: &Path) -> Result<PathBuf, ContentsError> {
    let path =
        std::path::absolute(path).map_err(|error| ContentsError::Nowhere { path: path.to_owned(), error })?;
    Ok(without_dots(&path))
}

/// An absolute path without `.` and `..`, by the words alone, as the configuration's checker does it.
fn without_dots(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => resolved.push(name),
            Component::ParentDir => {
                resolved.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    resolved
}

/// `folder/name`, where an empty folder is the base.
pub fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The folder of something below the base; `None` for the base itself.
pub(in crate::contents) fn parent(path: &str) -> Option<&str> {
    if path.is_empty() {
        return None;
    }
    Some(path.rsplit_once('/').map_or("", |(folder, _)| folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_leads_out_is_distinguished_from_one_that_was_written_absolute() {
        let folder = std::env::temp_dir();
        let file = folder.join("Onehopfile");
        let base = Base::of(&file, FileKind::Onehopfile, StandIns::default()).expect("a folder");
        for (written, expected) in [
            ("dist", PathLocation::Within("dist".into())),
            ("", PathLocation::Within(String::new())),
            ("../x", PathLocation::LeadsOut("../x".into())),
            ("a/../../../y", PathLocation::LeadsOut("../../y".into())),
            ("/etc/ssl", PathLocation::Outside("/etc/ssl".into())),
        ] {
            assert_eq!(base.locate(&base.nowhere.join(written)), expected, "{written}");
        }
        assert_eq!(base.locate(&folder.join("dist")), PathLocation::WrittenAbsolute("dist".into()));
        let above = folder.parent().expect("not the root");
        assert_eq!(base.real(&base.nowhere.join("../x")), above.join("x"));
        assert_eq!(base.real(&base.nowhere.join("x")), folder.join("x"));
    }
}
