//! Directories that do not answer.

#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use onehop_acme::{AccountStore, AcmeIssuer, ChallengeKind, MemoryChallenges, Settings};
use onehop_certificates::issuer::{CertificateOrder, Issuer, KeyType};

struct NoStore;

impl AccountStore for NoStore {
    fn load(&self) -> Result<Option<String>, String> {
        Ok(None)
    }

    fn save(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

async fn error_of(directory: &str, deadline: Duration) -> String {
    let settings = Settings {
        directory: directory.into(),
        trusted_roots: vec![],
        email: None,
        external_account: None,
        external_account_from: None,
        profile: None,
        accept_terms: true,
        challenges: vec![ChallengeKind::Http01],
        not_tried: Vec::new(),
        deadline,
    };
    let issuer = AcmeIssuer::new(settings, Arc::new(NoStore), Arc::new(MemoryChallenges::default()));
    let order = CertificateOrder { name: "example.com".into(), key_type: KeyType::P256, replaces: None };
    issuer.issue(&order).await.unwrap_err().message
}

#[tokio::test]
async fn a_directory_that_refuses_connections_is_named_with_the_cause() {
    // Closed at once, so that nothing listens there.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = error_of(&format!("https://{address}/dir"), Duration::from_secs(30)).await;
    assert!(error.contains(&format!("GET https://{address}/dir: ")) && error.contains("refused"), "{error}");
}

#[tokio::test]
async fn a_directory_that_never_answers_ends_at_the_deadline() {
    // The kernel accepts; nothing reads.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let began = Instant::now();
    let error = error_of(&format!("https://{address}/dir"), Duration::from_millis(300)).await;
    assert!(error.contains(&format!("https://{address}/dir was not done within 0.3 s")), "{error}");
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_directory_without_tls_is_refused() {
    let error = error_of("http://example.com/dir", Duration::from_secs(30)).await;
    assert!(error.contains("http://example.com/dir is no URL of an ACME directory"), "{error}");
}
