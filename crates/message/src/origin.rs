//! Where a request came in: the peer and the listener. Never taken from a header.

use std::net::SocketAddr;

/// What is known of a connection before its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The peer; `None` behind a Unix socket.
    pub peer: Option<SocketAddr>,
    /// Number of the listener.
    pub listener: usize,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// The number of the TLS policy that was negotiated; 0 without TLS.
    pub policy: u32,
}

impl Origin {
    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }
}
