//! What is unpacked where a pack runs: the projects of its applications, what they need of `node_modules`, and the files
//! that the configuration names.
//!
//! Owns what goes in and what stays out, by name, kind and place. Every path that it gathers is free of links but for the
//! links that it notes; nothing is gathered from outside of the base. Reads files only to look for secrets.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use onehop_archive::index::path_order;
use onehop_archive::limits::ENTRIES_MAX;

use super::apps;
use super::base::{Base, join, parent};
use super::glob::Excluded;
use super::notes::Notes;
use super::prune;
use super::secrets::{self, Kind, LOOKED_AT_BYTES_MAX, Secret};
use crate::failure::Failure;

/// A path, in the order of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name(pub(super) String);

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
pub(super) enum Entry {
    Folder,
    File {
        executable: bool,
    },
    Link {
        to: String,
    },
    /// In place of an environment file that was left out.
    StandIn(String),
}

/// Everything that was gathered.
pub(super) type Entries = BTreeMap<Name, Entry>;

/// Links on the way to one file: more is a circle.
const LINKS_MAX: usize = 40;

/// Names that never belong to what runs, wherever they stand.
const NEVER: [&str; 6] = [".git", ".hg", ".svn", ".DS_Store", ".vscode", ".idea"];

/// Walks over the base.
pub(super) struct Gathering<'a> {
    base: &'a Base,
    excluded: &'a Excluded,
    notes: &'a mut Notes,
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
    pub(super) fn new(
        base: &'a Base,
        excluded: &'a Excluded,
        notes: &'a mut Notes,
        outputs: &[&Path],
    ) -> Self {
        Self {
            base,
            excluded,
            notes,
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
    pub(super) fn run(mut self, configuration: &[String], wanted: &apps::Wanted) -> Result<Entries, Failure> {
        for path in configuration.iter().chain(&wanted.files) {
            self.named(path, path)?;
        }
        for path in &wanted.environments {
            self.environment(path)?;
        }
        for folder in &wanted.folders {
            if let Some(folder) = self.settle(folder)? {
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
    fn named(&mut self, path: &str, shown: &str) -> Result<(), Failure> {
        if self.excluded.holds(path) {
            return Err(Failure::wrong(format!(
                "--exclude leaves out {shown}, which the configuration needs\n  \
                 keep it, or put it on the machine and write its absolute path"
            )));
        }
        let Some(place) = self.settle(path)? else { return Ok(()) };
        let found = self.metadata(&place)?;
        self.file(place, &found)
    }

    /// An environment file: it holds secrets whatever it is called.
    fn environment(&mut self, path: &str) -> Result<(), Failure> {
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
    fn walk(&mut self, root: String) -> Result<(), Failure> {
        let mut folders = vec![root];
        while let Some(folder) = folders.pop() {
            if !self.walked.insert(folder.clone()) {
                continue;
            }
            self.note(folder.clone(), Entry::Folder)?;
            let listing = self.list(&folder)?;
            let is_package = listing.iter().any(|(name, _)| name == "package.json");
            for (name, found) in listing {
                let path = join(&folder, &name);
                if self.is_left_out(&folder, &name, &path, is_package) {
                    self.note_variables(&name, &path);
                    continue;
                }
                let kind = found.file_type();
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

    fn file(&mut self, path: String, found: &Metadata) -> Result<(), Failure> {
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
        let name = path.rsplit('/').next().unwrap_or(&path);
        if is_in_modules(&path) {
            if secrets::is_fixture(name, content.as_deref()) {
                self.notes.fixtures += 1;
                return Ok(());
            }
        } else if let Some(kind) = secrets::kind_of(name, content.as_deref()) {
            self.notes.refuse(Secret { path, kind });
            return Ok(());
        }
        self.note(path, Entry::File { executable })
    }

    /// Notes a link and gives what it leads to; `None` where that cannot be packed.
    fn link(&mut self, path: String) -> Result<Option<String>, Failure> {
        let place = self.base.at(&path);
        let Ok(target) = fs::canonicalize(&place) else {
            self.notes.leave_out(path, "a link to nothing");
            return Ok(None);
        };
        let Some(below) = target.strip_prefix(self.base.resolved()).ok().and_then(Path::to_str) else {
            self.links_out.push((path, target));
            return Ok(None);
        };
        let below = below.to_owned();
        if self.excluded.holds(&below) {
            self.notes.leave_out(path, "a link to what --exclude leaves out");
            return Ok(None);
        }
        let written = fs::read_link(&place).ok();
        let written = written.as_deref().and_then(Path::to_str);
        let folder = parent(&path).unwrap_or_default();
        // As it is written, where its words alone lead to where it leads.
        let to = match written {
            Some(written) if resolve(folder, written).as_deref() == Some(below.as_str()) => {
                written.to_owned()
            }
            _ => relative(folder, &below),
        };
        self.note(path, Entry::Link { to })?;
        Ok(Some(below))
    }

    /// Follows a path to where it really is, and notes the links on the way; `None` where that cannot be packed.
    fn settle(&mut self, path: &str) -> Result<Option<String>, Failure> {
        let mut path = path.to_owned();
        for _ in 0..LINKS_MAX {
            let mut at = String::new();
            let mut followed = None;
            for name in path.split('/').filter(|name| !name.is_empty()) {
                at = join(&at, name);
                let is_link =
                    fs::symlink_metadata(self.base.at(&at)).is_ok_and(|found| found.file_type().is_symlink());
                if is_link {
                    let rest = path.get(at.len()..).unwrap_or_default().trim_start_matches('/').to_owned();
                    let Some(target) = self.link(at)? else { return Ok(None) };
                    followed = Some(if rest.is_empty() { target } else { join(&target, &rest) });
                    break;
                }
            }
            match followed {
                Some(target) => path = target,
                None => return Ok(Some(path)),
            }
        }
        Err(Failure::failed(format!("{path} lies behind more than {LINKS_MAX} links")))
    }

    /// Gathers what a package needs.
    fn follow(&mut self, package: &str, is_apps_own: bool) -> Result<(), Failure> {
        let description = self.base.at(&join(package, "package.json"));
        let is_foreign = self.base.at(&join(package, ".pnp.cjs")).exists();
        if is_foreign || !description.is_file() || !self.followed.insert(package.to_owned()) {
            return Ok(());
        }
        let needed = match prune::dependencies(&description) {
            Ok(needed) => needed,
            Err(error) if is_in_modules(package) => {
                self.notes.warnings.push(format!("what it needs is not known: {error}"));
                return Ok(());
            }
            Err(error) => return Err(Failure::wrong(error)),
        };
        for dependency in needed {
            let name = &dependency.name;
            let Some(path) = prune::find(self.base.resolved(), package, name) else {
                self.not_there(package, &dependency, is_apps_own);
                continue;
            };
            if self.excluded.holds(&path) {
                continue;
            }
            if let Some(folder) = self.settle(&path)? {
                self.packages.push(folder.clone());
                self.walk(folder)?;
            }
        }
        Ok(())
    }

    fn not_there(&mut self, package: &str, dependency: &prune::Dependency, is_apps_own: bool) {
        let name = &dependency.name;
        if let Some(above) = prune::find_above(self.base.resolved(), name) {
            self.links_out.push((format!("{name} (for {})", shown(package)), above));
        } else if !dependency.is_required {
            // Optional and peer dependencies may be missing.
        } else if is_apps_own {
            self.missing.push(name.clone());
        } else {
            let sentence = format!("{} needs {name}, which is not installed", shown(package));
            self.notes.warnings.push(sentence);
        }
    }

    fn note(&mut self, path: String, entry: Entry) -> Result<(), Failure> {
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
            return Err(Failure::failed(format!(
                "there are more than {ENTRIES_MAX} files to be packed: is {} the folder that should be? --exclude \
                 leaves folders out",
                self.base.folder().display()
            )));
        }
        Ok(())
    }

    fn list(&mut self, folder: &str) -> Result<Vec<(String, Metadata)>, Failure> {
        let place = self.base.at(folder);
        let failed = |error: std::io::Error| cannot_read(&place, &error);
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

    fn metadata(&self, path: &str) -> Result<Metadata, Failure> {
        let place = self.base.at(path);
        fs::symlink_metadata(&place).map_err(|error| cannot_read(&place, &error))
    }

    fn refuse_links(&self) -> Result<(), Failure> {
        if self.links_out.is_empty() {
            return Ok(());
        }
        let lines = self.links_out.iter().map(|(path, target)| format!("  {path} -> {}\n", target.display()));
        let lines: String = lines.take(50).collect();
        Err(Failure::wrong(format!(
            "what an application needs lies outside of {}, where a pack does not reach:\n{lines}  \
             copy it there, or leave it out with --exclude, or put the Onehopfile in a folder that holds both",
            self.base.folder().display()
        )))
    }

    fn refuse_missing(&self) -> Result<(), Failure> {
        if self.missing.is_empty() {
            return Ok(());
        }
        Err(Failure::failed(format!(
            "package.json names dependencies that are not installed: {}\n  \
             install them and pack again:  npm ci",
            self.missing.join(", ")
        )))
    }
}

fn shown(package: &str) -> &str {
    if package.is_empty() { "package.json" } else { package }
}

fn cannot_read(place: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!(
        "cannot read {}: {error}\n  leave it out with --exclude, or let this user read it",
        place.display()
    ))
}

fn is_in_modules(path: &str) -> bool {
    path.split('/').any(|name| name == "node_modules")
}

fn is_pack(place: &Path) -> bool {
    fs::File::open(place).and_then(|file| onehop_archive::Pack::is_at_end_of(&file)).unwrap_or_default()
}

/// The content of a small file; `None` where it is large or cannot be read, which is told when it is packed.
fn small_content(place: &Path) -> Option<Vec<u8>> {
    let file = fs::File::open(place).ok()?;
    let mut content = Vec::new();
    file.take(LOOKED_AT_BYTES_MAX + 1).read_to_end(&mut content).ok()?;
    (content.len() as u64 <= LOOKED_AT_BYTES_MAX).then_some(content)
}

/// Where the words of a link in this folder lead; `None`: out of the base.
fn resolve(folder: &str, written: &str) -> Option<String> {
    if written.starts_with('/') {
        return None;
    }
    let mut names: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    for name in written.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

/// The way from a folder to something, both below the base.
fn relative(folder: &str, to: &str) -> String {
    let from: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    let to: Vec<&str> = to.split('/').filter(|name| !name.is_empty()).collect();
    let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let up = std::iter::repeat_n("..", from.len() - common);
    let way: Vec<&str> = up.chain(to.iter().skip(common).copied()).collect();
    if way.is_empty() { ".".to_owned() } else { way.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_followed_and_written_by_its_words() {
        for (folder, to, way) in [
            ("", "a", "a"),
            ("a", "a/b", "b"),
            ("a/b", "c", "../../c"),
            ("node_modules", "packages/lib", "../packages/lib"),
            ("a", "", ".."),
            ("a", "a", "."),
        ] {
            assert_eq!(relative(folder, to), way);
            assert_eq!(resolve(folder, way).as_deref(), Some(to), "{folder} {way}");
        }
        assert_eq!(resolve("a", "../../b"), None);
        assert_eq!(resolve("a", "/b"), None);
    }
}
