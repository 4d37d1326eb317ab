//! When a window is whole, and how long a probe may take.
//!
//! PURE: time is handed in. Windows end by time and by count, so that a quick application is followed within tenths
//! of a second and a slow one is not judged by three answers.

use std::time::Duration;

use super::gradient::{Gradient, Window};
use super::sums::Totals;

/// A window lasts at least so long, …
const WINDOW_MIN: Duration = Duration::from_millis(100);

/// … and this many times the latency, as with Netflix's windows: what a bound does is seen only then.
const WINDOW_LATENCIES: f64 = 2.0;

/// A window is whole at such an age with so many requests. The mean of thirty is off by a fifth at most.
const WINDOW_WHOLE: [(Duration, u64); 3] =
    [(WINDOW_MIN, 30), (Duration::from_millis(500), 10), (Duration::from_secs(1), 3)];

/// Where a window is not whole yet it is looked at again so much later.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// After a bound was lowered for a probe, latencies count again after this many of them: by then those who
/// stood in a queue have been answered.
const SETTLE_LATENCIES: f64 = 1.2;

/// The shortest and the longest of such pauses.
const SETTLE: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(5));

/// One step of a probe takes so much longer than its pause, at most: meanwhile less is let in than could be.
const PROBE_STEP_MAX: Duration = Duration::from_millis(1_200);

/// The formula in time.
#[derive(Debug)]
pub(super) struct Control {
    gradient: Gradient,
    /// When the window began, and the sums at that time.
    began: (Duration, Totals),
    /// Answers before this count for nothing.
    settles: Option<Duration>,
    give_up: Option<Duration>,
}

/// What holds until the next look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    /// How many may be in flight.
    pub(super) bound: u32,
    /// Before this there is nothing to see.
    pub(super) look_at: Duration,
    /// The bound is lowered for a moment, and at this time there is to be a look even if no answer comes.
    pub(super) give_up: Option<Duration>,
}

impl Control {
    pub(super) fn new(min: u32, max: u32) -> Self {
        Self {
            gradient: Gradient::new(min, max),
            began: (Duration::ZERO, Totals::default()),
            settles: None,
            give_up: None,
        }
    }

    /// What holds at the beginning.
    pub(super) fn first(&self) -> Verdict {
        Verdict { bound: self.gradient.bound(), look_at: WINDOW_MIN, give_up: None }
    }

    /// Takes what was seen until now.
    pub(super) fn look(&mut self, now: Duration, totals: Totals) -> Verdict {
        let look_at = self.turn(now, totals);
        Verdict { bound: self.gradient.bound(), look_at, give_up: self.give_up }
    }

    /// When the next look makes sense.
    fn turn(&mut self, now: Duration, totals: Totals) -> Duration {
        if self.give_up.is_some_and(|give_up| now >= give_up) {
            self.gradient.give_up();
            return self.begin(now, totals);
        }
        if let Some(settled) = self.settles {
            if now < settled {
                return settled;
            }
            self.settles = None;
            self.began = (now, totals);
            return now + self.shortest();
        }
        let (began, before) = self.began;
        let lasted = now.saturating_sub(began);
        let seen = totals.since(before);
        if lasted < self.shortest() {
            return began + self.shortest();
        }
        if !WINDOW_WHOLE.iter().any(|(age, count)| lasted >= *age && seen.count() >= *count) {
            return now + LOOK_AGAIN;
        }
        let was_probing = self.gradient.is_probing();
        self.gradient.window(&window(&seen, lasted));
        if was_probing || self.gradient.is_probing() {
            return self.begin(now, totals);
        }
        self.began = (now, totals);
        now + self.shortest()
    }

    /// Begins a window under a bound that is not the one of before.
    fn begin(&mut self, now: Duration, totals: Totals) -> Duration {
        let pause = seconds(SETTLE_LATENCIES * self.gradient.latency()).clamp(SETTLE.0, SETTLE.1);
        self.began = (now, totals);
        self.settles = Some(now + pause);
        self.give_up = self.gradient.is_probing().then(|| now + pause + PROBE_STEP_MAX);
        now + pause
    }

    /// How long a window lasts at least.
    fn shortest(&self) -> Duration {
        let (longest, _) = WINDOW_WHOLE[WINDOW_WHOLE.len() - 1];
        seconds(WINDOW_LATENCIES * self.gradient.latency()).clamp(WINDOW_MIN, longest)
    }
}

fn window(seen: &Totals, lasted: Duration) -> Window {
    let lasted = lasted.as_secs_f64();
    Window {
        rate: seen.answers() as f64 / lasted,
        latency: seen.latency(),
        in_flight: seen.in_flight(),
        dropped: seen.dropped() as f64 / seen.count().max(1) as f64,
        lasted,
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}
