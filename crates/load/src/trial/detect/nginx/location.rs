//! One `location`: what it matches, and what becomes of its requests.
//!
//! The rules of `proxy_pass` with and without a path are nginx's own (ngx_http_proxy_module), case by case.

use std::path::Path;

use super::pass::Pass;
use super::translate::Context;
use super::tree::Directive;
use super::tried::{Fallback, tried};
use super::{nearest, nearest_all, values};
use crate::trial::TrialError;
use crate::trial::detect::files::{below, normal};
use crate::trial::detect::site::is_application;
use crate::trial::detect::write::{directive as written, indented, word};

/// What is said once of all `add_header` without a word behind them (ngx_http_headers_module).
const NOT_ALWAYS: &str = "nginx adds the fields of `add_header` without `always` to answers with 200, 201, 204, 206 and \
    to redirects alone; onehop adds them to errors of the application too.";

/// What is said once of a page that is drawn by a script.
const IS_APPLICATION: &str = "The page is a single-page application, so the Onehopfile has `spa` for it: navigations \
    get the index page, a missing asset is a 404 where nginx answers with the page, and files with a hash in their name \
    are cached for good.";

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
    /// Path patterns that it leaves to others all the same.
    but: Vec<String>,
    /// Whether the pattern is taken off the path.
    is_taken_off: bool,
    /// The directives inside.
    pub(super) lines: String,
    /// Whether nginx sends the name without its slash here: only a `proxy_pass` of its own does that
    /// (`auto_redirect` in ngx_http_proxy_pass), a named location behind `try_files` does not.
    pub(super) is_redirected: bool,
}

impl Block {
    /// Whether it needs no block around it when it is alone.
    pub(super) fn is_plain(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The block, with a matcher of its own name where it has several patterns.
    pub(super) fn text(&self, number: usize) -> String {
        let verb = if self.is_taken_off { "handle_path" } else { "handle" };
        let named = format!("{verb} @paths{number}");
        let (before, head) = match self.patterns.as_slice() {
            [] => (String::new(), verb.to_owned()),
            // Only a path from its start on is a matcher by itself.
            [only] if only.starts_with('/') && self.but.is_empty() => {
                (String::new(), format!("{verb} {only}"))
            }
            several if self.but.is_empty() => (format!("@paths{number} path {}\n", several.join(" ")), named),
            several => {
                let but = self.but.join(" ");
                let lines = format!("path {}\nnot path {but}\n", several.join(" "));
                (format!("@paths{number} {{\n{}}}\n", indented(&lines)), named)
            }
        };
        format!("{before}{head} {{\n{}}}\n", indented(&self.lines))
    }
}

/// Whether a location does nothing but refuse everybody.
pub(super) fn is_denied(location: &Location<'_>) -> bool {
    let inner = location.directive.inner();
    let is_quiet = |directive: &Directive| ["access_log", "log_not_found"].contains(&directive.name.as_str());
    let denies = |directive: &Directive| directive.name == "deny" && directive.arg(0) == "all";
    inner.iter().any(denies) && inner.iter().all(|directive| denies(directive) || is_quiet(directive))
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
    let (patterns, but) = context.patterns(location)?;
    let mut block = Block { patterns, but, is_taken_off: false, lines: String::new(), is_redirected: false };
    if is_denied(location) && !is_server {
        "respond 403\n".clone_into(&mut block.lines);
        return Ok(block);
    }
    if let (Some(directive), false) = (find("return"), is_server) {
        let kind = nearest("default_type", &levels)
            .map(|found| found.arg(0))
            .filter(|kind| *kind != "application/octet-stream");
        block.lines = headers(&levels, false, notes) + &returned(directive, kind)?;
        return Ok(block);
    }
    if let Some(pass) = find("proxy_pass") {
        if let Some(directive) = find("try_files") {
            return Err(TrialError::found(
                &directive.place,
                format!("`{}` stands beside a `proxy_pass`", directive.shown()),
                "give the application a location of its own, `try_files … @name`, in a copy of the file",
            ));
        }
        block.is_redirected = true;
        block.lines = headers(&levels, true, notes);
        passed(context, location, pass, &levels, &mut block, notes)?;
        return Ok(block);
    }
    block.lines = headers(&levels, false, notes);
    files(context, location, &levels, &mut block, notes)?;
    Ok(block)
}

/// The path patterns of a location, and those that are none of its.
pub(super) fn patterns(location: &Location<'_>) -> Result<(Vec<String>, Vec<String>), TrialError> {
    Ok(match location.kind {
        Kind::Exact => (vec![location.pattern.clone()], Vec::new()),
        Kind::Prefix | Kind::Strong if location.pattern == "/" => Default::default(),
        Kind::Prefix | Kind::Strong => (vec![format!("{}*", location.pattern)], Vec::new()),
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
pub(super) fn headers(levels: &[&[Directive]], is_passed: bool, notes: &mut Vec<String>) -> String {
    let mut out = String::new();
    let mut seen: Vec<String> = Vec::new();
    let expires = nearest("expires", levels);
    if let Some(directive) = expires
        && let Some(control) = control(directive, notes)
    {
        out.push_str(&format!("header {}Cache-Control {control}\n", sign(is_passed, false, true)));
        seen.push("cache-control".to_owned());
    }
    for directive in nearest_all("add_header", levels) {
        let name = directive.arg(0).to_owned();
        let mut note = |words: &str| {
            notes.push(format!("`{}` ({}): {words}.", directive.shown(), directive.place.words()))
        };
        let Some(value) = values::text(directive.arg(1)) else {
            note("it has a variable that onehop does not know");
            continue;
        };
        let is_always = directive.arg(2) == "always";
        if !is_always && is_passed {
            notes.push(NOT_ALWAYS.to_owned());
        }
        // nginx adds a field beside one that is there.
        let is_added = is_passed || seen.contains(&name.to_ascii_lowercase());
        seen.push(name.to_ascii_lowercase());
        let field = format!("{}{} {value}", sign(is_passed, is_added, !is_always), word(&name));
        out.push_str(&match is_added && !is_always && !is_passed {
            true => written("header", &[field, "defer".to_owned()]),
            false => format!("header {field}\n"),
        });
    }
    for directive in nearest_all("proxy_hide_header", levels) {
        if is_passed {
            out.push_str(&format!("header -{}\n", word(directive.arg(0))));
        }
    }
    out
}

/// What stands before a field's name. A deferred one (`>`) is not on the errors that onehop answers for files, as
/// without `always` it is not on nginx's: a missing asset must not be kept for a year.
fn sign(is_passed: bool, is_added: bool, is_for_success: bool) -> &'static str {
    match (is_added, is_for_success && !is_passed) {
        (true, _) => "+",
        (false, true) => ">",
        (false, false) => "",
    }
}

/// The Cache-Control of an `expires`.
fn control(directive: &Directive, notes: &mut Vec<String>) -> Option<String> {
    let control = match directive.arg(0) {
        "off" => return None,
        "epoch" => Some("no-cache".to_owned()),
        "max" => Some("max-age=315360000".to_owned()),
        negative if negative.starts_with('-') => Some("no-cache".to_owned()),
        time => values::seconds(time).map(|seconds| format!("max-age={seconds}")),
    };
    let note = match control {
        Some(_) => "as Cache-Control; there is no Expires beside it",
        None => "it is not carried over",
    };
    notes.push(format!("`{}` ({}): {note}.", directive.shown(), directive.place.words()));
    control
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
    let uri = values::passed(pass.arg(0)).and_then(|to| to.uri);
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
    let is_replaced = block.is_taken_off || uri.is_some();
    let pass = Pass::of(context.chosen, pass, is_replaced.then_some(location.pattern.as_str()), levels)?;
    pass.tell(context, notes);
    block.lines.push_str(&pass.directive(context, None));
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

/// Files below a root.
fn files(
    context: &Context<'_>,
    location: &Location<'_>,
    levels: &[&[Directive]],
    block: &mut Block,
    notes: &mut Vec<String>,
) -> Result<(), TrialError> {
    let own = location.directive.inner();
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
    let root_word = word(&below(context.chosen.folder, &folder));
    let root_line = format!("root {root_word}\n");
    let fallback = match find("try_files") {
        None => Fallback::default(),
        Some(directive) => tried(context, location, directive, alias.is_some(), notes)?,
    };
    let options = options(levels);
    if fallback.is_index && options.is_empty() && is_application(&folder) {
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
    block.lines = format!("{root_line}{}handle {{\n{}}}\n", fallback.apart(), indented(&(own + &server)));
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
