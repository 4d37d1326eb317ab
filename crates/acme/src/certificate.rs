//! Keys, requests for certificates, and whether what an issuer returns is what was ordered.

use std::net::IpAddr;

use onehop_certificates::issuer::KeyType;
use rcgen::{
    CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384,
    PKCS_ED25519, PKCS_RSA_SHA256, PublicKeyData, RsaKeySize,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;

/// A new key.
pub(crate) fn new_key(kind: KeyType) -> Result<KeyPair, String> {
    let key = match kind {
        KeyType::P256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
        KeyType::P384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
        KeyType::Ed25519 => KeyPair::generate_for(&PKCS_ED25519),
        KeyType::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
        KeyType::Rsa4096 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096),
    };
    key.map_err(|error| format!("no key can be made: {error}"))
}

/// A request for a certificate (RFC 2986) as DER: the name alone, as a subject alternative name.
pub(crate) fn signing_request(name: &str, key: &KeyPair) -> Result<Vec<u8>, String> {
    let made = CertificateParams::new([name.to_owned()]).and_then(|mut params| {
        params.distinguished_name = DistinguishedName::new();
        params.serialize_request(key)
    });
    made.map(|request| request.der().to_vec())
        .map_err(|error| format!("{name:?} is no name to certify: {error}"))
}

/// The first certificate of a PEM chain.
pub(crate) fn leaf(chain: &str) -> Result<CertificateDer<'static>, String> {
    CertificateDer::from_pem_slice(chain.as_bytes()).map_err(|error| format!("the chain is no PEM: {error}"))
}

/// Checks that a chain is valid now, for this name and for this key. Whether its issuer is trusted is decided by clients.
pub(crate) fn verify(chain: &str, name: &str, key: &KeyPair) -> Result<(), String> {
    let leaf = leaf(chain)?;
    let parsed = x509_parser::parse_x509_certificate(&leaf);
    let (_, leaf) = parsed.map_err(|error| format!("the certificate is malformed: {error}"))?;
    if !is_for(&leaf, name) {
        return Err(format!("the certificate is not for {name}"));
    }
    if leaf.public_key().raw != key.subject_public_key_info() {
        return Err("the certificate is for another key".to_owned());
    }
    if !leaf.validity().is_valid() {
        let (from, until) = (leaf.validity().not_before, leaf.validity().not_after);
        return Err(format!("the certificate is valid from {from} until {until}: check this server's clock"));
    }
    Ok(())
}

/// Whether the name is among those of the certificate.
fn is_for(certificate: &X509Certificate<'_>, name: &str) -> bool {
    let Ok(Some(names)) = certificate.subject_alternative_name() else { return false };
    let address = name.parse::<IpAddr>().ok().map(|address| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    });
    names.value.general_names.iter().any(|general| match (general, &address) {
        (GeneralName::DNSName(found), None) => found.eq_ignore_ascii_case(name),
        (GeneralName::IPAddress(found), Some(address)) => found == address,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use rcgen::date_time_ymd;

    use super::*;

    #[test]
    fn a_chain_is_for_the_name_and_the_key_and_valid_now() {
        let [key, other] = [(), ()].map(|()| new_key(KeyType::P256).unwrap());
        let made = |name: &str, until: i32| {
            let mut params = CertificateParams::new([name.to_owned()]).unwrap();
            params.not_after = date_time_ymd(until, 1, 1);
            params.self_signed(&key).unwrap().pem()
        };
        for (name, until, wanted, key, expected) in [
            ("example.com", 4096, "example.com", &key, None),
            ("*.example.com", 4096, "*.example.com", &key, None),
            ("192.0.2.1", 4096, "192.0.2.1", &key, None),
            ("2001:db8::1", 4096, "2001:db8:0::1", &key, None),
            ("example.com", 4096, "www.example.com", &key, Some("not for www.example.com")),
            ("192.0.2.1", 4096, "192.0.2.2", &key, Some("not for 192.0.2.2")),
            ("example.com", 4096, "example.com", &other, Some("another key")),
            ("example.com", 2001, "example.com", &key, Some("check this server's clock")),
        ] {
            let verified = verify(&made(name, until), wanted, key);
            match expected {
                None => assert_eq!(verified, Ok(()), "{name}"),
                Some(expected) => assert!(verified.as_ref().unwrap_err().contains(expected), "{verified:?}"),
            }
        }
        assert!(verify("no PEM", "example.com", &key).is_err());
    }

    #[test]
    fn keys_of_all_types_sign_requests() {
        for kind in [KeyType::P256, KeyType::P384, KeyType::Ed25519, KeyType::Rsa2048] {
            let key = new_key(kind).unwrap();
            assert!(!signing_request("*.example.com", &key).unwrap().is_empty(), "{kind:?}");
        }
    }
}
