//! Files of certificates, and whom they make us believe.

use std::path::PathBuf;

use onehop_tls::limits::PEM_FILE_BYTES_MAX;
use onehop_tls::read_pem;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConnection, ServerConfig, ServerConnection};
use tempfile::TempDir;

use super::*;

fn client(tls: &ProxyTls, known: &[(Made, Arc<ClientConfig>)]) -> Result<(Made, Arc<ClientConfig>), String> {
    client_reading(tls, EncryptedVersions::Http1, known, read_pem)
}

/// An authority, and files of it.
struct Authority {
    folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// What a server shows.
struct Shown {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { folder: tempfile::tempdir().unwrap(), issuer }
    }

    fn issue(&self, name: &str) -> Shown {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Shown { certificate, key }
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    fn trusted(&self) -> PathBuf {
        self.file("authority.pem", &self.issuer.pem())
    }
}

impl Shown {
    /// Signed by itself, as `openssl req -x509` does it: it calls itself an authority.
    fn alone(name: &str) -> Self {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self { certificate, key }
    }

    fn server(&self, clients: Option<&Authority>) -> Arc<ServerConfig> {
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.issuer.der().clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let key = PrivatePkcs8KeyDer::from(self.key.serialize_der()).into();
        let mut config = builder.with_single_cert(vec![self.certificate.der().clone()], key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), HTTP_1_1.to_vec()];
        Arc::new(config)
    }
}

fn made(settings: &ProxyTls) -> Arc<ClientConfig> {
    client(settings, &[]).unwrap().1
}

/// Shakes hands in memory; what the client thinks of it.
fn handshake(config: &Arc<ClientConfig>, name: &str, server: &Arc<ServerConfig>) -> Result<Vec<u8>, String> {
    let mut client = ClientConnection::new(Arc::clone(config), server_name(name).unwrap()).unwrap();
    let mut server = ServerConnection::new(Arc::clone(server)).unwrap();
    while client.is_handshaking() || server.is_handshaking() || client.wants_write() {
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        server.read_tls(&mut &bytes[..]).unwrap();
        server.process_new_packets().map_err(|error| format!("the server: {error}"))?;
        let mut bytes = Vec::new();
        server.write_tls(&mut bytes).unwrap();
        client.read_tls(&mut &bytes[..]).unwrap();
        client.process_new_packets().map_err(|error| error.to_string())?;
    }
    Ok(client.alpn_protocol().unwrap_or_default().to_vec())
}

#[test]
fn a_server_is_believed_whose_certificate_an_authority_of_the_files_has_signed_for_its_name() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let server = authority.issue("search.example").server(None);
    let config =
        made(&ProxyTls { trusted: vec![stranger.trusted(), authority.trusted()], ..ProxyTls::default() });
    assert_eq!(handshake(&config, "search.example", &server), Ok(HTTP_1_1.to_vec()));
    let error = handshake(&config, "other.example", &server).unwrap_err();
    assert!(error.contains("not valid for name"), "{error}");
    let config = made(&ProxyTls { trusted: vec![stranger.trusted()], ..ProxyTls::default() });
    // Of the same name as the authority, but with another key.
    let error = handshake(&config, "search.example", &server).unwrap_err();
    assert!(error.contains("BadSignature"), "{error}");
}

#[test]
fn an_address_may_be_the_name() {
    let authority = Authority::new();
    let config = made(&ProxyTls { trusted: vec![authority.trusted()], ..ProxyTls::default() });
    for name in ["127.0.0.1", "::1"] {
        assert!(handshake(&config, name, &authority.issue(name).server(None)).is_ok(), "{name}");
        assert!(handshake(&config, name, &authority.issue("127.0.0.2").server(None)).is_err(), "{name}");
    }
}

#[test]
fn a_certificate_that_stands_in_the_files_itself_is_believed_for_its_name_alone() {
    let authority = Authority::new();
    let alone = Shown::alone("search.example");
    let (server, file) = (alone.server(None), authority.file("alone.pem", &alone.certificate.pem()));
    let config = made(&ProxyTls { trusted: vec![authority.trusted(), file], ..ProxyTls::default() });
    assert!(handshake(&config, "search.example", &server).is_ok());
    assert!(handshake(&config, "other.example", &server).is_err());
    let other = Shown::alone("search.example").server(None);
    assert!(handshake(&config, "search.example", &other).is_err(), "another one of the same name");
}

#[test]
fn an_expired_certificate_is_not_believed_although_it_stands_in_the_files() {
    let authority = Authority::new();
    let mut params = CertificateParams::new(vec!["search.example".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    let key = KeyPair::generate().unwrap();
    let expired = Shown { certificate: params.self_signed(&key).unwrap(), key };
    let file = authority.file("expired.pem", &expired.certificate.pem());
    let config = made(&ProxyTls { trusted: vec![file], ..ProxyTls::default() });
    let error = handshake(&config, "search.example", &expired.server(None)).unwrap_err();
    assert!(error.contains("expired"), "{error}");
}

#[test]
fn whoever_answers_is_believed_where_that_is_asked_for() {
    let config = made(&ProxyTls { insecure_skip_verify: true, ..ProxyTls::default() });
    assert!(handshake(&config, "search.example", &Shown::alone("other.example").server(None)).is_ok());
}

#[test]
fn the_client_certificate_is_shown_to_a_server_that_asks() {
    let authority = Authority::new();
    let server = authority.issue("search.example").server(Some(&authority));
    let own = authority.issue("proxy.example");
    let files = (
        authority.file("own.pem", &own.certificate.pem()),
        authority.file("own.key", &own.key.serialize_pem()),
    );
    let without = ProxyTls { trusted: vec![authority.trusted()], ..ProxyTls::default() };
    let with = ProxyTls { client_certificate: Some(files), ..without.clone() };
    assert!(handshake(&made(&with), "search.example", &server).is_ok());
    assert!(handshake(&made(&without), "search.example", &server).is_err());
}

#[test]
fn a_configuration_stays_until_a_file_has_another_content() {
    let authority = Authority::new();
    let settings = ProxyTls { trusted: vec![authority.trusted()], ..ProxyTls::default() };
    let known = [client(&settings, &[]).unwrap()];
    assert!(Arc::ptr_eq(&client(&settings, &known).unwrap().1, &known[0].1));
    authority.file("authority.pem", &Authority::new().issuer.pem());
    let (made, config) = client(&settings, &known).unwrap();
    assert!(made != known[0].0 && !Arc::ptr_eq(&config, &known[0].1));
    // What is shown is no authority, though it is the same file.
    let own = authority.file("own.pem", &authority.issue("a").certificate.pem());
    let (one, other) = (vec![own.clone(), own.clone(), own.clone()], vec![own.clone()]);
    let key = |tls: &ProxyTls| client(tls, &[]).map(|(made, _)| made);
    let trusted = key(&ProxyTls { trusted: one, ..settings.clone() }).unwrap();
    assert!(key(&ProxyTls { trusted: other, ..settings }).unwrap() != trusted);
}

#[test]
fn errors_name_the_file_and_what_is_wrong_with_it() {
    let authority = Authority::new();
    let (own, other) = (authority.issue("a"), authority.issue("b"));
    let certificate = authority.file("own.pem", &own.certificate.pem());
    let key = authority.file("own.key", &own.key.serialize_pem());
    let wrong_key = authority.file("other.key", &other.key.serialize_pem());
    let (text, empty) = (authority.file("text", "no PEM"), authority.file("empty", ""));
    let broken = authority.file("broken", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n");
    let huge = authority.file("huge", &" ".repeat(PEM_FILE_BYTES_MAX as usize + 1));
    let missing = authority.folder.path().join("missing");
    let folder = authority.folder.path().to_path_buf();
    let trusting = |path: &PathBuf| ProxyTls { trusted: vec![path.clone()], ..ProxyTls::default() };
    let showing = |certificate: &PathBuf, key: &PathBuf| ProxyTls {
        trusted: vec![authority.trusted()],
        client_certificate: Some((certificate.clone(), key.clone())),
        ..ProxyTls::default()
    };
    let cases = [
        trusting(&missing),
        trusting(&folder),
        trusting(&text),
        trusting(&empty),
        trusting(&broken),
        trusting(&huge),
        showing(&missing, &key),
        showing(&certificate, &missing),
        showing(&certificate, &certificate),
        showing(&key, &key),
        showing(&certificate, &wrong_key),
    ];
    let errors: Vec<String> = cases.iter().map(|case| client(case, &[]).err().unwrap_or_default()).collect();
    let errors = errors.join("\n").replace(&*folder.display().to_string(), "FOLDER");
    insta::assert_snapshot!(errors);
}

#[test]
fn a_name_that_tls_cannot_ask_for_is_reported() {
    assert!(server_name("search.example").is_ok() && server_name("10.0.0.1").is_ok());
    insta::assert_snapshot!(server_name("a b").unwrap_err());
}

#[test]
fn a_system_without_certificates_trusts_those_that_came_along_unless_some_were_named() {
    let came_along = roots_of(Vec::new(), None, false).expect("some");
    assert!(came_along.len() > 50, "{}", came_along.len());
    let why = Some("no such file".to_owned());
    let refused = roots_of(Vec::new(), why, true).expect_err("they were named");
    assert!(
        refused.starts_with("SSL_CERT_FILE or SSL_CERT_DIR names no certificates to trust (no such file)")
    );
    let own = Authority::new();
    let found = vec![own.issuer.der().clone()];
    assert_eq!(roots_of(found, None, false).expect("it").len(), 1, "what the system trusts is not added to");
}
