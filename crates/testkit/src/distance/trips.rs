//! Round trips of a request, counted in the packets that passed.
//!
//! PURE: what passed goes in, counts come out. A count is the longest chain of segments of one connection in which each
//! was sent after the one before it had arrived at the other end: that is how often somebody had to wait for the
//! distance.

use std::time::Instant;

use super::relay::Passed;
use super::segment::Towards;

/// What one request's connection did while the request was under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Round trips until the last of the answer's bytes had arrived.
    pub round_trips: u32,
    /// The connection was opened meanwhile: its handshake was on the request's path.
    pub opens: bool,
    /// Bytes of content that arrived at the near end.
    pub received: u64,
}

/// What passed on the connection of this near port from one moment to the other.
pub fn exchange(passed: &[Passed], near_port: u16, from: Instant, to: Instant) -> Exchange {
    let mut own: Vec<&Passed> = passed
        .iter()
        .filter(|passed| {
            passed.segment.near_port == near_port && passed.sent >= from && passed.delivered <= to
        })
        .collect();
    own.sort_by_key(|passed| passed.delivered);
    let is_answer = |passed: &&&Passed| passed.towards == Towards::Near && passed.segment.content > 0;
    let received = own.iter().filter(is_answer).map(|passed| u64::from(passed.segment.content)).sum();
    let opens = own.iter().any(|passed| passed.towards == Towards::Far && passed.segment.opens);
    let mut round_trips = 0;
    let mut last = own.iter().rev().find(is_answer).copied();
    while let Some(arrived) = last {
        round_trips += 1;
        let asked = before(&own, Towards::Far, arrived.sent);
        last = asked.and_then(|asked| before(&own, Towards::Near, asked.sent));
    }
    Exchange { round_trips, opens, received }
}

/// Connections that the near end began to open from one moment to the other.
pub fn openings(passed: &[Passed], from: Instant, to: Instant) -> usize {
    let is_opening = |passed: &&Passed| passed.towards == Towards::Far && passed.segment.opens;
    passed.iter().filter(is_opening).filter(|passed| passed.sent >= from && passed.sent <= to).count()
}

/// The last segment in this direction that had arrived by then. `own` is in the order of arrival.
fn before<'a>(own: &[&'a Passed], towards: Towards, moment: Instant) -> Option<&'a Passed> {
    own.iter().rev().find(|passed| passed.towards == towards && passed.delivered <= moment).copied()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::segment::Segment;
    use super::*;

    const ONE_WAY: Duration = Duration::from_millis(91);

    fn passed(begun: Instant, towards: Towards, at_ms: u64, content: u32, opens: bool) -> Passed {
        let sent = begun + Duration::from_millis(at_ms);
        let segment = Segment { near_port: 4_000, far_port: 7_718, content, opens, closes: false };
        Passed { towards, sent, delivered: sent + ONE_WAY, segment }
    }

    #[test]
    fn a_request_on_a_connection_that_is_open_takes_one() {
        let begun = Instant::now();
        let wire = [
            // The acknowledgement of an earlier answer, still under way.
            passed(begun, Towards::Far, 0, 0, false),
            passed(begun, Towards::Far, 3, 80, false),
            passed(begun, Towards::Near, 95, 1_200, false),
            passed(begun, Towards::Far, 187, 0, false),
        ];
        let seen = exchange(&wire, 4_000, begun, begun + Duration::from_millis(300));
        assert_eq!(seen, Exchange { round_trips: 1, opens: false, received: 1_200 });
        assert_eq!(exchange(&wire, 4_001, begun, begun + Duration::from_secs(1)).round_trips, 0);
        assert_eq!(exchange(&wire, 4_000, begun + Duration::from_millis(1), begun).round_trips, 0);
    }

    #[test]
    fn a_handshake_and_a_second_flight_count_too() {
        let begun = Instant::now();
        let wire = [
            passed(begun, Towards::Far, 0, 0, true),
            passed(begun, Towards::Near, 91, 0, true),
            passed(begun, Towards::Far, 182, 80, false),
            passed(begun, Towards::Near, 274, 14_000, false),
            passed(begun, Towards::Far, 366, 0, false),
            passed(begun, Towards::Near, 458, 9_000, false),
            passed(begun, Towards::Near, 458, 9_000, false),
        ];
        let seen = exchange(&wire, 4_000, begun, begun + Duration::from_millis(600));
        assert_eq!(seen, Exchange { round_trips: 3, opens: true, received: 32_000 });
        assert_eq!(openings(&wire, begun, begun + ONE_WAY), 1);
        assert_eq!(openings(&wire, begun + ONE_WAY, begun + ONE_WAY * 9), 0);
    }
}
