//! The local authority, for names that no public authority certifies: `localhost`, IP addresses, `tls internal`.
//!
//! As Caddy's, it has a root that users may trust, and an intermediate that signs. Both are kept in the store under
//! `pki/authorities/local`; a configuration may name other authorities, and root and intermediate of others in files.
//! Processes that start together agree on one root: it is made under a lock, after the store
//! was read again.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer as Signer, KeyPair, KeyUsagePurpose, RsaKeySize, SanType,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::Clock;
use crate::bounded_file::read_bounded;
use crate::error::StoreError;
use crate::issuer::{CertificateOrder, IssueError, Issuer, Issuing, KeyType, Pem};
use crate::loaded::Loaded;
use crate::store::{Storage, load_pair, lock_briefly};

/// The authority's folder in the store.
pub const FOLDER: &str = "local";

/// Keys of the root and of the intermediate in the store.
pub(crate) const ROOT: (&str, &str) = ("pki/authorities/local/root.crt", "pki/authorities/local/root.key");
pub(crate) const INTERMEDIATE: (&str, &str) =
    ("pki/authorities/local/intermediate.crt", "pki/authorities/local/intermediate.key");

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Users install the root by hand: rarely.
const ROOT_LIFE: Duration = DAY.saturating_mul(3_600);
const INTERMEDIATE_LIFE: Duration = DAY.saturating_mul(7);
const LEAF_LIFE: Duration = Duration::from_secs(12 * 60 * 60);
/// Certificates begin in the past, for clients whose clocks are slow.
const BACKDATED: Duration = Duration::from_secs(60 * 60);

/// Which authority it is, and how it issues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthoritySettings {
    /// Its folder below `pki/authorities` and `certificates` in the store.
    pub id: String,
    /// The beginning of its certificates' common names.
    pub name: String,
    /// The root's common name; made of `name` and the year where there is none.
    pub root_name: Option<String>,
    /// The intermediate's common name; made of `name` where there is none.
    pub intermediate_name: Option<String>,
    /// How long an intermediate is valid.
    pub intermediate_life: Duration,
    /// How long a certificate is valid; it ends with its issuer at the latest.
    pub leaf_life: Duration,
    /// The root itself signs certificates.
    pub signs_with_root: bool,
    /// An external root, from files.
    pub root: Option<AuthorityFiles>,
    /// An external intermediate, from files. Its key is required.
    pub intermediate: Option<AuthorityFiles>,
}

/// A certificate of an authority in files (PEM).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorityFiles {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key. A root needs none where an intermediate signs that has one.
    pub key: Option<PathBuf>,
}

impl Default for AuthoritySettings {
    fn default() -> Self {
        Self {
            id: FOLDER.to_owned(),
            name: "Onehop Local Authority".to_owned(),
            root_name: None,
            intermediate_name: None,
            intermediate_life: INTERMEDIATE_LIFE,
            leaf_life: LEAF_LIFE,
            signs_with_root: false,
            root: None,
            intermediate: None,
        }
    }
}

/// An authority in the store that issues certificates without a network.
pub struct LocalAuthority {
    settings: AuthoritySettings,
    storage: Arc<dyn Storage>,
    clock: Clock,
    authority: Mutex<Option<Authority>>,
}

/// The root, and what signs: an intermediate, or the root itself.
struct Authority {
    root_pem: String,
    signer: Held,
}

/// The root's certificate, and its key where that is known.
struct Root {
    certificate: CertificateDer<'static>,
    pem: String,
    held: Option<Held>,
}

/// A certificate of an authority with its key.
struct Held {
    loaded: Loaded,
    signer: Signer<'static, KeyPair>,
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the local authority cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    #[error("a certificate of the local authority cannot be used: {0}")]
    Read(String),
}

impl From<Problem> for IssueError {
    fn from(problem: Problem) -> Self {
        Self { message: problem.to_string(), retry_after: None }
    }
}

impl LocalAuthority {
    /// The usual authority in this store. It is made when it is first used.
    pub fn new(storage: Arc<dyn Storage>, clock: Clock) -> Self {
        Self::with_settings(AuthoritySettings::default(), storage, clock)
    }

    /// An authority in this store. What of it is not in files is made when it is first used.
    pub fn with_settings(settings: AuthoritySettings, storage: Arc<dyn Storage>, clock: Clock) -> Self {
        Self { settings, storage, clock, authority: Mutex::new(None) }
    }

    /// The root certificate (PEM), for clients that are to trust it.
    pub fn root_pem(&self) -> Result<String, IssueError> {
        self.with_authority(|authority, _| Ok(authority.root_pem.clone())).map_err(IssueError::from)
    }

    /// Calls `use_it` with the authority, after renewing its signing certificate if that is about to expire.
    fn with_authority<T>(
        &self,
        use_it: impl FnOnce(&Authority, SystemTime) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let now = (self.clock)();
        let mut known = self.authority.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(authority) = known.as_ref().filter(|authority| is_fresh(&authority.signer.loaded, now)) {
            return use_it(authority, now);
        }
        use_it(known.insert(self.load_or_make(now)?), now)
    }

    fn load_or_make(&self, now: SystemTime) -> Result<Authority, Problem> {
        let _lock = lock_briefly(&*self.storage, &format!("pki_{}", self.settings.id))?;
        let Root { certificate, pem: root_pem, held } = match &self.settings.root {
            Some(files) => root_of_files(files, now)?,
            None => self.own_root(now)?,
        };
        let signer = match (&self.settings.intermediate, held) {
            (_, Some(root)) if self.settings.signs_with_root => root,
            (Some(files), _) => {
                let intermediate = held_of_files(files, now)?;
                if !is_signed_by(&intermediate.loaded, &certificate) {
                    return Err(Problem::Read(format!(
                        "the intermediate {} is not signed by the root of the authority `{}`",
                        files.certificate.display(),
                        self.settings.id
                    )));
                }
                intermediate
            }
            (None, Some(root)) => self.own_intermediate(&root, now)?,
            (None, None) => return Err(no_key(self.settings.root.as_ref())),
        };
        Ok(Authority { root_pem, signer })
    }

    fn own_root(&self, now: SystemTime) -> Result<Root, Problem> {
        let keys = self.keys("root");
        let held = match self.load(&keys)?.filter(|root| root.loaded.is_valid_at(now)) {
            Some(root) => root,
            None => {
                self.must_not_be_trusted(&keys, now)?;
                self.save(&keys, &make_root(&self.settings, now)?)?
            }
        };
        root_of(held)
    }

    fn own_intermediate(&self, root: &Held, now: SystemTime) -> Result<Held, Problem> {
        let keys = self.keys("intermediate");
        let root_certificate = first_certificate(&root.loaded)?;
        let usable = self.load(&keys)?.filter(|intermediate| {
            is_fresh(&intermediate.loaded, now) && is_signed_by(&intermediate.loaded, &root_certificate)
        });
        match usable {
            Some(intermediate) => Ok(intermediate),
            None => self.save(&keys, &make_intermediate(&self.settings, root, now)?),
        }
    }

    /// Keys of the store of a certificate and its key.
    fn keys(&self, name: &str) -> (String, String) {
        let folder = format!("pki/authorities/{}", self.settings.id);
        (format!("{folder}/{name}.crt"), format!("{folder}/{name}.key"))
    }

    /// Returns an error if the root is still valid but its key is missing or does not match: clients trust that root, so it is
    /// not replaced.
    fn must_not_be_trusted(&self, keys: &(String, String), now: SystemTime) -> Result<(), Problem> {
        let Some(content) = self.storage.read(&keys.0)? else { return Ok(()) };
        let Ok(certificate) = CertificateDer::from_pem_slice(&content) else { return Ok(()) };
        let Ok((_, parsed)) = X509Certificate::from_der(&certificate) else { return Ok(()) };
        let ends = u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or_default();
        if UNIX_EPOCH + Duration::from_secs(ends) <= now {
            return Ok(());
        }
        Err(Problem::Read(format!(
            "the local authority's root {} is there, and {} is missing or belongs to another: put the key back, or remove both, \
             and trust the new root with `onehop trust`",
            keys.0, keys.1
        )))
    }

    fn load(&self, keys: &(String, String)) -> Result<Option<Held>, Problem> {
        let Some(loaded) = load_pair(&*self.storage, &keys.0, &keys.1)? else {
            return Ok(None);
        };
        let Some(key) = self.storage.read(&keys.1)? else {
            return Ok(None);
        };
        Ok(held(loaded, &key).ok())
    }

    fn save(&self, keys: &(String, String), pem: &Pem) -> Result<Held, Problem> {
        let (certificate, key) = (keys.0.as_str(), keys.1.as_str());
        self.storage.write_together(&[(key, pem.key.as_bytes()), (certificate, pem.chain.as_bytes())])?;
        let loaded = Loaded::from_pem((pem.chain.as_bytes(), certificate), (pem.key.as_bytes(), key));
        held(loaded.map_err(|error| Problem::Read(error.to_string()))?, pem.key.as_bytes())
    }
}

impl Issuer for LocalAuthority {
    fn folder(&self) -> &str {
        &self.settings.id
    }

    fn needs_network(&self) -> bool {
        false
    }

    fn issue<'a>(&'a self, order: &'a CertificateOrder) -> Issuing<'a, Pem> {
        Box::pin(async move {
            self.with_authority(|authority, now| make_leaf(&self.settings, &authority.signer, order, now))
                .map_err(IssueError::from)
        })
    }
}

/// The root in files: with its key where that is named.
fn root_of_files(files: &AuthorityFiles, now: SystemTime) -> Result<Root, Problem> {
    if files.key.is_some() {
        return root_of(held_of_files(files, now)?);
    }
    let path = files.certificate.display();
    let content = read_bounded(&files.certificate)?
        .ok_or_else(|| Problem::Read(format!("there is no certificate file {path}: correct its path")))?;
    let certificate = CertificateDer::from_pem_slice(&content)
        .map_err(|error| Problem::Read(format!("{path} holds no certificate in PEM: {error}")))?;
    Ok(Root { certificate, pem: String::from_utf8_lossy(&content).into_owned(), held: None })
}

fn root_of(held: Held) -> Result<Root, Problem> {
    let certificate = first_certificate(&held.loaded)?;
    Ok(Root { certificate, pem: held.loaded.chain_pem().to_owned(), held: Some(held) })
}

/// Reads an external authority. Its operator renews it.
fn held_of_files(files: &AuthorityFiles, now: SystemTime) -> Result<Held, Problem> {
    let Some(key) = &files.key else { return Err(no_key(Some(files))) };
    let loaded =
        Loaded::from_files(&files.certificate, key).map_err(|error| Problem::Read(error.to_string()))?;
    if !loaded.is_valid_at(now) {
        return Err(Problem::Read(format!(
            "{} is not valid now: replace it with a certificate that is",
            files.certificate.display()
        )));
    }
    let content = read_bounded(key)?.unwrap_or_default();
    held(loaded, &content)
}

fn no_key(files: Option<&AuthorityFiles>) -> Problem {
    let certificate =
        files.map_or_else(|| "root.crt".to_owned(), |files| files.certificate.display().to_string());
    Problem::Read(format!("{certificate} cannot sign without its key: name it with `key FILE`"))
}

fn held(loaded: Loaded, key: &[u8]) -> Result<Held, Problem> {
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| Problem::Read(error.to_string()))?;
    let key = KeyPair::try_from(&key)?;
    let signer = Signer::from_ca_cert_der(&first_certificate(&loaded)?, key)?;
    Ok(Held { loaded, signer })
}

fn first_certificate(loaded: &Loaded) -> Result<CertificateDer<'static>, Problem> {
    loaded.certified_key().cert.first().cloned().ok_or_else(|| Problem::Read("it is empty".to_owned()))
}

/// Whether at least a third of its life is left.
fn is_fresh(loaded: &Loaded, now: SystemTime) -> bool {
    let life = loaded.not_after.duration_since(loaded.not_before).unwrap_or_default();
    loaded.is_valid_at(now) && loaded.not_after.duration_since(now).is_ok_and(|left| left >= life / 3)
}

fn is_signed_by(loaded: &Loaded, issuer: &CertificateDer<'_>) -> bool {
    let Some(der) = loaded.certified_key().cert.first() else { return false };
    let (Ok((_, certificate)), Ok((_, issuer))) =
        (X509Certificate::from_der(der), X509Certificate::from_der(issuer))
    else {
        return false;
    };
    certificate.issuer() == issuer.subject()
        && certificate.verify_signature(Some(issuer.public_key())).is_ok()
}

/// What every certificate of the authority has in common: its lifetime, within that of its issuer.
fn params(
    common_name: Option<&str>,
    now: SystemTime,
    life: Duration,
    issuer: Option<&Loaded>,
) -> CertificateParams {
    let (mut from, mut until) = (now.checked_sub(BACKDATED).unwrap_or(now), now + life);
    if let Some(issuer) = issuer {
        (from, until) = (from.max(issuer.not_before), until.min(issuer.not_after));
    }
    let mut params = CertificateParams::default();
    params.not_before = from.into();
    params.not_after = until.into();
    params.distinguished_name = DistinguishedName::new();
    if let Some(name) = common_name {
        params.distinguished_name.push(DnType::CommonName, name);
    }
    params.use_authority_key_identifier_extension = issuer.is_some();
    params
}

fn make_root(settings: &AuthoritySettings, now: SystemTime) -> Result<Pem, Problem> {
    let key = KeyPair::generate()?;
    let mut params = params(None, now, ROOT_LIFE, None);
    let name = settings.root_name.clone();
    let name = name.unwrap_or_else(|| format!("{} - {} ECC Root", settings.name, params.not_before.year()));
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(1));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(Pem { chain: params.self_signed(&key)?.pem(), key: key.serialize_pem() })
}

fn make_intermediate(settings: &AuthoritySettings, root: &Held, now: SystemTime) -> Result<Pem, Problem> {
    let key = KeyPair::generate()?;
    let name = settings.intermediate_name.clone();
    let name = name.unwrap_or_else(|| format!("{} - ECC Intermediate", settings.name));
    let mut params = params(Some(&name), now, settings.intermediate_life, Some(&root.loaded));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(Pem { chain: params.signed_by(&key, &root.signer)?.pem(), key: key.serialize_pem() })
}

fn make_leaf(
    settings: &AuthoritySettings,
    signer: &Held,
    order: &CertificateOrder,
    now: SystemTime,
) -> Result<Pem, Problem> {
    let key = generate_key(order.key_type)?;
    // Without a subject, the names are what counts (RFC 5280 section 4.1.2.6).
    let mut params = params(None, now, settings.leaf_life, Some(&signer.loaded));
    params.subject_alt_names = vec![match order.name.parse::<IpAddr>() {
        Ok(address) => SanType::IpAddress(address),
        Err(_) => SanType::DnsName(order.name.as_str().try_into()?),
    }];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let mut chain = params.signed_by(&key, &signer.signer)?.pem();
    // Clients have the root.
    if !settings.signs_with_root {
        chain += signer.loaded.chain_pem();
    }
    Ok(Pem { chain, key: key.serialize_pem() })
}

fn generate_key(key_type: KeyType) -> Result<KeyPair, rcgen::Error> {
    match key_type {
        KeyType::P256 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256),
        KeyType::P384 => KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384),
        KeyType::Ed25519 => KeyPair::generate_for(&rcgen::PKCS_ED25519),
        KeyType::Rsa2048 => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_2048),
        KeyType::Rsa4096 => KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, RsaKeySize::_4096),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rustls::RootCertStore;
    use rustls::client::WebPkiServerVerifier;
    use rustls::crypto::aws_lc_rs::default_provider;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

    use super::*;
    use crate::file_store::FileStore;
    use crate::loaded::KeyKind;

    /// 2026-03-04.
    const START: u64 = 1_772_600_000;

    fn authority(folder: &std::path::Path) -> (Arc<LocalAuthority>, Arc<AtomicU64>) {
        let seconds = Arc::new(AtomicU64::new(START));
        let storage = Arc::new(FileStore::open(&folder.join("store")).unwrap());
        let clock = Arc::clone(&seconds);
        let clock: Clock = Arc::new(move || at(clock.load(Ordering::SeqCst)));
        (Arc::new(LocalAuthority::new(storage, clock)), seconds)
    }

    /// Another authority in the same store, at the same time.
    fn with_settings(of: &LocalAuthority, settings: AuthoritySettings) -> LocalAuthority {
        LocalAuthority::with_settings(settings, Arc::clone(&of.storage), Arc::clone(&of.clock))
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn order(name: &str, key_type: KeyType) -> CertificateOrder {
        CertificateOrder { name: name.to_owned(), key_type, replaces: None }
    }

    fn issue(authority: &LocalAuthority, name: &str) -> Result<Loaded, IssueError> {
        let pem = crate::keeper::poll_now(authority.issue(&order(name, KeyType::P256))).unwrap()?;
        Ok(Loaded::from_pem((pem.chain.as_bytes(), "chain"), (pem.key.as_bytes(), "key")).unwrap())
    }

    fn verify(loaded: &Loaded, root: &str, name: &str, now: u64) -> Result<(), rustls::Error> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(root.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(default_provider());
        let verifier =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        let chain = &loaded.certified_key().cert;
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
        use rustls::client::danger::ServerCertVerifier;
        verifier.verify_server_cert(&chain[0], &chain[1..], &name, &[], now).map(drop)
    }

    #[test]
    fn clients_that_trust_the_root_accept_what_is_issued() {
        let folder = tempfile::tempdir().unwrap();
        let (authority, _) = authority(folder.path());
        let root = authority.root_pem().unwrap();
        for name in ["localhost", "192.0.2.7", "2001:db8::7", "*.internal.example"] {
            let leaf = issue(&authority, name).unwrap();
            assert_eq!(leaf.names, [name]);
            assert_eq!(leaf.issuer, "Onehop Local Authority - ECC Intermediate");
            assert_eq!((leaf.not_before, leaf.not_after), (at(START - 3_600), at(START + 12 * 3_600)));
            let asked = name.replace('*', "www");
            verify(&leaf, &root, &asked, START + 60).unwrap();
            assert!(verify(&leaf, &root, "other.example", START + 60).is_err());
        }
        assert!(issue(&authority, "bücher.example").is_err());
    }

    #[test]
    fn each_key_type_is_issued() {
        let folder = tempfile::tempdir().unwrap();
        let (authority, _) = authority(folder.path());
        for (key_type, kind) in [
            (KeyType::P384, KeyKind::Ecdsa),
            (KeyType::Ed25519, KeyKind::Ed25519),
            (KeyType::Rsa2048, KeyKind::Rsa),
        ] {
            let order = order("a.example", key_type);
            let pem = crate::keeper::poll_now(authority.issue(&order)).unwrap().unwrap();
            let leaf = Loaded::from_pem((pem.chain.as_bytes(), ""), (pem.key.as_bytes(), "")).unwrap();
            assert_eq!(leaf.key_kind, kind);
        }
    }

    #[test]
    fn the_intermediate_is_renewed_in_time_and_the_root_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (authority, seconds) = authority(folder.path());
        let root = authority.root_pem().unwrap();
        let intermediate = |leaf: &Loaded| leaf.certified_key().cert[1].clone();
        let first = issue(&authority, "a.example").unwrap();
        seconds.store(START + 4 * 86_400, Ordering::SeqCst);
        assert_eq!(intermediate(&issue(&authority, "a.example").unwrap()), intermediate(&first));
        let later = START + 5 * 86_400;
        seconds.store(later, Ordering::SeqCst);
        let renewed = issue(&authority, "a.example").unwrap();
        assert_ne!(intermediate(&renewed), intermediate(&first));
        assert_eq!(authority.root_pem().unwrap(), root);
        verify(&renewed, &root, "a.example", later).unwrap();
        // A root that has ended is of no use to anyone.
        seconds.store(START + 3_601 * 86_400, Ordering::SeqCst);
        assert_ne!(authority.root_pem().unwrap(), root);
    }

    #[test]
    fn no_certificate_outlives_its_issuer_or_is_older() {
        let folder = tempfile::tempdir().unwrap();
        let (authority, seconds) = authority(folder.path());
        let root = authority.root_pem().unwrap();
        // A quarter of a day before the root's end; its intermediates are short by then.
        let late = START + 3_600 * 86_400 - 21_600;
        seconds.store(late, Ordering::SeqCst);
        let leaf = issue(&authority, "a.example").unwrap();
        assert_eq!(leaf.not_after, at(START + 3_600 * 86_400));
        verify(&leaf, &root, "a.example", late).unwrap();
    }

    #[test]
    fn an_intermediate_of_another_root_or_without_its_key_is_replaced() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (first, _) = authority(one.path());
        first.root_pem().unwrap();
        let (second, _) = authority(two.path());
        let root = second.root_pem().unwrap();
        for key in [INTERMEDIATE.0, INTERMEDIATE.1] {
            let value = first.storage.read(key).unwrap().unwrap();
            second.storage.write(key, &value).unwrap();
            let (fresh, _) = authority(two.path());
            verify(&issue(&fresh, "a.example").unwrap(), &root, "a.example", START).unwrap();
        }
    }

    #[test]
    fn an_authority_has_the_names_and_lifetimes_of_its_settings() {
        let folder = tempfile::tempdir().unwrap();
        let (usual, _) = authority(folder.path());
        let settings = AuthoritySettings {
            id: "company".to_owned(),
            root_name: Some("Company Root".to_owned()),
            intermediate_name: Some("Company Intermediate".to_owned()),
            intermediate_life: DAY * 30,
            leaf_life: DAY * 2,
            ..AuthoritySettings::default()
        };
        let company = with_settings(&usual, settings.clone());
        let leaf = issue(&company, "a.example").unwrap();
        verify(&leaf, &company.root_pem().unwrap(), "a.example", START).unwrap();
        assert!(verify(&leaf, &usual.root_pem().unwrap(), "a.example", START).is_err());
        assert_eq!((leaf.issuer.as_str(), leaf.not_after), ("Company Intermediate", at(START + 2 * 86_400)));
        let intermediate = load_pair(
            &*usual.storage,
            "pki/authorities/company/intermediate.crt",
            "pki/authorities/company/intermediate.key",
        );
        let intermediate = intermediate.unwrap().unwrap();
        assert_eq!(
            (intermediate.issuer.as_str(), intermediate.not_after),
            ("Company Root", at(START + 30 * 86_400))
        );
        // The same root, without an intermediate.
        let direct = with_settings(&usual, AuthoritySettings { signs_with_root: true, ..settings });
        let leaf = issue(&direct, "b.example").unwrap();
        assert_eq!((leaf.issuer.as_str(), leaf.certified_key().cert.len()), ("Company Root", 1));
        verify(&leaf, &company.root_pem().unwrap(), "b.example", START).unwrap();
    }

    #[test]
    fn a_root_and_an_intermediate_in_files_sign_and_a_foreign_intermediate_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let (maker, _) = authority(folder.path());
        let root = maker.root_pem().unwrap();
        issue(&maker, "a.example").unwrap();
        let below = folder.path().join("store/pki/authorities/local");
        let files = |name: &str, has_key: bool| AuthorityFiles {
            certificate: below.join(format!("{name}.crt")),
            key: has_key.then(|| below.join(format!("{name}.key"))),
        };
        let settings = |root, intermediate| AuthoritySettings {
            id: "company".to_owned(),
            root: Some(root),
            intermediate,
            ..AuthoritySettings::default()
        };
        for settings in [
            settings(files("root", false), Some(files("intermediate", true))),
            settings(files("root", true), None),
        ] {
            let company = with_settings(&maker, settings);
            assert_eq!(company.root_pem().unwrap(), root);
            verify(&issue(&company, "a.example").unwrap(), &root, "a.example", START).unwrap();
        }
        let other = AuthoritySettings { id: "other".to_owned(), ..AuthoritySettings::default() };
        issue(&with_settings(&maker, other), "a.example").unwrap();
        let foreign = AuthorityFiles {
            certificate: folder.path().join("store/pki/authorities/other/intermediate.crt"),
            key: Some(folder.path().join("store/pki/authorities/other/intermediate.key")),
        };
        let mixed = with_settings(&maker, settings(files("root", false), Some(foreign)));
        let error = issue(&mixed, "a.example").unwrap_err();
        assert!(error.message.contains("is not signed by the root"), "{}", error.message);
        let keyless = with_settings(&maker, settings(files("root", false), None));
        assert!(issue(&keyless, "a.example").unwrap_err().message.contains("without its key"));
    }

    #[test]
    fn authorities_that_start_together_agree_on_one_root() {
        let folder = tempfile::tempdir().unwrap();
        let barrier = Arc::new(Barrier::new(4));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let ((authority, _), barrier) = (authority(folder.path()), Arc::clone(&barrier));
                std::thread::spawn(move || {
                    barrier.wait();
                    let leaf = issue(&authority, "a.example").unwrap();
                    (authority.root_pem().unwrap(), leaf.certified_key().cert[1].clone())
                })
            })
            .collect();
        let roots: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(roots.windows(2).all(|pair| pair[0] == pair[1]));
    }
}
