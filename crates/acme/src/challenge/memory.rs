//! Challenges that the web server itself answers: a table that all its cores share.

use std::collections::HashMap;
use std::fmt::Write;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustls::sign::CertifiedKey;

use super::{Answering, Challenge, Challenges};
use crate::limits::{CHALLENGE_AGE_MAX, CHALLENGES_MAX};

/// The table of challenges that wait for validation, at most [`CHALLENGES_MAX`] of each kind. Only requests for
/// challenges take its lock.
#[derive(Debug, Default)]
pub struct MemoryChallenges(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    /// By token.
    http_01: HashMap<String, Entry<FileAnswer>>,
    /// By the name that the client asks for.
    tls_alpn_01: HashMap<String, Entry<Arc<CertifiedKey>>>,
}

#[derive(Debug)]
struct FileAnswer {
    name: String,
    key_authorization: String,
}

#[derive(Debug)]
struct Entry<T> {
    answer: T,
    presented_at: Instant,
}

impl MemoryChallenges {
    /// The content of `/.well-known/acme-challenge/{token}` for a request with this `Host` (with or without a port);
    /// `None` where no such challenge waits.
    pub fn http_01(&self, token: &str, host: &str) -> Option<String> {
        let tables = self.lock();
        let answer = &tables.http_01.get(token)?.answer;
        without_port(host).eq_ignore_ascii_case(&answer.name).then(|| answer.key_authorization.clone())
    }

    /// The certificate for a handshake with the protocol `acme-tls/1` and this server name. For an IP address clients
    /// name its reverse mapping (`1.2.0.192.in-addr.arpa`, RFC 8738 section 6).
    pub fn tls_alpn_01(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let tables = self.lock();
        tables.tls_alpn_01.get(&name.to_ascii_lowercase()).map(|entry| Arc::clone(&entry.answer))
    }

    fn insert(&self, challenge: &Challenge, now: Instant) -> Result<(), String> {
        let mut tables = self.lock();
        match challenge {
            Challenge::Http01 { name, token, key_authorization } => {
                let answer = FileAnswer { name: name.clone(), key_authorization: key_authorization.clone() };
                insert(&mut tables.http_01, token.clone(), answer, now)
            }
            Challenge::TlsAlpn01 { name, certificate } => {
                insert(&mut tables.tls_alpn_01, server_name(name), Arc::clone(certificate), now)
            }
            Challenge::Dns01 { name, .. } => Err(format!(
                "nothing can set the TXT record {name}: configure a DNS solver, or use another kind of challenge"
            )),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Challenges for MemoryChallenges {
    fn present<'a>(&'a self, challenge: &'a Challenge) -> Answering<'a, Result<(), String>> {
        Box::pin(async { self.insert(challenge, Instant::now()) })
    }

    fn remove<'a>(&'a self, challenge: &'a Challenge) -> Answering<'a, ()> {
        Box::pin(async move {
            let mut tables = self.lock();
            match challenge {
                Challenge::Http01 { token, .. } => {
                    tables.http_01.remove(token);
                }
                Challenge::TlsAlpn01 { name, certificate } => {
                    let name = server_name(name);
                    // Another order for the same name may have put its own there.
                    let is_ours = |entry: &Entry<_>| Arc::ptr_eq(&entry.answer, certificate);
                    if tables.tls_alpn_01.get(&name).is_some_and(is_ours) {
                        tables.tls_alpn_01.remove(&name);
                    }
                }
                Challenge::Dns01 { .. } => {}
            }
        })
    }
}

fn insert<K: Eq + Hash, T>(
    table: &mut HashMap<K, Entry<T>>,
    key: K,
    answer: T,
    now: Instant,
) -> Result<(), String> {
    if table.len() >= CHALLENGES_MAX {
        let age = |entry: &Entry<T>| now.saturating_duration_since(entry.presented_at);
        table.retain(|_, entry| age(entry) < CHALLENGE_AGE_MAX);
    }
    if table.len() >= CHALLENGES_MAX {
        return Err(format!(
            "{CHALLENGES_MAX} challenges already wait for validation: order fewer names at a time"
        ));
    }
    table.insert(key, Entry { answer, presented_at: now });
    Ok(())
}

/// The server name that an issuer asks for to validate this name.
fn server_name(name: &str) -> String {
    let mut reversed = String::new();
    match name.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => {
            for octet in address.octets().iter().rev() {
                let _ = write!(reversed, "{octet}.");
            }
            reversed + "in-addr.arpa"
        }
        Ok(IpAddr::V6(address)) => {
            for octet in address.octets().iter().rev() {
                let _ = write!(reversed, "{:x}.{:x}.", octet & 15, octet >> 4);
            }
            reversed + "ip6.arpa"
        }
        Err(_) => name.to_ascii_lowercase(),
    }
}

/// The host of a `Host` field: without its port, and an IPv6 address without brackets.
fn without_port(host: &str) -> &str {
    if let Some(address) = host.strip_prefix('[') {
        return address.split(']').next().unwrap_or(address);
    }
    match host.split_once(':') {
        // Two colons are an IPv6 address without brackets.
        Some((name, port)) if !port.contains(':') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http_01(number: usize) -> Challenge {
        Challenge::Http01 {
            name: "example.com".into(),
            token: format!("token{number}"),
            key_authorization: format!("answer{number}"),
        }
    }

    #[test]
    fn a_challenge_is_answered_for_its_name_alone() {
        let table = MemoryChallenges::default();
        table.insert(&http_01(1), Instant::now()).unwrap();
        for (token, host, expected) in [
            ("token1", "example.com", Some("answer1")),
            ("token1", "EXAMPLE.com:80", Some("answer1")),
            ("token1", "other.example", None),
            ("token2", "example.com", None),
        ] {
            assert_eq!(table.http_01(token, host).as_deref(), expected, "{token} {host}");
        }
    }

    #[test]
    fn a_full_table_takes_another_challenge_only_once_old_ones_can_go() {
        let table = MemoryChallenges::default();
        let start = Instant::now();
        for number in 0..CHALLENGES_MAX {
            table.insert(&http_01(number), start).unwrap();
        }
        let error = table.insert(&http_01(CHALLENGES_MAX), start).unwrap_err();
        assert!(error.contains("10000 challenges"), "{error}");
        table.insert(&http_01(CHALLENGES_MAX), start + CHALLENGE_AGE_MAX).unwrap();
        assert_eq!(table.lock().http_01.len(), 1);
    }

    #[test]
    fn a_certificate_is_found_by_the_name_that_issuers_ask_for() {
        for (name, expected) in [
            ("Example.com", "example.com"),
            ("192.0.2.1", "1.2.0.192.in-addr.arpa"),
            ("2001:db8::1", "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"),
        ] {
            assert_eq!(server_name(name), expected);
        }
    }

    #[tokio::test]
    async fn removing_a_challenge_keeps_the_certificate_of_a_later_order() {
        let table = MemoryChallenges::default();
        let [first, second] = [1, 2].map(|digest| Challenge::TlsAlpn01 {
            name: "example.com".into(),
            certificate: Arc::new(
                super::super::validation_certificate("example.com", &[digest; 32]).unwrap(),
            ),
        });
        table.present(&first).await.unwrap();
        table.present(&second).await.unwrap();
        table.remove(&first).await;
        assert!(table.tls_alpn_01("EXAMPLE.com").is_some());
        table.remove(&second).await;
        assert!(table.tls_alpn_01("example.com").is_none());
    }

    #[test]
    fn a_port_is_no_part_of_a_host() {
        for (host, expected) in [
            ("example.com", "example.com"),
            ("example.com:80", "example.com"),
            ("[2001:db8::1]:80", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
        ] {
            assert_eq!(without_port(host), expected);
        }
    }
}
