//! `request_body`: how large the body of a request may be.

use super::placed;
use crate::arguments::wrong_arguments;
use crate::check::Context;
use crate::check::matcher::{Scope, split};
use crate::check::route_order::Placed;
use crate::check::value::size;
use crate::checked::Step;
use crate::option_table::{OptionTable, not_yet, value};
use crate::problem::Problem;
use crate::syntax::Directive;

pub(super) const OPTIONS: OptionTable<Option<u64>> = OptionTable {
    once: true,
    ..OptionTable::new(
        "request_body",
        &[
            value("max_size", "10MB", |_, most, value| size(value.token).map(|bytes| *most = Some(bytes))),
            not_yet("read_timeout"),
            not_yet("write_timeout"),
            not_yet("set"),
        ],
    )
};

/// `request_body [<matcher>] { max_size SIZE }`
pub(super) fn request_body(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let (chosen, args) = split(cx, scope, &line.args)?;
    let usage = "request_body [<matcher>] { max_size 10MB }";
    if !args.is_empty() || line.block.is_none() {
        return Err(wrong_arguments(line, usage));
    }
    let mut most = None;
    let seen = OPTIONS.read(cx, &mut most, line.block.as_deref());
    match most {
        Some(bytes) => Ok(vec![placed("request_body", chosen, line, Step::RequestBody(bytes))]),
        None if seen.is_broken => Ok(Vec::new()),
        None => Err(wrong_arguments(line, usage)),
    }
}
