//! nginx's values in onehop's words: variables, paths, patterns, times.
//!
//! What has no equal gives nothing back, and whoever asked says so with the line.

/// Variables whose value a placeholder has.
const VARIABLES: [(&str, &str); 16] = [
    ("$is_args$query_string", "{?query}"),
    ("$is_args$args", "{?query}"),
    ("$scheme", "{scheme}"),
    ("$http_host", "{hostport}"),
    ("$server_port", "{http.request.port}"),
    ("$server_protocol", "{http.request.proto}"),
    ("$host", "{host}"),
    ("$request_uri", "{orig_uri}"),
    ("$request_method", "{method}"),
    ("$query_string", "{query}"),
    ("$args", "{query}"),
    ("$uri", "{path}"),
    ("$document_uri", "{path}"),
    ("$remote_addr", "{remote_host}"),
    ("$remote_port", "{remote_port}"),
    ("$msec", "{time.now.unix}"),
];

/// What the host of a Unix socket begins with, before its path.
pub(crate) const UNIX_SOCKET: &str = "unix/";
/// Bytes of an expression; those that people write have a few dozen.
const EXPRESSION_BYTES_MAX: usize = 1_000;
/// Variables with a name at their end, and the placeholder that takes it.
const NAMED: [(&str, &str); 3] = [("$http_", "header"), ("$cookie_", "cookie"), ("$arg_", "query")];

/// A text with variables as one with placeholders, quoted for an Onehopfile; nothing where a variable has no equal.
pub(crate) fn text(written: &str) -> Option<String> {
    filled(written, false)
}

/// The same for a field of requests, which may also pass on what the client sent.
pub(crate) fn sent(written: &str) -> Option<String> {
    filled(written, true)
}

fn filled(written: &str, with_named: bool) -> Option<String> {
    let mut plain = true;
    let mut out = String::new();
    let mut rest = written.to_owned();
    // `${name}` is `$name` next to a letter.
    for (name, _) in VARIABLES {
        if let Some(bare) = name.strip_prefix('$') {
            rest = rest.replace(&format!("${{{bare}}}"), name);
        }
    }
    let mut rest = rest.as_str();
    'text: while let Some(character) = rest.chars().next() {
        if character == '$' {
            for (name, placeholder) in VARIABLES {
                let Some(after) = rest.strip_prefix(name) else { continue };
                if after.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_') {
                    continue;
                }
                out.push_str(placeholder);
                rest = after;
                continue 'text;
            }
            let (placeholder, after) = named(rest).filter(|_| with_named)?;
            out.push_str(&placeholder);
            rest = after;
            continue;
        }
        match character {
            '{' | '}' => out.extend(['\\', character]),
            other => out.push(other),
        }
        plain &= character.is_alphanumeric() || "_./:@%+=,~-&?!*".contains(character);
        rest = rest.get(character.len_utf8()..).unwrap_or_default();
    }
    if plain && !out.is_empty() {
        return Some(out);
    }
    Some(if out.contains('`') { format!("\"{}\"", out.replace('"', "\\\"")) } else { format!("`{out}`") })
}

/// The placeholder of `$http_x_name` and its like, and what follows.
fn named(rest: &str) -> Option<(String, &str)> {
    let (start, placeholder) = NAMED.iter().find(|(start, _)| rest.starts_with(start))?;
    let rest = rest.strip_prefix(start)?;
    let end = rest.find(|next: char| !next.is_ascii_alphanumeric() && next != '_').unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    // nginx writes the dashes of a field's name as underscores; those of the others are their own.
    let name = if *placeholder == "header" { name.replace('_', "-") } else { name.to_owned() };
    (!name.is_empty()).then(|| (format!("{{{placeholder}.{name}}}"), after))
}

/// Path patterns that match what a regular expression does, for the forms that configurations have, and those that
/// it leaves out.
pub(crate) fn patterns(expression: &str) -> Option<(Vec<String>, Vec<String>)> {
    if let Some(hidden) = expression.strip_prefix("/\\.").or_else(|| expression.strip_prefix("\\/\\.")) {
        return hidden_names(hidden);
    }
    if let Some(start) = expression.strip_prefix('^').filter(|start| start.starts_with('/')) {
        let start = start.strip_suffix("(.*)").or_else(|| start.strip_suffix(".*")).unwrap_or(start);
        let (start, ending) = match start.strip_suffix('$') {
            Some(whole) => (whole, ""),
            None => (start, "*"),
        };
        let all = alternatives(start)?.into_iter().map(|path| format!("{path}{ending}")).collect();
        return Some((all, Vec::new()));
    }
    // `\.(css|js)$`, with `.*` or `^.+` before it.
    let ending = expression.strip_suffix('$')?;
    let ending = ["^.+", "^.*", ".+", ".*"].iter().find_map(|any| ending.strip_prefix(any)).unwrap_or(ending);
    let ending = ending.strip_prefix("\\.")?;
    let all = alternatives(ending)?.into_iter().map(|ending| format!("*.{ending}")).collect();
    Some((all, Vec::new()))
}

/// A regular expression of nginx as onehop's `path_regexp` and its like take it, quoted; nothing where it may mean
/// something else there.
pub(crate) fn expression(written: &str, is_caseless: bool) -> Option<String> {
    // Look-around, named groups, possessive repetition and sets of classes.
    let odd = [
        "(?=", "(?!", "(?<", "(?P", "(?>", "(?#", "(?i", "++", "*+", "?+", "}+", "&&", "--", "~~", "[[", "{$",
    ];
    let is_odd = odd.iter().any(|part| written.contains(part)) || written.contains(['`', '\n', '\r']);
    let mut characters = written.chars();
    while let Some(character) = characters.next() {
        if character == '\\'
            && !characters.next().is_some_and(|next| !next.is_alphanumeric() || "dDwWsSb".contains(next))
        {
            return None;
        }
    }
    if is_odd || written.is_empty() || written.len() > EXPRESSION_BYTES_MAX {
        return None;
    }
    compiled(written, is_caseless).map(|_| format!("`{}{written}`", if is_caseless { "(?i)" } else { "" }))
}

/// Whether a text fits an expression that [`expression`] takes.
pub(crate) fn fits(expression: &str, is_caseless: bool, text: &str) -> bool {
    compiled(expression, is_caseless).is_some_and(|compiled| compiled.is_match(text))
}

fn compiled(expression: &str, is_caseless: bool) -> Option<regex_lite::Regex> {
    regex_lite::RegexBuilder::new(expression).case_insensitive(is_caseless).build().ok()
}

/// What follows a dot at the start of a name: `/\.`, `/\.ht`, `/\.(git|env)`, `/\.(?!well-known)`.
fn hidden_names(rest: &str) -> Option<(Vec<String>, Vec<String>)> {
    let rest = rest.strip_suffix(".*").unwrap_or(rest);
    if let Some(but) = rest.strip_prefix("(?!").and_then(|rest| rest.strip_suffix(')')) {
        let but = but.strip_suffix(".*").unwrap_or(but);
        return Some((vec!["*/.*".to_owned()], vec![format!("*/.{}*", literal(but)?)]));
    }
    let (rest, ending) = match rest.strip_suffix('$') {
        Some(whole) => (whole, ""),
        None => (rest, "*"),
    };
    Some((alternatives(rest)?.into_iter().map(|name| format!("*/.{name}{ending}")).collect(), Vec::new()))
}

/// Whether a path is like a pattern of those above, with a star at its start, its end, or both.
pub(crate) fn is_like(pattern: &str, path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let pattern = pattern.to_ascii_lowercase();
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(rest), Some(_)) => path.contains(rest.strip_suffix('*').unwrap_or(rest)),
        (Some(ending), None) => path.ends_with(ending),
        (None, Some(start)) => path.starts_with(start),
        (None, None) => path == pattern,
    }
}

/// Texts that an expression stands for: letters, `\.`, and one group `(a|b)`.
fn alternatives(expression: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = expression.split_once('(') else { return Some(vec![literal(expression)?]) };
    let (group, after) = rest.split_once(')')?;
    let group = group.strip_prefix("?:").unwrap_or(group);
    let (before, after) = (literal(before)?, literal(after)?);
    group
        .split('|')
        .map(|one| literal(one).filter(|one| !one.is_empty()).map(|one| format!("{before}{one}{after}")))
        .collect()
}

/// A text without anything special; `\.` and `\/` and `\-` are the characters.
fn literal(expression: &str) -> Option<String> {
    let mut out = String::new();
    let mut characters = expression.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => out.push(characters.next().filter(|next| !next.is_alphanumeric())?),
            other if other.is_alphanumeric() || "/-_~%@:".contains(other) => out.push(other),
            _ => return None,
        }
    }
    Some(out)
}

/// Seconds of `60`, `60s`, `1m30s`, `2h`, `1d`, `500ms` (rounded up).
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let mut total = 0_u64;
    let mut number = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character.is_ascii_digit() {
            number.push(character);
            continue;
        }
        let value: u64 = std::mem::take(&mut number).parse().ok()?;
        let unit = match character {
            'm' if characters.peek() == Some(&'s') => {
                characters.next();
                total = total.checked_add(value.div_ceil(1000))?;
                continue;
            }
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'w' => 7 * 86_400,
            'M' => 30 * 86_400,
            'y' => 365 * 86_400,
            _ => return None,
        };
        total = total.checked_add(value.checked_mul(unit)?)?;
    }
    if !number.is_empty() {
        total = total.checked_add(number.parse().ok()?)?;
    }
    (!text.is_empty()).then_some(total)
}

/// Where a `proxy_pass` leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passed {
    /// A host, the name of an `upstream`, or `unix/` and the path of a socket.
    pub host: String,
    /// The port, where it is written.
    pub port: Option<u16>,
    /// What replaces the location's part of the path.
    pub uri: Option<String>,
    /// Whether it is `https://`.
    pub is_tls: bool,
}

/// The parts of `http://host:port/uri`, or the same with `https`; nothing for what is no such address.
pub fn passed(text: &str) -> Option<Passed> {
    let (is_tls, rest) = match text.strip_prefix("https://") {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix("http://")?),
    };
    if rest.contains('$') || is_tls && rest.starts_with("unix:") {
        return None;
    }
    if let Some(socket) = rest.strip_prefix("unix:") {
        let (path, uri) = socket.split_once(':').map_or((socket, None), |(path, uri)| (path, Some(uri)));
        let uri = uri.filter(|uri| !uri.is_empty()).map(str::to_owned);
        return Some(Passed { host: unix_socket(path)?, port: None, uri, is_tls });
    }
    let (authority, uri) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let uri = Some(uri.to_owned()).filter(|uri| !uri.is_empty());
    let (host, port) = host_and_port(authority)?;
    Some(Passed { host, port, uri, is_tls })
}

/// A Unix socket by its whole path, as `reverse_proxy` names it.
fn unix_socket(path: &str) -> Option<String> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "/._-@+".contains(character);
    (path.starts_with('/') && path.chars().all(is_plain)).then(|| format!("{UNIX_SOCKET}{path}"))
}

/// `host`, `host:port`, `[::1]:port`, `unix:/path`.
pub(crate) fn host_and_port(authority: &str) -> Option<(String, Option<u16>)> {
    if let Some(path) = authority.strip_prefix("unix:") {
        return Some((unix_socket(path)?, None));
    }
    if authority.is_empty() {
        return None;
    }
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => Some((host.to_owned(), Some(port.parse().ok()?))),
        _ => Some((authority.to_owned(), None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_of_known_forms_are_patterns_and_others_are_not() {
        for (expression, expected) in [
            (r"\.(js|css)$", Some("*.js *.css")),
            (r"\.(?:png|svg)$", Some("*.png *.svg")),
            (r"^.+\.php$", Some("*.php")),
            ("^/api/", Some("/api/*")),
            ("^/(api|auth)/", Some("/api/* /auth/*")),
            ("^/api/(.*)$", None),
            ("^/api/(.*)", Some("/api/*")),
            ("^/x$", Some("/x")),
            (r"^/v[0-9]+/", None),
            (r"/\.", Some("*/.*")),
            (r"/\.ht", Some("*/.ht*")),
            (r"/\.(git|env)", Some("*/.git* */.env*")),
            (r"/\.(?!well-known).*", Some("*/.* but */.well-known*")),
            (r"/\.(?!well-known|x)", None),
            (r"/\.[a-z]", None),
            ("(", None),
            ("", None),
        ] {
            let found = patterns(expression).map(|(all, but)| match but.as_slice() {
                [] => all.join(" "),
                but => format!("{} but {}", all.join(" "), but.join(" ")),
            });
            assert_eq!(found.as_deref(), expected, "{expression}");
        }
    }

    #[test]
    fn variables_become_placeholders_and_unknown_ones_are_refused() {
        for (written, expected) in [
            ("https://$host$request_uri", Some("`https://{host}{orig_uri}`")),
            ("/new", Some("/new")),
            ("no forms here", Some("`no forms here`")),
            ("${scheme}://x", Some("`{scheme}://x`")),
            ("{\"a\": 1}", Some("`\\{\"a\": 1\\}`")),
            ("a`b\"c", Some("\"a`b\\\"c\"")),
            ("$hostname", None),
            ("$upstream_addr", None),
            ("$http_x_id", None),
            ("", Some("``")),
        ] {
            let expected = expected.map(|text| match text.contains("{host}") || text.contains("{scheme}") {
                true => text.trim_matches('`').to_owned(),
                false => text.to_owned(),
            });
            assert_eq!(text(written), expected, "{written}");
        }
    }

    #[test]
    fn a_field_may_pass_on_what_the_client_sent() {
        for (written, expected) in [
            ("$http_x_request_id", Some("{header.x-request-id}")),
            ("a$cookie_a_b;", Some("`a{cookie.a_b};`")),
            ("$arg_x-y", Some("{query.x}-y")),
            ("$http_", None),
            ("$request_id", None),
        ] {
            assert_eq!(sent(written).as_deref(), expected, "{written}");
        }
    }

    #[test]
    fn times_and_addresses_are_read() {
        for (text, expected) in [
            ("60", Some(60)),
            ("1m30s", Some(90)),
            ("1500ms", Some(2)),
            ("1y", Some(31_536_000)),
            ("x", None),
            ("", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
        for (text, expected) in [
            ("http://localhost:3000/", Some(("localhost", Some(3000), Some("/")))),
            ("http://[::1]:80", Some(("[::1]", Some(80), None))),
            ("http://application", Some(("application", None, None))),
            ("http://$name", None),
            ("https://localhost", Some(("localhost", None, None))),
            ("https://unix:/run/x.sock", None),
            ("http://unix:/run/x.sock", Some(("unix//run/x.sock", None, None))),
            ("http://unix:/run/x.sock:/a/", Some(("unix//run/x.sock", None, Some("/a/")))),
            ("http://unix:x.sock", None),
            ("http://unix:/run/{x}", None),
            ("http://a:b", None),
        ] {
            let expected = expected.map(|(host, port, uri)| Passed {
                host: host.to_owned(),
                port,
                uri: uri.map(str::to_owned),
                is_tls: text.starts_with("https:"),
            });
            assert_eq!(passed(text), expected, "{text}");
        }
    }
}
