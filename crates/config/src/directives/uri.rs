//! `uri`: removes a prefix or a suffix of the path, or replaces a part of the URI, for what follows.
//!
//! What changes the query is read in `query.rs`.

mod query;

use std::sync::Arc;

use super::placed;
use crate::arguments::{no_block, wrong_arguments};
use crate::check::Context;
use crate::check::matcher::{Scope, split};
use crate::check::route_order::Placed;
use crate::check::template::{fixed, template};
use crate::checked::{Expression, Part, Step, Template, UriChange, compile_expression};
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

const USAGE: &str = "uri [<matcher>] strip_prefix /prefix | strip_suffix .suffix | replace <text> <other> [<times>] | path_regexp <expression> <other> | query [+|-]<name> [<value>]";
const KNOWN: [&str; 5] = ["strip_prefix", "strip_suffix", "replace", "path_regexp", "query"];

pub(super) fn uri(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let (chosen, args) = split(cx, scope, &line.args)?;
    let Some((what, rest)) = args.split_first() else { return Err(wrong_arguments(line, USAGE)) };
    if what.text != "query" {
        no_block(line)?;
    }
    let step = match (what.text.as_str(), rest) {
        ("strip_prefix", [prefix]) => {
            let text = fixed(cx.source, prefix, "a prefix to take off")?;
            // As in Caddy.
            let prefix = if text.starts_with('/') { text } else { format!("/{text}") };
            // What `handle_path` does, without routes of its own.
            Step::HandlePath { prefix, routes: Vec::new() }
        }
        ("strip_suffix", [suffix]) => {
            Step::ChangeUri(UriChange::StripSuffix(fixed(cx.source, suffix, "a suffix to remove")?))
        }
        ("replace", [find, by, times @ ..]) if times.len() <= 1 => {
            Step::ChangeUri(replace(cx, find, by, times.first())?)
        }
        ("path_regexp", [find, by]) => Step::ChangeUri(path_regexp(cx, find, by)?),
        ("query", args) => Step::ChangeUri(query::query(cx, line, args)?),
        (word, _) if KNOWN.contains(&word) => return Err(wrong_arguments(line, USAGE)),
        (word, _) => {
            let problem = Problem::error("unknown-option", &what.place, format!("`uri` has no `{word}`"));
            return Err(match nearest(word, KNOWN) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help(format!("it is written `{USAGE}`")),
            });
        }
    };
    Ok(vec![placed("uri", chosen, line, step)])
}

fn replace(
    cx: &Context<'_>,
    find: &Token,
    by: &Token,
    times: Option<&Token>,
) -> Result<UriChange, Box<Problem>> {
    let text = fixed(cx.source, find, "a text to replace")?;
    let other = fixed(cx.source, by, "the text that replaces it")?;
    if text.is_empty() {
        return Err(Problem::error("path", &find.place, "the text to replace is empty")
            .help("write the part of the URI that is to be replaced"));
    }
    must_be_of_path(by, &other)?;
    let most = match times {
        None => usize::MAX,
        Some(times) => times.text.parse().ok().filter(|times| *times > 0).ok_or_else(|| {
            Problem::error("number", &times.place, "this is not a number of times")
                .help(format!("it is written `{USAGE}`"))
        })?,
    };
    Ok(UriChange::Replace { find: text, by: other, most })
}

fn path_regexp(cx: &Context<'_>, find: &Token, by: &Token) -> Result<UriChange, Box<Problem>> {
    let template = replacement(cx, by)?;
    for part in &template.parts {
        if let Part::Text(text) = part {
            must_be_of_path(by, &without_groups(text))?;
        }
    }
    Ok(UriChange::PathRegexp { find: expression(find)?, by: template })
}

/// What is looked for in a path or in a value.
fn expression(find: &Token) -> Result<Arc<Expression>, Box<Problem>> {
    if find.text.is_empty() {
        return Err(Problem::error("regexp", &find.place, "the expression to replace is empty")
            .help("write what is to be replaced"));
    }
    match compile_expression(&find.text) {
        Ok(regex) => Ok(Arc::new(Expression { regex, name: None, is_read: false })),
        Err(error) => {
            let message = format!("`{}` is no regular expression: {error}", find.text);
            Err(Problem::error("regexp", &find.place, message)
                .help("a backslash before a character takes it as it is; quote with backticks"))
        }
    }
}

/// The replacement of an expression. A dollar sign in front of a placeholder would let the client name a group.
fn replacement(cx: &Context<'_>, token: &Token) -> Result<Template, Box<Problem>> {
    let template = template(cx.source, token)?;
    let names_group = |pair: &[Part]| match pair {
        [Part::Text(text), Part::Value(_)] => {
            let dollars = text.bytes().rev().take_while(|byte| *byte == b'$').count();
            dollars % 2 == 1
        }
        _ => false,
    };
    if template.parts.windows(2).any(names_group) {
        return Err(Problem::error(
            "placeholder",
            &token.place,
            "a `$` in front of a placeholder names a group",
        )
        .help("write `$$` for the sign itself; `$1` and `$name` are groups"));
    }
    Ok(template)
}

/// The text of a replacement without `${…}`; what is left of `$name` may be in a path.
fn without_groups(text: &str) -> String {
    let mut rest = String::new();
    let mut pieces = text.split("${");
    rest.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        match piece.split_once('}') {
            Some((_, after)) => rest.push_str(after),
            // A brace that is never closed is one.
            None => rest.extend(["{", piece]),
        }
    }
    rest
}

fn must_be_of_path(token: &Token, text: &str) -> Result<(), Box<Problem>> {
    if is_of_path(text.as_bytes()) {
        return Ok(());
    }
    Err(Problem::error("path", &token.place, "a path cannot contain this replacement")
        .help("escape other characters, as in %20 (RFC 3986 section 3.3); `rewrite` sets a query"))
}

/// Only characters of a path, with whole escapes (RFC 3986 section 3.3).
fn is_of_path(text: &[u8]) -> bool {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    text.iter().enumerate().all(|(at, byte)| match byte {
        b'%' => is_digit(text.get(at + 1)) && is_digit(text.get(at + 2)),
        byte => byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(byte),
    })
}
