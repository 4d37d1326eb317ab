//! `{re.…}`: what expressions of a site capture, and whether each placeholder names one of their groups.
//!
//! An expression captures when its matcher is evaluated. This module checks only that the site has such an expression.

use regex_lite::Regex;

use super::Context;
use super::placeholder::{capture, has_shape};
use crate::checked::{Expression, Placeholder};
use crate::problem::{Problem, Problems};
use crate::syntax::{Block, Directive, Token};

/// The expressions of one site so far.
#[derive(Debug, Default)]
pub(crate) struct KnownExpressions {
    all: Vec<Known>,
    is_read: bool,
}

#[derive(Debug)]
struct Known {
    name: Option<String>,
    /// `None`: it is broken, and that was reported.
    regex: Option<Regex>,
}

impl KnownExpressions {
    /// Forgets those of the site before. What expressions capture is kept if a placeholder of the site reads it.
    pub(super) fn begin_site(&mut self, block: &Block) {
        self.all.clear();
        self.is_read = false;
        each_token(&block.lines, &mut |token| self.is_read |= placeholders(&token.text).next().is_some());
    }

    /// Notes an expression; `None` is a broken one.
    pub(super) fn add(&mut self, name: Option<&str>, regex: Option<Regex>) -> Option<Expression> {
        let name = name.map(str::to_owned);
        self.all.push(Known { name: name.clone(), regex: regex.clone() });
        regex.map(|regex| Expression { regex, name, is_read: self.is_read })
    }

    /// Reports placeholders of groups that no expression has.
    pub(super) fn check(&self, block: &Block, problems: &mut Problems) {
        each_token(&block.lines, &mut |token| {
            for key in placeholders(&token.text) {
                if let Some(Placeholder::Capture { expression, group }) = capture(key)
                    && !self.all.iter().any(|known| {
                        (expression.is_none() || known.name == expression)
                            && known.regex.as_ref().is_none_or(|regex| group.number_in(regex).is_some())
                    })
                {
                    problems.push(self.unknown(token, key, expression.as_deref()));
                }
            }
        });
    }

    fn unknown(&self, token: &Token, key: &str, expression: Option<&str>) -> Box<Problem> {
        let place = token.place.narrowed_to(key);
        let message = format!("no expression of this site captures `{{{key}}}`");
        let problem = Problem::error("placeholder", &place, message);
        let is_named = |known: &Known| expression.is_some() && known.name.as_deref() == expression;
        if self.all.iter().any(is_named) {
            return problem.help("groups count from 1, or have a name: `(?<name>…)`");
        }
        problem.help("`@name path_regexp (…)` or `header_regexp` captures `{re.name.1}`")
    }
}

impl Context<'_> {
    /// Reports placeholders that nothing fills in, once the whole site is read.
    pub(super) fn check_captures(&mut self, block: &Block) {
        self.expressions.check(block, self.problems);
    }
}

/// Visits the words of some lines and of the blocks in them.
fn each_token(lines: &[Directive], visit: &mut impl FnMut(&Token)) {
    for line in lines {
        std::iter::once(&line.name).chain(&line.args).for_each(&mut *visit);
        each_token(line.block.as_deref().unwrap_or_default(), visit);
    }
}

/// The placeholders of captures in a text, without their braces.
fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    let begins = text
        .match_indices('{')
        .filter(|(at, _)| !text.get(..*at).is_some_and(|before| before.ends_with('\\')));
    begins.filter_map(|(at, _)| {
        let key = text.get(at + 1..)?.split('}').next()?;
        let is_whole = text.get(at + 1 + key.len()..)?.starts_with('}');
        (is_whole && has_shape(key) && capture(key).is_some()).then_some(key)
    })
}
