//! `lb_policy cookie`: a cookie that names the upstream which answered first.
//!
//! Its value is a keyed hash of the upstream's address (HMAC-SHA-256, RFC 2104), the same as Caddy's: without the
//! secret nobody learns addresses from it, and sessions outlive a change from there to here.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::{constant_time, hmac};
use onehop_config::checked::Network;
use onehop_message::cookies;
use onehop_message::request::Request;
use onehop_message::trusted_proxies::Trust;

use crate::member::Member;

/// The cookie of one proxy.
pub(super) struct Cookie {
    name: String,
    key: hmac::Key,
    max_age: Option<Duration>,
    /// By number of the member. Those of placeholders are made with each request.
    values: Box<[String]>,
}

impl Cookie {
    pub(super) fn new(name: &str, secret: &str, max_age: Option<Duration>, members: &[Arc<Member>]) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let values = members.iter().map(|member| value(&key, &member.name)).collect();
        Self { name: name.to_owned(), key, max_age, values }
    }

    /// Whom a request's cookie names, if it is among them. As Go reads it, the first cookie of the name counts.
    pub(super) fn find<'a>(
        &self,
        request: &Request<'_>,
        mut among: impl Iterator<Item = &'a Arc<Member>>,
    ) -> Option<&'a Arc<Member>> {
        let said = self.said(request)?;
        among.find(|member| {
            let is_same =
                |value: &str| constant_time::verify_slices_are_equal(value.as_bytes(), said).is_ok();
            if member.is_dynamic {
                is_same(&value(&self.key, &member.name))
            } else {
                self.values.get(member.number).is_some_and(|value| is_same(value))
            }
        })
    }

    /// The value of a Set-Cookie field that leads back there.
    pub(super) fn given_out(&self, member: &Member, request: &Request<'_>, trusted: &[Network]) -> Vec<u8> {
        let mut out = format!("{}={}; Path=/", self.name, value(&self.key, &member.name));
        if let Some(seconds) = self.max_age.map(|age| age.as_secs()).filter(|seconds| *seconds > 0) {
            // Writing to a string does not fail.
            let _ = write!(out, "; Max-Age={seconds}");
        }
        out.push_str("; HttpOnly");
        let is_encrypted = Trust::of(trusted, &request.origin).is_encrypted(&request.head, &request.origin);
        // Over HTTPS it is sent from other sites' pages, too; browsers take that only with `Secure`.
        out.push_str(if is_encrypted { "; Secure; SameSite=None" } else { "; SameSite=Lax" });
        out.into_bytes()
    }

    /// The value that the client sends, without the quotes that it may stand in (RFC 6265 section 4.1.1).
    fn said<'t>(&'t self, request: &'t Request<'_>) -> Option<&'t [u8]> {
        let value = cookies::values(&request.head, &self.name).next()?;
        Some(value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value))
    }
}

fn value(key: &hmac::Key, address: &str) -> String {
    let mut hexadecimal = String::with_capacity(64);
    for byte in hmac::sign(key, address.as_bytes()).as_ref() {
        let _ = write!(hexadecimal, "{byte:02x}");
    }
    hexadecimal
}
