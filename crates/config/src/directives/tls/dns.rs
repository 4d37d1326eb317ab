//! `dns` and what belongs to it: how DNS records are set that prove a name.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use base64::Engine as _;

use crate::arguments::wrong_arguments;
use crate::check::Context;
use crate::check::template::fixed;
use crate::check::value::duration;
use crate::checked::tls::{AcmeIssuer, DnsProvider};
use crate::option_table::{OptionTable, value};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

/// The port of DNS.
const PORT: u16 = 53;
/// What signs updates (RFC 8945 section 6), without what is broken.
const ALGORITHMS: [&str; 3] = ["hmac-sha256", "hmac-sha384", "hmac-sha512"];

/// What `dns rfc2136` says.
#[derive(Debug, Default)]
pub(crate) struct Rfc2136Draft {
    key_name: Option<String>,
    algorithm: Option<String>,
    key: Option<Vec<u8>>,
    server: Option<String>,
}

/// Options of `dns rfc2136`, as Caddy's plugin of that name has them.
pub(crate) const RFC2136: OptionTable<Rfc2136Draft> = OptionTable {
    once: true,
    ..OptionTable::new(
        "dns rfc2136",
        &[
            value("key_name", "acme-key", |cx, draft, value| {
                draft.key_name = Some(fixed(cx.source, value.token, "the name of a key")?);
                Ok(())
            }),
            value("key_alg", "hmac-sha256", |cx, draft, value| {
                draft.algorithm = Some(algorithm(cx, value.token)?);
                Ok(())
            }),
            value("key", "<base64>", |cx, draft, value| {
                draft.key = Some(key(cx, value.token)?);
                Ok(())
            }),
            value("server", "192.0.2.1:53", |cx, draft, value| {
                draft.server = Some(server(cx, value.token)?);
                Ok(())
            }),
        ],
    )
};

const USAGE: &str = "dns exec <program> [<argument>…], or dns rfc2136 { … }";

/// `dns exec PROGRAM`, `dns rfc2136 { … }`; also `acme_dns` of the global block.
pub(crate) fn dns(cx: &mut Context<'_>, option: &Directive) -> Result<DnsProvider, Box<Problem>> {
    match option.args.split_first() {
        Some((word, [program, arguments @ ..])) if word.text == "exec" && option.block.is_none() => {
            let program = cx.absolute(&fixed(cx.source, program, "the path of a program")?);
            let mut words = vec![program.to_string_lossy().into_owned()];
            for token in arguments {
                words.push(fixed(cx.source, token, "an argument")?);
            }
            Ok(DnsProvider::Exec(words))
        }
        Some((word, [])) if word.text == "rfc2136" => rfc2136(cx, option),
        Some((word, _)) if !["exec", "rfc2136"].contains(&word.text.as_str()) => {
            let message = format!("`dns {}` is a plugin of Caddy that onehop does not have", word.text);
            Err(Problem::error("not-yet", &word.place, message).help(
                "`dns rfc2136` updates a zone at its server; `dns exec PROGRAM` calls a program of yours: \
                 `PROGRAM present|remove NAME VALUE`",
            ))
        }
        _ => Err(wrong_arguments(option, USAGE)),
    }
}

fn rfc2136(cx: &mut Context<'_>, option: &Directive) -> Result<DnsProvider, Box<Problem>> {
    let mut draft = Rfc2136Draft::default();
    let seen = RFC2136.read(cx, &mut draft, option.block.as_deref());
    match draft {
        Rfc2136Draft { key_name: Some(key_name), algorithm, key: Some(key), server: Some(server) } => {
            let [usual, ..] = ALGORITHMS;
            let algorithm = algorithm.unwrap_or_else(|| usual.to_owned());
            Ok(DnsProvider::Rfc2136 { server, key_name, algorithm, key })
        }
        // What is wrong was reported; this stands for it.
        _ if seen.is_broken => Ok(DnsProvider::Exec(Vec::new())),
        _ => {
            let message = "`dns rfc2136` does not say which key updates the zone, and where";
            Err(Problem::error("arguments", &option.name.place, message).help(
                "it needs `key_name NAME`, `key BASE64` and `server ADDRESS`; `key_alg` may be left out",
            ))
        }
    }
}

fn algorithm(cx: &Context<'_>, token: &Token) -> Result<String, Box<Problem>> {
    let word = fixed(cx.source, token, "an algorithm")?.to_ascii_lowercase();
    let name = word.trim_end_matches('.');
    if ALGORITHMS.contains(&name) {
        return Ok(name.to_owned());
    }
    Err(Problem::error("unknown-option", &token.place, format!("`{}` signs no updates here", token.text))
        .help(format!("there are {}", ALGORITHMS.join(", "))))
}

fn key(cx: &Context<'_>, token: &Token) -> Result<Vec<u8>, Box<Problem>> {
    let text = fixed(cx.source, token, "a key")?;
    let decoded = base64::engine::general_purpose::STANDARD.decode(text.as_bytes());
    decoded.ok().filter(|key| !key.is_empty()).ok_or_else(|| {
        Problem::error("arguments", &token.place, "the key is no base64")
            .help("copy what `tsig-keygen` writes after `secret`")
    })
}

/// `host:port` of a DNS server; the port may be left out.
fn server(cx: &Context<'_>, token: &Token) -> Result<String, Box<Problem>> {
    let text = fixed(cx.source, token, "the address of a DNS server")?;
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, PORT).to_string());
    }
    let is_host = |host: &str| !host.is_empty() && !host.contains(['/', ':', '@']);
    match text.rsplit_once(':') {
        _ if text.parse::<SocketAddr>().is_ok() => Ok(text),
        Some((host, port)) if is_host(host) && port.parse::<u16>().is_ok() => Ok(text),
        None if is_host(&text) => Ok(format!("{text}:{PORT}")),
        _ => {
            let message = format!("`{}` is no address of a DNS server", token.text);
            Err(Problem::error("address", &token.place, message).help("for example `192.0.2.1:53`"))
        }
    }
}

pub(super) fn resolvers(
    cx: &Context<'_>,
    acme: &mut AcmeIssuer,
    tokens: &[Token],
) -> Result<(), Box<Problem>> {
    tokens.iter().try_for_each(|token| server(cx, token).map(|one| acme.records.resolvers.push(one)))
}

/// Zero and, as in Caddy, `-1` ask no resolver.
pub(super) fn propagation_timeout(token: &Token) -> Result<Duration, Box<Problem>> {
    if token.text == "-1" { Ok(Duration::ZERO) } else { duration(token) }
}

/// Whole seconds.
pub(super) fn ttl(token: &Token) -> Result<u32, Box<Problem>> {
    Ok(u32::try_from(duration(token)?.as_secs()).unwrap_or(u32::MAX))
}
