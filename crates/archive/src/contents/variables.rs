//! Variables of the configuration that are set where the pack runs, and not where it is packed: `{$NAME}`.
//!
//! Owns what they mean while packing. A value of this machine's environment is used for reading, and never packed. Without
//! one the configuration is read as it is; where that is wrong on the line of such a variable, as if something stood there.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use onehop_config::checked::ListenAddress;
use onehop_config::{Entry, FileKind, FileSource, Loaded, Problem, Source, UNSET_VARIABLE, variables_to_set};

use super::error::ContentsError;

/// What stands for a value, tried in this order: a word, a number, an address.
const VALUES: [&str; 3] = ["to-be-set", "1", "127.0.0.1:1"];

/// The port of those among [`VALUES`]; nobody listens there in earnest (tcpmux, RFC 1078).
const PORT: u16 = 1;

/// Times that a configuration is read. Each time one variable at least gets another value, so it is bounded by their
/// number, too; no person writes so many.
const TRIES_MAX: usize = 256;

/// Values of variables that are not set here: each one's place among [`VALUES`].
#[derive(Debug, Default, Clone)]
pub struct StandIns(BTreeMap<String, usize>);

impl StandIns {
    /// The value of a variable.
    pub fn value(&self, name: &str) -> Option<String> {
        let stand_in = || VALUES.get(*self.0.get(name)?).map(|value| (*value).to_owned());
        FileSource.env(name).or_else(stand_in)
    }

    /// Whether an address is made of what stands for a value: nobody is to be told to publish that port.
    pub fn make(&self, address: &ListenAddress) -> bool {
        !self.0.is_empty() && matches!(address, ListenAddress::Tcp { port: PORT, .. })
    }

    /// Gives other values to what stands on the lines of errors; false where there is nothing left to try.
    fn advance(&mut self, errors: &[Problem]) -> bool {
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for error in errors {
            let line = error.line.checked_sub(1).and_then(|line| error.file.text.lines().nth(line as usize));
            names.extend(variables_to_set(line.unwrap_or_default()));
        }
        let mut has_changed = false;
        for name in names.into_iter().filter(|name| FileSource.env(name).is_none()) {
            let next = self.0.get(name).map_or(0, |at| at + 1);
            if next < VALUES.len() {
                self.0.insert(name.to_owned(), next);
                has_changed = true;
            }
        }
        has_changed
    }
}

/// Reads and checks the file, with values for what is set where the pack runs.
///
/// # Errors
///
/// All that is wrong with it.
pub fn load_for_packing(file: &Path, kind: FileKind) -> Result<(Loaded, StandIns), ContentsError> {
    let mut source = Filled(StandIns::default());
    let mut first = None;
    for _ in 0..TRIES_MAX {
        match onehop_config::load(file, kind, &source) {
            Ok(mut loaded) => {
                // They are told with what is to be set where the pack runs.
                loaded.warnings.retain(|warning| warning.code != UNSET_VARIABLE);
                return Ok((loaded, source.0));
            }
            Err(errors) => {
                let goes_on = source.0.advance(&errors);
                // What stands in is nothing that anybody wrote: the errors are told that there are without it.
                first.get_or_insert(errors);
                if !goes_on {
                    break;
                }
            }
        }
    }
    Err(ContentsError::Configuration(first.unwrap_or_default()))
}

/// The variables that these files ask for without a default, sorted.
///
/// # Errors
///
/// One cannot be read.
pub fn asked_for(files: &[PathBuf]) -> Result<Vec<String>, ContentsError> {
    let mut names = BTreeSet::new();
    for path in files {
        let text = FileSource.read(path);
        let text = text.map_err(|error| ContentsError::Unreadable { path: path.clone(), error })?;
        names.extend(variables_to_set(&text).map(str::to_owned));
    }
    Ok(names.into_iter().collect())
}

/// This machine, with values for what is not set.
struct Filled(StandIns);

impl Source for Filled {
    fn read(&self, path: &Path) -> io::Result<String> {
        FileSource.read(path)
    }

    fn entry(&self, path: &Path) -> Option<Entry> {
        FileSource.entry(path)
    }

    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        FileSource.glob(pattern)
    }

    fn env(&self, name: &str) -> Option<String> {
        self.0.value(name)
    }

    fn working_directory(&self) -> PathBuf {
        FileSource.working_directory()
    }
}
