//! Which certificates are trusted.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme};

/// Trusts chains that end in a known certificate, and a known certificate that a server shows itself: one that signed
/// itself is no chain for webpki where it calls itself an authority, as `openssl req -x509` has it by default.
#[derive(Debug)]
pub(super) struct Verifier {
    /// `None` trusts every certificate; that the server holds its key is verified all the same.
    chains: Option<Arc<WebPkiServerVerifier>>,
    pinned: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub(super) fn of_nothing(provider: &CryptoProvider) -> Verifier {
        Verifier { chains: None, pinned: Vec::new(), algorithms: provider.signature_verification_algorithms }
    }

    pub(super) fn of_roots(roots: RootCertStore, provider: &Arc<CryptoProvider>) -> Result<Verifier, String> {
        let chains =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
        let chains = chains.map_err(|error| error.to_string())?;
        Ok(Verifier { chains: Some(chains), ..Verifier::of_nothing(provider) })
    }

    pub(super) fn of(
        certificates: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Verifier, String> {
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone()).map_err(|error| format!("one cannot be trusted: {error}"))?;
        }
        Ok(Verifier { pinned: certificates, ..Verifier::of_roots(roots, provider)? })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chains) = &self.chains else { return Ok(ServerCertVerified::assertion()) };
        match chains.verify_server_cert(shown, between, name, ocsp, now) {
            Err(Error::InvalidCertificate(CertificateError::Other(cause)))
                if is_authority(&cause) && self.pinned.iter().any(|pinned| pinned == shown) =>
            {
                rustls::client::verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, shown, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, shown, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Whether a certificate was refused since it calls itself an authority. webpki's word for it has no type here; it looks at
/// the time before, so that an expired one ends there. Should the word change, such certificates are refused.
pub(super) fn is_authority(cause: &OtherError) -> bool {
    cause.0.to_string() == "CaUsedAsEndEntity"
}
