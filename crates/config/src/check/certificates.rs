//! What the global block says of certificates, for sites that do not say it themselves.

use crate::checked::tls::{AcmeIssuer, CertificateIssuer, KeyType};

/// The part of a certificate's life that is left when it is renewed: certmagic's.
const RENEWAL_RATIO: f64 = 1.0 / 3.0;

/// What the global block says of certificates.
#[derive(Debug, Clone)]
pub(crate) struct Certificates {
    /// `cert_issuer`, `local_certs`.
    pub(crate) issuers: Vec<CertificateIssuer>,
    /// `email`, `acme_ca` and others.
    pub(crate) acme: AcmeIssuer,
    pub(crate) key_type: KeyType,
    pub(crate) renewal_ratio: f64,
}

impl Default for Certificates {
    fn default() -> Self {
        Self {
            issuers: Vec::new(),
            acme: AcmeIssuer::default(),
            key_type: KeyType::default(),
            renewal_ratio: RENEWAL_RATIO,
        }
    }
}
