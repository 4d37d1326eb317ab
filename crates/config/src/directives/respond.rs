//! `respond`: a fixed answer.

use super::placed;
use crate::arguments::{one_argument, wrong_arguments};
use crate::check::Context;
use crate::check::matcher::{Scope, split};
use crate::check::route_order::Placed;
use crate::check::template::template;
use crate::check::value::status;
use crate::checked::{Step, Template};
use crate::option_table::{OptionTable, flag, line};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

const USAGE: &str = "respond [<matcher>] [<body>] [<status>]";
/// The body, and whether the connection is closed.
pub(super) const OPTIONS: OptionTable<(Template, bool)> =
    OptionTable::new("respond", &[line("body", "<text>", body), flag("close", |(_, close)| *close = true)]);
/// The status that an answer within `handle_errors` has anyway.
const OF_ERROR: [&str; 2] = ["{err.status_code}", "{http.error.status_code}"];

pub(super) fn respond(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let (chosen, args) = split(cx, scope, &line.args)?;
    let (body, status) = match args {
        // Three digits alone are a status, anything else alone a body.
        [only] if is_status(only) => (Template::default(), Some(status(only)?)),
        [only] => (template(cx.source, only)?, None),
        [body, code] if cx.source.is_of_error && OF_ERROR.contains(&code.text.as_str()) => {
            (template(cx.source, body)?, None)
        }
        [body, code] => (template(cx.source, body)?, Some(status(code)?)),
        [] if line.args.len() == 1 => {
            return Err(wrong_arguments(line, USAGE)
                .help("the only argument was read as a matcher: write `respond * …`"));
        }
        _ => return Err(wrong_arguments(line, USAGE)),
    };
    let mut settings = (body, false);
    OPTIONS.read(cx, &mut settings, line.block.as_deref());
    let (body, close) = settings;
    Ok(vec![placed("respond", chosen, line, Step::Respond { status, body, close })])
}

fn body(
    cx: &mut Context<'_>,
    (body, _): &mut (Template, bool),
    option: &Directive,
) -> Result<(), Box<Problem>> {
    if *body != Template::default() {
        return Err(Problem::error("duplicate-option", &option.name.place, "the body is given twice"));
    }
    *body = template(cx.source, one_argument(option, "body <text>")?)?;
    Ok(())
}

fn is_status(token: &Token) -> bool {
    token.text.len() == 3 && token.text.bytes().all(|byte| byte.is_ascii_digit()) && token.text != "000"
}
