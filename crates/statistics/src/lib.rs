//! What may be concluded from a few noisy figures.
//!
//! Pure arithmetic: owns intervals and verdicts, knows no server and no clock. Never says "different" where the
//! figures do not carry it.
//!
//! `ratio.rs` is the interval, `power.rs` which difference it can show, `student.rs` the two distributions that they need;
//! `coverage.rs` shows by simulation how often all this is right.
#![forbid(unsafe_code)]

#[cfg(test)]
mod coverage;
mod power;
mod ratio;
mod student;

pub use power::detectable;
pub use ratio::{PAIRS_MIN, estimates, ratio_interval, usable_pairs};

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

/// What this interval of a ratio test / control allows to say. A difference counts only where the whole interval
/// is further from 1 than `least_difference` (0.01 for 1 %).
pub fn verdict(interval: &Interval, least_difference: f64) -> Verdict {
    let Interval { middle, low, high, .. } = *interval;
    if !(middle.is_finite() && low.is_finite() && high.is_finite()) {
        return Verdict::Unknown;
    }
    let least = least_difference.max(0.0);
    if low > 1.0 + least {
        Verdict::More
    } else if high < 1.0 - least {
        Verdict::Less
    } else {
        Verdict::NotShown
    }
}

/// The middle of the values; between two middles their mean. NaN where there is none.
pub fn median(values: &[f64]) -> f64 {
    percentile(values, 0.5)
}

/// The value that this share of all (0 to 1) does not exceed, between two neighbours in proportion (definition 7
/// of Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996). NaN where there is none.
pub fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    of_sorted(&sorted, share)
}

fn of_sorted(sorted: &[f64], share: f64) -> f64 {
    let place = share.clamp(0.0, 1.0) * sorted.len().saturating_sub(1) as f64;
    let below = place.floor();
    let Some(&low) = sorted.get(below as usize) else { return f64::NAN };
    let high = sorted.get(below as usize + 1).copied().unwrap_or(low);
    low + (high - low) * (place - below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_percentiles_are_those_of_the_definition() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(percentile(&[10.0, 20.0, 30.0, 40.0, 50.0], 0.9), 46.0);
        assert_eq!((percentile(&[7.0], 0.0), percentile(&[7.0], 1.0)), (7.0, 7.0));
        assert_eq!(percentile(&[1.0, 2.0], 9.0), 2.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_verdict_needs_the_whole_interval() {
        let check = |low: f64, high: f64, expected: Verdict| {
            let interval = Interval { middle: (low + high) / 2.0, low, high, confidence: 0.99 };
            assert_eq!(verdict(&interval, 0.01), expected, "{low} to {high}");
        };
        check(1.02, 1.05, Verdict::More);
        check(1.005, 1.2, Verdict::NotShown);
        check(0.9, 0.98, Verdict::Less);
        check(0.9, 0.995, Verdict::NotShown);
        check(0.9, 1.1, Verdict::NotShown);
        check(0.0, f64::INFINITY, Verdict::Unknown);
        check(f64::NAN, f64::NAN, Verdict::Unknown);
    }
}
