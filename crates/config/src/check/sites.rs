//! The whole configuration: global block, then one site after the other.

use super::address::Address;
use super::listen::Listeners;
use super::matcher::Scope;
use super::{Context, global};
use crate::checked::{Checked, Condition, Global, Route, Site, Step, Template};
use crate::directives::{self, SiteSettings};
use crate::problem::Problem;
use crate::syntax::{Block, Parsed};

/// Checks everything; what is wrong goes to the context's problems.
pub(crate) fn check(cx: &mut Context<'_>, parsed: &Parsed) -> Checked {
    let mut global = global::defaults();
    let mut listeners = Listeners::default();
    for (number, block) in parsed.blocks.iter().enumerate() {
        if !block.keys.is_empty() {
            site(cx, &global, block, &mut listeners);
        } else if number == 0 {
            global = global::global(cx, &block.lines);
        } else {
            let message = "the global block must be the first of the file";
            cx.problems.push(
                Problem::error("global-block", &block.place, message)
                    .help("move it to the top, or put an address before the brace"),
            );
        }
    }
    Checked { global, listeners: listeners.listeners, sites: listeners.sites }
}

fn site(cx: &mut Context<'_>, global: &Global, block: &Block, listeners: &mut Listeners) {
    let mut addresses = Vec::new();
    for key in &block.keys {
        if directives::is_known(&key.text) {
            let message = format!("the directive `{}` stands outside of a site", key.text);
            cx.problems.push(
                Problem::error("directive-place", &key.place, message)
                    .label("an address is expected here")
                    .help("begin the file with an address, for example `:8080`"),
            );
            // The rest of this line and the block are no site; errors in them would mislead.
            return;
        }
        let parsed = Address::parse(cx, key);
        if let Some(address) = cx.keep(parsed) {
            address.warn_of_unspecified(cx);
            addresses.push(address);
        }
    }
    let scope = Scope::of_block(cx, &block.lines, None);
    let mut settings = SiteSettings::default();
    cx.apps.begin_site(addresses.iter().any(|address| address.is_plain(global)));
    let mut routes = directives::site(cx, &scope, block, &mut settings);
    if needs_root(&routes) {
        let root = Template::text(cx.base.to_string_lossy());
        routes.insert(0, Route { matcher: None, group: None, step: Step::Root(root), line: 0 });
    }
    let site = Site { label: String::new(), hosts: Vec::new(), routes, logs: settings.logs };
    listeners.add(cx, global, &addresses, &settings.binds, &site);
}

/// Whether a route looks for files below a root that it does not name itself. Without any `root`
/// that is the folder where relative paths start.
fn needs_root(routes: &[Route]) -> bool {
    if routes.iter().any(|route| is_root(&route.step) && route.matcher.is_none()) {
        return false;
    }
    let conditions = |route: &Route| route.matcher.iter().flat_map(|matcher| &matcher.all).any(asks_for_file);
    routes.iter().any(|route| {
        conditions(route)
            || match &route.step {
                Step::FileServer(settings) => settings.root.is_none(),
                Step::Handle(routes) | Step::HandlePath { routes, .. } => needs_root(routes),
                _ => false,
            }
    })
}

fn asks_for_file(condition: &Condition) -> bool {
    match condition {
        Condition::File(found) => found.root.is_none(),
        Condition::Not(matchers) => matchers.iter().flat_map(|matcher| &matcher.all).any(asks_for_file),
        _ => false,
    }
}

fn is_root(step: &Step) -> bool {
    matches!(step, Step::Root(_))
}
