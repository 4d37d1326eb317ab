//! What may be concluded from a few noisy figures.
//!
//! Pure arithmetic: owns intervals and verdicts, knows no server and no clock. Never says "different" where the
//! figures do not carry it.

/// An estimate with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The estimate itself.
    pub middle: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// How sure, 0.99 for 99 %.
    pub confidence: f64,
}

/// What an interval of a ratio test / control allows to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval is below 1, and further than what counts as a difference.
    Less,
    /// The whole interval is above 1, and further than what counts as a difference.
    More,
    /// Neither: no difference shown. (It may still exist: the interval says how large it could be.)
    NotShown,
    /// There are too few figures, or they are void.
    Unknown,
}
