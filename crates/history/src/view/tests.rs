//! What a range looks like, and how far percentiles are off.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::history::Settings;
use crate::sample::{Figures, Sample};

const START: u64 = 1_700_006_400;

fn memory() -> History {
    History::open(Settings { folder: None, keep_seconds: 86_400 * 90, bytes_max: 1 << 28 }, START)
}

fn figures(requests: u64, durations: &[(u16, u64)]) -> Figures {
    Figures { requests, durations: Snapshot::new(durations.iter().copied(), 0), ..Figures::default() }
}

fn sample(at: u64, sites: &[(&str, Figures)]) -> Sample {
    let sites = sites.iter().map(|(name, figures)| (Arc::from(*name), figures.clone())).collect();
    Sample { at, covered_ms: 10_000, sites, ..Sample::default() }
}

#[test]
fn a_curve_has_rates_where_the_server_was_up_and_nothing_where_it_was_not() {
    let mut history = memory();
    history.append(sample(START, &[("a", figures(20, &[(100, 20)])), ("b", figures(10, &[]))]));
    history.append(Sample { covered_ms: 5_000, ..sample(START + 20, &[("a", figures(10, &[]))]) });
    let range = Range { from: START, to: START + 30 };
    let curves = curves(&mut history, Some("a"), range, START + 30);
    assert_eq!((curves.step_seconds, curves.times), (10, vec![START, START + 10, START + 20]));
    assert_eq!(curves.series.requests, [Some(2.0), None, Some(2.0)]);
    assert!(curves.series.p99_ms[0].is_some() && curves.series.p99_ms[2].is_none());
    assert_eq!((curves.total.requests, curves.previous.requests, curves.series.process), (30, 0, None));
    let all = super::curves(&mut history, None, range, START + 30);
    assert_eq!(all.series.requests, [Some(3.0), None, Some(2.0)]);
    assert!(all.series.process.is_some());
    let unknown = super::curves(&mut history, Some("c"), range, START + 30);
    assert_eq!(unknown.series.requests, [Some(0.0), None, Some(0.0)]);
}

#[test]
fn cold_starts_are_no_latency_and_the_slowest_is_shown() {
    let mut history = memory();
    let cold = Figures { cold_starts: 1, slowest_cold_start_nanos: 1_500_000_000, ..figures(2, &[(100, 1)]) };
    history.append(sample(START, &[("a", cold)]));
    let total = curves(&mut history, Some("a"), Range { from: START, to: START + 10 }, START + 10).total;
    assert_eq!((total.cold_starts, total.slowest_cold_start_ms), (1, Some(1_500.0)));
    assert!(total.p99_ms.expect("one") < 1.0);
}

#[test]
fn sites_are_compared_with_the_range_before() {
    let mut history = memory();
    for number in 0..720 {
        history.append(sample(
            START + number * 10,
            &[("a", figures(1, &[])), ("b", figures(number / 360, &[]))],
        ));
    }
    let range = Range { from: START + 3_600, to: START + 7_200 };
    let sites = sites(&mut history, range, START + 7_200).sites;
    let counted: Vec<_> =
        sites.iter().map(|site| (site.site.as_str(), site.total.requests, site.previous.requests)).collect();
    assert_eq!(counted, [("a", 360, 360), ("b", 360, 0)]);
    assert_eq!((sites[0].sparkline.len(), sites[0].sparkline[0]), (60, Some(0.1)));
}

#[test]
fn the_curves_of_applications_have_the_highest_that_was_seen() {
    let mut history = memory();
    for (number, lag_micros) in [(0, 1_000), (1, 5_000), (2, 2_000)] {
        let app =
            AppFigures { cpu_micros: 5_000_000, lag_micros, in_flight: lag_micros, ..AppFigures::default() };
        let apps = [(Arc::from("api"), app)].into();
        history.append(Sample { apps, ..sample(START + number * 10, &[]) });
    }
    let apps = apps(&mut history, Range { from: START, to: START + 300 * 100 }, START + 30);
    let series = &apps.apps[0].series;
    assert_eq!((apps.step_seconds, series.lag_ms[0], series.cpu_percent[0]), (300, Some(5.0), Some(50.0)));
    assert_eq!(series.lag_ms[1], None);
}

#[test]
fn a_range_of_any_length_has_a_step_that_people_can_read_and_few_points() {
    let now = START + 86_400 * 400;
    for (seconds, step, level) in [
        (60, 10, 0),
        (4_990, 10, 0),
        (5_010, 20, 0),
        (14_400, 30, 0),
        (28_800, 300, 1),
        (86_400, 300, 1),
        (86_400 * 7, 3_600, 2),
        (86_400 * 30, 7_200, 2),
        (86_400 * 90, 86_400, 3),
        (86_400 * 400, 86_400, 3),
        (86_400 * 3_650, 86_400 * 8, 3),
    ] {
        let steps = Steps::of(Range { from: now - seconds, to: now }, POINTS_MAX, now);
        assert_eq!((steps.seconds, steps.level), (step, level), "{seconds}");
        assert!(steps.count as u64 <= POINTS_MAX && steps.to() >= now, "{seconds}");
    }
    // The finest level has no more of it.
    let old = Range { from: now - 86_400 * 9, to: now - 86_400 * 9 + 600 };
    assert_eq!(Steps::of(old, POINTS_MAX, now).seconds, 300);
    for (from, to) in [(0, 0), (5, 3), (0, u64::MAX / 2)] {
        assert!(Steps::of(Range { from, to }, POINTS_MAX, now).count <= 500);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// Three hours of a site, a day ago or now, over restarts of the process.
    #[test]
    fn percentiles_over_cores_intervals_and_restarts_are_within_a_twentieth(
        durations in proptest::collection::vec(1_000_u64..10_000_000_000, 1..200), from in 0_u64..1_080, length in 1_u64..1_080,
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = Settings { folder: Some(folder.path().to_owned()), keep_seconds: 86_400 * 90, bytes_max: 1 << 28 };
        let mut expected = Vec::new();
        let mut history = History::open(settings.clone(), START);
        let (from, to) = (START + from * 10, START + (from + length) * 10);
        for number in 0..1_080 {
            let at = START + number * 10;
            let counters = onehop_metrics::Registry::new(2);
            for core in 0..2 {
                let nanos = durations[(number as usize * 7 + core * 3) % durations.len()];
                let took = Duration::from_nanos(nanos);
                counters.site("a")[core].record(onehop_metrics::Handler::App.into(), onehop_http1::Method::Get, 200, 0, took, onehop_metrics::site::Delivery::Whole);
                if (from..to).contains(&at) {
                    expected.push(nanos);
                }
            }
            let totals = onehop_metrics::site::HandlerTotals::of(&counters.site("a"));
            let figures = Figures { requests: 2, durations: totals.durations, ..Figures::default() };
            history.append(sample(at, &[("a", figures)]));
            if number % 250 == 249 {
                drop(history);
                history = History::open(settings.clone(), at);
            }
        }
        let total = curves(&mut history, Some("a"), Range { from, to }, START + 10_800).total;
        expected.sort_unstable();
        prop_assert_eq!(total.requests, expected.len() as u64);
        for (share, found) in [(0.5, total.p50_ms), (0.9, total.p90_ms), (0.99, total.p99_ms)] {
            let Some(found) = found else { prop_assert!(expected.is_empty()); continue };
            let exact = expected[((share * expected.len() as f64).ceil() as usize).max(1) - 1] as f64 / 1e6;
            prop_assert!((found - exact).abs() <= exact * 0.05, "{} instead of {}", found, exact);
        }
    }
}
