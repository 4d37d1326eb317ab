//! What whoever runs a pack changes: flags, then the environment, then the override file.
//!
//! Finds who says what. What it means is the config crate's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onehop_archive::PackSource;
use onehop_config::{Loaded, Overrides, Problem, Said, Word};

use super::Own;
use crate::arguments::Changes;
use crate::configuration;
use crate::failure::Failure;

/// What was said when the program was started.
#[derive(Debug, Clone)]
pub(super) struct Choices {
    flags: Said,
    environment: Said,
    port: Option<String>,
    /// The override file that was named, absolute.
    named: Option<PathBuf>,
    /// The one that is taken by itself where it is there.
    beside: PathBuf,
    /// Where relative paths of what is written start.
    working_directory: PathBuf,
}

/// What the name of the program is followed by in the name of the file beside it.
const BESIDE: &str = ".override";

impl Choices {
    pub(super) fn of(changes: &Changes, own: &Own) -> Result<Self, Failure> {
        let named = changes.file.as_ref().filter(|file| !file.as_os_str().is_empty());
        let mut beside = own.program.as_os_str().to_owned();
        beside.push(BESIDE);
        let listen = variable("ONEHOP_LISTEN")?;
        let workers = variable("ONEHOP_WORKERS")?;
        Ok(Self {
            flags: Said {
                listen: all_from("--listen", &changes.listen),
                workers: all_from("--workers", &changes.workers),
                env: all_from("--env", &changes.env),
            },
            environment: Said {
                listen: pieces("ONEHOP_LISTEN", &listen),
                workers: pieces("ONEHOP_WORKERS", &workers),
                env: Vec::new(),
            },
            port: Some(variable("PORT")?),
            named: named.map(|path| configuration::absolute(path)).transpose()?,
            beside: beside.into(),
            working_directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
        })
    }

    /// The override file that counts now.
    pub(super) fn file(&self) -> Option<PathBuf> {
        match &self.named {
            Some(named) => Some(named.clone()),
            None => self.beside.exists().then(|| self.beside.clone()),
        }
    }

    /// The override file that would count, if it were there.
    pub(super) fn possible_file(&self) -> PathBuf {
        self.named.clone().unwrap_or_else(|| self.beside.clone())
    }

    /// Reads the packed configuration with all changes, as it means paths below `base`.
    pub(super) fn load(&self, own: &Own, base: &Path) -> Result<Loaded, Vec<Problem>> {
        let overrides = Overrides {
            file: self.file(),
            environment: self.environment.clone(),
            flags: self.flags.clone(),
            port: self.port.clone(),
            pass: own.index.variables.clone(),
            written_below: Some(self.working_directory.clone()),
        };
        let source = PackSource::new(Arc::clone(&own.pack), Arc::clone(&own.index), base);
        let kind = if own.index.configuration.caddyfile {
            onehop_config::FileKind::Caddyfile
        } else {
            onehop_config::FileKind::Onehopfile
        };
        let main = base.join(&own.index.configuration.path);
        onehop_config::load_with(&main, kind, &source, &overrides)
    }
}

/// The value of a variable; empty where it is not set.
fn variable(name: &str) -> Result<String, Failure> {
    match std::env::var(name) {
        Ok(value) => Ok(value),
        Err(std::env::VarError::NotPresent) => Ok(String::new()),
        Err(std::env::VarError::NotUnicode(_)) => Err(Failure::wrong(format!("${name} is not UTF-8"))),
    }
}

fn all_from(from: &str, texts: &[String]) -> Vec<Word> {
    texts.iter().map(|text| Word { from: from.to_owned(), text: text.clone() }).collect()
}

/// Several values of one variable have commas or spaces between them.
fn pieces(from: &str, text: &str) -> Vec<Word> {
    text.split([',', ' ', '\t', '\n'])
        .filter(|piece| !piece.is_empty())
        .map(|piece| Word { from: from.to_owned(), text: piece.to_owned() })
        .collect()
}
