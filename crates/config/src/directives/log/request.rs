//! `log_skip`, `log_append` and `log_name`: what is logged of single requests.

use crate::arguments::wrong_arguments;
use crate::check::Context;
use crate::check::matcher::{Scope, split};
use crate::check::route_order::Placed;
use crate::check::template::{fixed, template_of_upstream};
use crate::checked::{AccessLog, LogAppend, LogField, Step};
use crate::directives::placed;
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::syntax::Directive;

/// `log_skip [<matcher>]`, and `skip_log`, as Caddy called it before 2.8.
pub(crate) fn log_skip(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let (chosen, args) = split(cx, scope, &line.args)?;
    if !args.is_empty() || line.block.is_some() {
        return Err(wrong_arguments(line, "log_skip [<matcher>]"));
    }
    let directive = if line.name.text == "skip_log" { "skip_log" } else { "log_skip" };
    Ok(vec![placed(directive, chosen, line, Step::LogSkip)])
}

/// `log_append [<matcher>] [<]<key> <value>`
pub(crate) fn log_append(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let (chosen, args) = split(cx, scope, &line.args)?;
    let [key, value] = args else {
        return Err(wrong_arguments(line, "log_append [<matcher>] [<]<key> <value>"));
    };
    if line.block.is_some() {
        return Err(wrong_arguments(line, "log_append [<matcher>] [<]<key> <value>"));
    }
    let text = fixed(cx.source, key, "the name of a field")?;
    let (name, early) = text.strip_prefix('<').map_or((text.as_str(), false), |name| (name, true));
    if name.is_empty() {
        return Err(wrong_arguments(line, "log_append [<matcher>] [<]<key> <value>"));
    }
    // Readers of JSON disagree about an object with the same name twice.
    if !matches!(LogField::of(name), Some(LogField::Appended(_))) {
        let message = format!("`{name}` cannot be the name of an appended field");
        return Err(Problem::error("field-name", &key.place, message)
            .help("each line has a field of that name already; take another one, without `>`"));
    }
    let value = template_of_upstream(cx.source, value)?;
    let step = Step::LogAppend(LogAppend { key: name.to_owned(), value, early });
    Ok(vec![placed("log_append", chosen, line, step)])
}

/// `log_name [<matcher>] <names>…`
pub(crate) fn log_name(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let (chosen, args) = split(cx, scope, &line.args)?;
    if args.is_empty() || line.block.is_some() {
        return Err(wrong_arguments(line, "log_name [<matcher>] <name>…"));
    }
    let mut names = Vec::new();
    for token in args {
        names.push(fixed(cx.source, token, "the name of a log")?);
        cx.log_names.push(token.clone());
    }
    Ok(vec![placed("log_name", chosen, line, Step::LogName(names))])
}

/// Reports names that no log of their site has.
pub(crate) fn unknown_names(cx: &mut Context<'_>, logs: &[AccessLog]) {
    let known: Vec<&str> = logs.iter().filter_map(|log| log.name.as_deref()).collect();
    for token in std::mem::take(&mut cx.log_names) {
        if known.contains(&token.text.as_str()) {
            continue;
        }
        let message = format!("this site has no log `{}`", token.text);
        let problem = Problem::error("unknown-log", &token.place, message);
        cx.problems.push(match nearest(&token.text, known.iter().copied()) {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem.help(format!("write `log {} {{ … }}` in the site's block", token.text)),
        });
    }
}
