//! What a request is told apart by where a policy hashes: its peer, its client, its URI, a parameter, a field.
//!
//! Byte for byte what Caddy hashes, so that the same upstream comes out.

use std::borrow::Cow;
use std::io::Write;
use std::net::IpAddr;

use onehop_config::checked::Network;
use onehop_message::request::Request;
use onehop_message::trusted_proxies::Trust;
use onehop_message::uri::query_values;

/// The text of an address; what Go calls the peer of a Unix socket where there is none.
type Address = Vec<u8>;

/// The peer's address.
pub(super) fn peer(request: &Request<'_>) -> Address {
    text(request.origin.peer.map(|peer| peer.ip().to_canonical()))
}

/// The client's, as trusted proxies tell it.
pub(super) fn client(request: &Request<'_>, trusted: &[Network]) -> Address {
    text(Trust::of(trusted, &request.origin).client(&request.head, &request.origin))
}

/// Path and query as the routes have made them.
pub(super) fn uri<'t>(request: &'t Request<'_>) -> Cow<'t, [u8]> {
    match &request.query {
        None => Cow::Borrowed(request.path.sent()),
        Some(query) => Cow::Owned([request.path.sent(), b"?", &**query].concat()),
    }
}

/// All values of a parameter: with the first one alone a client could choose its upstream by one and mean another.
pub(super) fn query(request: &Request<'_>, name: &str) -> Option<Vec<u8>> {
    let values = query_values(request.query.as_deref().unwrap_or_default(), name.as_bytes());
    let all = values.collect::<Vec<_>>().join(&b","[..]);
    (!all.is_empty()).then_some(all)
}

/// The first value of a field.
pub(super) fn header<'t>(request: &'t Request<'_>, name: &str) -> Option<&'t [u8]> {
    let value = if name == "host" { request.head.host() } else { request.head.find(name) };
    value.filter(|value| !value.is_empty())
}

fn text(address: Option<IpAddr>) -> Address {
    let Some(address) = address else { return b"@".to_vec() };
    let mut text = Vec::with_capacity(40);
    // Writing to a vector does not fail.
    let _ = write!(text, "{address}");
    text
}
