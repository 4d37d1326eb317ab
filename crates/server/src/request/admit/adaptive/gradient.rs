//! The formula: what windows of answers say goes in, how many may be in flight comes out.
//!
//! PURE: no clock, no lock. It is of the family of Gradient2 of Netflix's concurrency-limits (Apache-2.0,
//! `com.netflix.concurrency.limits.limit.Gradient2Limit`) and of Vegas: latency without a queue against latency now
//! tells how many of those in flight only wait. What is different here, and why:
//!
//! - What is compared is the *least* latency of a window: what even the quickest answer had to wait for is a queue that
//!   stands (CoDel's estimator, RFC 8289 section 3.1). Means rise with the share of slow routes, which is no overload.
//! - How many wait is what the quickest one found in flight when it was let in, less what throughput makes of its
//!   wait (Little's law). What is left is in flight for something else, long polls among it, and keeps its place.
//!   That is right while a queue still grows, too.
//! - Where nothing has been found out the bound is the largest: nobody is refused before there is a queue.
//! - A bound that was lowered and leaves the least latency where it was had been lowered for nothing: requests have
//!   become slower by themselves. It goes back to where it was.
//! - A queue of less than [`QUEUE_FREE`] is none, as in CoDel (RFC 8289 section 4.3).

/// How many may be in flight of whom nothing is known: what is let in before a queue is seen has to be answered by
/// somebody. With a queue of 128 behind it 300 that wait for each other are not refused.
pub(super) const WIDE: f64 = 192.0;

/// Waits of this share of the time that the typical request takes by itself are not worth refusing anybody: they
/// keep whoever answers busy.
const TOLERANCE: f64 = 0.15;

/// Seconds in a queue that are never worth refusing anybody. Handlers of microseconds are answered in batches, and
/// need some hundred in flight to be at their best.
const QUEUE_FREE: f64 = 0.003;

/// Requests that a bound holds above what the formula gives, so that nobody who answers is ever idle in between.
const QUEUE_SPACE: f64 = 1.0;

/// Answers whose least latency tells a queue from chance; …
const TOLD_BY: u64 = 8;

/// … fewer do where the typical one takes no more than this multiple of it, as those do that wait one behind the other.
const ALIKE: f64 = 1.25;

/// More than this multiple of what those found that were answered means that in flight there are more and more.
const MORE: f64 = 1.3;

/// No first queue is seen where no more than this multiple of what usually are are in flight.
const UNUSUAL: f64 = 2.0;

/// What a window weighs in that.
const USUAL_WEIGHT: f64 = 0.02;

/// A bound is met where so much of it is in flight in the mean.
const MET: f64 = 0.95;

/// A bound shrinks to no less than this share at a time, one window may be an accident; …
const SHRINK_MIN: f64 = 0.5;

/// … and at the first time to no less than this share of what is in flight.
const FIRST_SHRINK_MIN: f64 = 0.125;

/// What a smaller bound weighs against the one before it, where it is not that far away.
const SHRINK_WEIGHT: f64 = 0.4;

/// So much smaller it is far away, and what was let in before has to be answered before anything can be told.
const FAR: f64 = 0.7;

/// With so much less in flight the least latency has to be less, too, …
const CHECKED_AT: f64 = 0.6;

/// (and no fewer than so many less) …
const CHECKED_MORE: f64 = 3.0;

/// … than this share of what it was, …
const CHECKED_BY: f64 = 0.9;

/// … in one of so many windows one after the other. At the first time one is enough: far less is in flight then.
const CHECKS: u32 = 3;

/// A bound grows by this multiple of its root, as in Vegas and Gradient.
const GROWTH: f64 = 0.25;

/// Windows without a queue after which it grows by a share of itself instead …
const GROWTH_STREAK: u32 = 4;

/// … by this one: from 2 to 200 in two seconds.
const GROWTH_SHARE: f64 = 0.25;

/// Where the event loop has time, and answers come at a pace that explains no more than this share of those in flight
/// (Little's law), the others wait for something of their own, …
const FLOWING_MIN: f64 = 0.5;

/// … and the bound grows by this share of itself at once.
const GROWTH_STALLED: f64 = 0.5;

/// Seconds in which a bound was not met, after which it opens: an overload that has gone may come again at once.
const HOLD: f64 = 30.0;

/// A bound that opens, or that nobody has an answer under, grows by this factor at a time.
const OPENING: f64 = 2.0;

/// An answer in less than this share of the least latency at all has to come in two windows one after the other.
const FAR_QUICKER: f64 = 0.125;

/// What the least latency of a window weighs in the least one at all, where the bound is not met: a quick route may
/// have gone; …
const FLOOR_WEIGHT: f64 = 0.02;

/// … and where the quickest one was alone, and so waited for nobody.
const FLOOR_WEIGHT_ALONE: f64 = 0.2;

/// What a window weighs in throughput: some answer many at once, and then none for a while.
const RATE_WEIGHT: f64 = 0.3;

/// What a window weighs in the time that the typical request takes by itself.
const SERVICE_WEIGHT: f64 = 0.2;

/// More than this share of requests that were given up means that less must be let in, whatever latency says …
const DROPPED_MAX: f64 = 0.1;

/// … down to this share at a time, as in AIMD of the same library.
const DROPPED_SHRINK: f64 = 0.9;

/// Where the typical request takes more than this multiple of what it could, while the quickest waits for nobody, the
/// bound is squeezed: an event loop that works in turns has some that are quick, however many wait.
const SQUEEZED_FROM: f64 = 3.0;

/// Not where the mean request takes more than this multiple of the typical one: some wait for something of their own, …
const SQUEEZED_ALIKE: f64 = 1.3;

/// and not below this, where there is little to be won, …
const SQUEEZE_MIN: f64 = 5.0;

/// It is squeezed to this share; …
const SQUEEZE: f64 = 0.5;

/// … and where requests take no more than this share of before (Little's law makes it of throughput) they had waited.
const SQUEEZED_BY: f64 = 0.6;

/// Otherwise the bound is what Little's law gives, with so much room.
const SQUEEZE_ROOM: f64 = 1.25;

/// What was found out by that is forgotten by this share in a window: it is tried again after some ten seconds.
const SQUEEZE_FORGOTTEN: f64 = 0.01;

/// What the answers of some time say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Window {
    /// Answers.
    pub(super) count: u64,
    /// Answers a second.
    pub(super) rate: f64,
    /// Of the typical answer, in seconds.
    pub(super) latency: f64,
    /// Of the quickest one, …
    pub(super) least: f64,
    /// … and how many were in flight when it was let in, itself among them.
    pub(super) crowd: f64,
    /// The same of all, in the mean.
    pub(super) in_flight: f64,
    /// Share of requests that were given up.
    pub(super) dropped: f64,
    /// Seconds.
    pub(super) lasted: f64,
    /// It is known that the event loop of whoever answers has time.
    pub(super) has_time: bool,
}

/// What is known of a queue, to see whether it is one.
#[derive(Debug, Clone, Copy)]
struct Mark {
    crowd: f64,
    least: f64,
    /// The bound before there was one.
    resume: f64,
    /// Windows one after the other that speak against it.
    checks: u32,
}

/// What was before the bound was squeezed.
#[derive(Debug, Clone, Copy)]
struct Squeeze {
    bound: f64,
    /// Of the mean request, in seconds, by Little's law.
    took: f64,
}

/// The bound and what is known for it.
#[derive(Debug)]
pub(super) struct Gradient {
    min: f64,
    max: f64,
    bound: f64,
    /// The least latency at all, slowly forgotten.
    floor: Option<f64>,
    /// What the typical request takes by itself, in seconds.
    service: Option<f64>,
    /// At the end of the last window.
    in_flight_before: u32,
    /// The least latency of the last window.
    least_before: Option<f64>,
    /// Requests in flight in the mean of the last seconds.
    usual: Option<f64>,
    /// Latency in the last window.
    latency: f64,
    /// Answers a second in the last window.
    rate: f64,
    /// There is, or was not long ago, a queue.
    mark: Option<Mark>,
    /// Even the quickest one of the last window waited for too long.
    was_late: bool,
    /// It has not been seen yet whether a lower bound makes it less.
    is_on_trial: bool,
    /// Windows one after the other in which the bound was met and nobody waited.
    streak: u32,
    /// Seconds since the bound was met.
    unmet: f64,
    /// There was an overload, or something that looked like one, since the bound was last at rest.
    is_warned: bool,
    squeeze: Option<Squeeze>,
    /// What the typical request takes at least, as far as squeezing has shown, in seconds.
    proven: f64,
    /// The least latency since the bound was last at rest.
    origin: Option<f64>,
}

impl Gradient {
    /// Knows nothing yet.
    pub(super) fn new(min: u32, max: u32) -> Self {
        let min = f64::from(min.max(1));
        let max = f64::from(max).max(min);
        Self {
            min,
            max,
            bound: WIDE.clamp(min, max),
            floor: None,
            in_flight_before: 0,
            least_before: None,
            usual: None,
            service: None,
            latency: 0.0,
            rate: 0.0,
            mark: None,
            was_late: false,
            is_on_trial: false,
            streak: 0,
            unmet: 0.0,
            is_warned: false,
            squeeze: None,
            proven: 0.0,
            origin: None,
        }
    }

    /// How many may be in flight.
    pub(super) fn bound(&self) -> u32 {
        // Within u32, since both ends are.
        self.bound as u32
    }

    /// Latency now, in seconds, as far as it is known.
    pub(super) fn latency(&self) -> f64 {
        self.latency
    }

    /// Somebody was answered.
    pub(super) fn is_known(&self) -> bool {
        self.service.is_some()
    }

    /// No queue has been seen lately.
    pub(super) fn is_calm(&self) -> bool {
        self.mark.is_none()
    }

    /// Seconds in which so many are answered, and the least that one of them takes.
    pub(super) fn turn(&self, count: f64) -> f64 {
        (count / self.rate.max(1.0)).max(self.floor.unwrap_or_default())
    }

    /// Where far more are in flight than may be, it says nothing how long those take who came before.
    pub(super) fn is_far_below(&self, in_flight: u32) -> bool {
        self.bound.floor() < FAR * f64::from(in_flight)
    }

    /// Takes one window; so many are in flight at its end.
    pub(super) fn window(&mut self, window: &Window, in_flight: u32) {
        if window.dropped > DROPPED_MAX {
            self.streak = 0;
            self.unmet = 0.0;
            self.bound = (self.bound.min(window.in_flight.max(1.0)) * DROPPED_SHRINK).max(self.min);
            return;
        }
        if window.count == 0 {
            return;
        }
        let in_flight_before = std::mem::replace(&mut self.in_flight_before, in_flight);
        self.latency = window.latency;
        let before = if self.rate > 0.0 { self.rate } else { window.rate };
        self.rate = before + RATE_WEIGHT * (window.rate - before);
        let floor = self.lowest(window.least);
        let waited = (window.least - floor).max(0.0);
        let service = self.learn(window.latency - waited);
        let allowed = (TOLERANCE * service).max(QUEUE_FREE);
        let is_met = window.in_flight >= MET * self.bound.floor();
        self.unmet = if is_met { 0.0 } else { self.unmet + window.lasted };
        self.floor = Some(floor);
        self.origin = Some(self.origin.map_or(floor, |origin| origin.min(floor)));
        let is_told = window.count >= TOLD_BY || window.latency < ALIKE * window.least;
        // Where there is room nobody is kept from waiting elsewhere by less of it.
        let is_late = waited > allowed && window.crowd >= 2.0 && (is_met || self.mark.is_none());
        if is_late {
            self.streak = 0;
            self.squeeze = None;
            // The first time it has to be so twice, unless more and more are in flight; and more than there usually are.
            let grows = f64::from(in_flight) > MORE * window.in_flight && in_flight >= in_flight_before;
            let is_second = std::mem::replace(&mut self.was_late, true);
            let usual = self.usual.unwrap_or(window.in_flight);
            let is_unusual = is_met || f64::from(in_flight) > UNUSUAL * usual;
            if is_told && (self.mark.is_some() || ((grows || is_second) && is_unusual)) {
                self.late(window, waited - allowed, in_flight.into());
            }
        } else if let Some(mark) = self.mark.filter(|mark| {
            // Alone, and as late as behind a queue: there was none.
            self.is_on_trial && window.crowd < 2.0 && window.least > CHECKED_BY * mark.least
        }) {
            self.take_back(mark.resume, window.least);
            self.proven = window.latency / 2.0;
        } else {
            self.was_late = false;
            let weight = match is_met {
                _ if window.crowd < 2.0 => FLOOR_WEIGHT_ALONE,
                false if waited <= allowed => FLOOR_WEIGHT,
                _ => 0.0,
            };
            self.floor = Some(floor + weight * waited);
            if is_met {
                if !self.squeezed(window) {
                    self.grow(window);
                }
            } else {
                self.streak = 0;
                self.squeeze = None;
                if self.unmet > HOLD {
                    self.mark = None;
                    self.rest(in_flight);
                }
            }
        }
        let usual = self.usual.unwrap_or(window.in_flight);
        self.usual = Some(usual + USUAL_WEIGHT * (window.in_flight - usual));
        self.bound = self.bound.clamp(self.min, self.max);
    }

    /// The bound was not met for long: it is as wide as at first, and never wider than that above those in flight.
    fn rest(&mut self, in_flight: u32) {
        self.is_warned = false;
        self.proven = 0.0;
        self.origin = self.floor;
        self.bound = self.bound.max(WIDE).min(f64::from(in_flight) + WIDE);
    }

    /// Too few were answered in this time to tell anything, and the bound was not met.
    pub(super) fn idle(&mut self, lasted: f64, in_flight: u32) {
        self.unmet += lasted;
        if self.unmet > HOLD {
            self.mark = None;
            self.rest(in_flight);
            self.bound = self.bound.clamp(self.min, self.max);
        }
    }

    /// Seconds in which so many are answered if they are worked on one behind the other, as far as that is known.
    pub(super) fn one_by_one(&self, count: u32) -> f64 {
        let each = self.service.unwrap_or_default();
        let each = if self.rate > 0.0 { each.min(1.0 / self.rate) } else { each };
        f64::from(count) * each
    }

    /// Nobody was answered for a while: those who are in flight may wait for each other.
    pub(super) fn silence(&mut self, in_flight: u32) {
        self.unmet = 0.0;
        self.bound = (self.bound.max(in_flight.into()) * OPENING).min(self.max);
    }

    /// The least latency at all, where this was the least one of a window.
    fn lowest(&mut self, least: f64) -> f64 {
        let before = self.least_before.replace(least).unwrap_or(least);
        let Some(floor) = self.floor else { return least };
        // One by far quicker answer alone, as to a question of a monitor, is not what the others could be like.
        floor.min(if least < FAR_QUICKER * floor { least.max(before) } else { least })
    }

    /// What the typical request takes by itself.
    fn learn(&mut self, now: f64) -> f64 {
        let before = self.service.unwrap_or(now);
        *self.service.insert(before + SERVICE_WEIGHT * (now - before))
    }

    /// Even the quickest one waited, by so much too long.
    fn late(&mut self, window: &Window, late: f64, in_flight: f64) {
        let first = Mark { crowd: window.crowd, least: window.least, resume: self.bound, checks: CHECKS - 1 };
        let is_first = self.mark.is_none() || self.is_on_trial;
        self.is_on_trial = is_first;
        self.is_warned = true;
        let mark = self.mark.get_or_insert(first);
        let is_same = CHECKED_AT * window.crowd >= mark.crowd
            && window.crowd >= mark.crowd + CHECKED_MORE
            && (CHECKED_BY..=1.0 / CHECKED_BY).contains(&(window.least / mark.least));
        if window.crowd > mark.crowd && !(is_first && is_same) {
            // More had been let in than those knew who were answered first.
            (mark.crowd, mark.least) = (window.crowd, window.least);
        } else if is_same || window.crowd <= CHECKED_AT * mark.crowd {
            if is_same || window.least > CHECKED_BY * mark.least {
                mark.checks += 1;
                if mark.checks >= CHECKS {
                    let resume = mark.resume;
                    self.take_back(resume, window.least);
                    self.proven = window.latency / 2.0;
                    return;
                }
            } else {
                // There was one. From now on the bound goes back to no more than what there was.
                *mark = Mark { resume: self.bound, checks: 0, ..first };
                self.is_on_trial = false;
            }
        }
        // Before there was a queue it was not as many as could have been answered.
        let rate = if is_first { window.rate } else { self.rate.min(window.rate) };
        let target = (window.crowd - rate * late).max(0.0) + QUEUE_SPACE;
        if target >= self.bound {
            return;
        }
        let least =
            if is_first { FIRST_SHRINK_MIN * in_flight.min(self.bound) } else { SHRINK_MIN * self.bound };
        self.bound = if target < FAR * self.bound {
            target.max(least)
        } else {
            self.bound + SHRINK_WEIGHT * (target - self.bound)
        };
    }

    /// Nobody had been waiting: it takes so long.
    fn take_back(&mut self, bound: f64, least: f64) {
        self.bound = bound;
        self.floor = Some(least);
        self.mark = None;
        self.is_on_trial = false;
    }

    /// Whether this was about a squeezed bound, or one that is squeezed now.
    fn squeezed(&mut self, window: &Window) -> bool {
        let took = window.in_flight / window.rate;
        if let Some(before) = self.squeeze.take() {
            let share = took / before.took;
            if share > SQUEEZED_BY {
                self.bound = self.bound.max(before.bound * (share * SQUEEZE_ROOM).min(1.0));
                self.proven = window.latency;
            }
            return true;
        }
        self.proven -= SQUEEZE_FORGOTTEN * self.proven;
        let could = self.origin.unwrap_or_default().max(self.proven);
        let is_slow = window.latency > (SQUEEZED_FROM * could).max(could + QUEUE_FREE);
        if !self.is_warned
            || self.bound < SQUEEZE_MIN
            || window.crowd < 2.0
            || !is_slow
            || took > SQUEEZED_ALIKE * window.latency
        {
            return false;
        }
        self.squeeze = Some(Squeeze { bound: self.bound, took });
        self.streak = 0;
        self.bound *= SQUEEZE;
        true
    }

    fn grow(&mut self, window: &Window) {
        self.streak = self.streak.saturating_add(1);
        let is_stalled = window.has_time && window.rate * window.latency < FLOWING_MIN * window.in_flight;
        let share = match self.streak {
            _ if is_stalled => GROWTH_STALLED,
            0..=GROWTH_STREAK => 0.0,
            _ => GROWTH_SHARE,
        };
        self.bound += (GROWTH * self.bound.sqrt()).max(share * self.bound);
    }
}
