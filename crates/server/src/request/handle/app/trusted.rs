//! `trusted_proxies`: who the client is, where a proxy before this server may say so.
//!
//! Takes nobody's word whose address is not among those that were named.

use std::net::{IpAddr, SocketAddr};

use onehop_config::checked::Network;
use onehop_http1::{Known, RequestHead};

use crate::request::origin::Origin;

/// As applications are told of it. Without a trusted peer, that is the connection itself.
pub(super) fn client(origin: Origin, head: &RequestHead, trusted: &[Network]) -> Origin {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
    if !origin.peer.is_some_and(|peer| is_trusted(peer.ip())) {
        return origin;
    }
    // Each proxy adds who came to it at the end: what stands before the first that is not trusted may be anybody's.
    let mut client = origin.peer;
    let fields: Vec<&[u8]> = head.get_all(Known::XForwardedFor).collect();
    for word in fields.iter().rev().flat_map(|field| field.rsplit(|byte| *byte == b',')) {
        let Some(address) = address(word) else { break };
        client = Some(SocketAddr::new(address.to_canonical(), 0));
        if !is_trusted(address) {
            break;
        }
    }
    // The last word is the trusted peer's own.
    let proto = head.get_all(Known::XForwardedProto).last();
    let proto = proto.and_then(|field| field.rsplit(|byte| *byte == b',').next());
    let tls = proto.map_or(origin.tls, |word| word.trim_ascii().eq_ignore_ascii_case(b"https"));
    Origin { peer: client, tls, ..origin }
}

/// An address, with or without a port.
fn address(word: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(word.trim_ascii()).ok()?;
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use onehop_http1::{Limits, ServerCodec};

    use super::*;

    /// The client's address and whether it uses TLS, for a connection from here with these field lines.
    fn told(peer: Option<&str>, lines: &str) -> (Option<String>, bool) {
        let network = |address: [u8; 4], prefix| Network { address: address.into(), prefix };
        let trusted = [network([127, 0, 0, 0], 8), network([10, 0, 0, 0], 8)];
        let peer = peer.map(|peer| SocketAddr::new(peer.parse().expect("an address"), 4711));
        let origin = Origin { peer, listener: 0, tls: false };
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        let mut head = RequestHead::new();
        let read = ServerCodec::new(Limits::default()).read_head(text.as_bytes(), &mut head);
        assert_eq!(read, Ok(Some(text.len())), "{text}");
        let client = client(origin, &head, &trusted);
        (client.peer.map(|peer| peer.ip().to_string()), client.tls)
    }

    #[test]
    fn a_trusted_proxy_says_who_the_client_is_and_nobody_else_does() {
        let https = "X-Forwarded-Proto: https\r\n";
        for (peer, lines, expected) in [
            ("127.0.0.1", format!("X-Forwarded-For: 203.0.113.9\r\n{https}"), ("203.0.113.9", true)),
            ("::ffff:10.0.0.1", format!("X-Forwarded-For: 2001:db8::9\r\n{https}"), ("2001:db8::9", true)),
            ("8.8.8.8", format!("X-Forwarded-For: 203.0.113.9\r\n{https}"), ("8.8.8.8", false)),
            // What the client has written itself stands before what the proxies know.
            (
                "127.0.0.1",
                "X-Forwarded-For: 1.1.1.1, 203.0.113.9, 10.1.1.1\r\n".into(),
                ("203.0.113.9", false),
            ),
            (
                "127.0.0.1",
                "X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 203.0.113.9\r\n".into(),
                ("203.0.113.9", false),
            ),
            ("127.0.0.1", "X-Forwarded-For: 10.2.2.2, 10.1.1.1\r\n".into(), ("10.2.2.2", false)),
            ("127.0.0.1", "X-Forwarded-For: 1.1.1.1, nonsense\r\n".into(), ("127.0.0.1", false)),
            ("127.0.0.1", "X-Forwarded-For: [2001:db8::9]:80\r\n".into(), ("2001:db8::9", false)),
            ("127.0.0.1", "X-Forwarded-For: 203.0.113.9:80\r\n".into(), ("203.0.113.9", false)),
            ("127.0.0.1", "X-Forwarded-Proto: https, http\r\n".into(), ("127.0.0.1", false)),
            ("127.0.0.1", String::new(), ("127.0.0.1", false)),
        ] {
            let (address, tls) = told(Some(peer), &lines);
            assert_eq!((address.as_deref(), tls), (Some(expected.0), expected.1), "{peer} {lines}");
        }
        assert_eq!(told(None, https), (None, false));
    }
}
