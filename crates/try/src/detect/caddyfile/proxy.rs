//! `reverse_proxy`: where it leads, and whether `app` can say the same of an application that onehop runs itself.
//!
//! What only says how connections are kept is dropped for `app`; what would change the meaning keeps the directive.

use std::path::Path;
use std::time::Duration;

use onehop_adapt::Upstream;

use super::File;
use super::text::TextLine;
use crate::SideBySideError;
use crate::detect::behind::Behind;
use crate::detect::environment::Environment;

/// A `reverse_proxy`.
pub(super) struct Proxy<'a> {
    /// Its position in the file.
    pub(super) line: &'a TextLine,
    /// Its matcher, as it is written.
    pub(super) matcher: Option<&'a str>,
    /// Where it leads; none where that is only known with the request, which the checker tells.
    pub(super) upstreams: Vec<Upstream>,
    /// What `app` says otherwise, for people.
    pub(super) notes: Vec<String>,
    /// The path under which it is reached, as far as it is known: `/api/*`, or nothing.
    pub(super) prefix: String,
    /// Whether a `handle_path` takes that off.
    pub(super) is_taken_off: bool,
}

impl Proxy<'_> {
    /// The `app` in its place, where the application is one that onehop runs itself.
    pub(super) fn app(&self, behind: &Behind, folder: &Path, environment: &Environment) -> Option<String> {
        let [only] = self.upstreams.as_slice() else { return None };
        behind.app(only.port, self.matcher, folder, environment)
    }
}

/// Every `reverse_proxy` of the site and of the snippets that it imports.
pub(super) fn proxies<'a>(
    file: &File<'a>,
    environment: &Environment,
) -> Result<Vec<Proxy<'a>>, SideBySideError> {
    let mut found = Vec::new();
    let roots = file.imported.iter().flat_map(|snippet| snippet.inner()).chain(file.site);
    let mut pending: Vec<(&TextLine, String, bool)> =
        roots.map(|line| (line, String::new(), false)).collect();
    pending.reverse();
    while let Some((line, prefix, is_taken_off)) = pending.pop() {
        match line.word(0) {
            "reverse_proxy" => {
                let mut proxy = proxy(file, line, environment)?;
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
pub(super) fn expanded(text: &str, environment: &Environment) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{$") {
        out.push_str(before);
        let Some((inside, after)) = after.split_once('}') else {
            return out + rest;
        };
        let (name, default) = inside.split_once(':').unwrap_or((inside, ""));
        out.push_str(environment.variable(name).unwrap_or(default));
        rest = after;
    }
    out + rest
}

fn proxy<'a>(
    file: &File<'_>,
    line: &'a TextLine,
    environment: &Environment,
) -> Result<Proxy<'a>, SideBySideError> {
    let mut arguments = line.words.iter().skip(1).map(|word| word.text.as_str()).peekable();
    let matcher = arguments.next_if(|word| word.starts_with(['/', '@']) || *word == "*");
    let mut named: Vec<String> = arguments.map(|word| expanded(word, environment)).collect();
    for option in line.inner().iter().filter(|option| option.word(0) == "to") {
        named.extend(option.words.iter().skip(1).map(|word| expanded(&word.text, environment)));
    }
    let mut said = Said::default();
    said.options(file, line);
    match named.as_slice() {
        [only] if !only.starts_with("https://") => {}
        _ => said.is_more = true,
    }
    let refuse = |cause: String| {
        Err(SideBySideError::found(
            format!("{}:{}", file.path.display(), line.line),
            cause,
            "name one application on this machine in a copy of the file, and try that",
        ))
    };
    let name = file.path.file_name().unwrap_or_default().to_string_lossy();
    let mut upstreams = Vec::new();
    for upstream in &named {
        let Some((host, port)) = host_and_port(upstream) else {
            return refuse(format!("`{upstream}` is no host and port of HTTP"));
        };
        upstreams.push(Upstream {
            host: host.to_owned(),
            port,
            place: format!("line {} of {name}", line.line),
            timeout: said.timeout,
            is_apart: said.is_more,
        });
    }
    Ok(Proxy { line, matcher, upstreams, notes: said.notes, prefix: String::new(), is_taken_off: false })
}

/// The parts of an upstream's address.
fn host_and_port(upstream: &str) -> Option<(&str, u16)> {
    let (bare, usual) = match upstream.strip_prefix("https://") {
        Some(bare) => (bare, 443),
        None => (upstream.strip_prefix("http://").unwrap_or(upstream), 80),
    };
    let bare = bare.trim_end_matches('/');
    let is_port = |port: &&str| !port.contains(']');
    let (host, port) = match bare.rsplit_once(':').filter(|(_, port)| is_port(port)) {
        Some((host, port)) => (host, port.parse::<u16>().ok()?),
        None => (bare, usual),
    };
    if host.contains(['/', '{']) {
        return None;
    }
    Some((if host.is_empty() { "localhost" } else { host }, port))
}

/// What the options of a `reverse_proxy` are for `app`.
#[derive(Default)]
struct Said {
    notes: Vec<String>,
    timeout: Option<Duration>,
    /// Whether it says more than an `app` can.
    is_more: bool,
}

impl Said {
    fn options(&mut self, file: &File<'_>, line: &TextLine) {
        for option in line.inner() {
            let written =
                file.text.get(option.span.clone()).unwrap_or_default().lines().next().unwrap_or_default();
            let place = format!("`{written}` (line {})", option.line);
            match option.word(0) {
                "to" => {}
                "header_up" => self.header_up(option, &place),
                "transport" if option.word(1) == "http" => self.transport(option),
                "flush_interval" | "buffer_requests" | "buffer_responses" | "request_buffers"
                | "response_buffers" | "stream_timeout" | "stream_close_delay" | "trusted_proxies" => {
                    self.notes.push(format!("{place}: onehop passes bodies on as they come."));
                }
                "lb_policy" | "lb_retries" | "lb_try_duration" | "lb_try_interval" | "fail_duration"
                | "max_fails" => {
                    self.notes.push(format!("{place}: it has no effect with one application."));
                }
                health if health.starts_with("health_") => {
                    self.notes
                        .push(format!("{place}: onehop sees by itself whether its application is well."));
                }
                _ => self.is_more = true,
            }
        }
    }

    /// A field of requests: what onehop sends by itself is dropped in silence.
    fn header_up(&mut self, option: &TextLine, place: &str) {
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
        let is_sent = name.trim_start_matches(['+', '-', '?', '>']).starts_with("x-forwarded-");
        let note = if is_sent {
            "onehop sets this field from the request itself, so the application is told something else and may answer otherwise"
        } else {
            "`app` sets no fields of requests, so the application does not get it"
        };
        self.notes.push(format!("{place}: {note}."));
    }

    /// How connections are made; the only thing with an equal is how long is waited.
    fn transport(&mut self, option: &TextLine) {
        for line in option.inner() {
            let name = line.word(0);
            let timeout = onehop_bench::quantity::duration(line.word(1)).ok();
            if name == "response_header_timeout" {
                self.timeout = timeout;
                self.is_more |= timeout.is_none();
            }
            self.is_more |= name.starts_with("tls");
        }
    }
}
