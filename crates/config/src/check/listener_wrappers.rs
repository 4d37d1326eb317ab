//! `listener_wrappers` of `servers`: what happens to a connection before its first request.
//!
//! Of Caddy's wrappers onehop knows `proxy_protocol`, before `tls`.

use std::time::Duration;

use super::Context;
use crate::checked::{HeaderPolicy, ProxyProtocol};
use crate::directives::of_networks;
use crate::limits::{PROXY_HEADER_TIME_MAX, PROXY_HEADER_TIME_MIN};
use crate::option_table::{OptionTable, Value, flag, line, not_yet_but, repeated, value};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

/// How long Caddy waits for a header.
const TIMEOUT: Duration = Duration::from_secs(5);
const POLICIES: [(&str, HeaderPolicy); 5] = [
    ("ignore", HeaderPolicy::Ignore),
    ("use", HeaderPolicy::Use),
    ("reject", HeaderPolicy::Reject),
    ("require", HeaderPolicy::Require),
    ("skip", HeaderPolicy::Skip),
];

/// The wrappers so far.
#[derive(Default)]
pub(super) struct Wrappers {
    header: Option<(ProxyProtocol, Token)>,
    /// `tls` is listed before `proxy_protocol`.
    is_after_tls: bool,
    has_tls: bool,
}

pub(super) const WRAPPERS: OptionTable<Wrappers> = OptionTable {
    once: true,
    ..OptionTable::new(
        "listener_wrappers",
        &[
            not_yet_but("http_redirect", "a client that speaks HTTP on a port of HTTPS gets 400"),
            line("proxy_protocol", "{ … }", proxy_protocol),
            flag("tls", |wrappers| wrappers.has_tls = true),
        ],
    )
};

pub(super) const OPTIONS: OptionTable<ProxyProtocol> = OptionTable {
    once: true,
    ..OptionTable::new(
        "proxy_protocol",
        &[
            repeated(line("allow", "private_ranges | <address or network>…", |cx, header, line| {
                header.allow.extend(of_networks(cx, line, &line.args, "allow <address or network>…")?);
                Ok(())
            })),
            repeated(line("deny", "<address or network>…", |cx, header, line| {
                header.deny.extend(of_networks(cx, line, &line.args, "deny <address or network>…")?);
                Ok(())
            })),
            value("fallback_policy", "ignore|use|reject|require|skip", |cx, header, value| {
                header.fallback = policy(cx, value)?;
                Ok(())
            }),
            value("timeout", "5s", |_, header, value| {
                header.timeout = value.within(PROXY_HEADER_TIME_MIN, PROXY_HEADER_TIME_MAX)?;
                Ok(())
            }),
        ],
    )
};

/// `listener_wrappers { proxy_protocol { … } tls }`
pub(super) fn listener_wrappers(cx: &mut Context<'_>, line: &Directive) -> Result<(), Box<Problem>> {
    if let Some(argument) = line.args.first() {
        let message = "`listener_wrappers` takes a block and nothing else";
        return Err(Problem::error("arguments", &argument.place, message)
            .help("write `listener_wrappers { proxy_protocol { … } tls }`, each on a line of its own"));
    }
    let mut wrappers = Wrappers::default();
    WRAPPERS.read(cx, &mut wrappers, line.block.as_deref());
    let Wrappers { header, is_after_tls, has_tls } = wrappers;
    let Some((header, name)) = header else { return Ok(()) };
    if header.allow.is_empty() && !header.fallback.believes() {
        let message = "`proxy_protocol` believes nobody who comes over TCP";
        let help = "name the load balancers with `allow 10.0.0.0/8`, or with their addresses";
        cx.problems.push(Problem::warning("believes-nobody", &name.place, message).help(help));
    }
    // As in Caddy, TLS comes first where `tls` is not written.
    if is_after_tls || !has_tls {
        cx.header_inside_tls = Some(name.place);
    }
    cx.proxy_protocol = Some(header);
    Ok(())
}

/// An error where a header would be looked for inside of TLS.
pub(super) fn check_order(cx: &mut Context<'_>, has_encrypted: bool) {
    let Some(place) = cx.header_inside_tls.take().filter(|_| has_encrypted) else { return };
    let message =
        "a header of the PROXY protocol inside of TLS is a form of Caddy that onehop does not have yet";
    let help = "load balancers send it before TLS: write `tls` on a line behind `proxy_protocol`";
    cx.problems.push(Problem::error("not-yet", &place, message).help(help));
}

fn proxy_protocol(
    cx: &mut Context<'_>,
    wrappers: &mut Wrappers,
    line: &Directive,
) -> Result<(), Box<Problem>> {
    if let Some(argument) = line.args.first() {
        let message = "`proxy_protocol` takes a block and nothing else";
        return Err(Problem::error("arguments", &argument.place, message)
            .help("write `proxy_protocol { allow 10.0.0.0/8 }`, each option on a line of its own"));
    }
    let mut header = ProxyProtocol {
        timeout: TIMEOUT,
        allow: Vec::new(),
        deny: Vec::new(),
        fallback: HeaderPolicy::Ignore,
    };
    OPTIONS.read(cx, &mut header, line.block.as_deref());
    wrappers.is_after_tls = wrappers.has_tls;
    wrappers.header = Some((header, line.name.clone()));
    Ok(())
}

fn policy(cx: &mut Context<'_>, value: Value<'_>) -> Result<HeaderPolicy, Box<Problem>> {
    let written = value.token.text.to_ascii_lowercase();
    let Some((name, policy)) = POLICIES.iter().find(|(name, _)| *name == written) else {
        let message = format!("there is no policy `{}`", value.token.text);
        let names = POLICIES.map(|(name, _)| format!("`{name}`")).join(", ");
        return Err(
            Problem::error("arguments", &value.token.place, message).help(format!("there are {names}"))
        );
    };
    if policy.believes() {
        let message = format!("with `fallback_policy {name}` every client may say who it is");
        let help = "name the load balancers in front with `allow`";
        cx.problems.push(Problem::warning("trusts-everybody", &value.token.place, message).help(help));
    }
    Ok(*policy)
}
