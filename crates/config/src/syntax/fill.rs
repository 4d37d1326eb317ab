//! What an import gives to what it imports: `{args[0]}`, `{args[1:]}`, `{block}`, `{blocks.name}`.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::{Origin, Token};
use crate::limits::{FILE_BYTES_MAX, IMPORTED_BYTES_MAX};
use crate::problem::Problem;

/// What an import line gives to what it imports.
pub(super) struct Given {
    /// Of the line, with what is imported before them.
    pub(super) args: Vec<Token>,
    block: Vec<Token>,
    named: HashMap<String, Vec<Token>>,
}

impl Given {
    pub(super) fn new(args: Vec<Token>, block: Vec<Token>) -> Self {
        let named = named_blocks(&block);
        Self { args, block, named }
    }
}

/// Imported tokens on the way to what the import makes of them.
pub(super) struct Filling<'a> {
    given: &'a Given,
    /// For what is imported.
    origin: Arc<Origin>,
    /// For what stands in the import's own block. It counts as imported, too, so that imports in it
    /// are one level deeper and circles end.
    block_origin: Arc<Origin>,
    filled: Vec<Token>,
    /// Taken by all imports of this load so far.
    bytes: &'a mut usize,
}

impl<'a> Filling<'a> {
    pub(super) fn new(
        given: &'a Given,
        origin: Arc<Origin>,
        block_origin: Arc<Origin>,
        bytes: &'a mut usize,
    ) -> Self {
        Self { given, origin, block_origin, filled: Vec::new(), bytes }
    }

    pub(super) fn fill(mut self, tokens: Vec<Token>, top_level: bool) -> Result<Vec<Token>, Box<Problem>> {
        let given = self.given;
        let mut in_snippet = SnippetTracker::new(top_level);
        for mut token in tokens {
            if in_snippet.covers(&token) {
                self.push(token)?;
            } else if token.text == "{block}" {
                self.push_all(&given.block)?;
            } else if let Some(name) =
                token.text.strip_prefix("{blocks.").and_then(|rest| rest.strip_suffix('}'))
            {
                self.push_all(given.named.get(name).map(Vec::as_slice).unwrap_or_default())?;
            } else if let Some(range) = variadic(&token, given.args.len() - 1)? {
                let chosen = given.args.get(1..).and_then(|args| args.get(range)).unwrap_or_default();
                for (number, argument) in chosen.iter().enumerate() {
                    let starts_line = token.starts_line && number == 0;
                    self.push(Token { text: argument.text.clone(), starts_line, ..token.clone() })?;
                }
            } else {
                token.text = with_arguments(&token, &given.args)?;
                self.push(token)?;
            }
        }
        Ok(self.filled)
    }

    fn push_all(&mut self, block: &[Token]) -> Result<(), Box<Problem>> {
        let origin = Arc::clone(&self.block_origin);
        block.iter().try_for_each(|token| self.add(token.clone(), &origin))
    }

    fn push(&mut self, token: Token) -> Result<(), Box<Problem>> {
        let origin = Arc::clone(&self.origin);
        self.add(token, &origin)
    }

    fn add(&mut self, mut token: Token, origin: &Arc<Origin>) -> Result<(), Box<Problem>> {
        *self.bytes += size_of::<Token>() + token.text.len();
        if *self.bytes > IMPORTED_BYTES_MAX {
            return Err(too_large(&token));
        }
        token.origin = Some(Arc::clone(origin));
        self.filled.push(token);
        Ok(())
    }
}

fn too_large(token: &Token) -> Box<Problem> {
    let message = "what is imported grows beyond all measure";
    Problem::error("too-large", &token.place, message)
        .help("look for snippets that import one another many times")
}

/// `{args[1:3]}` on its own: the arguments that it stands for.
fn variadic(token: &Token, count: usize) -> Result<Option<Range<usize>>, Box<Problem>> {
    let inside = token.text.strip_prefix("{args[").and_then(|rest| rest.strip_suffix("]}"));
    let Some((from, to)) = inside.and_then(|inside| inside.split_once(':')) else { return Ok(None) };
    if from.contains('}') || to.contains('{') {
        // Several placeholders with a colon between them.
        return Ok(None);
    }
    let bound = |text: &str, open: usize| if text.is_empty() { Some(open) } else { text.parse().ok() };
    match (bound(from, 0), bound(to, count)) {
        (Some(from), Some(to)) if from <= to && to <= count => Ok(Some(from..to)),
        _ => Err(too_few(token, &token.text, count)),
    }
}

/// Replaces `{args[N]}` and the older `{args.N}` within a token.
fn with_arguments(token: &Token, args: &[Token]) -> Result<String, Box<Problem>> {
    let mut rest = token.text.as_str();
    let mut text = String::with_capacity(rest.len());
    while let Some(at) = rest.find("{args") {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let end = from.find('}').map_or(from.len(), |close| close + 1);
        let (placeholder, after) = from.split_at(end);
        let index = placeholder
            .strip_prefix("{args[")
            .and_then(|inside| inside.strip_suffix("]}"))
            .or_else(|| placeholder.strip_prefix("{args.").and_then(|inside| inside.strip_suffix('}')));
        match index {
            None => text.push_str(placeholder),
            Some(index) => {
                match index.parse::<usize>().ok().and_then(|index| args.get(index.checked_add(1)?)) {
                    Some(argument) if text.len() + argument.text.len() > FILE_BYTES_MAX => {
                        return Err(too_large(token));
                    }
                    Some(argument) => text.push_str(&argument.text),
                    None => return Err(too_few(token, placeholder, args.len() - 1)),
                }
            }
        }
        rest = after;
    }
    text.push_str(rest);
    Ok(text)
}

fn too_few(token: &Token, placeholder: &str, count: usize) -> Box<Problem> {
    let place = token.place.narrowed_to(placeholder);
    let message = format!("`{placeholder}` asks for an argument that the import does not give");
    Problem::error("import-arguments", &place, message).help(match count {
        0 => "the import gives none".to_owned(),
        1 => "the import gives one: `{args[0]}`".to_owned(),
        _ => format!("the import gives {count}: `{{args[0]}}` to `{{args[{}]}}`", count - 1),
    })
}

/// Tells the bodies of snippets that are defined within an imported file: their placeholders
/// belong to the imports of those snippets.
struct SnippetTracker {
    watching: bool,
    maybe: bool,
    inside: bool,
    depth: usize,
}

impl SnippetTracker {
    fn new(watching: bool) -> Self {
        Self { watching, maybe: false, inside: false, depth: 0 }
    }

    fn covers(&mut self, token: &Token) -> bool {
        if !self.watching {
            return false;
        }
        if token.is_brace("{") {
            self.inside |= self.depth == 0 && self.maybe;
            self.depth += 1;
        } else if token.is_brace("}") {
            self.depth = self.depth.saturating_sub(1);
            self.inside &= self.depth > 0;
        }
        self.maybe =
            self.depth == 0 && token.starts_line && token.text.starts_with('(') && token.text.ends_with(')');
        self.inside
    }
}

/// The lines of an import's block by their first word, for `{blocks.word}`: the rest of the line,
/// or the inside of its block.
fn named_blocks(block: &[Token]) -> HashMap<String, Vec<Token>> {
    let mut named: HashMap<String, Vec<Token>> = HashMap::new();
    let mut current: Option<String> = None;
    let mut depth = 0_usize;
    for token in block {
        if depth == 0 && (token.starts_line || current.is_none()) {
            named.insert(token.text.clone(), Vec::new());
            current = Some(token.text.clone());
            continue;
        }
        if token.is_brace("{") {
            depth += 1;
            if depth == 1 {
                continue;
            }
        } else if token.is_brace("}") {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                continue;
            }
        }
        if let Some(tokens) = current.as_ref().and_then(|name| named.get_mut(name)) {
            tokens.push(token.clone());
        }
    }
    named
}
