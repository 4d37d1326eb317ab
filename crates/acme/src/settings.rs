//! What an operator says about an ACME server.

use std::fmt;
use std::time::Duration;

use rustls::pki_types::CertificateDer;

use crate::challenge::ChallengeKind;

/// One ACME server and how to obtain certificates from it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The URL of its directory (RFC 8555 section 7.1.1), `https:`.
    pub directory: String,
    /// Roots that its HTTPS certificate is verified by, for private issuers. Without any, the system's.
    pub trusted_roots: Vec<CertificateDer<'static>>,
    /// Where the issuer can reach the operator.
    pub email: Option<String>,
    /// The customer account that the ACME account belongs to, where the issuer wants one.
    pub external_account: Option<ExternalAccount>,
    /// The URL that makes such a customer account from the email address, where none is there: ZeroSSL's.
    pub external_account_from: Option<String>,
    /// The profile of the certificates (`shortlived`), from those that the directory lists.
    pub profile: Option<String>,
    /// The operator agrees to the issuer's terms of service. Most issuers make no account without.
    pub accept_terms: bool,
    /// The kinds of challenges that can be answered, in order of preference. The next one is tried when one fails.
    pub challenges: Vec<ChallengeKind>,
    /// Why other kinds are not tried, for a person.
    pub not_tried: Vec<String>,
    /// How long one order may take, with all kinds of challenges that are tried.
    pub deadline: Duration,
}

/// A customer account at an issuer (external account binding, RFC 8555 section 7.3.4).
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalAccount {
    /// The key's identifier.
    pub key_id: String,
    /// The key, in base64url as issuers show it. A secret.
    pub hmac_key: String,
}

impl fmt::Debug for ExternalAccount {
    /// The key is a secret, in logs too.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ExternalAccount").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

/// Keeps the credentials of the account at one ACME server, and notes DNS records that are to be removed. The credentials are
/// a secret: JSON with the account's private key.
pub trait AccountStore: Send + Sync {
    /// The credentials as they were saved last; `None` if there are none.
    ///
    /// # Errors
    /// Says for a person why they cannot be read. No account is created then.
    fn load(&self) -> Result<Option<String>, String>;

    /// Replaces the credentials.
    ///
    /// # Errors
    /// Says for a person why they cannot be written. Nothing is ordered then, because each restart would create
    /// another account.
    fn save(&self, credentials: &str) -> Result<(), String>;

    /// Notes the DNS record (name and text) that an order is about to set for the certificate of this name; `None` once the
    /// record is removed. A record that cannot be noted stays in the zone if the server is killed during the order.
    fn note_record(&self, _certificate: &str, _record: Option<(&str, &str)>) {}

    /// The record that is noted for the certificate of this name: one that an order before has not removed.
    fn noted_record(&self, _certificate: &str) -> Option<(String, String)> {
        None
    }
}
