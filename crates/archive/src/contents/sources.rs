//! What is unpacked where a pack runs: the projects of its applications, what they need of `node_modules`, and the files
//! that the configuration names.
//!
//! Owns what goes in and what stays out, by name, kind and place. Every path that it gathers is free of links but for the
//! links that it notes; nothing is gathered from outside of the base. Reads files only to look for secrets.

mod links;
mod needed;

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::apps;
use super::base::{Base, join, parent};
use super::data::{DataRules, is_in_modules};
use super::error::ContentsError;
use super::notes::Notes;
use super::patterns::Patterns;
use super::secrets::{self, Kind, LOOKED_AT_BYTES_MAX, Secret};
use crate::index::path_order;
use crate::limits::ENTRIES_MAX;

/// A path, in the order of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(pub String);

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        path_order(&self.0, &other.0)
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What is unpacked.
#[derive(Debug, PartialEq, Eq)]
pub enum Entry {
    /// A folder, with nothing said of what is in it.
    Folder,
    /// A file.
    File {
        /// Whether it can be executed.
        executable: bool,
    },
    /// A link.
    Link {
        /// Where it leads, as it is written.
        to: String,
    },
    /// In place of an environment file that was left out.
    StandIn(String),
}

/// Everything that was gathered.
pub type Entries = BTreeMap<Name, Entry>;

/// Names that never belong to what runs, wherever they stand.
const NEVER: [&str; 6] = [".git", ".hg", ".svn", ".DS_Store", ".vscode", ".idea"];

/// Walks over the base.
pub struct Gathering<'a> {
    base: &'a Base,
    excluded: &'a Patterns,
    rules: &'a DataRules,
    notes: &'a mut Notes,
    /// Roots of trees: one that is a link out of the base is packed as a tree all the same.
    served: &'a [String],
    /// The pack that is made, which may lie here from the last time.
    outputs: Vec<PathBuf>,
    entries: Entries,
    walked: HashSet<String>,
    /// Folders whose package.json has been followed.
    followed: HashSet<String>,
    /// Packages of which it is still to be found out what they need.
    packages: Vec<String>,
    links_out: Vec<(String, PathBuf)>,
    missing: Vec<String>,
}

impl<'a> Gathering<'a> {
    /// Begins with nothing; `outputs` are the files that are made, which never get into a pack.
    pub fn new(
        base: &'a Base,
        excluded: &'a Patterns,
        rules: &'a DataRules,
        notes: &'a mut Notes,
        outputs: &[&Path],
    ) -> Self {
        Self {
            base,
            excluded,
            rules,
            notes,
            served: &[],
            outputs: outputs
                .iter()
                .map(|output| fs::canonicalize(output).unwrap_or_else(|_| (*output).to_owned()))
                .collect(),
            entries: Entries::new(),
            walked: HashSet::new(),
            followed: HashSet::new(),
            packages: Vec::new(),
            links_out: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// Gathers all, or says why not. Secrets are noted, not refused: all of them are told at once.
    ///
    /// # Errors
    ///
    /// Something that has to be there is missing, unreadable, excluded or out of reach.
    pub fn run(
        mut self,
        configuration: &[String],
        needed: &apps::Needed,
        served: &'a [String],
    ) -> Result<Entries, ContentsError> {
        self.served = served;
        for path in configuration.iter().chain(&needed.files) {
            self.named(path, path)?;
        }
        for path in &needed.environments {
            self.environment(path)?;
        }
        for folder in &needed.folders {
            if let Some(folder) = self.settle(folder)? {
                if let Some(reason) = self.rules.reason(&folder, true) {
                    self.notes.leave_out_data(&folder, true, reason);
                }
                // First: what an application itself names has to be there.
                self.follow(&folder, true)?;
                self.walk(folder)?;
            }
        }
        while let Some(package) = self.packages.pop() {
            self.follow(&package, false)?;
        }
        self.refuse_links()?;
        self.refuse_missing()?;
        Ok(self.entries)
    }

    /// A file without which the configuration cannot be used.
    fn named(&mut self, path: &str, shown: &str) -> Result<(), ContentsError> {
        if self.excluded.holds(path) {
            return Err(ContentsError::ExcludedButNeeded(shown.to_owned()));
        }
        let Some(place) = self.settle(path)? else { return Ok(()) };
        let found = self.metadata(&place)?;
        self.file(place, &found)
    }

    /// An environment file: it holds secrets whatever it is called.
    fn environment(&mut self, path: &str) -> Result<(), ContentsError> {
        let content = small_content(&self.base.at(path));
        let names = content.as_deref().map(secrets::variables).unwrap_or_default();
        if !self.excluded.holds(path) {
            self.notes.refuse(Secret { path: path.to_owned(), kind: Kind::Environment(names) });
            return Ok(());
        }
        let listed: Vec<&str> = names.iter().map(String::as_str).collect();
        let text = format!("# Left out of the pack: set these where it runs: {}\n", listed.join(" "));
        self.notes.variables.extend(names);
        self.note(path.to_owned(), Entry::StandIn(text))
    }

    /// A folder and all below it that is to be unpacked.
    fn walk(&mut self, root: String) -> Result<(), ContentsError> {
        let mut folders = vec![root];
        while let Some(folder) = folders.pop() {
            if !self.walked.insert(folder.clone()) {
                continue;
            }
            self.note(folder.clone(), Entry::Folder)?;
            // The folder itself goes in, empty but for what --include names: programs expect to find it.
            let is_data = self.rules.reason(&folder, true).is_some();
            if is_data && !self.rules.reaches_below(&folder) {
                continue;
            }
            let listing = self.list(&folder)?;
            let is_package = listing.iter().any(|(name, _)| name == "package.json");
            for (name, found) in listing {
                let path = join(&folder, &name);
                if self.is_left_out(&folder, &name, &path, is_package) {
                    self.note_variables(&name, &path);
                    continue;
                }
                let kind = found.file_type();
                if let Some(reason) = self.rules.reason(&path, kind.is_dir()) {
                    if !is_data {
                        self.notes.leave_out_data(&path, kind.is_dir(), reason);
                    }
                    self.note_variables(&name, &path);
                    if kind.is_dir() {
                        folders.push(path);
                    }
                    continue;
                }
                if kind.is_symlink() {
                    if let Some(target) = self.link(path)? {
                        let found = self.metadata(&target)?;
                        if found.is_dir() { folders.push(target) } else { self.file(target, &found)? }
                    }
                } else if name == "node_modules" && kind.is_dir() && self.is_followed(&folder, is_package) {
                    self.packages.push(folder.clone());
                } else if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() {
                    self.file(path, &found)?;
                } else {
                    self.notes.leave_out(path, "no file, but a socket, pipe or device");
                }
            }
        }
        Ok(())
    }

    /// Whether what a `node_modules` holds is told by the package that it belongs to. Without one it is taken whole.
    fn is_followed(&self, folder: &str, is_package: bool) -> bool {
        is_package && !self.base.at(&join(folder, ".pnp.cjs")).exists()
    }

    fn is_left_out(&self, folder: &str, name: &str, path: &str, is_package: bool) -> bool {
        let is_own = !is_in_modules(path);
        NEVER.contains(&name)
            || name.starts_with(".onehop")
            || (folder.rsplit('/').next() == Some("node_modules") && matches!(name, ".cache" | ".bin"))
            || (is_own && name.ends_with(".log"))
            || (is_own && is_package && name == "coverage")
            || self.excluded.holds(path)
    }

    /// An environment file that --exclude names is left out, but what it sets is still needed.
    fn note_variables(&mut self, name: &str, path: &str) {
        if secrets::is_environment(name)
            && !is_in_modules(path)
            && let Some(content) = small_content(&self.base.at(path))
        {
            self.notes.variables.extend(secrets::variables(&content));
        }
    }

    fn file(&mut self, path: String, found: &Metadata) -> Result<(), ContentsError> {
        if self.entries.contains_key(&Name(path.clone())) {
            return Ok(());
        }
        let place = self.base.at(&path);
        if self.outputs.contains(&place) {
            return Ok(());
        }
        let executable = found.permissions().mode() & 0o111 != 0;
        if executable && is_pack(&place) {
            self.notes.leave_out(path, "a pack of onehop");
            return Ok(());
        }
        let content = if found.len() <= LOOKED_AT_BYTES_MAX { small_content(&place) } else { None };
        if is_in_modules(&path) {
            if secrets::is_fixture(&path, content.as_deref()) {
                self.notes.fixtures += 1;
                return Ok(());
            }
        } else if let Some(kind) = secrets::kind_of(&path, content.as_deref()) {
            self.notes.refuse(Secret { path, kind });
            return Ok(());
        }
        self.note(path, Entry::File { executable })
    }

    fn note(&mut self, path: String, entry: Entry) -> Result<(), ContentsError> {
        let mut folder = parent(&path);
        while let Some(at) = folder.filter(|at| !at.is_empty()) {
            if self.entries.contains_key(&Name(at.to_owned())) {
                break;
            }
            self.entries.insert(Name(at.to_owned()), Entry::Folder);
            folder = parent(at);
        }
        if !path.is_empty() {
            self.entries.insert(Name(path), entry);
        }
        if self.entries.len() > ENTRIES_MAX {
            let base = self.base.folder().to_owned();
            return Err(ContentsError::TooManyEntries { max: ENTRIES_MAX, base });
        }
        Ok(())
    }

    fn list(&mut self, folder: &str) -> Result<Vec<(String, Metadata)>, ContentsError> {
        let place = self.base.at(folder);
        let failed = |error: std::io::Error| cannot_read(&place, error);
        let mut listing = Vec::new();
        for entry in fs::read_dir(&place).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let found = match entry.metadata() {
                Ok(found) => found,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(error)),
            };
            match entry.file_name().into_string() {
                Ok(name) => listing.push((name, found)),
                Err(name) => {
                    let path = join(folder, &name.to_string_lossy());
                    self.notes.leave_out(path, "its name is not UTF-8");
                }
            }
            if listing.len() > ENTRIES_MAX {
                break;
            }
        }
        listing.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(listing)
    }

    fn metadata(&self, path: &str) -> Result<Metadata, ContentsError> {
        let place = self.base.at(path);
        fs::symlink_metadata(&place).map_err(|error| cannot_read(&place, error))
    }
}

fn cannot_read(place: &Path, error: std::io::Error) -> ContentsError {
    ContentsError::UnreadableSource { path: place.to_owned(), error }
}

fn is_pack(place: &Path) -> bool {
    fs::File::open(place).and_then(|file| crate::Pack::is_at_end_of(&file)).unwrap_or_default()
}

/// The content of a small file; `None` where it is large or cannot be read, which is told when it is packed.
fn small_content(place: &Path) -> Option<Vec<u8>> {
    let file = fs::File::open(place).ok()?;
    let mut content = Vec::new();
    file.take(LOOKED_AT_BYTES_MAX + 1).read_to_end(&mut content).ok()?;
    (content.len() as u64 <= LOOKED_AT_BYTES_MAX).then_some(content)
}
