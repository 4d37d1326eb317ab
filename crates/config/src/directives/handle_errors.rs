//! `handle_errors`: what is done where a request has failed. A setting of the whole site, as in Caddy.
//!
//! Knows which statuses an error can have, and which directives answer for one. The second way of a request is the server's.

use super::nested;
use crate::check::Context;
use crate::check::matcher::Scope;
use crate::checked::ErrorRoutes;
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

/// What an error can be (RFC 9110 section 15).
const STATUS_MIN: u16 = 400;
const STATUS_MAX: u16 = 599;

/// Directives that act before there is a response. Who has failed has been let in, or refused.
const BEFORE: [&str; 3] = ["early_hints", "limit", "rate_limit"];

pub(super) fn handle_errors(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<ErrorRoutes, Box<Problem>> {
    let statuses = statuses(&line.args);
    cx.source.is_of_error = true;
    // The block is read even where its statuses cannot be, for its own errors.
    let routes = nested(cx, scope, line, true);
    cx.source.is_of_error = false;
    Ok(ErrorRoutes { statuses: statuses?, routes })
}

/// Puts those that name no status behind all others, as in Caddy.
pub(super) fn arrange(errors: &mut [ErrorRoutes]) {
    errors.sort_by_key(|errors| errors.statuses.is_empty());
}

/// What is wrong with a directive that stands within `handle_errors` and does not belong there.
pub(super) fn unfit(cx: &Context<'_>, line: &Directive) -> Option<Box<Problem>> {
    let (word, place) = (line.name.text.as_str(), &line.name.place);
    if !cx.source.is_of_error || !BEFORE.contains(&word) {
        return None;
    }
    let message = format!("`{word}` stands within `handle_errors`, where every error is answered");
    Some(Problem::error("directive-place", place, message).help("move it out of this block"))
}

/// `404 5xx`: in ascending order, each once.
fn statuses(args: &[Token]) -> Result<Vec<u16>, Box<Problem>> {
    let mut statuses = Vec::new();
    for token in args {
        match token.text.as_str() {
            "4xx" => statuses.extend(STATUS_MIN..500),
            "5xx" => statuses.extend(500..=STATUS_MAX),
            text => statuses.push(status(token, text)?),
        }
        statuses.sort_unstable();
        statuses.dedup();
    }
    Ok(statuses)
}

fn status(token: &Token, text: &str) -> Result<u16, Box<Problem>> {
    let is_number = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(status) = text.parse::<u16>().ok().filter(|_| is_number)
        && (STATUS_MIN..=STATUS_MAX).contains(&status)
    {
        return Ok(status);
    }
    let problem = Problem::error("status", &token.place, format!("`{text}` is no status of an error"));
    Err(if text.starts_with(['/', '@', '*']) {
        problem.help("`handle_errors` takes no matcher; those within its block may have one")
    } else {
        problem.help("write numbers from 400 to 599, or all of a kind: `4xx`, `5xx`")
    })
}
