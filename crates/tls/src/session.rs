//! What a handshake has negotiated, for requests to see.

use onehop_config::checked::tls::ClientAuthMode;
use onehop_message::tls_session::TlsSession;
use rustls::{HandshakeKind, ProtocolVersion, ServerConnection};

use crate::client_certificate;
use crate::policy::Policy;

impl Policy {
    /// What was negotiated under this policy on a connection whose handshake is over.
    pub fn session(&self, connection: &ServerConnection) -> TlsSession {
        let suite = connection.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str());
        let protocol = connection.alpn_protocol().unwrap_or_default();
        // Of a resumed session it is the one that was shown with the first handshake.
        let client = connection.peer_certificates().and_then(<[_]>::first);
        let is_verified = self.client_auth.is_some_and(ClientAuthMode::verifies);
        TlsSession {
            version: match connection.protocol_version() {
                Some(ProtocolVersion::TLSv1_3) => "tls1.3",
                Some(ProtocolVersion::TLSv1_2) => "tls1.2",
                _ => "unknown",
            },
            // rustls writes those of TLS 1.3 as TLS13_AES_….
            cipher_suite: suite.unwrap_or_default().replacen("TLS13_", "TLS_", 1),
            is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            protocol: String::from_utf8_lossy(protocol).into_owned(),
            server_name: connection.server_name().unwrap_or_default().to_owned(),
            client: client.map(|certificate| client_certificate::read(certificate, is_verified)),
        }
    }
}
