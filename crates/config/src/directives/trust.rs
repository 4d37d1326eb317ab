//! `trusted_proxies`: proxies in front whose `X-Forwarded-For` names the client.
//!
//! Knows how networks are written. What is believed, and when, is the server's part.

use std::net::IpAddr;

use crate::arguments::{no_block, wrong_arguments};
use crate::check::Context;
use crate::check::template::fixed;
use crate::checked::Network;
use crate::limits::APP_TRUSTED_PROXIES_MAX;
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

/// What follows the option of a directive.
pub(super) const NETWORKS: &str = "private_ranges | <address or network>…";
/// Networks that nobody routes from outside, as Caddy has them under this word (RFC 1918, RFC 4193, loopback).
const PRIVATE: &str = "private_ranges";
const PRIVATE_RANGES: [(&str, u8); 6] =
    [("192.168.0.0", 16), ("172.16.0.0", 12), ("10.0.0.0", 8), ("127.0.0.1", 8), ("fd00::", 8), ("::1", 128)];

/// `trusted_proxies private_ranges | <address or network>…`
pub(super) fn trusted_proxies(
    cx: &mut Context<'_>,
    option: &Directive,
) -> Result<Vec<Network>, Box<Problem>> {
    no_block(option)?;
    of_networks(cx, option, &option.args, &format!("trusted_proxies {NETWORKS}"))
}

/// Adds the trusted proxies of the global block to those of a directive.
pub(super) fn add_global(cx: &Context<'_>, networks: &mut Vec<Network>) {
    let new: Vec<Network> =
        cx.trusted_proxies.iter().filter(|one| !networks.contains(one)).copied().collect();
    networks.extend(new);
}

/// Networks as they are written behind an option.
pub(crate) fn of_networks(
    cx: &mut Context<'_>,
    option: &Directive,
    tokens: &[Token],
    usage: &str,
) -> Result<Vec<Network>, Box<Problem>> {
    if tokens.is_empty() {
        let help = format!("`{PRIVATE}` is every private network and this machine; `10.0.0.5` is one proxy");
        return Err(wrong_arguments(option, usage).help(help));
    }
    // Before the loop, which compares each with all before it.
    if tokens.len() > APP_TRUSTED_PROXIES_MAX {
        let message = format!("`{}` takes at most {APP_TRUSTED_PROXIES_MAX} networks", option.name.text);
        return Err(Problem::error("arguments", &option.name.place, message)
            .help("every request's peer is compared with them: name larger networks"));
    }
    let mut networks: Vec<Network> = Vec::new();
    for token in tokens {
        let written = fixed(cx.source, token, "the address of a proxy")?;
        if written == PRIVATE {
            if private_ranges().all(|range| networks.contains(&range)) {
                return Err(twice(option, token));
            }
            networks.extend(private_ranges().filter(|range| !networks.contains(range)).collect::<Vec<_>>());
            continue;
        }
        let network = network(token, &written)?;
        if networks.contains(&network) {
            return Err(twice(option, token));
        }
        if network.is_everybody() && option.name.text != "deny" {
            let message = format!("with `{written}` every client may say who it is");
            cx.problems.push(
                Problem::warning("trusts-everybody", &token.place, message)
                    .help("name the proxies in front, or their networks"),
            );
        }
        networks.push(network);
    }
    Ok(networks)
}

fn twice(option: &Directive, token: &Token) -> Box<Problem> {
    let message = format!("`{}` has `{}` already", option.name.text, token.text);
    Problem::error("duplicate-option", &token.place, message).help("take it away")
}

fn private_ranges() -> impl Iterator<Item = Network> {
    PRIVATE_RANGES.iter().filter_map(|(address, bits)| Network::new(address.parse().ok()?, *bits))
}

fn network(token: &Token, written: &str) -> Result<Network, Box<Problem>> {
    let wrong = |message: String| Problem::error("arguments", &token.place, message);
    let (before, bits) = match written.split_once('/') {
        Some((before, bits)) => (before, Some(bits)),
        None => (written, None),
    };
    let Ok(address) = before.parse::<IpAddr>() else {
        let problem = wrong(format!("`{written}` is no address and no network"));
        return Err(match nearest(written, [PRIVATE]) {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem.help(format!("write `10.0.0.5`, `10.0.0.0/8`, `fd00::/8` or `{PRIVATE}`")),
        });
    };
    let width = if address.is_ipv4() { 32 } else { 128 };
    let is_number = |bits: &&str| bits.bytes().all(|byte| byte.is_ascii_digit());
    let read = match bits {
        None => Some(width),
        Some(bits) => Some(bits).filter(is_number).and_then(|bits| bits.parse().ok()),
    };
    let Some(network) = read.and_then(|bits| Network::new(address, bits)) else {
        let bits = bits.unwrap_or_default();
        return Err(wrong(format!("`{bits}` is no length of a network's beginning")).help(format!(
            "`{before}` has {width} bits: write `/{width}` for this address alone, less for more"
        )));
    };
    if network.address() != address.to_canonical() {
        return Err(wrong(format!(
            "`{written}` is an address within `{network}`, and not the network itself"
        ))
        .help(format!("write `{network}` for all of it, `{before}` for this address alone")));
    }
    Ok(network)
}
