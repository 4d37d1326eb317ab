//! How clients' connections are encrypted, and where certificates come from.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

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
    /// `on_demand_tls`: the URL that permits certificates for names that clients ask for.
    pub ask: Option<String>,
}

/// TLS of one site.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SiteTls {
    /// Certificates from files, in the order of the file.
    pub files: Vec<CertificateFiles>,
    /// Certificates that are obtained and renewed, by their issuers.
    pub managed: Vec<Managed>,
    /// `on_demand`: certificates are obtained when clients ask for their names.
    pub on_demand: Option<OnDemand>,
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

/// Certificates for names that clients ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct OnDemand {
    /// Who issues them: the next one where one fails.
    pub issuers: Vec<CertificateIssuer>,
    /// Their keys.
    pub key_type: KeyType,
    /// As in [`Managed`].
    pub renewal_ratio: f64,
}

/// Who issues certificates.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CertificateIssuer {
    /// An authority of our own, which only clients know that trust its root.
    Local(Box<LocalIssuer>),
    /// An ACME server.
    Acme(Box<AcmeIssuer>),
}

/// An authority of our own and what it issues.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LocalIssuer {
    /// The authority.
    pub authority: Authority,
    /// `lifetime`: how long its certificates are valid; `None` is the usual time.
    pub lifetime: Option<Duration>,
    /// `sign_with_root`: the root signs them, without an intermediate.
    pub signs_with_root: bool,
}

/// `ca` of `pki`: an authority of our own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Authority {
    /// Its folder in the store; `local` is the one that issues where nothing else is said.
    pub id: String,
    /// `name`: the beginning of its certificates' common names.
    pub name: Option<String>,
    /// `root_cn`: the root's common name.
    pub root_name: Option<String>,
    /// `intermediate_cn`: the intermediate's common name.
    pub intermediate_name: Option<String>,
    /// `intermediate_lifetime`: how long an intermediate is valid.
    pub intermediate_lifetime: Option<Duration>,
    /// `root`: a root in files; `None` is one that is made.
    pub root: Option<AuthorityFiles>,
    /// `intermediate`: an intermediate in files; `None` is one that is made.
    pub intermediate: Option<AuthorityFiles>,
}

/// A certificate of an authority in files (PEM), absolute.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AuthorityFiles {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key; a root whose intermediate is in files needs none.
    pub key: Option<PathBuf>,
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
    /// What sets DNS records.
    pub dns: Option<DnsProvider>,
    /// How they are set.
    pub records: DnsRecords,
}

/// What sets DNS records.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DnsProvider {
    /// A program with its arguments.
    Exec(Vec<String>),
    /// Dynamic updates of a zone (RFC 2136), signed with a shared key (RFC 8945).
    Rfc2136 {
        /// The zone's primary server: `host:port`.
        server: String,
        /// The name of the key.
        key_name: String,
        /// `hmac-sha256`, `hmac-sha384` or `hmac-sha512`.
        algorithm: String,
        /// The key itself.
        key: Vec<u8>,
    },
}

/// How DNS records are set that prove a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct DnsRecords {
    /// `propagation_delay`: how long the issuer is asked to look after a record was set.
    pub delay: Option<Duration>,
    /// `propagation_timeout`: for how long resolvers are asked for it; zero asks none.
    pub timeout: Option<Duration>,
    /// `resolvers`: `host:port`.
    pub resolvers: Vec<String>,
    /// `dns_ttl`, in seconds.
    pub ttl_seconds: Option<u32>,
    /// `dns_challenge_override_domain`: the record's name.
    pub name: Option<String>,
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
    /// The protocols that are offered, in the order of preference, as ALPN names them; none means all.
    pub protocols: Vec<String>,
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
            protocols: Vec::new(),
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

/// What a placeholder names of a TLS connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsValue {
    /// `{http.request.tls.version}`, `{tls_version}`: `tls1.2` or `tls1.3`
    Version,
    /// `{http.request.tls.cipher_suite}`, `{tls_cipher}`: its IANA name
    CipherSuite,
    /// `{http.request.tls.resumed}`: `true` or `false`
    Resumed,
    /// `{http.request.tls.proto}`: the protocol that ALPN chose
    Protocol,
    /// `{http.request.tls.server_name}`: the name that the client asked for
    ServerName,
    /// `{http.request.tls.client.*}`: of the certificate that the client showed
    Client(ClientValue),
}

/// What a placeholder names of a client's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientValue {
    /// `subject`, `{tls_client_subject}`
    Subject,
    /// `issuer`, `{tls_client_issuer}`
    Issuer,
    /// `serial`, `{tls_client_serial}`: in decimal digits
    Serial,
    /// `fingerprint`, `{tls_client_fingerprint}`: SHA-256 of it in hexadecimal digits
    Fingerprint,
    /// `public_key`: in hexadecimal digits
    PublicKey,
    /// `public_key_sha256`
    PublicKeySha256,
    /// `certificate_pem`, `{tls_client_certificate_pem}`
    CertificatePem,
    /// `certificate_der_base64`, `{tls_client_certificate_der_base64}`
    CertificateDerBase64,
    /// `san.dns_names`, `san.emails`, `san.ips`, `san.uris`: all of a kind, or with a number that one, from 0
    AlternativeName(NameKind, Option<usize>),
}

/// A kind of subject alternative names (RFC 5280 section 4.2.1.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the kind of that name")]
pub enum NameKind {
    Dns,
    Email,
    IpAddress,
    Uri,
}

impl TlsValue {
    /// Those without a number, by what stands behind `http.request.tls.`.
    pub(crate) const NAMED: [(&str, Self); 13] = [
        ("version", Self::Version),
        ("cipher_suite", Self::CipherSuite),
        ("resumed", Self::Resumed),
        ("proto", Self::Protocol),
        ("server_name", Self::ServerName),
        ("client.subject", Self::Client(ClientValue::Subject)),
        ("client.issuer", Self::Client(ClientValue::Issuer)),
        ("client.serial", Self::Client(ClientValue::Serial)),
        ("client.fingerprint", Self::Client(ClientValue::Fingerprint)),
        ("client.public_key", Self::Client(ClientValue::PublicKey)),
        ("client.public_key_sha256", Self::Client(ClientValue::PublicKeySha256)),
        ("client.certificate_pem", Self::Client(ClientValue::CertificatePem)),
        ("client.certificate_der_base64", Self::Client(ClientValue::CertificateDerBase64)),
    ];
}

impl NameKind {
    /// By what stands behind `http.request.tls.client.san.`.
    pub(crate) const NAMED: [(&str, Self); 4] =
        [("dns_names", Self::Dns), ("emails", Self::Email), ("ips", Self::IpAddress), ("uris", Self::Uri)];
}

impl fmt::Display for TlsValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("http.request.tls.")?;
        if let Some((name, _)) = Self::NAMED.iter().find(|(_, value)| value == self) {
            return formatter.write_str(name);
        }
        let Self::Client(ClientValue::AlternativeName(kind, number)) = self else { return Ok(()) };
        let name = NameKind::NAMED.iter().find(|(_, known)| known == kind).map_or("", |(name, _)| name);
        write!(formatter, "client.san.{name}")?;
        number.map_or(Ok(()), |number| write!(formatter, ".{number}"))
    }
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

impl ClientAuthMode {
    /// Whether a certificate that is shown has to be good.
    pub fn verifies(self) -> bool {
        matches!(self, Self::VerifyIfGiven | Self::RequireAndVerify)
    }
}
