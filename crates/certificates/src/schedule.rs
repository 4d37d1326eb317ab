//! When certificates are obtained and renewed. Decides only; time is an argument.

use std::time::{Duration, SystemTime};

use crate::issuer::RenewalWindow;
use crate::limits::RETRY_AFTER_MAX;

/// Part of a certificate's life that is left when it is renewed.
pub const RENEWAL_RATIO: f64 = 1.0 / 3.0;

/// Minutes until the next attempt after the first, the second and each further failure, as in certmagic.
const BACK_OFF_MINUTES: [u64; 12] = [1, 2, 5, 10, 20, 30, 60, 60, 60, 120, 180, 360];

/// When to renew a certificate: at a random moment of the issuer's window if it named one (RFC 9773 section 4.2),
/// otherwise when `ratio` of its life is left. `jitter` is a number from 0 to 1 that stays the same for the
/// certificate ([`crate::loaded::Loaded::jitter`]).
pub fn renew_at(
    not_before: SystemTime,
    not_after: SystemTime,
    ratio: f64,
    window: Option<RenewalWindow>,
    jitter: f64,
) -> SystemTime {
    if let Some(window) = window {
        let length = window.until.duration_since(window.from).unwrap_or_default();
        let at = window.from.checked_add(part(length, jitter)).unwrap_or(window.from);
        return at.min(not_after);
    }
    let ratio = if ratio > 0.0 && ratio < 1.0 { ratio } else { RENEWAL_RATIO };
    let life = not_after.duration_since(not_before).unwrap_or_default();
    not_after.checked_sub(part(life, ratio)).unwrap_or(not_before)
}

/// How long to wait after this many failures in a row.
pub fn back_off(failures: u32, retry_after: Option<Duration>) -> Duration {
    let at = usize::try_from(failures.saturating_sub(1)).unwrap_or(usize::MAX);
    let [.., longest] = BACK_OFF_MINUTES;
    let minutes = BACK_OFF_MINUTES.get(at).copied().unwrap_or(longest);
    Duration::from_secs(60 * minutes).max(retry_after.unwrap_or_default().min(RETRY_AFTER_MAX))
}

/// A part of a duration; whole seconds are precise enough, and nothing overflows.
fn part(whole: Duration, ratio: f64) -> Duration {
    whole.mul_f64(if ratio.is_finite() { ratio.clamp(0.0, 1.0) } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn at(days: u32) -> SystemTime {
        SystemTime::UNIX_EPOCH + 20_000 * DAY + days * DAY
    }

    #[test]
    fn a_certificate_is_renewed_when_a_third_of_its_life_is_left() {
        let near = |got: SystemTime, wanted: SystemTime| {
            let distance = got.duration_since(wanted).or_else(|_| wanted.duration_since(got)).unwrap();
            assert!(distance < Duration::from_millis(1), "{distance:?}");
        };
        near(renew_at(at(0), at(90), RENEWAL_RATIO, None, 0.5), at(60));
        near(renew_at(at(0), at(90), 0.5, None, 0.5), at(45));
        for nonsense in [0.0, 1.0, -3.0, f64::NAN, f64::INFINITY] {
            near(renew_at(at(0), at(90), nonsense, None, f64::NAN), at(60));
        }
        near(renew_at(at(90), at(0), 0.5, None, 0.5), at(0));
    }

    #[test]
    fn the_issuers_window_wins() {
        let window =
            |from, until| Some(RenewalWindow { from: at(from), until: at(until), look_again_in: DAY });
        let renew = |window, jitter| renew_at(at(0), at(90), RENEWAL_RATIO, window, jitter);
        assert_eq!(renew(window(10, 20), 0.0), at(10));
        assert_eq!(renew(window(10, 20), 0.5), at(15));
        assert_eq!(renew(window(10, 20), 1.0), at(20));
        assert_eq!(renew(window(20, 10), 0.5), at(20));
        assert_eq!(renew(window(200, 210), 0.5), at(90));
    }

    #[test]
    fn failures_are_repeated_ever_more_rarely() {
        let minutes = |failures, after: Option<u64>| {
            back_off(failures, after.map(|minutes| Duration::from_secs(60 * minutes))).as_secs() / 60
        };
        let first: Vec<_> = (1..=8).map(|failures| minutes(failures, None)).collect();
        assert_eq!(first, [1, 2, 5, 10, 20, 30, 60, 60]);
        assert_eq!(minutes(u32::MAX, None), 360);
        assert_eq!(minutes(1, Some(30)), 30);
        assert_eq!(minutes(6, Some(1)), 30);
        assert_eq!(minutes(1, Some(u64::MAX / 60)), 7 * 24 * 60);
    }
}
