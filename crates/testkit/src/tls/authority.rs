//! An authority that lives as long as a test, and what it issues.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Issues certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// What clients and servers have to trust.
    pub root: CertificateDer<'static>,
    /// The same as text.
    pub root_pem: String,
}

/// What a certificate's key signs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyKind {
    /// ECDSA on P-256.
    #[default]
    Ecdsa,
    /// RSA with 2048 bits.
    Rsa,
}

/// When a certificate holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Validity {
    /// Now.
    #[default]
    Now,
    /// It has expired.
    Expired,
    /// It ends within the hour, after years.
    Ending,
}

/// A certificate with its key.
#[derive(Clone)]
pub struct Identity {
    /// The certificate, then its issuers without the root.
    pub chain: Vec<CertificateDer<'static>>,
    /// The same as text.
    pub chain_pem: String,
    /// The key as text.
    pub key_pem: String,
}

impl Authority {
    /// An authority of this name.
    ///
    /// # Panics
    /// Where no key can be made.
    pub fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let root = params.self_signed(&key).expect("a root");
        let (pem, root) = (root.pem(), root.der().clone());
        Authority { issuer: Issuer::new(params, key), root, root_pem: pem }
    }

    /// A certificate for these names, with an ECDSA key.
    ///
    /// # Panics
    /// As [`Authority::issue_as`].
    pub fn issue(&self, names: &[&str]) -> Identity {
        self.issue_as(names, KeyKind::Ecdsa, Validity::Now)
    }

    /// A certificate for these names, for servers and clients alike.
    ///
    /// # Panics
    /// Where a name is none, or no key can be made.
    pub fn issue_as(&self, names: &[&str], kind: KeyKind, validity: Validity) -> Identity {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.use_authority_key_identifier_extension = true;
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        match validity {
            Validity::Now => {}
            Validity::Expired => {
                (params.not_before, params.not_after) =
                    (date_time_ymd(2020, 1, 1), date_time_ymd(2020, 2, 1));
            }
            Validity::Ending => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
                params.not_before = date_time_ymd(2020, 1, 1);
                params.not_after = date_time_ymd(1970, 1, 1) + now + Duration::from_secs(30 * 60);
            }
        }
        let key = match kind {
            KeyKind::Ecdsa => KeyPair::generate(),
            KeyKind::Rsa => KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256),
        };
        let key = key.expect("a key");
        let leaf = params.signed_by(&key, &self.issuer).expect("a certificate");
        Identity { chain: vec![leaf.der().clone()], chain_pem: leaf.pem(), key_pem: key.serialize_pem() }
    }
}

impl Identity {
    /// Its key, as rustls has it.
    ///
    /// # Panics
    /// Where the text is none, which no authority makes.
    pub fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes()).expect("a key")
    }

    /// Writes `NAME.crt` and `NAME.key` into a folder; says where.
    ///
    /// # Panics
    /// Where they cannot be written.
    pub fn write(&self, folder: &Path, name: &str) -> (PathBuf, PathBuf) {
        let (chain, key) = (folder.join(format!("{name}.crt")), folder.join(format!("{name}.key")));
        std::fs::write(&chain, &self.chain_pem).expect("a certificate");
        std::fs::write(&key, &self.key_pem).expect("a key");
        (chain, key)
    }
}

/// The certificates of a file in PEM.
///
/// # Panics
/// Where it cannot be read.
pub fn certificates_in(path: &Path) -> Vec<CertificateDer<'static>> {
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    all.unwrap_or_else(|error| panic!("no certificates in {}: {error}", path.display()))
}
