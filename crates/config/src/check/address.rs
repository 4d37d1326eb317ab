//! What a site's address means: host, port, and whether it is reached through TLS.

use std::net::Ipv6Addr;

use super::Context;
use super::template::fixed;
use crate::checked::tls::AutoHttps;
use crate::checked::{Global, HostPattern};
use crate::directives::{self, Bind};
use crate::problem::{Location, Problem};
use crate::source::FileKind;
use crate::syntax::Token;

/// An address as written, taken apart.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    /// As written.
    pub(crate) label: String,
    pub(crate) place: Location,
    scheme: Option<Scheme>,
    /// `None` answers any host.
    pub(crate) host: Option<HostPattern>,
    port: Option<u16>,
    /// Where it is bound to, instead of where its site says.
    pub(crate) bind: Option<Bind>,
    /// Its site has `tls`.
    pub(crate) has_tls: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

/// Where an address is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Endpoint {
    pub(crate) port: u16,
    pub(crate) tls: bool,
}

impl Address {
    /// Takes an address apart.
    pub(crate) fn parse(cx: &Context<'_>, token: &Token) -> Result<Address, Box<Problem>> {
        let text = fixed(cx.source, token, "an address")?;
        let place = &token.place;
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(parse_scheme(scheme, place)?), rest),
            None => (None, text.as_str()),
        };
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        if !path.is_empty() {
            let message = "a path in an address is a feature of Caddy that onehop does not have yet";
            let problem = Problem::error("not-yet", &place.narrowed_to(path), message);
            return Err(match path {
                "/" => problem.help("take the slash away"),
                _ => {
                    problem.help(format!("write the address without it, and `handle {path} {{ … }}` inside"))
                }
            });
        }
        let (host, port) = split_port(authority);
        let port = match port.filter(|port| !port.is_empty()) {
            None => None,
            Some(port) => Some(port.parse::<u16>().map_err(|_| {
                Problem::error("port", &place.narrowed_to(port), format!("`{port}` is no port"))
                    .help("a port is a number from 0 to 65535")
            })?),
        };
        let host = if host.is_empty() { None } else { Some(host_pattern(host, place)?) };
        if host.is_none() && port.is_none() && scheme.is_none() {
            return Err(
                Problem::error("address", place, "this address is empty").help("write `:8080`, for example")
            );
        }
        Ok(Address {
            label: text.clone(),
            place: place.clone(),
            scheme,
            host,
            port,
            bind: None,
            has_tls: false,
        })
    }

    /// Takes a URL to listen at apart. `localhost` and loopback addresses are interfaces as well as hosts: what is meant
    /// for this machine is never open to the network.
    pub(crate) fn of_url(cx: &Context<'_>, token: &Token) -> Result<Address, Box<Problem>> {
        let address = Address::parse(cx, token)?;
        let interface = match &address.host {
            Some(HostPattern::Exact(host)) => directives::bind_to_interface(host),
            _ => None,
        };
        let is_loopback = |bind: &Bind| matches!(bind, Bind::Host(Some(address)) if address.is_loopback());
        Ok(Address { bind: interface.filter(is_loopback), ..address })
    }

    /// Takes a place to listen apart, where any host is answered: `:8080`, `127.0.0.1:8080`, `unix//run/a.sock`.
    pub(crate) fn of_place(cx: &Context<'_>, token: &Token) -> Result<Address, Box<Problem>> {
        let text = fixed(cx.source, token, "an address")?;
        let place = &token.place;
        let wrong = |message: String| Problem::error("address", place, message);
        let at = |scheme, port, bind| Address {
            label: text.clone(),
            place: place.clone(),
            scheme,
            host: None,
            port,
            bind: Some(bind),
            has_tls: false,
        };
        if text.starts_with("unix/") {
            return Ok(at(Some(Scheme::Http), None, directives::bind_to(cx, token)?));
        }
        if text.is_empty() {
            return Err(wrong("there is no address".to_owned()).help("write `:8080`, for example"));
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong(format!("`{text}` does not say which interface is meant")).help(format!(
                "write `:{text}` for the whole network, or `127.0.0.1:{text}` for this machine only"
            )));
        }
        let (host, port) = split_port(&text);
        let Some(port) = port.filter(|port| !port.is_empty()) else {
            return Err(
                wrong(format!("`{text}` has no port")).help(format!("write `{text}:8080`, for example"))
            );
        };
        let port = port.parse::<u16>().map_err(|_| {
            Problem::error("port", &place.narrowed_to(port), format!("`{port}` is no port"))
                .help("a port is a number from 0 to 65535")
        })?;
        let interface = if host == "*" { "" } else { host };
        let bind = directives::bind_to_interface(interface).ok_or_else(|| {
            wrong(format!("`{host}` is no IP address of this machine")).help(format!(
                "`:{port}` listens on every interface; `http://{host}:{port}` answers that host alone"
            ))
        })?;
        Ok(at(None, Some(port), bind))
    }

    /// This place under a host of another address, and that one's name.
    pub(crate) fn with_host_of(&self, other: &Address) -> Address {
        Address { label: other.label.clone(), host: other.host.clone(), ..self.clone() }
    }

    /// Where it is reached, without a word about it: of an address that contradicts itself, what its scheme says.
    pub(crate) fn quiet_endpoint(&self, global: &Global) -> Endpoint {
        let usual = if self.is_plain(global) { global.http_port } else { global.https_port };
        Endpoint { port: self.port.unwrap_or(usual), tls: !self.is_plain(global) }
    }

    /// `0.0.0.0` and `::` are names of interfaces, which no request asks for.
    pub(crate) fn warn_of_unspecified(&self, cx: &mut Context<'_>) {
        let Some(HostPattern::Exact(host)) = &self.host else { return };
        if host == "0.0.0.0" || host == "::" {
            let message = format!("only requests that name the host `{host}` are answered");
            cx.problems.push(
                Problem::warning("host", &self.place, message)
                    .help(format!("leave the host out, and add `bind {host}` to name the interface")),
            );
        }
    }

    /// Where it is reached. As in Caddy an address means HTTPS, unless it says `http`, has the port of HTTP, or has a port
    /// and no host; a site with `tls` means it whatever its port. Only `auto_https off` changes that, with a warning.
    pub(crate) fn endpoint(&self, cx: &mut Context<'_>, global: &Global) -> Result<Endpoint, Box<Problem>> {
        let (http, https) = (global.http_port, global.https_port);
        match (self.scheme, self.port) {
            (Some(Scheme::Http), port) if port == Some(https) => Err(self.contradiction("http", https)),
            (Some(Scheme::Https), port) if port == Some(http) => Err(self.contradiction("https", http)),
            (Some(Scheme::Http), _) if self.has_tls => Err(self.plain_with_tls()),
            (None, Some(port)) if port == http && self.has_tls => Err(self.plain_with_tls()),
            (None, port) if self.is_plain(global) => {
                let port = port.unwrap_or(http);
                if self.host.is_some() && port != http || self.port.is_none() {
                    self.warn_of_plain(cx, port);
                }
                Ok(Endpoint { port, tls: false })
            }
            _ => Ok(self.quiet_endpoint(global)),
        }
    }

    /// Whether it is reached without TLS; of an address that contradicts itself, what its scheme says.
    pub(crate) fn is_plain(&self, global: &Global) -> bool {
        let is_off = global.auto_https == AutoHttps::Off;
        match (self.scheme, self.port) {
            (Some(scheme), _) => scheme == Scheme::Http,
            (None, Some(port)) if port == global.https_port => false,
            (None, _) if self.has_tls => false,
            // A place to listen at, from the command line, says nothing of TLS.
            (None, Some(port)) => {
                is_off || self.host.is_none() || self.bind.is_some() || port == global.http_port
            }
            (None, None) => is_off,
        }
    }

    fn plain_with_tls(&self) -> Box<Problem> {
        let message = format!("`{}` is served without TLS, and its site has `tls`", self.label);
        Problem::error("mixed-tls", &self.place, message)
            .help("write `https://`, or move this address into a site without `tls`")
    }

    /// An Onehopfile with `auto_https off` means it; in a Caddyfile those words only mean that
    /// nobody obtains certificates.
    fn warn_of_plain(&self, cx: &mut Context<'_>, port: u16) {
        if cx.kind == FileKind::Onehopfile {
            return;
        }
        let message = format!("`{}` is served without TLS on port {port}", self.label);
        cx.problems.push(
            Problem::warning("plain-http", &self.place, message)
                .label("Caddy would use HTTPS here")
                .help(format!("`http://{}` says plainly that HTTP is meant", self.label)),
        );
    }

    fn contradiction(&self, scheme: &str, port: u16) -> Box<Problem> {
        let other = if scheme == "http" { "https" } else { "http" };
        Problem::error("address", &self.place, format!("{scheme} cannot be served on port {port}"))
            .label(format!("port {port} is for {other}"))
            .help(format!("write `{other}://`, another port, or set `{other}_port` in the global block"))
    }
}

fn parse_scheme(scheme: &str, place: &Location) -> Result<Scheme, Box<Problem>> {
    let place = place.narrowed_to(scheme);
    match scheme.to_ascii_lowercase().as_str() {
        "http" => Ok(Scheme::Http),
        "https" => Ok(Scheme::Https),
        other @ ("ws" | "wss") => {
            let use_instead = if other == "ws" { "http" } else { "https" };
            Err(Problem::error("address", &place, format!("no site is served as `{other}://`"))
                .help(format!("write `{use_instead}://`: WebSocket connections begin as HTTP")))
        }
        other => Err(Problem::error("address", &place, format!("there is no scheme `{other}`"))
            .help("there are `http://` and `https://`")),
    }
}

/// `host:port`, `[v6]:port`, `[v6]`, a bare `v6`, or a host alone.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    if let Some(inside) = authority.strip_prefix('[')
        && let Some((host, after)) = inside.split_once(']')
    {
        return (host, after.strip_prefix(':'));
    }
    match authority.rsplit_once(':') {
        // More than one colon without brackets is an IPv6 address.
        Some((host, _)) if host.contains(':') => (authority, None),
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    }
}

/// A host to answer, in lower case; IPv6 without brackets and in its shortest form.
pub(crate) fn host_pattern(host: &str, place: &Location) -> Result<HostPattern, Box<Problem>> {
    let wrong = |message: String| Problem::error("host", &place.narrowed_to(host), message);
    if host.contains(':') {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        return match bare.parse::<Ipv6Addr>() {
            Ok(address) => Ok(HostPattern::Exact(address.to_string())),
            Err(_) => Err(wrong(format!("`{host}` is neither a host nor an IPv6 address"))),
        };
    }
    if !host.is_ascii() {
        return Err(wrong(format!("`{host}` has letters outside of ASCII"))
            .help("write the name as it stands in DNS: in its `xn--` form"));
    }
    let lower = host.to_ascii_lowercase();
    let labels: Vec<&str> = lower.split('.').collect();
    let label_fits = |label: &&str| {
        *label == "*" || label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    if lower.is_empty() || !labels.iter().all(label_fits) {
        let problem = wrong(format!("`{host}` is no host"));
        return Err(if lower.contains('*') {
            problem.help("a star stands for one whole label: `*.example.com`")
        } else {
            problem.help("letters, digits, `-` and dots make a host")
        });
    }
    if labels.contains(&"*") {
        let labels = labels.iter().map(|label| (*label != "*").then(|| (*label).to_owned())).collect();
        return Ok(HostPattern::Wildcard(labels));
    }
    Ok(HostPattern::Exact(lower))
}
