//! What a client offers in its first message, and what it trusts.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Resumption, Tls12ClientSessionValue,
    Tls13ClientSessionValue, WebPkiServerVerifier,
};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version;
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, NamedGroup, RootCertStore, SignatureScheme,
    SupportedProtocolVersion,
};

use super::Identity;

/// Versions of a client without TLS 1.3.
pub const TLS12: &[&SupportedProtocolVersion] = &[&version::TLS12];
/// Versions of a client without TLS 1.2.
pub const TLS13: &[&SupportedProtocolVersion] = &[&version::TLS13];

/// Signatures of a client that knows RSA alone.
pub const RSA_ONLY: &[SignatureScheme] = &[
    SignatureScheme::RSA_PSS_SHA512,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::RSA_PKCS1_SHA512,
    SignatureScheme::RSA_PKCS1_SHA384,
    SignatureScheme::RSA_PKCS1_SHA256,
];
/// Signatures of a client that knows ECDSA alone.
pub const ECDSA_ONLY: &[SignatureScheme] =
    &[SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::ECDSA_NISTP384_SHA384];

/// What a client offers and trusts.
#[derive(Clone, Default)]
pub struct Offer {
    /// Authorities that the server's certificate may be of.
    pub roots: Vec<CertificateDer<'static>>,
    /// Empty offers all.
    pub versions: Vec<&'static SupportedProtocolVersion>,
    /// Protocols; empty offers none.
    pub protocols: Vec<&'static str>,
    /// What the client shows where it is asked.
    pub identity: Option<Identity>,
    /// Signatures that the client can verify; empty means the usual ones.
    pub signatures: Vec<SignatureScheme>,
    /// Names of cipher suites that the client offers, in IANA's spelling, contain this text.
    pub suites: Option<&'static str>,
    /// Where sessions are kept; `None` keeps them by name.
    pub sessions: Option<Arc<OneStore>>,
}

/// Sessions of all names as those of one: a client that tries a ticket at another site than the one it is from.
#[derive(Debug)]
pub struct OneStore(ClientSessionMemoryCache);

impl Default for OneStore {
    fn default() -> OneStore {
        OneStore(ClientSessionMemoryCache::new(32))
    }
}

fn the_name() -> ServerName<'static> {
    ServerName::try_from("one.name").expect("a name")
}

impl ClientSessionStore for OneStore {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.0.set_kx_hint(the_name(), group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.0.kx_hint(&the_name())
    }

    fn set_tls12_session(&self, _: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.0.set_tls12_session(the_name(), session);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.0.tls12_session(&the_name())
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.0.remove_tls12_session(&the_name());
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.0.insert_tls13_ticket(the_name(), ticket);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0.take_tls13_ticket(&the_name())
    }
}

impl Offer {
    /// The usual offer of a client that trusts these.
    pub fn trusting(roots: &[CertificateDer<'static>]) -> Offer {
        Offer { roots: roots.to_vec(), ..Offer::default() }
    }

    pub(super) fn into_config(self) -> ClientConfig {
        let mut provider = default_provider();
        if let Some(text) = self.suites {
            provider
                .cipher_suites
                .retain(|suite| suite.suite().as_str().is_some_and(|name| name.contains(text)));
        }
        let provider = Arc::new(provider);
        let versions = if self.versions.is_empty() { rustls::ALL_VERSIONS.to_vec() } else { self.versions };
        let mut roots = RootCertStore::empty();
        for root in self.roots {
            roots.add(root).expect("a root");
        }
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let usual = usual.build().expect("at least one root");
        let verifier = Verifier { usual, signatures: self.signatures };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .expect("versions that the provider has")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match self.identity {
            Some(identity) => {
                let (chain, key) = (identity.chain.clone(), identity.key());
                builder.with_client_auth_cert(chain, key).expect("a certificate and its key")
            }
            None => builder.with_no_client_auth(),
        };
        if let Some(sessions) = self.sessions {
            config.resumption = Resumption::store(sessions);
        }
        config.alpn_protocols = self.protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        config
    }
}

/// Verifies as usual; it only says that it could verify less.
#[derive(Debug)]
struct Verifier {
    usual: Arc<WebPkiServerVerifier>,
    signatures: Vec<SignatureScheme>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.usual.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        if self.signatures.is_empty() {
            self.usual.supported_verify_schemes()
        } else {
            self.signatures.clone()
        }
    }
}
