//! `uri`: removes a prefix or a suffix of the path, or replaces a part of the URI, for what follows.

use super::placed;
use crate::arguments::{no_block, wrong_arguments};
use crate::check::Context;
use crate::check::matcher::{Scope, split};
use crate::check::route_order::Placed;
use crate::check::template::fixed;
use crate::checked::{Step, UriChange};
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

const USAGE: &str =
    "uri [<matcher>] strip_prefix /prefix | strip_suffix .suffix | replace <text> <other> [<times>]";
const KNOWN: [&str; 3] = ["strip_prefix", "strip_suffix", "replace"];
/// Caddy's other ways to change a URI.
const NOT_YET: [&str; 2] = ["path_regexp", "query"];

pub(super) fn uri(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    no_block(line)?;
    let (chosen, args) = split(cx, scope, &line.args)?;
    let Some((what, rest)) = args.split_first() else { return Err(wrong_arguments(line, USAGE)) };
    match (what.text.as_str(), rest) {
        ("strip_prefix", [prefix]) => {
            let text = fixed(cx.source, prefix, "a prefix to take off")?;
            // As in Caddy.
            let prefix = if text.starts_with('/') { text } else { format!("/{text}") };
            // What `handle_path` does, without routes of its own.
            Ok(vec![placed("uri", chosen, line, Step::HandlePath { prefix, routes: Vec::new() })])
        }
        ("strip_suffix", [suffix]) => {
            let change = UriChange::StripSuffix(fixed(cx.source, suffix, "a suffix to remove")?);
            Ok(vec![placed("uri", chosen, line, Step::ChangeUri(change))])
        }
        ("replace", [find, by, times @ ..]) if times.len() <= 1 => {
            let change = replace(cx, find, by, times.first())?;
            Ok(vec![placed("uri", chosen, line, Step::ChangeUri(change))])
        }
        (word, _) if KNOWN.contains(&word) => Err(wrong_arguments(line, USAGE)),
        (word, _) if NOT_YET.contains(&word) => {
            let message = format!("`uri {word}` is a feature of Caddy that onehop does not have yet");
            Err(Problem::error("not-yet", &what.place, message)
                .help("`rewrite` with placeholders sets a whole URI"))
        }
        (word, _) => {
            let problem = Problem::error("unknown-option", &what.place, format!("`uri` has no `{word}`"));
            Err(match nearest(word, KNOWN.into_iter().chain(NOT_YET)) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help(format!("it is written `{USAGE}`")),
            })
        }
    }
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
    if !is_of_path(other.as_bytes()) {
        return Err(Problem::error("path", &by.place, "a path cannot contain this replacement")
            .help("escape other characters, as in %20 (RFC 3986 section 3.3); `rewrite` sets a query"));
    }
    let most = match times {
        None => usize::MAX,
        Some(times) => times.text.parse().ok().filter(|times| *times > 0).ok_or_else(|| {
            Problem::error("number", &times.place, "this is not a number of times")
                .help(format!("it is written `{USAGE}`"))
        })?,
    };
    Ok(UriChange::Replace { find: text, by: other, most })
}

/// Only characters of a path, with whole escapes (RFC 3986 section 3.3).
fn is_of_path(text: &[u8]) -> bool {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    text.iter().enumerate().all(|(at, byte)| match byte {
        b'%' => is_digit(text.get(at + 1)) && is_digit(text.get(at + 2)),
        byte => byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(byte),
    })
}
