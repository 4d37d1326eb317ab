//! What an encrypted upstream shows: a certificate for `upstream.test`, `localhost` and 127.0.0.1 of an authority that
//! exists in these files only (its own key was thrown away; both are good until 2126).
//!
//! For tests alone: the key is public.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::TlsSettings;

/// The authority's certificate, for those who are to believe.
pub const AUTHORITY_PEM: &str = include_str!("certificates/authority.pem");

const SERVER_PEM: &[u8] = include_bytes!("certificates/server.pem");
const SERVER_KEY: &[u8] = include_bytes!("certificates/server.key");

/// Settings that show the certificate, to anybody.
///
/// # Panics
/// Where the files beside this one are broken.
pub fn tls_settings() -> TlsSettings {
    let certificates: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_slice_iter(SERVER_PEM).collect();
    let key = PrivateKeyDer::from_pem_slice(SERVER_KEY).expect("a key");
    let settings = rustls::ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions that the provider has")
        .with_no_client_auth()
        .with_single_cert(certificates.expect("certificates"), key)
        .expect("a certificate and its key");
    Arc::new(settings)
}

/// The same with these protocols (ALPN), the preferred one first; none leaves the client's offer without an answer.
///
/// # Panics
/// As [`tls_settings`].
pub fn tls_settings_offering(protocols: &[&str]) -> TlsSettings {
    let mut settings = Arc::unwrap_or_clone(tls_settings());
    settings.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    Arc::new(settings)
}
