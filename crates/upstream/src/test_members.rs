//! Members for tests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::member::Member;
use crate::peer::{Endpoint, Peer, PeerSettings};

/// An upstream at `127.0.0.1:8000` and the following ports.
pub(crate) fn member(number: usize) -> Arc<Member> {
    let address = SocketAddr::from(([127, 0, 0, 1], 8000 + u16::try_from(number).unwrap()));
    let settings = PeerSettings { dial_timeout: Duration::from_secs(3), ..PeerSettings::default() };
    Member::new(number, Peer::new(address.to_string(), Endpoint::Address(address), settings))
}
