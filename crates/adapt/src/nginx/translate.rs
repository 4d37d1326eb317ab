//! A server of nginx as a site of an Onehopfile: its locations in the order in which nginx chooses among them.
//!
//! What changes answers and has no equal is an error with its line, or a note where the rest still holds.

use super::block::block;
use super::context::Context;
use super::directive::{Directive, nearest};
use super::error_pages::error_pages;
use super::headers::headers;
use super::location::{Kind, Location, check_order, is_denied, paths as paths_of, takes_prefix_off};
use super::rates::statuses;
use super::returns::returned;
use super::rewrites::{behind, steps};
use super::server::Server;
use super::support::check_level;
use super::values;
use crate::deployment::Deployment;
use crate::onehopfile::indented;
use crate::refusal::Refusal;

/// Paths that are suggested.
const PATHS_MAX: usize = 12;

/// What a server became.
#[derive(Debug, Default)]
pub struct Translated {
    /// The lines of a site.
    pub body: String,
    /// Paths worth asking.
    pub paths: Vec<String>,
}

/// The server's directives as those of a site.
pub fn translate(
    server: &Server<'_>,
    deployment: &dyn Deployment,
    notes: &mut Vec<String>,
) -> Result<Translated, Refusal> {
    let inner = server.directive.inner();
    let is_named = |directive: &&Directive| directive.name == "location" && directive.arg(0).starts_with('@');
    let named = inner.iter().filter(is_named).collect();
    let is_measured = deployment.is_measured();
    check_level(server.http, "http", is_measured, notes)?;
    check_level(inner, "server", is_measured, notes)?;
    let others = inner.iter().filter(|directive| directive.name == "location" && !is_named(directive));
    let locations: Vec<Location<'_>> = others.map(Location::of).collect::<Result<_, _>>()?;
    check_order(&locations)?;
    let context = Context { server, deployment, named, locations: locations.clone() };
    let mut translated = Translated::default();
    translated.body.push_str(&settings(&context, notes));
    let whole = inner.iter().find(|directive| directive.name == "return");
    let first = if is_measured {
        Vec::new()
    } else {
        steps(inner, "first", &headers(&[server.http, inner], false, &mut Vec::new()))?
    };
    if let Some(directive) = whole {
        translated.body.push_str(&behind(&first, returned(directive, None)?));
    } else {
        translated.body.push_str(&bodies(&context, locations.clone(), &first, notes)?);
        translated.body.push_str(&statuses(&context, &locations, notes));
        if !is_measured {
            translated.body.push_str(&error_pages(&context, notes));
        }
    }
    translated.paths = paths(&context, &locations);
    Ok(translated)
}

/// The locations' blocks, or the one block's lines alone.
fn bodies<'a>(
    context: &Context<'a>,
    mut locations: Vec<Location<'a>>,
    first: &[String],
    notes: &mut Vec<String>,
) -> Result<String, Refusal> {
    if !locations.iter().any(|location| location.kind == Kind::Prefix && location.pattern == "/")
        && !locations.iter().any(|location| location.kind == Kind::Strong && location.pattern == "/")
    {
        locations.push(Location {
            kind: Kind::Prefix,
            pattern: "/".to_owned(),
            directive: context.server.directive,
        });
    }
    // Exact ones, then expressions as written, then the longest prefix (ngx_http_core_find_location). A `^~` is a
    // prefix like others, below which no expression is looked at.
    locations.sort_by_key(|location| {
        let length = usize::MAX - location.pattern.len();
        match location.kind {
            Kind::Exact => (0, length),
            Kind::Expression => (1, 0),
            Kind::Strong | Kind::Prefix => (2, length),
        }
    });
    let is_ordered = !first.is_empty() || locations.iter().any(|location| location.kind == Kind::Expression);
    let mut outside = String::new();
    let mut blocks = Vec::new();
    for location in &locations {
        let is_server = std::ptr::eq(location.directive, context.server.directive);
        if !is_server && !is_denied(location) {
            check_level(location.directive.inner(), "location", context.deployment.is_measured(), notes)?;
        }
        let block = block(context, location, is_server, notes)?;
        let slashless = location.pattern.strip_suffix('/').filter(|name| !name.is_empty());
        if let (Some(name), true, Kind::Prefix | Kind::Strong) =
            (slashless, block.is_redirected, location.kind)
        {
            let is_own = |other: &Location<'_>| other.kind != Kind::Expression && other.pattern == name;
            if !locations.iter().any(is_own) {
                // nginx sends the name without its slash there when a proxy serves it.
                outside.push_str(&format!("redir {name} {name}/{{?query}} 301\n"));
            }
        }
        blocks.push(block);
    }
    if let [only] = blocks.as_slice()
        && only.is_plain()
    {
        return Ok(behind(first, only.lines.clone()));
    }
    let mut all = first.concat();
    for (number, block) in blocks.iter().enumerate() {
        all.push_str(&block.text(number));
    }
    if is_ordered {
        all = format!("route {{\n{}}}\n", indented(&all));
    }
    Ok(outside + &all)
}

/// What holds for the whole site: compression, logs.
fn settings(context: &Context<'_>, notes: &mut Vec<String>) -> String {
    let levels = [context.server.http, context.server.directive.inner()];
    let mut out = String::new();
    let is_on = |name: &str| nearest(name, &levels).is_some_and(|directive| directive.arg(0) == "on");
    match (is_on("gzip"), is_on("brotli")) {
        (true, true) => out.push_str("encode br gzip\n"),
        (true, false) => out.push_str("encode gzip\n"),
        (false, true) => out.push_str("encode br\n"),
        (false, false) => {}
    }
    let log = nearest("access_log", &levels);
    if log.is_none_or(|directive| directive.arg(0) != "off") {
        out.push_str(&match context.deployment.access_log(log, notes) {
            Some(file) => format!("log {{\n\toutput file {file}\n}}\n"),
            None => "log\n".to_owned(),
        });
    }
    out
}

/// What could be asked: the locations themselves, the application's routes where they are passed on.
fn paths(context: &Context<'_>, locations: &[Location<'_>]) -> Vec<String> {
    // What an application answers comes first: it is what a trial waits for and measures.
    let (mut passed, mut paths) = (Vec::new(), Vec::new());
    let serves_root = locations.is_empty() || locations.iter().any(|location| location.pattern == "/");
    if serves_root || context.server.directive.inner().iter().any(|directive| directive.name == "root") {
        paths.push("/".to_owned());
    }
    for location in locations {
        let inner = location.directive.inner();
        if location.kind == Kind::Expression {
            paths.extend(refused_path(location));
            continue;
        }
        let Some(pass) = inner.iter().find(|directive| directive.name == "proxy_pass") else {
            paths.push(location.pattern.clone());
            continue;
        };
        passed.push(location.pattern.clone());
        let uri = values::passed(pass.arg(0)).and_then(|to| to.uri);
        let replaced = match (&uri, takes_prefix_off(inner)) {
            (_, Some(_)) => Some("/".to_owned()),
            (uri, None) => uri.clone(),
        };
        for path in context.deployment.routes() {
            let outside = match &replaced {
                Some(replacement) => {
                    path.strip_prefix(replacement.as_str()).map(|rest| location.pattern.clone() + rest)
                }
                None => path.starts_with(&location.pattern).then(|| path.clone()),
            };
            passed.extend(outside.filter(|path| path.starts_with('/') && !path.contains("//")));
        }
    }
    passed.append(&mut paths);
    let mut paths = passed;
    let mut seen = std::collections::HashSet::new();
    paths.retain(|path| seen.insert(path.clone()));
    paths.truncate(PATHS_MAX);
    paths
}

/// A path that an expression refuses: whether both sides refuse it is asked.
fn refused_path(location: &Location<'_>) -> Option<String> {
    if !is_denied(location) {
        return None;
    }
    let name = paths_of(location).ok()?.all.first()?.replace('*', "");
    let name = if name.ends_with('.') { name + "onehop-try" } else { name };
    Some(if name.starts_with('/') { name } else { format!("/onehop-try{name}") })
}
