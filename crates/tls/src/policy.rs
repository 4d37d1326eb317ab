//! What is negotiated with the clients of a site, as rustls has it.
//!
//! A policy has a number that stays while the process runs: a connection was negotiated under one, and a request for a site
//! with another one is misdirected (RFC 9110 section 15.5.20).

use std::sync::Arc;

use onehop_config::checked::tls::{ClientAuthMode, TlsPolicy, TlsVersion};
use rustls::compress::CompressionCache;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{Ticketer, default_provider};
use rustls::server::{ClientHello, NoServerSessionStorage, ProducesTickets};
use rustls::{CipherSuite, ServerConfig, SupportedProtocolVersion};

use crate::certificate::{Always, Chain};
use crate::client_auth::{self, Trusted};
use crate::compression::COMPRESSORS;
use crate::limits::{COMPRESSED_CHAINS_MAX, TICKETS_PER_HANDSHAKE};

/// The protocols that are offered where nothing else is said, in the order of preference, as ALPN names them (RFC 7301 section 6).
const PROTOCOLS: [&str; 2] = ["h2", "http/1.1"];

/// What is negotiated under one policy, without a certificate.
#[derive(Debug, Clone)]
pub struct Policy {
    /// From 1; 0 is a connection without TLS.
    pub number: u32,
    /// What certificate clients need; `None` asks for none.
    pub client_auth: Option<ClientAuthMode>,
    template: Arc<ServerConfig>,
}

impl Policy {
    /// A configuration that shows this chain to a client with this first message. Cheap: everything large is shared.
    pub fn with_chain(&self, chain: &Chain, hello: &ClientHello<'_>) -> Arc<ServerConfig> {
        let mut config = ServerConfig::clone(&self.template);
        config.cert_resolver = Arc::new(Always(chain.clone()));
        // A client without hardware support for AES prefers ChaCha20. Its order is then used.
        config.ignore_client_order = !hello.cipher_suites().first().is_some_and(is_chacha20);
        Arc::new(config)
    }
}

/// The policies and the session tickets of the process. They outlive a reload, so that clients resume after it, and their
/// keys rotate (rustls does that every six hours).
#[derive(Debug, Default, Clone)]
pub struct Tickets {
    /// By audience: a ticket of a site without `client_auth` must not resume a session at a site with it.
    ticketers: Vec<(Audience, Arc<dyn ProducesTickets>)>,
    known: Vec<(TlsPolicy, Option<Trusted>, Policy)>,
    /// The highest number of a policy so far. Numbers are not reused.
    numbers: u32,
}

/// The `client_auth` under which a ticket was issued: its settings, and the certificates that it trusts.
type Audience = Option<(onehop_config::checked::tls::ClientAuth, Trusted)>;

impl Tickets {
    /// The policy with these settings: the same one as before where nothing has changed, also in the files that they name.
    /// The error is for a person.
    pub fn policy(&mut self, settings: &TlsPolicy) -> Result<Policy, String> {
        let trusted = settings.client_auth.as_ref().map(Trusted::read).transpose()?;
        let same =
            |(other, of, _): &&(TlsPolicy, Option<Trusted>, Policy)| other == settings && *of == trusted;
        if let Some((_, _, policy)) = self.known.iter().find(same) {
            return Ok(policy.clone());
        }
        let audience = settings.client_auth.clone().zip(trusted.clone());
        let template = template(settings, trusted.as_ref(), self.ticketer(audience)?)?;
        self.numbers = self.numbers.saturating_add(1);
        let client_auth = settings.client_auth.as_ref().map(|auth| auth.mode);
        let policy = Policy { number: self.numbers, client_auth, template: Arc::new(template) };
        self.known.push((settings.clone(), trusted, policy.clone()));
        Ok(policy)
    }

    /// Removes policies with other numbers, and tickets that no policy uses, so that reloads do not accumulate them.
    pub fn retain(&mut self, numbers: &[u32]) {
        self.known.retain(|(_, _, policy)| numbers.contains(&policy.number));
        let known = &self.known;
        self.ticketers.retain(|(audience, _)| {
            known.iter().any(|(settings, of, _)| settings.client_auth.clone().zip(of.clone()) == *audience)
        });
    }

    fn ticketer(&mut self, audience: Audience) -> Result<Arc<dyn ProducesTickets>, String> {
        if let Some((_, ticketer)) = self.ticketers.iter().find(|(known, _)| *known == audience) {
            return Ok(Arc::clone(ticketer));
        }
        let ticketer = Ticketer::new().map_err(|error| format!("no key for session tickets: {error}"))?;
        self.ticketers.push((audience, Arc::clone(&ticketer)));
        Ok(ticketer)
    }
}

/// A configuration that shows an issuer this certificate and nothing else (RFC 8737 section 3).
pub fn challenge(chain: &Chain) -> Option<Arc<ServerConfig>> {
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().ok()?.with_no_client_auth();
    let mut config = builder.with_cert_resolver(Arc::new(Always(chain.clone())));
    config.alpn_protocols = vec![b"acme-tls/1".to_vec()];
    config.send_tls13_tickets = 0;
    Some(Arc::new(config))
}

fn template(
    settings: &TlsPolicy,
    trusted: Option<&Trusted>,
    ticketer: Arc<dyn ProducesTickets>,
) -> Result<ServerConfig, String> {
    let provider = Arc::new(provider(settings)?);
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions(settings))
        .map_err(|error| format!("`tls` leaves nothing to negotiate: {error}"))?;
    let builder = match (&settings.client_auth, trusted) {
        (Some(auth), Some(trusted)) => {
            builder.with_client_cert_verifier(client_auth::verifier(auth.mode, trusted, provider)?)
        }
        _ => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(NoChain));
    let names = || settings.protocols.iter().map(String::as_str);
    let all = PROTOCOLS.into_iter().filter(|_| settings.protocols.is_empty());
    config.alpn_protocols = names().chain(all).map(|name| name.as_bytes().to_vec()).collect();
    config.ticketer = ticketer;
    // Tickets keep sessions with the clients; a cache of ours would only remember the last 256.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = TICKETS_PER_HANDSHAKE;
    config.max_early_data_size = 0;
    config.cert_compressors = COMPRESSORS.to_vec();
    config.cert_compression_cache = Arc::new(CompressionCache::new(COMPRESSED_CHAINS_MAX));
    Ok(config)
}

fn is_chacha20(suite: &CipherSuite) -> bool {
    suite.as_str().is_some_and(|name| name.contains("CHACHA20"))
}

fn versions(settings: &TlsPolicy) -> Vec<&'static SupportedProtocolVersion> {
    let allowed = settings.oldest..=settings.newest;
    let all = [(TlsVersion::Tls13, &rustls::version::TLS13), (TlsVersion::Tls12, &rustls::version::TLS12)];
    all.into_iter().filter(|(version, _)| allowed.contains(version)).map(|(_, version)| version).collect()
}

/// The usual cipher suites and groups, or those that the settings name, in their order. As in Caddy, `ciphers` is about
/// TLS 1.2 where it names none of TLS 1.3.
fn provider(settings: &TlsPolicy) -> Result<CryptoProvider, String> {
    let mut provider = default_provider();
    let mut usual = std::mem::take(&mut provider.cipher_suites);
    // AES-128 is as safe and takes fewer rounds: the order that Go's servers have.
    usual.sort_by_key(|suite| {
        let name = suite.suite().as_str().unwrap_or_default();
        (name.contains("CHACHA20"), name.contains("AES_256"))
    });
    let name_of = |suite: &rustls::SupportedCipherSuite| {
        // rustls writes those of TLS 1.3 as TLS13_AES_….
        suite.suite().as_str().unwrap_or_default().replacen("TLS13_", "TLS_", 1)
    };
    let is_new = |suite: &rustls::SupportedCipherSuite| suite.tls13().is_some();
    let mut chosen: Vec<_> = settings
        .ciphers
        .iter()
        .filter_map(|name| usual.iter().find(|suite| name_of(suite) == *name).copied())
        .collect();
    if chosen.len() != settings.ciphers.len() {
        return Err("`ciphers` names a suite that is not there".to_owned());
    }
    for is_wanted in [true, false] {
        if !chosen.iter().any(|suite| is_new(suite) == is_wanted) {
            chosen.extend(usual.iter().filter(|suite| is_new(suite) == is_wanted));
        }
    }
    provider.cipher_suites = chosen;
    if !settings.curves.is_empty() {
        let usual = std::mem::take(&mut provider.kx_groups);
        let chosen = settings.curves.iter().filter_map(|name| {
            let found = usual
                .iter()
                .find(|group| group.name().as_str().is_some_and(|known| known.eq_ignore_ascii_case(name)));
            found.copied()
        });
        provider.kx_groups = chosen.collect();
        if provider.kx_groups.len() != settings.curves.len() {
            return Err("`curves` names a group that is not there".to_owned());
        }
    }
    Ok(provider)
}

/// Stands in a template until a chain is chosen.
#[derive(Debug)]
struct NoChain;

impl rustls::server::ResolvesServerCert for NoChain {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<rustls::sign::CertifiedKey>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onehop_config::checked::tls::{ClientAuth, ClientAuthMode, TrustedCertificate};

    #[test]
    fn the_same_settings_are_the_same_policy_and_the_same_tickets() {
        let mut tickets = Tickets::default();
        let usual = tickets.policy(&TlsPolicy::default()).expect("a policy");
        let new = TlsPolicy { oldest: TlsVersion::Tls13, ..TlsPolicy::default() };
        let new = tickets.policy(&new).expect("a policy");
        assert_eq!((usual.number, new.number), (1, 2));
        assert_eq!(tickets.policy(&TlsPolicy::default()).expect("a policy").number, 1);
        assert!(Arc::ptr_eq(&usual.template.ticketer, &new.template.ticketer));
    }

    #[test]
    fn a_ticket_of_a_site_without_client_auth_is_nothing_to_a_site_with_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ca.pem");
        let write = |name: &str| {
            let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
            std::fs::write(&file, made.cert.pem()).expect("written");
        };
        write("first");
        let auth = ClientAuth {
            mode: ClientAuthMode::RequireAndVerify,
            trusted_issuers: vec![TrustedCertificate::File(file.clone())],
            trusted_leaves: Vec::new(),
        };
        let settings = TlsPolicy { client_auth: Some(auth), ..TlsPolicy::default() };
        let mut tickets = Tickets::default();
        let open = tickets.policy(&TlsPolicy::default()).expect("a policy");
        let closed = tickets.policy(&settings).expect("a policy");
        assert!(!Arc::ptr_eq(&open.template.ticketer, &closed.template.ticketer));
        // Other issuers in the same file let other clients in.
        write("second");
        let changed = tickets.policy(&settings).expect("a policy");
        assert_ne!(changed.number, closed.number);
        assert!(!Arc::ptr_eq(&changed.template.ticketer, &closed.template.ticketer));
    }

    #[test]
    fn policies_that_are_gone_are_forgotten_and_their_numbers_stay_theirs() {
        let mut tickets = Tickets::default();
        let usual = tickets.policy(&TlsPolicy::default()).expect("a policy");
        let new = TlsPolicy { oldest: TlsVersion::Tls13, ..TlsPolicy::default() };
        let gone = tickets.policy(&new).expect("a policy");
        tickets.retain(&[usual.number]);
        assert_eq!((tickets.known.len(), tickets.ticketers.len()), (1, 1));
        assert_ne!(tickets.policy(&new).expect("a policy").number, gone.number);
        tickets.retain(&[]);
        assert!(tickets.known.is_empty() && tickets.ticketers.is_empty());
    }

    #[test]
    fn every_suite_and_curve_that_the_configuration_knows_is_there() {
        for (ciphers, curves) in [
            (vec!["TLS_AES_128_GCM_SHA256"], vec!["x25519mlkem768", "x25519"]),
            (vec!["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"], vec!["secp256r1", "secp384r1"]),
            (vec!["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256"], vec![]),
        ] {
            let names = |all: Vec<&str>| all.into_iter().map(str::to_owned).collect();
            let settings =
                TlsPolicy { ciphers: names(ciphers), curves: names(curves), ..TlsPolicy::default() };
            Tickets::default().policy(&settings).expect("a policy");
        }
    }
}
