//! Certificates as handshakes use them.

use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CipherSuite, NamedGroup, SignatureAlgorithm, SignatureScheme};
use std::collections::HashMap;

/// A certificate with its issuers and its key.
#[derive(Debug, Clone)]
pub struct Chain(Arc<CertifiedKey>);

impl Chain {
    /// A chain that was verified to belong to its key.
    pub fn new(key: Arc<CertifiedKey>) -> Self {
        Self(key)
    }

    /// As rustls has it.
    pub fn certified(&self) -> &Arc<CertifiedKey> {
        &self.0
    }

    /// Whether a client that sent this can verify its signatures.
    fn suits(&self, hello: &ClientHello<'_>) -> bool {
        self.0.key.choose_scheme(hello.signature_schemes()).is_some()
            && hello.cipher_suites().iter().any(|suite| self.signs_for(*suite))
            && self.has_known_curve(hello)
    }

    /// Whether a client without TLS 1.3 names the curve of this key among its groups, which are about certificates too there
    /// (RFC 8422 section 5.1.1).
    fn has_known_curve(&self, hello: &ClientHello<'_>) -> bool {
        let is_new = |suite: &CipherSuite| suite.as_str().is_some_and(|name| name.starts_with("TLS13_"));
        let Some(groups) = hello.named_groups().filter(|_| !hello.cipher_suites().iter().any(is_new)) else {
            return true;
        };
        let scheme = self.0.key.choose_scheme(hello.signature_schemes()).map(|signer| signer.scheme());
        match scheme {
            Some(SignatureScheme::ECDSA_NISTP256_SHA256) => groups.contains(&NamedGroup::secp256r1),
            Some(SignatureScheme::ECDSA_NISTP384_SHA384) => groups.contains(&NamedGroup::secp384r1),
            _ => true,
        }
    }

    /// Whether a cipher suite goes with this kind of key: those of TLS 1.3 go with any, those of TLS 1.2 name one
    /// (RFC 8422 section 2; EdDSA goes with ECDSA's, section 5.10). A client may verify signatures of chains without a
    /// suite for them.
    fn signs_for(&self, suite: CipherSuite) -> bool {
        let name = suite.as_str().unwrap_or_default();
        match self.0.key.algorithm() {
            SignatureAlgorithm::RSA => name.starts_with("TLS13_") || name.starts_with("TLS_ECDHE_RSA_"),
            _ => name.starts_with("TLS13_") || name.starts_with("TLS_ECDHE_ECDSA_"),
        }
    }

    /// Signing with ECDSA costs a third of RSA's, so those go first.
    fn rank(&self) -> u8 {
        match self.0.key.algorithm() {
            SignatureAlgorithm::ECDSA => 0,
            SignatureAlgorithm::ED25519 => 1,
            _ => 2,
        }
    }
}

/// The chain that a client gets of these: the first that it can verify, ECDSA first.
pub fn choose<'c>(chains: &'c [Chain], hello: &ClientHello<'_>) -> Option<&'c Chain> {
    let suited = chains.iter().filter(|chain| chain.suits(hello)).min_by_key(|chain| chain.rank());
    suited.or_else(|| chains.first())
}

/// Certificates by name.
#[derive(Debug, Default)]
pub struct ChainTable(HashMap<Box<str>, Vec<Chain>>);

impl ChainTable {
    /// A table of names, each with a chain. A name may begin with `*.`.
    pub fn new(chains: impl IntoIterator<Item = (String, Chain)>) -> Self {
        let mut table: HashMap<Box<str>, Vec<Chain>> = HashMap::new();
        for (name, chain) in chains {
            table.entry(name.into()).or_default().push(chain);
        }
        Self(table)
    }

    /// The chains for a name in lower case: its own, else those of the wildcard above it (RFC 9525 section 6.3).
    pub fn find(&self, name: &str) -> &[Chain] {
        if let Some(own) = self.0.get(name) {
            return own;
        }
        let above = name.split_once('.').map(|(_, above)| format!("*.{above}"));
        above.and_then(|wildcard| self.0.get(wildcard.as_str())).map_or(&[], Vec::as_slice)
    }
}

/// Always returns the same chain: it was chosen before, from the client's first message.
#[derive(Debug)]
pub(crate) struct Always(pub(crate) Chain);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.0))
    }
}

#[cfg(test)]
mod tests {
    use rustls::crypto::aws_lc_rs::default_provider;
    use rustls::pki_types::PrivateKeyDer;

    use super::*;

    fn chain(name: &str) -> Chain {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let certificate = made.cert.der().clone();
        Chain::new(
            CertifiedKey::from_der(vec![certificate], key, &default_provider()).expect("a pair").into(),
        )
    }

    #[test]
    fn a_name_has_its_own_certificate_before_that_of_a_wildcard() {
        let (own, wild) = (chain("a.example.com"), chain("*.example.com"));
        let table = ChainTable::new([
            ("a.example.com".to_owned(), own.clone()),
            ("*.example.com".to_owned(), wild.clone()),
        ]);
        let is = |name: &str, chain: &Chain| Arc::ptr_eq(table.find(name)[0].certified(), chain.certified());
        assert!(is("a.example.com", &own));
        assert!(is("b.example.com", &wild));
        assert!(table.find("a.b.example.com").is_empty());
        assert!(table.find("example.com").is_empty());
        assert!(table.find("").is_empty());
    }
}
