//! `listener_wrappers { proxy_protocol }`: who may say, before the first byte of a connection, whose it is.

use std::net::IpAddr;
use std::time::Duration;

use super::Network;

/// Whose header of the PROXY protocol counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyProtocol {
    /// How long a connection waits for its header.
    pub timeout: Duration,
    /// Peers that are believed.
    pub allow: Vec<Network>,
    /// Peers that may send no header, whatever `allow` says.
    pub deny: Vec<Network>,
    /// What holds for all others.
    pub fallback: HeaderPolicy,
}

/// What becomes of a peer's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderPolicy {
    /// It is read and not believed.
    Ignore,
    /// It is believed, where there is one.
    Use,
    /// The connection ends where there is one.
    Reject,
    /// It is believed, and the connection ends where there is none.
    Require,
    /// Nothing is read: what the peer sends belongs to its request.
    Skip,
}

impl ProxyProtocol {
    /// What holds for a peer; one of a Unix socket is let in by its mode and believed. The address is canonical: an IPv4 one is
    /// not written as IPv6.
    pub fn policy(&self, peer: Option<IpAddr>) -> HeaderPolicy {
        let Some(peer) = peer else { return HeaderPolicy::Use };
        let is_among = |networks: &[Network]| networks.iter().any(|network| network.contains(peer));
        if is_among(&self.deny) {
            HeaderPolicy::Reject
        } else if is_among(&self.allow) {
            HeaderPolicy::Use
        } else {
            self.fallback
        }
    }
}

impl HeaderPolicy {
    /// Whether a header says whose connection it is.
    pub fn believes(self) -> bool {
        matches!(self, Self::Use | Self::Require)
    }
}
