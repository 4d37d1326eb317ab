//! The smallest difference that a comparison can be expected to find, known before it begins.

use crate::ratio::kept_of;
use crate::student::t_quantile;

/// Comparisons of 100 that find it.
const FOUND: f64 = 0.95;

/// What cutting off the outer pairs costs where no pair lies outside: an interval so many times as wide.
const TRIMMED_WIDTH: f64 = 1.08;

/// The smallest difference, 0.05 for 5 %, that is called one in 95 of 100 comparisons of so many rounds. `noise` is how
/// much the figure of one server varies from round to round: the standard deviation, as a share. With fewer than three
/// rounds nothing is found.
pub fn detectable(rounds: usize, noise: f64, confidence: f64, least_difference: f64) -> f64 {
    let kept = kept_of(rounds);
    if rounds < crate::PAIRS_MIN {
        return f64::INFINITY;
    }
    let quantiles = t_quantile((1.0 + confidence) / 2.0, kept - 1) + t_quantile(FOUND, kept - 1);
    // Of the ratio of two figures, each with this noise.
    let error = noise * std::f64::consts::SQRT_2 / (rounds as f64).sqrt() * TRIMMED_WIDTH;
    (least_difference.ln_1p() + quantiles * error).exp_m1()
}
