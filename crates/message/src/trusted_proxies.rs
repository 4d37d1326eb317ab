//! `trusted_proxies`: whose word counts about who the client is.
//!
//! Decides for one request by its connection alone, and reads what such a proxy says. Changes nothing of what is
//! passed on: that is [`crate::forwarding`]. The connection's own address is never replaced.

use std::net::{IpAddr, SocketAddr};

use onehop_config::checked::Network;
use onehop_http1::RequestHead;

use crate::forwarding;
use crate::origin::Origin;

/// How far one request's peer is believed.
#[derive(Clone, Copy)]
pub struct Trust<'a> {
    /// Of a peer that is one of them: all who are.
    networks: Option<&'a [Network]>,
}

impl<'a> Trust<'a> {
    /// What holds for requests that come from there. Whoever may open a Unix socket stands on this machine and
    /// is let in by its mode: a peer like any other of the list, where there is one.
    pub fn of(networks: &'a [Network], origin: &Origin) -> Self {
        let is_trusted = !networks.is_empty()
            && origin.peer.is_none_or(|peer| is_among(networks, forwarding::canonical(peer).ip()));
        Self { networks: is_trusted.then_some(networks) }
    }

    /// Whether the fields that say who the client is are passed on.
    pub fn keeps_fields(self) -> bool {
        self.networks.is_some()
    }

    /// The client's address: the last one of `X-Forwarded-For` that is no such proxy's own, because each of them
    /// has appended whom it saw, and what stands before may be anybody's. So may be what stands before a member that is
    /// no address: there the walk ends. Otherwise the peer's.
    pub fn client(self, head: &RequestHead, origin: &Origin) -> Option<IpAddr> {
        let peer = origin.peer.map(|peer| forwarding::canonical(peer).ip());
        let Some(networks) = self.networks else { return peer };
        let lines = forwarding::forwarded(head, b"X-Forwarded-For").rev();
        let members = lines.flat_map(|line| line.rsplit(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
        // RFC 9110 section 5.6.1.2: an empty member is none.
        let mut addresses = members.filter(|member| !member.is_empty()).map_while(address);
        addresses.find(|address| !is_among(networks, *address)).or(peer)
    }

    /// Whether the client speaks over an encrypted connection, here or to the proxy.
    pub fn is_encrypted(self, head: &RequestHead, origin: &Origin) -> bool {
        let says_so = || {
            // Of several the first, which is the client's own hop, as frameworks read it.
            let first = forwarding::forwarded(head, b"X-Forwarded-Proto").next().unwrap_or_default();
            let scheme = first.split(|byte| *byte == b',').next().unwrap_or_default();
            scheme.trim_ascii().eq_ignore_ascii_case(b"https")
        };
        origin.tls || (self.keeps_fields() && says_so())
    }
}

fn is_among(networks: &[Network], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(address))
}

/// One member of `X-Forwarded-For`; some write a port behind it.
fn address(member: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(member).ok()?.trim_ascii();
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    bare.parse().ok().or_else(with_port).map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_addresses_with_and_without_a_port() {
        for (member, expected) in [
            (" 192.0.2.7 ", Some("192.0.2.7")),
            ("192.0.2.7:4711", Some("192.0.2.7")),
            ("2001:db8::1", Some("2001:db8::1")),
            ("[2001:db8::1]", Some("2001:db8::1")),
            ("[2001:db8::1]:443", Some("2001:db8::1")),
            ("::ffff:192.0.2.7", Some("192.0.2.7")),
            ("unknown", None),
            ("", None),
            ("192.0.2", None),
        ] {
            let expected = expected.map(|text| text.parse::<IpAddr>().unwrap());
            assert_eq!(address(member.as_bytes()), expected, "{member}");
        }
        assert_eq!(address(b"\xff"), None);
    }

    #[test]
    fn a_peer_is_trusted_by_its_network_and_behind_a_unix_socket_where_anybody_is() {
        let networks = [Network::new("10.0.0.0".parse().unwrap(), 8).unwrap()];
        let is_trusted = |networks: &[Network], peer: Option<&str>| {
            let peer = peer.map(|peer| SocketAddr::new(peer.parse().unwrap(), 4711));
            Trust::of(networks, &Origin::plain(peer, 0)).keeps_fields()
        };
        for (peer, expected) in [
            (Some("10.1.2.3"), true),
            (Some("::ffff:10.1.2.3"), true),
            (Some("127.0.0.1"), false),
            (Some("::1"), false),
            (None, true),
        ] {
            assert_eq!(is_trusted(&networks, peer), expected, "{peer:?}");
            assert!(!is_trusted(&[], peer), "{peer:?} without the option");
        }
    }
}
