//! nginx's directives with their blocks, includes put in their place, and the way back to text.
//!
//! Reads only below the configuration's folder and /etc/nginx. Knows no directive but `include`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onehop_config::{FileSource, Source as _};

use super::lexer::{Flaw, Token, Word, tokens};
use crate::trial::TrialError;
use crate::trial::detect::files::{TEXT_BYTES_MAX, normal, read_bounded};

/// Blocks within blocks; nginx's own contexts nest five deep.
const DEPTH_MAX: usize = 32;
/// Files that are read together.
const FILES_MAX: usize = 100;
/// Directives of all of them together: a file included by many others is there many times.
const DIRECTIVES_MAX: usize = 50_000;
/// Where nginx's own files are.
const SYSTEM_FOLDER: &str = "/etc/nginx";

/// Where a directive stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: Arc<Path>,
    pub(super) line: u32,
}

impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}", self.file.display(), self.line)
    }
}

impl Place {
    /// `line 4 of nginx.conf`.
    pub(super) fn words(&self) -> String {
        format!("line {} of {}", self.line, self.file.file_name().unwrap_or_default().to_string_lossy())
    }
}

/// A directive.
#[derive(Debug, Clone)]
pub(super) struct Directive {
    pub(super) name: String,
    pub(super) args: Vec<Word>,
    pub(super) block: Option<Vec<Directive>>,
    pub(super) place: Place,
}

impl Directive {
    /// One without a block, made here.
    pub(super) fn new(name: &str, args: &[&str], place: &Place) -> Directive {
        let args =
            args.iter().map(|text| Word { raw: (*text).to_owned(), text: (*text).to_owned() }).collect();
        Directive { name: name.to_owned(), args, block: None, place: place.clone() }
    }

    /// An argument's text; empty where it is missing.
    pub(super) fn arg(&self, at: usize) -> &str {
        self.args.get(at).map_or("", |word| word.text.as_str())
    }

    /// The directives of its block.
    pub(super) fn inner(&self) -> &[Directive] {
        self.block.as_deref().unwrap_or_default()
    }

    /// As it is written, without its block.
    pub(super) fn shown(&self) -> String {
        let words: Vec<&str> = self.args.iter().map(|word| word.raw.as_str()).collect();
        // Entries of a `map` may be any text, such as none at all.
        let is_bare = |character: char| !character.is_whitespace() && !";{}\"'#".contains(character);
        let name = match !self.name.is_empty() && self.name.chars().all(is_bare) {
            true => self.name.clone(),
            false => format!("\"{}\"", self.name.replace('"', "\\\"")),
        };
        format!("{name} {}", words.join(" ")).trim_end().to_owned()
    }
}

/// Reads a configuration with all that it includes.
pub(super) fn read(path: &Path) -> Result<Vec<Directive>, TrialError> {
    let text = read_bounded(path, TEXT_BYTES_MAX).map_err(|error| TrialError::unreadable(path, &error))?;
    let mut reader = Reader { folder: path.parent().unwrap_or(path).to_owned(), files: 0, directives: 0 };
    reader.file(path, &text, 0)
}

/// Reads a text of our own.
pub(super) fn read_text(path: &Path, text: &str) -> Result<Vec<Directive>, TrialError> {
    Reader { folder: path.parent().unwrap_or(path).to_owned(), files: 0, directives: 0 }.file(path, text, 0)
}

/// Directives as text, each line behind so many tabulators.
pub(super) fn write(directives: &[Directive], depth: usize, out: &mut String) {
    for directive in directives {
        for _ in 0..depth {
            out.push('\t');
        }
        out.push_str(&directive.shown());
        match &directive.block {
            None => out.push_str(";\n"),
            Some(block) => {
                out.push_str(" {\n");
                write(block, depth + 1, out);
                for _ in 0..depth {
                    out.push('\t');
                }
                out.push_str("}\n");
            }
        }
    }
}

struct Reader {
    folder: PathBuf,
    files: usize,
    directives: usize,
}

impl Reader {
    fn file(&mut self, path: &Path, text: &str, depth: usize) -> Result<Vec<Directive>, TrialError> {
        let file: Arc<Path> = Arc::from(path);
        self.files += 1;
        let flawed = |flaw: Flaw| {
            TrialError::found(
                Place { file: Arc::clone(&file), line: flaw.line },
                flaw.cause,
                "nginx -t tells whether nginx can read it",
            )
        };
        if self.files > FILES_MAX {
            return Err(flawed(Flaw { line: 1, cause: format!("more than {FILES_MAX} files are included") }));
        }
        let tokens = tokens(text).map_err(flawed)?;
        let mut tokens = tokens.into_iter().peekable();
        let directives = self.block(&mut tokens, &file, depth)?;
        match tokens.next() {
            None => Ok(directives),
            Some((_, line)) => Err(flawed(Flaw { line, cause: "this `}` closes nothing".to_owned() })),
        }
    }

    /// Directives up to the brace that closes them, which is left, or to the end.
    fn block(
        &mut self,
        tokens: &mut std::iter::Peekable<std::vec::IntoIter<(Token, u32)>>,
        file: &Arc<Path>,
        depth: usize,
    ) -> Result<Vec<Directive>, TrialError> {
        let fail = |line: u32, cause: &str| {
            let place = Place { file: Arc::clone(file), line };
            Err(TrialError::found(place, cause, "nginx -t tells whether nginx can read it"))
        };
        let mut directives = Vec::new();
        while let Some((token, line)) = tokens.next_if(|(token, _)| *token != Token::Close) {
            let Token::Word(name) = token else { return fail(line, "a directive's name is missing here") };
            let mut directive = Directive {
                name: name.text,
                args: Vec::new(),
                block: None,
                place: Place { file: Arc::clone(file), line },
            };
            self.directives += 1;
            if depth > DEPTH_MAX || self.directives > DIRECTIVES_MAX {
                return fail(line, "there are too many blocks or directives for a configuration");
            }
            loop {
                match tokens.next() {
                    Some((Token::Word(word), _)) => directive.args.push(word),
                    Some((Token::End, _)) => break,
                    Some((Token::Open, _)) => {
                        directive.block = Some(self.block(tokens, file, depth + 1)?);
                        if tokens.next().is_none() {
                            return fail(line, "this block is never closed");
                        }
                        break;
                    }
                    _ => return fail(line, "this directive does not end in `;`"),
                }
            }
            if directive.name == "include" && directive.block.is_none() {
                self.include(directive, depth, &mut directives)?;
            } else {
                directives.push(directive);
            }
        }
        Ok(directives)
    }

    /// Puts files in the place of their `include`. Tables of types stay where they are: they are long.
    fn include(
        &mut self,
        mut directive: Directive,
        depth: usize,
        into: &mut Vec<Directive>,
    ) -> Result<(), TrialError> {
        let written = directive.arg(0).to_owned();
        let candidates =
            [self.folder.as_path(), Path::new(SYSTEM_FOLDER)].map(|base| normal(&base.join(&written)));
        let found = candidates.iter().map(|pattern| FileSource.glob(pattern).unwrap_or_default());
        let files = found.into_iter().find(|files| !files.is_empty()).unwrap_or_default();
        if files.is_empty() && !written.contains('*') {
            return Err(TrialError::found(
                &directive.place,
                format!("the file that it includes, `{written}`, is not there"),
                "put it beside the configuration",
            ));
        }
        for path in files {
            if !path.starts_with(&self.folder) && !path.starts_with(SYSTEM_FOLDER) {
                return Err(TrialError::found(
                    &directive.place,
                    format!(
                        "it includes `{}`, which is outside of its folder and of {SYSTEM_FOLDER}",
                        path.display()
                    ),
                    "name the configuration that nginx itself is given",
                ));
            }
            if path.file_name().is_some_and(|name| name == "mime.types") {
                let text = path.display().to_string();
                directive.args = vec![Word { raw: format!("\"{text}\""), text }];
                into.push(directive.clone());
                continue;
            }
            let text =
                read_bounded(&path, TEXT_BYTES_MAX).map_err(|error| TrialError::unreadable(&path, &error))?;
            into.extend(self.file(&path, &text, depth + 1)?);
        }
        Ok(())
    }
}
