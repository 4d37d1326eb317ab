//! Settings of certificates in the global block: defaults for sites that do not override them.

use crate::checked::tls::{AcmeIssuer, Authority, CertificateIssuer, KeyType};

/// The part of a certificate's life that is left when it is renewed: certmagic's.
const RENEWAL_RATIO: f64 = 1.0 / 3.0;

/// Settings of certificates in the global block.
#[derive(Debug, Clone)]
pub(crate) struct Certificates {
    /// `cert_issuer`, `local_certs`.
    pub(crate) issuers: Vec<CertificateIssuer>,
    /// `email`, `acme_ca` and others.
    pub(crate) acme: AcmeIssuer,
    pub(crate) key_type: KeyType,
    pub(crate) renewal_ratio: f64,
    /// `pki`
    pub(crate) authorities: Vec<Authority>,
}

impl Default for Certificates {
    fn default() -> Self {
        Self {
            issuers: Vec::new(),
            acme: AcmeIssuer::default(),
            key_type: KeyType::default(),
            renewal_ratio: RENEWAL_RATIO,
            authorities: Vec::new(),
        }
    }
}
