//! Bounds, each with its unit and its reason.

use std::time::Duration;

/// One request to an ACME server, from connecting to the last byte. Issuers answer within a second or are overloaded.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// A response of an ACME server, in bytes. The longest is a certificate chain, of some ten thousand.
pub const RESPONSE_BYTES_MAX: usize = 1 << 20;
/// How much of a response that is no problem document an error message quotes, in characters.
pub const QUOTED_CHARACTERS_MAX: usize = 200;
/// How often a request is repeated after the server refuses its nonce; instant-acme tries each one three times.
pub const NONCE_ATTEMPTS_MAX: usize = 8;
/// The first wait for an order that the server is still working on; each later one is half as long again.
pub const POLL_DELAY: Duration = Duration::from_millis(250);
/// The longest wait that an issuer can ask for between two looks at renewal information (RFC 9773 section 4.3.2).
pub const RENEWAL_LOOK_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// The shortest one (RFC 9773 section 4.3.2).
pub const RENEWAL_LOOK_MIN: Duration = Duration::from_secs(60);
/// The one of an issuer that names none (RFC 9773 section 4.3.3 recommends six hours).
pub const RENEWAL_LOOK_DEFAULT: Duration = Duration::from_secs(6 * 60 * 60);
/// How long the removal of one challenge may take. It runs after the order's deadline.
pub const REMOVAL_TIMEOUT: Duration = Duration::from_secs(60);
/// Challenges of each kind that wait for validation at the same time. A server with more names issues them in turn.
pub const CHALLENGES_MAX: usize = 10_000;
/// When a challenge that was never removed gives its slot to another: no order takes as long.
pub const CHALLENGE_AGE_MAX: Duration = Duration::from_secs(60 * 60);
/// How much of a program's output an error message quotes, in bytes; the rest is read and dropped.
pub const OUTPUT_BYTES_MAX: u64 = 2048;
/// One exchange with a DNS server. It answers from memory.
pub const DNS_TIMEOUT: Duration = Duration::from_secs(15);
/// The pause between two looks of one resolver for a record.
pub const PROPAGATION_LOOK: Duration = Duration::from_millis(500);
/// How long resolvers may keep a challenge's TXT record, in seconds; a later challenge has another value.
pub const DNS_RECORD_SECONDS: u32 = 60;
/// The difference between the clocks of client and DNS server that a signature allows, in seconds (RFC 8945
/// section 10 recommends 300).
pub const TSIG_FUDGE_SECONDS: u16 = 300;
