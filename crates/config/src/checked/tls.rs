//! How clients' connections are encrypted, and where certificates come from.

use std::path::PathBuf;

/// What `auto_https` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AutoHttps {
    /// Certificates are obtained, and plain requests are redirected.
    #[default]
    On,
    /// No redirects.
    DisableRedirects,
    /// Redirects, but no certificates.
    DisableCertificates,
    /// Certificates are obtained also for names of which one is loaded from a file.
    IgnoreLoaded,
    /// Neither; an address without a scheme means HTTP.
    Off,
}

/// What holds for TLS on every listener.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GlobalTls {
    /// `default_sni`: the name that a client means which sends none.
    pub default_name: Option<String>,
    /// `fallback_sni`: the name whose certificate is shown where there is none for the client's.
    pub fallback_name: Option<String>,
    /// `storage file_system`: where certificates are kept, absolute; `None` is below the data directory.
    pub storage: Option<PathBuf>,
}

/// TLS of one site.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SiteTls {
    /// Certificates from files, in the order of the file.
    pub files: Vec<CertificateFiles>,
    /// Certificates that are obtained and renewed, by their issuers.
    pub managed: Vec<Managed>,
    /// `auto_https ignore_loaded_certs`: what is obtained is shown before what files hold.
    pub prefers_managed: bool,
    /// What is negotiated.
    pub policy: TlsPolicy,
}

/// A certificate and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// PEM: the certificate, then its issuers. Absolute.
    pub certificate: PathBuf,
    /// PEM. Absolute.
    pub key: PathBuf,
}

/// Certificates that are obtained and renewed.
#[derive(Debug, Clone, PartialEq)]
pub struct Managed {
    /// DNS names (the first label may be `*`) and IP addresses, each with a certificate of its own.
    pub names: Vec<String>,
    /// Only names that no certificate of the site's files is for.
    pub unless_loaded: bool,
    /// Who issues them: the next one where one fails.
    pub issuers: Vec<CertificateIssuer>,
    /// Their keys.
    pub key_type: KeyType,
    /// The part of a certificate's life that is left when it is renewed, where its issuer does not say.
    pub renewal_ratio: f64,
}

/// Who issues certificates.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CertificateIssuer {
    /// The local authority, which only clients know that trust its root.
    Local,
    /// An ACME server.
    Acme(AcmeIssuer),
}

/// An ACME server and the account there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct AcmeIssuer {
    /// The URL of its directory; `None` is Let's Encrypt.
    pub directory: Option<String>,
    /// A root certificate (PEM) that is trusted for its HTTPS, besides the system's. Absolute.
    pub trusted_root: Option<PathBuf>,
    /// The account's address.
    pub email: Option<String>,
    /// Key identifier and HMAC key of an external account (RFC 8555 section 7.3.4).
    pub external_account: Option<(String, String)>,
    /// The profile of certificates that is wanted.
    pub profile: Option<String>,
    /// No HTTP-01 challenges.
    pub disable_http: bool,
    /// No TLS-ALPN-01 challenges.
    pub disable_tls_alpn: bool,
    /// A program that sets DNS records, with its arguments: `dns exec`.
    pub dns_program: Option<Vec<String>>,
}

/// What a certificate's key signs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum KeyType {
    /// `p256`
    #[default]
    P256,
    /// `p384`
    P384,
    /// `ed25519`
    Ed25519,
    /// `rsa2048`
    Rsa2048,
    /// `rsa4096`
    Rsa4096,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TlsVersion {
    /// RFC 5246.
    Tls12,
    /// RFC 8446.
    Tls13,
}

/// What is negotiated with clients. Two sites with the same policy may be asked for on one connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TlsPolicy {
    /// The oldest version.
    pub oldest: TlsVersion,
    /// The newest version.
    pub newest: TlsVersion,
    /// Cipher suites in the order of preference, by their IANA names; none means the usual ones.
    pub ciphers: Vec<String>,
    /// Key exchange groups in the order of preference; none means the usual ones.
    pub curves: Vec<String>,
    /// What clients show.
    pub client_auth: Option<ClientAuth>,
}

impl Default for TlsPolicy {
    fn default() -> Self {
        Self {
            oldest: TlsVersion::Tls12,
            newest: TlsVersion::Tls13,
            ciphers: Vec::new(),
            curves: Vec::new(),
            client_auth: None,
        }
    }
}

/// `client_auth`: certificates of clients.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientAuth {
    /// What is wanted of them.
    pub mode: ClientAuthMode,
    /// Certificates that issue those of clients.
    pub trusted_issuers: Vec<TrustedCertificate>,
    /// Certificates of clients: only these are let in.
    pub trusted_leaves: Vec<TrustedCertificate>,
}

/// Where a certificate is that is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TrustedCertificate {
    /// A file with one or more, PEM. Absolute.
    File(PathBuf),
    /// The certificate itself, DER.
    Der(Vec<u8>),
}

/// What is wanted of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientAuthMode {
    /// A certificate is asked for and not looked at.
    Request,
    /// One is needed and not verified.
    Require,
    /// What is shown is verified.
    VerifyIfGiven,
    /// One is needed and verified.
    RequireAndVerify,
}
