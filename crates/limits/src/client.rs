//! The key of a client: the network that its address is in.

use std::net::IpAddr;

/// The key of clients without an address, those of a Unix socket. ff00::/8 is multicast, so no client's network is this
/// (RFC 4291 section 2.7).
const NO_ADDRESS: u64 = u64::MAX;

/// The upper half of an IPv4 address's key. ::/8 is reserved, so no client's /64 looks like this (RFC 4291 section 2.4).
const V4: u64 = 0xffff << 32;

/// The network of a client: its IPv4 address, or the /64 of its IPv6 address, since a subscriber has at least that and
/// changes the rest (RFC 8981).
#[must_use]
pub fn network(client: Option<IpAddr>) -> u64 {
    match client.map(|client| client.to_canonical()) {
        None => NO_ADDRESS,
        Some(IpAddr::V4(v4)) => V4 | u64::from(v4.to_bits()),
        Some(IpAddr::V6(v6)) => (v6.to_bits() >> 64) as u64,
    }
}
