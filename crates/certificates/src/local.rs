//! The local authority, for names that no public authority certifies: `localhost`, IP addresses, `tls internal`.
//!
//! As Caddy's, it has a root that users may trust, and an intermediate that signs. Both are kept in the store under
//! `pki/authorities/local`. Processes that start together agree on one root: it is made under a lock, after the store
//! was read again.

use std::net::IpAddr;
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

/// An authority in the store that issues certificates without a network.
pub struct LocalAuthority {
    storage: Arc<dyn Storage>,
    clock: Clock,
    authority: Mutex<Option<Authority>>,
}

/// What signs.
struct Authority {
    root_pem: String,
    intermediate: Held,
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
    #[error("the certificate of the local authority that was just made cannot be read: {0}")]
    Read(String),
}

impl From<Problem> for IssueError {
    fn from(problem: Problem) -> Self {
        Self { message: problem.to_string(), retry_after: None }
    }
}

impl LocalAuthority {
    /// The authority in this store. It is made when it is first used.
    pub fn new(storage: Arc<dyn Storage>, clock: Clock) -> Self {
        Self { storage, clock, authority: Mutex::new(None) }
    }

    /// The root certificate (PEM), for clients that are to trust it.
    pub fn root_pem(&self) -> Result<String, IssueError> {
        self.with_authority(|authority, _| Ok(authority.root_pem.clone())).map_err(IssueError::from)
    }

    /// Calls `use_it` with an authority whose intermediate has enough of its life left.
    fn with_authority<T>(
        &self,
        use_it: impl FnOnce(&Authority, SystemTime) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let now = (self.clock)();
        let mut known = self.authority.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(authority) =
            known.as_ref().filter(|authority| is_fresh(&authority.intermediate.loaded, now))
        {
            return use_it(authority, now);
        }
        use_it(known.insert(self.load_or_make(now)?), now)
    }

    fn load_or_make(&self, now: SystemTime) -> Result<Authority, Problem> {
        let _lock = lock_briefly(&*self.storage, "pki_local")?;
        let root = match self.load(ROOT)?.filter(|root| root.loaded.is_valid_at(now)) {
            Some(root) => root,
            None => {
                self.must_not_be_trusted(now)?;
                self.save(ROOT, &make_root(now)?)?
            }
        };
        let usable = self.load(INTERMEDIATE)?.filter(|intermediate| {
            is_fresh(&intermediate.loaded, now) && is_signed_by(&intermediate.loaded, &root.loaded)
        });
        let intermediate = match usable {
            Some(intermediate) => intermediate,
            None => self.save(INTERMEDIATE, &make_intermediate(&root, now)?)?,
        };
        Ok(Authority { root_pem: root.loaded.chain_pem().to_owned(), intermediate })
    }

    /// Refuses to replace a root that is still valid and whose key is missing or wrong: clients trust this root.
    fn must_not_be_trusted(&self, now: SystemTime) -> Result<(), Problem> {
        let Some(content) = self.storage.read(ROOT.0)? else { return Ok(()) };
        let Ok(certificate) = CertificateDer::from_pem_slice(&content) else { return Ok(()) };
        let Ok((_, parsed)) = X509Certificate::from_der(&certificate) else { return Ok(()) };
        let ends = u64::try_from(parsed.validity().not_after.timestamp()).unwrap_or_default();
        if UNIX_EPOCH + Duration::from_secs(ends) <= now {
            return Ok(());
        }
        Err(Problem::Read(format!(
            "the local authority's root {} is there, and {} is missing or belongs to another: put the key back, or remove both, \
             and trust the new root with `onehop trust`",
            ROOT.0, ROOT.1
        )))
    }

    fn load(&self, keys: (&str, &str)) -> Result<Option<Held>, Problem> {
        let Some(loaded) = load_pair(&*self.storage, keys.0, keys.1)? else {
            return Ok(None);
        };
        let Some(key) = self.storage.read(keys.1)? else {
            return Ok(None);
        };
        Ok(held(loaded, &key).ok())
    }

    fn save(&self, keys: (&str, &str), pem: &Pem) -> Result<Held, Problem> {
        self.storage.write_together(&[(keys.1, pem.key.as_bytes()), (keys.0, pem.chain.as_bytes())])?;
        let loaded = Loaded::from_pem((pem.chain.as_bytes(), keys.0), (pem.key.as_bytes(), keys.1));
        held(loaded.map_err(|error| Problem::Read(error.to_string()))?, pem.key.as_bytes())
    }
}

impl Issuer for LocalAuthority {
    fn folder(&self) -> &'static str {
        FOLDER
    }

    fn issue<'a>(&'a self, order: &'a CertificateOrder) -> Issuing<'a, Pem> {
        Box::pin(async move {
            self.with_authority(|authority, now| make_leaf(&authority.intermediate, order, now))
                .map_err(IssueError::from)
        })
    }
}

fn held(loaded: Loaded, key: &[u8]) -> Result<Held, Problem> {
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| Problem::Read(error.to_string()))?;
    let key = KeyPair::try_from(&key)?;
    let Some(certificate) = loaded.certified_key().cert.first() else {
        return Err(Problem::Read("it is empty".to_owned()));
    };
    let signer = Signer::from_ca_cert_der(certificate, key)?;
    Ok(Held { loaded, signer })
}

/// Whether at least a third of its life is left.
fn is_fresh(loaded: &Loaded, now: SystemTime) -> bool {
    let life = loaded.not_after.duration_since(loaded.not_before).unwrap_or_default();
    loaded.is_valid_at(now) && loaded.not_after.duration_since(now).is_ok_and(|left| left >= life / 3)
}

fn is_signed_by(loaded: &Loaded, issuer: &Loaded) -> bool {
    let (Some(der), Some(issuer_der)) =
        (loaded.certified_key().cert.first(), issuer.certified_key().cert.first())
    else {
        return false;
    };
    let (Ok((_, certificate)), Ok((_, issuer))) =
        (X509Certificate::from_der(der), X509Certificate::from_der(issuer_der))
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

fn make_root(now: SystemTime) -> Result<Pem, Problem> {
    let key = KeyPair::generate()?;
    let mut params = params(None, now, ROOT_LIFE, None);
    let name = format!("Onehop Local Authority - {} ECC Root", params.not_before.year());
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(1));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(Pem { chain: params.self_signed(&key)?.pem(), key: key.serialize_pem() })
}

fn make_intermediate(root: &Held, now: SystemTime) -> Result<Pem, Problem> {
    let key = KeyPair::generate()?;
    let name = "Onehop Local Authority - ECC Intermediate";
    let mut params = params(Some(name), now, INTERMEDIATE_LIFE, Some(&root.loaded));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    Ok(Pem { chain: params.signed_by(&key, &root.signer)?.pem(), key: key.serialize_pem() })
}

fn make_leaf(intermediate: &Held, order: &CertificateOrder, now: SystemTime) -> Result<Pem, Problem> {
    let key = generate_key(order.key_type)?;
    // Without a subject, the names are what counts (RFC 5280 section 4.1.2.6).
    let mut params = params(None, now, LEAF_LIFE, Some(&intermediate.loaded));
    params.subject_alt_names = vec![match order.name.parse::<IpAddr>() {
        Ok(address) => SanType::IpAddress(address),
        Err(_) => SanType::DnsName(order.name.as_str().try_into()?),
    }];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let leaf = params.signed_by(&key, &intermediate.signer)?.pem();
    Ok(Pem { chain: leaf + intermediate.loaded.chain_pem(), key: key.serialize_pem() })
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
