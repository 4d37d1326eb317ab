//! `listener_wrappers { proxy_protocol }`: which peers may send the client's address ahead of the connection's first byte.

use std::net::IpAddr;
use std::time::Duration;

use super::Network;

/// How headers of the PROXY protocol are treated, by the peer that sends them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyProtocol {
    /// How long a connection waits for its header.
    pub timeout: Duration,
    /// Peers whose PROXY headers are accepted as true.
    pub allow: Vec<Network>,
    /// Peers that may send no header, whatever `allow` says.
    pub deny: Vec<Network>,
    /// The policy for all other peers.
    pub fallback: HeaderPolicy,
}

/// How a peer's header is treated.
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
    /// The policy for a peer. A peer on a Unix socket is always believed: the socket's mode decides which peers connect. `peer` is
    /// canonical, never an IPv4 address mapped into IPv6.
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
    /// Whether the address in a header replaces that of the peer.
    pub fn believes(self) -> bool {
        matches!(self, Self::Use | Self::Require)
    }
}
