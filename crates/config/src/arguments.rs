//! The arguments of a directive or an option: how many there may be, and the errors where there are others.
//!
//! Knows no directive: names and usages come from the caller.

use crate::nearest::nearest;
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

/// An option that the directive does not have. `not_yet` are those of Caddy's that do not work yet.
pub(crate) fn unknown_option(
    directive: &str,
    option: &Directive,
    known: &[&'static str],
    not_yet: &[&'static str],
) -> Box<Problem> {
    let (word, place) = (option.name.text.as_str(), &option.name.place);
    if not_yet.contains(&word) {
        let message = format!("`{word}` is an option of Caddy's `{directive}` that onehop does not have yet");
        return Problem::error("not-yet", place, message);
    }
    let message = format!("`{directive}` has no option `{word}`");
    let problem = Problem::error("unknown-option", place, message);
    match nearest(word, known.iter().chain(not_yet).copied()) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None if known.len() == 1 => problem.help(format!("there is {}", listed(known))),
        None => problem.help(format!("there are {}", listed(known))),
    }
}

/// A word that an option does not have.
pub(crate) fn unknown_word(option: &str, word: &Token, known: &[&'static str]) -> Box<Problem> {
    let message = format!("`{option}` has no `{}`", word.text);
    let problem = Problem::error("unknown-option", &word.place, message);
    match nearest(&word.text, known.iter().copied()) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem.help(format!("there are {}", listed(known))),
    }
}

/// The second of two options that must not stand beside each other.
pub(crate) fn set_twice(second: &Token, first: &Token) -> Box<Problem> {
    let message = format!("`{}` is set twice; line {} has it already", second.text, first.place.line());
    Problem::error("duplicate-option", &second.place, message)
}

/// Names in a sentence.
pub(crate) fn listed(words: &[&str]) -> String {
    match words {
        [] => "none".to_owned(),
        [only] => format!("`{only}`"),
        [first @ .., last] => format!("`{}` and `{last}`", first.join("`, `")),
    }
}

/// Wrong arguments, with how the directive is written.
pub(crate) fn wrong_arguments(line: &Directive, usage: &str) -> Box<Problem> {
    let name = &line.name.text;
    let message = match line.args.as_slice() {
        [] => format!("`{name}` has no argument"),
        _ => format!("the arguments of `{name}` do not fit"),
    };
    Problem::error("arguments", &line.name.place, message).help(format!("it is written `{usage}`"))
}

/// An option's only argument.
pub(crate) fn one_argument<'l>(option: &'l Directive, usage: &str) -> Result<&'l Token, Box<Problem>> {
    no_block(option)?;
    match option.args.as_slice() {
        [only] => Ok(only),
        _ => Err(wrong_arguments(option, usage)),
    }
}

/// An option's arguments, at least one.
pub(crate) fn some_arguments<'l>(option: &'l Directive, usage: &str) -> Result<&'l [Token], Box<Problem>> {
    no_block(option)?;
    if option.args.is_empty() { Err(wrong_arguments(option, usage)) } else { Ok(&option.args) }
}

/// For an option without an argument.
pub(crate) fn no_arguments(option: &Directive) -> Result<(), Box<Problem>> {
    no_block(option)?;
    option.args.first().map_or(Ok(()), |first| Err(nothing_after(&option.name, first)))
}

/// An argument of an option that takes none.
pub(crate) fn nothing_after(word: &Token, first: &Token) -> Box<Problem> {
    let message = format!("`{}` takes nothing after it", word.text);
    Problem::error("arguments", &first.place, message).help("take it away")
}

/// For an option that has no block.
pub(crate) fn no_block(line: &Directive) -> Result<(), Box<Problem>> {
    if line.block.is_none() {
        return Ok(());
    }
    Err(Problem::error("block", &line.name.place, format!("`{}` takes no block", line.name.text)))
}

/// The arguments of a condition that compares with something.
pub(crate) fn at_least_one<'l>(line: &'l Directive, example: &str) -> Result<&'l [Token], Box<Problem>> {
    if line.args.is_empty() {
        let message = format!("`{}` needs something to compare with", line.name.text);
        return Err(
            Problem::error("arguments", &line.name.place, message).help(format!("for example `{example}`"))
        );
    }
    Ok(&line.args)
}
