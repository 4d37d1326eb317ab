//! When a window is whole, and how long a search may take.
//!
//! PURE: time is handed in. Windows end by time and by count, so that a quick application is followed within tenths
//! of a second and a slow one is not judged by three answers.

use std::time::Duration;

use super::gradient::{Gradient, Window};
use super::sums::{Quickest, Totals};

/// A window lasts at least so long, …
const WINDOW_MIN: Duration = Duration::from_millis(100);

/// … and this many times the latency, as with Netflix's windows: what a bound does is seen only then.
const WINDOW_LATENCIES: f64 = 1.5;

/// Of fewer answers nothing can be told.
const ANSWERS_MIN: u64 = 3;

/// A window is whole at such an age with so many requests. The mean of thirty is off by a fifth at most.
const WINDOW_WHOLE: [(Duration, u64); 3] =
    [(WINDOW_MIN, 30), (Duration::from_millis(500), 10), (Duration::from_secs(1), ANSWERS_MIN)];

/// While there is no queue a few tell more than nothing: what is let in before one is seen has to be answered.
const WINDOW_CALM: (Duration, u64) = (Duration::from_millis(200), 2);

/// Where a window is not whole yet it is looked at again so much later.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Without answers that make a window those who are in flight wait for something of their own: after so long, …
const SILENCE: Duration = Duration::from_millis(250);

/// … or this where somebody had been answered before, …
const SILENCE_KNOWN: Duration = Duration::from_millis(500);

/// … and after so many times of what an answer took before, …
const SILENCE_LATENCIES: f64 = 4.0;

/// … and of what it takes to work on all of them one behind the other: an event loop that does so may write its
/// answers when it is through with all, …
const SILENCE_TURNS: f64 = 1.5;

/// … but not after more than this.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Once no more are in flight than may be, answers count again after this many times of what it takes to answer those:
/// they came under another bound.
const SETTLE_TURNS: f64 = 1.1;

/// The shortest and the longest of such pauses.
const SETTLE: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(2));

/// Until no more are in flight than may be this many times of what it should take, …
const DRAIN_TURNS: f64 = 2.0;

/// … is waited for, and so much longer: some that were let in wait for something of their own.
const DRAIN_MORE: Duration = Duration::from_secs(1);

/// Meanwhile there is a look so often: each answer may be the one after which they are few enough.
const DRAIN_LOOK: Duration = Duration::from_millis(1);

/// The longest of such waits.
const DRAIN_MAX: Duration = Duration::from_secs(30);

/// Where the event loop of whoever answers is on time, it is not busy with those who are in flight: after so long, …
const SILENCE_ON_TIME: Duration = Duration::from_millis(250);

/// … and after the time in which so many should have been answered, which is no chance then.
const SILENCE_ANSWERS: f64 = 8.0;

/// The formula in time.
#[derive(Debug)]
pub(super) struct Control {
    gradient: Gradient,
    stage: Stage,
    /// When the window began, and the sums at that time.
    began: (Duration, Totals),
    /// As it was told last.
    event_loop: EventLoop,
    /// When some had been answered last, and how many had been then.
    heard: (Duration, u64),
}

/// How whoever answers is doing, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum EventLoop {
    /// Nobody can tell, or it is late.
    #[default]
    Unknown,
    /// It turns, and would have time for whatever comes.
    OnTime,
}

/// What time goes by for.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// A window.
    Steady,
    /// The bound was lowered by much: those who are too many are answered, or it is this late.
    Drains { until: Duration },
    /// Those who are in flight came under another bound.
    Settles { until: Duration },
}

/// What holds until the next look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    /// How many may be in flight.
    pub(super) bound: u32,
    /// An answer before this says nothing.
    pub(super) look_at: Duration,
    /// At this time there is to be a look even if no answer comes.
    pub(super) look_by: Duration,
}

impl Control {
    pub(super) fn new(min: u32, max: u32) -> Self {
        Self {
            gradient: Gradient::new(min, max),
            stage: Stage::Steady,
            began: (Duration::ZERO, Totals::default()),
            event_loop: EventLoop::Unknown,
            heard: (Duration::ZERO, 0),
        }
    }

    /// What holds at the beginning.
    pub(super) fn first(&self) -> Verdict {
        Verdict { bound: self.gradient.bound(), look_at: WINDOW_MIN, look_by: SILENCE }
    }

    /// How whoever answers is doing now.
    pub(super) fn is_told(&mut self, event_loop: EventLoop) {
        self.event_loop = event_loop;
    }

    /// Takes what was seen until now. `quickest` takes the quickest answer since it was asked for last.
    pub(super) fn look(
        &mut self,
        now: Duration,
        totals: Totals,
        in_flight: u32,
        quickest: impl FnOnce() -> Option<Quickest>,
    ) -> Verdict {
        if totals.count().wrapping_sub(self.heard.1) >= ANSWERS_MIN {
            self.heard = (now, totals.count());
        }
        if !matches!(self.stage, Stage::Steady) && self.is_idle(now, in_flight) {
            // Whoever is in flight was not too much.
            self.gradient.silence(in_flight);
            self.stage = Stage::Steady;
            self.began = (now, totals);
        }
        let look_at = match self.stage {
            Stage::Steady => self.steady(now, totals, in_flight, quickest),
            Stage::Drains { until }
                if f64::from(in_flight) > f64::from(self.gradient.bound()) + 1.0 && now < until =>
            {
                now + DRAIN_LOOK
            }
            Stage::Drains { .. } => {
                let turn = SETTLE_TURNS * self.gradient.turn(self.gradient.bound().into());
                let until = now + seconds(turn).clamp(SETTLE.0, SETTLE.1);
                self.stage = Stage::Settles { until };
                until
            }
            Stage::Settles { until } if now < until => until,
            Stage::Settles { .. } => {
                self.stage = Stage::Steady;
                let _ = quickest();
                self.began = (now, totals);
                now + self.shortest()
            }
        };
        let look_by = match self.event_loop {
            EventLoop::Unknown => now + SILENCE,
            EventLoop::OnTime => {
                (self.began.0 + self.silence(in_flight)).clamp(now + LOOK_AGAIN, now + SILENCE)
            }
        };
        Verdict { bound: self.gradient.bound(), look_at, look_by }
    }

    fn steady(
        &mut self,
        now: Duration,
        totals: Totals,
        in_flight: u32,
        quickest: impl FnOnce() -> Option<Quickest>,
    ) -> Duration {
        let (began, before) = self.began;
        let lasted = now.saturating_sub(began);
        let seen = totals.since(before);
        if lasted < self.shortest() {
            return began + self.shortest();
        }
        let calm = self.gradient.is_calm().then_some(WINDOW_CALM);
        let mut whole = WINDOW_WHOLE.iter().chain(&calm);
        if whole.any(|(age, count)| lasted >= *age && seen.count() >= *count) {
            let window = Window {
                has_time: self.event_loop == EventLoop::OnTime,
                ..window(&seen, quickest(), lasted)
            };
            self.gradient.window(&window, in_flight);
            if self.gradient.is_far_below(in_flight) {
                let many = in_flight.saturating_sub(self.gradient.bound());
                let wait = seconds(DRAIN_TURNS * self.gradient.turn(many.into())).min(DRAIN_MAX) + DRAIN_MORE;
                self.stage = Stage::Drains { until: now + wait };
                return now;
            }
        } else if seen.count() < ANSWERS_MIN && lasted >= self.silence(in_flight) {
            if in_flight >= self.gradient.bound() {
                self.gradient.silence(in_flight);
            } else {
                self.gradient.idle(lasted.as_secs_f64(), in_flight);
            }
        } else {
            return now + LOOK_AGAIN;
        }
        self.began = (now, totals);
        now + self.shortest()
    }

    /// The bound is met, the event loop has time, and nobody, or nearly nobody, is answered.
    fn is_idle(&self, now: Duration, in_flight: u32) -> bool {
        self.event_loop == EventLoop::OnTime
            && in_flight >= self.gradient.bound()
            && now.saturating_sub(self.heard.0) >= self.silence(in_flight)
    }

    /// How long nobody, or nearly nobody, is answered before it means something.
    fn silence(&self, in_flight: u32) -> Duration {
        if self.event_loop == EventLoop::OnTime {
            return seconds(self.gradient.turn(SILENCE_ANSWERS)).clamp(SILENCE_ON_TIME, SILENCE_MAX);
        }
        let least = if self.gradient.is_known() { SILENCE_KNOWN } else { SILENCE };
        let turns = SILENCE_TURNS * self.gradient.one_by_one(in_flight);
        seconds(turns.max(SILENCE_LATENCIES * self.gradient.latency())).clamp(least, SILENCE_MAX)
    }

    /// How long a window lasts at least.
    fn shortest(&self) -> Duration {
        let (longest, _) = WINDOW_WHOLE[WINDOW_WHOLE.len() - 1];
        // Before there is a bound to speak of, nothing of what is seen was its doing.
        let latencies = if self.gradient.is_calm() { 0.0 } else { WINDOW_LATENCIES };
        seconds(latencies * self.gradient.latency()).clamp(WINDOW_MIN, longest)
    }
}

fn window(seen: &Totals, quickest: Option<Quickest>, lasted: Duration) -> Window {
    let lasted = lasted.as_secs_f64();
    let latency = seen.latency();
    Window {
        count: seen.answers(),
        rate: seen.answers() as f64 / lasted,
        latency,
        least: quickest.map_or(latency, |quickest| quickest.took.as_secs_f64().min(latency)),
        crowd: quickest.map_or(1.0, |quickest| quickest.crowd.into()),
        in_flight: seen.in_flight(),
        dropped: seen.dropped() as f64 / seen.count().max(1) as f64,
        lasted,
        has_time: false,
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}
