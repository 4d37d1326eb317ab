//! What an issuer of certificates does.

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
    /// How long the issuer wants to be left alone.
    pub retry_after: Option<Duration>,
}

/// When a certificate is to be renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenewalWindow {
    /// From then on.
    pub from: SystemTime,
    /// Until then.
    pub until: SystemTime,
    /// When to look again.
    pub look_again_in: Duration,
}

/// A future on the thread that looks after certificates.
pub type Issuing<'a, T> = Pin<Box<dyn Future<Output = Result<T, IssueError>> + Send + 'a>>;

/// Something that issues certificates: the local authority, or an ACME server.
pub trait Issuer: Send + Sync {
    /// The issuer's folder in the store, as Caddy calls it: `local`, `acme-v02.api.letsencrypt.org-directory`.
    fn folder(&self) -> &str;

    /// Obtains a certificate; it is verified to be for the name and the key before it is returned.
    fn issue<'a>(&'a self, order: &'a CertificateOrder) -> Issuing<'a, Pem>;

    /// When the issuer wants this certificate (PEM) renewed (RFC 9773); `None` leaves it to its lifetime.
    fn renewal_window<'a>(&'a self, _chain: &'a str) -> Issuing<'a, Option<RenewalWindow>> {
        Box::pin(async { Ok(None) })
    }

    /// Removes what orders have left that were given up: their futures were dropped.
    fn remove_leftovers<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async {})
    }
}
