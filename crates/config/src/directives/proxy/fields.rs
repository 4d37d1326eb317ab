//! `header_up`, `header_down`, `ambiguous_headers`: changes to the fields of requests and answers.
//!
//! Written as for `header`. What frames a message or belongs to one connection is not changed by them.

use crate::check::Context;
use crate::checked::HeaderOp;
use crate::checked::proxy::AmbiguousHeaders;
use crate::checked::request_fields::{OF_CONNECTION, OF_FRAMING};
use crate::directives::header;
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

/// Puts all changes into the order in which they act: Caddy applies them by kind, whatever their order in the file.
pub(super) fn arrange(ops: &mut [HeaderOp]) {
    ops.sort_by_key(header::kind);
}

/// Adds one change.
pub(super) fn change(
    cx: &mut Context<'_>,
    ops: &mut Vec<HeaderOp>,
    option: &Directive,
) -> Result<(), Box<Problem>> {
    let op = header::of_proxy(cx, option)?;
    let name = header::name_of(&op);
    let is = |known: &&str| name.eq_ignore_ascii_case(known);
    let why = if OF_FRAMING.iter().any(is) {
        "how a body is sent is onehop's own"
    } else if OF_CONNECTION.iter().any(is) {
        "connections to upstreams are onehop's own, and upgrades pass as they are"
    } else {
        ops.push(op);
        return Ok(());
    };
    let message = format!("`{} {name}` has no effect: {why}", option.name.text);
    cx.problems.push(Problem::warning("no-effect", &option.name.place, message).help("take it away"));
    Ok(())
}

/// `ambiguous_headers drop|pass`
pub(super) fn ambiguous(word: &Token) -> Result<AmbiguousHeaders, Box<Problem>> {
    match word.text.as_str() {
        "drop" => Ok(AmbiguousHeaders::Drop),
        "pass" => Ok(AmbiguousHeaders::Pass),
        other => {
            let message = format!("`ambiguous_headers` cannot be `{other}`");
            Err(Problem::error("unknown-option", &word.place, message).help(
                "`pass` lets fields with `_` or `.` in their names reach upstreams; `drop` is the default",
            ))
        }
    }
}
