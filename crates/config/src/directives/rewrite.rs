//! `rewrite`: another URI for the steps that follow.

use super::{matcher_and_value, placed};
use crate::arguments::no_block;
use crate::check::Context;
use crate::check::matcher::Scope;
use crate::check::route_order::Placed;
use crate::check::template::template;
use crate::checked::Step;
use crate::problem::Problem;
use crate::syntax::Directive;

pub(super) fn rewrite(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    no_block(line)?;
    let (chosen, uri) = matcher_and_value(cx, scope, line, "rewrite [<matcher>] <uri>")?;
    let uri = template(cx.source, uri)?;
    Ok(vec![placed("rewrite", chosen, line, Step::Rewrite(uri))])
}
