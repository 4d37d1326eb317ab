//! Tokens to blocks of lines. Knows braces, site addresses, snippets and where an import may
//! stand; must not know what any directive means.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::lexer::tokens;
use super::{Block, Directive, Quote, Token};
use crate::limits::{BLOCK_DEPTH_MAX, DIRECTIVES_PER_BLOCK_MAX, TOKENS_MAX};
use crate::problem::{Location, Problem, Problems};
use crate::source::{Source, SourceText};

/// A main file with everything that it imports.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// In the order of the file.
    pub(crate) blocks: Vec<Block>,
    /// Every file that was read, the main one first.
    pub(crate) files: Vec<PathBuf>,
}

/// Parses the main file. What is wrong goes to `problems`, and reading goes on behind it.
pub(crate) fn parse(main: &Arc<SourceText>, source: &dyn Source, problems: &mut Problems) -> Parsed {
    let mut parser = parser(main, source, problems);
    let mut blocks = Vec::new();
    while parser.peek().is_some() {
        if let Some(block) = parser.block() {
            blocks.push(block);
        }
    }
    Parsed { blocks, files: parser.files }
}

/// Lines that belong to no site.
#[derive(Debug, Default)]
pub(crate) struct Fragment {
    /// Of the block without a name that it may begin with.
    pub(crate) options: Vec<Directive>,
    /// What follows.
    pub(crate) lines: Vec<Directive>,
    /// Every file that was read, the fragment's own first.
    pub(crate) files: Vec<PathBuf>,
}

/// Parses a file that is no configuration of its own, but what changes one.
pub(crate) fn parse_fragment(
    main: &Arc<SourceText>,
    source: &dyn Source,
    problems: &mut Problems,
) -> Fragment {
    let mut parser = parser(main, source, problems);
    let mut options = Vec::new();
    if parser.peek().is_some_and(|first| first.is_brace("{"))
        && let Some(brace) = parser.take()
    {
        options = parser.lines(Some(&brace.place), 0);
    }
    let mut lines = Vec::new();
    while parser.peek().is_some() {
        lines.append(&mut parser.lines(None, 0));
    }
    Fragment { options, lines, files: parser.files }
}

fn parser<'a>(main: &Arc<SourceText>, source: &'a dyn Source, problems: &'a mut Problems) -> Parser<'a> {
    let mut pending = tokens(main, source, problems);
    pending.reverse();
    Parser {
        source,
        pending,
        taken: 0,
        imports: 0,
        imported_bytes: 0,
        snippets: HashMap::new(),
        files: vec![PathBuf::from(&main.name)],
        imported_files: HashMap::new(),
        lines: 0,
        problems,
    }
}

pub(super) struct Parser<'a> {
    pub(super) source: &'a dyn Source,
    /// What is still to be read, the next token last.
    pub(super) pending: Vec<Token>,
    /// Tokens read so far, to bound what imports can multiply.
    taken: usize,
    /// Imports so far, and the memory that they took, for the same reason.
    pub(super) imports: usize,
    pub(super) imported_bytes: usize,
    pub(super) snippets: HashMap<String, Vec<Token>>,
    pub(super) files: Vec<PathBuf>,
    pub(super) imported_files: HashMap<PathBuf, Vec<Token>>,
    /// Lines so far.
    lines: u32,
    pub(super) problems: &'a mut Problems,
}

impl Parser<'_> {
    pub(super) fn peek(&self) -> Option<&Token> {
        self.pending.last()
    }

    pub(super) fn take(&mut self) -> Option<Token> {
        let token = self.pending.pop()?;
        self.taken += 1;
        if self.taken == TOKENS_MAX {
            let message = "the configuration has too many words after its imports";
            self.problems.push(
                Problem::error("too-large", &token.place, message)
                    .help("look for snippets that import one another many times"),
            );
            self.pending.clear();
        }
        Some(token)
    }

    /// The next token where it stands on the current line.
    pub(super) fn take_on_line(&mut self) -> Option<Token> {
        if self.peek()?.starts_line { None } else { self.take() }
    }

    /// Takes the rest of the line and drops it: what stands there was reported already.
    fn skip_line(&mut self) {
        while self.take_on_line().is_some() {}
    }

    /// A top-level block; nothing where it was a snippet or is broken.
    fn block(&mut self) -> Option<Block> {
        let place = self.peek()?.place.clone();
        let (keys, opening) = self.addresses();
        if let [key] = keys.as_slice()
            && let Some(inside) = key.text.strip_suffix(')')
        {
            if let Some(name) = inside.strip_prefix('(') {
                self.snippet(name, key, opening.as_ref());
                return None;
            }
            if inside.starts_with("&(") {
                let message = "named routes are a feature of Caddy that onehop does not have yet";
                self.problems.push(Problem::error("not-yet", &key.place, message));
                if opening.is_some() {
                    self.raw_block(&key.place);
                }
                return None;
            }
        }
        if keys.is_empty() && opening.is_none() {
            return None;
        }
        let braces = opening.is_some();
        let lines = self.lines(opening.as_ref().map(|brace| &brace.place), 0);
        if keys.is_empty() && lines.is_empty() { None } else { Some(Block { keys, lines, braces, place }) }
    }

    /// Addresses up to the opening brace, which is returned, or up to the first line that does not
    /// continue them.
    fn addresses(&mut self) -> (Vec<Token>, Option<Token>) {
        let mut keys: Vec<Token> = Vec::new();
        let mut comma: Option<Location> = None;
        let mut first = true;
        while let Some(token) = self.peek() {
            if token.starts_line && !first && comma.is_none() && !token.is_brace("{") {
                break;
            }
            if token.starts_line && token.text == "import" && token.quote == Quote::None {
                self.import(true);
                continue;
            }
            if token.is_brace("{") {
                if let Some(place) = comma {
                    self.problems.push(
                        Problem::error("address-comma", &place, "another address must follow this comma")
                            .help("take the comma away, or put the address that is missing"),
                    );
                }
                return (keys, self.take());
            }
            let Some(token) = self.take() else { break };
            if let Err(problem) = self.address(token, &mut keys, &mut comma) {
                self.problems.push(problem);
            }
            // What was broken begins no site: the next line may.
            first = keys.is_empty();
        }
        if let (None, Some(place)) = (self.peek(), comma) {
            let message = "another address must follow this comma";
            let help = "write one, or take the comma away";
            self.problems.push(Problem::error("address-comma", &place, message).help(help));
        }
        (keys, None)
    }

    fn address(
        &mut self,
        mut token: Token,
        keys: &mut Vec<Token>,
        comma: &mut Option<Location>,
    ) -> Result<(), Box<Problem>> {
        let place = token.place.clone();
        if token.is_brace("}") {
            return Err(Problem::error("brace", &place, "this `}` closes nothing")
                .help("take it away, or look for the `{` that is missing above"));
        }
        if token.text.starts_with('@') {
            self.skip_line();
            let message = format!("`{}` is defined outside of a site", token.text);
            return Err(Problem::error("matcher-place", &place, message).help("put it into the site's block"));
        }
        if token.quote == Quote::None && token.text.len() > 1 && token.text.ends_with('{') {
            // Read on as if the space were there, so that the block's own errors show as well.
            token.text.pop();
            let message = format!("the address `{}` and its `{{` need a space between them", token.text);
            self.pending.push(Token { text: "{".into(), starts_line: false, ..token.clone() });
            keys.push(token);
            return Err(Problem::error("address-brace", &place, message).help("write a space before the `{`"));
        }
        *comma = token.text.ends_with(',').then(|| place.clone());
        if comma.is_some() {
            token.text.pop();
        }
        if token.text.contains(',') {
            let help = format!("write `{}`", token.text.replace(',', ", "));
            keys.push(token);
            return Err(
                Problem::error("address-comma", &place, "addresses need a space after the comma").help(help)
            );
        }
        if !token.text.is_empty() {
            keys.push(token);
        }
        Ok(())
    }

    /// Keeps a snippet's tokens for the imports that name it.
    fn snippet(&mut self, name: &str, key: &Token, opening: Option<&Token>) {
        let place = &key.place;
        if opening.is_none() {
            let message = format!("the snippet `({name})` has no block");
            self.problems
                .push(Problem::error("snippet", place, message).help(format!("write `({name}) {{ … }}`")));
            return;
        }
        let tokens = self.raw_block(place);
        if self.snippets.contains_key(name) {
            let message = format!("the snippet `({name})` is defined twice");
            self.problems
                .push(Problem::error("snippet", place, message).help("give one of the two another name"));
            return;
        }
        self.snippets.insert(name.to_owned(), tokens);
    }

    /// The tokens up to the brace that closes the block just opened, without that brace.
    pub(super) fn raw_block(&mut self, opened: &Location) -> Vec<Token> {
        let mut depth = 1_usize;
        let mut tokens = Vec::new();
        while let Some(token) = self.take() {
            if token.is_brace("{") {
                depth += 1;
            } else if token.is_brace("}") {
                depth -= 1;
                if depth == 0 {
                    return tokens;
                }
            }
            tokens.push(token);
        }
        self.problems.push(never_closed(opened));
        tokens
    }

    /// The lines of a block up to its closing brace, or of the whole rest where none was opened.
    fn lines(&mut self, opened: Option<&Location>, depth: usize) -> Vec<Directive> {
        let mut lines = Vec::new();
        while let Some(token) = self.peek() {
            if token.is_brace("}") {
                let Some(token) = self.take() else { break };
                if opened.is_none() {
                    self.problems.push(Problem::error("brace", &token.place, "this `}` closes nothing"));
                    continue;
                }
                self.nothing_after_brace();
                return lines;
            }
            if token.text == "import" && token.quote == Quote::None {
                self.import(false);
                continue;
            }
            if lines.len() == DIRECTIVES_PER_BLOCK_MAX {
                let message = format!("more than {DIRECTIVES_PER_BLOCK_MAX} directives stand in one block");
                self.problems.push(Problem::error("too-large", &token.place.clone(), message));
                self.pending.clear();
                break;
            }
            lines.extend(self.line(depth));
        }
        if let Some(place) = opened {
            self.problems.push(never_closed(place));
        }
        lines
    }

    /// A directive with its arguments and its block.
    fn line(&mut self, depth: usize) -> Option<Directive> {
        let name = self.take()?;
        if name.is_brace("{") {
            let message = "this `{` begins a line";
            self.problems.push(
                Problem::error("brace", &name.place, message).help("put it at the end of the line before"),
            );
            // Read as a block of its own, so that its closing brace is not missed later.
            self.nested(&name, depth);
            return None;
        }
        let mut args = Vec::new();
        let mut block = None;
        while let Some(token) = self.take_on_line() {
            if token.is_brace("{") {
                block = Some(self.nested(&token, depth)?);
                break;
            }
            if token.is_brace("}") {
                // Left for the enclosing block to end on.
                self.problems.push(
                    Problem::error("brace", &token.place, "this `}` must stand on a line of its own")
                        .help("put a line end before it"),
                );
                self.pending.push(token);
                break;
            }
            if token.quote == Quote::None
                && token.text == "{}"
                && self.peek().is_none_or(|next| next.starts_line)
            {
                self.problems.push(
                    Problem::error("brace", &token.place, "`{}` is no block")
                        .help("leave the empty block out, or quote the braces where they are meant as text"),
                );
                break;
            }
            args.push(token);
        }
        self.lines = self.lines.saturating_add(1);
        Some(Directive { number: self.lines, name, args, block })
    }

    fn nested(&mut self, opening: &Token, depth: usize) -> Option<Vec<Directive>> {
        if depth >= BLOCK_DEPTH_MAX {
            let message = format!("blocks are nested more than {BLOCK_DEPTH_MAX} deep");
            self.problems.push(Problem::error("too-deep", &opening.place, message));
            self.raw_block(&opening.place);
            return None;
        }
        if let Some(next) = self.peek()
            && !next.starts_line
        {
            let place = next.place.clone();
            self.problems.push(
                Problem::error("brace", &place, "nothing may follow `{` on its line")
                    .help("put a line end after the brace"),
            );
        }
        Some(self.lines(Some(&opening.place), depth + 1))
    }

    fn nothing_after_brace(&mut self) {
        let Some(next) = self.peek() else { return };
        if next.starts_line || next.is_brace("}") {
            return;
        }
        let place = next.place.clone();
        self.problems.push(
            Problem::error("brace", &place, "nothing may follow `}` on its line")
                .help("put a line end after the brace"),
        );
        self.skip_line();
    }
}

fn never_closed(opened: &Location) -> Box<Problem> {
    Problem::error("brace", opened, "this block is never closed")
        .label("opened here")
        .help("put the `}` that is missing; the indentation shows where")
}
