//! What is left out of a pack unless `--include` names it: databases, upload folders and what git ignores.
//!
//! Owns the rules: an application's data must not travel with its code, because a new version would bring the old rows
//! back. Build output is ignored by git as a rule and is needed, so it stays. Reads only `.gitignore` files and the names
//! in folders; `sources.rs` walks.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder, Glob};

use super::base::{Base, parent};
use super::patterns::Patterns;

/// Folders of build output and of dependencies: git ignores them, and programs need them.
const BUILT: [&str; 16] = [
    "dist",
    "build",
    "out",
    "lib",
    "esm",
    "cjs",
    "compiled",
    "generated",
    ".next",
    ".nuxt",
    ".output",
    ".svelte-kit",
    ".prisma",
    ".yarn",
    "vendor",
    "node_modules",
];

/// Folders that hold what the users of an application uploaded.
const UPLOADS: [&str; 2] = ["upload", "uploads"];

/// What SQLite writes beside a database (<https://www.sqlite.org/tempfiles.html>).
const BESIDE_DATABASES: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Why something is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A database, by its name or what lies in it.
    Database,
    /// What users of the application uploaded.
    Uploads,
    /// Git ignores it.
    Ignored,
}

impl Reason {
    /// For a person.
    pub fn text(self) -> &'static str {
        match self {
            Self::Database => "a database",
            Self::Uploads => "an upload folder",
            Self::Ignored => "ignored by git",
        }
    }
}

/// The rules, for one base.
pub struct DataRules {
    base: PathBuf,
    /// The work tree that the base lies in, else the base.
    top: PathBuf,
    included: Patterns,
    /// Lines of `.gitignore` that also ignore what the configuration names: they describe build output.
    built: RefCell<BTreeSet<(Option<PathBuf>, String)>>,
    folders: RefCell<HashMap<String, Option<Reason>>>,
    ignored: RefCell<HashMap<PathBuf, Rc<Gitignore>>>,
}

impl DataRules {
    /// The rules for what lies below this base; `included` goes in whatever they say.
    pub fn new(base: &Base, included: Patterns) -> Self {
        let base = base.resolved().to_path_buf();
        let top = base.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(&base).to_path_buf();
        Self {
            base,
            top,
            included,
            built: RefCell::default(),
            folders: RefCell::default(),
            ignored: RefCell::default(),
        }
    }

    /// The configuration names this: git's rules for it are those of build output.
    pub fn is_needed(&self, path: &str) {
        let mut at = Some(path);
        while let Some(path) = at.filter(|path| !path.is_empty()) {
            let is_folder = self.base.join(path).is_dir();
            self.with_match(path, is_folder, |glob| {
                self.built
                    .borrow_mut()
                    .insert((glob.from().map(Path::to_path_buf), glob.original().to_owned()));
            });
            at = parent(path);
        }
        // What was found so far may be different now.
        self.folders.borrow_mut().clear();
    }

    /// Why something in a project is left out.
    pub(super) fn reason(&self, path: &str, is_folder: bool) -> Option<Reason> {
        if path.is_empty() || is_in_modules(path) || self.included.holds(path) {
            return None;
        }
        self.reason_by_rule(path, is_folder)
    }

    /// Why a served file is left out. Everything else that git ignores is what a build made.
    pub fn reason_served(&self, path: &str) -> Option<Reason> {
        if self.included.holds(path) {
            return None;
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        if is_database(name) {
            return Some(Reason::Database);
        }
        let is_upload = path.split('/').rev().skip(1).any(is_upload_folder);
        (is_upload && self.is_ignored(path)).then_some(Reason::Uploads)
    }

    /// Whether something below this folder, which is left out, was named by `--include`.
    pub(super) fn reaches_below(&self, folder: &str) -> bool {
        self.included.reaches_below(folder)
    }

    /// Patterns of `--include` that nothing fitted.
    pub fn unmet(&self) -> impl Iterator<Item = &str> {
        self.included.unmet()
    }

    fn reason_by_rule(&self, path: &str, is_folder: bool) -> Option<Reason> {
        if is_folder && let Some(known) = self.folders.borrow().get(path) {
            return *known;
        }
        let above = parent(path).filter(|folder| !folder.is_empty());
        let reason = above
            .and_then(|folder| self.reason_by_rule(folder, true))
            .or_else(|| self.own_reason(path, is_folder));
        if is_folder {
            self.folders.borrow_mut().insert(path.to_owned(), reason);
        }
        reason
    }

    fn own_reason(&self, path: &str, is_folder: bool) -> Option<Reason> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let place = self.base.join(path);
        if is_folder && is_upload_folder(name) {
            return Some(Reason::Uploads);
        }
        if (is_folder && holds_database(&place)) || (!is_folder && is_database(name)) {
            return Some(Reason::Database);
        }
        let is_built = is_folder && BUILT.contains(&name) || name.starts_with(".pnp.");
        let mut is_ignored = false;
        if !is_built {
            self.with_match(path, is_folder, |glob| {
                let line = (glob.from().map(Path::to_path_buf), glob.original().to_owned());
                is_ignored = !self.built.borrow().contains(&line);
            });
        }
        is_ignored.then_some(Reason::Ignored)
    }

    fn is_ignored(&self, path: &str) -> bool {
        let mut found = false;
        let mut at = Some((path, false));
        while let Some((path, is_folder)) = at.filter(|(path, _)| !path.is_empty()) {
            self.with_match(path, is_folder, |_| found = true);
            at = parent(path).map(|folder| (folder, true));
        }
        found
    }

    /// Calls back with the line that ignores this very path, as gitignore(5) has it: the last line of the deepest file
    /// that says anything counts.
    fn with_match(&self, path: &str, is_folder: bool, then: impl FnOnce(&Glob)) {
        let place = self.base.join(path);
        for folder in place.ancestors().skip(1) {
            let rules = self.rules_of(folder);
            match rules.matched(&place, is_folder) {
                Match::Ignore(glob) => return then(glob),
                Match::Whitelist(_) => return,
                Match::None => {}
            }
            if folder == self.top {
                break;
            }
        }
    }

    /// The `.gitignore` of a folder; with it, at the top, what this clone alone ignores.
    fn rules_of(&self, folder: &Path) -> Rc<Gitignore> {
        if let Some(known) = self.ignored.borrow().get(folder) {
            return Rc::clone(known);
        }
        let mut builder = GitignoreBuilder::new(folder);
        if folder == self.top {
            add(&mut builder, &folder.join(".git/info/exclude"));
        }
        add(&mut builder, &folder.join(".gitignore"));
        let rules = Rc::new(builder.build().unwrap_or_else(|_| Gitignore::empty()));
        self.ignored.borrow_mut().insert(folder.to_path_buf(), Rc::clone(&rules));
        rules
    }
}

/// Like git, passes over a line that cannot be read.
fn add(builder: &mut GitignoreBuilder, file: &Path) {
    if file.is_file() {
        drop(builder.add(file));
    }
}

pub(super) fn is_in_modules(path: &str) -> bool {
    path.split('/').any(|name| name == "node_modules")
}

fn is_upload_folder(name: &str) -> bool {
    UPLOADS.iter().any(|folder| name.eq_ignore_ascii_case(folder))
}

/// Whether a file is called like a database of SQLite, NeDB and the like, or like what SQLite writes beside one.
fn is_database(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = BESIDE_DATABASES.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    name.rsplit_once('.')
        .is_some_and(|(_, ending)| matches!(ending, "db" | "db3") || ending.starts_with("sqlite"))
}

/// Whether a folder is one of LevelDB or RocksDB (CURRENT names a MANIFEST), or of LMDB.
fn holds_database(folder: &Path) -> bool {
    let is_there = |name: &str| folder.join(name).is_file();
    if is_there("data.mdb") && is_there("lock.mdb") {
        return true;
    }
    is_there("CURRENT")
        && fs::read_dir(folder).is_ok_and(|mut entries| {
            entries.any(|entry| {
                entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("MANIFEST-"))
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_known_by_its_name() {
        for name in [
            "notes.db",
            "a.sqlite",
            "a.sqlite3",
            "A.DB",
            "a.db-wal",
            "a.sqlite3-shm",
            "a.db-journal",
            "a.db3",
        ] {
            assert!(is_database(name), "{name}");
        }
        for name in ["db", "db.js", "sqlite.mjs", "a.dbx", "notes.db.js", "notes-wal", "mdb.txt"] {
            assert!(!is_database(name), "{name}");
        }
    }
}
