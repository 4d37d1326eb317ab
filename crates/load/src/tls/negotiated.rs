//! What handshakes agreed on, counted.

use std::collections::BTreeMap;

use rustls::{ClientConnection, HandshakeKind, ProtocolVersion};

/// The handshakes of a run, those of its warm-up among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Handshakes {
    /// With a key exchange and a verified certificate.
    pub full: u64,
    /// That continued the session of an earlier one.
    pub resumed: u64,
    /// What was agreed on, and how often.
    pub parameters: BTreeMap<Parameters, u64>,
}

/// What one handshake agreed on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parameters {
    /// `TLS 1.3` or `TLS 1.2`.
    pub version: &'static str,
    /// The cipher suite, by its name at IANA.
    pub cipher_suite: String,
    /// The group of the key exchange; `None` where there was none, as in a resumed session of TLS 1.2.
    pub group: Option<&'static str>,
}

impl Handshakes {
    /// All of them.
    pub fn sum(&self) -> u64 {
        self.full + self.resumed
    }

    /// Counts one that is over.
    pub(crate) fn note(&mut self, connection: &ClientConnection) {
        match connection.handshake_kind() {
            Some(HandshakeKind::Resumed) => self.resumed += 1,
            _ => self.full += 1,
        }
        let version = match connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
            Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
            _ => "unknown",
        };
        // rustls tells the suites of TLS 1.3 apart by a prefix of its own.
        let suite = connection.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str());
        let cipher_suite = suite.unwrap_or("unknown").replacen("TLS13_", "TLS_", 1);
        let group = connection.negotiated_key_exchange_group().and_then(|group| group.name().as_str());
        *self.parameters.entry(Parameters { version, cipher_suite, group }).or_default() += 1;
    }

    /// Adds another's.
    pub fn merge(&mut self, other: &Handshakes) {
        self.full += other.full;
        self.resumed += other.resumed;
        for (parameters, count) in &other.parameters {
            *self.parameters.entry(parameters.clone()).or_default() += count;
        }
    }
}

impl std::fmt::Display for Parameters {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}, {}", self.version, self.cipher_suite)?;
        self.group.map_or(Ok(()), |group| write!(formatter, ", {group}"))
    }
}
