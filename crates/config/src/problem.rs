//! What is wrong in a configuration, said to a person: place, cause, next step.
//!
//! Plain data; the program decides how it looks on a terminal. Nothing here may know a directive.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::limits::PROBLEMS_MAX;
use crate::source::SourceText;

/// The code of the warning that a variable stands for nothing.
pub const UNSET_VARIABLE: &str = "unset-variable";

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The configuration cannot be used.
    Error,
    /// It can be used, and something about it should be known.
    Warning,
}

/// One error or warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// A short name for this kind of problem, stable across versions.
    pub code: &'static str,
    /// What is wrong, in one line.
    pub message: String,
    /// What to write beside the marked place; may be empty.
    pub label: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The file in which it is.
    pub file: Arc<SourceText>,
    /// The place in its text, in bytes.
    pub span: Range<usize>,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// A stretch of a file's text.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    pub(crate) file: Arc<SourceText>,
    pub(crate) span: Range<usize>,
}

impl Location {
    /// The place as written.
    pub(crate) fn raw(&self) -> &str {
        self.file.text.get(self.span.clone()).unwrap_or_default()
    }

    /// Where `part` first stands within this place, or all of it where escapes hide the part.
    pub(crate) fn narrowed_to(&self, part: &str) -> Location {
        let span = match self.raw().find(part) {
            Some(at) if !part.is_empty() => self.span.start + at..self.span.start + at + part.len(),
            _ => self.span.clone(),
        };
        Location { file: Arc::clone(&self.file), span }
    }

    /// Line, from 1.
    pub(crate) fn line(&self) -> u32 {
        self.file.line_and_column(self.span.start).0
    }
}

impl Problem {
    /// An error at a place.
    pub(crate) fn error(code: &'static str, place: &Location, message: impl Into<String>) -> Box<Problem> {
        Self::at(Severity::Error, code, place, message.into())
    }

    /// A warning at a place.
    pub(crate) fn warning(code: &'static str, place: &Location, message: impl Into<String>) -> Box<Problem> {
        Self::at(Severity::Warning, code, place, message.into())
    }

    /// Adds what to write beside the place.
    pub(crate) fn label(mut self: Box<Self>, label: impl Into<String>) -> Box<Problem> {
        self.label = label.into();
        self
    }

    /// Adds what to do about it.
    pub(crate) fn help(mut self: Box<Self>, help: impl Into<String>) -> Box<Problem> {
        self.help = Some(help.into());
        self
    }

    /// Whether both say the same of the same place. The files' texts are not compared: they are long.
    fn is_same(&self, other: &Problem) -> bool {
        self.span == other.span
            && self.code == other.code
            && self.file.name == other.file.name
            && self.message == other.message
    }

    fn at(severity: Severity, code: &'static str, place: &Location, message: String) -> Box<Problem> {
        let (line, column) = place.file.line_and_column(place.span.start);
        Box::new(Problem {
            severity,
            code,
            message,
            label: String::new(),
            help: usual_help(code).map(str::to_owned),
            file: Arc::clone(&place.file),
            span: place.span.clone(),
            line,
            column,
        })
    }
}

/// What to do about problems of one kind, where the place does not know better. Every problem names a next step.
fn usual_help(code: &str) -> Option<&'static str> {
    Some(match code {
        "address" => {
            "an address is written `example.com`, `:8080`, `127.0.0.1:8080` or `unix//run/site.sock`"
        }
        "arguments" => "`onehop help directive NAME` shows how a directive is written",
        "block" => "take the block away, or move it to the line that it belongs to",
        "brace" => "take it away, or look for the `{` that is missing above",
        "certificate" => "name an issuer that can give one, or files: `tls cert.pem key.pem`",
        "duplicate-option" => "keep one of them",
        "duration" | "number" | "size" => "write a value within these bounds",
        "host" => "a host is a name (`example.com`), `*.` before a name, or an IP address",
        "import" | "unreadable" => "look whether the path is right, and whether this user may read it",
        "no-effect" => "take the line away",
        "not-yet" => "leave it out; docs/caddy-differences.md has what can be written instead",
        "too-deep" => "write it with fewer levels",
        "too-large" => "write fewer of them, or shorter ones",
        "upstream" => {
            "an upstream is written `localhost:3000`, `https://api.example.com` or `unix//run/app.sock`"
        }
        _ => return None,
    })
}

/// `file:line:column: error: message`, the line, a marker below it, the help.
impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let (name, line, column) = (&self.file.name, self.line, self.column);
        write!(formatter, "{name}:{line}:{column}: {severity}: {}", self.message)?;
        let start = self.span.start.min(self.file.text.len());
        let text = &self.file.text;
        let line_start = text.get(..start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
        let content = text.get(line_start..).unwrap_or_default().lines().next().unwrap_or_default();
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        write!(formatter, "\n{number} | {}", content.replace('\t', "    "))?;
        let before = text.get(line_start..start).unwrap_or_default();
        let indent: usize = before.chars().map(|character| if character == '\t' { 4 } else { 1 }).sum();
        let marked = text.get(self.span.clone()).unwrap_or_default();
        let width = marked.lines().next().unwrap_or_default().chars().count().max(1);
        write!(formatter, "\n{margin} | {}{}", " ".repeat(indent), "^".repeat(width))?;
        if !self.label.is_empty() {
            write!(formatter, " {}", self.label)?;
        }
        match &self.help {
            Some(help) => write!(formatter, "\n{margin} = help: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Problem {}

/// All that was found so far, bounded.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    /// Bounded apart from the warnings: however many of those there are, an error is never lost.
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Problems {
    /// Adds one, unless the bound is reached or the same stands there already.
    pub(crate) fn push(&mut self, problem: Box<Problem>) {
        let list = match problem.severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        // A snippet that is imported many times would repeat its error as often.
        if list.len() < PROBLEMS_MAX && !list.iter().any(|known| known.is_same(&problem)) {
            list.push(*problem);
        }
    }

    /// The value, or nothing and the problem kept.
    pub(crate) fn keep<T>(&mut self, result: Result<T, Box<Problem>>) -> Option<T> {
        result.map_err(|problem| self.push(problem)).ok()
    }

    /// Errors and warnings, each in the order of the files' text.
    pub(crate) fn split(mut self) -> (Vec<Problem>, Vec<Problem>) {
        self.point_to_unset_variables();
        in_order(&mut self.errors);
        in_order(&mut self.warnings);
        (self.errors, self.warnings)
    }
}

impl Problems {
    /// Where a variable on the line of an error stands for nothing, that is the first thing to know.
    fn point_to_unset_variables(&mut self) {
        let unset: Vec<&Problem> =
            self.warnings.iter().filter(|known| known.code == UNSET_VARIABLE).collect();
        for error in &mut self.errors {
            let is_on_line =
                |known: &&&Problem| known.line == error.line && known.file.name == error.file.name;
            let Some(first) = unset.iter().find(is_on_line) else { continue };
            error.help = Some(match error.help.take() {
                Some(help) => format!("{}; {help}", first.message),
                None => first.message.clone(),
            });
        }
    }
}

/// By file, in the order in which the files first appear, and by place within each.
fn in_order(problems: &mut [Problem]) {
    let mut names: Vec<String> = Vec::new();
    for problem in problems.iter() {
        if !names.contains(&problem.file.name) {
            names.push(problem.file.name.clone());
        }
    }
    problems.sort_by_key(|problem| {
        let file = names.iter().position(|name| *name == problem.file.name);
        (file, problem.span.start)
    });
}
