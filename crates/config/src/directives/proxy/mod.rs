//! `reverse_proxy`: requests are passed on to upstreams. Caddy's directive, with `pool` and `lb_policy peak_ewma` of
//! onehop's own.
//!
//! `draft` has every default; `options` reads the block into it, with a file for each family of options: `upstreams`
//! (where), `transport` and `tls` (over which connections), `pool` (how many), `balance` (which one), `health` (which are
//! well), `fields`, `streaming`. `agree` then finds what contradicts itself, and settles what depends on several options.
//! Resolves no name and opens no file: that is for the server, at each start.

mod agree;
mod balance;
mod draft;
mod fields;
mod health;
mod options;
mod pool;
mod quantities;
mod streaming;
mod tls;
mod transport;
mod upstreams;

pub(super) use streaming::buffer;

use std::sync::Arc;

use super::{placed, trust};
use crate::check::Context;
use crate::check::matcher::{Scope, split};
use crate::check::route_order::Placed;
use crate::checked::Step;
use crate::option_table::Outline;
use crate::problem::Problem;
use crate::syntax::Directive;
use draft::Draft;

const USAGE: &str = "reverse_proxy [<matcher>] <upstream>…";

/// The options of its blocks.
pub(super) fn outlines() -> Vec<Outline> {
    let mut outlines =
        vec![options::OPTIONS.outline(), transport::OPTIONS.outline(), pool::OPTIONS.outline()];
    outlines.extend(balance::outlines());
    outlines
}

pub(super) fn reverse_proxy(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    if let (Some(help), Some(second)) = (super::suggested_matcher(line), line.args.get(1)) {
        let message = "`reverse_proxy` takes one matcher";
        return Err(Problem::error("arguments", &second.place, message).help(help));
    }
    let mut draft = Draft::default();
    options::read(cx, &mut draft, line);
    let (chosen, args) = split(cx, scope, &line.args)?;
    draft.targets.splice(0..0, args.iter().cloned());
    if draft.targets.is_empty() && !draft.is_broken() {
        let message = "`reverse_proxy` does not say where requests go";
        return Err(Problem::error("arguments", &line.name.place, message)
            .help(format!("it is written `{USAGE}`, or `to <upstream>…` in its block")));
    }
    for target in draft.targets.clone() {
        let result = upstreams::add(cx, &mut draft, &target);
        draft.seen.is_broken |= cx.keep(result).is_none();
    }
    if draft.is_broken() || !agree::agrees(cx, &mut draft) {
        // What is meant is not known: what follows from a guess would mislead.
        return Ok(Vec::new());
    }
    fields::arrange(&mut draft.proxy.request_fields);
    fields::arrange(&mut draft.proxy.answer_fields);
    draft.proxy.name = upstreams::name(&draft.targets);
    trust::add_global(cx, &mut draft.proxy.trusted_proxies);
    Ok(vec![placed("reverse_proxy", chosen, line, Step::Proxy(Arc::new(draft.proxy)))])
}
