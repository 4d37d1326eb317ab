//! `servers` of the global block: what holds for every listener.
//!
//! The trusted proxies, the listener wrappers and the protocols work. An option that asks for what onehop always does is accepted
//! and changes nothing; the others are "not yet" errors.

use super::Context;
use super::listener_wrappers::listener_wrappers;
use super::template::fixed;
use crate::checked::Protocols;
use crate::directives::of_networks;
use crate::nearest::nearest;
use crate::option_table::{OptionTable, flag, line, not_yet};
use crate::problem::Problem;
use crate::syntax::Directive;

const TRUSTED_USAGE: &str = "trusted_proxies static private_ranges | <address or network>…";
/// The only field that onehop reads a client's address from.
const CLIENT_FIELD: &str = "X-Forwarded-For";

/// Caddy's options. Whether one beside them is `trusted_proxies` decides about others.
pub(super) const OPTIONS: OptionTable<bool> = OptionTable {
    once: true,
    too_many: Some("there is `trusted_proxies`"),
    ..OptionTable::new(
        "servers",
        &[
            not_yet("0rtt"),
            line("client_ip_headers", CLIENT_FIELD, |cx, _, line| client_fields(cx, line)),
            not_yet("enable_full_duplex"),
            not_yet("keepalive_count"),
            not_yet("keepalive_idle"),
            not_yet("keepalive_interval"),
            line("listener_wrappers", "{ proxy_protocol { … } tls }", |cx, _, line| {
                listener_wrappers(cx, line)
            }),
            line("log_credentials", "", |cx, _, line| stands_alone(line).map(|()| cx.log_credentials = true)),
            not_yet("max_header_size"),
            // They are there anyway.
            flag("metrics", |_| ()),
            not_yet("name"),
            not_yet("packet_conn_wrappers"),
            line("protocols", "h1 h2 h2c", |cx, _, line| protocols(cx, line)),
            not_yet("strict_sni_host"),
            not_yet("timeouts"),
            not_yet("trace"),
            line("trusted_proxies", "static private_ranges | <address or network>…", |cx, _, line| {
                trusted_proxies(cx, line)
            }),
            // The last address that is not a trusted proxy's is the client's: nothing else is done here.
            line("trusted_proxies_strict", "", |_, _, line| stands_alone(line)),
            line("trusted_proxies_unix", "", trusted_sockets),
        ],
    )
};

/// `servers { trusted_proxies static … }`
pub(super) fn servers(cx: &mut Context<'_>, line: &Directive) -> Result<(), Box<Problem>> {
    if let Some(address) = line.args.first() {
        let message = "`servers` for one listener is a form of Caddy that onehop does not have yet";
        return Err(Problem::error("not-yet", &address.place, message)
            .help("without an address, `servers { … }` holds for all of them"));
    }
    let mut names_proxies = line.block.iter().flatten().any(|line| line.name.text == "trusted_proxies");
    OPTIONS.read(cx, &mut names_proxies, line.block.as_deref());
    Ok(())
}

fn trusted_sockets(
    _: &mut Context<'_>,
    names_proxies: &mut bool,
    line: &Directive,
) -> Result<(), Box<Problem>> {
    stands_alone(line)?;
    if *names_proxies {
        return Ok(());
    }
    let message =
        "`trusted_proxies_unix` without `trusted_proxies` is a form of Caddy that onehop does not have yet";
    Err(Problem::error("not-yet", &line.name.place, message)
        .help("once `trusted_proxies` names a network, peers on Unix sockets are trusted as well"))
}

fn trusted_proxies(cx: &mut Context<'_>, line: &Directive) -> Result<(), Box<Problem>> {
    let wrong = |message: &str| {
        Problem::error("arguments", &line.name.place, message)
            .help(format!("it is written `{TRUSTED_USAGE}`"))
    };
    if line.block.is_some() {
        return Err(wrong("`trusted_proxies` takes no block"));
    }
    let Some((source, networks)) = line.args.split_first() else {
        return Err(wrong("`trusted_proxies` does not say where its networks come from"));
    };
    if source.text != "static" {
        let looks_like_network = source.text.contains(['.', ':']) || source.text == "private_ranges";
        if looks_like_network {
            let message = format!("`{}` stands where the source of the networks is named", source.text);
            return Err(Problem::error("arguments", &source.place, message)
                .help(format!("write `trusted_proxies static {} …`", source.text)));
        }
        let message =
            format!("networks from `{}` are a feature of Caddy that onehop does not have yet", source.text);
        let problem = Problem::error("not-yet", &source.place, message);
        return Err(match nearest(&source.text, ["static"]) {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem.help("write them out behind `trusted_proxies static`"),
        });
    }
    cx.trusted_proxies = of_networks(cx, line, networks, TRUSTED_USAGE)?;
    Ok(())
}

fn client_fields(cx: &Context<'_>, line: &Directive) -> Result<(), Box<Problem>> {
    if line.args.is_empty() || line.block.is_some() {
        let message = "`client_ip_headers` needs the name of a field";
        return Err(Problem::error("arguments", &line.name.place, message)
            .help(format!("it is written `client_ip_headers {CLIENT_FIELD}`")));
    }
    for token in &line.args {
        let field = fixed(cx.source, token, "the name of a field")?;
        if !field.eq_ignore_ascii_case(CLIENT_FIELD) {
            let message = format!("clients' addresses are not read from `{field}` yet");
            return Err(Problem::error("not-yet", &token.place, message)
                .help(format!("`{CLIENT_FIELD}` is read where the peer is one of `trusted_proxies`")));
        }
    }
    Ok(())
}

/// `protocols h1 [h2] [h2c]`: HTTP/1 is always spoken.
fn protocols(cx: &mut Context<'_>, line: &Directive) -> Result<(), Box<Problem>> {
    let wrong = |place, code, message: String| {
        Err(Problem::error(code, place, message).help("write `protocols h1 h2 h2c`, or fewer of them"))
    };
    let mut protocols = Protocols { h2: false, h2c: false };
    let mut has_h1 = false;
    for token in &line.args {
        match token.text.as_str() {
            "h1" => has_h1 = true,
            "h2" => protocols.h2 = true,
            "h2c" => protocols.h2c = true,
            "h3" => {
                let message = "`h3` is a protocol that onehop does not have yet".to_owned();
                return wrong(&token.place, "not-yet", message);
            }
            other => {
                return wrong(&token.place, "unknown-option", format!("there is no protocol `{other}`"));
            }
        }
    }
    if line.args.is_empty() || line.block.is_some() {
        let message = "the arguments of `protocols` do not fit".to_owned();
        return wrong(&line.name.place, "arguments", message);
    }
    if !has_h1 {
        let message = "a server without `h1` is a form of Caddy that onehop does not have yet".to_owned();
        return wrong(&line.name.place, "not-yet", message);
    }
    cx.protocols = protocols;
    Ok(())
}

pub(super) fn stands_alone(line: &Directive) -> Result<(), Box<Problem>> {
    if line.args.is_empty() && line.block.is_none() {
        return Ok(());
    }
    let message = format!("`{}` takes nothing after it", line.name.text);
    Err(Problem::error("arguments", &line.name.place, message).help("take it away"))
}
