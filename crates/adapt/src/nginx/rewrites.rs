//! What nginx decides before it answers, in the order of the file: `if` around a `return`, and `rewrite` that redirects
//! (ngx_http_rewrite_module). Each is a `handle` in front of the others.
//!
//! Other conditions and rewrites have no equal here: `step` gives nothing back for them.

use super::directive::Directive;
use super::returns::returned;
use super::values;
use crate::onehopfile::{indented, word};
use crate::refusal::Refusal;

/// The steps of a block up to its own `return`, with names for their matchers, and the header fields of their responses.
pub(crate) fn steps(directives: &[Directive], name: &str, headers: &str) -> Result<Vec<String>, Refusal> {
    let before = directives.iter().take_while(|directive| directive.name != "return");
    let mut steps = Vec::new();
    for directive in before.filter(|directive| is_step(directive)) {
        let matcher = format!("@{name}{}", steps.len());
        steps.extend(step(directive, &matcher, headers)?);
    }
    Ok(steps)
}

/// Behind the steps, what is answered where none of them does; alone where there is no step.
pub(crate) fn behind(steps: &[String], lines: String) -> String {
    if steps.is_empty() {
        return lines;
    }
    let last = format!("handle {{\n{}}}\n", indented(&lines));
    format!("route {{\n{}}}\n", indented(&(steps.concat() + &last)))
}

/// Whether a directive is a step that onehop takes too.
pub(crate) fn is_step(directive: &Directive) -> bool {
    match directive.name.as_str() {
        "if" => {
            matches!(directive.inner(), [only] if only.name == "return") && condition(directive).is_some()
        }
        "rewrite" => moved(directive).is_some(),
        _ => false,
    }
}

/// Whether a step sees the path of the request.
pub(crate) fn decides_by_path(directive: &Directive) -> bool {
    let is_of_path = directive.name == "rewrite" || directive.shown().contains("uri");
    is_step(directive) && is_of_path
}

fn step(directive: &Directive, matcher: &str, headers: &str) -> Result<Option<String>, Refusal> {
    if let Some((paths, lines)) = moved(directive) {
        return Ok(Some(format!(
            "{} {{\n{}}}\n",
            paths.defined(matcher),
            indented(&(headers.to_owned() + &lines))
        )));
    }
    let (Some(condition), [only]) = (condition(directive), directive.inner()) else { return Ok(None) };
    let lines = indented(&(headers.to_owned() + &returned(only, None)?));
    Ok(Some(format!("{matcher} {condition}\nhandle {matcher} {{\n{lines}}}\n")))
}

/// The matcher of an `if`.
fn condition(directive: &Directive) -> Option<String> {
    let mut words: Vec<&str> = directive.args.iter().map(|word| word.text.as_str()).collect();
    let first = words.first_mut()?;
    *first = first.strip_prefix('(')?;
    let last = words.last_mut()?;
    *last = last.strip_suffix(')')?;
    words.retain(|word| !word.is_empty());
    let [variable, operator, value] = words.as_slice() else { return None };
    let (not, operator) = match operator.strip_prefix('!') {
        Some(operator) => ("not ", operator),
        None => ("", *operator),
    };
    let is_text = operator == "=" && !value.contains(['$', '*', '{', '}', '"', '`']);
    let expression = ["~", "~*"].contains(&operator).then(|| values::expression(value, operator == "~*"));
    let matcher = match (*variable, expression.flatten()) {
        ("$request_method", _) if is_text => format!("method {}", word(value)),
        ("$request_method", Some(_)) => format!("method {}", methods(value)?.join(" ")),
        ("$host", _) if is_text => format!("host {}", word(value)),
        ("$scheme", _) if is_text && ["http", "https"].contains(value) => format!("protocol {value}"),
        ("$uri" | "$document_uri", Some(expression)) => format!("path_regexp {expression}"),
        (field, Some(expression)) => {
            // nginx compares a field that is not there as an empty text.
            let is_of_nothing = values::fits(value, operator == "~*", "");
            let name = field.strip_prefix("$http_").filter(|name| !name.is_empty() && !is_of_nothing)?;
            format!("header_regexp {} {expression}", word(&name.replace('_', "-")))
        }
        _ => return None,
    };
    Some(format!("{not}{matcher}"))
}

/// The methods of `^(GET|HEAD)$`.
fn methods(expression: &str) -> Option<Vec<&str>> {
    let inner = expression.strip_prefix("^(")?.strip_suffix(")$")?;
    let methods: Vec<&str> = inner.split('|').collect();
    let is_method =
        |method: &&str| !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    methods.iter().all(is_method).then_some(methods)
}

/// Which paths a redirect takes.
enum Paths {
    /// Those that fit patterns.
    Like(Vec<String>),
    /// Those below a prefix, which is taken off.
    Below(String),
    All,
}

impl Paths {
    /// The head of the block, behind a matcher of its own.
    fn defined(&self, matcher: &str) -> String {
        match self {
            Paths::Like(patterns) => format!("{matcher} path {}\nhandle {matcher}", patterns.join(" ")),
            Paths::Below(prefix) => format!("handle_path {prefix}/*"),
            Paths::All => "handle".to_owned(),
        }
    }
}

/// A `rewrite` that redirects: the paths, and the line that does it.
fn moved(directive: &Directive) -> Option<(Paths, String)> {
    if directive.name != "rewrite" {
        return None;
    }
    let (expression, to) = (directive.arg(0), directive.arg(1));
    let is_away = ["http://", "https://", "$scheme://"].iter().any(|start| to.starts_with(start));
    let code = match directive.arg(2) {
        "permanent" => 301,
        "redirect" => 302,
        "" | "last" | "break" if is_away => 302,
        _ => return None,
    };
    // A question mark at the end keeps nginx from adding the query.
    let (to, query) = to.strip_suffix('?').map_or((to, "{?query}"), |to| (to, ""));
    let query = if to.contains('?') || to.contains("$request_uri") { "" } else { query };
    if to.contains('?') && !directive.arg(1).ends_with('?') {
        return None;
    }
    let (paths, target) = match to.strip_suffix("$1") {
        Some(start) if !query.is_empty() => below(expression, start)?,
        Some(_) => return None,
        None => (like(expression)?, format!("{}{query}", plain(to)?)),
    };
    let all = if target.starts_with('/') { "* " } else { "" };
    Some((paths, format!("redir {all}{target} {code}\n")))
}

/// The paths of an expression with the rest in its group, and the target with that rest, which begins with a slash.
fn below(expression: &str, start: &str) -> Option<(Paths, String)> {
    let body = expression.strip_prefix('^')?;
    let body = body.strip_suffix('$').unwrap_or(body);
    let start = plain(start).unwrap_or_default();
    if body == "(.*)" && !start.ends_with('/') {
        return (!start.is_empty()).then(|| (Paths::All, format!("{start}{{uri}}")));
    }
    let prefix = ["/(.*)", "/(.+)"].iter().find_map(|rest| body.strip_suffix(rest))?;
    let start = start.strip_suffix('/')?;
    if prefix.is_empty() {
        return (!start.is_empty()).then(|| (Paths::All, format!("{start}{{uri}}")));
    }
    let (patterns, _) = values::patterns(&format!("^{prefix}$")).filter(|(all, _)| all.len() == 1)?;
    Some((Paths::Below(patterns.into_iter().next()?), format!("{start}{{uri}}")))
}

fn like(expression: &str) -> Option<Paths> {
    if ["^", "^/", ".*", "^.*", "^.*$", "^(.*)$", "^/(.*)$", "^/.*$"].contains(&expression) {
        return Some(Paths::All);
    }
    if let Some(start) = expression.strip_suffix("/?$") {
        let (mut all, _) = values::patterns(&format!("{start}$"))?;
        all.extend(all.clone().iter().map(|path| format!("{path}/")));
        return Some(Paths::Like(all));
    }
    let (all, but) = values::patterns(expression)?;
    (but.is_empty() && expression.starts_with('^')).then_some(Paths::Like(all))
}

/// A target in onehop's words, if it needs no quotes.
fn plain(to: &str) -> Option<String> {
    values::text(to).filter(|text| !text.starts_with(['`', '"']))
}
