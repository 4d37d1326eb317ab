//! `uri strip_prefix`: takes the beginning of the path off for what follows.

use super::placed;
use crate::arguments::{no_block, wrong_arguments};
use crate::check::Context;
use crate::check::matcher::{Scope, split};
use crate::check::route_order::Placed;
use crate::check::template::fixed;
use crate::checked::Step;
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::syntax::Directive;

const USAGE: &str = "uri [<matcher>] strip_prefix /prefix";
/// Caddy's other ways to change a URI.
const NOT_YET: [&str; 4] = ["strip_suffix", "replace", "path_regexp", "query"];

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
        ("strip_prefix", _) => Err(wrong_arguments(line, USAGE)),
        (word, _) if NOT_YET.contains(&word) => {
            let message = format!("`uri {word}` is a feature of Caddy that onehop does not have yet");
            Err(Problem::error("not-yet", &what.place, message)
                .help("`rewrite` with placeholders sets a whole URI"))
        }
        (word, _) => {
            let problem = Problem::error("unknown-option", &what.place, format!("`uri` has no `{word}`"));
            Err(match nearest(word, NOT_YET.into_iter().chain(["strip_prefix"])) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help(format!("it is written `{USAGE}`")),
            })
        }
    }
}
