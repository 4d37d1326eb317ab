//! Header fields of responses: `add_header`, `expires` and `proxy_hide_header` as `header` directives.

use super::directive::{Directive, nearest, nearest_all};

use super::values;
use crate::onehopfile::{directive as written, word};

/// What is said once of all `add_header` without a word behind them (ngx_http_headers_module).
const NOT_ALWAYS: &str = "nginx adds the fields of `add_header` without `always` to answers with 200, 201, 204, 206 and \
    to redirects alone; onehop adds them to errors of the application too.";

/// `add_header`, `expires` and `proxy_hide_header`.
pub(crate) fn headers(levels: &[&[Directive]], is_passed: bool, notes: &mut Vec<String>) -> String {
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

/// The prefix of a field's name in `header`. A deferred one (`>`) is not on the errors that onehop answers for files, as
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
