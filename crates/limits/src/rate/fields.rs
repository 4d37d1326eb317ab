//! The fields that tell a client how often it may ask: `RateLimit-Policy` and `RateLimit`
//! (draft-ietf-httpapi-ratelimit-headers-11, a list of items of RFC 9651 each).
//!
//! Knows only how they are written. What does not change is formatted once.

use std::io::Write;

use onehop_config::checked::limit::RateLimit;
use onehop_message::response::Fields;

/// Bytes of two of the largest integers, `;t=` between them, with room to spare.
const NUMBERS_BYTES_MAX: usize = 48;

/// The largest integer of a structured field (RFC 9651 section 3.3.1).
const INTEGER_MAX: u64 = 999_999_999_999_999;

/// The fields of one rate limit.
pub(super) struct RateFields {
    /// A whole line.
    policy: Box<[u8]>,
    /// A line up to its first number.
    limit: Box<[u8]>,
}

impl RateFields {
    pub(super) fn new(settings: &RateLimit) -> Self {
        let name = string(&settings.zone);
        let (quota, window) = policy(settings);
        let mut policy = format!("RateLimit-Policy: {name};q={quota};w={window}");
        // A parameter of our own, named as section 3.1 wants it: the draft knows windows only.
        if u64::from(settings.burst) != quota {
            policy += &format!(";onehop-burst={}", settings.burst);
        }
        policy += "\r\n";
        let limit = format!("RateLimit: {name};r=");
        Self { policy: policy.into_bytes().into(), limit: limit.into_bytes().into() }
    }

    /// Tells that so many requests may come within so many seconds.
    pub(super) fn write(&self, requests: u64, seconds: u64, fields: &mut Fields) {
        let mut numbers = [0; NUMBERS_BYTES_MAX];
        let mut rest = numbers.as_mut_slice();
        // They fit, and there is nothing else that fails.
        let _ = write!(rest, "{};t={}", requests.min(INTEGER_MAX), seconds.min(INTEGER_MAX));
        let left = rest.len();
        fields.add_lines(&self.policy);
        fields.add_parts(&self.limit, numbers.get(..NUMBERS_BYTES_MAX - left).unwrap_or_default());
    }
}

/// So many requests in so many seconds. The draft has whole seconds only (section 3.1.3), so other windows are
/// lengthened, and what may come in them with them.
fn policy(settings: &RateLimit) -> (u64, u64) {
    let nanos = settings.window.as_nanos().max(1);
    let seconds = nanos.div_ceil(1_000_000_000);
    let quota = u128::from(settings.events) * seconds * 1_000_000_000 / nanos;
    let bounded = |number: u128| u64::try_from(number).unwrap_or(u64::MAX).min(INTEGER_MAX);
    (bounded(quota), bounded(seconds))
}

/// A string as structured fields have it (RFC 9651 section 3.3.3): printable ASCII alone.
fn string(text: &str) -> String {
    let mut out = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            ' '..='~' => out.push(letter),
            _ => out.push('?'),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use onehop_config::checked::limit::RateKey;

    use super::*;

    /// A rate limit by address.
    fn limit(events: u32, window: Duration, burst: u32) -> RateLimit {
        let (zone, key) = ("api".to_owned(), RateKey::ClientAddress);
        let (keys_max, trusted_proxies) = (10_000, Vec::new());
        RateLimit { zone, key, events, window, burst, keys_max, trusted_proxies, announce: false }
    }

    fn written(settings: &RateLimit, requests: u64, seconds: u64) -> String {
        let mut fields = Fields::default();
        RateFields::new(settings).write(requests, seconds, &mut fields);
        String::from_utf8(fields.lines().to_vec()).unwrap()
    }

    #[test]
    fn a_policy_has_whole_seconds_and_the_same_rate() {
        for (events, millis, burst, expected) in [
            (10, 1_000, 10, "q=10;w=1"),
            (10, 1_000, 20, "q=10;w=1;onehop-burst=20"),
            (100, 60_000, 5, "q=100;w=60;onehop-burst=5"),
            (5, 500, 10, "q=10;w=1"),
            (100, 1_500, 133, "q=133;w=2"),
            (1_000, 86_400_000, 1_000, "q=1000;w=86400"),
        ] {
            let settings = limit(events, Duration::from_millis(millis), burst);
            let expected = format!("RateLimit-Policy: \"api\";{expected}\r\nRateLimit: \"api\";r=3;t=7\r\n");
            assert_eq!(written(&settings, 3, 7), expected);
        }
    }

    #[test]
    fn no_name_and_no_number_breaks_the_line() {
        let mut settings = limit(u32::MAX, Duration::MAX, 1);
        settings.zone = "a\"b\\c\r\nX: y\u{e9}".to_owned();
        let name = "\"a\\\"b\\\\c??X: y?\"";
        assert_eq!(
            written(&settings, u64::MAX, u64::MAX),
            format!(
                "RateLimit-Policy: {name};q=4294967295;w=999999999999999;onehop-burst=1\r\n\
                 RateLimit: {name};r=999999999999999;t=999999999999999\r\n"
            )
        );
        settings.window = Duration::ZERO;
        assert!(written(&settings, 0, 0).contains(";q=999999999999999;w=1;"));
    }
}
