//! From checked settings to routes: roots become numbers of stores.

use std::path::Path;
use std::sync::Arc;

use onehop_config::checked::limit::Limit;
use onehop_config::checked::proxy::Proxy;
use onehop_config::checked::{
    self, AccessLog, App, Checked, Condition, Encoding, FileServer, Matcher, PathPattern, Step, Template,
};
use onehop_files::limits::HOLD_BACK_MAX;
use onehop_files::tree::{StoreSpec, absent_below};
use onehop_metrics::access_log::Logs;
use onehop_metrics::route::RouteNames;

use super::{Action, Backend, ErrorRoutes, Root, Route, Target};
use crate::request::admission::rate::ClientRateLimiter;
use crate::request::early_hints::EarlyHints;
use crate::request::handle::basic_auth::BasicAuth;
use crate::request::handle::header;

/// Groups of one list of routes are bits of a word while a request walks.
const GROUPS_MAX: usize = 64;

/// Every tree that the settings name, each once; its number is its place.
pub fn store_specs(checked: &Checked) -> Vec<StoreSpec> {
    let mut specs = Vec::new();
    for site in &checked.sites {
        let mut encodings = Vec::new();
        gather_encodings(&site.routes, &mut encodings);
        // The root of a request that has failed holds for its error routes.
        let mut of_errors = Vec::new();
        for errors in &site.errors {
            gather_encodings(&errors.routes, &mut encodings);
            gather_serving(&errors.routes, &mut of_errors);
        }
        gather(&site.routes, &of_errors, &encodings, &mut specs);
        for errors in &site.errors {
            gather(&errors.routes, &[], &encodings, &mut specs);
        }
    }
    let own_files = checked.own_files();
    specs.iter_mut().for_each(|spec| spec.absent = absent_below(&spec.root, &own_files));
    specs
}

/// Every application that the settings name, each once; its number is its place.
pub fn configured_apps(checked: &Checked) -> Vec<Arc<App>> {
    let mut apps = Vec::new();
    checked.sites.iter().for_each(|site| gather_apps_of(site, &mut apps));
    apps
}

/// The same of one site.
pub fn apps_of_site(site: &checked::Site) -> Vec<Arc<App>> {
    let mut apps = Vec::new();
    gather_apps_of(site, &mut apps);
    apps
}

fn gather_apps_of(site: &checked::Site, apps: &mut Vec<Arc<App>>) {
    gather_apps(&site.routes, apps);
    site.errors.iter().for_each(|errors| gather_apps(&errors.routes, apps));
}

fn gather_apps(routes: &[checked::Route], apps: &mut Vec<Arc<App>>) {
    for route in routes {
        match &route.step {
            Step::App(app) if !apps.contains(app) => apps.push(Arc::clone(app)),
            Step::Handle(routes) | Step::HandlePath { routes, .. } => gather_apps(routes, apps),
            _ => {}
        }
    }
}

/// Adds the limits that a site's routes name, each once, in the order in which requests come to them: outer ones stand
/// before those inside of them.
pub fn configured_limits(routes: &[checked::Route], limits: &mut Vec<Arc<Limit>>) {
    for route in routes {
        match &route.step {
            Step::Limit(limit) if !limits.contains(limit) => limits.push(Arc::clone(limit)),
            Step::Handle(routes) | Step::HandlePath { routes, .. } => configured_limits(routes, limits),
            _ => {}
        }
    }
}

/// What has a number: its place in one of these.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// Trees in memory.
    pub stores: &'a [StoreSpec],
    /// Applications.
    pub apps: &'a [Arc<App>],
    /// Every `reverse_proxy`.
    pub proxies: &'a [Arc<Proxy>],
    /// What the server itself writes.
    pub own_files: &'a [String],
    /// The limits that requests of the site may meet.
    pub limits: &'a [Arc<Limit>],
    /// Every `rate_limit`.
    pub rate_limiters: &'a [Arc<ClientRateLimiter>],
    /// The logs of the site.
    pub logs: &'a [AccessLog],
    /// The names of the site's routes in metrics.
    pub routes: Option<&'a RouteNames>,
}

/// The blocks around a list of routes, for the names of these.
#[derive(Clone)]
struct Around {
    /// The path matcher of the innermost one that has one.
    name: String,
    /// What `handle_path` has taken off.
    prefix: String,
}

/// Compiles one site's routes.
pub fn compile(routes: &[checked::Route], known: Known<'_>) -> Arc<[Route]> {
    compile_list(routes, known, &Around::site()).into()
}

/// Compiles one site's error routes.
pub fn compile_errors(errors: &[checked::ErrorRoutes], known: Known<'_>) -> Arc<[ErrorRoutes]> {
    let compiled = errors.iter().map(|errors| ErrorRoutes {
        statuses: errors.statuses.clone(),
        routes: compile_list(&errors.routes, known, &Around::site()),
    });
    compiled.collect()
}

fn compile_list(routes: &[checked::Route], known: Known<'_>, around: &Around) -> Vec<Route> {
    let mut groups: Vec<u32> = Vec::new();
    let number_of = |group: u32, groups: &mut Vec<u32>| -> Option<u32> {
        let known = groups.iter().position(|known| *known == group);
        let number = known.unwrap_or_else(|| {
            groups.push(group);
            groups.len() - 1
        });
        u32::try_from(number).ok().filter(|_| number < GROUPS_MAX)
    };
    let compiled = routes.iter().map(|route| {
        let inside = around.within(route);
        let action = action(&route.step, known, &inside);
        let names = known.routes.filter(|_| matches!(action, Action::Target(_)));
        Route {
            matcher: route.matcher.clone(),
            group: route.group.and_then(|group| number_of(group, &mut groups)),
            action,
            number: names.map(|names| names.number(&inside.name)).unwrap_or_default(),
        }
    });
    compiled.collect()
}

impl Around {
    fn site() -> Self {
        Self { name: "*".to_owned(), prefix: String::new() }
    }

    fn within(&self, route: &checked::Route) -> Self {
        let conditions = route.matcher.iter().flat_map(|matcher| &matcher.all);
        let patterns = conditions.filter_map(|condition| match condition {
            Condition::Path(patterns) => Some(patterns),
            _ => None,
        });
        let shown = |pattern: &PathPattern| {
            let pattern = pattern.to_string();
            if pattern.starts_with('/') { format!("{}{pattern}", self.prefix) } else { pattern }
        };
        let name = patterns.flatten().map(shown).reduce(|all, next| format!("{all} {next}"));
        let taken_off = match &route.step {
            Step::HandlePath { prefix, .. } => prefix,
            _ => "",
        };
        Self {
            name: name.unwrap_or_else(|| self.name.clone()),
            prefix: format!("{}{taken_off}", self.prefix),
        }
    }
}

fn action(step: &Step, known: Known<'_>, inside: &Around) -> Action {
    match step {
        Step::Root(template) => Action::Root(root(template, known.stores)),
        Step::Header(settings) => Action::Header(settings.clone(), header::compile(&settings.ops)),
        Step::RequestHeader(ops) => Action::RequestHeader(ops.clone(), header::compile(ops)),
        Step::Redirect { to, kind } => Action::Target(Target::Redirect { to: to.clone(), kind: *kind }),
        Step::Rewrite(to) => Action::Rewrite(to.clone()),
        Step::ChangeUri(change) => Action::ChangeUri(change.clone()),
        Step::Encode(encode) => Action::Encode(encode.clone()),
        // What it has learned ends with the configuration.
        Step::EarlyHints(settings) => Action::EarlyHints(Box::new(EarlyHints::new(settings))),
        Step::Limit(limit) => {
            let place = known.limits.iter().position(|other| other == limit);
            // Nobody has that number: a site with more limits is not published.
            Action::Limit(place.and_then(|place| u8::try_from(place).ok()).unwrap_or(u8::MAX))
        }
        Step::Priority(priority) => Action::Priority(*priority),
        Step::Error { status, message } => Action::Error { status: *status, message: message.clone() },
        Step::BasicAuth(settings) => Action::BasicAuth(BasicAuth::new(settings)),
        Step::RequestBody(bytes) => Action::RequestBody(*bytes),
        Step::LogSkip => Action::LogSkip,
        Step::LogAppend(append) => Action::LogAppend(append.clone()),
        Step::Tracing(tracing) => Action::Tracing(tracing.clone()),
        Step::LogName(names) => {
            let is_named = |log: &&AccessLog| log.name.as_ref().is_some_and(|name| names.contains(name));
            let logs = known.logs.iter().enumerate().filter(|(_, log)| is_named(log));
            Action::LogName(Logs::of(logs.map(|(number, _)| number)))
        }
        Step::RateLimit(settings) => {
            let limiter = known.rate_limiters.iter().find(|limiter| limiter.settings() == settings);
            Action::RateLimit(
                limiter.map_or_else(|| Arc::new(ClientRateLimiter::new(Arc::clone(settings))), Arc::clone),
            )
        }
        Step::Handle(routes) => Action::Handle(compile_list(routes, known, inside)),
        Step::HandlePath { prefix, routes } => {
            Action::HandlePath { prefix: prefix.clone(), routes: compile_list(routes, known, inside) }
        }
        Step::Respond { status, body, close } => {
            Action::Target(Target::Respond { status: *status, body: body.clone(), close: *close })
        }
        Step::FileServer(settings) => Action::Target(Target::FileServer {
            settings: Arc::new(settings.clone()),
            on_disk: {
                let mut settings = settings.clone();
                settings.hide.extend_from_slice(known.own_files);
                Arc::new(settings)
            },
            root: settings.root.as_ref().map(|template| root(template, known.stores)),
        }),
        Step::Spa(settings) => {
            let store = number(&settings.root, settings.follow_outside, known.stores).unwrap_or(u32::MAX);
            Action::Target(Target::Spa { settings: settings.clone(), store })
        }
        Step::App(app) => {
            let place = known.apps.iter().position(|other| other == app);
            let number = place.and_then(|place| u32::try_from(place).ok()).unwrap_or(u32::MAX);
            Action::Target(Target::Backend(Backend::App(number)))
        }
        Step::Proxy(proxy) => {
            let place = known.proxies.iter().position(|other| other == proxy);
            let number = place.and_then(|place| u32::try_from(place).ok()).unwrap_or(u32::MAX);
            Action::Target(Target::Backend(Backend::Proxy(number)))
        }
    }
}

fn root(template: &Template, specs: &[StoreSpec]) -> Root {
    let number = |follow| number(Path::new(template.as_text()?), follow, specs);
    match (number(false), number(true)) {
        (None, None) => Root::Disk(template.clone()),
        (inside, following) => Root::Stores { inside, following },
    }
}

fn number(root: &Path, follow_outside: bool, specs: &[StoreSpec]) -> Option<u32> {
    let place = specs.iter().position(|spec| spec.root == root && spec.follow_outside == follow_outside)?;
    u32::try_from(place).ok()
}

fn gather_encodings(routes: &[checked::Route], encodings: &mut Vec<Encoding>) {
    for route in routes {
        match &route.step {
            Step::Encode(encode) => add_missing(encodings, &encode.encodings),
            Step::Handle(routes) | Step::HandlePath { routes, .. } => gather_encodings(routes, encodings),
            _ => {}
        }
    }
}

fn add_missing(encodings: &mut Vec<Encoding>, more: &[Encoding]) {
    for encoding in more {
        if !encodings.contains(encoding) {
            encodings.push(*encoding);
        }
    }
}

/// `later` are those who may serve files from a root of this list without standing in it.
fn gather(
    routes: &[checked::Route],
    later: &[&FileServer],
    encodings: &[Encoding],
    specs: &mut Vec<StoreSpec>,
) {
    let mut serving = later.to_vec();
    gather_serving(routes, &mut serving);
    for route in routes {
        if let Some(matcher) = &route.matcher {
            gather_matcher(matcher, specs);
        }
        match &route.step {
            // Whoever serves files below this list may serve them from here.
            Step::Root(template) if !serving.is_empty() => {
                for settings in &serving {
                    add(template, Some(settings), encodings, specs);
                }
            }
            // Only `try_files` looks here.
            Step::Root(template) => add(template, None, &[], specs),
            Step::FileServer(settings) => {
                if let Some(template) = &settings.root {
                    add(template, Some(settings), encodings, specs);
                }
            }
            Step::Spa(spa) => {
                let spec = spec_for(&spa.root, spa.follow_outside, specs);
                add_missing(&mut spec.compress, &[Encoding::Brotli, Encoding::Zstd, Encoding::Gzip]);
                spec.dotfiles |= spa.dotfiles;
                spec.index.get_or_insert_with(|| spa.index.clone());
                spec.keep_releases = spec.keep_releases.max(spa.keep_releases);
            }
            Step::Handle(routes) | Step::HandlePath { routes, .. } => {
                gather(routes, later, encodings, specs);
            }
            _ => {}
        }
    }
}

/// Every `file_server` without a root of its own in a list or below it.
fn gather_serving<'r>(routes: &'r [checked::Route], serving: &mut Vec<&'r FileServer>) {
    for route in routes {
        match &route.step {
            Step::FileServer(settings) if settings.root.is_none() => serving.push(settings),
            Step::Handle(routes) | Step::HandlePath { routes, .. } => gather_serving(routes, serving),
            _ => {}
        }
    }
}

fn gather_matcher(matcher: &Matcher, specs: &mut Vec<StoreSpec>) {
    for condition in &matcher.all {
        match condition {
            Condition::File(wanted) => {
                if let Some(template) = &wanted.root {
                    add(template, None, &[], specs);
                }
            }
            Condition::Not(matchers) => matchers.iter().for_each(|matcher| gather_matcher(matcher, specs)),
            _ => {}
        }
    }
}

fn add(
    template: &Template,
    settings: Option<&FileServer>,
    encodings: &[Encoding],
    specs: &mut Vec<StoreSpec>,
) {
    let Some(text) = template.as_text() else { return };
    let follow_outside = settings.is_some_and(|settings| settings.follow_outside);
    let spec = spec_for(Path::new(text), follow_outside, specs);
    add_missing(&mut spec.compress, encodings);
    spec.dotfiles |= settings.is_some_and(|settings| settings.dotfiles);
    spec.keep_releases = spec.keep_releases.max(settings.map_or(0, |settings| settings.keep_releases));
}

/// What leaves the root is in a store of its own: a site that does not follow links never sees it.
fn spec_for<'w>(root: &Path, follow_outside: bool, specs: &'w mut Vec<StoreSpec>) -> &'w mut StoreSpec {
    let fits = |spec: &StoreSpec| spec.root == root && spec.follow_outside == follow_outside;
    let place = specs.iter().position(fits).unwrap_or(specs.len());
    if place == specs.len() {
        specs.push(StoreSpec {
            root: root.to_path_buf(),
            dotfiles: false,
            follow_outside,
            absent: Vec::new(),
            compress: Vec::new(),
            index: None,
            keep_releases: 0,
            hold_back: HOLD_BACK_MAX,
        });
    }
    &mut specs[place]
}
