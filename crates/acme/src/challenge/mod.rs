//! Challenges (RFC 8555 section 8), and the solvers that answer them.

pub(crate) mod dns;
pub(crate) mod exec;
pub(crate) mod memory;
pub(crate) mod rfc2136;

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use instant_acme::{ChallengeType, KeyAuthorization};
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

use self::dns::Propagation;
use self::memory::MemoryChallenges;

/// A kind of challenge, by which the issuer verifies control of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChallengeKind {
    /// A file under `/.well-known/acme-challenge/` on port 80 (RFC 8555 section 8.3).
    Http01,
    /// A certificate for the protocol `acme-tls/1` on port 443 (RFC 8737).
    TlsAlpn01,
    /// A TXT record of the name (RFC 8555 section 8.4). The only one for wildcards.
    Dns01,
}

/// One challenge for one name, with the expected answer.
#[derive(Debug, Clone)]
pub enum Challenge {
    /// `http://{name}/.well-known/acme-challenge/{token}` has the content `key_authorization`.
    Http01 {
        /// The DNS name or IP address.
        name: String,
        /// The file's name.
        token: String,
        /// The file's content.
        key_authorization: String,
    },
    /// A TLS handshake with the protocol `acme-tls/1` shows this certificate.
    TlsAlpn01 {
        /// The DNS name or IP address.
        name: String,
        /// The certificate with the extension acmeIdentifier, and its key.
        certificate: Arc<CertifiedKey>,
    },
    /// The zone has a TXT record.
    Dns01 {
        /// The record's name: `_acme-challenge.` and the name without `*.`.
        name: String,
        /// The record's text.
        value: String,
    },
}

/// A future of a solver.
pub type Answering<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A solver: makes the answers to challenges visible to the issuer.
pub trait Challenges: Send + Sync {
    /// Presents a challenge. The issuer can validate it when this returns.
    ///
    /// # Errors
    /// Why it cannot be presented, for a person.
    fn present<'a>(&'a self, challenge: &'a Challenge) -> Answering<'a, Result<(), String>>;

    /// Removes a challenge. Called for each challenge after [`Challenges::present`], also if that failed, unless the order's
    /// future is dropped.
    fn remove<'a>(&'a self, challenge: &'a Challenge) -> Answering<'a, ()>;
}

/// All solvers of one site: a table for the web server, and what changes its zone.
pub struct Solvers {
    /// Answers HTTP-01 and TLS-ALPN-01.
    pub memory: Arc<MemoryChallenges>,
    /// Answers DNS-01.
    pub dns: Option<Arc<dyn Challenges>>,
    /// The wait until the zone's servers have a new record.
    pub propagation: Propagation,
    /// The record's name, if `_acme-challenge.…` is an alias (CNAME) of it.
    pub dns_name: Option<String>,
}

impl fmt::Display for ChallengeKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
            Self::Dns01 => "dns-01",
        })
    }
}

impl ChallengeKind {
    /// Whether this kind can prove the name: wildcards take a TXT record, and IP addresses have none (RFC 8738
    /// section 4).
    pub(crate) fn can_prove(self, name: &str) -> bool {
        match self {
            Self::Http01 | Self::TlsAlpn01 => !name.starts_with("*."),
            Self::Dns01 => name.parse::<IpAddr>().is_err(),
        }
    }

    pub(crate) fn as_type(self) -> ChallengeType {
        match self {
            Self::Http01 => ChallengeType::Http01,
            Self::TlsAlpn01 => ChallengeType::TlsAlpn01,
            Self::Dns01 => ChallengeType::Dns01,
        }
    }
}

impl Challenge {
    pub(crate) fn new(
        kind: ChallengeKind,
        name: &str,
        token: &str,
        authorization: &KeyAuthorization,
    ) -> Result<Self, String> {
        let name = name.to_owned();
        Ok(match kind {
            ChallengeKind::Http01 => {
                let (token, key_authorization) = (token.to_owned(), authorization.as_str().to_owned());
                Self::Http01 { name, token, key_authorization }
            }
            ChallengeKind::TlsAlpn01 => {
                let certificate = Arc::new(validation_certificate(&name, authorization.digest().as_ref())?);
                Self::TlsAlpn01 { name, certificate }
            }
            ChallengeKind::Dns01 => {
                let name = format!("_acme-challenge.{}", name.strip_prefix("*.").unwrap_or(&name));
                Self::Dns01 { name, value: authorization.dns_value() }
            }
        })
    }
}

impl Solvers {
    /// The record that is set for a challenge.
    fn record(&self, name: &str, value: &str) -> Challenge {
        let name = self.dns_name.as_deref().unwrap_or(name).to_owned();
        Challenge::Dns01 { name, value: value.to_owned() }
    }
}

impl Challenges for Solvers {
    fn present<'a>(&'a self, challenge: &'a Challenge) -> Answering<'a, Result<(), String>> {
        match (challenge, &self.dns) {
            (Challenge::Dns01 { name, value }, Some(dns)) => Box::pin(async move {
                let challenge = self.record(name, value);
                dns.present(&challenge).await?;
                self.propagation.wait(name, value).await
            }),
            _ => self.memory.present(challenge),
        }
    }

    fn remove<'a>(&'a self, challenge: &'a Challenge) -> Answering<'a, ()> {
        match (challenge, &self.dns) {
            (Challenge::Dns01 { name, value }, Some(dns)) => Box::pin(async move {
                let challenge = self.record(name, value);
                dns.remove(&challenge).await;
            }),
            _ => self.memory.remove(challenge),
        }
    }
}

/// The certificate of RFC 8737 section 3: self-signed, with the name and the digest in a critical extension.
fn validation_certificate(name: &str, digest: &[u8]) -> Result<CertifiedKey, String> {
    let failed =
        |error: rcgen::Error| format!("cannot make the certificate of a tls-alpn-01 challenge: {error}");
    let key = KeyPair::generate().map_err(failed)?;
    let mut params = CertificateParams::new([name.to_owned()]).map_err(failed)?;
    // rcgen panics at another length.
    if digest.len() != 32 {
        return Err(format!("a digest of SHA-256 has 32 bytes, this one has {}", digest.len()));
    }
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let certificate = params.self_signed(&key).map_err(failed)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let key = any_supported_type(&key).map_err(|error| error.to_string())?;
    Ok(CertifiedKey::new(vec![certificate.der().clone()], key))
}

#[cfg(test)]
mod tests {
    use x509_parser::extensions::{GeneralName, ParsedExtension};

    use super::*;

    #[test]
    fn a_validation_certificate_has_the_name_and_the_digest_in_a_critical_extension() {
        for (name, general) in [
            ("example.com", GeneralName::DNSName("example.com")),
            ("192.0.2.1", GeneralName::IPAddress(&[192, 0, 2, 1])),
        ] {
            let made = validation_certificate(name, &[7; 32]).unwrap();
            let (_, parsed) = x509_parser::parse_x509_certificate(&made.cert[0]).unwrap();
            let extension = parsed
                .extensions()
                .iter()
                .find(|extension| extension.oid.to_id_string() == "1.3.6.1.5.5.7.1.31");
            let extension = extension.expect("the extension acmeIdentifier");
            assert!(extension.critical);
            // An OCTET STRING of 32 bytes.
            assert_eq!(extension.value, [&[4, 32][..], &[7; 32]].concat());
            let names = parsed.extensions().iter().find_map(|extension| match extension.parsed_extension() {
                ParsedExtension::SubjectAlternativeName(names) => Some(names.general_names.clone()),
                _ => None,
            });
            assert_eq!(names, Some(vec![general]));
        }
        assert!(validation_certificate("example.com", &[7; 31]).is_err());
    }

    #[test]
    fn a_wildcard_is_proved_by_dns_alone_and_an_address_never_by_it() {
        let kinds = [ChallengeKind::Http01, ChallengeKind::TlsAlpn01, ChallengeKind::Dns01];
        for (name, expected) in [
            ("example.com", [true, true, true]),
            ("*.example.com", [false, false, true]),
            ("192.0.2.1", [true, true, false]),
            ("2001:db8::1", [true, true, false]),
        ] {
            assert_eq!(kinds.map(|kind| kind.can_prove(name)), expected, "{name}");
        }
    }
}
