//! How certificates of clients are verified.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use onehop_config::checked::tls::{ClientAuth, ClientAuthMode, TrustedCertificate};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};

use crate::limits::PEM_FILE_BYTES_MAX;

/// Certificates that `client_auth` names, as they were read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trusted {
    issuers: Vec<CertificateDer<'static>>,
    leaves: Vec<CertificateDer<'static>>,
}

impl Trusted {
    /// Reads the files. The error is for a person.
    pub fn read(settings: &ClientAuth) -> Result<Self, String> {
        Ok(Self {
            issuers: certificates(&settings.trusted_issuers)?,
            leaves: certificates(&settings.trusted_leaves)?,
        })
    }
}

fn certificates(trusted: &[TrustedCertificate]) -> Result<Vec<CertificateDer<'static>>, String> {
    let mut all = Vec::new();
    for one in trusted {
        let path = match one {
            TrustedCertificate::File(path) => path,
            TrustedCertificate::Der(der) => {
                all.push(CertificateDer::from(der.clone()));
                continue;
            }
        };
        let content = read_pem(path, "certificates to trust")?;
        let before = all.len();
        for certificate in CertificateDer::pem_slice_iter(&content) {
            all.push(certificate.map_err(|error| format!("{} is no PEM: {error}", path.display()))?);
        }
        if all.len() == before {
            let path = path.display();
            return Err(format!("{path} has no certificate in PEM, so that no client would be trusted"));
        }
    }
    Ok(all)
}

/// The content of a file in PEM. The error is for a person; `what` is what it should hold.
pub fn read_pem(path: &Path, what: &str) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("cannot read {what} from {}: {error}", path.display());
    let file = File::open(path).map_err(failed)?;
    let mut content = Vec::new();
    file.take(PEM_FILE_BYTES_MAX + 1).read_to_end(&mut content).map_err(failed)?;
    if content.len() as u64 > PEM_FILE_BYTES_MAX {
        return Err(format!(
            "{} has more than {PEM_FILE_BYTES_MAX} bytes, too many for {what}",
            path.display()
        ));
    }
    Ok(content)
}

/// What verifies the clients of a site.
pub(crate) fn verifier(
    mode: ClientAuthMode,
    trusted: &Trusted,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    // As in Caddy, named certificates of clients are needed in every mode.
    let is_mandatory = matches!(mode, ClientAuthMode::Require | ClientAuthMode::RequireAndVerify)
        || !trusted.leaves.is_empty();
    let verifies = mode.verifies();
    let mut chains = None;
    if verifies && !trusted.issuers.is_empty() {
        let mut roots = RootCertStore::empty();
        for issuer in &trusted.issuers {
            let added = roots.add(issuer.clone());
            added.map_err(|error| format!("a certificate of `client_auth` cannot be trusted: {error}"))?;
        }
        let built =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
        chains = Some(built.map_err(|error| format!("`client_auth`: {error}"))?);
    }
    let leaves = trusted.leaves.clone();
    Ok(Arc::new(Verifier { provider, is_mandatory, verifies, chains, leaves }))
}

/// Accepts a client whose certificate is from a trusted issuer or is a trusted leaf. If `client_auth` names issuers and
/// leaves, both are required (as in Caddy).
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    is_mandatory: bool,
    verifies: bool,
    chains: Option<Arc<dyn ClientCertVerifier>>,
    leaves: Vec<CertificateDer<'static>>,
}

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chains.as_ref().map_or(&[], |chains| chains.root_hint_subjects())
    }

    fn client_auth_mandatory(&self) -> bool {
        self.is_mandatory
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if let Some(chains) = &self.chains {
            chains.verify_client_cert(end_entity, intermediates, now)?;
        }
        let is_known = self.leaves.iter().any(|leaf| leaf.as_ref() == end_entity.as_ref());
        // If nothing is trusted, no client is accepted: a check must never fail open.
        let has_leaves_only = self.chains.is_none() && self.verifies;
        if (has_leaves_only || !self.leaves.is_empty()) && !is_known {
            return Err(rustls::CertificateError::ApplicationVerificationFailure.into());
        }
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
