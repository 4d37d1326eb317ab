//! `sticky`: which requests of an application go to the same process.
//!
//! Knows what a name may look like that other software has to find again: in a `Cookie` field, in a query.

use std::sync::Arc;

use crate::arguments::{no_block, unknown_word, wrong_arguments};
use crate::check::Context;
use crate::check::template::fixed;
use crate::checked::{App, Sticky};
use crate::directives::cookie;
use crate::limits::APP_STICKY_NAME_BYTES_MAX;
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

pub(super) const USAGE: &str = "cookie [<name>] | query <name> | ip";
/// The cookie's name where the file does not say.
const COOKIE: &str = "onehop_worker";
const WORDS: [&str; 3] = ["cookie", "query", "ip"];

/// `sticky cookie [<name>] | query <name> | ip`
pub(super) fn sticky(cx: &Context<'_>, option: &Directive) -> Result<Sticky, Box<Problem>> {
    no_block(option)?;
    let Some((word, names)) = option.args.split_first() else { return Err(wrong(option)) };
    match (word.text.as_str(), names) {
        ("cookie", []) => Ok(Sticky::Cookie(COOKIE.to_owned())),
        ("cookie", [name]) => Ok(Sticky::Cookie(written_name(cx, name, "cookie", is_cookie_character)?)),
        ("query", [name]) => Ok(Sticky::Query(written_name(cx, name, "parameter", is_query_character)?)),
        ("ip", []) => Ok(Sticky::ClientAddress),
        ("query", []) => {
            Err(wrong(option).help("name what the client sends back: `sticky query sid` for socket.io"))
        }
        ("cookie" | "query" | "ip", _) => Err(wrong(option)),
        _ => Err(match theirs(&word.text) {
            Some(ours) => unknown_word("sticky", word, &WORDS).help(format!("that is `{ours}` here")),
            None => unknown_word("sticky", word, &WORDS),
        }),
    }
}

fn wrong(option: &Directive) -> Box<Problem> {
    wrong_arguments(option, &format!("sticky {USAGE}"))
}

/// What `sticky` asks for and cannot have here.
pub(super) fn warn(cx: &mut Context<'_>, app: &Arc<App>, token: &Token, says_workers: bool) {
    if !says_workers {
        let message = "`sticky` has no effect with one worker".to_owned();
        let help = "without `workers N` an application has one; write `workers 1` if that is meant";
        cx.problems.push(Problem::warning("no-effect", &token.place, message).help(help));
    }
    if let Some(Sticky::Cookie(name)) = &app.sticky {
        cookie::warn_of_prefix(cx, name, !app.trusted_proxies.is_empty(), token);
    }
    warn_of_shared_cookie(cx, app, token);
}

/// Two applications at one host would replace each other's cookie with every answer.
fn warn_of_shared_cookie(cx: &mut Context<'_>, app: &Arc<App>, token: &Token) {
    let Some(Sticky::Cookie(name)) = &app.sticky else { return };
    let has_it = |other: &&Arc<App>| other.sticky == app.sticky && !Arc::ptr_eq(other, app);
    if let Some(other) = cx.apps.with_cookie.iter().find(has_it) {
        let message = format!("`{}` and `{}` give out the same cookie `{name}`", app.name, other.name);
        let help = format!("each would replace the other's: `sticky cookie {name}_2` names one of its own");
        cx.problems.push(Problem::warning("shared-cookie", &token.place, message).help(help));
    }
    cx.apps.with_cookie.push(Arc::clone(app));
}

/// What Caddy's `lb_policy` with its argument is here, if it keeps requests together.
pub(super) fn of_policy(option: &Directive) -> Option<&'static str> {
    let policy = option.args.first().filter(|_| option.name.text == "lb_policy")?;
    theirs(&policy.text)
}

/// Words of Caddy and nginx.
fn theirs(word: &str) -> Option<&'static str> {
    match word {
        "cookie" => Some("sticky cookie"),
        "query" => Some("sticky query NAME"),
        "ip_hash" | "client_ip_hash" | "source" | "remote_addr" => Some("sticky ip"),
        _ => None,
    }
}

fn written_name(
    cx: &Context<'_>,
    token: &Token,
    what: &str,
    fits: fn(u8) -> bool,
) -> Result<String, Box<Problem>> {
    let name = fixed(cx.source, token, &format!("the name of a {what}"))?;
    if !name.is_empty() && name.len() <= APP_STICKY_NAME_BYTES_MAX && name.bytes().all(fits) {
        return Ok(name);
    }
    Err(Problem::error("arguments", &token.place, format!("`{name}` is no name of a {what}"))
        .help(format!("letters, digits, `-` and `_` make one, at most {APP_STICKY_NAME_BYTES_MAX} of them")))
}

/// A token, as RFC 6265 section 4.1.1 wants it.
fn is_cookie_character(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// What nobody writes in another way (RFC 3986 section 2.3), nor in a JSON text.
fn is_query_character(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}
