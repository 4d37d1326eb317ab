//! `import`: the tokens of a snippet or of files take the place of the line that names them, after
//! `fill` has put in what the line gives. Must not know directives.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::fill::{Filling, Given};
use super::lexer::tokens;
use super::parse::Parser;
use super::{Origin, Token};
use crate::limits::{FILE_BYTES_MAX, FILES_MAX, IMPORT_DEPTH_MAX, IMPORTS_MAX};
use crate::nearest::nearest;
use crate::problem::{Location, Problem};
use crate::source::SourceText;

impl Parser<'_> {
    /// Replaces the import that comes next. At the top level, snippets defined in what is imported
    /// keep their own `{args[0]}`.
    pub(super) fn import(&mut self, top_level: bool) {
        let Some(word) = self.take() else { return };
        let given = self.given();
        self.imports += 1;
        if self.imports > IMPORTS_MAX {
            let message = format!("more than {IMPORTS_MAX} imports are made");
            self.problems.push(
                Problem::error("too-large", &word.place, message)
                    .help("look for files or snippets that import one another many times"),
            );
            // What is left would import on.
            self.pending.clear();
            return;
        }
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
        let (mut args, mut block) = (Vec::new(), Vec::new());
        while let Some(token) = self.take_on_line() {
            if token.is_brace("{") {
                block = self.raw_block(&token.place);
                break;
            }
            if token.is_brace("}") {
                self.pending.push(token);
                break;
            }
            args.push(token);
        }
        Given::new(args, block)
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
            let of = |what| Arc::new(Origin { what, outer: word.origin.clone(), depth });
            // What stands in the import's own block may import the same again without a circle.
            let filled = Filling::new(given, of(label), of(String::new()), &mut self.imported_bytes);
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

    /// The tokens of a file, which is read once however often it is imported.
    fn file(&mut self, path: &Path, place: &Location) -> Result<Vec<Token>, Box<Problem>> {
        if let Some(known) = self.imported_files.get(path) {
            return Ok(known.clone());
        }
        let text = self.source.read(path).map_err(|error| self.unreadable(path, place, &error))?;
        if text.len() > FILE_BYTES_MAX {
            let message = format!("`{}` is too large for a configuration", path.display());
            return Err(Problem::error("too-large", place, message));
        }
        if self.files.len() >= FILES_MAX {
            let message = format!("more than {FILES_MAX} files are imported");
            return Err(Problem::error("too-large", place, message));
        }
        self.files.push(path.to_owned());
        let file = Arc::new(SourceText::new(path.display().to_string(), text));
        let tokens = tokens(&file, self.source, self.problems);
        self.imported_files.insert(path.to_owned(), tokens.clone());
        Ok(tokens)
    }

    fn unreadable(&self, path: &Path, place: &Location, error: &std::io::Error) -> Box<Problem> {
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
