//! What an application's processes see of the environment: `env`, `env_file`, `env_pass`.
//!
//! Values are often secrets: no message here may repeat one.

use crate::arguments::{no_block, wrong_arguments};
use crate::check::Context;
use crate::check::template::fixed;
use crate::checked::AppEnvironment;
use crate::limits::{APP_WORD_BYTES_MAX, APP_WORDS_MAX};
use crate::problem::Problem;
use crate::source::Entry;
use crate::syntax::{Directive, Token};

/// Names that onehop sets itself begin so.
const OWN_PREFIX: &str = "ONEHOP_";

/// `env NAME value`, or a block of such lines.
pub(super) fn env(
    cx: &mut Context<'_>,
    environment: &mut AppEnvironment,
    option: &Directive,
) -> Result<(), Box<Problem>> {
    let lines = option.block.as_deref().unwrap_or_default();
    match option.args.as_slice() {
        [] if option.block.is_some() => {
            let mut failed = None;
            for line in lines {
                let result = no_block(line).and_then(|()| match line.args.as_slice() {
                    [value] => set(cx, environment, &line.name, value),
                    _ => Err(not_a_pair(&line.name)),
                });
                if let Err(problem) = result {
                    // The last one goes up, so that the application counts as broken.
                    failed.replace(problem).into_iter().for_each(|problem| cx.problems.push(problem));
                }
            }
            failed.map_or(Ok(()), Err)
        }
        [name, value] => {
            no_block(option)?;
            set(cx, environment, name, value)
        }
        [name, _, ..] => Err(not_a_pair(name)),
        [name] if name.text.contains('=') => Err(not_a_pair(name)),
        _ => Err(wrong_arguments(option, "env <NAME> <value>")),
    }
}

fn set(
    cx: &Context<'_>,
    environment: &mut AppEnvironment,
    name: &Token,
    value: &Token,
) -> Result<(), Box<Problem>> {
    let key = variable_name(cx, name)?;
    if key.starts_with(OWN_PREFIX) {
        let message = format!("`{key}` is a name of onehop's own");
        return Err(Problem::error("environment", &name.place, message)
            .help(format!("names that begin with `{OWN_PREFIX}` tell an application how it is reached")));
    }
    if environment.set.iter().any(|(known, _)| *known == key) {
        let message = format!("`{key}` is set twice");
        return Err(Problem::error("duplicate-option", &name.place, message).help("take one of the two away"));
    }
    let value_text = fixed(cx.source, value, "the value of a variable")?;
    if value_text.len() > APP_WORD_BYTES_MAX || environment.set.len() >= APP_WORDS_MAX {
        return Err(Problem::error(
            "too-large",
            &value.place,
            "the environment is larger than a process can have",
        )
        .help(format!(
            "it holds at most {APP_WORDS_MAX} variables of at most {APP_WORD_BYTES_MAX} bytes each"
        )));
    }
    if value_text.contains('\0') {
        return Err(Problem::error(
            "environment",
            &value.place,
            "the value of a variable has a NUL character",
        )
        .help("a process cannot have it: write the value without it"));
    }
    environment.set.push((key, value_text));
    Ok(())
}

/// `env_file <file>…`
pub(super) fn env_file(
    cx: &mut Context<'_>,
    environment: &mut AppEnvironment,
    files: &[Token],
) -> Result<(), Box<Problem>> {
    for token in files {
        let path = cx.absolute(&fixed(cx.source, token, "the path of a file")?);
        if cx.source.entry(&path) != Some(Entry::File) {
            let message = format!("there is no file `{}`", path.display());
            return Err(Problem::error("no-file", &token.place, message)
                .help("it holds lines of `NAME=value`; `.env.example` is often the beginning of one"));
        }
        environment.files.push(path);
    }
    Ok(())
}

/// `env_pass <NAME>…`, where `PREFIX_*` stands for all that begin so.
pub(super) fn env_pass(
    cx: &mut Context<'_>,
    environment: &mut AppEnvironment,
    names: &[Token],
) -> Result<(), Box<Problem>> {
    for token in names {
        let text = fixed(cx.source, token, "the name of a variable")?;
        let fits = text == "*" || is_name(text.strip_suffix('*').unwrap_or(&text));
        if !fits {
            let message = format!("`{text}` is no name of a variable");
            return Err(Problem::error("environment", &token.place, message)
                .help("write names, `env_pass DATABASE_URL AWS_*`; a star can only end one"));
        }
        environment.pass.push(text);
    }
    Ok(())
}

fn variable_name(cx: &Context<'_>, token: &Token) -> Result<String, Box<Problem>> {
    let name = fixed(cx.source, token, "the name of a variable")?;
    if is_name(&name) {
        return Ok(name);
    }
    let (name, help) = match name.split_once('=') {
        // The rest may be a secret.
        Some((name, _)) => {
            (format!("{name}=…"), "the value stands behind a space: `env NAME value`".to_owned())
        }
        None => (name, "letters, digits and `_` make one, and it begins with no digit".to_owned()),
    };
    Err(Problem::error("environment", &token.place, format!("`{name}` is no name of a variable")).help(help))
}

pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn not_a_pair(name: &Token) -> Box<Problem> {
    let (key, rest) = name.text.split_once('=').unwrap_or((&name.text, ""));
    let problem = Problem::error("arguments", &name.place, format!("`{key}` takes one value"));
    if rest.is_empty() {
        problem.help("a value with spaces stands in quotes: `env GREETING \"good day\"`")
    } else {
        problem.help("the value stands behind a space: `env NAME value`")
    }
}
