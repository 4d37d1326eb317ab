//! `trusted_proxies`: whose word is taken for who the client is.
//!
//! Knows networks and how they are written; what is done with them is the server's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::check::Context;
use crate::check::template::fixed;
use crate::checked::Network;
use crate::directives::{no_block, wrong_arguments};
use crate::problem::Problem;
use crate::syntax::{Line, Token};

const USAGE: &str = "trusted_proxies private_ranges | <address>[/<bits>]…";
/// What Caddy means by `private_ranges`.
const PRIVATE_RANGES: [Network; 6] = [
    v4([192, 168, 0, 0], 16),
    v4([172, 16, 0, 0], 12),
    v4([10, 0, 0, 0], 8),
    v4([127, 0, 0, 0], 8),
    Network { address: IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0)), prefix: 8 },
    Network { address: IpAddr::V6(Ipv6Addr::LOCALHOST), prefix: 128 },
];

/// `trusted_proxies private_ranges | <address>[/<bits>]…`
pub(super) fn networks(cx: &Context<'_>, option: &Line) -> Result<Vec<Network>, Box<Problem>> {
    no_block(option)?;
    if option.args.is_empty() {
        return Err(wrong_arguments(option, USAGE));
    }
    let mut networks = Vec::new();
    for token in &option.args {
        match fixed(cx.source, token, "a network")?.as_str() {
            "private_ranges" => networks.extend(PRIVATE_RANGES),
            written => networks.push(network(written).ok_or_else(|| wrong(token, written))?),
        }
    }
    Ok(networks)
}

const fn v4([a, b, c, d]: [u8; 4], prefix: u8) -> Network {
    Network { address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
}

fn network(written: &str) -> Option<Network> {
    let (address, prefix) = match written.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix.parse::<u8>().ok()?)),
        None => (written, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let prefix_max = if address.is_ipv4() { 32 } else { 128 };
    let prefix = prefix.unwrap_or(prefix_max);
    (prefix <= prefix_max).then_some(Network { address, prefix })
}

fn wrong(token: &Token, written: &str) -> Box<Problem> {
    Problem::error("arguments", &token.place, format!("`{written}` is no network"))
        .help("write `private_ranges`, or addresses such as `10.1.2.3` and `10.0.0.0/8`")
}
