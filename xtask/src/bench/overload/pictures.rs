//! The pictures of `bench overload`: goodput and p99 against the offered load, and the time after an overload.
//!
//! PURE: results in, charts out. Each target has the same line in every picture; figures are medians over the rounds, but the
//! recovery, which is the first round's.

use super::figures::{Figures, Results};
use super::plot::{Axis, Chart, Position, Rule, Scale, Series};
use super::steps::{Application, STEPS, Step, UNLOADED};
use super::targets;

/// The target that charts draw with a thicker line.
const OURS: &str = "onehop";

/// A picture with the name of its file.
pub(super) struct Picture {
    pub(super) name: String,
    pub(super) chart: Chart,
}

/// All pictures of an application. Those without a single figure are left out.
pub(super) fn of(results: &Results, application: Application) -> Vec<Picture> {
    let charts = [
        ("goodput", goodput(results, application)),
        ("p99", accepted(results, application)),
        ("file", file(results, application)),
        ("recovery", recovery(results, application)),
    ];
    charts
        .into_iter()
        .filter(|(_, chart)| !chart.series.is_empty())
        .map(|(what, chart)| Picture { name: format!("overload-{}-{what}", application.name()), chart })
        .collect()
}

fn goodput(results: &Results, application: Application) -> Chart {
    let series = curves(results, application, |figures| Some(figures.goodput));
    let capacity = results.capacity(application);
    let highest = values(&series).chain(capacity).fold(0.0, f64::max);
    Chart {
        title: format!("Goodput under overload: {}", application.name()),
        subtitle: format!("{}; answers within 2 s count", application.in_words()),
        across: offered(),
        up: Axis::even("good answers per second", highest),
        series,
        rules: capacity
            .map(|rate| Rule { at: Position::Up(rate), label: format!("C = {rate:.0}/s") })
            .into_iter()
            .collect(),
    }
}

fn accepted(results: &Results, application: Application) -> Chart {
    let series = curves(results, application, |figures| figures.p99_ms);
    let unloaded = results.middle(application, OURS, UNLOADED, |figures| figures.p99_ms);
    Chart {
        title: format!("p99 of accepted requests: {}", application.name()),
        subtitle: format!(
            "{}; from the intended start; nobody waits longer than 2 s",
            application.in_words()
        ),
        across: offered(),
        up: milliseconds("p99 of good answers", &series),
        series,
        rules: unloaded
            .map(|p99| Rule { at: Position::Up(3.0 * p99), label: "3 times the unloaded".to_owned() })
            .into_iter()
            .collect(),
    }
}

fn file(results: &Results, application: Application) -> Chart {
    let series = curves(results, application, |figures| figures.file_p99_ms);
    let alone = results.middle_idle(application, OURS);
    Chart {
        title: format!("p99 of a static file beside it: {}", application.name()),
        subtitle: "400 requests a second for a file of 788 bytes, the same server".to_owned(),
        across: offered(),
        up: milliseconds("p99 of the file", &series),
        series,
        rules: alone
            .map(|p99| Rule { at: Position::Up(1.5 * p99), label: "1.5 times idle".to_owned() })
            .into_iter()
            .collect(),
    }
}

fn recovery(results: &Results, application: Application) -> Chart {
    let of_target = |(style, target): (usize, &&'static str)| {
        let seen = results.recoveries_of(application, target).find(|one| one.of.round == 0)?;
        let points = seen.series.iter().map(|(at, p99, _)| (*at, *p99)).collect();
        Some(Series { name: (*target).to_owned(), style, is_ours: *target == OURS, points })
    };
    let series: Vec<Series> = targets::ALL.iter().enumerate().filter_map(of_target).collect();
    let times = || series.iter().flat_map(|series| series.points.iter().map(|(at, _)| *at));
    let (low, high) = (times().fold(0.0, f64::min), times().fold(1.0, f64::max));
    let ticks =
        (low.floor() as i32..=high.ceil() as i32).map(|second| (f64::from(second), second.to_string()));
    Chart {
        title: format!("From 10 C back to 0.5 C: {}", application.name()),
        subtitle: "p99 of good answers in each tenth of a second".to_owned(),
        across: Axis {
            label: "seconds after the change".to_owned(),
            scale: Scale::Linear,
            low: low.floor(),
            high: high.ceil(),
            ticks: ticks.collect(),
        },
        up: milliseconds("p99 of good answers", &series),
        rules: vec![
            Rule { at: Position::Across(0.0), label: "0.5 C".to_owned() },
            Rule { at: Position::Across(2.0), label: "2 s".to_owned() },
        ],
        series,
    }
}

fn curves(results: &Results, application: Application, figure: fn(&Figures) -> Option<f64>) -> Vec<Series> {
    let of_target = |(style, target): (usize, &&'static str)| {
        let point = |step: &Step| (step.factor, results.middle(application, target, step.name, figure));
        let points = STEPS.iter().map(point);
        // A load that was not asked for is no gap in what was.
        let points: Vec<(f64, Option<f64>)> = points
            .filter(|(factor, _)| {
                results.rows.iter().any(|row| row.of.target == *target && row.step.factor == *factor)
            })
            .collect();
        let has_any = points.iter().any(|(_, value)| value.is_some());
        has_any.then(|| Series { name: (*target).to_owned(), style, is_ours: *target == OURS, points })
    };
    targets::ALL.iter().enumerate().filter_map(of_target).collect()
}

fn offered() -> Axis {
    let curve = || STEPS.iter().map(|step| step.factor);
    Axis {
        label: "offered load, in C (what the application can answer)".to_owned(),
        scale: Scale::Logarithmic,
        low: curve().fold(f64::INFINITY, f64::min),
        high: curve().fold(0.0, f64::max),
        ticks: curve().map(|factor| (factor, format!("{factor} C"))).collect(),
    }
}

fn milliseconds(label: &str, series: &[Series]) -> Axis {
    let low = values(series).fold(f64::INFINITY, f64::min);
    let high = values(series).fold(0.0, f64::max);
    Axis::milliseconds(label, low, high)
}

fn values(series: &[Series]) -> impl Iterator<Item = f64> {
    series.iter().flat_map(|series| series.points.iter().filter_map(|(_, value)| *value))
}

#[cfg(test)]
mod tests {
    use super::super::figures::{Of, Row};
    use super::*;

    #[test]
    fn a_target_keeps_its_line_whoever_else_was_measured() {
        let row = |target: &'static str, step: usize, goodput: f64| Row {
            of: Of { application: Application::Pool, target, round: 0 },
            step: STEPS[step],
            figures: Figures { goodput, ..Figures::default() },
        };
        let results = Results {
            rows: vec![row("onehop-off", 0, 120.0), row("onehop-off", 4, 3.0)],
            ..Results::default()
        };
        let pictures = of(&results, Application::Pool);
        let names: Vec<&str> = pictures.iter().map(|picture| picture.name.as_str()).collect();
        assert_eq!(names, ["overload-pool-goodput"], "no latency, no recovery was seen");
        let series = &pictures[0].chart.series[0];
        let place = targets::ALL.iter().position(|target| *target == "onehop-off");
        assert_eq!(Some(series.style), place);
        assert_eq!(
            series.points,
            [(0.5, Some(120.0)), (10.0, Some(3.0))],
            "what was not measured is no point"
        );
        assert!(of(&results, Application::Cpu).is_empty());
    }
}
