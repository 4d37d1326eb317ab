//! When the event loop of a worker stood still, so that a slow request can be told whether it waited for that.
//!
//! The worker's library reports each stall as soon as it is over. Only the supervisor writes, and only those read who look
//! into a slow request.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::limits::STALLS_KEPT;

/// The last stalls of one worker, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Stalls(Mutex<VecDeque<Stall>>);

#[derive(Debug, Clone, Copy)]
struct Stall {
    from: Instant,
    until: Instant,
}

impl Stalls {
    /// Notes a stall that ended then.
    pub(crate) fn add(&self, until: Instant, duration: Duration) {
        let Some(from) = until.checked_sub(duration) else { return };
        let mut stalls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if stalls.len() >= STALLS_KEPT {
            stalls.pop_front();
        }
        stalls.push_back(Stall { from, until });
    }

    /// For how long it stood still between these times.
    pub(crate) fn within(&self, from: Instant, until: Instant) -> Duration {
        let stalls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut counted_to = from;
        let mut total = Duration::ZERO;
        for stall in stalls.iter() {
            let (start, end) = (stall.from.max(counted_to), stall.until.min(until));
            total += end.saturating_duration_since(start);
            counted_to = counted_to.max(end);
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn a_stall_counts_as_far_as_it_lies_within_the_request_and_once() {
        let start = Instant::now();
        let at = |count| start + milliseconds(count);
        let stalls = Stalls::default();
        stalls.add(at(150), milliseconds(50));
        stalls.add(at(160), milliseconds(30));
        stalls.add(at(400), milliseconds(100));
        for (from, until, expected) in
            [(0, 1_000, 160), (0, 90, 0), (120, 155, 35), (350, 380, 30), (160, 300, 0), (500, 600, 0)]
        {
            assert_eq!(stalls.within(at(from), at(until)), milliseconds(expected), "{from} to {until}");
        }
    }

    #[test]
    fn only_the_last_stalls_are_kept() {
        let start = Instant::now();
        let stalls = Stalls::default();
        for number in 0..STALLS_KEPT as u64 + 10 {
            stalls.add(start + milliseconds(10 * number + 5), milliseconds(5));
        }
        let all = stalls.within(start, start + Duration::from_secs(3_600));
        assert_eq!(all, milliseconds(5) * STALLS_KEPT as u32);
    }
}
