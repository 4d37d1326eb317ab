//! Changes to a configuration where it runs: an override file, environment variables, flags.
//!
//! Changes act on lines, before anything is checked: the ordinary checks judge the result, and an error points to
//! where the word was written. Each source of changes is a layer; a later one replaces what an earlier one said.
//! Knows no directive but those that it replaces; never reads but through [`Source`].
//!
//! `file` and `command_line` make layers, `apps` and `listen` put them into effect.

mod apps;
mod command_line;
mod file;
mod listen;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::arguments::listed;
use crate::checked::App;
use crate::limits::FILE_BYTES_MAX;
use crate::nearest::nearest;
use crate::problem::{Location, Problem, Problems};
use crate::source::{Entry, Source, SourceText};
use crate::syntax::{Block, Directive, Parsed, Quote, Token};

use apps::AppChange;
use listen::Listen;
pub(crate) use listen::{Listens, Moved};

/// What is changed, from whom it comes. Flags count more than the environment, that more than the file, and the file
/// more than the configuration.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// The override file, absolute.
    pub file: Option<PathBuf>,
    /// What variables say.
    pub environment: Said,
    /// What flags say.
    pub flags: Said,
    /// `PORT`: acts where nobody else says where to listen, and the configuration does not read it.
    pub port: Option<String>,
    /// Variables that every application takes from the environment.
    pub pass: Vec<String>,
    /// Where relative paths of what is written start (logs, sockets); `None`: where all others do.
    pub written_below: Option<PathBuf>,
}

/// What flags or variables say.
#[derive(Debug, Clone, Default)]
pub struct Said {
    /// Where to listen: `ADDRESS` or `SITE=ADDRESS`.
    pub listen: Vec<Word>,
    /// Processes: `N` or `APP=N`.
    pub workers: Vec<Word>,
    /// Variables of every application: `NAME=VALUE`, or `NAME` to pass on.
    pub env: Vec<Word>,
}

/// A word with where it comes from, which messages name: `--listen`, `ONEHOP_LISTEN`.
#[derive(Debug, Clone, Default)]
pub struct Word {
    /// Where it comes from.
    pub from: String,
    /// The word.
    pub text: String,
}

/// What one source of changes says.
#[derive(Debug, Default)]
struct Layer {
    options: Vec<Directive>,
    listens: Vec<Listen>,
    sites: Vec<SiteChange>,
    apps: Vec<AppChange>,
}

/// Lines of a site; each replaces those of its name.
#[derive(Debug)]
struct SiteChange {
    key: Token,
    lines: Vec<Directive>,
}

/// All changes, read.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// The weakest first.
    layers: Vec<Layer>,
    port: Option<Token>,
    /// Files that were read.
    pub(crate) files: Vec<PathBuf>,
}

/// Reads all changes; what is wrong goes to `problems`.
pub(crate) fn read(
    overrides: &Overrides,
    source: &dyn Source,
    reads_port: bool,
    problems: &mut Problems,
) -> Changes {
    let mut changes = Changes::default();
    changes.layers.push(command_line::passed_on(&overrides.pass));
    if let Some(path) = &overrides.file
        && let Some(text) = text_of(path, source, problems)
    {
        let (layer, files) = file::layer(&text, source, problems);
        changes.layers.push(layer);
        changes.files = files;
    }
    for said in [&overrides.environment, &overrides.flags] {
        changes.layers.push(command_line::layer(said, problems));
    }
    let port = overrides.port.as_deref().filter(|port| !port.is_empty() && !reads_port);
    changes.port = port.map(|port| token_at(format!(":{port}"), &place_of("PORT", port)));
    changes
}

impl Changes {
    /// Whether applications change, whose names have to be known then.
    pub(crate) fn change_apps(&self) -> bool {
        self.layers.iter().any(|layer| !layer.apps.is_empty())
    }

    /// Changes applications. `known` are those of each line; if it `is_whole`, there are no others.
    pub(crate) fn apply_to_apps(
        &self,
        parsed: &mut Parsed,
        known: &[(u32, Arc<App>)],
        is_whole: bool,
        problems: &mut Problems,
    ) {
        let changes = self.layers.iter().flat_map(|layer| &layer.apps);
        apps::apply(changes, &mut parsed.blocks, known, is_whole, problems);
    }

    /// Changes options and lines of sites, and tells which files were read.
    pub(crate) fn apply_to_rest(&mut self, parsed: &mut Parsed, problems: &mut Problems) {
        parsed.files.append(&mut self.files);
        for layer in &self.layers {
            if !layer.options.is_empty() {
                change_options(&mut parsed.blocks, &layer.options);
            }
            for change in &layer.sites {
                match find_site(&parsed.blocks, &change.key) {
                    Ok(number) => {
                        if let Some(block) = parsed.blocks.get_mut(number) {
                            replace(&mut block.lines, &change.lines);
                        }
                    }
                    Err(problem) => problems.push(problem),
                }
            }
        }
    }

    /// Where to listen.
    pub(crate) fn listens(&mut self) -> Listens {
        let layers = self.layers.iter_mut().map(|layer| std::mem::take(&mut layer.listens)).collect();
        Listens { layers, port: self.port.take() }
    }
}

/// Each of these lines takes the place of all of its name.
fn replace(lines: &mut Vec<Directive>, by: &[Directive]) {
    lines.retain(|line| !by.iter().any(|new| new.name.text == line.name.text));
    lines.extend(by.iter().cloned());
}

/// Changes the block of options, which is made where there is none.
fn change_options(blocks: &mut Vec<Block>, options: &[Directive]) {
    match blocks.first_mut().filter(|first| first.keys.is_empty()) {
        Some(block) => replace(&mut block.lines, options),
        None => {
            let place = options.first().map_or_else(|| place_of("", ""), |line| line.name.place.clone());
            let block = Block { keys: Vec::new(), lines: options.to_vec(), braces: true, place };
            blocks.insert(0, block);
        }
    }
}

/// The block of the site with this address.
fn find_site(blocks: &[Block], key: &Token) -> Result<usize, Box<Problem>> {
    let found = blocks.iter().position(|block| block.keys.iter().any(|known| known.text == key.text));
    found.ok_or_else(|| {
        let known: Vec<&str> =
            blocks.iter().flat_map(|block| &block.keys).map(|known| known.text.as_str()).collect();
        let problem = Problem::error("unknown-site", &key.place, format!("there is no site `{}`", key.text));
        match nearest(&key.text, known.iter().copied()) {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem.help(format!("the configuration has {}", listed(&known))),
        }
    })
}

fn text_of(path: &Path, source: &dyn Source, problems: &mut Problems) -> Option<Arc<SourceText>> {
    let name = path.display().to_string();
    let reason = match source.read(path) {
        Ok(text) if text.len() <= FILE_BYTES_MAX => return Some(Arc::new(SourceText::new(name, text))),
        Ok(_) => "the file is too large for a configuration".to_owned(),
        Err(error) => error.to_string(),
    };
    let message = format!("the override file `{name}` cannot be read: {reason}");
    problems.push(Problem::error("unreadable", &place_of(&name, ""), message));
    None
}

/// The whole of a text that is no file.
fn place_of(name: &str, text: &str) -> Location {
    Location { file: Arc::new(SourceText::new(name, text)), span: 0..text.len() }
}

fn token_at(text: impl Into<String>, place: &Location) -> Token {
    Token { text: text.into(), quote: Quote::Double, starts_line: false, place: place.clone(), origin: None }
}

fn line_at(name: &str, args: Vec<Token>, place: &Location) -> Directive {
    Directive { number: 0, name: token_at(name, place), args, block: None }
}

/// A source that remembers whether somebody asked for `PORT`.
pub(crate) struct Noting<'a> {
    source: &'a dyn Source,
    port: Cell<bool>,
}

impl<'a> Noting<'a> {
    pub(crate) fn new(source: &'a dyn Source) -> Self {
        Self { source, port: Cell::new(false) }
    }

    pub(crate) fn asked_for_port(&self) -> bool {
        self.port.get()
    }
}

impl Source for Noting<'_> {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        self.source.read(path)
    }

    fn entry(&self, path: &Path) -> Option<Entry> {
        self.source.entry(path)
    }

    fn glob(&self, pattern: &Path) -> std::io::Result<Vec<PathBuf>> {
        self.source.glob(pattern)
    }

    fn env(&self, name: &str) -> Option<String> {
        if name == "PORT" {
            self.port.set(true);
        }
        self.source.env(name)
    }

    fn working_directory(&self) -> PathBuf {
        self.source.working_directory()
    }
}
