//! One `location`: what it matches, and what becomes of its requests.
//!
//! The rules of `proxy_pass` with and without a path are nginx's own (ngx_http_proxy_module), case by case.

use std::path::Path;

use super::translate::Context;
use super::tree::Directive;
use super::{nearest, nearest_all, values};
use crate::trial::TrialError;
use crate::trial::detect::files::{below, normal};
use crate::trial::detect::write::{directive as written, indented, word};

/// How a location chooses its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `= /path`
    Exact,
    /// `/path`
    Prefix,
    /// `^~ /path`
    Strong,
    /// `~ expression`, `~* expression`
    Expression,
}

/// A location.
#[derive(Debug, Clone)]
pub(super) struct Location<'a> {
    pub(super) kind: Kind,
    pub(super) pattern: String,
    pub(super) directive: &'a Directive,
}

impl<'a> Location<'a> {
    /// A `location`.
    pub(super) fn of(directive: &'a Directive) -> Result<Location<'a>, TrialError> {
        let (kind, pattern) = match (directive.arg(0), directive.arg(1)) {
            ("=", pattern) => (Kind::Exact, pattern),
            ("^~", pattern) => (Kind::Strong, pattern),
            ("~" | "~*", pattern) => (Kind::Expression, pattern),
            (pattern, "") => (Kind::Prefix, pattern),
            _ => (Kind::Prefix, ""),
        };
        let is_plain = kind == Kind::Expression
            || (pattern.starts_with('/') && !pattern.contains([' ', '*', '{', '}', '"', '`', '\\']));
        if pattern.is_empty() || !is_plain {
            return Err(TrialError::found(
                &directive.place,
                format!("`{}` is no location that can be carried over", directive.shown()),
                "a location is a path, or one of =, ^~, ~ and ~* before one",
            ));
        }
        if directive.inner().iter().any(|inner| inner.name == "location") {
            return Err(TrialError::found(
                &directive.place,
                format!("`{}` has locations of its own", directive.shown()),
                "move them out of it in a copy of the file, and try that",
            ));
        }
        Ok(Location { kind, pattern: pattern.to_owned(), directive })
    }
}

/// What a location became.
#[derive(Debug)]
pub(super) struct Block {
    /// Path patterns; none where it takes all that is left.
    patterns: Vec<String>,
    /// Whether the pattern is taken off the path.
    is_taken_off: bool,
    /// The directives inside.
    pub(super) lines: String,
    /// Whether requests go to an application.
    pub(super) is_passed: bool,
}

impl Block {
    /// Whether it needs no block around it when it is alone.
    pub(super) fn is_plain(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The block, with a matcher of its own name where it has several patterns.
    pub(super) fn text(&self, number: usize) -> String {
        let verb = if self.is_taken_off { "handle_path" } else { "handle" };
        let (before, head) = match self.patterns.as_slice() {
            [] => (String::new(), verb.to_owned()),
            [only] => (String::new(), format!("{verb} {only}")),
            several => {
                (format!("@paths{number} path {}\n", several.join(" ")), format!("{verb} @paths{number}"))
            }
        };
        format!("{before}{head} {{\n{}}}\n", indented(&self.lines))
    }
}

/// Whether a location does nothing but refuse names that begin with a dot.
pub(super) fn is_only_denied(location: &Location<'_>) -> bool {
    let refuses = |directive: &Directive| match directive.name.as_str() {
        "deny" => directive.arg(0) == "all",
        "return" => ["403", "404"].contains(&directive.arg(0)),
        "access_log" | "log_not_found" => true,
        _ => false,
    };
    location.kind == Kind::Expression
        && location.pattern.trim_start_matches('^').starts_with("/\\.")
        && location.directive.inner().iter().all(refuses)
}

/// `rewrite ^/api/(.*)$ /$1 break;`, the usual way of taking a prefix off: the prefix.
pub(super) fn takes_prefix_off(directives: &[Directive]) -> Option<&str> {
    let mut rewrites = directives.iter().filter(|directive| directive.name == "rewrite");
    let (rewrite, None) = (rewrites.next()?, rewrites.next()) else { return None };
    let expression = rewrite.arg(0).strip_prefix('^')?;
    let expression = expression.strip_suffix('$').unwrap_or(expression);
    let prefix = ["/?(.*)", "/(.*)"].iter().find_map(|rest| expression.strip_suffix(rest))?;
    let is_plain = prefix.starts_with('/') && values::patterns(&format!("^{prefix}/")).is_some();
    (is_plain && rewrite.arg(1) == "/$1" && rewrite.arg(2) == "break").then_some(prefix)
}

/// A `return`.
pub(super) fn returned(directive: &Directive, kind: Option<&str>) -> Result<String, TrialError> {
    let refuse = |cause: &str| {
        Err(TrialError::found(
            &directive.place,
            format!("`{}`: {cause}", directive.shown()),
            "take it out of a copy of the file, and try that: onehop try COPY.conf",
        ))
    };
    let (code, text) = match (directive.arg(0).parse::<u16>(), directive.arg(1)) {
        (Ok(code), text) => (code, text),
        (Err(_), _) => (302, directive.arg(0)),
    };
    if code == 444 {
        return refuse("onehop does not close connections without an answer");
    }
    let Some(value) = values::text(text) else {
        return refuse("it has a variable that onehop does not know");
    };
    if (300..400).contains(&code) && !text.is_empty() {
        let all = if value.starts_with('/') { "* " } else { "" };
        return Ok(format!("redir {all}{value} {code}\n"));
    }
    if text.is_empty() {
        return Ok(format!("respond {code}\n"));
    }
    let all = if text.starts_with(['/', '@', '*']) { "* " } else { "" };
    let kind = kind.map(|kind| format!("header Content-Type {}\n", word(kind))).unwrap_or_default();
    Ok(format!("{kind}respond {all}{value} {code}\n"))
}

/// A location's directives as a block.
pub(super) fn block(
    context: &Context<'_>,
    location: &Location<'_>,
    is_server: bool,
    notes: &mut Vec<String>,
) -> Result<Block, TrialError> {
    let levels = context.levels(location, is_server);
    let own = location.directive.inner();
    let find = |name: &str| own.iter().find(|directive| directive.name == name);
    let mut block =
        Block { patterns: patterns(location)?, is_taken_off: false, lines: String::new(), is_passed: false };
    if let (Some(directive), false) = (find("return"), is_server) {
        let kind = nearest("default_type", &levels)
            .map(|found| found.arg(0))
            .filter(|kind| *kind != "application/octet-stream");
        block.lines = headers(&levels, false, notes) + &returned(directive, kind)?;
        return Ok(block);
    }
    if let Some(pass) = find("proxy_pass") {
        block.is_passed = true;
        block.lines = headers(&levels, true, notes);
        passed(context, location, pass, &levels, &mut block, notes)?;
        return Ok(block);
    }
    block.lines = headers(&levels, false, notes);
    files(context, location, &levels, own, &mut block)?;
    Ok(block)
}

fn patterns(location: &Location<'_>) -> Result<Vec<String>, TrialError> {
    Ok(match location.kind {
        Kind::Exact => vec![location.pattern.clone()],
        Kind::Prefix | Kind::Strong if location.pattern == "/" => Vec::new(),
        Kind::Prefix | Kind::Strong => vec![format!("{}*", location.pattern)],
        Kind::Expression => values::patterns(&location.pattern).ok_or_else(|| {
            TrialError::found(
                &location.directive.place,
                format!(
                    "`{}` matches by an expression that no path pattern is equal to",
                    location.directive.shown()
                ),
                "write it as a prefix, or as endings `\\.(css|js)$`, in a copy of the file, and try that",
            )
        })?,
    })
}

/// `add_header`, `expires` and `proxy_hide_header`.
fn headers(levels: &[&[Directive]], is_passed: bool, notes: &mut Vec<String>) -> String {
    let mut out = String::new();
    let mut seen: Vec<String> = Vec::new();
    for directive in nearest_all("add_header", levels) {
        let name = directive.arg(0).to_owned();
        let Some(value) = values::text(directive.arg(1)) else {
            let place = directive.place.words();
            notes.push(format!(
                "`{}` ({place}): it has a variable that onehop does not know.",
                directive.shown()
            ));
            continue;
        };
        // nginx adds a field beside one that is there.
        let sign = if is_passed || seen.contains(&name.to_ascii_lowercase()) { "+" } else { "" };
        seen.push(name.to_ascii_lowercase());
        out.push_str(&format!("header {sign}{} {value}\n", word(&name)));
    }
    if let Some(directive) = nearest("expires", levels) {
        let control = match directive.arg(0) {
            "off" => None,
            "epoch" => Some("no-cache".to_owned()),
            "max" => Some("max-age=315360000".to_owned()),
            negative if negative.starts_with('-') => Some("no-cache".to_owned()),
            time => values::seconds(time).map(|seconds| format!("max-age={seconds}")),
        };
        if let Some(control) = control {
            out.push_str(&format!("header Cache-Control {control}\n"));
            notes.push(format!(
                "`{}` ({}): as Cache-Control; there is no Expires beside it.",
                directive.shown(),
                directive.place.words()
            ));
        } else if directive.arg(0) != "off" {
            notes.push(format!(
                "`{}` ({}): it is not carried over.",
                directive.shown(),
                directive.place.words()
            ));
        }
    }
    for directive in nearest_all("proxy_hide_header", levels) {
        if is_passed {
            out.push_str(&format!("header -{}\n", word(directive.arg(0))));
        }
    }
    out
}

/// A `proxy_pass`.
fn passed(
    context: &Context<'_>,
    location: &Location<'_>,
    pass: &Directive,
    levels: &[&[Directive]],
    block: &mut Block,
    notes: &mut Vec<String>,
) -> Result<(), TrialError> {
    let (upstream, uri) = context.chosen.target(pass)?;
    match takes_prefix_off(location.directive.inner()) {
        Some(prefix) if uri.is_none() && location.pattern.trim_end_matches('/') == prefix => {
            block.is_taken_off = true;
        }
        Some(_) => {
            return Err(TrialError::found(
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
    fields(pass, levels, &format!("{}:{}", upstream.host, upstream.port), notes);
    let mut more = Vec::new();
    if let Some(directive) = nearest("proxy_read_timeout", levels) {
        match values::seconds(directive.arg(0)) {
            Some(60) | None => {}
            Some(seconds) => more.push(format!("timeout {}s", seconds.max(1))),
        }
    }
    block.lines.push_str(&context.behind.app(
        upstream.port,
        None,
        context.chosen.folder,
        &more,
        context.surroundings,
    ));
    Ok(())
}

/// What replaces the location's part of the path: a line that does it, where taking it off is not enough.
fn replaced(
    location: &Location<'_>,
    pass: &Directive,
    uri: Option<&str>,
    block: &mut Block,
    notes: &mut Vec<String>,
) -> Result<Option<String>, TrialError> {
    let pattern = location.pattern.as_str();
    let Some(uri) = uri.filter(|uri| *uri != pattern) else { return Ok(None) };
    if uri.contains(['?', ' ', '{', '"', '`']) {
        return Err(TrialError::found(
            &pass.place,
            format!("`{}` puts a query or odd characters into each path", pass.shown()),
            "write a plain path in a copy of the file, and try that",
        ));
    }
    let base = uri.trim_end_matches('/');
    match location.kind {
        // The whole path is the location's: nginx puts the other in its place and keeps the query.
        Kind::Exact => Ok(Some(format!("rewrite * {uri}{{?query}}\n"))),
        _ if pattern.ends_with('/') && !uri.ends_with('/') => Err(TrialError::found(
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

/// Which fields of requests differ for the application.
fn fields(pass: &Directive, levels: &[&[Directive]], address: &str, notes: &mut Vec<String>) {
    let mut names_host = false;
    for field in nearest_all("proxy_set_header", levels) {
        let (name, value) = (field.arg(0).to_ascii_lowercase(), field.arg(1));
        let note = match name.as_str() {
            "host" => {
                names_host = true;
                if value.contains("$host") || value.contains("$http_host") {
                    continue;
                }
                "onehop tells the application the host that the client asked for"
            }
            "connection" | "upgrade" | "x-forwarded-for" | "x-forwarded-proto" | "x-forwarded-host" => {
                continue;
            }
            "x-real-ip" => {
                "onehop tells the client's address in X-Forwarded-For, and in `request.socket` where it runs \
                            the file itself"
            }
            _ => "onehop does not set fields of requests yet, so the application does not get it",
        };
        notes.push(format!("`{}` ({}): {note}.", field.shown(), field.place.words()));
    }
    if !names_host {
        notes.push(format!(
            "`{}` ({}) tells the application the host {address}; onehop tells it the one that the client asked for.",
            pass.shown(),
            pass.place.words()
        ));
    }
}

/// Files below a root.
fn files(
    context: &Context<'_>,
    location: &Location<'_>,
    levels: &[&[Directive]],
    own: &[Directive],
    block: &mut Block,
) -> Result<(), TrialError> {
    let find = |name: &str| own.iter().find(|directive| directive.name == name);
    let alias = find("alias");
    let Some(root) = alias.or_else(|| nearest("root", levels)) else {
        // The folder that nginx was built with; a trial's is empty.
        block.lines.push_str("respond 404\n");
        return Ok(());
    };
    let folder = context.chosen.folder_of(root);
    if !Path::new(&folder).is_dir() {
        return Err(TrialError::found(
            &root.place,
            format!("the folder of `{}` is not there", root.shown()),
            "build the site, or name the folder where it is in a copy of the file",
        ));
    }
    if alias.is_some() {
        let is_whole = matches!(location.kind, Kind::Prefix | Kind::Strong)
            && location.pattern.ends_with('/') == root.arg(0).ends_with('/');
        if !is_whole {
            return Err(TrialError::found(
                &root.place,
                format!("`{}` names no folder for a prefix with the same slash at its end", root.shown()),
                "write both with a slash at the end in a copy of the file, and try that",
            ));
        }
        block.is_taken_off = location.pattern != "/";
    }
    let folder = normal(Path::new(&folder));
    block.lines.push_str(&format!("root {}\n", word(&below(context.chosen.folder, &folder))));
    if let Some(directive) = find("try_files") {
        tried(context, directive, block)?;
    }
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
    block.lines.push_str(&written("file_server", &options));
    Ok(())
}

/// `try_files`, whose last word is what happens where none is there.
fn tried(context: &Context<'_>, directive: &Directive, block: &mut Block) -> Result<(), TrialError> {
    let refuse = |cause: &str| {
        Err(TrialError::found(
            &directive.place,
            format!("`{}`: {cause}", directive.shown()),
            "write it with $uri and a page in a copy of the file, and try that",
        ))
    };
    let Some((last, rest)) = directive.args.split_last() else { return refuse("it names nothing") };
    let mut files = Vec::new();
    for file in rest {
        match values::text(&file.text) {
            Some(text) if !text.starts_with(['`', '"']) => files.push(text.replace("{orig_uri}", "{path}")),
            // A placeholder makes a word of its own that needs no quotes.
            Some(text) => files.push(text.trim_matches('`').to_owned()),
            None => return refuse("it has a variable that onehop does not know"),
        }
    }
    if let Some(name) = last.text.strip_prefix('@') {
        let named = context.named.iter().find(|named| named.arg(0).strip_prefix('@') == Some(name));
        let pass = named.and_then(|named| named.inner().iter().find(|inner| inner.name == "proxy_pass"));
        let Some(pass) = pass else { return refuse("the location that it names passes nothing on") };
        let (upstream, _) = context.chosen.target(pass)?;
        block.is_passed = true;
        block.lines.push_str(&format!("@absent not file {}\n", files.join(" ")));
        let app = context.behind.app(
            upstream.port,
            Some("@absent"),
            context.chosen.folder,
            &[],
            context.surroundings,
        );
        block.lines.push_str(&app);
        return Ok(());
    }
    if last.text.starts_with('=') {
        let is_usual = files.iter().all(|file| file == "{path}" || file == "{path}/");
        if !(is_usual && last.text == "=404") {
            block.lines.push_str(&format!("try_files {} {}\n", files.join(" "), last.text));
        }
        return Ok(());
    }
    let page = last.text.split('?').next().unwrap_or_default();
    let Some(page) = values::text(page).filter(|page| !page.starts_with(['`', '"'])) else {
        return refuse("its last page is no plain path");
    };
    block.lines.push_str(&format!("try_files {} {page}\n", files.join(" ")));
    Ok(())
}
