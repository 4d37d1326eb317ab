//! `root`: where files are looked for.

use super::{matcher_and_value, placed};
use crate::arguments::no_block;
use crate::check::Context;
use crate::check::matcher::Scope;
use crate::check::route_order::Placed;
use crate::check::template::template;
use crate::checked::Step;
use crate::problem::Problem;
use crate::syntax::Directive;

pub(super) fn root(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    no_block(line)?;
    let (chosen, path) = matcher_and_value(cx, scope, line, "root [<matcher>] <folder>")?;
    let path = template(cx.source, path)?;
    let path = cx.absolute_template(path);
    Ok(vec![placed("root", chosen, line, Step::Root(path))])
}
