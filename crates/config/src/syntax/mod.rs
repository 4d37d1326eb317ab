//! From text to a tree of lines, with no idea of what any word means.
//!
//! In the order in which text travels: `environment` puts variables in, `lexer` makes tokens,
//! `parse` makes blocks and lines and replaces imports through `import`. Nothing here may know a
//! directive other than `import`.

mod environment;
mod fill;
mod import;
mod lexer;
mod parse;

use std::sync::Arc;

use crate::problem::Location;

pub use environment::variables_to_set;
pub(crate) use lexer::{WrittenToken, written};
pub(crate) use parse::{Parsed, parse, parse_fragment};

/// How a token was quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quote {
    None,
    Double,
    Backtick,
    Heredoc,
}

/// One word of a configuration.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    /// Without quotes, escapes resolved.
    pub(crate) text: String,
    pub(crate) quote: Quote,
    /// Whether it is the first of its line.
    pub(crate) starts_line: bool,
    pub(crate) place: Location,
    /// The imports through which it came here, innermost first.
    pub(crate) origin: Option<Arc<Origin>>,
}

impl Token {
    /// `{` or `}` that is not quoted and thus is structure.
    fn is_brace(&self, brace: &str) -> bool {
        self.quote == Quote::None && self.text == brace
    }
}

/// A directive with its arguments and its block.
#[derive(Debug, Clone)]
pub(crate) struct Directive {
    /// Of this line alone: what one pass over the configuration learns of it is kept by this number.
    pub(crate) number: u32,
    pub(crate) name: Token,
    pub(crate) args: Vec<Token>,
    pub(crate) block: Option<Vec<Directive>>,
}

/// A top-level block: the global options where it has no keys, else a site.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) keys: Vec<Token>,
    pub(crate) lines: Vec<Directive>,
    /// Whether it stands in braces, which only a file's single site may leave out.
    pub(crate) braces: bool,
    /// Where it begins.
    pub(crate) place: Location,
}

/// One import on the way of a token, to find imports that go round in a circle.
#[derive(Debug)]
pub(crate) struct Origin {
    what: String,
    outer: Option<Arc<Origin>>,
    depth: usize,
}
