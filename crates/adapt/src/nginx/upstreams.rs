//! Where a `proxy_pass` leads: one server or an `upstream` of several, and how requests are spread over them.
//!
//! The lines are options of `reverse_proxy`. What spreads requests in a way that has no equal is refused.

use super::directive::{Directive, nearest};
use super::server::Server;
use super::values;
use crate::deployment::Upstream;
use crate::refusal::Refusal;

/// Failures after which nginx takes a server out, and for how long, where nothing is said
/// (ngx_http_upstream_module).
const USUAL_FAILURES: (&str, &str) = ("1", "10s");
/// Directives of an `upstream` that say how connections are kept, or nothing about requests.
const NEUTRAL: [&str; 7] =
    ["server", "zone", "keepalive", "keepalive_requests", "keepalive_time", "keepalive_timeout", "ntlm"];

/// What a `proxy_pass` names.
#[derive(Debug)]
pub(crate) struct Target {
    /// The servers, at least one.
    pub(crate) upstreams: Vec<Upstream>,
    /// `$proxy_host`: host and port as the `proxy_pass` has them.
    pub(crate) host: String,
    /// What replaces the location's part of the path.
    pub(crate) uri: Option<String>,
    /// Whether they are reached over TLS.
    pub(crate) is_tls: bool,
    /// How requests are spread over the servers.
    pub(crate) lines: Vec<String>,
    /// What of that is not carried over.
    pub(crate) notes: Vec<String>,
}

/// A server of an `upstream`.
struct Member<'a> {
    directive: &'a Directive,
    upstream: Upstream,
}

impl Member<'_> {
    /// The value of `name=value`.
    fn option(&self, name: &str) -> Option<&str> {
        let words = self.directive.args.iter().skip(1).map(|word| word.text.as_str());
        words
            .filter_map(|word| word.split_once('='))
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    fn is(&self, name: &str) -> bool {
        self.directive.args.iter().skip(1).any(|word| word.text == name)
    }
}

impl<'a> Server<'a> {
    /// Where a `proxy_pass` leads, with what it does to the path.
    pub(crate) fn target(&self, pass: &Directive) -> Result<Target, Refusal> {
        let Some(to) = values::passed(pass.arg(0)) else {
            return Err(Refusal::at(
                &pass.place,
                format!(
                    "`{}` leads somewhere that is known only at run time, or is no HTTP on a port",
                    pass.shown()
                ),
                "write the address: proxy_pass http://127.0.0.1:3000",
            ));
        };
        // nginx's `$proxy_host` of a socket.
        let is_socket = to.host.starts_with(values::UNIX_SOCKET);
        let named = if is_socket { "localhost" } else { to.host.as_str() };
        let host = to.port.map_or_else(|| named.to_owned(), |port| format!("{named}:{port}"));
        let Some(block) = self.upstream(&to.host) else {
            let upstream = Upstream {
                host: to.host,
                port: to.port.unwrap_or(if to.is_tls { 443 } else { 80 }),
                place: pass.place.words(),
                timeout: None,
                is_apart: false,
            };
            let (lines, notes) = Default::default();
            return Ok(Target {
                upstreams: vec![upstream],
                host,
                uri: to.uri,
                is_tls: to.is_tls,
                lines,
                notes,
            });
        };
        let servers = servers(block)?;
        let socket = servers.iter().find(|server| server.upstream.host.starts_with(values::UNIX_SOCKET));
        if let Some(socket) = socket.filter(|_| to.is_tls) {
            return refuse(socket.directive, "onehop does not speak TLS at a Unix socket");
        }
        let mut notes = Vec::new();
        let mut lines = Vec::new();
        if servers.len() > 1 {
            lines.push(policy(block, &servers, &mut notes)?);
            lines.extend(failures(block, &servers, &mut notes));
        }
        let upstreams = servers.into_iter().map(|server| server.upstream).collect();
        Ok(Target { upstreams, host, uri: to.uri, is_tls: to.is_tls, lines, notes })
    }
}

/// The servers of an `upstream` that take requests, spares last.
fn servers(block: &Directive) -> Result<Vec<Member<'_>>, Refusal> {
    let mut servers = Vec::new();
    for directive in block.inner().iter().filter(|directive| directive.name == "server") {
        let Some((host, port)) = values::host_and_port(directive.arg(0)) else {
            return Err(Refusal::at(
                &directive.place,
                format!("`{}` is no host and port", directive.shown()),
                "let the application listen on a port of 127.0.0.1",
            ));
        };
        let place = directive.place.words();
        let upstream = Upstream { host, port: port.unwrap_or(80), place, timeout: None, is_apart: false };
        servers.push(Member { directive, upstream });
    }
    servers.retain(|server| !server.is("down"));
    servers.sort_by_key(|server| server.is("backup"));
    if servers.is_empty() {
        return refuse(block, "it has no server that takes requests");
    }
    let count = servers.len();
    for server in &mut servers {
        server.upstream.is_apart = count > 1;
    }
    Ok(servers)
}

/// The `lb_policy` of an `upstream`.
fn policy(block: &Directive, servers: &[Member<'_>], notes: &mut Vec<String>) -> Result<String, Refusal> {
    let weights: Vec<&str> = servers.iter().map(|server| server.option("weight").unwrap_or("1")).collect();
    let are_same = weights.windows(2).all(|pair| matches!(pair, [one, other] if one == other));
    let others = block.inner().iter().filter(|inner| !NEUTRAL.contains(&inner.name.as_str()));
    let others: Vec<&Directive> = others.collect();
    let spares = servers.iter().filter(|server| server.is("backup")).count();
    if spares > 0 {
        // One that takes all, and others for when it does not: that is an order.
        return match (servers.len() - spares, others.as_slice()) {
            (1, []) => Ok("lb_policy first".to_owned()),
            _ => refuse(block, "only where a single server takes requests can others stand by as `backup`"),
        };
    }
    let chosen = match others.as_slice() {
        [] if are_same => "round_robin".to_owned(),
        [] => return Ok(format!("lb_policy weighted_round_robin {}", weights.join(" "))),
        [only] => match (only.name.as_str(), only.arg(0), only.arg(1)) {
            ("least_conn", ..) => "least_conn".to_owned(),
            ("ip_hash", ..) | ("hash", "$remote_addr" | "$binary_remote_addr", _) => "ip_hash".to_owned(),
            ("hash", "$request_uri" | "$uri", _) => "uri_hash".to_owned(),
            ("hash", variable, _) => match hashed(variable) {
                Some(policy) => policy,
                None => return refuse(only, "onehop cannot choose a server by that"),
            },
            ("random", "", _) => "random".to_owned(),
            ("random", "two", "" | "least_conn") => "random_choose 2".to_owned(),
            _ => return refuse(only, "onehop cannot choose among servers by that"),
        },
        [_, other, ..] => return refuse(other, "onehop cannot choose among servers by that too"),
    };
    if !are_same {
        notes.push(format!(
            "`{}` ({}): onehop counts the servers of `{chosen}` alike, whatever their `weight`.",
            block.shown(),
            block.place.words()
        ));
    }
    Ok(format!("lb_policy {chosen}"))
}

/// The policy for `hash $http_x_name` and `hash $arg_name`.
fn hashed(variable: &str) -> Option<String> {
    let name = |rest: &str| (!rest.is_empty() && !rest.contains('$')).then(|| rest.to_owned());
    if let Some(field) = variable.strip_prefix("$http_").and_then(name) {
        return Some(format!("header {}", field.replace('_', "-")));
    }
    variable.strip_prefix("$arg_").and_then(name).map(|argument| format!("query {argument}"))
}

/// When a server is taken out, and how many requests it gets at a time.
fn failures(block: &Directive, servers: &[Member<'_>], notes: &mut Vec<String>) -> Vec<String> {
    let settings = |server: &Member<'_>| {
        let (fails, time) = USUAL_FAILURES;
        [("max_fails", fails), ("fail_timeout", time), ("max_conns", "0")]
            .map(|(name, usual)| server.option(name).unwrap_or(usual).to_owned())
    };
    let Some(first) = servers.first().map(settings) else { return Vec::new() };
    if servers.iter().any(|server| settings(server) != first) {
        notes.push(format!(
            "`{}` ({}): its servers differ in when they are taken out; for onehop all are like the first one.",
            block.shown(),
            block.place.words()
        ));
    }
    let [fails, time, at_once] = first;
    let mut lines = Vec::new();
    let seconds = values::seconds(&time).filter(|seconds| *seconds > 0);
    if let (Some(seconds), Ok(1..)) = (seconds, fails.parse::<u32>()) {
        lines.push(format!("fail_duration {seconds}s"));
        if fails != USUAL_FAILURES.0 {
            lines.push(format!("max_fails {fails}"));
        }
    }
    if at_once.parse::<u32>().is_ok_and(|at_once| at_once > 0) {
        lines.push(format!("unhealthy_request_count {at_once}"));
    }
    lines
}

/// How many further servers are tried: nginx tries each once where nothing is said.
pub(crate) fn retries(servers: usize, levels: &[&[Directive]]) -> Option<String> {
    let is_off = nearest("proxy_next_upstream", levels).is_some_and(|directive| directive.arg(0) == "off");
    let tries =
        nearest("proxy_next_upstream_tries", levels).and_then(|found| found.arg(0).parse::<usize>().ok());
    let tries = tries.filter(|tries| *tries > 0).unwrap_or(servers).min(servers);
    (tries > 1 && !is_off).then(|| format!("lb_retries {}", tries - 1))
}

fn refuse<T>(directive: &Directive, cause: &str) -> Result<T, Refusal> {
    Err(Refusal::at(
        &directive.place,
        format!("`{}`: {cause}", directive.shown()),
        "leave one server in a copy of the file, and try that; `workers N` of `app` runs several",
    ))
}
