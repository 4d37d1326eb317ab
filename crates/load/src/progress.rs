//! What is heard of a measurement while it goes on, and how it is broken off.

use std::time::Duration;

/// Somebody who watches. Called a few times a second, from the thread that started the measurement.
pub trait Observer {
    /// Something new begins, in words: `round 3 of 10: nginx, warming up`.
    fn stage(&mut self, words: &str) {
        let _ = words;
    }

    /// How far it is.
    fn progress(&mut self, progress: &Progress) {
        let _ = progress;
    }

    /// Whether to break off: what was measured until then is told and marked as incomplete.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// Nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Progress {
    /// It still warms up: the figures do not count.
    pub is_warming_up: bool,
    /// Time since the begin, of the warm-up or of the measurement.
    pub elapsed: Duration,
    /// What part is done, 0 to 1, where that is known.
    pub share: Option<f64>,
    /// Whole, expected answers until now.
    pub good: u64,
    /// Everything else until now.
    pub bad: u64,
    /// Good answers per second in the last slice.
    pub rate: f64,
    /// Median latency of the last slice.
    pub p50: Duration,
    /// 99th percentile of the last slice.
    pub p99: Duration,
}
