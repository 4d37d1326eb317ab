//! `uri query`: sets, adds, renames and removes parameters, or replaces within their values.

use super::{expression, replacement};
use crate::arguments::{no_block, wrong_arguments};
use crate::check::Context;
use crate::check::template::{fixed, template};
use crate::checked::{QueryChange, UriChange};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

const USAGE: &str = "uri [<matcher>] query <name> <value> | +<name> <value> | -<name> | <name>><other> | <name> <find> <replace>";

/// The changes on the line of `uri query`, or those of its block.
pub(super) fn query(
    cx: &mut Context<'_>,
    line: &Directive,
    args: &[Token],
) -> Result<UriChange, Box<Problem>> {
    let mut changes = Vec::new();
    match (args.split_first(), line.block.as_deref()) {
        (Some((name, values)), None) => changes.push(change(cx, line, name, values)?),
        (Some((name, _)), Some(_)) => {
            let message = "parameters stand both after `uri query` and in its block";
            return Err(
                Problem::error("arguments", &name.place, message).help("put all of them into the block")
            );
        }
        (None, None | Some([])) => return Err(wrong_arguments(line, USAGE)),
        (None, Some(lines)) => {
            for option in lines {
                let read = no_block(option).and_then(|()| change(cx, option, &option.name, &option.args));
                changes.extend(cx.keep(read));
            }
        }
    }
    // Caddy makes the changes of one block by kind, whatever their order in the file.
    changes.sort_by_key(|change| match change {
        QueryChange::Rename { .. } => 0,
        QueryChange::Set { .. } => 1,
        QueryChange::Add { .. } => 2,
        QueryChange::Replace { .. } => 3,
        QueryChange::Delete { .. } => 4,
    });
    Ok(UriChange::Query(changes))
}

fn change(
    cx: &Context<'_>,
    line: &Directive,
    first: &Token,
    values: &[Token],
) -> Result<QueryChange, Box<Problem>> {
    let text = fixed(cx.source, first, "the name of a parameter")?;
    // As in Caddy, any number of signs is one.
    let (sign, name) = match text.chars().next() {
        Some(sign @ ('-' | '+')) => (Some(sign), text.trim_start_matches(sign)),
        _ => (None, text.as_str()),
    };
    let renamed = name.split_once('>').filter(|_| sign.is_none());
    match (sign, renamed, values) {
        (Some('-'), _, []) => Ok(QueryChange::Delete { name: one_name(first, name)? }),
        (Some('+'), _, [value]) => {
            Ok(QueryChange::Add { name: one_name(first, name)?, value: template(cx.source, value)? })
        }
        (None, Some((from, to)), []) if !to.contains('>') => {
            Ok(QueryChange::Rename { from: one_name(first, from)?, to: one_name(first, to)? })
        }
        (None, None, [value]) => {
            Ok(QueryChange::Set { name: one_name(first, name)?, value: template(cx.source, value)? })
        }
        (None, None, [find, by]) => Ok(QueryChange::Replace {
            name: if name == "*" { None } else { Some(one_name(first, name)?) },
            find: expression(find)?,
            by: replacement(cx, by)?,
        }),
        _ => Err(wrong_arguments(line, USAGE)),
    }
}

/// The name of one parameter. A star would be the name `*` here, and all of them in a replacement.
fn one_name(token: &Token, name: &str) -> Result<String, Box<Problem>> {
    if name.is_empty() {
        return Err(Problem::error("query", &token.place, "a parameter has no name")
            .help(format!("it is written `{USAGE}`")));
    }
    if name == "*" {
        let message = "`*` is all parameters in a replacement only";
        return Err(Problem::error("query", &token.place, message).help("name each parameter"));
    }
    Ok(name.to_owned())
}
