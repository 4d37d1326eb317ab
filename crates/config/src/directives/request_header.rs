//! `request_header`: changes to the fields of requests, for everything that comes after it.
//!
//! Written as for `header`. What frames a message, belongs to a connection or says who the client is stays the server's own.

use super::{header, placed};
use crate::check::Context;
use crate::check::matcher::{Scope, split};
use crate::check::route_order::Placed;
use crate::checked::request_fields::{is_kept_by_request_header, is_of_client};
use crate::checked::{HeaderOp, Step};
use crate::problem::Problem;
use crate::syntax::Directive;

pub(super) fn request_header(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let (chosen, args) = split(cx, scope, &line.args)?;
    let op = header::of_request(cx, line, args)?;
    must_be_changeable(line, &op)?;
    Ok(vec![placed("request_header", chosen, line, Step::RequestHeader(vec![op]))])
}

/// A pattern that removes many fields leaves those that stay the server's own.
fn must_be_changeable(line: &Directive, op: &HeaderOp) -> Result<(), Box<Problem>> {
    let name = header::name_of(op);
    if !is_kept_by_request_header(name.as_bytes()) {
        return Ok(());
    }
    let message = format!("`request_header` cannot change `{name}`");
    let problem = Problem::error("field-name", &line.name.place, message);
    Err(if is_of_client(name.as_bytes()) {
        problem.help(
            "onehop itself says who the client is; `header_up` in a `reverse_proxy` changes what one upstream gets",
        )
    } else if name.eq_ignore_ascii_case("host") {
        problem.help(
            "it has chosen the site; `header_up Host` in a `reverse_proxy` changes what one upstream gets",
        )
    } else {
        problem.help("it belongs to the connection or frames the body: onehop writes it itself")
    })
}
