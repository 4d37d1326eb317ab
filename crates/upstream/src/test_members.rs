//! Members for tests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use onehop_config::checked::proxy::PassiveHealth;

use crate::member::Member;
use crate::peer::{Endpoint, Peer, PeerSettings};

/// An upstream at `127.0.0.1:8000` and the following ports.
pub(crate) fn member(number: usize) -> Arc<Member> {
    let port = 8000 + u16::try_from(number).unwrap();
    let endpoint = Endpoint::Address(SocketAddr::from(([127, 0, 0, 1], port)));
    let settings = PeerSettings {
        tls: None,
        dial_timeout: Duration::from_secs(3),
        fallback_delay: None,
        probe_interval: None,
        idle_timeout: Duration::ZERO,
        idle_max: 0,
        connections_min: 0,
        connections_max: None,
        queue: (0, Duration::ZERO),
    };
    Member::new(number, Peer::new(format!("127.0.0.1:{port}"), endpoint, settings))
}

/// Nothing makes an upstream bad.
pub(crate) fn passive() -> PassiveHealth {
    PassiveHealth {
        fail_duration: None,
        max_fails: 1,
        unhealthy_status: Vec::new(),
        unhealthy_latency: None,
        unhealthy_request_count: None,
    }
}
