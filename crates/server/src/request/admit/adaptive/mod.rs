//! A bound on requests in flight that finds itself. For now it is as high as it may be.

use std::time::Duration;

/// A bound between two others.
pub(crate) struct Adaptive {
    max: u32,
}

impl Adaptive {
    /// A bound that is at least `min` and at most `max`.
    pub(crate) fn new(_min: u32, max: u32) -> Self {
        Self { max }
    }

    /// What it is now.
    pub(crate) fn bound(&self) -> u32 {
        self.max
    }

    /// A request that had its answer's head after so long, when so many were in flight.
    pub(crate) fn sample(&self, _core: usize, _took: Duration, _in_flight: u32, _was_dropped: bool) {}
}
