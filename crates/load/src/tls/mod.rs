//! How requests to `https://` URLs are encrypted: what is trusted, what is offered, what was agreed on.
//!
//! Owns the settings of a client's TLS and the words for its failures. Makes no system call but reading certificates:
//! `engine/` and `client/` move the bytes. Never trusts a certificate that is not verified, unless the settings say so,
//! and a report then says it.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::{ALL_KX_GROUPS, default_provider};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, NamedGroup, RootCertStore};

use crate::url::{Scheme, Url};

pub use error::SettingsError;
pub use negotiated::{Handshakes, Parameters};

pub(crate) use problem::explain;

pub mod error;
mod negotiated;
mod problem;
mod verify;

/// Bytes of a file with certificates: all of the system's are a quarter of it.
const CERTIFICATES_BYTES_MAX: u64 = 1024 * 1024;

/// Sessions that a load remembers of a server, rounded by rustls to a whole server: 8 tickets each. A connection that
/// ends has brought two and its successor takes one, so that they never run out.
const SESSIONS_MAX: usize = 8;

/// The protocols that are spoken, as ALPN names them (RFC 7301 section 6, RFC 9113 section 3.2).
const HTTP_1_1: &[u8] = b"http/1.1";
const HTTP_2: &[u8] = b"h2";

/// What a person says about TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// A PEM file with the certificates to trust, in place of the system's.
    pub cacert: Option<PathBuf>,
    /// Certificates are not verified.
    pub is_insecure: bool,
    /// Whether handshakes may be resumed.
    pub sessions: Sessions,
    /// The key exchange groups to offer, the preferred one first; empty for the library's.
    pub curves: Vec<Curve>,
    /// HTTP/2 is offered, and nothing else.
    pub is_http2: bool,
}

/// Whether a connection may resume the session of an earlier one (RFC 8446 section 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sessions {
    /// One cache for each load and server, as a browser has.
    #[default]
    Resume,
    /// Every handshake is a full one.
    Full,
}

/// A key exchange group (RFC 8446 section 4.2.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Curve(NamedGroup);

/// The client's side of TLS for one command: its certificates are read once, when the first `https://` URL needs them.
#[derive(Debug, Clone, Default)]
pub struct Client {
    settings: Settings,
    config: OnceLock<Arc<ClientConfig>>,
}

/// How the requests to one server are encrypted.
#[derive(Debug, Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    sessions: Sessions,
    pub(crate) is_insecure: bool,
}

impl Client {
    /// With these settings. Nothing is read yet.
    pub fn new(settings: Settings) -> Client {
        Client { settings, config: OnceLock::new() }
    }

    /// What requests to this URL need: nothing over http.
    ///
    /// # Errors
    /// Where certificates cannot be read, or its host is no name that a certificate could have.
    pub fn of(&self, url: &Url) -> Result<Option<Tls>, SettingsError> {
        if url.scheme == Scheme::Http {
            return Ok(None);
        }
        let config = match self.config.get() {
            Some(config) => config,
            None => {
                let made = Arc::new(config(&self.settings)?);
                self.config.get_or_init(|| made)
            }
        };
        let name = ServerName::try_from(url.host().to_owned()).map_err(|_| {
            SettingsError(format!("`{}` is no name that a certificate could have", url.host()))
        })?;
        Ok(Some(Tls {
            config: Arc::clone(config),
            name,
            sessions: self.settings.sessions,
            is_insecure: self.settings.is_insecure,
        }))
    }
}

impl Tls {
    /// The same with a session cache of its own, that of one load.
    pub(crate) fn of_a_load(&self) -> Tls {
        if self.sessions == Sessions::Full {
            return self.clone();
        }
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
        Tls { config: Arc::new(config), ..self.clone() }
    }

    /// A connection that has yet to shake hands.
    pub(crate) fn connection(&self) -> Result<ClientConnection, rustls::Error> {
        ClientConnection::new(Arc::clone(&self.config), self.name.clone())
    }

    /// Why there is no handshake, and what to do about it.
    pub(crate) fn explain(&self, error: &rustls::Error) -> String {
        explain(error, &self.name.to_str(), self.is_http2())
    }

    /// Whether the server chose HTTP/2, where that is to be spoken: one that knows no ALPN chooses nothing.
    ///
    /// # Errors
    /// What it did instead, and the next step.
    pub(crate) fn check_protocol(&self, connection: &ClientConnection) -> Result<(), String> {
        match self.is_http2() && connection.alpn_protocol() != Some(HTTP_2) {
            true => Err(problem::NO_HTTP_2.to_owned()),
            false => Ok(()),
        }
    }

    /// Whether a handshake failed because the server speaks no HTTP/2.
    pub(crate) fn is_without_http2(&self, error: &rustls::Error) -> bool {
        self.is_http2() && problem::is_of_protocol(error)
    }

    fn is_http2(&self) -> bool {
        self.config.alpn_protocols.iter().any(|protocol| protocol == HTTP_2)
    }
}

impl PartialEq for Tls {
    /// Whether a connection made for the one may carry the other's requests.
    fn eq(&self, other: &Tls) -> bool {
        Arc::ptr_eq(&self.config, &other.config) && self.name == other.name && self.sessions == other.sessions
    }
}

impl Sessions {
    /// Reads `resume` or `full`.
    ///
    /// # Errors
    /// For anything else; its text is for a person.
    pub fn parse(text: &str) -> Result<Sessions, String> {
        match text {
            "resume" => Ok(Sessions::Resume),
            "full" => Ok(Sessions::Full),
            _ => Err("write resume or full".to_owned()),
        }
    }
}

impl Curve {
    /// Reads the name of a group in any case: `x25519`, `x25519mlkem768`, `secp256r1`.
    ///
    /// # Errors
    /// For one that is not supported; its text is for a person.
    pub fn parse(text: &str) -> Result<Curve, String> {
        let names = || ALL_KX_GROUPS.iter().filter_map(|group| Some((group.name(), group.name().as_str()?)));
        match names().find(|(_, name)| name.eq_ignore_ascii_case(text)) {
            Some((group, _)) => Ok(Curve(group)),
            None => {
                let known: Vec<String> = names().map(|(_, name)| name.to_ascii_lowercase()).collect();
                Err(format!("write some of {}", known.join(", ")))
            }
        }
    }
}

fn config(settings: &Settings) -> Result<ClientConfig, SettingsError> {
    let mut provider = default_provider();
    if !settings.curves.is_empty() {
        let found = |curve: &Curve| ALL_KX_GROUPS.iter().find(|group| group.name() == curve.0).copied();
        provider.kx_groups = settings.curves.iter().filter_map(found).collect();
    }
    let provider = Arc::new(provider);
    let verifier = match (settings.is_insecure, &settings.cacert) {
        (true, _) => verify::Verifier::of_nothing(&provider),
        (false, Some(file)) => {
            let certificates = read(file)?;
            verify::Verifier::of(certificates, &provider)
                .map_err(|why| SettingsError(format!("the certificates of {}: {why}", file.display())))?
        }
        (false, None) => verify::Verifier::of_roots(system_roots()?, &provider).map_err(SettingsError)?,
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| SettingsError(format!("TLS cannot be spoken with these groups: {error}")))?;
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = builder.with_no_client_auth();
    let protocol = if settings.is_http2 { HTTP_2 } else { HTTP_1_1 };
    config.alpn_protocols = vec![protocol.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn system_roots() -> Result<RootCertStore, SettingsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map(|error| format!(" ({error})")).unwrap_or_default();
        return Err(SettingsError(format!(
            "this system has no certificates to trust{why}: name some with --cacert FILE, or do not verify with --insecure"
        )));
    }
    Ok(roots)
}

fn read(file: &Path) -> Result<Vec<CertificateDer<'static>>, SettingsError> {
    let wrong =
        |why: String| SettingsError(format!("cannot read certificates from {}: {why}", file.display()));
    let mut content = Vec::new();
    File::open(file)
        .and_then(|file| file.take(CERTIFICATES_BYTES_MAX + 1).read_to_end(&mut content))
        .map_err(|error| wrong(error.to_string()))?;
    if content.len() as u64 > CERTIFICATES_BYTES_MAX {
        return Err(wrong(format!("it has more than {CERTIFICATES_BYTES_MAX} bytes")));
    }
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(&content)
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(format!("it is no PEM file: {error}")))?;
    if certificates.is_empty() {
        return Err(wrong("it holds none (PEM, `-----BEGIN CERTIFICATE-----`)".to_owned()));
    }
    Ok(certificates)
}

#[cfg(test)]
mod tests;
