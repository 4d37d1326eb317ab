//! A certificate in memory: its chain, its key, and what is known about it. Also reads users' own files.
//!
//! A [`Loaded`] is only made if the key belongs to the certificate. An expired certificate is no error, because no better one
//! may be there; [`Loaded::warning`] reports it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_lc_rs::digest;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error as TlsError, InconsistentKeys};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

use crate::bounded_file::read_bounded;

/// What a certificate's key signs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// ECDSA, on any curve.
    Ecdsa,
    /// RSA, of any size.
    Rsa,
    /// Ed25519.
    Ed25519,
    /// A key that has no name here.
    Other,
}

/// Why a certificate cannot be used: the file, the cause and the next step, complete.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LoadError(pub String);

/// A certificate chain with its key, verified to belong together.
#[derive(Debug)]
pub struct Loaded {
    chain_pem: String,
    key: Arc<CertifiedKey>,
    /// The names that it is for: DNS names in lower case, then IP addresses in canonical form.
    pub names: Vec<String>,
    /// Not valid before.
    pub not_before: SystemTime,
    /// Not valid after.
    pub not_after: SystemTime,
    /// The common name of its issuer; empty if it has none.
    pub issuer: String,
    /// What its key signs with.
    pub key_kind: KeyKind,
    /// The serial number, in lower-case hexadecimal digits.
    pub serial: String,
    /// SHA-256 of the certificate (DER).
    pub fingerprint: [u8; 32],
}

impl Loaded {
    /// A number from 0 to 1 that is the certificate's own, and as good as random: it places the renewal in the issuer's window, and a
    /// restart does not move it.
    pub(crate) fn jitter(&self) -> f64 {
        let [first, second, third, fourth, ..] = self.fingerprint;
        f64::from(u32::from_be_bytes([first, second, third, fourth])) / f64::from(u32::MAX)
    }

    /// Loads a chain and its key, each with the place to name in errors.
    pub fn from_pem(chain: (&[u8], &str), key: (&[u8], &str)) -> Result<Self, LoadError> {
        let certificates = read_chain(chain.0, chain.1)?;
        let private = read_key(key.0, key.1)?;
        let refuse = |why: String| LoadError(format!("the certificate in {} cannot be used: {why}", chain.1));
        let Some(leaf) = certificates.first() else {
            return Err(refuse("there is none".to_owned()));
        };
        let (_, parsed) = X509Certificate::from_der(leaf)
            .map_err(|error| refuse(format!("it is no X.509 certificate ({error})")))?;
        let digest = digest::digest(&digest::SHA256, leaf);
        let mut loaded = Self {
            chain_pem: only_certificates(chain.0),
            names: names(&parsed),
            not_before: time(parsed.validity().not_before.timestamp()),
            not_after: time(parsed.validity().not_after.timestamp()),
            issuer: common_name(&parsed),
            key_kind: key_kind(&parsed),
            serial: parsed.raw_serial().iter().map(|byte| format!("{byte:02x}")).collect(),
            fingerprint: std::array::from_fn(|at| digest.as_ref().get(at).copied().unwrap_or_default()),
            key: Arc::new(CertifiedKey::new(Vec::new(), any_key(&private, key.1)?)),
        };
        let certified = CertifiedKey::new(certificates, Arc::clone(&loaded.key.key));
        certified.keys_match().map_err(|error| match error {
            TlsError::InconsistentKeys(InconsistentKeys::KeyMismatch) => LoadError(format!(
                "the key in {} does not belong to the first certificate in {}: use the key that the certificate was \
                 requested with, and put the server's own certificate before its issuers",
                key.1, chain.1
            )),
            other => refuse(other.to_string()),
        })?;
        loaded.key = Arc::new(certified);
        Ok(loaded)
    }

    /// Loads a user's own files: `tls cert.pem key.pem`.
    pub fn from_files(chain: &Path, key: &Path) -> Result<Self, LoadError> {
        let read = |path: &Path, what: &str| match read_bounded(path) {
            Ok(Some(content)) => Ok(content),
            Ok(None) => Err(LoadError(format!("there is no {what} {}: correct its path", path.display()))),
            Err(error) => Err(LoadError(error.to_string())),
        };
        let (chain_pem, key_pem) = (read(chain, "certificate file")?, read(key, "key file")?);
        Self::from_pem((&chain_pem, &chain.display().to_string()), (&key_pem, &key.display().to_string()))
    }

    /// The chain (PEM), without anything else that its file holds.
    pub fn chain_pem(&self) -> &str {
        &self.chain_pem
    }

    /// What handshakes use.
    pub fn certified_key(&self) -> &Arc<CertifiedKey> {
        &self.key
    }

    /// Whether a client that asked for `name` accepts the certificate (RFC 9525 section 6.3): a wildcard stands for
    /// one label. IP addresses are compared as numbers.
    pub fn matches_name(&self, name: &str) -> bool {
        let name = canonical(name);
        self.names.iter().any(|pattern| name_matches(pattern, &name))
    }

    /// Whether the certificate is valid at this time.
    pub fn is_valid_at(&self, now: SystemTime) -> bool {
        (self.not_before..=self.not_after).contains(&now)
    }

    /// The warning for a person, if the certificate is not valid at this time.
    pub fn warning(&self, now: SystemTime) -> Option<String> {
        let names = self.names.join(", ");
        let days =
            |from: SystemTime, to: SystemTime| to.duration_since(from).unwrap_or_default().as_secs() / 86_400;
        if now > self.not_after {
            let days = days(self.not_after, now);
            Some(format!(
                "the certificate for {names} expired {days} days ago: clients refuse it until it is replaced"
            ))
        } else if now < self.not_before {
            let days = days(now, self.not_before);
            Some(format!(
                "the certificate for {names} becomes valid in {days} days: is the clock of this machine right?"
            ))
        } else {
            None
        }
    }
}

fn any_key(
    key: &PrivateKeyDer<'static>,
    place: &str,
) -> Result<Arc<dyn rustls::sign::SigningKey>, LoadError> {
    let loaded = default_provider().key_provider.load_private_key(key.clone_key());
    loaded.map_err(|error| LoadError(format!("the key in {place} cannot be used: {error}")))
}

/// A name in the one form in which names are compared: lower case without a final dot, IP addresses in canonical form.
pub fn canonical(name: &str) -> String {
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    match bare.parse::<IpAddr>() {
        Ok(address) => address.to_string(),
        Err(_) => name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase(),
    }
}

/// Whether a name of a certificate is for a name that a client asked for, both in canonical form.
fn name_matches(pattern: &str, name: &str) -> bool {
    if pattern == name {
        return true;
    }
    let wildcard = pattern.strip_prefix("*.").zip(name.split_once('.'));
    wildcard.is_some_and(|(domain, (label, rest))| {
        !label.is_empty() && label != "*" && domain == rest && name.parse::<IpAddr>().is_err()
    })
}

fn read_chain(content: &[u8], place: &str) -> Result<Vec<CertificateDer<'static>>, LoadError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(content).collect();
    let chain = read.map_err(|error| {
        LoadError(format!("{place} is no PEM file: {error}: copy the certificate file again"))
    })?;
    if !chain.is_empty() {
        return Ok(chain);
    }
    Err(LoadError(if has_label(content, "PRIVATE KEY") {
        format!("{place} holds a private key, where the certificate is expected: are the two files swapped?")
    } else {
        format!(
            "{place} holds no certificate in PEM form (`-----BEGIN CERTIFICATE-----`): for a DER file, run `openssl \
             x509 -inform der -in {place}`"
        )
    }))
}

fn read_key(content: &[u8], place: &str) -> Result<PrivateKeyDer<'static>, LoadError> {
    let is_encrypted =
        has_label(content, "ENCRYPTED PRIVATE KEY") || contains(content, b"Proc-Type: 4,ENCRYPTED");
    if is_encrypted {
        return Err(LoadError(format!(
            "the key in {place} is encrypted with a password: write it without one with `openssl pkey -in {place} -out \
             plain.pem`, and protect the file with `chmod 600`"
        )));
    }
    PrivateKeyDer::from_pem_slice(content).map_err(|error| {
        LoadError(if has_label(content, "PRIVATE KEY") {
            format!("the private key in {place} is damaged ({error}): copy it again")
        } else if has_label(content, "CERTIFICATE") {
            format!(
                "{place} holds a certificate, where the private key is expected: are the two files swapped?"
            )
        } else {
            format!(
                "{place} holds no private key in PEM form (`-----BEGIN PRIVATE KEY-----`): correct its path"
            )
        })
    })
}

/// The certificates of a PEM file: it may hold the key, too, which goes nowhere else.
fn only_certificates(content: &[u8]) -> String {
    let (mut chain, mut is_inside) = (String::with_capacity(content.len()), false);
    for line in String::from_utf8_lossy(content).lines().map(str::trim_end) {
        is_inside |= line == "-----BEGIN CERTIFICATE-----";
        if is_inside {
            chain.push_str(line);
            chain.push('\n');
        }
        is_inside &= line != "-----END CERTIFICATE-----";
    }
    chain
}

fn has_label(content: &[u8], label: &str) -> bool {
    contains(content, format!("{label}-----").as_bytes())
}

fn contains(content: &[u8], part: &[u8]) -> bool {
    content.windows(part.len()).any(|window| window == part)
}

fn time(seconds: i64) -> SystemTime {
    let since = Duration::from_secs(seconds.unsigned_abs());
    let at = if seconds < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(since)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(since)
    };
    at.unwrap_or(SystemTime::UNIX_EPOCH)
}

fn common_name(certificate: &X509Certificate<'_>) -> String {
    let name = certificate.issuer().iter_common_name().next().and_then(|name| name.as_str().ok());
    name.unwrap_or_default().to_owned()
}

fn key_kind(certificate: &X509Certificate<'_>) -> KeyKind {
    match certificate.public_key().algorithm.algorithm.to_id_string().as_str() {
        // RFC 5480 section 2.1.1, RFC 3279 section 2.3.1, RFC 8410 section 3.
        "1.2.840.10045.2.1" => KeyKind::Ecdsa,
        "1.2.840.113549.1.1.1" => KeyKind::Rsa,
        "1.3.101.112" => KeyKind::Ed25519,
        _ => KeyKind::Other,
    }
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(alternatives)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let name = |general: &GeneralName<'_>| match general {
        GeneralName::DNSName(name) => Some(canonical(name)),
        GeneralName::IPAddress(octets) => {
            let four = <[u8; 4]>::try_from(*octets).map(|octets| Ipv4Addr::from(octets).to_string());
            four.or_else(|_| <[u8; 16]>::try_from(*octets).map(|octets| Ipv6Addr::from(octets).to_string()))
                .ok()
        }
        _ => None,
    };
    alternatives.value.general_names.iter().filter_map(name).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use aws_lc_rs::agreement::{ECDH_P256, PrivateKey};
    use aws_lc_rs::encoding::{AsDer, EcPrivateKeyRfc5915Der};
    use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, PKCS_RSA_SHA256, RsaKeySize};

    use super::*;
    use crate::issuer::Pem;

    /// A certificate that signed itself, valid from a day ago for 30 days.
    pub(crate) fn self_signed(name: &str) -> Pem {
        valid_for(name, SystemTime::now() - Duration::from_secs(86_400), Duration::from_secs(30 * 86_400))
    }

    /// A certificate that signed itself, with this lifetime.
    pub(crate) fn valid_for(name: &str, not_before: SystemTime, life: Duration) -> Pem {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.not_before = not_before.into();
        params.not_after = (not_before + life).into();
        Pem { chain: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
    }

    fn load(chain: &str, key: &str) -> Result<Loaded, LoadError> {
        Loaded::from_pem((chain.as_bytes(), "cert.pem"), (key.as_bytes(), "key.pem"))
    }

    fn pem(label: &str, der: &[u8]) -> String {
        let base64 = rcgen::KeyPair::generate().map(|_| encode(der)).unwrap();
        format!("-----BEGIN {label}-----\n{base64}\n-----END {label}-----\n")
    }

    fn encode(bytes: &[u8]) -> String {
        const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let sextets = bytes.chunks(3).flat_map(|chunk| {
            let word =
                chunk.iter().chain([&0, &0]).take(3).fold(0u32, |word, byte| word << 8 | u32::from(*byte));
            (0..4).map(move |at| {
                let letter = LETTERS[(word >> (18 - 6 * at) & 63) as usize];
                if at <= chunk.len() { char::from(letter) } else { '=' }
            })
        });
        sextets.collect()
    }

    #[test]
    fn a_certificate_tells_what_is_in_it() {
        let key = KeyPair::generate().unwrap();
        let names = [
            "A.example".to_owned(),
            "*.b.example".to_owned(),
            "2001:db8::1".to_owned(),
            "192.0.2.1".to_owned(),
        ];
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, "an issuer");
        params.serial_number = Some(vec![1, 0xab].into());
        let certificate = params.self_signed(&key).unwrap();
        let loaded = load(&certificate.pem(), &key.serialize_pem()).unwrap();
        assert_eq!(loaded.names, ["a.example", "*.b.example", "2001:db8::1", "192.0.2.1"]);
        assert_eq!((loaded.issuer.as_str(), loaded.serial.as_str()), ("an issuer", "01ab"));
        assert_eq!(loaded.key_kind, KeyKind::Ecdsa);
        let digest = digest::digest(&digest::SHA256, certificate.der());
        assert_eq!(loaded.fingerprint, digest.as_ref());
        for (name, expected) in [
            ("a.example", true),
            ("A.EXAMPLE.", true),
            ("x.a.example", false),
            ("x.b.example", true),
            ("b.example", false),
            ("*.b.example", true),
            ("*.example", false),
            ("x.y.b.example", false),
            (".b.example", false),
            ("2001:DB8:0::1", true),
            ("[2001:db8::1]", true),
            ("2001:db8::2", false),
            ("192.0.2.1", true),
            ("", false),
        ] {
            assert_eq!(loaded.matches_name(name), expected, "{name}");
        }
    }

    #[test]
    fn keys_are_read_in_every_form_that_tools_write() {
        let ecdsa = KeyPair::generate().unwrap();
        let sec1 = PrivateKey::from_private_key_der(&ECDH_P256, ecdsa.serialized_der()).unwrap();
        let sec1: EcPrivateKeyRfc5915Der<'_> = sec1.as_der().unwrap();
        let rsa = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
        // The header of PKCS #8 for RSA has 26 bytes, then PKCS #1 follows.
        let pkcs1 = pem("RSA PRIVATE KEY", &rsa.serialized_der()[26..]);
        let ed25519 = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        for (key, text, kind) in [
            (&ecdsa, ecdsa.serialize_pem(), KeyKind::Ecdsa),
            (&ecdsa, pem("EC PRIVATE KEY", sec1.as_ref()), KeyKind::Ecdsa),
            (&rsa, rsa.serialize_pem(), KeyKind::Rsa),
            (&rsa, pkcs1, KeyKind::Rsa),
            (&ed25519, ed25519.serialize_pem(), KeyKind::Ed25519),
        ] {
            let chain =
                CertificateParams::new(["a.example".to_owned()]).unwrap().self_signed(key).unwrap().pem();
            assert_eq!(load(&chain, &text).unwrap().key_kind, kind, "{text}");
            // One file with both serves as either.
            let both = format!("{text}{chain}");
            let loaded = load(&both, &both).unwrap();
            assert_eq!((loaded.key_kind, loaded.chain_pem()), (kind, &*chain));
        }
    }

    #[test]
    fn an_error_names_the_file_the_cause_and_the_next_step() {
        let (one, other) = (self_signed("a.example"), self_signed("a.example"));
        let encrypted = pem("ENCRYPTED PRIVATE KEY", b"secret");
        let legacy = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END RSA PRIVATE KEY-----\n";
        let damaged = pem("PRIVATE KEY", b"damaged");
        let unknown = pem("CERTIFICATE", b"damaged");
        for (chain, key, expected) in [
            (
                &*one.key,
                &*one.chain,
                "cert.pem holds a private key, where the certificate is expected: are the two",
            ),
            (&one.chain, &one.chain, "key.pem holds a certificate, where the private key is expected"),
            (
                &one.chain,
                &other.key,
                "the key in key.pem does not belong to the first certificate in cert.pem: use",
            ),
            (
                &one.chain,
                &encrypted,
                "the key in key.pem is encrypted with a password: write it without one with `o",
            ),
            (&one.chain, legacy, "the key in key.pem is encrypted"),
            (&one.chain, &damaged, "the key in key.pem cannot be used"),
            (&one.chain, "", "key.pem holds no private key in PEM form"),
            ("\u{1}\u{2}", &one.key, "cert.pem holds no certificate in PEM form"),
            (&unknown, &one.key, "the certificate in cert.pem cannot be used: it is no X.509 certificate"),
            ("-----BEGIN CERTIFICATE-----\n", &one.key, "cert.pem is no PEM file"),
        ] {
            let message = load(chain, key).unwrap_err().0;
            assert!(message.starts_with(expected), "{message}");
        }
        let message = Loaded::from_files(Path::new("/nowhere/a"), Path::new("/nowhere/b")).unwrap_err().0;
        assert_eq!(message, "there is no certificate file /nowhere/a: correct its path");
    }

    #[test]
    fn a_certificate_outside_its_lifetime_is_loaded_with_a_warning() {
        let day = Duration::from_secs(86_400);
        let start = SystemTime::UNIX_EPOCH + 20_000 * day;
        let pem = valid_for("a.example", start, day);
        let loaded = load(&pem.chain, &pem.key).unwrap();
        assert!(loaded.is_valid_at(start) && loaded.is_valid_at(start + day));
        assert_eq!(loaded.warning(start), None);
        let expired = loaded.warning(start + 3 * day).unwrap();
        assert!(expired.contains("for a.example expired 2 days ago"), "{expired}");
        assert!(loaded.warning(start - 3 * day).unwrap().contains("becomes valid in 3 days"));
    }
}
