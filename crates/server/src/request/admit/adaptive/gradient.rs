//! The formula: what windows of answers say goes in, how many may be in flight comes out.
//!
//! PURE: no clock, no lock. It is Gradient2 of Netflix's concurrency-limits (Apache-2.0,
//! `com.netflix.concurrency.limits.limit.Gradient2Limit`), told by its idea: the bound is multiplied by the ratio of
//! the latency without a queue to the latency now, and a little room is added, so that it grows while nobody
//! waits. What is different here, and why:
//!
//! - Gradient2 takes a long average for the latency without a queue; a queue that stands for long becomes the
//!   average. Here the bound is lowered for a moment while there may be a queue (a *probe*, as `GradientLimit` of the
//!   same library and BBR do) until throughput falls with it: what is measured there had no queue.
//! - The ratio is that of throughput times allowed latency to what is in flight (Little's law): the same where all
//!   requests are alike, and it is known before those who wait have been answered. What latency and throughput do not
//!   account for in calm times waits for something of its own (a long poll) and has its place beside the bound.
//! - Where nobody waits the bound is wide: nothing is refused until latency has shown that it helps.
//! - A queue of less than [`QUEUE_FREE`] is none, as in CoDel (RFC 8289 section 4.3).

/// Latencies up to this multiple of the one without a queue are not worth refusing anybody: waiting for half a
/// service time keeps whoever answers busy.
const TOLERANCE: f64 = 1.5;

/// Seconds in a queue that are never worth refusing anybody. Handlers of microseconds are answered in batches, and
/// need some hundred in flight to be at their best.
const QUEUE_FREE: f64 = 0.002;

/// Requests that a bound holds above what the formula gives, so that nobody who answers is ever idle in between.
const QUEUE_SPACE: f64 = 0.5;

/// A bound shrinks to no less than this share at a time: one window may be an accident.
const GRADIENT_MIN: f64 = 0.5;

/// What a smaller bound weighs against the one before it, where it is not that far away.
const SHRINK_WEIGHT: f64 = 0.4;

/// A bound grows by this multiple of its root, as in Vegas and Gradient.
const GROWTH: f64 = 0.5;

/// Windows without a queue after which it grows by a share of itself instead …
const GROWTH_STREAK: u32 = 3;

/// … by this one: from 2 to 200 in two seconds.
const GROWTH_SHARE: f64 = 0.25;

/// Where nothing is known, or nobody waits, the bound is at least this, so that those who come together are let in
/// together. As many as wait for a first look at an overload: a third of a second where each takes 5 ms.
const WIDE_MIN: f64 = 64.0;

/// Where nobody waits it is this multiple of what is in flight …
const WIDE: f64 = 4.0;

/// … in the end: it goes there by this share of the way in each window, so that what follows on an overload
/// finds it narrow.
const RELAX_SHARE: f64 = 0.005;

/// A bound that was not met is not set lower than this by one window alone.
const UNMET_MIN: f64 = 10.0;

/// What a window weighs against those before it.
const SHORT_WEIGHT: f64 = 0.5;

/// What a latency weighs in the one without a queue: of a shorter one, …
const FALL_WEIGHT: f64 = 0.2;

/// … of a longer one while the bound is not met, so that nobody waits for it, …
const REST_WEIGHT: f64 = 0.1;

/// … and while it is met: Gradient2's average over 600.
const RISE_WEIGHT: f64 = 2.0 / 601.0;

/// From this multiple of the latency without a queue on there may be one that stands.
const MAY_QUEUE: f64 = 1.2;

/// Seconds with what may be a queue, after which it is looked at with a probe.
const PROBE_PERIOD: f64 = 10.0;

/// Seconds between probes that come to nothing, at most.
const PROBE_PERIOD_MAX: f64 = 160.0;

/// Seconds between probes, at least.
const PROBE_PAUSE: f64 = 1.0;

/// A bound that has shrunk to this share since the last probe may have done so for nothing: requests may have become
/// slower by themselves.
const PROBE_SHRUNK: f64 = 0.7;

/// What a window weighs in the number of requests that wait for something of their own.
const PASSIVE_WEIGHT: f64 = 0.2;

/// Seconds of latency above which no probe is made: it would have to last as long.
const PROBE_LATENCY_MAX: f64 = 4.0;

/// The first probe lowers the bound to a quarter at a time, later ones to a half.
const PROBE_STEPS: (f64, f64) = (4.0, 2.0);

/// Throughput that is lower than this share of what it was has fallen.
const RATE_FELL: f64 = 0.8;

/// A latency without a queue that is found to be this much the same needs no second look.
const SAME: f64 = 0.2;

/// More than this share of requests that were given up means that less must be let in, whatever latency says …
const DROPPED_MAX: f64 = 0.1;

/// … down to this share at a time, as in AIMD of the same library.
const DROPPED_SHRINK: f64 = 0.9;

/// What the answers of some time say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Window {
    /// Answers a second.
    pub(super) rate: f64,
    /// Of the typical answer, in seconds.
    pub(super) latency: f64,
    /// Requests in flight, themselves among them.
    pub(super) in_flight: f64,
    /// Share of requests that were given up.
    pub(super) dropped: f64,
    /// Seconds.
    pub(super) lasted: f64,
}

/// The bound and what is known for it.
#[derive(Debug)]
pub(super) struct Gradient {
    min: f64,
    max: f64,
    bound: f64,
    /// Latency now, smoothed over some windows.
    short: Option<f64>,
    /// Latency without a queue.
    long: Option<f64>,
    /// Requests in flight that wait for something of their own.
    passive: f64,
    /// Windows one after the other in which the bound was met and nobody waited.
    streak: u32,
    /// The last probe told something.
    is_tested: bool,
    /// The bound after the last probe.
    tested_at: f64,
    since_probe: f64,
    /// Seconds since the last probe with what may be a queue.
    queueing: f64,
    probe_period: f64,
    probe: Option<Probe>,
}

/// A look at what latency is without a queue.
#[derive(Debug, Clone, Copy)]
struct Probe {
    /// The bound meanwhile.
    at: f64,
    /// The bound before.
    resume: f64,
    /// What was seen one step above.
    above: Window,
    /// Throughput is what it was before the bound was lowered by the steps until then.
    is_queue: bool,
}

impl Gradient {
    /// Knows nothing yet.
    pub(super) fn new(min: u32, max: u32) -> Self {
        let min = f64::from(min.max(1));
        let max = f64::from(max).max(min);
        Self {
            min,
            max,
            bound: WIDE_MIN.clamp(min, max),
            short: None,
            long: None,
            passive: 0.0,
            streak: 0,
            is_tested: false,
            tested_at: 0.0,
            since_probe: PROBE_PAUSE,
            // The first queue is looked at as soon as it is there.
            queueing: PROBE_PERIOD,
            probe_period: PROBE_PERIOD,
            probe: None,
        }
    }

    /// How many may be in flight.
    pub(super) fn bound(&self) -> u32 {
        // Within u32, since both ends are.
        self.probe.map_or(self.bound, |probe| probe.at).clamp(self.min, self.max) as u32
    }

    /// What the bound is lowered to for a moment, if it is.
    pub(super) fn probed_at(&self) -> Option<u32> {
        self.probe.map(|_| self.bound())
    }

    /// Latency now, in seconds, as far as it is known.
    pub(super) fn latency(&self) -> f64 {
        self.probe.map(|probe| probe.above.latency).or(self.short).unwrap_or_default()
    }

    /// Seconds until those are answered that are in flight now, where the bound has just changed.
    pub(super) fn drains_in(&self) -> f64 {
        match &self.probe {
            Some(Probe { above, .. }) if above.rate > 0.0 => self.active(above) / above.rate,
            _ => self.long.unwrap_or_default(),
        }
    }

    /// Takes one window.
    pub(super) fn window(&mut self, window: &Window) {
        if window.dropped > DROPPED_MAX {
            if let Some(probe) = self.probe.take() {
                self.bound = probe.resume;
            }
            self.streak = 0;
            self.bound = (self.bound.min(window.in_flight.max(1.0)) * DROPPED_SHRINK).max(self.min);
            return;
        }
        match self.probe.take() {
            Some(probe) => self.probed(probe, window),
            None => self.steady(window),
        }
    }

    /// The probe has taken too long, or nobody came: the bound is what it was, and the next one waits longer.
    pub(super) fn give_up(&mut self) {
        let Some(probe) = self.probe.take() else { return };
        self.end_probe(probe.resume);
        self.probe_period = (2.0 * self.probe_period).min(PROBE_PERIOD_MAX);
    }

    fn steady(&mut self, window: &Window) {
        let short = blend(self.short, window.latency, SHORT_WEIGHT);
        self.short = Some(short);
        let is_met = window.in_flight >= self.bound / 2.0;
        let long = self.learn(short, is_met);
        let allowed = allowed(long);
        self.since_probe += window.lasted;
        if short > MAY_QUEUE * long {
            self.queueing += window.lasted;
        } else {
            let passive = (window.in_flight - window.rate * window.latency).max(0.0);
            self.passive += PASSIVE_WEIGHT * (passive - self.passive);
        }
        if short > allowed {
            self.streak = 0;
            self.shrink(window, allowed, is_met);
        } else if is_met {
            self.grow();
        } else {
            self.streak = 0;
            let wide = (WIDE * window.in_flight).max(WIDE_MIN);
            self.bound += RELAX_SHARE * (wide - self.bound);
        }
        self.bound = self.bound.clamp(self.min, self.max);
        if self.is_probe_due(short, allowed) {
            self.begin_probe(window);
        }
    }

    /// What latency is without a queue.
    fn learn(&mut self, short: f64, is_met: bool) -> f64 {
        let weight = match self.long {
            Some(long) if short < long => FALL_WEIGHT,
            Some(long) if is_met || short > allowed(long) => RISE_WEIGHT,
            _ => REST_WEIGHT,
        };
        let is_lowest = is_met && self.bound < self.min + 1.0;
        let long = match self.long {
            // Nothing lower can be tried: what is measured here is all that can be had.
            Some(long) if is_lowest && short > allowed(long) => short / TOLERANCE,
            before => blend(before, short, weight),
        };
        self.long = Some(long);
        long
    }

    fn shrink(&mut self, window: &Window, allowed: f64, is_met: bool) {
        let target = self.room(window.rate, allowed);
        let least = GRADIENT_MIN * window.in_flight;
        if !is_met {
            self.bound = self.bound.min(target.max(UNMET_MIN));
        } else if target < least {
            self.bound = self.bound.min(least);
        } else if target < self.bound {
            self.bound += SHRINK_WEIGHT * (target - self.bound);
        }
    }

    /// As many as this throughput keeps in flight at this latency, and those who wait for something of their own.
    fn room(&self, rate: f64, latency: f64) -> f64 {
        self.passive + rate * latency + QUEUE_SPACE
    }

    fn grow(&mut self) {
        self.streak = self.streak.saturating_add(1);
        let step = GROWTH * self.bound.sqrt();
        self.bound += if self.streak > GROWTH_STREAK { step.max(GROWTH_SHARE * self.bound) } else { step };
    }

    fn is_probe_due(&self, short: f64, allowed: f64) -> bool {
        let has_shrunk = self.is_tested && self.bound < PROBE_SHRUNK * self.tested_at;
        let has_queued = self.queueing >= self.probe_period && (self.is_tested || short > allowed);
        (has_shrunk || has_queued) && self.since_probe >= PROBE_PAUSE && short <= PROBE_LATENCY_MAX
    }

    fn begin_probe(&mut self, window: &Window) {
        let at = self.below(window).min(self.bound.floor());
        if at < window.in_flight.floor() {
            self.probe = Some(Probe { at, resume: self.bound, above: *window, is_queue: false });
        }
    }

    /// Requests in flight that somebody works on, or that wait for that.
    fn active(&self, window: &Window) -> f64 {
        (window.in_flight - self.passive).max(0.0)
    }

    /// The bound one step below.
    fn below(&self, window: &Window) -> f64 {
        let step = if self.is_tested { PROBE_STEPS.1 } else { PROBE_STEPS.0 };
        let at = window.in_flight - self.active(window) * (1.0 - 1.0 / step);
        at.floor().max(self.min)
    }

    fn probed(&mut self, probe: Probe, window: &Window) {
        if window.in_flight > 1.5 * probe.at + 1.0 {
            // Those from before are not answered yet.
            self.probe = Some(probe);
            return;
        }
        let is_queue = window.rate >= RATE_FELL * probe.above.rate;
        let is_near = |long: f64| (window.latency / long - 1.0).abs() < SAME;
        let is_same = self.is_tested && self.long.is_some_and(is_near);
        let next = self.below(window);
        if is_queue && !is_same && next < probe.at {
            self.probe = Some(Probe { at: next, above: *window, is_queue, ..probe });
            return;
        }
        // One alone has no queue; at another smallest bound there may still be one.
        let may_queue = is_queue && !is_same && probe.at > 1.0;
        let long = if may_queue { window.latency / TOLERANCE } else { window.latency };
        self.long = Some(long);
        self.passive = (window.in_flight - window.rate * window.latency).max(0.0);
        let resume = if is_queue || probe.is_queue {
            probe.resume.min(self.room(probe.above.rate.max(window.rate), allowed(long)))
        } else {
            probe.resume
        };
        self.is_tested = true;
        self.probe_period = PROBE_PERIOD;
        self.end_probe(resume);
    }

    fn end_probe(&mut self, bound: f64) {
        self.bound = bound.clamp(self.min, self.max);
        self.tested_at = self.bound;
        self.since_probe = 0.0;
        self.queueing = 0.0;
        self.streak = 0;
        self.short = None;
    }
}

/// The latency up to which nobody is refused, where it is this without a queue.
fn allowed(long: f64) -> f64 {
    (TOLERANCE * long).max(long + QUEUE_FREE)
}

/// The exponentially weighted mean.
fn blend(before: Option<f64>, new: f64, weight: f64) -> f64 {
    before.map_or(new, |before| before + weight * (new - before))
}
