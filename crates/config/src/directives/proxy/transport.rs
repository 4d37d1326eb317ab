//! `transport http`: how connections to upstreams are made, kept and given up.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::draft::Draft;
use super::quantities::{count, count_or_none, is_negative, time, time_or_none, value};
use super::{options, tls};
use crate::check::Context;
use crate::check::template::fixed;
use crate::check::value::size;
use crate::checked::proxy::ProxyTransport;
use crate::directives::{no_arguments, one_argument, some_arguments, wrong_arguments};
use crate::limits::{PROXY_CONNECTIONS_MAX, PROXY_LIST_MAX};
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::syntax::{Line, Token};

/// Options of the transport that work.
const OPTIONS: [&str; 25] = [
    "keepalive",
    "keepalive_interval",
    "keepalive_idle_conns",
    "keepalive_idle_conns_per_host",
    "dial_timeout",
    "dial_fallback_delay",
    "read_timeout",
    "write_timeout",
    "response_header_timeout",
    "expect_continue_timeout",
    "max_conns_per_host",
    "max_response_header",
    "compression",
    "resolvers",
    "versions",
    "read_buffer",
    "write_buffer",
    "tls",
    "tls_client_auth",
    "tls_except_ports",
    "tls_insecure_skip_verify",
    "tls_server_name",
    "tls_timeout",
    "tls_trust_pool",
    "tls_trusted_ca_certs",
];
/// Those of Caddy that do not work yet.
const NOT_YET: [&str; 6] = [
    "forward_proxy_url",
    "local_address",
    "network_proxy",
    "proxy_protocol",
    "tls_curves",
    "tls_renegotiation",
];
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

/// Whether a word stands in the transport's block.
pub(super) fn is_option(word: &str) -> bool {
    OPTIONS.contains(&word) || NOT_YET.contains(&word)
}

/// `transport http { … }`
pub(super) fn transport<'l>(
    cx: &mut Context<'_>,
    draft: &mut Draft<'l>,
    line: &'l Line,
) -> Result<(), Box<Problem>> {
    let [name] = line.args.as_slice() else { return Err(wrong_arguments(line, "transport http { … }")) };
    if name.text != "http" {
        return Err(unknown_transport(name));
    }
    for option in line.block.as_deref().unwrap_or_default() {
        let mut result =
            if option.name.text.starts_with("tls") && OPTIONS.contains(&option.name.text.as_str()) {
                tls::option(cx, &mut draft.tls, option)
            } else {
                read_option(cx, &mut draft.proxy.transport, option)
            };
        if result.is_ok() {
            result = options::once(draft, option);
        }
        draft.seen.push(&option.name);
        draft.is_broken |= cx.keep(result).is_none();
    }
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

fn read_option(
    cx: &mut Context<'_>,
    transport: &mut ProxyTransport,
    option: &Line,
) -> Result<(), Box<Problem>> {
    match option.name.text.as_str() {
        "keepalive" => transport.keepalive = keepalive(cx, option)?,
        "keepalive_interval" => {
            transport.keepalive_interval = time_or_off(cx, option, KEEPALIVE_INTERVAL)?;
        }
        "keepalive_idle_conns" => {
            transport.keepalive_idle_conns = count_or_none(option, PROXY_CONNECTIONS_MAX)?;
        }
        "keepalive_idle_conns_per_host" => {
            transport.keepalive_idle_conns_per_host =
                count(cx, option, IDLE_PER_HOST, PROXY_CONNECTIONS_MAX)?;
        }
        "dial_timeout" => transport.dial_timeout = time(cx, option, DIAL_TIMEOUT)?,
        "dial_fallback_delay" => {
            transport.dial_fallback_delay = time_or_off(cx, option, FALLBACK_DELAY)?;
        }
        "read_timeout" => transport.read_timeout = time_or_none(option)?,
        "write_timeout" => transport.write_timeout = time_or_none(option)?,
        "response_header_timeout" => transport.response_header_timeout = time_or_none(option)?,
        "expect_continue_timeout" => transport.expect_continue_timeout = time_or_none(option)?,
        "max_conns_per_host" => {
            transport.max_conns_per_host = count_or_none(option, PROXY_CONNECTIONS_MAX)?;
        }
        "max_response_header" => transport.max_response_header = head_bytes(option)?,
        "compression" => transport.compression = compression(option)?,
        "resolvers" => transport.resolvers = resolvers(cx, option)?,
        "versions" => versions(option)?,
        "read_buffer" | "write_buffer" => {
            size(value(option, "4KiB")?)?;
            let message =
                format!("`{}` has no effect: buffers are leased as they are needed", option.name.text);
            cx.problems.push(Problem::warning("no-effect", &option.name.place, message).help("take it away"));
        }
        word => {
            let problem = options::unknown_among(option, "transport http", &OPTIONS, &NOT_YET);
            return Err(match word {
                "max_idle_conns_per_host" => problem.help("that is `keepalive_idle_conns_per_host` here"),
                "pool" => problem.help("`pool` stands beside `transport`, in the block of `reverse_proxy`"),
                _ => problem,
            });
        }
    }
    Ok(())
}

/// A time, or `off`.
fn keepalive(cx: &mut Context<'_>, option: &Line) -> Result<Option<Duration>, Box<Problem>> {
    if value(option, "2m")?.text == "off" { Ok(None) } else { time(cx, option, KEEPALIVE).map(Some) }
}

/// A time; one with a minus switches off.
fn time_or_off(
    cx: &mut Context<'_>,
    option: &Line,
    default: Duration,
) -> Result<Option<Duration>, Box<Problem>> {
    if is_negative(value(option, "10s")?) { Ok(None) } else { time(cx, option, default).map(Some) }
}

fn head_bytes(option: &Line) -> Result<Option<u64>, Box<Problem>> {
    let token = value(option, "32KiB")?;
    match size(token)? {
        0 => Ok(None),
        bytes if bytes >= HEAD_BYTES_MIN => Ok(Some(bytes)),
        _ => Err(Problem::error("size", &token.place, "`max_response_header` must be at least 1KiB")
            .help("it bounds all fields of an answer together")),
    }
}

/// As in Caddy, only `off` says something.
fn compression(option: &Line) -> Result<bool, Box<Problem>> {
    if option.args.is_empty() {
        return no_arguments(option).map(|()| true);
    }
    let word = one_argument(option, "compression off")?;
    match word.text.as_str() {
        "off" => Ok(false),
        "on" => Ok(true),
        other => {
            Err(Problem::error("unknown-option", &word.place, format!("`compression` cannot be `{other}`"))
                .help("`compression off` asks upstreams for nothing; without it they are asked for gzip"))
        }
    }
}

fn resolvers(cx: &Context<'_>, option: &Line) -> Result<Vec<SocketAddr>, Box<Problem>> {
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

/// HTTP/1.1 is what there is.
fn versions(option: &Line) -> Result<(), Box<Problem>> {
    for token in some_arguments(option, "versions 1.1")? {
        match token.text.as_str() {
            "1.1" => {}
            version @ ("2" | "3" | "h2c") => {
                let message = format!("version `{version}` is one of Caddy that onehop does not have yet");
                return Err(Problem::error("not-yet", &token.place, message)
                    .help("upstreams are spoken to in HTTP/1.1: write `versions 1.1`, or leave it out"));
            }
            other => {
                let message = format!("there is no version `{other}`");
                return Err(
                    Problem::error("unknown-option", &token.place, message).help("write `versions 1.1`")
                );
            }
        }
    }
    Ok(())
}
