//! A network: addresses with the same beginning.
//!
//! Compares numbers and nothing else: how one is written is for `directives/app/proxies.rs`.

use std::fmt;
use std::net::IpAddr;

/// The addresses that begin as this one does. Nothing stands behind the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// The network in which an address is, whose beginning has so many bits. An IPv4 address written as an IPv6
    /// one (RFC 4291 section 2.5.5.2) is one of IPv4. `None` where the address has fewer bits.
    pub fn new(address: IpAddr, bits: u8) -> Option<Self> {
        if bits > width(address) {
            return None;
        }
        let canonical = address.to_canonical();
        let left_out = width(address) - width(canonical);
        // Less than the whole of what says "IPv4": no network of IPv4, and never a client's.
        let (address, bits) = bits.checked_sub(left_out).map_or((address, bits), |bits| (canonical, bits));
        Some(Self { address: beginning(address, bits), bits })
    }

    /// Whether an address is one of these. `address` is canonical: an IPv4 one is not written as IPv6.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => {
                beginning(address, self.bits) == self.address
            }
            _ => false,
        }
    }

    /// The first of its addresses.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Whether every address of its kind is in it.
    pub fn is_everybody(&self) -> bool {
        self.bits == 0
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.bits)
    }
}

/// Bits of an address.
fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address with zeros behind its first bits.
fn beginning(address: IpAddr, bits: u8) -> IpAddr {
    let rest = u32::from(width(address).saturating_sub(bits));
    match address {
        // A shift by the whole width is none in Rust.
        IpAddr::V4(v4) => IpAddr::V4((v4.to_bits() & u32::MAX.checked_shl(rest).unwrap_or(0)).into()),
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & u128::MAX.checked_shl(rest).unwrap_or(0)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(address: &str, bits: u8) -> Option<Network> {
        Network::new(address.parse().unwrap(), bits)
    }

    #[test]
    fn a_network_holds_the_addresses_that_begin_as_it_does() {
        for (address, bits, inside, outside) in [
            ("10.0.0.0", 8, "10.255.0.1", "11.0.0.0"),
            ("172.16.0.0", 12, "172.31.255.255", "172.32.0.0"),
            ("192.0.2.7", 32, "192.0.2.7", "192.0.2.6"),
            ("0.0.0.0", 0, "203.0.113.1", "::1"),
            ("fd00::", 8, "fdff::1", "fc00::1"),
            ("::1", 128, "::1", "::2"),
            ("::", 0, "2001:db8::1", "10.0.0.1"),
            ("::ffff:10.0.0.0", 104, "10.1.2.3", "11.0.0.0"),
        ] {
            let network = network(address, bits).unwrap();
            assert!(network.contains(inside.parse().unwrap()), "{network} {inside}");
            assert!(!network.contains(outside.parse().unwrap()), "{network} {outside}");
        }
    }

    #[test]
    fn a_beginning_has_no_more_bits_than_the_address_and_nothing_behind_it() {
        assert_eq!(network("10.0.0.0", 33), None);
        assert_eq!(network("::", 129), None);
        assert_eq!(network("10.1.2.3", 8).unwrap().to_string(), "10.0.0.0/8");
        assert_eq!(network("::ffff:10.1.2.3", 128).unwrap().to_string(), "10.1.2.3/32");
    }
}
