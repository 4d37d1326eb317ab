//! Whether repetitions of one load agree.
//!
//! Owns the bounds beyond which two runs disagree, and the words for it. Never says which of them is right.

use onehop_load::outcome::{Run, Tally};

/// Rates of a quiet machine differ by 1 to 2 %; beyond 5 % something else took part.
const RATE_SHARE_MAX: f64 = 0.05;
/// A median moves with the rate, and a little more where the load is light.
const P50_SHARE_MAX: f64 = 0.10;
/// The rare ones that p99 is made of vary most: below 30 % there is nothing to learn.
const P99_SHARE_MAX: f64 = 0.30;
/// Answers below which a p99 is based on fewer than ten of them and says nothing.
const P99_RESPONSES_MIN: u64 = 1000;
/// Where both runs had failures, their numbers differ by chance; this many standard deviations are no chance.
const FAILURE_DEVIATIONS_MAX: f64 = 3.0;

/// How repetitions of one load differ more than they should, in words; each is compared with the first.
pub fn disagreements(runs: &[Run]) -> Vec<String> {
    let Some((first, others)) = runs.split_first() else { return Vec::new() };
    let mut found = Vec::new();
    for (index, other) in others.iter().enumerate() {
        let name = ordinal(index + 2);
        found.extend(between(&name, first, other));
    }
    found
}

fn between(name: &str, first: &Run, other: &Run) -> Vec<String> {
    let mut found = Vec::new();
    if is_cut_short(other) != is_cut_short(first) {
        let short = if is_cut_short(other) { name } else { "first" };
        found.push(format!(
            "the {short} run was broken off and the other one was not: they cannot be compared"
        ));
        return found;
    }
    let (rate, other_rate) = (first.rate(), other.rate());
    if let Some(percent) = change(rate, other_rate, RATE_SHARE_MAX) {
        let than = if other_rate < rate { "fewer" } else { "more" };
        found.push(format!(
            "the {name} run answered {percent} {than} requests per second than the first: {other_rate:.0} and \
             {rate:.0}"
        ));
    }
    let latency = |run: &Run, share: f64| run.total.latency.at(share).as_secs_f64() * 1e6;
    let has_p99 = |run: &Run| run.total.latency.count() >= P99_RESPONSES_MIN;
    for (what, share, bound, counts) in [
        ("median", 0.5, P50_SHARE_MAX, true),
        ("99th percentile", 0.99, P99_SHARE_MAX, has_p99(first) && has_p99(other)),
    ] {
        let (before, after) = (latency(first, share), latency(other, share));
        // A run that answered nothing that was due in its time has no latency.
        if let Some(percent) = change(before, after, bound).filter(|_| counts && before > 0.0 && after > 0.0)
        {
            let than = if after < before { "lower" } else { "higher" };
            found.push(format!(
                "the {what} of latency was {percent} {than} in the {name} run than in the first: {} and {}",
                microseconds(after),
                microseconds(before)
            ));
        }
    }
    found.extend(of_failures(name, &first.total, &other.total));
    found
}

fn of_failures(name: &str, first: &Tally, other: &Tally) -> Option<String> {
    let failed = |tally: &Tally| tally.unexpected + tally.failures.sum();
    let (before, after) = (failed(first), failed(other));
    let (before_of, after_of) = (first.requests(), other.requests());
    // As if both runs had made as many requests as the other one.
    let expected = before as f64 * after_of as f64 / (before_of as f64).max(1.0);
    let noise = (expected + after as f64).sqrt();
    let is_chance =
        before > 0 && after > 0 && (after as f64 - expected).abs() <= FAILURE_DEVIATIONS_MAX * noise;
    if before == after || is_chance {
        return None;
    }
    Some(format!(
        "in the {name} run {after} of {after_of} requests failed, in the first {before} of {before_of}"
    ))
}

fn is_cut_short(run: &Run) -> bool {
    run.end.is_early()
}

/// The difference in percent of the first, where it is above the bound.
fn change(first: f64, other: f64, bound: f64) -> Option<String> {
    let share = (other / first - 1.0).abs();
    if share.is_nan() || share <= bound {
        return None;
    }
    Some(if share.is_finite() { format!("{:.0} %", share * 100.0) } else { "infinitely".to_owned() })
}

fn microseconds(value: f64) -> String {
    if value < 1000.0 { format!("{value:.0} µs") } else { format!("{:.2} ms", value / 1000.0) }
}

fn ordinal(number: usize) -> String {
    match number {
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        4 => "fourth".to_owned(),
        5 => "fifth".to_owned(),
        number => format!("{number}th"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use onehop_load::outcome::End;

    use super::*;

    /// A second with so many answers, a hundredth of them slow, and failures beside.
    fn run(good: u64, p50_micros: u64, p99_micros: u64, failed: u64) -> Run {
        let mut total = Tally { good, ..Tally::default() };
        total.latency.record_many(Duration::from_micros(p50_micros), good - good / 50);
        total.latency.record_many(Duration::from_micros(p99_micros), good / 50);
        total.failures.truncated = failed;
        crate::sample::run_of_a_second(total)
    }

    #[test]
    fn runs_that_agree_say_nothing() {
        assert!(disagreements(&[]).is_empty());
        assert!(disagreements(&[run(10_000, 100, 900, 0)]).is_empty());
        assert!(disagreements(&[run(10_000, 100, 900, 0), run(10_400, 108, 1100, 0)]).is_empty());
        assert!(disagreements(&[run(10_000, 100, 900, 100), run(10_000, 100, 900, 120)]).is_empty());
        assert!(disagreements(&[run(500, 100, 900, 0), run(500, 100, 5000, 0)]).is_empty(), "a p99 of five");
    }

    #[test]
    fn what_differs_is_reported_in_words() {
        let mut broken_off = run(10_000, 100, 900, 0);
        broken_off.end = End::Interrupted;
        let reported = [
            disagreements(&[run(10_000, 100, 900, 0), run(8800, 100, 900, 0)]),
            disagreements(&[run(10_000, 100, 900, 0), run(10_000, 120, 900, 0), run(10_000, 100, 2900, 0)]),
            disagreements(&[run(10_000, 100, 900, 0), run(10_000, 100, 900, 1)]),
            disagreements(&[run(10_000, 100, 900, 0), broken_off]),
        ];
        insta::assert_snapshot!(reported.concat().join("\n"));
    }
}
