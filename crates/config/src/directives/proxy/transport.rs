//! `transport http`: how connections to upstreams are made, kept and given up.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::draft::Draft;
use super::quantities::{count, count_or_none, is_negative, time, time_or_none};
use super::tls;
use crate::arguments::{one_argument, some_arguments, wrong_arguments};
use crate::check::Context;
use crate::check::template::fixed;
use crate::check::value::size;
use crate::checked::proxy::{EncryptedVersions, ProxyVersions};
use crate::limits::{PROXY_CONNECTIONS_MAX, PROXY_LIST_MAX};
use crate::nearest::nearest;
use crate::option_table::{OptionTable, Value, flag, line, not_yet, value, values};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

/// Options that begin with `tls` mean each that upstreams are spoken to over TLS.
pub(super) const OPTIONS: OptionTable<Draft> = OptionTable {
    once: true,
    others: &[
        ("max_idle_conns_per_host", "that is `keepalive_idle_conns_per_host` here"),
        ("pool", "`pool` stands beside `transport`, in the block of `reverse_proxy`"),
    ],
    too_many: Some("docs/proxy.md lists what there is"),
    ..OptionTable::new(
        "transport http",
        &[
            value("keepalive", "2m", |cx, draft, value| {
                keepalive(cx, value).map(|time| draft.proxy.transport.keepalive = time)
            }),
            value("keepalive_interval", "10s", |cx, draft, value| {
                let time = time_or_off(cx, value, KEEPALIVE_INTERVAL);
                time.map(|time| draft.proxy.transport.keepalive_interval = time)
            }),
            value("keepalive_idle_conns", "100", |_, draft, value| {
                let most = count_or_none(value, PROXY_CONNECTIONS_MAX);
                most.map(|most| draft.proxy.transport.keepalive_idle_conns = most)
            }),
            value("keepalive_idle_conns_per_host", "10", |cx, draft, value| {
                let most = count(cx, value, IDLE_PER_HOST, PROXY_CONNECTIONS_MAX);
                most.map(|most| draft.proxy.transport.keepalive_idle_conns_per_host = most)
            }),
            value("dial_timeout", "10s", |cx, draft, value| {
                time(cx, value, DIAL_TIMEOUT).map(|time| draft.proxy.transport.dial_timeout = time)
            }),
            value("dial_fallback_delay", "10s", |cx, draft, value| {
                let time = time_or_off(cx, value, FALLBACK_DELAY);
                time.map(|time| draft.proxy.transport.dial_fallback_delay = time)
            }),
            value("read_timeout", "10s", |_, draft, value| {
                time_or_none(value).map(|time| draft.proxy.transport.read_timeout = time)
            }),
            value("write_timeout", "10s", |_, draft, value| {
                time_or_none(value).map(|time| draft.proxy.transport.write_timeout = time)
            }),
            value("response_header_timeout", "10s", |_, draft, value| {
                time_or_none(value).map(|time| draft.proxy.transport.response_header_timeout = time)
            }),
            value("expect_continue_timeout", "10s", |_, draft, value| {
                time_or_none(value).map(|time| draft.proxy.transport.expect_continue_timeout = time)
            }),
            value("max_conns_per_host", "100", |_, draft, value| {
                let most = count_or_none(value, PROXY_CONNECTIONS_MAX);
                most.map(|most| draft.proxy.transport.max_conns_per_host = most)
            }),
            value("max_response_header", "32KiB", |_, draft, value| {
                head_bytes(value.token).map(|bytes| draft.proxy.transport.max_response_header = bytes)
            }),
            line("compression", "off", |cx, _, option| compression(cx, option)),
            line("resolvers", "192.0.2.53", |cx, draft, option| {
                resolvers(cx, option).map(|resolvers| draft.proxy.transport.resolvers = resolvers)
            }),
            values("versions", "1.1 2", |_, draft, tokens| {
                versions(tokens).map(|versions| draft.proxy.transport.versions = versions)
            }),
            value("read_buffer", "4KiB", |cx, _, value| no_buffer(cx, value)),
            value("write_buffer", "4KiB", |cx, _, value| no_buffer(cx, value)),
            flag("tls", |_| {}),
            line("tls_client_auth", "<certificate> <key>", |cx, draft, option| {
                tls::client_auth(cx, option).map(|files| draft.tls.client_certificate = Some(files))
            }),
            line("tls_except_ports", "8080", |_, draft, option| {
                tls::except_ports(option).map(|ports| draft.tls.except_ports = ports)
            }),
            line("tls_insecure_skip_verify", "", |cx, draft, option| {
                tls::skip_verify(cx, &mut draft.tls, option)
            }),
            value("tls_server_name", "app.internal", |cx, draft, value| {
                tls::server_name(cx, value.token).map(|name| draft.tls.server_name = name)
            }),
            value("tls_timeout", "10s", |cx, draft, value| {
                time(cx, value, TLS_TIMEOUT).map(|time| draft.tls.timeout = time)
            }),
            line("tls_trust_pool", "file <certificate>…", |cx, draft, option| {
                tls::trust_pool(cx, option).map(|files| draft.tls.trusted.extend(files))
            }),
            values("tls_trusted_ca_certs", "<file>…", |cx, draft, tokens| {
                tls::files(cx, tokens).map(|files| draft.tls.trusted.extend(files))
            }),
            not_yet("forward_proxy_url"),
            not_yet("local_address"),
            not_yet("network_proxy"),
            not_yet("proxy_protocol"),
            not_yet("tls_curves"),
            not_yet("tls_renegotiation"),
        ],
    )
};
/// Transports of Caddy and of plugins that many Caddyfiles use.
const OTHER_TRANSPORTS: [&str; 2] = ["fastcgi", "http_ntlm"];
/// The port where name servers listen.
const NAME_SERVER_PORT: u16 = 53;
/// Bytes of an answer's head below which none fits.
const HEAD_BYTES_MIN: u64 = 1024;

/// Where the file says 0, which Caddy reads as its default.
const DIAL_TIMEOUT: Duration = Duration::from_secs(3);
const FALLBACK_DELAY: Duration = Duration::from_millis(300);
const KEEPALIVE: Duration = Duration::from_secs(120);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
const IDLE_PER_HOST: u32 = 32;
/// A handshake without a bound is not to be had.
const TLS_TIMEOUT: Duration = Duration::from_secs(10);

/// `transport http { … }`
pub(super) fn transport(
    cx: &mut Context<'_>,
    draft: &mut Draft,
    line: &Directive,
) -> Result<(), Box<Problem>> {
    let [name] = line.args.as_slice() else { return Err(wrong_arguments(line, "transport http { … }")) };
    if name.text != "http" {
        return Err(unknown_transport(name));
    }
    let mut seen = OPTIONS.read(cx, draft, line.block.as_deref());
    // A second block is an error, and what it says counts none the less.
    seen.is_broken |= draft.transport.is_broken;
    draft.transport = seen;
    Ok(())
}

fn unknown_transport(name: &Token) -> Box<Problem> {
    if OTHER_TRANSPORTS.contains(&name.text.as_str()) {
        let message = format!("the transport `{}` is one of Caddy that onehop does not have yet", name.text);
        return Problem::error("not-yet", &name.place, message).help("there is `transport http`");
    }
    let problem =
        Problem::error("unknown-option", &name.place, format!("there is no transport `{}`", name.text));
    match name.text.as_str() {
        "https" => problem.help("write `https://` before the upstreams, or `tls` in `transport http { … }`"),
        word => match nearest(word, ["http", "fastcgi"]) {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem.help("there is `transport http`"),
        },
    }
}

fn no_buffer(cx: &mut Context<'_>, value: Value<'_>) -> Result<(), Box<Problem>> {
    size(value.token)?;
    let message = format!("`{}` has no effect: buffers are leased as they are needed", value.name.text);
    cx.problems.push(Problem::warning("no-effect", &value.name.place, message).help("take it away"));
    Ok(())
}

/// A time, or `off`.
fn keepalive(cx: &mut Context<'_>, value: Value<'_>) -> Result<Option<Duration>, Box<Problem>> {
    if value.token.text == "off" { Ok(None) } else { time(cx, value, KEEPALIVE).map(Some) }
}

/// A time; one with a minus switches off.
fn time_or_off(
    cx: &mut Context<'_>,
    value: Value<'_>,
    default: Duration,
) -> Result<Option<Duration>, Box<Problem>> {
    if is_negative(value.token) { Ok(None) } else { time(cx, value, default).map(Some) }
}

fn head_bytes(token: &Token) -> Result<Option<u64>, Box<Problem>> {
    match size(token)? {
        0 => Ok(None),
        bytes if bytes >= HEAD_BYTES_MIN => Ok(Some(bytes)),
        _ => Err(Problem::error("size", &token.place, "`max_response_header` must be at least 1KiB")
            .help("it bounds all fields of an answer together")),
    }
}

/// `off` is what there is; Caddy's default asks for gzip where the client accepts none, and decodes the response.
fn compression(cx: &mut Context<'_>, option: &Directive) -> Result<(), Box<Problem>> {
    let word = one_argument(option, "compression off")?;
    match word.text.as_str() {
        "off" => {}
        "on" => {
            let message = "`compression on` has no effect: an upstream is asked for what the client accepts";
            cx.problems.push(Problem::warning("no-effect", &option.name.place, message).help("take it away"));
        }
        other => {
            let message = format!("`compression` cannot be `{other}`");
            return Err(
                Problem::error("unknown-option", &word.place, message).help("write `compression off`")
            );
        }
    }
    Ok(())
}

fn resolvers(cx: &Context<'_>, option: &Directive) -> Result<Vec<SocketAddr>, Box<Problem>> {
    let tokens = some_arguments(option, "resolvers 192.0.2.53")?;
    if tokens.len() > PROXY_LIST_MAX {
        let message = format!("`resolvers` takes at most {PROXY_LIST_MAX} addresses");
        return Err(Problem::error("too-large", &option.name.place, message));
    }
    let mut resolvers = Vec::new();
    for token in tokens {
        let text = fixed(cx.source, token, "the address of a name server")?;
        if let Some((network @ ("tcp" | "tcp4" | "tcp6" | "udp4" | "udp6"), _)) = text.split_once('/') {
            let message =
                format!("`{network}/` for a name server is a form of Caddy that onehop does not have yet");
            return Err(Problem::error("not-yet", &token.place, message).help("write the address alone"));
        }
        let bare = text.strip_prefix("udp/").unwrap_or(&text);
        let alone = bare.strip_prefix('[').and_then(|inside| inside.strip_suffix(']')).unwrap_or(bare);
        let address = match alone.parse::<IpAddr>() {
            Ok(address) => Some(SocketAddr::new(address, NAME_SERVER_PORT)),
            Err(_) => bare.parse::<SocketAddr>().ok(),
        };
        let Some(address) = address.filter(|address| address.port() > 0) else {
            let message = format!("`{text}` is no address of a name server");
            return Err(Problem::error("address", &token.place, message).help(
                "write an IP address, with a port where it is not 53: `192.0.2.53`, `[2001:db8::53]:5353`",
            ));
        };
        if resolvers.contains(&address) {
            let message = format!("`resolvers` has `{text}` already");
            return Err(Problem::error("duplicate-option", &token.place, message).help("take it away"));
        }
        resolvers.push(address);
    }
    Ok(resolvers)
}

/// As with Caddy `h2c` is for the clear, and 2 for TLS; with `h2c` alone upstreams speak HTTP/2 there as well.
fn versions(tokens: &[Token]) -> Result<ProxyVersions, Box<Problem>> {
    let (mut http1, mut h2c) = (false, false);
    for token in tokens {
        match token.text.as_str() {
            "1.1" => http1 = true,
            "2" => {}
            "h2c" => h2c = true,
            "3" => {
                let message = "version `3` is one of Caddy that onehop does not have yet";
                return Err(Problem::error("not-yet", &token.place, message)
                    .help("write `versions 1.1 2`, or leave it out"));
            }
            other => {
                let message = format!("there is no version `{other}`");
                return Err(Problem::error("unknown-option", &token.place, message)
                    .help("write `versions 1.1`, `versions 1.1 2`, or `versions h2c 2`"));
            }
        }
    }
    let is_only_1 = tokens.iter().all(|token| token.text == "1.1");
    let encrypted = match (http1, is_only_1) {
        (_, true) => EncryptedVersions::Http1,
        (true, false) => EncryptedVersions::Negotiated,
        (false, false) => EncryptedVersions::Http2,
    };
    Ok(ProxyVersions { h2c, encrypted })
}
