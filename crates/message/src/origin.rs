//! Where a request came in: the peer, the listener and what TLS negotiated. Never taken from a header.

use std::net::SocketAddr;
use std::rc::Rc;

use crate::tls_session::{ClientCertificate, TlsSession};

/// What is known of a connection before its first request. Cheap to clone: once for each request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The client; `None` behind a Unix socket.
    pub peer: Option<SocketAddr>,
    /// Number of the listener.
    pub listener: usize,
    /// Whether the connection is encrypted.
    pub tls: bool,
    /// The number of the TLS policy that was negotiated; 0 without TLS.
    pub policy: u32,
    /// What else was negotiated; `None` without TLS.
    pub session: Option<Rc<TlsSession>>,
}

impl Origin {
    /// A connection without TLS.
    pub fn plain(peer: Option<SocketAddr>, listener: usize) -> Self {
        Self { peer, listener, tls: false, policy: 0, session: None }
    }

    /// The certificate of its client, if it was verified.
    pub fn verified_client(&self) -> Option<&ClientCertificate> {
        self.session.as_deref()?.verified_client()
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }
}
