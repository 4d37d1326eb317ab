//! A source that is a map: no test of reading touches the disk.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use onehop_config::{Entry, FileKind, Loaded, Overrides, Problem, Source, load, load_with};

/// Files by path, and variables.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    files: BTreeMap<PathBuf, String>,
    variables: BTreeMap<String, String>,
    stands_for: Option<String>,
}

impl Memory {
    /// With a main file called `Onehopfile`.
    pub(crate) fn main(text: &str) -> Self {
        Self::default().file("Onehopfile", text)
    }

    /// With one file more.
    pub(crate) fn file(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.into(), text.into());
        self
    }

    /// With one variable more.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// With a folder that only stands for another, of which this is known.
    pub(crate) fn standing_for(mut self, name: &str) -> Self {
        self.stands_for = Some(name.into());
        self
    }

    /// Loads the main file.
    pub(crate) fn load(&self) -> Result<Loaded, Vec<Problem>> {
        load(Path::new("Onehopfile"), FileKind::Onehopfile, self)
    }

    /// Loads the main file with changes.
    pub(crate) fn load_with(&self, overrides: &Overrides) -> Result<Loaded, Vec<Problem>> {
        load_with(Path::new("Onehopfile"), FileKind::Onehopfile, self, overrides)
    }

    /// Loads the main file, which must be sound.
    #[track_caller]
    pub(crate) fn sound(&self) -> Loaded {
        self.load().unwrap_or_else(|problems| panic!("{}", text_of(&problems)))
    }

    /// The errors of the main file as text.
    #[track_caller]
    pub(crate) fn errors(&self) -> String {
        match self.load() {
            Ok(loaded) => panic!("no error; warnings: {}", text_of(&loaded.warnings)),
            Err(problems) => text_of(&problems),
        }
    }
}

/// Problems as a person sees them.
pub(crate) fn text_of(problems: &[Problem]) -> String {
    for problem in problems {
        assert!(problem.help.is_some(), "it has no next step: {problem}");
    }
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n\n")
}

impl Source for Memory {
    fn read(&self, path: &Path) -> io::Result<String> {
        let path = path.strip_prefix("/work").unwrap_or(path);
        self.files.get(path).cloned().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn entry(&self, path: &Path) -> Option<Entry> {
        let path = path.strip_prefix("/work").unwrap_or(path);
        if self.files.contains_key(path) {
            return Some(Entry::File);
        }
        let holds_files = path == Path::new("/") || self.files.keys().any(|file| file.starts_with(path));
        holds_files.then_some(Entry::Folder)
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        let pattern = pattern.strip_prefix("/work").unwrap_or(pattern).to_string_lossy();
        let (before, after) = pattern.split_once('*').unwrap_or((&pattern, ""));
        let fits = |path: &&PathBuf| {
            let path = path.to_string_lossy();
            path.len() >= before.len() + after.len() && path.starts_with(before) && path.ends_with(after)
        };
        Ok(self.files.keys().filter(fits).cloned().collect())
    }

    fn env(&self, name: &str) -> Option<String> {
        self.variables.get(name).cloned()
    }

    fn working_directory(&self) -> PathBuf {
        "/work".into()
    }

    fn stand_in(&self) -> Option<PathBuf> {
        self.stands_for.as_ref().map(|_| "/work".into())
    }

    fn name_of_stand_in(&self) -> Option<String> {
        self.stands_for.clone().filter(|name| !name.is_empty())
    }
}
