//! How often intervals and verdicts are right, shown by simulation with fixed seeds.
//!
//! Owns the noise that measurements have: even, skewed, and with outliers. Never looks at a clock: the figures are
//! the same each time.

use super::{Verdict, detectable, ratio_interval, verdict};

/// What the defaults of a comparison are.
const CONFIDENCE: f64 = 0.99;
const LEAST_DIFFERENCE: f64 = 0.01;
const ROUNDS: usize = 15;

/// Metrics of a table.
const METRICS: usize = 6;

/// The simulated share may be below the promised one by so much: of 2000 trials three standard errors are 0.007,
/// and asymmetric outliers move the centre itself.
const TOLERANCE: f64 = 0.01;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Noise {
    /// Normal, of this standard deviation.
    Even(f64),
    /// Exponential: mostly fast, sometimes slow, as latencies are.
    Skewed(f64),
    /// Even, and this share of the measurements is 5 to 20 % slower.
    Outliers(f64, f64),
    /// Even, and in one pair of ten the test is 10 % slower or, as often, faster.
    OnePairInTen(f64),
}

/// One comparison: the arms' figures in all rounds, with this true ratio.
fn figures(random: &mut fastrand::Rng, noise: Noise, rounds: usize, ratio: f64) -> (Vec<f64>, Vec<f64>) {
    let mut arm =
        |ratio: f64| -> Vec<f64> { (0..rounds).map(|_| ratio * one(random, noise).exp()).collect() };
    let (control, mut test) = (arm(1.0), arm(ratio));
    if matches!(noise, Noise::OnePairInTen(_)) {
        let factor = if random.bool() { 1.1 } else { 1.0 / 1.1 };
        test.iter_mut().take((rounds / 10).max(1)).for_each(|value| *value *= factor);
    }
    (control, test)
}

fn one(random: &mut fastrand::Rng, noise: Noise) -> f64 {
    match noise {
        Noise::Even(deviation) | Noise::OnePairInTen(deviation) => deviation * normal(random),
        Noise::Skewed(deviation) => -deviation * (1.0 - random.f64()).ln(),
        Noise::Outliers(deviation, share) => {
            let slower = if random.f64() < share { 0.05 + 0.15 * random.f64() } else { 0.0 };
            deviation * normal(random) + slower
        }
    }
}

/// Box and Muller, 1958.
fn normal(random: &mut fastrand::Rng) -> f64 {
    let (one, other) = (1.0 - random.f64(), random.f64());
    (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
}

#[test]
fn the_interval_holds_the_truth_as_often_as_it_says() {
    const TRIALS: u64 = 2000;
    for (index, noise) in
        [Noise::Even(0.02), Noise::Skewed(0.03), Noise::Outliers(0.02, 0.05), Noise::OnePairInTen(0.02)]
            .into_iter()
            .enumerate()
    {
        for rounds in [5, 10, 20] {
            let mut random = fastrand::Rng::with_seed(index as u64);
            let held = (0..TRIALS).filter(|&trial| {
                let (control, test) = figures(&mut random, noise, rounds, 1.07);
                let interval = ratio_interval(&control, &test, CONFIDENCE, trial);
                (interval.low..=interval.high).contains(&1.07)
            });
            let share = held.count() as f64 / TRIALS as f64;
            println!("{noise:?}, {rounds} rounds: {share:.4} hold the truth");
            assert!(share >= CONFIDENCE - TOLERANCE, "{noise:?}, {rounds} rounds: {share}");
        }
    }
}

#[test]
fn equal_arms_give_no_verdict_in_far_more_than_19_of_20_tables() {
    const TABLES: u64 = 2000;
    for rounds in [5, 10, ROUNDS] {
        let mut random = fastrand::Rng::with_seed(5);
        let wrong = (0..TABLES).filter(|&table| {
            (0..METRICS).any(|metric| {
                let deviation = 0.02 + 0.02 * metric as f64 / (METRICS - 1) as f64;
                let (control, test) = figures(&mut random, Noise::Outliers(deviation, 0.1), rounds, 1.0);
                let interval = ratio_interval(&control, &test, CONFIDENCE, table);
                verdict(&interval, LEAST_DIFFERENCE) != Verdict::NotShown
            })
        });
        let wrong = wrong.count();
        println!("{rounds} rounds: {wrong} of {TABLES} tables show a difference that is none");
        assert!(wrong * 20 <= TABLES as usize, "{rounds} rounds: {wrong}");
    }
}

#[test]
fn a_difference_of_5_percent_under_noise_of_2_percent_is_found() {
    const TRIALS: u64 = 4000;
    for (rounds, noise, at_least) in [
        (ROUNDS, Noise::Even(0.02), 0.95),
        (ROUNDS, Noise::OnePairInTen(0.02), 0.85),
        // Why the default is not ten rounds: there it is found in 83 of 100 at most, by any centre.
        (10, Noise::Even(0.015), 0.93),
    ] {
        let mut random = fastrand::Rng::with_seed(8);
        let found = (0..TRIALS).filter(|&trial| {
            let (control, test) = figures(&mut random, noise, rounds, 1.05);
            verdict(&ratio_interval(&control, &test, CONFIDENCE, trial), LEAST_DIFFERENCE) == Verdict::More
        });
        let share = found.count() as f64 / TRIALS as f64;
        println!("{noise:?}, {rounds} rounds: {share:.4} found");
        assert!(share >= at_least, "{noise:?}, {rounds} rounds: {share}");
    }
}

#[test]
fn the_difference_that_is_said_to_be_detectable_is_found_and_half_of_it_is_not() {
    const TRIALS: u64 = 1000;
    for (rounds, noise) in [(5, 0.02), (10, 0.02), (ROUNDS, 0.01), (ROUNDS, 0.02), (ROUNDS, 0.05), (60, 0.05)]
    {
        let said = detectable(rounds, noise, CONFIDENCE, LEAST_DIFFERENCE);
        let found = |difference: f64| {
            let mut random = fastrand::Rng::with_seed(rounds as u64);
            let found = (0..TRIALS).filter(|&trial| {
                let (control, test) = figures(&mut random, Noise::Even(noise), rounds, 1.0 + difference);
                let interval = ratio_interval(&control, &test, CONFIDENCE, trial);
                verdict(&interval, LEAST_DIFFERENCE) == Verdict::More
            });
            found.count() as f64 / TRIALS as f64
        };
        let (whole, half) = (found(said), found(said / 2.0));
        println!("{rounds} rounds, noise {noise}: {said:.4}, {whole:.3} found, of half of it {half:.3}");
        assert!(whole >= 0.93 && half <= 0.5, "{rounds} rounds, noise {noise}: {said}, {whole}, {half}");
    }
}
