//! Reads a configuration and puts files in the place of their `include`.
//!
//! Reads only below the configuration's folder and /etc/nginx. Knows no directive but `include`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onehop_config::Source;

use super::directive::Directive;
use super::lexer::{Flaw, Token, Word, tokens};
use crate::paths::normal;
use crate::position::Position;
use crate::refusal::Refusal;

/// Blocks within blocks; nginx's own contexts nest five deep.
const DEPTH_MAX: usize = 32;
/// Files that are read together.
const FILES_MAX: usize = 100;
/// Directives of all of them together: a file included by many others is there many times.
const DIRECTIVES_MAX: usize = 50_000;
/// Where nginx's own files are.
const SYSTEM_FOLDER: &str = "/etc/nginx";

/// Reads a configuration with all that it includes.
pub(crate) fn read(path: &Path, source: &dyn Source) -> Result<Vec<Directive>, Refusal> {
    let text = source.read(path).map_err(|error| Refusal::unreadable(path, &error))?;
    Reader::below(path, Some(source)).file(path, &text, 0)
}

/// Reads a text that includes no other file, as if it stood in a file.
///
/// # Errors
///
/// What is no configuration, and an `include`.
pub fn parse(path: &Path, text: &str) -> Result<Vec<Directive>, Refusal> {
    Reader::below(path, None).file(path, text, 0)
}

struct Reader<'a> {
    folder: PathBuf,
    source: Option<&'a dyn Source>,
    files: usize,
    directives: usize,
}

impl<'a> Reader<'a> {
    fn below(path: &Path, source: Option<&'a dyn Source>) -> Reader<'a> {
        Reader { folder: path.parent().unwrap_or(path).to_owned(), source, files: 0, directives: 0 }
    }

    fn file(&mut self, path: &Path, text: &str, depth: usize) -> Result<Vec<Directive>, Refusal> {
        let file: Arc<Path> = Arc::from(path);
        self.files += 1;
        let flawed = |flaw: Flaw| {
            Refusal::at(
                &Position { file: Arc::clone(&file), line: flaw.line },
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
    ) -> Result<Vec<Directive>, Refusal> {
        let fail = |line: u32, cause: &str| {
            let place = Position { file: Arc::clone(file), line };
            Err(Refusal::at(&place, cause, "nginx -t tells whether nginx can read it"))
        };
        let mut directives = Vec::new();
        while let Some((token, line)) = tokens.next_if(|(token, _)| *token != Token::Close) {
            let Token::Word(name) = token else { return fail(line, "a directive's name is missing here") };
            let mut directive = Directive {
                name: name.text,
                args: Vec::new(),
                block: None,
                place: Position { file: Arc::clone(file), line },
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
    ) -> Result<(), Refusal> {
        let written = directive.arg(0).to_owned();
        let candidates =
            [self.folder.as_path(), Path::new(SYSTEM_FOLDER)].map(|base| normal(&base.join(&written)));
        let glob =
            |pattern: &PathBuf| self.source.and_then(|source| source.glob(pattern).ok()).unwrap_or_default();
        let found = candidates.iter().map(glob);
        let files = found.into_iter().find(|files| !files.is_empty()).unwrap_or_default();
        // Types of files, which onehop knows itself: a copy of a configuration often lacks them.
        if files.is_empty() && written.ends_with("mime.types") {
            return Ok(());
        }
        if files.is_empty() && !written.contains('*') {
            return Err(Refusal::at(
                &directive.place,
                format!("the file that it includes, `{written}`, is not there"),
                "put it beside the configuration",
            ));
        }
        for path in files {
            if !path.starts_with(&self.folder) && !path.starts_with(SYSTEM_FOLDER) {
                return Err(Refusal::at(
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
            let Some(source) = self.source else { continue };
            let text = source.read(&path).map_err(|error| Refusal::unreadable(&path, &error))?;
            into.extend(self.file(&path, &text, depth + 1)?);
        }
        Ok(())
    }
}
