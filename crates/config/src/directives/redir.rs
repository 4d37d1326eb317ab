//! `redir`: the answer that the client should look elsewhere.

use super::placed;
use crate::arguments::{no_block, wrong_arguments};
use crate::check::Context;
use crate::check::matcher::{Scope, split};
use crate::check::route_order::Placed;
use crate::check::template::template;
use crate::check::value::field_value;
use crate::checked::{RedirectKind, Step};
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

const USAGE: &str = "redir [<matcher>] <to> [<status>]";

pub(super) fn redir(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    no_block(line)?;
    if let [target, code] = &line.args[..]
        && target.text.starts_with('/')
        && kind(code).is_ok()
    {
        // Caddy would redirect requests for the target to an address of that name.
        let message = format!("`{}` is read as a matcher, and `{}` as the target", target.text, code.text);
        let problem = Problem::error("arguments", &target.place, message);
        return Err(problem.help(format!("write `redir * {} {}`", target.text, code.text)));
    }
    let (chosen, args) = split(cx, scope, &line.args)?;
    let (to, kind) = match args {
        [to] => (to, RedirectKind::Status(302)),
        [to, code] => (to, kind(code)?),
        [] if line.args.len() == 1 => {
            let problem = Problem::error("arguments", &line.name.place, "`redir` does not say where to");
            let target = line.args.first().map_or("", |only| only.text.as_str());
            return Err(
                problem.help(format!("the only argument was read as a matcher: write `redir * {target}`"))
            );
        }
        _ => return Err(wrong_arguments(line, USAGE)),
    };
    let to = field_value(to, template(cx.source, to)?)?;
    Ok(vec![placed("redir", chosen, line, Step::Redirect { to, kind })])
}

fn kind(code: &Token) -> Result<RedirectKind, Box<Problem>> {
    match code.text.as_str() {
        "permanent" => return Ok(RedirectKind::Status(301)),
        "temporary" => return Ok(RedirectKind::Status(302)),
        "html" => return Ok(RedirectKind::Html),
        text if text.starts_with('{') => {
            let message = "a status from a placeholder is a feature of Caddy that onehop does not have yet";
            return Err(Problem::error("not-yet", &code.place, message));
        }
        _ => {}
    }
    // Caddy takes 401 as well: scripts can read its Location, which a 3xx hides from them.
    match code.text.parse::<u16>() {
        Ok(status) if (300..400).contains(&status) || status == 401 => Ok(RedirectKind::Status(status)),
        _ => {
            let problem = Problem::error("status", &code.place, format!("`{}` is no redirect", code.text));
            Err(match nearest(&code.text, ["permanent", "temporary", "html"]) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help("it can be `permanent`, `temporary`, `html`, 401 or from 300 to 399"),
            })
        }
    }
}
