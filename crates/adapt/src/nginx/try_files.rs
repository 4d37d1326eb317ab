//! `try_files`: what is looked for, and what happens where none of it is there.
//!
//! Its last word is an internal redirect of nginx, for which a location is chosen once more. Where that is another
//! one than its own, or where an application would get another path, it is refused.

use super::access::{addresses, body_size, is_rule};
use super::concurrency::concurrency;
use super::context::Context;
use super::directive::Directive;
use super::headers::headers;
use super::location::Location;
use super::passwords::passwords;
use super::proxy_pass::ProxyPass;
use super::rates::rates;
use super::support::check_level;
use super::values;
use crate::onehopfile::indented;
use crate::refusal::Refusal;

/// What stands between the root and the files.
#[derive(Debug, Default)]
pub(crate) struct Fallback {
    /// Lines before it, such as its matcher.
    before: String,
    /// The bound of bodies for the application.
    body_size: String,
    /// An application for what is not there.
    app: Option<App>,
    /// Whether every path that is no file gets the index page, as single-page applications have it.
    pub(crate) is_index: bool,
}

#[derive(Debug)]
struct App {
    /// The directive under the matcher, and without one.
    under: String,
    bare: String,
    /// The header fields of its answers.
    headers: String,
}

impl Fallback {
    /// Whether its answers have other fields than those of the files.
    pub(crate) fn is_apart(&self, own: &str) -> bool {
        self.app.as_ref().is_some_and(|app| !app.headers.is_empty() || !own.is_empty())
    }

    /// Beside the files.
    pub(crate) fn lines(&self) -> String {
        format!("{}{}{}", self.body_size, self.before, self.app.as_ref().map_or("", |app| app.under.as_str()))
    }

    /// The application alone, where there are no files.
    pub(crate) fn without_files(&self, rules: &str) -> Option<String> {
        let body_size = self.body_size.as_str();
        self.app.as_ref().map(|app| format!("{rules}{body_size}{}{}", app.headers, app.bare))
    }

    /// In a block of its own, behind the location's rules by address.
    pub(crate) fn apart(&self, rules: &str) -> String {
        let Some(app) = &self.app else { return self.before.clone() };
        let body_size = &self.body_size;
        let lines = indented(&format!("{rules}{}{}", app.headers, app.bare));
        format!("{body_size}{}handle @absent {{\n{lines}}}\n", self.before)
    }
}

/// What a `try_files` comes to.
pub(crate) fn try_files(
    context: &Context<'_>,
    location: &Location<'_>,
    directive: &Directive,
    is_alias: bool,
    notes: &mut Vec<String>,
) -> Result<Fallback, Refusal> {
    let refuse = |cause: &str| {
        refused(directive, cause, "write it with $uri and a page in a copy of the file, and try that")
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
        if is_alias {
            return refuse("with `alias` the application would get the path without the location's prefix");
        }
        return named(context, location, directive, name, &files, notes);
    }
    let joined = files.join(" ");
    if let Some(code) = last.text.strip_prefix('=') {
        let has = |name: &str| files.iter().any(|file| file == name);
        // A file server looks for both by itself, and for nothing else; without `$uri/` folders are absent.
        let is_usual = code == "404" && files.len() == 2 && has("{path}") && has("{path}/");
        let before = if is_usual { String::new() } else { format!("try_files {joined} {}\n", last.text) };
        return Ok(Fallback { before, ..Fallback::default() });
    }
    let page = page(context, location, directive, &last.text, is_alias)?;
    let is_index = page == "/index.html" && files.iter().all(|file| matches!(&**file, "{path}" | "{path}/"));
    Ok(Fallback { before: format!("try_files {joined} {page}\n"), is_index, ..Fallback::default() })
}

/// The last page, as it is below the block's root.
fn page(
    context: &Context<'_>,
    location: &Location<'_>,
    directive: &Directive,
    last: &str,
    is_alias: bool,
) -> Result<String, Refusal> {
    let written = last.split('?').next().unwrap_or_default();
    let Some(page) = values::text(written).filter(|page| !page.starts_with(['`', '"'])) else {
        return refused(
            directive,
            "its last page is no plain path",
            "write it with $uri and a page in a copy of the file, and try that",
        );
    };
    let is_own = match written.contains('$') {
        true => context.locations.len() <= 1,
        false => context.is_chosen_for(location, written)?,
    };
    if !is_own {
        return refused(
            directive,
            "nginx chooses a location once more for its last page, and that is another one than this; onehop \
             stays in this one",
            "name a page of this location in a copy of the file, and try that",
        );
    }
    if !is_alias || location.pattern == "/" {
        return Ok(page);
    }
    let prefix = location.pattern.trim_end_matches('/');
    match page.strip_prefix(prefix) {
        Some(below) if below.starts_with('/') => Ok(below.to_owned()),
        _ => refused(
            directive,
            "its last page is not below the path of this location, whose folder `alias` names",
            "name a page of this location in a copy of the file, and try that",
        ),
    }
}

/// A named location, to which goes what is not there.
fn named(
    context: &Context<'_>,
    location: &Location<'_>,
    directive: &Directive,
    name: &str,
    files: &[String],
    notes: &mut Vec<String>,
) -> Result<Fallback, Refusal> {
    let found = context.named.iter().find(|named| named.arg(0).strip_prefix('@') == Some(name));
    let pass = found.and_then(|named| named.inner().iter().find(|inner| inner.name == "proxy_pass"));
    let (Some(named), Some(pass)) = (found, pass) else {
        return refused(
            directive,
            "the location that it names passes nothing on",
            "give that location a `proxy_pass` in a copy of the file, and try that",
        );
    };
    let own = named.inner();
    check_level(own, "location", context.deployment.is_measured(), notes)?;
    // `check_level` lets those through that a location carries over, and here they would have to be, too.
    let changes = |inner: &&Directive| {
        ["return", "try_files", "if"].contains(&inner.name.as_str()) || inner.name == "rewrite"
    };
    if let Some(other) = own.iter().find(changes) {
        return refused(
            other,
            "beside the `proxy_pass` of a named location it changes what is asked for",
            "take it out of a copy of the file, and try that: onehop try COPY.conf",
        );
    }
    // What is not there passes the rules of both locations.
    let around = [context.server.http, context.server.directive.inner()];
    let has_rules = |rules: &[Directive]| rules.iter().any(is_rule);
    if has_rules(own) || (has_rules(location.directive.inner()) && !addresses(&around)?.is_empty()) {
        return refused(
            directive,
            "the location that it names has other rules of `allow` and `deny`",
            "write all rules into the location itself in a copy of the file, and try that",
        );
    }
    let levels = [context.server.http, context.server.directive.inner(), own];
    let pass = ProxyPass::of(context.server, pass, None, &levels)?;
    pass.report(context, notes);
    let own_checks = checks(context, location, directive, own, notes)?;
    let app = App {
        under: pass.directive(context, Some("@absent")),
        bare: pass.directive(context, None),
        headers: own_checks + &headers(&levels, true, notes),
    };
    Ok(Fallback {
        before: format!("@absent not file {}\n", files.join(" ")),
        body_size: body_size(&levels),
        app: Some(app),
        is_index: false,
    })
}

/// The rate and the passwords that a named location has besides those of the location before it: nginx counts a request
/// once, and asks for the passwords of both.
fn checks(
    context: &Context<'_>,
    location: &Location<'_>,
    directive: &Directive,
    own: &[Directive],
    notes: &mut Vec<String>,
) -> Result<String, Refusal> {
    let around = [context.server.http, context.server.directive.inner()];
    let [named, before] = [own, location.directive.inner()].map(|inner| [&around[..], &[inner]].concat());
    let is_server = std::ptr::eq(location.directive, context.server.directive);
    let before = if is_server { around.to_vec() } else { before };
    let asked = passwords(context, &before, &mut Vec::new())?;
    let of_named = passwords(context, &named, notes)?;
    let more = match () {
        () if of_named.is_empty() || of_named == asked => String::new(),
        () if asked.is_empty() => of_named,
        () => {
            return refused(
                directive,
                "the location that it names asks for other passwords",
                "write `auth_basic` into one of both in a copy of the file, and try that",
            );
        }
    };
    // No more than a comment: the location before it is no part of that count.
    let at_a_time = concurrency(context, location, &named, notes);
    let is_counted = !rates(context, &before, &mut Vec::new()).is_empty();
    Ok(at_a_time + &if is_counted { more } else { rates(context, &named, notes) + &more })
}

fn refused<T>(directive: &Directive, cause: &str, next: &str) -> Result<T, Refusal> {
    Err(Refusal::at(&directive.place, format!("`{}`: {cause}", directive.shown()), next))
}
