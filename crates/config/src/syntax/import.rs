//! `import`: the tokens of a snippet or of files take the place of the line that names them, with
//! `{args[0]}`, `{args[1:]}`, `{block}` and `{blocks.name}` filled in. Must not know directives.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Token;
use super::lexer::tokens;
use super::parse::Parser;
use crate::limits::{FILE_BYTES_MAX, FILES_MAX, IMPORT_DEPTH_MAX, IMPORTED_BYTES_MAX};
use crate::nearest::nearest;
use crate::problem::{Place, Problem};
use crate::source::SourceText;

/// One import on the way of a token, to find imports that go round in a circle.
#[derive(Debug)]
pub(crate) struct Origin {
    what: String,
    outer: Option<Arc<Origin>>,
    depth: usize,
}

/// What an import line gives to what it imports.
struct Given {
    args: Vec<Token>,
    block: Vec<Token>,
    named: HashMap<String, Vec<Token>>,
}

impl Parser<'_> {
    /// Replaces the import that comes next. At the top level, snippets defined in what is imported
    /// keep their own `{args[0]}`.
    pub(super) fn import(&mut self, top_level: bool) {
        let Some(word) = self.take() else { return };
        let given = self.given();
        let Some(what) = given.args.first() else {
            let help = "name a snippet, a file or a pattern: `import sites/*.conf`";
            self.problems
                .push(Problem::error("arguments", &word.place, "`import` needs to know what").help(help));
            return;
        };
        if let Err(problem) = self.replace(&word, what, &given, top_level) {
            self.problems.push(problem);
        }
    }

    /// Arguments and block of the import line.
    fn given(&mut self) -> Given {
        let mut given = Given { args: Vec::new(), block: Vec::new(), named: HashMap::new() };
        while let Some(token) = self.take_on_line() {
            if token.is_brace("{") {
                given.block = self.raw_block(&token.place);
                break;
            }
            if token.is_brace("}") {
                self.pending.push(token);
                break;
            }
            given.args.push(token);
        }
        given.named = named_blocks(&given.block);
        given
    }

    fn replace(
        &mut self,
        word: &Token,
        what: &Token,
        given: &Given,
        top_level: bool,
    ) -> Result<(), Box<Problem>> {
        let name = what.text.as_str();
        let depth = word.origin.as_ref().map_or(0, |origin| origin.depth) + 1;
        if depth > IMPORT_DEPTH_MAX {
            let message = format!("imports are nested more than {IMPORT_DEPTH_MAX} deep");
            return Err(Problem::error("too-deep", &what.place, message));
        }
        let mut imported: Vec<(String, Vec<Token>)> = Vec::new();
        if let Some(snippet) = self.snippets.get(name) {
            imported.push((format!("({name})"), snippet.clone()));
        } else {
            for path in self.paths(what)? {
                let what_path = path.display().to_string();
                imported.push((what_path, self.file(&path, &what.place)?));
            }
        }
        let mut expanded = Vec::new();
        for (label, tokens) in imported {
            if is_on_way(word.origin.as_ref(), &label) {
                let message = format!("`{name}` imports itself");
                return Err(Problem::error("import-circle", &what.place, message)
                    .help("follow the imports from here; one of them must go"));
            }
            let origin = Arc::new(Origin { what: label, outer: word.origin.clone(), depth });
            let filled = Filling { given, origin, filled: Vec::new(), bytes: &mut self.imported_bytes };
            expanded.extend(filled.fill(tokens, top_level)?);
        }
        if let Some(first) = expanded.first_mut() {
            first.starts_line = true;
        }
        expanded.reverse();
        self.pending.append(&mut expanded);
        Ok(())
    }

    /// The files that an import means, relative to the file in which it is written.
    fn paths(&mut self, what: &Token) -> Result<Vec<PathBuf>, Box<Problem>> {
        let folder = Path::new(&what.place.file.name).parent().unwrap_or(Path::new(""));
        let pattern = folder.join(&what.text);
        if !what.text.contains(['*', '?']) {
            return Ok(vec![pattern]);
        }
        let many = what.text.matches('*').count() > 1 || what.text.matches('?').count() > 1;
        if many || (what.text.contains('[') && what.text.contains(']')) {
            let message = format!("the pattern `{}` has more than one wildcard", what.text);
            return Err(Problem::error("import", &what.place, message).help("use one `*` or one `?`"));
        }
        let mut found = self.source.glob(&pattern).map_err(|error| {
            let message = format!("`{}` cannot be looked up: {error}", pattern.display());
            Problem::error("import", &what.place, message)
        })?;
        let last = what.text.rsplit('/').next().unwrap_or_default();
        if last.starts_with('*') {
            found
                .retain(|path| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')));
        }
        if found.is_empty() {
            let message = format!("no file fits `{}`", what.text);
            self.problems.push(Problem::warning("import", &what.place, message).label("imports nothing"));
        }
        Ok(found)
    }

    fn file(&mut self, path: &Path, place: &Place) -> Result<Vec<Token>, Box<Problem>> {
        let text = self.source.read(path).map_err(|error| self.unreadable(path, place, &error))?;
        if !self.files.iter().any(|known| known == path) {
            if self.files.len() >= FILES_MAX {
                let message = format!("more than {FILES_MAX} files are imported");
                return Err(Problem::error("too-large", place, message));
            }
            self.files.push(path.to_owned());
        }
        let file = Arc::new(SourceText::new(path.display().to_string(), text));
        Ok(tokens(&file, self.source, self.problems))
    }

    fn unreadable(&self, path: &Path, place: &Place, error: &std::io::Error) -> Box<Problem> {
        if error.kind() != std::io::ErrorKind::NotFound {
            return Problem::error("import", place, format!("`{}` cannot be read: {error}", path.display()));
        }
        let message = format!("neither a snippet nor a file is called `{}`", place.raw());
        let problem = Problem::error("import", place, message);
        match nearest(place.raw(), self.snippets.keys().map(String::as_str)) {
            Some(snippet) => problem.help(format!("did you mean the snippet `{snippet}`?")),
            None => problem.help(format!(
                "looked for the file {}; a snippet must be defined above the line that imports it",
                path.display()
            )),
        }
    }
}

fn is_on_way(origin: Option<&Arc<Origin>>, what: &str) -> bool {
    let mut next = origin;
    while let Some(origin) = next {
        if origin.what == what {
            return true;
        }
        next = origin.outer.as_ref();
    }
    false
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

/// Imported tokens on the way to what the import makes of them.
struct Filling<'a> {
    given: &'a Given,
    origin: Arc<Origin>,
    filled: Vec<Token>,
    /// Taken by all imports of this load so far.
    bytes: &'a mut usize,
}

impl Filling<'_> {
    fn fill(mut self, tokens: Vec<Token>, top_level: bool) -> Result<Vec<Token>, Box<Problem>> {
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

    fn push_all(&mut self, tokens: &[Token]) -> Result<(), Box<Problem>> {
        tokens.iter().try_for_each(|token| self.push(token.clone()))
    }

    /// Adds a token. One from the import's own block counts as imported, too: an import in it must
    /// be one level deeper for circles to end.
    fn push(&mut self, mut token: Token) -> Result<(), Box<Problem>> {
        *self.bytes += size_of::<Token>() + token.text.len();
        if *self.bytes > IMPORTED_BYTES_MAX {
            return Err(too_large(&token));
        }
        token.origin = Some(Arc::clone(&self.origin));
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
fn variadic(token: &Token, count: usize) -> Result<Option<std::ops::Range<usize>>, Box<Problem>> {
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
