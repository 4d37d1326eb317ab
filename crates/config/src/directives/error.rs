//! `error`: the request fails with a status, so that `handle_errors` answers it.

use super::placed;
use crate::arguments::{one_argument, wrong_arguments};
use crate::check::Context;
use crate::check::matcher::{Scope, split};
use crate::check::route_order::Placed;
use crate::check::template::template;
use crate::check::value::number;
use crate::checked::{Step, Template};
use crate::option_table::{OptionTable, line};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

const USAGE: &str = "error [<matcher>] <status>|<message> [<status>]";
/// RFC 9110 section 15.6.1; Caddy's.
const STATUS: u16 = 500;

pub(super) const OPTIONS: OptionTable<Template> = OptionTable {
    once: true,
    ..OptionTable::new(
        "error",
        &[line("message", "<text>", |cx, message, option| {
            *message = template(cx.source, one_argument(option, "message <text>")?)?;
            Ok(())
        })],
    )
};

pub(super) fn error(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let (chosen, args) = split(cx, scope, &line.args)?;
    let is_number =
        |token: &Token| token.text.len() == 3 && token.text.bytes().all(|byte| byte.is_ascii_digit());
    let (mut message, status) = match args {
        [only] if is_number(only) => (Template::default(), status(only)?),
        [only] => (template(cx.source, only)?, STATUS),
        [message, code] => (template(cx.source, message)?, status(code)?),
        _ => return Err(wrong_arguments(line, USAGE)),
    };
    OPTIONS.read(cx, &mut message, line.block.as_deref());
    Ok(vec![placed("error", chosen, line, Step::Error { status, message })])
}

/// Of an error: RFC 9110 sections 15.5 and 15.6.
fn status(token: &Token) -> Result<u16, Box<Problem>> {
    let status = number(token, "the status of an error", 400, 599)?;
    Ok(u16::try_from(status).unwrap_or(STATUS))
}
