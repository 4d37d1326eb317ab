//! The algorithm: TCP Vegas over windows of answers, with the event loop's lag as a second sign of a queue.
//!
//! PURE: no clock, no lock; time is an argument. From TCP Vegas (L. Brakmo, L. Peterson: "TCP Vegas: End to End Congestion
//! Avoidance on a Global Internet", IEEE JSAC 13(8), 1995; Linux: `net/ipv4/tcp_vegas.c`; for servers: `VegasLimit` of
//! Netflix's concurrency-limits): how many requests only wait is throughput times the latency above the least one. Fewer
//! than [`ALPHA`]: the bound grows; more than [`BETA`]: it shrinks by what is too much; it starts low and doubles at first.
//! As in Linux the sample of a window is its *least* latency: slow routes beside quick ones are no queue.
//!
//! Invariant: an answer is only measured if its request was admitted after the last change of the bound, so that each step
//! is judged by what it did and not by the queue of the bound before it.

use std::time::Duration;

use super::sums::{Quickest, Totals};

/// Requests at the start, and after idle times: a few, so that an event loop that computes for 20 ms has 160 ms of work
/// before the first evidence. Netflix's `initialLimit` is 20, TCP's initial window 10 (RFC 6928).
pub(super) const INITIAL: f64 = 8.0;

/// Requests that may wait at the server without keeping the bound from growing; α of Brakmo and Peterson.
const ALPHA: f64 = 1.0;

/// Requests that may wait at the server before the bound shrinks; β of Brakmo and Peterson.
const BETA: f64 = 3.0;

/// A wait of less is no queue: handlers of microseconds are answered in batches. CoDel's target (RFC 8289 section 4.3).
const QUEUE_FREE: Duration = Duration::from_millis(5);

/// A worker whose requests begin later than this has too many: one turn of an event loop that computes is no more.
/// toobusy-js refuses from 70 ms on.
const LAG_MAX: Duration = Duration::from_millis(50);

/// A window lasts at least so long (Netflix's `minWindowTime` may not be less), …
pub(super) const WINDOW_MIN: Duration = Duration::from_millis(100);

/// … and has so many answers (Netflix's `windowSize`), …
const WINDOW_ANSWERS: u64 = 10;

/// … or any at all after this time. Where none came until then, those in flight may wait for each other.
const WINDOW_MAX: Duration = Duration::from_millis(250);

/// The bound doubles while no queue was seen: TCP's slow start (RFC 5681 section 3.1). While nothing is answered it grows by
/// this factor twice in a window.
const START_GROWTH: f64 = 2.0;

/// Once a queue was seen it grows by this factor at most in a window, as BBR probes for bandwidth (section 4.2.2 of its
/// first description, ACM Queue 14(5), 2016: a gain of 1.25).
const GROWTH: f64 = 1.25;

/// It shrinks to no less than this share in a window (the least gradient of Netflix's `Gradient2Limit`). A least latency
/// that stays although so much less is in flight was none of a queue.
const SHRINK_MIN: f64 = 0.5;

/// A bound that was not met for so long starts anew (RFC 5681 section 4.1: what was learned before an idle time is stale).
const IDLE: Duration = Duration::from_secs(30);

/// The algorithm in time.
#[derive(Debug)]
pub(super) struct Vegas {
    min: f64,
    max: f64,
    bound: f64,
    /// The least latency at all, in seconds: what a request takes without a queue.
    base: Option<f64>,
    /// The least latency of the last window, in seconds.
    least: f64,
    /// No queue was seen yet.
    is_starting: bool,
    /// What held before the bound was lowered, until it is known whether there was a queue.
    before: Option<Lowered>,
    /// When the bound changed last.
    changed: Duration,
    /// When the bound was met last.
    met: Duration,
    /// When the window began, and the sums at that time.
    began: (Duration, Totals),
}

/// The bound before it was lowered, and the window that said so.
#[derive(Debug, Clone, Copy)]
struct Lowered {
    bound: f64,
    in_flight: f64,
    least: f64,
}

/// What one look is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// Since the start.
    pub(super) now: Duration,
    pub(super) totals: Totals,
    /// The least latency since the last look.
    pub(super) least: Option<Duration>,
    /// Requests in flight.
    pub(super) in_flight: u32,
    /// A request found the bound met since the last look.
    pub(super) is_met: bool,
    /// How late the event loop is, where that is known.
    pub(super) lag: Option<Duration>,
}

/// What holds until the next look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    /// How many may be in flight.
    pub(super) bound: u32,
    /// Requests that were admitted before this are not measured.
    pub(super) since: Duration,
    /// A look before this sees nothing.
    pub(super) look_at: Duration,
}

/// When the first window begins: later than a bound that was never met ([`Vegas`]' `met` is zero then).
const FIRST_WINDOW: Duration = Duration::from_nanos(1);

impl Vegas {
    pub(super) fn new(min: u32, max: u32) -> Self {
        let min = f64::from(min.max(1));
        let max = f64::from(max).max(min);
        Self {
            min,
            max,
            bound: INITIAL.clamp(min, max),
            base: None,
            least: 0.0,
            is_starting: true,
            before: None,
            changed: Duration::ZERO,
            met: Duration::ZERO,
            began: (FIRST_WINDOW, Totals::default()),
        }
    }

    /// What holds now.
    pub(super) fn verdict(&self) -> Verdict {
        // Within u32, since both ends are.
        Verdict { bound: self.bound as u32, since: self.changed, look_at: self.began.0 + WINDOW_MIN }
    }

    /// Takes what was seen until now. `quickest` takes the quickest measured answer since it was asked for last.
    pub(super) fn look(&mut self, seen: Seen, quickest: impl Fn() -> Option<Quickest>) -> Verdict {
        let Seen { now, totals, least, in_flight, is_met, lag } = seen;
        if is_met {
            if self.met < self.began.0 && totals == self.began.1 {
                // Until now nothing had come.
                self.began = (now, totals);
            }
            self.met = now;
        }
        self.base = self.base.into_iter().chain(least.map(|least| least.as_secs_f64())).reduce(f64::min);
        let lasted = now.saturating_sub(self.began.0);
        if lasted < WINDOW_MIN {
            return self.verdict();
        }
        let window = totals.since(self.began.1);
        let rate = window.finished() as f64 / lasted.as_secs_f64();
        let late = lag.unwrap_or_default().saturating_sub(LAG_MAX).as_secs_f64();
        let is_long = lasted >= WINDOW_MAX;
        let is_whole = window.measured() >= WINDOW_ANSWERS || (is_long && window.measured() > 0);
        let met = self.met >= self.began.0;
        let before = self.bound;
        if window.dropped() > window.finished() {
            self.shrink(SHRINK_MIN * f64::from(in_flight));
        } else if late > 0.0 && (is_long || window.finished() >= WINDOW_ANSWERS) {
            // Whatever the quickest answer took. Nothing grows as long as that is so.
            self.is_starting = false;
            if rate * late > BETA {
                self.shrink(f64::from(in_flight) - rate * late + ALPHA);
            }
        } else if late == 0.0
            && is_whole
            && let Some(quickest) = quickest()
        {
            self.window(quickest, rate, met);
        } else if late == 0.0
            && window.finished() == 0
            && met
            && in_flight >= self.bound as u32
            && lasted >= WINDOW_MAX.max(seconds(2.0 * self.least))
        {
            // Nothing is answered, and nothing says that the server is busy: those in flight may wait for each other, and the
            // others only for as long as the queue lets them.
            self.grow(START_GROWTH * START_GROWTH);
        } else if !(is_long && (window.finished() > 0 || !met)) {
            return Verdict { look_at: now + WINDOW_MIN / 10, ..self.verdict() };
        }
        if now.saturating_sub(self.met) >= IDLE {
            self.restart(in_flight);
        }
        self.bound = self.bound.clamp(self.min, self.max);
        if self.bound.to_bits() != before.to_bits() {
            self.changed = now;
            // What was seen until now says nothing of this bound.
            let _ = quickest();
        }
        self.began = (now, totals);
        self.verdict()
    }

    fn window(&mut self, quickest: Quickest, rate: f64, met: bool) {
        let (least, in_flight) = (quickest.took.as_secs_f64(), f64::from(quickest.in_flight_at_start));
        self.least = least;
        // A request that was alone waited for no other.
        let base = self.base.filter(|_| quickest.in_flight_at_start > 1).unwrap_or(least);
        self.base = Some(base);
        let queued = rate * (least - base - QUEUE_FREE.as_secs_f64()).max(0.0);
        if queued < ALPHA {
            self.before = None;
            if met {
                self.grow(if self.is_starting { START_GROWTH } else { GROWTH });
            }
            return;
        }
        self.is_starting = false;
        if let Some(before) = self.before
            && in_flight <= SHRINK_MIN * before.in_flight
        {
            self.before = None;
            // Of a queue as much would have gone as of those in flight.
            if least > (1.0 + SHRINK_MIN) / 2.0 * before.least {
                self.base = Some(least);
                self.bound = before.bound;
                return;
            }
        }
        if queued > BETA {
            let before = self.before.get_or_insert(Lowered { bound: self.bound, in_flight, least });
            if in_flight > before.in_flight {
                // More had been admitted than the request found that was answered first.
                (before.in_flight, before.least) = (in_flight, least);
            }
            self.shrink(in_flight - queued + ALPHA);
        }
    }

    fn shrink(&mut self, target: f64) {
        self.bound = self.bound.min(target.max(SHRINK_MIN * self.bound));
    }

    fn grow(&mut self, factor: f64) {
        self.bound = (factor * self.bound).max(self.bound + 1.0);
    }

    fn restart(&mut self, in_flight: u32) {
        self.bound = self.bound.min(f64::from(in_flight) + INITIAL);
        self.is_starting = true;
        self.base = None;
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}
