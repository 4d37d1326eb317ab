//! `reverse_proxy`: the one directive of many Caddyfiles that onehop has under another name.
//!
//! What only says how connections are kept is dropped, what would change the meaning is refused.

use super::File;
use super::text::Line;
use crate::trial::TrialError;
use crate::trial::detect::behind::Upstream;
use crate::trial::detect::surroundings::Surroundings;

/// A `reverse_proxy` to one upstream.
pub(super) struct Proxy<'a> {
    /// Where it stands.
    pub(super) line: &'a Line,
    /// Its matcher, as it is written.
    pub(super) matcher: Option<&'a str>,
    /// Where it leads.
    pub(super) upstream: Upstream,
    /// Options of `app`.
    pub(super) more: Vec<String>,
    /// The path under which it is reached, as far as it is known: `/api/*`, or nothing.
    pub(super) prefix: String,
    /// Whether a `handle_path` takes that off.
    pub(super) is_taken_off: bool,
}

/// Every `reverse_proxy` of the site and of the snippets.
pub(super) fn proxies<'a>(
    file: &File<'a>,
    surroundings: &Surroundings,
    notes: &mut Vec<String>,
) -> Result<Vec<Proxy<'a>>, TrialError> {
    let mut found = Vec::new();
    let roots = file.snippets.iter().flat_map(|snippet| snippet.inner()).chain(file.site);
    let mut pending: Vec<(&Line, String, bool)> = roots.map(|line| (line, String::new(), false)).collect();
    pending.reverse();
    while let Some((line, prefix, is_taken_off)) = pending.pop() {
        match line.word(0) {
            "reverse_proxy" => {
                let mut proxy = proxy(file, line, surroundings, notes)?;
                let own = proxy.matcher.filter(|matcher| matcher.starts_with('/')).unwrap_or_default();
                proxy.prefix = if prefix.is_empty() || !own.is_empty() && !is_taken_off {
                    own.to_owned()
                } else {
                    prefix
                };
                proxy.is_taken_off = is_taken_off;
                found.push(proxy);
            }
            block => {
                let path = line.word(1);
                let (prefix, is_taken_off) = match block {
                    "handle_path" if path.starts_with('/') => {
                        (format!("{}{path}", prefix.trim_end_matches('*').trim_end_matches('/')), true)
                    }
                    "handle" | "route" if path.starts_with('/') && !is_taken_off => (path.to_owned(), false),
                    _ => (prefix, is_taken_off),
                };
                let inner = line.inner().iter().rev();
                pending.extend(inner.map(|line| (line, prefix.clone(), is_taken_off)));
            }
        }
    }
    Ok(found)
}

/// A word with `{$NAME}` and `{$NAME:default}` replaced.
pub(super) fn expanded(text: &str, surroundings: &Surroundings) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{$") {
        out.push_str(before);
        let Some((inside, after)) = after.split_once('}') else {
            return out + rest;
        };
        let (name, default) = inside.split_once(':').unwrap_or((inside, ""));
        out.push_str(surroundings.variable(name).unwrap_or(default));
        rest = after;
    }
    out + rest
}

fn proxy<'a>(
    file: &File<'_>,
    line: &'a Line,
    surroundings: &Surroundings,
    notes: &mut Vec<String>,
) -> Result<Proxy<'a>, TrialError> {
    let place = format!("{}:{}", file.path.display(), line.line);
    let refuse = |cause: String| {
        Err(TrialError::found(
            &place,
            cause,
            "name one application on this machine in a copy of the file, and try that",
        ))
    };
    let mut arguments = line.words.iter().skip(1).map(|word| word.text.as_str()).peekable();
    let matcher = arguments.next_if(|word| word.starts_with(['/', '@']) || *word == "*");
    let mut upstreams: Vec<String> = arguments.map(|word| expanded(word, surroundings)).collect();
    let mut more = Vec::new();
    for option in line.inner() {
        let written =
            file.text.get(option.span.clone()).unwrap_or_default().lines().next().unwrap_or_default();
        match option.word(0) {
            "to" => {
                upstreams.extend(option.words.iter().skip(1).map(|word| expanded(&word.text, surroundings)))
            }
            "header_up" => header_up(option, written, notes),
            "transport" if option.word(1) == "http" => more.extend(transport(option, &place)?),
            "flush_interval" | "buffer_requests" | "buffer_responses" | "request_buffers"
            | "response_buffers" | "stream_timeout" | "stream_close_delay" | "trusted_proxies" => {
                notes.push(format!(
                    "`{written}` (line {}): onehop passes bodies on as they come.",
                    option.line
                ));
            }
            "lb_policy" | "lb_retries" | "lb_try_duration" | "lb_try_interval" | "fail_duration"
            | "max_fails" => {
                notes.push(format!(
                    "`{written}` (line {}): it has no effect with one application.",
                    option.line
                ));
            }
            health if health.starts_with("health_") => {
                notes.push(format!("`{written}` (line {}): onehop does not ask for health.", option.line));
            }
            _ => return refuse(format!("`{written}` (line {}) has no equal in `app`", option.line)),
        }
    }
    let [upstream] = upstreams.as_slice() else {
        return refuse(format!(
            "this `reverse_proxy` has {} upstreams, and onehop does not spread requests over servers that others start",
            upstreams.len()
        ));
    };
    let bare = upstream.strip_prefix("http://").unwrap_or(upstream).trim_end_matches('/');
    let parsed = bare.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    let Some((host, port)) = parsed.filter(|(host, _)| !host.contains('/')) else {
        return refuse(format!("`{upstream}` is no host and port of HTTP"));
    };
    let host = if host.is_empty() { "localhost" } else { host };
    let name = file.path.file_name().unwrap_or_default().to_string_lossy();
    let upstream = Upstream { host: host.to_owned(), port, place: format!("line {} of {name}", line.line) };
    Ok(Proxy { line, matcher, upstream, more, prefix: String::new(), is_taken_off: false })
}

/// A field of requests: what onehop sends by itself is dropped in silence.
fn header_up(option: &Line, written: &str, notes: &mut Vec<String>) {
    // A sign before the name takes the field away or adds another: that is never what onehop sends.
    let name = option.word(1).to_ascii_lowercase();
    let value = option.word(2);
    let hosts = ["{host}", "{http.request.host}", "{hostport}", "{http.request.hostport}"];
    let addresses = ["{remote_host}", "{http.request.remote.host}", "{client_ip}"];
    let is_same = match name.as_str() {
        "host" | "x-forwarded-host" => hosts.contains(&value),
        "x-forwarded-for" => addresses.contains(&value),
        "x-forwarded-proto" => ["{scheme}", "{http.request.scheme}"].contains(&value),
        // They end at each server (RFC 9110 section 7.6.1).
        "upgrade" | "connection" => true,
        _ => false,
    };
    if is_same {
        return;
    }
    let line = option.line;
    let is_sent = name.trim_start_matches(['+', '-', '?', '>']).starts_with("x-forwarded-");
    let note = if is_sent {
        "onehop sets this field from the request itself, so the application is told something else and may answer otherwise"
    } else {
        "onehop does not set fields of requests yet, so the application does not get it"
    };
    notes.push(format!("`{written}` (line {line}): {note}."));
}

/// How connections are made; the only thing with an equal is how long is waited.
fn transport(option: &Line, place: &str) -> Result<Vec<String>, TrialError> {
    let mut more = Vec::new();
    for line in option.inner() {
        let name = line.word(0);
        if name.starts_with("tls")
            || name == "versions" && line.words.iter().any(|word| word.text.starts_with("h2c"))
        {
            return Err(TrialError::found(
                place,
                format!("`{name}` on line {}: onehop speaks HTTP/1.1 without TLS to applications", line.line),
                "let the application listen with plain HTTP, and name that in a copy of the file",
            ));
        }
        if name == "response_header_timeout" {
            more.push(format!("timeout {}", line.word(1)));
        }
    }
    Ok(more)
}
