//! One `location` as a block: what becomes of its requests.
//!
//! The rules of `proxy_pass` with and without a path are nginx's own (ngx_http_proxy_module), case by case.

use std::path::Path;

use super::access::{addresses, body_size};
use super::concurrency::concurrency;
use super::context::Context;
use super::directive::{Directive, nearest};
use super::error_pages::is_page;
use super::headers::headers;
use super::location::{Kind, Location, Paths, is_denied, takes_prefix_off};
use super::passwords::passwords;
use super::proxy_pass::ProxyPass;
use super::rates::rates;
use super::returns::returned;
use super::rewrites::{behind, decides_by_path, steps};
use super::try_files::{Fallback, try_files};
use super::values;
use crate::onehopfile::{directive as written, indented, word};
use crate::paths::normal;
use crate::refusal::Refusal;

/// What is said once of a page that is drawn by a script.
const IS_APPLICATION: &str = "The page is a single-page application, so the Onehopfile has `spa` for it: navigations \
    get the index page, a missing asset is a 404 where nginx answers with the page, and files with a hash in their name \
    are cached for good.";

/// What a location became.
#[derive(Debug)]
pub(crate) struct Block {
    paths: Paths,
    /// Whether the pattern is taken off the path.
    is_taken_off: bool,
    /// The directives inside.
    pub(crate) lines: String,
    /// Whether nginx sends the name without its slash here: only a `proxy_pass` of its own does that
    /// (`auto_redirect` in ngx_http_proxy_pass), a named location behind `try_files` does not.
    pub(crate) is_redirected: bool,
}

impl Block {
    /// Whether it needs no block around it when it is alone.
    pub(crate) fn is_plain(&self) -> bool {
        self.paths.all.is_empty() && self.paths.expression.is_none()
    }

    /// The block, with a matcher of its own name where it has several patterns.
    pub(crate) fn text(&self, number: usize) -> String {
        let verb = if self.is_taken_off { "handle_path" } else { "handle" };
        let named = format!("{verb} @paths{number}");
        let Paths { all, but, expression } = &self.paths;
        let own = match (expression, all.as_slice()) {
            (Some(expression), _) => Some(format!("path_regexp {expression}")),
            (None, []) => None,
            (None, all) => Some(format!("path {}", all.join(" "))),
        };
        let (before, head) = match (own, all.as_slice(), but.as_slice()) {
            (None, ..) => (String::new(), verb.to_owned()),
            // Only a path from its start on is a matcher by itself.
            (_, [only], []) if only.starts_with('/') => (String::new(), format!("{verb} {only}")),
            (Some(own), _, []) => (format!("@paths{number} {own}\n"), named),
            (Some(own), _, but) => {
                let lines = format!("{own}\nnot path {}\n", but.join(" "));
                (format!("@paths{number} {{\n{}}}\n", indented(&lines)), named)
            }
        };
        format!("{before}{head} {{\n{}}}\n", indented(&self.lines))
    }
}

/// A location's directives as a block.
pub(crate) fn block(
    context: &Context<'_>,
    location: &Location<'_>,
    is_server: bool,
    notes: &mut Vec<String>,
) -> Result<Block, Refusal> {
    let mut block = Block {
        paths: context.paths(location)?,
        is_taken_off: false,
        lines: String::new(),
        is_redirected: false,
    };
    if is_server || context.deployment.is_measured() {
        answered(context, location, is_server, &mut block, notes)?;
        return Ok(block);
    }
    let levels = context.levels(location, false);
    let own = location.directive.inner();
    if let Some(internal) = own.iter().find(|inner| inner.name == "internal") {
        if !is_page(context, location) {
            return Err(Refusal::at(
                &internal.place,
                "`internal`: onehop does not have locations for nginx alone",
                "take it out of a copy of the file, and try that: onehop try COPY.conf",
            ));
        }
        "error 404\n".clone_into(&mut block.lines);
        return Ok(block);
    }
    let steps = steps(own, "inner", &headers(&levels, false, &mut Vec::new()))?;
    answered(context, location, is_server, &mut block, notes)?;
    if let Some(step) = own.iter().find(|directive| block.is_taken_off && decides_by_path(directive)) {
        return Err(Refusal::at(
            &step.place,
            format!("`{}`: onehop takes the location's path off before it", step.shown()),
            "move it out of the location in a copy of the file, and try that",
        ));
    }
    block.lines = behind(&steps, block.lines);
    let is_off =
        |levels: &[&[Directive]]| nearest("access_log", levels).is_some_and(|log| log.arg(0) == "off");
    if is_off(&[own]) && !is_off(&[context.server.http, context.server.directive.inner()]) {
        block.lines.insert_str(0, "log_skip\n");
    }
    Ok(block)
}

/// What answers the requests of a location.
fn answered(
    context: &Context<'_>,
    location: &Location<'_>,
    is_server: bool,
    block: &mut Block,
    notes: &mut Vec<String>,
) -> Result<(), Refusal> {
    let levels = context.levels(location, is_server);
    let own = location.directive.inner();
    let find = |name: &str| own.iter().find(|directive| directive.name == name);
    if is_denied(location) && !is_server {
        "respond 403\n".clone_into(&mut block.lines);
        return Ok(());
    }
    if let (Some(directive), false) = (find("return"), is_server) {
        let kind = nearest("default_type", &levels)
            .map(|found| found.arg(0))
            .filter(|kind| *kind != "application/octet-stream");
        block.lines = headers(&levels, false, notes) + &returned(directive, kind)?;
        return Ok(());
    }
    if let Some(pass) = find("proxy_pass") {
        if let Some(directive) = find("try_files") {
            return Err(Refusal::at(
                &directive.place,
                format!("`{}` stands beside a `proxy_pass`", directive.shown()),
                "give the application a location of its own, `try_files … @name`, in a copy of the file",
            ));
        }
        block.is_redirected = true;
        block.lines = checks(context, location, &levels, notes)? + &addresses(&levels)?;
        block.lines.push_str(&(body_size(&levels) + &headers(&levels, true, notes)));
        return passed(context, location, pass, &levels, block, notes);
    }
    // Those act before any block within this one.
    let before = checks(context, location, &levels, notes)?;
    let rules = addresses(&levels)?;
    block.lines = format!("{rules}{}", headers(&levels, false, notes));
    files(context, location, &levels, &rules, block, notes)?;
    block.lines.insert_str(0, &before);
    Ok(())
}

/// What is counted and asked before there is an answer.
fn checks(
    context: &Context<'_>,
    location: &Location<'_>,
    levels: &[&[Directive]],
    notes: &mut Vec<String>,
) -> Result<String, Refusal> {
    let limits = concurrency(context, location, levels, notes) + &rates(context, levels, notes);
    Ok(limits + &passwords(context, levels, notes)?)
}

/// A `proxy_pass`.
fn passed(
    context: &Context<'_>,
    location: &Location<'_>,
    pass: &Directive,
    levels: &[&[Directive]],
    block: &mut Block,
    notes: &mut Vec<String>,
) -> Result<(), Refusal> {
    let uri = values::passed(pass.arg(0)).and_then(|to| to.uri);
    match takes_prefix_off(location.directive.inner()) {
        Some(prefix) if uri.is_none() && location.pattern.trim_end_matches('/') == prefix => {
            block.is_taken_off = true;
        }
        Some(_) => {
            return Err(Refusal::at(
                &pass.place,
                "the `rewrite` of this location takes another path off than its own",
                "write `proxy_pass http://HOST:PORT/` in a copy of the file, and try that",
            ));
        }
        None => {
            if let Some(rewrite) = replaced(location, pass, uri.as_deref(), block, notes)? {
                block.lines.push_str(&rewrite);
            }
        }
    }
    let is_replaced = block.is_taken_off || uri.is_some();
    let base = uri.as_deref().filter(|uri| block.is_taken_off && !uri.ends_with('/'));
    let base = base.filter(|_| !location.pattern.ends_with('/')).map(str::to_owned);
    let pass = ProxyPass::of(context.server, pass, is_replaced.then_some(location.pattern.as_str()), levels)?;
    pass.report(context, notes);
    block.lines.push_str(&pass.directive(context, None));
    if let Some(base) = base {
        block.is_taken_off = false;
        block.lines = alone_and_before_a_path(&location.pattern, &base, &block.lines);
        notes.push(format!(
            "`location {0}` with `proxy_pass …{base}` ({1}): nginx sends {0}b as {base}b, onehop as {base}/b.",
            location.pattern,
            location.directive.place.words()
        ));
    }
    Ok(())
}

/// Replaces a prefix that does not end in a slash. A path equal to the prefix gets no trailing slash.
fn alone_and_before_a_path(pattern: &str, base: &str, lines: &str) -> String {
    let rewrite = format!("rewrite * {base}{{uri}}\n");
    let alone = lines.replacen(&rewrite, &format!("rewrite * {base}{{?query}}\n"), 1);
    let (alone, before) = (indented(&alone), indented(lines));
    format!("handle {pattern} {{\n{alone}}}\nhandle_path {pattern}* {{\n{before}}}\n")
}

/// What replaces the location's part of the path: a line that does it, where taking it off is not enough.
fn replaced(
    location: &Location<'_>,
    pass: &Directive,
    uri: Option<&str>,
    block: &mut Block,
    notes: &mut Vec<String>,
) -> Result<Option<String>, Refusal> {
    let pattern = location.pattern.as_str();
    let Some(uri) = uri.filter(|uri| *uri != pattern) else { return Ok(None) };
    if uri.contains(['?', ' ', '{', '"', '`']) {
        return Err(Refusal::at(
            &pass.place,
            format!("`{}` puts a query or odd characters into each path", pass.shown()),
            "write a plain path in a copy of the file, and try that",
        ));
    }
    let base = uri.trim_end_matches('/');
    match location.kind {
        // The whole path is the location's: nginx puts the other in its place and keeps the query.
        Kind::Exact => Ok(Some(format!("rewrite * {uri}{{?query}}\n"))),
        _ if pattern.ends_with('/') && !uri.ends_with('/') => Err(Refusal::at(
            &pass.place,
            format!("`{}` joins paths without a slash: {pattern}x becomes {uri}x", pass.shown()),
            format!("write {uri}/ in a copy of the file, and try that"),
        )),
        _ => {
            block.is_taken_off = pattern != "/";
            if !pattern.ends_with('/') && uri.ends_with('/') {
                notes.push(format!(
                    "`location {pattern}` with `{}` ({}): nginx sends {pattern}/x as {uri}/x, with two slashes; \
                     onehop sends one.",
                    pass.shown(),
                    pass.place.words()
                ));
            }
            Ok((!base.is_empty()).then(|| format!("rewrite * {base}{{uri}}\n")))
        }
    }
}

/// Files below a root.
fn files(
    context: &Context<'_>,
    location: &Location<'_>,
    levels: &[&[Directive]],
    rules: &str,
    block: &mut Block,
    notes: &mut Vec<String>,
) -> Result<(), Refusal> {
    let own = location.directive.inner();
    let find = |name: &str| own.iter().find(|directive| directive.name == name);
    let alias = find("alias");
    let Some(root) = alias.or_else(|| nearest("root", levels)) else {
        // The folder that nginx was built with; a trial's is empty.
        let fallback = match find("try_files") {
            Some(directive) => try_files(context, location, directive, false, notes)?.without_files(rules),
            None => None,
        };
        block.lines = fallback.unwrap_or_else(|| format!("{}respond 404\n", block.lines));
        return Ok(());
    };
    let folder = context.server.folder_of(root);
    if context.deployment.is_folder_needed() && !context.server.is_folder(Path::new(&folder)) {
        return Err(Refusal::at(
            &root.place,
            format!("the folder of `{}` is not there", root.shown()),
            "build the site, or name the folder where it is in a copy of the file",
        ));
    }
    if alias.is_some() {
        let is_whole = matches!(location.kind, Kind::Prefix | Kind::Strong)
            && location.pattern.ends_with('/') == root.arg(0).ends_with('/');
        if !is_whole {
            return Err(Refusal::at(
                &root.place,
                format!("`{}` names no folder for a prefix with the same slash at its end", root.shown()),
                "write both with a slash at the end in a copy of the file, and try that",
            ));
        }
        block.is_taken_off = location.pattern != "/";
    }
    let folder = normal(Path::new(&folder));
    let root_word = word(&context.deployment.folder(context.server.folder, &folder));
    let root_line = format!("root {root_word}\n");
    let fallback = match find("try_files") {
        None => Fallback::default(),
        Some(directive) => try_files(context, location, directive, alias.is_some(), notes)?,
    };
    let options = options(levels);
    if fallback.is_index && options.is_empty() && context.deployment.is_single_page_application(&folder) {
        notes.push(IS_APPLICATION.to_owned());
        block.lines.push_str(&format!("spa {root_word}\n"));
        return Ok(());
    }
    let server = written("file_server", &options);
    if !fallback.is_apart(&block.lines) {
        block.lines.push_str(&format!("{root_line}{}{server}", fallback.lines()));
        return Ok(());
    }
    // Each of the two has header fields of its own.
    let own = std::mem::take(&mut block.lines);
    block.lines =
        format!("{root_line}{}handle {{\n{}}}\n", fallback.apart(rules), indented(&(own + &server)));
    Ok(())
}

/// The options of a `file_server`.
fn options(levels: &[&[Directive]]) -> Vec<String> {
    let mut options = Vec::new();
    if let Some(index) = nearest("index", levels) {
        let names: Vec<&str> = index
            .args
            .iter()
            .map(|name| name.text.as_str())
            .filter(|name| !name.contains(['$', '/']))
            .collect();
        if names != ["index.html"] && !names.is_empty() {
            options
                .push(format!("index {}", names.iter().map(|name| word(name)).collect::<Vec<_>>().join(" ")));
        }
    }
    if nearest("gzip_static", levels).is_some_and(|directive| directive.arg(0) == "on") {
        options.push("precompressed gzip".to_owned());
    }
    if nearest("autoindex", levels).is_some_and(|directive| directive.arg(0) == "on") {
        options.push("browse".to_owned());
    }
    options
}
