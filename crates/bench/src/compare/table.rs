//! The table: one row for each metric and each target beside the control.
//!
//! Pure: owns which figures of which samples are paired. Never pairs figures of different rounds, never uses one
//! that a mark spoils in a ratio, and gives no verdict where too few are left.

use std::time::Duration;

use onehop_load::plan::Pace;
use onehop_statistics::{PAIRS_MIN, Verdict};

use super::{Mark, Metric, Row, Sample, Settings, marks};

/// In the order of the table.
const METRICS: [Metric; 13] = [
    Metric::CpuPerRequest,
    Metric::Rate,
    Metric::P50,
    Metric::P99,
    Metric::MemoryMedian,
    Metric::MemoryP99,
    Metric::MemoryAtRest,
    Metric::MemoryPerIdleConnection,
    Metric::Switches,
    Metric::IoBytes,
    Metric::ColdStart,
    Metric::AfterIdle,
    Metric::Recovery,
];

/// All rows, by target, then by metric. A metric that neither target has makes no row.
pub(super) fn rows(targets: usize, samples: &[Sample], settings: &Settings) -> Vec<Row> {
    let tests = 1..targets;
    tests
        .flat_map(|test| METRICS.iter().filter_map(move |&metric| row(metric, test, samples, settings)))
        .collect()
}

/// Whether the figure that matters most is decided of every target beside the control.
pub(super) fn is_decided(targets: usize, rows: &[Row]) -> bool {
    let of_target = |test: usize| {
        let of = |metric| rows.iter().find(|row| row.test == test && row.metric == metric);
        [Metric::CpuPerRequest, Metric::Rate, Metric::P50].into_iter().find_map(of)
    };
    (1..targets)
        .all(|test| of_target(test).is_some_and(|row| matches!(row.verdict, Verdict::Less | Verdict::More)))
}

/// The figure of one sample, whatever its marks; `None` where it was not measured.
pub(super) fn value(sample: &Sample, metric: Metric) -> Option<f64> {
    let micros = |duration: Duration| duration.as_secs_f64() * 1e6;
    let latency = |share: f64| {
        (!sample.run.total.latency.is_empty()).then(|| micros(sample.run.total.latency.at(share)))
    };
    let good = sample.run.total.good;
    let per_request = |amount: f64| (good > 0).then(|| amount / good as f64);
    let usage = sample.usage.as_ref();
    match metric {
        Metric::CpuPerRequest => per_request(micros(usage?.cpu)),
        Metric::Rate => Some(sample.run.rate()),
        Metric::P50 => latency(0.5),
        Metric::P99 => latency(0.99),
        // Zero is what is not known.
        Metric::MemoryMedian => Some(usage?.memory_median as f64).filter(|bytes| *bytes > 0.0),
        Metric::MemoryP99 => Some(usage?.memory_p99 as f64).filter(|bytes| *bytes > 0.0),
        Metric::MemoryAtRest => Some(sample.idle_memory?.at_rest_bytes as f64).filter(|bytes| *bytes > 0.0),
        // A server that shrinks has no ratio.
        Metric::MemoryPerIdleConnection => {
            Some(sample.idle_memory?.per_connection()).filter(|bytes| *bytes > 0.0)
        }
        Metric::Switches => {
            let usage = usage?;
            per_request(usage.switches_voluntary as f64 + usage.switches_involuntary as f64)
        }
        // Servers that use other calls than read and write for their sockets have none.
        Metric::IoBytes => per_request(usage?.io_bytes as f64).filter(|bytes| *bytes > 0.0),
        Metric::ColdStart => sample.cold_start.map(micros),
        Metric::AfterIdle => sample.after_idle.map(micros),
        Metric::Recovery => sample.recovery.map(micros),
    }
}

fn row(metric: Metric, test: usize, samples: &[Sample], settings: &Settings) -> Option<Row> {
    // What arrives in an open loop is given, not found; beyond capacity it is how much of that was answered.
    let is_given = matches!(settings.pace, Pace::Open { .. }) && !settings.is_overload;
    if metric == Metric::Rate && is_given {
        return None;
    }
    let all = |target: usize| -> Vec<f64> {
        samples
            .iter()
            .filter(|sample| sample.target == target)
            .filter_map(|sample| value(sample, metric))
            .collect()
    };
    let (all_of_control, all_of_test) = (all(0), all(test));
    if all_of_control.is_empty() || all_of_test.is_empty() {
        return None;
    }
    let (control, tested) = pairs(metric, test, samples);
    let pairs = onehop_statistics::usable_pairs(&control, &tested).count();
    let is_load_s_own = [0, test].iter().any(|&target| is_limited_mostly(metric, target, samples));
    // Each metric draws its own resamples: one unlucky draw must not be in all rows.
    let seed = settings.seed ^ ((metric as u64) << 32) ^ test as u64;
    let ratio = onehop_statistics::ratio_interval(&control, &tested, settings.confidence, seed);
    let (control_value, test_value) = match metric {
        // What each of them could do at least is worth knowing; its marks say that it is no more than that.
        Metric::Rate if control.is_empty() => {
            (onehop_statistics::median(&all_of_control), onehop_statistics::median(&all_of_test))
        }
        // Figures of spoiled samples are the load's, or nobody's.
        _ if metric != Metric::Rate && is_load_s_own => (f64::NAN, f64::NAN),
        _ => onehop_statistics::estimates(&control, &tested),
    };
    let verdict = if is_load_s_own || pairs < PAIRS_MIN {
        Verdict::Unknown
    } else {
        onehop_statistics::verdict(&ratio, settings.least_difference)
    };
    Some(Row { metric, test, control_value, test_value, ratio, verdict, pairs })
}

/// The figures of control and test of each round in which both have one that nothing spoils.
fn pairs(metric: Metric, test: usize, samples: &[Sample]) -> (Vec<f64>, Vec<f64>) {
    let of_round = |target: usize, round: usize| {
        let sample = samples.iter().find(|sample| sample.target == target && sample.round == round)?;
        let is_spoilt = sample.marks.iter().any(|mark| marks::spoils(mark, metric));
        value(sample, metric).filter(|_| !is_spoilt)
    };
    let rounds = samples.iter().filter(|sample| sample.target == 0).map(|sample| sample.round);
    rounds.filter_map(|round| Some((of_round(0, round)?, of_round(test, round)?))).unzip()
}

/// Whether most figures of a target are the load's: the few others would be those in which the target was slow.
fn is_limited_mostly(metric: Metric, target: usize, samples: &[Sample]) -> bool {
    let own = samples.iter().filter(|sample| sample.target == target);
    let is_the_loads = |mark: &Mark| {
        matches!(mark, Mark::LoadWasTheBottleneck | Mark::LoadWasLate) && marks::spoils(mark, metric)
    };
    let (limited, free): (Vec<_>, Vec<_>) = own.partition(|sample| sample.marks.iter().any(is_the_loads));
    limited.len() > free.len()
}

#[cfg(test)]
mod tests {
    use super::super::sample::sample;
    use super::*;

    fn settings() -> Settings {
        Settings { rounds: 6, ..Settings::default() }
    }

    /// Six rounds; the test costs this much more, and both vary from round to round together.
    fn six_rounds(factor: f64) -> Vec<Sample> {
        let mut samples = Vec::new();
        for round in 0..6_u32 {
            let cpu = 10.0 + f64::from(round);
            let wobble = 1.0 + f64::from(round % 3) * 0.002;
            samples.push(sample(0, round as usize, 10_000, 100, cpu));
            samples.push(sample(1, round as usize, 10_000, 100, cpu * factor * wobble));
        }
        samples
    }

    fn row_of(samples: &[Sample], metric: Metric) -> Row {
        rows(2, samples, &settings()).into_iter().find(|row| row.metric == metric).unwrap()
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        let row = row_of(&six_rounds(1.1), Metric::CpuPerRequest);
        assert_eq!((row.verdict, row.pairs), (Verdict::More, 6));
        assert!((row.ratio.middle - 1.102).abs() < 0.001, "{row:?}");
        assert!(row.ratio.high - row.ratio.low < 0.01, "rounds differ by half, pairs do not: {row:?}");
        // Not the medians: the figures stand beside the interval of their ratio.
        assert!((row.test_value / row.control_value - row.ratio.middle).abs() < 1e-9, "{row:?}");
        assert_eq!(row_of(&six_rounds(1.0), Metric::CpuPerRequest).verdict, Verdict::NotShown);
    }

    #[test]
    fn marked_samples_are_left_out_of_what_they_spoil() {
        let mut samples = six_rounds(1.1);
        samples[3].run.total.latency.record_many(Duration::from_secs(1), 1_000_000);
        samples[3].marks = vec![Mark::Pause { at: Duration::ZERO, length: Duration::from_secs(1) }];
        let p99 = row_of(&samples, Metric::P99);
        assert_eq!((p99.pairs, p99.verdict), (5, Verdict::NotShown), "{p99:?}");
        assert_eq!(row_of(&samples, Metric::CpuPerRequest).pairs, 6);
    }

    #[test]
    fn fewer_than_three_pairs_give_no_verdict() {
        let mut samples = six_rounds(1.1);
        for sample in samples.iter_mut().filter(|sample| sample.target == 1).skip(2) {
            sample.marks = vec![Mark::Void("wrong".to_owned())];
        }
        let row = row_of(&samples, Metric::CpuPerRequest);
        assert_eq!((row.pairs, row.verdict), (2, Verdict::Unknown));
        samples.iter_mut().for_each(|sample| sample.marks = vec![Mark::Restarted]);
        let row = row_of(&samples, Metric::CpuPerRequest);
        assert_eq!((row.pairs, row.verdict), (0, Verdict::Unknown));
        assert!(row.control_value.is_nan() && row.ratio.middle.is_nan(), "spoiled samples: {row:?}");
        assert!(row_of(&samples, Metric::Rate).control_value > 0.0);
    }

    #[test]
    fn a_rate_that_the_load_limited_is_unknown_and_its_cpu_time_is_not() {
        let mut samples = six_rounds(1.1);
        for sample in samples.iter_mut().filter(|sample| sample.target == 0).take(4) {
            sample.marks = vec![Mark::LoadWasTheBottleneck];
        }
        assert_eq!(row_of(&samples, Metric::Rate).verdict, Verdict::Unknown);
        assert!(
            row_of(&samples, Metric::P99).test_value.is_nan(),
            "those of the two other rounds are the slow ones"
        );
        assert_eq!(row_of(&samples, Metric::CpuPerRequest).verdict, Verdict::More);
    }

    #[test]
    fn what_was_not_measured_makes_no_row() {
        let mut samples = six_rounds(1.1);
        let metrics = |samples: &[Sample], settings: &Settings| -> Vec<Metric> {
            rows(2, samples, settings).iter().map(|row| row.metric).collect()
        };
        assert!(!metrics(&samples, &settings()).contains(&Metric::AfterIdle));
        samples.iter_mut().for_each(|sample| sample.usage = None);
        let expected = [Metric::Rate, Metric::P50, Metric::P99, Metric::ColdStart];
        assert_eq!(metrics(&samples, &settings()), expected);
        let arrivals =
            onehop_load::plan::Arrivals { spacing: onehop_load::plan::Spacing::Poisson, phases: Vec::new() };
        let open = Settings { pace: Pace::Open { connections: 1, arrivals }, ..settings() };
        assert_eq!(metrics(&samples, &open), [Metric::P50, Metric::P99, Metric::ColdStart]);
    }

    #[test]
    fn an_arm_that_missed_rounds_is_paired_in_the_others() {
        let mut samples = six_rounds(1.1);
        samples.retain(|sample| sample.target == 0 || sample.round > 1);
        assert_eq!(row_of(&samples, Metric::CpuPerRequest).pairs, 4);
    }
}
