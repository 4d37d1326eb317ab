//! ACME accounts as Caddy keeps them: the key in PEM, and JSON with the account's address at the server.

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;

/// The credentials of an account of Caddy's, as [`AccountStore`](crate::AccountStore) keeps them. `None` where they cannot be
/// used: damaged ones, or a key that is not on P-256.
pub fn credentials_from_caddy(account: &str, key_pem: &str, directory: &str) -> Option<String> {
    let account: serde_json::Value = serde_json::from_str(account).ok()?;
    let id = account.get("location")?.as_str().filter(|id| !id.is_empty())?;
    let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).ok()?;
    let key = EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, key.secret_der()).ok()?;
    let key = BASE64_URL_SAFE_NO_PAD.encode(key.to_pkcs8v1().ok()?.as_ref());
    Some(serde_json::json!({ "id": id, "key_pkcs8": key, "directory": directory }).to_string())
}

#[cfg(test)]
mod tests {
    use instant_acme::AccountCredentials;

    use super::*;

    /// As Go writes it (RFC 5915). It belongs to no account.
    const KEY: &str = "-----BEGIN EC PRIVATE KEY-----\n\
        MHcCAQEEIMvxTvH3sLOckWYP6z9qe7KRKgMeGODlPiWi5Q+vRqikoAoGCCqGSM49\n\
        AwEHoUQDQgAEwIaRWPIF6E4CEu8qDyNo64quc9+YRZpO64N58DGBfWCNmh3xq/l4\n\
        ELCiDJ1CeAPKg/lqzUfhj8Hs5t4kvF59Dg==\n\
        -----END EC PRIVATE KEY-----";
    const ACCOUNT: &str = r#"{"status": "valid", "contact": ["mailto:me@a.example"], "termsOfServiceAgreed": true,
        "location": "https://ca.example/acct/1"}"#;

    #[test]
    fn an_account_of_caddys_is_used_and_a_damaged_one_is_not() {
        let directory = "https://ca.example/dir";
        let credentials = credentials_from_caddy(ACCOUNT, KEY, directory).unwrap();
        let parsed: AccountCredentials = serde_json::from_str(&credentials).unwrap();
        assert!(!parsed.private_key().secret_pkcs8_der().is_empty());
        assert!(credentials.contains("https://ca.example/acct/1"));
        for (account, key) in [("{}", KEY), (ACCOUNT, "no key"), ("", KEY), (r#"{"location": ""}"#, KEY)] {
            assert_eq!(credentials_from_caddy(account, key, directory), None, "{account}");
        }
    }
}
