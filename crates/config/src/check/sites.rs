//! The whole configuration: global block, then one site after the other.

use super::address::Address;
use super::listen::Listeners;
use super::matcher::Scope;
use super::{Context, automatic, global, listener_wrappers};
use crate::checked::{AppRun, Checked, Condition, ErrorRoutes, Global, Route, Site, Step, Template};
use crate::directives::{self, SiteSettings};
use crate::overrides::{Listens, Moved};
use crate::problem::Problem;
use crate::syntax::{Block, Parsed};

/// Checks everything; what is wrong goes to the context's problems.
pub(crate) fn check(cx: &mut Context<'_>, parsed: &Parsed, listens: &Listens) -> Checked {
    cx.is_global_option = global::is_option;
    let mut global = global::defaults();
    let mut listeners = Listeners::default();
    if let Some(first) = parsed.blocks.first().filter(|first| first.keys.is_empty()) {
        global = global::global(cx, &first.lines);
    }
    let moved = listens.decide(cx, &global, &parsed.blocks);
    for (number, block) in parsed.blocks.iter().enumerate() {
        if !block.keys.is_empty() {
            site(cx, &global, block, moved.get(&number), &mut listeners);
        } else if number != 0 {
            let message = "the global block must be the first of the file";
            cx.problems.push(
                Problem::error("global-block", &block.place, message)
                    .help("move it to the top, or put an address before the brace"),
            );
        }
    }
    automatic::redirect(&global, &mut listeners.listeners, &mut listeners.sites);
    listener_wrappers::check_order(cx, listeners.listeners.iter().any(|listener| listener.tls));
    let has_workers = listeners.sites.iter().any(|site| has_workers(&site.routes));
    let lag = cx.limits.lag_of_server.take();
    directives::warn_of_lag(cx, lag.into_iter().collect(), has_workers);
    Checked { global, listeners: listeners.listeners, sites: listeners.sites }
}

fn site(
    cx: &mut Context<'_>,
    global: &Global,
    block: &Block,
    moved: Option<&Moved>,
    listeners: &mut Listeners,
) {
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
    if let Some(moved) = moved {
        addresses = moved.addresses(cx, &addresses);
    }
    let has_tls = block.lines.iter().any(|line| line.name.text == "tls");
    addresses.iter_mut().for_each(|address| address.has_tls = has_tls);
    cx.expressions.begin_site(block);
    let scope = Scope::of_block(cx, &block.lines, None);
    let mut settings = SiteSettings::default();
    cx.apps.begin_site(addresses.iter().any(|address| address.is_plain(global)));
    cx.limits.begin_site(addresses.first().map_or("", |first| first.label.as_str()));
    let mut routes = directives::site(cx, &scope, block, &mut settings);
    cx.check_captures(block);
    let lags = std::mem::take(&mut cx.limits.lags);
    directives::warn_of_lag(cx, lags, has_workers(&routes));
    if needs_root(&routes) || errors_need_root(&routes, &settings.errors) {
        let root = Template::text(cx.base.to_string_lossy());
        routes.insert(0, Route { matcher: None, group: None, step: Step::Root(root), line: 0 });
    }
    let SiteSettings { logs, errors, binds, tls } = settings;
    let site = Site { label: String::new(), hosts: Vec::new(), routes, errors, logs, tls: None };
    // Addresses from the command line or the environment replace those of the file, `bind` included.
    let binds = if moved.is_some() { &[][..] } else { &binds };
    listeners.add(cx, global, &addresses, binds, (&site, &tls));
}

/// Whether what is done with an error looks for files below the root of its site, which has none.
fn errors_need_root(routes: &[Route], errors: &[ErrorRoutes]) -> bool {
    !has_root(routes) && errors.iter().any(|errors| needs_root(&errors.routes))
}

/// Whether a route calls a worker that reports its lag.
fn has_workers(routes: &[Route]) -> bool {
    routes.iter().any(|route| match &route.step {
        Step::App(app) => matches!(app.run, AppRun::Handler { .. }),
        Step::Handle(routes) | Step::HandlePath { routes, .. } => has_workers(routes),
        _ => false,
    })
}

/// Whether a route looks for files below a root that it does not name itself. Without any `root`
/// that is the folder where relative paths start.
fn needs_root(routes: &[Route]) -> bool {
    if has_root(routes) {
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

/// Whether every request has one.
fn has_root(routes: &[Route]) -> bool {
    routes.iter().any(|route| matches!(route.step, Step::Root(_)) && route.matcher.is_none())
}
