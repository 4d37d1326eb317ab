//! `handle`, `handle_path`, `route`: directives that belong together.

use super::{nested, placed};
use crate::check::Context;
use crate::check::matcher::{Chosen, Scope, split};
use crate::check::path_pattern::path_pattern;
use crate::check::route_order::Placed;
use crate::check::template::fixed;
use crate::checked::{Condition, Matcher, Step};
use crate::problem::Problem;
use crate::syntax::Directive;

pub(super) fn handle(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let chosen = only_matcher(cx, scope, line);
    let routes = nested(cx, scope, line, true);
    Ok(vec![placed("handle", chosen?, line, Step::Handle(routes))])
}

pub(super) fn route(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let chosen = only_matcher(cx, scope, line);
    let routes = nested(cx, scope, line, false);
    Ok(vec![placed("route", chosen?, line, Step::Handle(routes))])
}

/// The matcher and nothing else. The block is read even where this fails, for its own errors.
fn only_matcher(cx: &mut Context<'_>, scope: &Scope<'_>, line: &Directive) -> Result<Chosen, Box<Problem>> {
    let (chosen, rest) = split(cx, scope, &line.args)?;
    match rest.first() {
        None => Ok(chosen),
        Some(extra) => {
            let message = format!("`{}` takes a matcher and a block, nothing else", line.name.text);
            Err(Problem::error("arguments", &extra.place, message)
                .help("a matcher begins with `/` or `@`, or is `*`"))
        }
    }
}

pub(super) fn handle_path(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let routes = nested(cx, scope, line, true);
    let [path] = line.args.as_slice() else {
        return Err(crate::arguments::wrong_arguments(line, "handle_path /some/* { … }"));
    };
    if !path.text.starts_with('/') {
        let message = format!("`handle_path` takes off a path, and `{}` is none", path.text);
        return Err(Problem::error("matcher", &path.place, message)
            .help("a path begins with `/`; with another matcher, use `handle`"));
    }
    let pattern = path_pattern(cx, path)?;
    let text = fixed(cx.source, path, "a path to match")?;
    // `/api/*` takes off `/api`, so that what is left begins with a slash.
    let prefix = text.strip_suffix("/*").or_else(|| text.strip_suffix('*')).unwrap_or(&text).to_owned();
    let matcher = Matcher { all: vec![Condition::Path(vec![pattern])] };
    let chosen = Chosen { matcher: Some(matcher), single_path: Some(path.text.clone()) };
    // Sorted and grouped with `handle`, as Caddy has it.
    Ok(vec![placed("handle", chosen, line, Step::HandlePath { prefix, routes })])
}
