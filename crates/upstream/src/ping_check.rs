//! Whether the peer of a connection of HTTP/2 is still there. One that sends nothing while requests wait for it is asked once
//! (PING, RFC 9113 section 6.7), and one that then sends nothing is lost.
//!
//! Pure: the caller looks at each tick, sends and closes. A connection without requests is not asked.

use std::time::{Duration, Instant};

use crate::limits::PING_PERIOD_MIN;

/// What is known of one connection.
#[derive(Default)]
pub(crate) struct PingCheck {
    /// Bytes that had come at the last look.
    received: u64,
    /// Since when a request has waited without a byte from the peer. A request that is given up does not change that.
    waiting_since: Option<Instant>,
    /// When the PING was sent that nothing has followed.
    unanswered_since: Option<Instant>,
    last_ping: Option<Instant>,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    SendPing,
    /// The peer is lost.
    Close,
}

impl PingCheck {
    /// `received`: bytes that have come until now. `timeout`: how long a request waits before the peer is asked, and how long
    /// the peer has to send anything after that.
    pub(crate) fn look(&mut self, now: Instant, received: u64, is_idle: bool, timeout: Duration) -> Action {
        let since = |then: Instant| now.saturating_duration_since(then);
        if received != self.received {
            *self = Self { received, last_ping: self.last_ping, ..Self::default() };
        }
        if let Some(sent) = self.unanswered_since {
            return if since(sent) >= timeout { Action::Close } else { Action::Nothing };
        }
        if is_idle {
            return Action::Nothing;
        }
        let waiting = since(*self.waiting_since.get_or_insert(now));
        if waiting < timeout || self.last_ping.is_some_and(|last| since(last) < PING_PERIOD_MIN) {
            return Action::Nothing;
        }
        (self.last_ping, self.unanswered_since) = (Some(now), Some(now));
        Action::SendPing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    /// Looks at these seconds, with so many bytes received and requests that wait or none.
    #[track_caller]
    fn check(looks: &[(u64, u64, bool, Action)]) {
        let begun = Instant::now();
        let mut check = PingCheck::default();
        for &(second, received, is_idle, expected) in looks {
            let action = check.look(begun + Duration::from_secs(second), received, is_idle, TIMEOUT);
            assert_eq!(action, expected, "at {second} s");
        }
    }

    #[test]
    fn a_peer_that_sends_nothing_while_a_request_waits_is_asked_once_and_then_lost() {
        check(&[
            (0, 100, true, Action::Nothing),
            (1000, 100, false, Action::Nothing),
            (1029, 100, false, Action::Nothing),
            (1030, 100, false, Action::SendPing),
            (1059, 100, false, Action::Nothing),
            (1060, 100, false, Action::Close),
        ]);
    }

    #[test]
    fn whatever_comes_shows_that_the_peer_is_there() {
        check(&[
            (0, 100, false, Action::Nothing),
            (29, 101, false, Action::Nothing),
            (58, 101, false, Action::Nothing),
            (59, 101, false, Action::SendPing),
            (60, 118, false, Action::Nothing),
            (120, 118, false, Action::Nothing),
        ]);
    }

    #[test]
    fn requests_that_are_given_up_one_after_the_other_do_not_hide_a_lost_peer() {
        check(&[
            (0, 0, false, Action::Nothing),
            (10, 0, true, Action::Nothing),
            (20, 0, false, Action::Nothing),
            (29, 0, true, Action::Nothing),
            (40, 0, true, Action::Nothing),
            (41, 0, false, Action::SendPing),
            (50, 0, true, Action::Nothing),
            (71, 0, true, Action::Close),
        ]);
    }

    #[test]
    fn a_peer_that_is_silent_for_long_is_not_asked_again_before_the_period_is_over() {
        let period = PING_PERIOD_MIN.as_secs();
        check(&[
            (0, 0, false, Action::Nothing),
            (30, 0, false, Action::SendPing),
            (31, 17, false, Action::Nothing),
            (29 + period, 17, false, Action::Nothing),
            (30 + period, 17, false, Action::SendPing),
        ]);
    }
}
