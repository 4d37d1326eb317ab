//! The normal and Student's t distribution, as far as intervals need them.
//!
//! Exact but for rounding: t by its finite sum for whole degrees of freedom, the normal tail by its continued
//! fraction. Never used near the middle, where the fraction converges slowly: quantiles here are of 75 % and more.

/// Steps of the bisection: 60 halvings leave less of [`T_MAX`] than rounding does.
const BISECTIONS: usize = 60;

/// No quantile that is asked for lies beyond: with one degree of freedom and a confidence of 99.9 % it is 637.
const T_MAX: f64 = 1e4;

/// Terms of the continued fraction; at 0.67, the least that is asked for, 500 leave an error below 1e-12.
const TERMS: u32 = 500;

/// The t with `degrees` (at least 1) of freedom that this share (0.75 to 1) of all do not exceed.
pub(super) fn t_quantile(share: f64, degrees: usize) -> f64 {
    let (mut low, mut high) = (0.0, T_MAX);
    for _ in 0..BISECTIONS {
        let middle = (low + high) / 2.0;
        if t_between(middle, degrees) < 2.0 * share - 1.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// The share of a normal distribution beyond this many standard deviations, on one side (Abramowitz and Stegun,
/// "Handbook of Mathematical Functions", 26.2.14).
pub(super) fn normal_tail(deviations: f64) -> f64 {
    let density = (-0.5 * deviations * deviations).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let mut fraction = deviations;
    for term in (1..=TERMS).rev() {
        fraction = deviations + f64::from(term) / fraction;
    }
    density / fraction
}

/// The share between -t and t (the same, 26.7.3 and 26.7.4).
fn t_between(t: f64, degrees: usize) -> f64 {
    let angle = (t / (degrees as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = degrees % 2 == 1;
    let mut term = if is_odd { cosine } else { 1.0 };
    let mut sum = if degrees == 1 { 0.0 } else { term };
    let mut factor = if is_odd { 3.0 } else { 2.0 };
    while factor < degrees as f64 {
        term *= cosine * cosine * (factor - 1.0) / factor;
        sum += term;
        factor += 2.0;
    }
    if is_odd { 2.0 / std::f64::consts::PI * (angle + sine * sum) } else { sine * sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (share, degrees, expected) in [
            (0.975, 1, 12.706_205),
            (0.995, 2, 9.924_843),
            (0.95, 3, 2.353_363),
            (0.995, 4, 4.604_095),
            (0.975, 7, 2.364_624),
            (0.995, 9, 3.249_836),
            (0.9995, 9, 4.780_913),
            (0.995, 12, 3.054_540),
            (0.975, 19, 2.093_024),
            (0.75, 30, 0.682_756),
            (0.995, 1000, 2.580_755),
        ] {
            let found = t_quantile(share, degrees);
            assert!((found - expected).abs() < 1e-5, "{share}, {degrees}: {found}");
        }
    }

    #[test]
    fn tails_are_those_of_the_tables() {
        for (deviations, expected) in [
            (0.674_489_75, 0.25),
            (1.0, 0.158_655_254),
            (1.959_963_985, 0.025),
            (2.575_829_304, 0.005),
            (3.5, 2.326_290_8e-4),
            (5.0, 2.866_515_7e-7),
        ] {
            let found = normal_tail(deviations);
            assert!((found / expected - 1.0).abs() < 1e-6, "{deviations}: {found}");
        }
    }
}
