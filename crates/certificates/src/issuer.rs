//! The interface of issuers of certificates.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

pub use onehop_config::checked::tls::KeyType;

/// A certificate chain and its private key, both as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// The certificate, then its issuers, without the root.
    pub chain: String,
    /// The private key (PKCS #8).
    pub key: String,
}

impl std::fmt::Debug for Pem {
    /// The key is a secret, in logs too.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Pem").field("chain", &self.chain).finish_non_exhaustive()
    }
}

/// A certificate that is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CertificateOrder {
    /// A DNS name in lower case (with `*` as its first label for a wildcard), or an IP address.
    pub name: String,
    /// Its key.
    pub key_type: KeyType,
    /// The certificate that this one replaces, as PEM (RFC 9773 section 5).
    pub replaces: Option<String>,
}

/// Why there is no certificate, for a person: the cause and the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueError {
    /// The cause and the next step, complete.
    pub message: String,
    /// The pause that the issuer asks for (`Retry-After`).
    pub retry_after: Option<Duration>,
}

/// When a certificate is to be renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenewalWindow {
    /// Its start.
    pub from: SystemTime,
    /// Its end.
    pub until: SystemTime,
    /// Time until the issuer is asked again.
    pub look_again_in: Duration,
}

/// Why a certificate is revoked (RFC 5280 section 5.3.1), of the reasons that public issuers take from its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevocationReason {
    /// None is given.
    Unspecified,
    /// Others may have the private key.
    KeyCompromise,
    /// Another certificate replaces it.
    Superseded,
    /// Its names are not served any more.
    CessationOfOperation,
}

impl RevocationReason {
    /// Every reason, with its name for people.
    pub const ALL: [(&'static str, Self); 4] = [
        ("unspecified", Self::Unspecified),
        ("key-compromise", Self::KeyCompromise),
        ("superseded", Self::Superseded),
        ("cessation-of-operation", Self::CessationOfOperation),
    ];

    /// The reason with this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, reason)| reason)
    }
}

/// A future on the keeper's thread.
pub type Issuing<'a, T> = Pin<Box<dyn Future<Output = Result<T, IssueError>> + Send + 'a>>;

/// An issuer of certificates: the local authority, or an ACME server.
pub trait Issuer: Send + Sync {
    /// The issuer's folder in the store, as Caddy calls it: `local`, `acme-v02.api.letsencrypt.org-directory`.
    fn folder(&self) -> &str;

    /// Whether an order waits for answers of others. Without a network it is carried out at once.
    fn needs_network(&self) -> bool {
        true
    }

    /// Obtains a certificate. Verifies that it is for the name and the key before it returns it.
    fn issue<'a>(&'a self, order: &'a CertificateOrder) -> Issuing<'a, Pem>;

    /// When the issuer wants this certificate (PEM) renewed (RFC 9773); `None` leaves it to its lifetime.
    fn renewal_window<'a>(&'a self, _chain: &'a str) -> Issuing<'a, Option<RenewalWindow>> {
        Box::pin(async { Ok(None) })
    }

    /// Revokes a certificate (PEM) that it has issued. A certificate that is revoked already is no error.
    fn revoke<'a>(&'a self, _chain: &'a str, _reason: RevocationReason) -> Issuing<'a, ()> {
        Box::pin(async {
            let folder = self.folder();
            let message = format!(
                "the issuer `{folder}` cannot revoke certificates: remove the name from the configuration, and the \
                 certificate is not served any more"
            );
            Err(IssueError { message, retry_after: None })
        })
    }

    /// Removes challenges left behind by orders that were cancelled (their futures were dropped).
    fn remove_leftovers<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async {})
    }
}
