//! Regular expressions: how they are compiled, everywhere, and which of a request's captures are kept.

use regex_lite::{Regex, RegexBuilder};

use crate::limits::EXPRESSION_BYTES_MAX;

/// The expression of a matcher. Two are equal where they are written alike.
#[derive(Debug, Clone)]
pub struct Expression {
    /// Compiled.
    pub regex: Regex,
    /// The name by which placeholders find what it captures: `{re.NAME.1}`.
    pub name: Option<String>,
    /// Some placeholder of the configuration reads captures. Where none does, none are kept.
    pub is_read: bool,
}

/// A group of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureGroup {
    /// By its number; 0 is all that fits.
    Number(usize),
    /// By its name, as in `(?<name>…)`.
    Name(String),
}

impl Expression {
    /// The number of a group; `None` if the expression lacks it.
    pub fn number_of(&self, group: &CaptureGroup) -> Option<usize> {
        group.number_in(&self.regex)
    }
}

impl CaptureGroup {
    pub(crate) fn number_in(&self, regex: &Regex) -> Option<usize> {
        match self {
            Self::Number(number) => (*number < regex.captures_len()).then_some(*number),
            Self::Name(name) => regex.capture_names().position(|own| own == Some(name)),
        }
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.regex.as_str() == other.regex.as_str()
            && self.name == other.name
            && self.is_read == other.is_read
    }
}

/// Compiles an expression, within its bound. A search takes at most its size times the length of the text.
///
/// # Errors
///
/// What is wrong with it.
pub fn compile(text: &str) -> Result<Regex, regex_lite::Error> {
    RegexBuilder::new(text).size_limit(EXPRESSION_BYTES_MAX).build()
}
