//! `error_page` as `handle_errors`: files that are sent where onehop itself fails a request.
//!
//! Both leave the responses of applications alone, nginx unless `proxy_intercept_errors` is on. onehop's pages hold for a
//! whole site, so those of a single location have no equal.

use std::path::Path;

use super::context::Context;
use super::directive::{Directive, nearest, nearest_all};
use super::location::{Kind, Location};
use crate::onehopfile::{indented, word};
use crate::paths::normal;
use crate::refusal::LEFT_OUT;

/// The `handle_errors` of a server.
pub(crate) fn error_pages(context: &Context<'_>, notes: &mut Vec<String>) -> String {
    let mut out = String::new();
    for directive in of_server(context) {
        match page(context, directive) {
            Ok(lines) => {
                notes.push(format!(
                    "`{}` ({}): nginx sends the page also for the statuses of `return` and `deny`; onehop sends it for \
                     errors.",
                    directive.shown(),
                    directive.place.words()
                ));
                out.push_str(&lines);
            }
            Err(cause) => notes.push(left_out(directive, cause)),
        }
    }
    let of_locations = context.locations.iter().flat_map(|location| location.directive.inner());
    let named = context.named.iter().flat_map(|named| named.inner());
    let inner = of_locations.chain(named).filter(|inner| inner.name == "error_page");
    notes.extend(inner.map(|inner| left_out(inner, "onehop's pages of errors hold for a whole site")));
    out
}

/// Whether a location has nothing but pages of errors, which nginx serves to no client that asks for them.
pub(crate) fn is_page(context: &Context<'_>, location: &Location<'_>) -> bool {
    let pages = of_server(context);
    location.kind == Kind::Exact
        && pages.iter().any(|page| page.args.last().is_some_and(|last| last.text == location.pattern))
}

fn of_server<'a>(context: &'a Context<'_>) -> Vec<&'a Directive> {
    nearest_all("error_page", &[context.server.http, context.server.directive.inner()])
}

fn left_out(directive: &Directive, cause: &str) -> String {
    format!("{LEFT_OUT}: {}: `{}`: {cause}.", directive.place, directive.shown())
}

fn page(context: &Context<'_>, directive: &Directive) -> Result<String, &'static str> {
    let Some((page, statuses)) = directive.args.split_last() else { return Err("it names no page") };
    let page = page.text.as_str();
    if !page.starts_with('/') || page.contains(['$', '?', '*', '{', '}', '"', '`', ' ']) {
        return Err("onehop sends files as pages of errors here");
    }
    let statuses: Vec<&str> = statuses.iter().map(|status| status.text.as_str()).collect();
    let is_status = |status: &&str| status.parse::<u16>().is_ok_and(|status| (400..600).contains(&status));
    if statuses.is_empty() || !statuses.iter().all(is_status) {
        return Err("onehop keeps the status of an error, which is 400 to 599");
    }
    let of_page = context.locations.iter().find(|location| context.is_chosen_for(location, page) == Ok(true));
    let inner = of_page.map_or(&[][..], |location| location.directive.inner());
    // `try_files $uri …` finds the page first.
    let is_other = |inner: &Directive| match inner.name.as_str() {
        "alias" | "return" | "rewrite" | "if" => true,
        "try_files" => inner.arg(0) != "$uri",
        name => name.ends_with("_pass"),
    };
    if inner.iter().any(is_other) {
        return Err("the location of its page sends something else than a file");
    }
    let levels = [context.server.http, context.server.directive.inner(), inner];
    let Some(root) = nearest("root", &levels) else { return Err("its page has no `root`") };
    let folder = normal(Path::new(&context.server.folder_of(root)));
    let folder = word(&context.deployment.folder(context.server.folder, &folder));
    let lines = format!("root {folder}\nrewrite * {}\nfile_server\n", word(page));
    Ok(format!("handle_errors {} {{\n{}}}\n", statuses.join(" "), indented(&lines)))
}
