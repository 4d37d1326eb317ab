//! How connections to upstreams are encrypted: which certificates to trust, which to show. Reads the files that the
//! settings name.
//!
//! A configuration is made once for all upstreams with the same settings and the same files, so that they share their
//! sessions, and stays over reloads until a file changes. Verification is on unless the settings say otherwise.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use aws_lc_rs::digest;
use onehop_config::checked::proxy::{EncryptedVersions, ProxyTls};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error as TlsError, RootCertStore, SignatureScheme,
};

/// What is spoken to upstreams, as ALPN names it (RFC 7301 section 6).
const HTTP_1_1: &[u8] = b"http/1.1";
/// See [`HTTP_1_1`] (RFC 9113 section 3.2).
const HTTP_2: &[u8] = b"h2";

/// What a configuration was made of: another content of a file makes another one.
#[derive(Clone, PartialEq)]
pub struct Made {
    is_blind: bool,
    /// What the handshake offers.
    versions: EncryptedVersions,
    /// SHA-256 of each file, in the order in which they are read.
    files: Vec<Vec<u8>>,
}

/// A configuration for these settings, whose files are read so; one of `known` where nothing has changed.
pub fn client_reading(
    tls: &ProxyTls,
    versions: EncryptedVersions,
    known: &[(Made, Arc<ClientConfig>)],
    read: impl Fn(&Path, &str) -> Result<Vec<u8>, String>,
) -> Result<(Made, Arc<ClientConfig>), String> {
    let trusted = tls.trusted.iter().map(|path| read(path, "certificates to trust"));
    let trusted = trusted.collect::<Result<Vec<_>, _>>()?;
    let shown = tls.client_certificate.as_ref().map(|(certificate, key)| {
        Ok::<_, String>((
            read(certificate, "the client certificate")?,
            read(key, "the client certificate's key")?,
        ))
    });
    let shown = shown.transpose()?;
    let contents = trusted.iter().chain(shown.iter().flat_map(|(certificate, key)| [certificate, key]));
    let files = contents.map(|content| digest::digest(&digest::SHA256, content).as_ref().to_vec());
    // The number of files to trust tells apart what is shown from what is trusted.
    let made = Made {
        is_blind: tls.insecure_skip_verify,
        versions,
        files: std::iter::once(vec![u8::from(shown.is_some())]).chain(files).collect(),
    };
    if let Some((_, config)) = known.iter().find(|(other, _)| *other == made) {
        return Ok((made, Arc::clone(config)));
    }
    let provider = Arc::new(default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier(tls, &trusted, provider)?);
    let mut config = match (&tls.client_certificate, shown) {
        (Some((certificate_path, key_path)), Some((certificate, key))) => {
            let chain = certificates(&certificate, certificate_path)?;
            let key = PrivateKeyDer::from_pem_slice(&key).map_err(|error| {
                format!("no private key can be read from {}: {error}", key_path.display())
            })?;
            builder.with_client_auth_cert(chain, key).map_err(|error| {
                let (certificate, key) = (certificate_path.display(), key_path.display());
                format!(
                    "the client certificate {certificate} and the key {key} do not belong together: {error}"
                )
            })?
        }
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = match versions {
        EncryptedVersions::Http1 => vec![HTTP_1_1.to_vec()],
        EncryptedVersions::Http2 => vec![HTTP_2.to_vec()],
        EncryptedVersions::Negotiated => vec![HTTP_2.to_vec(), HTTP_1_1.to_vec()],
    };
    Ok((made, Arc::new(config)))
}

/// The name that is asked for and verified.
pub fn server_name(name: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(name.to_owned()).map_err(|_| {
        format!("{name:?} is no name that TLS can ask for; `tls_server_name` can give another one")
    })
}

fn verifier(
    tls: &ProxyTls,
    trusted: &[Vec<u8>],
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    if tls.insecure_skip_verify {
        return Ok(Arc::new(Blind(provider)));
    }
    if tls.trusted.is_empty() {
        let roots = system_roots()?;
        let built = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
        return built.map(|verifier| verifier as _).map_err(|error| error.to_string());
    }
    let (mut roots, mut pinned) = (RootCertStore::empty(), Vec::new());
    for (path, content) in tls.trusted.iter().zip(trusted) {
        for certificate in certificates(content, path)? {
            roots
                .add(certificate.clone())
                .map_err(|error| format!("a certificate in {} cannot be trusted: {error}", path.display()))?;
            pinned.push(certificate);
        }
    }
    let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let chains = built.map_err(|error| error.to_string())?;
    Ok(Arc::new(Named { chains, pinned }))
}

/// What the system trusts, read once: a list of some hundred certificates. A system that has no such list (a container
/// that holds one program) trusts what Mozilla does, as it was when this program was built; one whose list was named
/// and is not there is asked to mend that.
pub fn system_roots() -> Result<Arc<RootCertStore>, String> {
    static ROOTS: OnceLock<Result<Arc<RootCertStore>, String>> = OnceLock::new();
    let read = || {
        let found = rustls_native_certs::load_native_certs();
        let is_named = ["SSL_CERT_FILE", "SSL_CERT_DIR"].iter().any(|name| std::env::var_os(name).is_some());
        let why = found.errors.first().map(ToString::to_string);
        roots_of(found.certs, why, is_named).map(Arc::new)
    };
    ROOTS.get_or_init(read).clone()
}

/// Those that were found; where there are none and nobody said where they are, those that came with the program.
fn roots_of(
    found: Vec<CertificateDer<'static>>,
    why: Option<String>,
    is_named: bool,
) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found);
    if roots.is_empty() && is_named {
        let why = why.map_or_else(String::new, |error| format!(" ({error})"));
        return Err(format!(
            "SSL_CERT_FILE or SSL_CERT_DIR names no certificates to trust{why}: correct or unset it, or name some with \
             `tls_trust_pool file`"
        ));
    }
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    Ok(roots)
}

fn certificates(content: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_slice_iter(content).collect::<Result<Vec<_>, _>>();
    let certificates = read.map_err(|error| format!("{} is no PEM file: {error}", path.display()))?;
    if certificates.is_empty() {
        return Err(format!("{} holds no certificate (PEM, `-----BEGIN CERTIFICATE-----`)", path.display()));
    }
    Ok(certificates)
}

/// Believes chains that end in a certificate of the files, and a certificate that stands in them itself: one that
/// signed itself is no chain for webpki where it calls itself an authority, as `openssl req -x509` has it by default.
#[derive(Debug)]
struct Named {
    chains: Arc<WebPkiServerVerifier>,
    pinned: Vec<CertificateDer<'static>>,
}

/// Believes whoever answers. Only that the other side holds the key of what it shows is verified.
#[derive(Debug)]
struct Blind(Arc<CryptoProvider>);

impl ServerCertVerifier for Named {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        let verified = self.chains.verify_server_cert(shown, between, name, ocsp, now);
        let is_authority = |error: &TlsError| match error {
            // webpki's word for it has no type here. It looks at the time before, so that an expired one ends there;
            // should the word change, such certificates are refused.
            TlsError::InvalidCertificate(CertificateError::Other(cause)) => {
                cause.0.to_string() == "CaUsedAsEndEntity"
            }
            _ => false,
        };
        if verified.as_ref().is_err_and(is_authority) && self.pinned.iter().any(|pinned| pinned == shown) {
            rustls::client::verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        verified
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.chains.verify_tls12_signature(message, shown, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.chains.verify_tls13_signature(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

impl ServerCertVerifier for Blind {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        rustls::crypto::verify_tls12_signature(
            message,
            shown,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        rustls::crypto::verify_tls13_signature(
            message,
            shown,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
