//! Certificates from Pebble, the test server of Let's Encrypt. `ONEHOP_PEBBLE` names a folder with the programs `pebble`
//! and `pebble-challtestsrv`; without it each test says that it is skipped.

#![forbid(unsafe_code)]

mod pebble_server;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onehop_acme::AcmeIssuer;
use onehop_acme::ChallengeKind::{Dns01, Http01, TlsAlpn01};
use onehop_certificates::issuer::{CertificateOrder, Issuer, KeyType, Pem, RevocationReason};
use onehop_testkit::pebble::EXTERNAL_KEY;
use onehop_testkit::upstream::{AUTHORITY_PEM, Upstream, tls_settings};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::pebble_server::{MemoryStore, Options, Pebble, WithoutHttp};

fn order(name: &str) -> CertificateOrder {
    CertificateOrder { name: name.into(), key_type: KeyType::P256, replaces: None }
}

/// The whole days that a certificate is valid, and the number of certificates in the chain.
fn days_and_length(pem: &Pem) -> (i64, usize) {
    let chain = CertificateDer::pem_slice_iter(pem.chain.as_bytes()).collect::<Result<Vec<_>, _>>().unwrap();
    let (_, leaf) = x509_parser::parse_x509_certificate(&chain[0]).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let seconds = leaf.validity().not_after.timestamp() - i64::try_from(now).unwrap();
    ((seconds + 43_200) / 86_400, chain.len())
}

#[tokio::test]
async fn a_name_is_proved_by_http() {
    let Some(pebble) = Pebble::start(Options::default()).await else { return };
    let issuer = pebble.issuer(&[Http01]);
    for key_type in [KeyType::P256, KeyType::P384, KeyType::Rsa2048] {
        let pem = issuer.issue(&CertificateOrder { key_type, ..order("www.example.com") }).await.unwrap();
        assert_eq!(days_and_length(&pem).1, 2, "{key_type:?}");
        assert!(pem.key.starts_with("-----BEGIN PRIVATE KEY-----"));
    }
}

#[tokio::test]
async fn a_name_is_proved_by_tls() {
    let Some(pebble) = Pebble::start(Options::default()).await else { return };
    let issuer = pebble.issuer(&[TlsAlpn01]);
    issuer.issue(&order("example.com")).await.unwrap();
    assert!(pebble.memory.tls_alpn_01("example.com").is_none(), "the challenge is removed");
}

#[tokio::test]
async fn names_and_wildcards_are_proved_by_dns() {
    let Some(pebble) = Pebble::start(Options::default()).await else { return };
    // A wildcard takes the third kind, although the others are preferred.
    pebble.issuer(&[Http01, TlsAlpn01, Dns01]).issue(&order("*.example.com")).await.unwrap();
    pebble.issuer(&[Dns01]).issue(&order("www.example.com")).await.unwrap();
    let expected = "present _acme-challenge.example.com\nremove _acme-challenge.example.com\n\
                    present _acme-challenge.www.example.com\nremove _acme-challenge.www.example.com\n";
    assert_eq!(pebble.dns_calls(), expected);
}

#[tokio::test]
async fn an_address_is_proved_by_http_and_by_tls() {
    let Some(pebble) = Pebble::start(Options::default()).await else { return };
    for kind in [Http01, TlsAlpn01] {
        let issued = pebble.issuer(&[Dns01, kind]).issue(&order("127.0.0.1")).await;
        issued.unwrap_or_else(|error| panic!("{kind}: {}", error.message));
    }
    let error = pebble.issuer(&[Dns01]).issue(&order("127.0.0.1")).await.unwrap_err();
    assert!(
        error.message.contains("none of the configured challenges can prove 127.0.0.1"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn a_certificate_has_a_renewal_window_and_is_replaced() {
    let Some(pebble) = Pebble::start(Options::default()).await else { return };
    let issuer = pebble.issuer(&[Http01]);
    let first = issuer.issue(&order("example.com")).await.unwrap();
    let window = issuer.renewal_window(&first.chain).await.unwrap().expect("Pebble has renewal information");
    let now = SystemTime::now();
    assert!(now < window.from && window.from < window.until, "{window:?}");
    assert!(window.until < now + Duration::from_secs(90 * 86_400), "{window:?}");

    let replacement = CertificateOrder { replaces: Some(first.chain.clone()), ..order("example.com") };
    let second = issuer.issue(&replacement).await.unwrap();
    assert_ne!(first.chain, second.chain);
    // It has been replaced already: only the preference is lost.
    issuer.issue(&replacement).await.unwrap();
}

#[tokio::test]
async fn a_certificate_is_revoked_and_then_wants_renewal_at_once() {
    let Some(pebble) = Pebble::start(Options::default()).await else { return };
    let issuer = pebble.issuer(&[Http01]);
    let pem = issuer.issue(&order("example.com")).await.unwrap();
    for _ in 0..2 {
        issuer.revoke(&pem.chain, RevocationReason::Superseded).await.unwrap();
    }
    let window = issuer.renewal_window(&pem.chain).await.unwrap().expect("Pebble has renewal information");
    assert!(window.until <= SystemTime::now(), "{window:?}");
}

#[tokio::test]
async fn a_failed_challenge_is_explained_and_the_next_kind_is_tried() {
    let Some(pebble) = Pebble::start(Options::default()).await else { return };
    let challenges =
        Arc::new(WithoutHttp { memory: Arc::clone(&pebble.memory), presented: HashMap::default().into() });
    let issuer = |kinds: &[_]| {
        AcmeIssuer::new(
            pebble.settings(kinds),
            Arc::new(MemoryStore::default()),
            Arc::clone(&challenges) as _,
        )
    };
    let error = issuer(&[Http01]).issue(&order("example.com")).await.unwrap_err();
    for expected in
        ["no certificate for example.com: https://127.0.0.1:", "by http-01", "unauthorized", "A and AAAA"]
    {
        assert!(error.message.contains(expected), "{}", error.message);
    }
    issuer(&[Http01, TlsAlpn01]).issue(&order("example.com")).await.unwrap();
    assert_eq!(*challenges.presented.lock().unwrap(), HashMap::from([("example.com".to_owned(), 0)]));

    // Without a solver for it, the last kind fails too.
    let error = issuer(&[Http01, Dns01]).issue(&order("example.com")).await.unwrap_err();
    for expected in ["by http-01", "; then ", "configure a DNS solver"] {
        assert!(error.message.contains(expected), "{}", error.message);
    }
}

#[tokio::test]
async fn a_closed_port_is_named() {
    let Some(pebble) = Pebble::start(Options { has_no_http: true, ..Options::default() }).await else {
        return;
    };
    let error = pebble.issuer(&[Http01]).issue(&order("example.com")).await.unwrap_err();
    assert!(error.message.contains("(connection). Port 80 must reach this server"), "{}", error.message);
}

#[tokio::test]
async fn a_name_that_the_issuer_refuses_is_an_error_before_any_challenge() {
    let Some(pebble) = Pebble::start(Options::default()).await else { return };
    let error = pebble.issuer(&[Http01]).issue(&order("www.blocked.example")).await.unwrap_err();
    assert!(error.message.contains("This issuer does not issue for the name"), "{}", error.message);
}

#[tokio::test]
async fn an_account_is_created_once_and_again_only_when_the_server_has_lost_it() {
    let Some(mut pebble) = Pebble::start(Options::default()).await else { return };
    let store = Arc::new(MemoryStore::default());
    let issuer = |pebble: &Pebble| {
        AcmeIssuer::new(pebble.settings(&[Http01]), Arc::clone(&store) as _, Arc::new(pebble.solvers()))
    };
    let first = issuer(&pebble);
    let orders = ["a.example.com", "b.example.com"].map(order);
    let (one, other) = tokio::join!(first.issue(&orders[0]), first.issue(&orders[1]));
    one.and(other).unwrap();
    let second = issuer(&pebble);
    second.issue(&orders[0]).await.unwrap();
    assert_eq!(store.saved.load(Ordering::Relaxed), 1);

    pebble.restart().await;
    second.issue(&orders[0]).await.unwrap();
    first.issue(&orders[0]).await.unwrap();
    assert_eq!(store.saved.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn an_account_that_cannot_be_saved_is_saved_later_and_not_created_twice() {
    let Some(pebble) = Pebble::start(Options::default()).await else { return };
    let store = Arc::new(MemoryStore::default());
    let issuer =
        AcmeIssuer::new(pebble.settings(&[Http01]), Arc::clone(&store) as _, Arc::new(pebble.solvers()));
    store.is_full.store(true, Ordering::Relaxed);
    for _ in 0..2 {
        let error = issuer.issue(&order("example.com")).await.unwrap_err();
        assert!(
            error.message.contains("the ACME account cannot be saved: the disk is full"),
            "{}",
            error.message
        );
    }
    store.is_full.store(false, Ordering::Relaxed);
    issuer.issue(&order("example.com")).await.unwrap();
    assert_eq!(store.saved.load(Ordering::Relaxed), 1);
    assert!(!pebble.log().contains("There are now 2 accounts"), "{}", pebble.log());
}

#[tokio::test]
async fn an_account_that_needs_a_key_is_created_with_it() {
    let options = Options { wants_external_account: true, ..Options::default() };
    let Some(pebble) = Pebble::start(options).await else { return };
    let error = pebble.issuer(&[Http01]).issue(&order("example.com")).await.unwrap_err();
    assert!(error.message.contains("(externalAccountRequired). Set `acme_eab`"), "{}", error.message);

    let mut settings = pebble.settings(&[Http01]);
    settings.external_account = Some(Pebble::external_account());
    let issuer = AcmeIssuer::new(settings, Arc::new(MemoryStore::default()), Arc::new(pebble.solvers()));
    issuer.issue(&order("example.com")).await.unwrap();
}

#[tokio::test]
async fn a_key_for_the_account_is_made_from_the_email_address() {
    let options = Options { wants_external_account: true, ..Options::default() };
    let Some(pebble) = Pebble::start(options).await else { return };
    // As ZeroSSL does it.
    let keys = Upstream::start_tls(tls_settings(), |connection| {
        let request = connection.request().expect("a request");
        assert_eq!(request.body, b"email=operator%40example.com");
        let body = format!(r#"{{"success": true, "eab_kid": "kid", "eab_hmac_key": "{EXTERNAL_KEY}"}}"#);
        connection.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    });
    let mut settings = pebble.settings(&[Http01]);
    settings.trusted_roots.push(CertificateDer::from_pem_slice(AUTHORITY_PEM.as_bytes()).unwrap());
    settings.external_account_from = Some(format!("https://{}/acme/eab-credentials-email", keys.address()));
    let issuer = AcmeIssuer::new(settings, Arc::new(MemoryStore::default()), Arc::new(pebble.solvers()));
    for name in ["a.example.com", "b.example.com"] {
        issuer.issue(&order(name)).await.unwrap();
    }
    assert_eq!(keys.requests(), 1, "an account has one key");
}

#[tokio::test]
async fn a_profile_is_ordered() {
    let Some(pebble) = Pebble::start(Options::default()).await else { return };
    let issuer = |profile: &str| {
        let mut settings = pebble.settings(&[Http01]);
        settings.profile = Some(profile.into());
        AcmeIssuer::new(settings, Arc::new(MemoryStore::default()), Arc::new(pebble.solvers()))
    };
    let pem = issuer("shortlived").issue(&order("example.com")).await.unwrap();
    assert_eq!(days_and_length(&pem).0, 6);
    let error = issuer("eternal").issue(&order("example.com")).await.unwrap_err();
    assert!(error.message.contains("Choose a profile"), "{}", error.message);
}

#[tokio::test]
async fn terms_that_are_not_accepted_are_named() {
    let Some(pebble) = Pebble::start(Options::default()).await else { return };
    let mut settings = pebble.settings(&[Http01]);
    settings.accept_terms = false;
    let issuer = AcmeIssuer::new(settings, Arc::new(MemoryStore::default()), Arc::new(pebble.solvers()));
    let error = issuer.issue(&order("example.com")).await.unwrap_err();
    assert!(error.message.contains("Accept the issuer's terms"), "{}", error.message);
}

#[tokio::test]
async fn refused_nonces_are_no_obstacle() {
    let options = Options { nonces_rejected: Some("50"), ..Options::default() };
    let Some(pebble) = Pebble::start(options).await else { return };
    pebble.issuer(&[Http01]).issue(&order("example.com")).await.unwrap();
}
