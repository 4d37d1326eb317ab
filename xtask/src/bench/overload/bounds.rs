//! What `bench overload` has to show, and whether it does.
//!
//! PURE: figures in, verdicts out. A bound whose load was measured without a figure is told as missed; one that was not
//! asked for as not measured. None is left out, and what has no bound here (rivals, `limit off`, `limit lag`) is not judged.

use std::time::Duration;

use super::figures::{Figures, Results};
use super::steps::{Application, IMPOSSIBLE, STEPS, Step, UNLOADED};
use super::targets;

/// The limiters that have to keep the bounds: the one that nobody has asked for, and the one that somebody has.
const JUDGED: [&str; 2] = ["onehop", "onehop-fixed"];

/// Goodput under the impossible load by the highest of all onehop's limiters under any load: at least.
const GOODPUT_SHARE_MIN: f64 = 0.9;

/// p99 of the accepted by the unloaded p99: at most; or the wait that is allowed and the time of one service.
const P99_FACTOR_MAX: f64 = 3.0;

/// Median time to a refusal, milliseconds: below.
const REFUSAL_MS_MAX: f64 = 5.0;

/// p99 of the static file by that of the file alone: at most.
const FILE_FACTOR_MAX: f64 = 1.5;

/// Share of the requests for what matters most that are served: at least.
const HIGH_SHARE_MIN: f64 = 0.99;

/// Until all is normal again: at most.
const RECOVERY_MAX: Duration = Duration::from_secs(2);

/// A bound, whether it is met, and the figure.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict {
    pub(super) text: String,
    /// `None` where it was not asked for.
    pub(super) is_met: Option<bool>,
}

/// Judges every bound for these applications and targets. `steps` are the loads that were asked for.
pub(super) fn verdicts(results: &Results, applications: &[Application], steps: &[Step]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for &application in applications {
        for target in JUDGED {
            let judge = Judge { results, application, target, steps };
            if !results.has(application, target) {
                verdicts.push(judge.verdict("all bounds", None, "not measured".to_owned()));
                continue;
            }
            verdicts.push(judge.goodput());
            verdicts.push(judge.accepted());
            verdicts.push(judge.refusals());
            verdicts.push(judge.file());
            verdicts.extend(steps.iter().map(|step| judge.high(step)));
            verdicts.push(judge.unloaded());
            verdicts.push(judge.recovery());
        }
    }
    verdicts
}

impl Verdict {
    /// The word before its text.
    pub(super) fn word(&self) -> &'static str {
        match self.is_met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "-",
        }
    }
}

/// One target with one application.
struct Judge<'a> {
    results: &'a Results,
    application: Application,
    target: &'static str,
    steps: &'a [Step],
}

impl Judge<'_> {
    fn verdict(&self, what: &str, is_met: Option<bool>, figure: String) -> Verdict {
        let text = format!("{}, {}: {what}: {figure}", self.application.name(), self.target);
        Verdict { text, is_met }
    }

    fn has(&self, step: &str) -> bool {
        self.steps.iter().any(|known| known.name == step)
    }

    /// A verdict about a load that was asked for: met where there is a figure that is `good`.
    fn verdict_at(&self, step: &str, what: &str, figure: Option<(bool, String)>) -> Verdict {
        match figure {
            _ if !self.has(step) => self.verdict(what, None, "not measured".to_owned()),
            None => self.verdict(what, Some(false), "no figure".to_owned()),
            Some((is_met, figure)) => self.verdict(what, Some(is_met), figure),
        }
    }

    fn goodput(&self) -> Verdict {
        let of = |target: &str, step: &str| {
            self.results.middle(self.application, target, step, |figures| Some(figures.goodput))
        };
        let ours = targets::ALL.iter().filter(|target| targets::is_onehop(target));
        let all = ours.flat_map(|target| STEPS.iter().filter_map(move |step| of(target, step.name)));
        let peak = all.fold(0.0, f64::max);
        let figure = of(self.target, IMPOSSIBLE).filter(|_| peak > 0.0).map(|goodput| {
            let share = goodput / peak;
            (share >= GOODPUT_SHARE_MIN, format!("{share:.3} ({goodput:.0} of {peak:.0} a second)"))
        });
        let what = format!("goodput at {IMPOSSIBLE} by the peak at least {GOODPUT_SHARE_MIN:.2}");
        self.verdict_at(IMPOSSIBLE, &what, figure)
    }

    fn accepted(&self) -> Verdict {
        let of = |step: &str, figure: fn(&Figures) -> Option<f64>| {
            self.results.middle(self.application, self.target, step, figure)
        };
        let unloaded = of(UNLOADED, |figures| figures.p99_ms);
        let service = of(UNLOADED, |figures| figures.p50_ms).unwrap_or_default();
        let wait = targets::wait_of(self.target).map(|wait| wait.as_secs_f64() * 1e3 + service);
        let figure = of(IMPOSSIBLE, |figures| figures.p99_ms).zip(unloaded).map(|(loaded, unloaded)| {
            let factor = loaded / unloaded;
            let is_near = factor <= P99_FACTOR_MAX;
            let is_within = wait.is_some_and(|wait| loaded <= wait);
            let how = match (is_near, is_within, wait) {
                (true, _, _) => "near the unloaded".to_owned(),
                (false, true, Some(wait)) => format!("by the wait, {wait:.0} ms"),
                (false, _, Some(wait)) => format!("beyond the wait too, {wait:.0} ms"),
                (false, _, None) => "and no wait is set".to_owned(),
            };
            (is_near || is_within, format!("{factor:.1} ({loaded:.1} of {unloaded:.1} ms; {how})"))
        });
        let what = format!(
            "p99 of the accepted at {IMPOSSIBLE} by the unloaded at most {P99_FACTOR_MAX:.0}, or wait and one service"
        );
        self.verdict_at(IMPOSSIBLE, &what, figure)
    }

    fn refusals(&self) -> Verdict {
        let median =
            self.results.middle(self.application, self.target, IMPOSSIBLE, |figures| figures.refusal_p50_ms);
        let figure = median.map(|median| (median < REFUSAL_MS_MAX, format!("{median:.2} ms")));
        let what = format!("median refusal at {IMPOSSIBLE} below {REFUSAL_MS_MAX:.0} ms");
        self.verdict_at(IMPOSSIBLE, &what, figure)
    }

    fn file(&self) -> Verdict {
        let alone = self.results.middle_idle(self.application, self.target);
        let beside = self.results.middle(self.application, self.target, IMPOSSIBLE, |figures| {
            figures.file_p99_ms.filter(|_| figures.file_missed == 0)
        });
        let figure = beside.zip(alone).map(|(beside, alone)| {
            let factor = beside / alone;
            (factor <= FILE_FACTOR_MAX, format!("{factor:.2} ({beside:.2} of {alone:.2} ms)"))
        });
        let what = format!("p99 of the static file at {IMPOSSIBLE} by the idle at most {FILE_FACTOR_MAX:.1}");
        self.verdict_at(IMPOSSIBLE, &what, figure)
    }

    fn high(&self, step: &Step) -> Verdict {
        let served =
            self.results.middle(self.application, self.target, step.name, |figures| figures.high_served);
        let figure = served.map(|share| (share >= HIGH_SHARE_MIN, format!("{:.1} %", share * 100.0)));
        let what = format!(
            "high priority at {} (its own load {:.2} C) served at least {:.0} %",
            step.name,
            step.high_factor(),
            HIGH_SHARE_MIN * 100.0
        );
        self.verdict_at(step.name, &what, figure)
    }

    fn unloaded(&self) -> Verdict {
        let failed = self
            .results
            .middle(self.application, self.target, UNLOADED, |figures| Some(figures.refused + figures.lost));
        let figure = failed.map(|share| (share <= 0.0, format!("{:.3} %", share * 100.0)));
        self.verdict_at(UNLOADED, &format!("nobody is refused at {UNLOADED}"), figure)
    }

    /// The slowest of all rounds.
    fn recovery(&self) -> Verdict {
        let what = format!("all is normal after {IMPOSSIBLE} within {} s", RECOVERY_MAX.as_secs());
        let all: Vec<Option<Duration>> =
            self.results.recoveries_of(self.application, self.target).map(|one| one.took).collect();
        if all.is_empty() {
            return self.verdict(&what, None, "not measured".to_owned());
        }
        let slowest =
            all.iter().copied().collect::<Option<Vec<Duration>>>().and_then(|all| all.into_iter().max());
        let figure = slowest.map_or("never".to_owned(), |took| format!("{:.1} s", took.as_secs_f64()));
        self.verdict(&what, Some(slowest.is_some_and(|took| took <= RECOVERY_MAX)), figure)
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::{Idle, Of, Recovery, Row};
    use super::*;

    fn of(target: &'static str) -> Of {
        Of { application: Application::Cpu, target, round: 0 }
    }

    fn row(target: &'static str, step: usize, goodput: f64, p99_ms: f64, high_served: f64) -> Row {
        let step = STEPS[step];
        let figures = Figures {
            goodput,
            p50_ms: Some(4.0),
            p99_ms: Some(p99_ms),
            refused: if step.factor > 1.0 { 0.9 } else { 0.0 },
            refusal_p50_ms: (step.factor > 1.0).then_some(0.4),
            high_served: Some(high_served),
            file_p99_ms: Some(0.5),
            ..Figures::default()
        };
        Row { of: of(target), step, figures }
    }

    fn results(took: Option<Duration>) -> Results {
        Results {
            capacities: vec![(Application::Cpu, 240.0)],
            rows: vec![
                row("onehop", 0, 120.0, 5.0, 1.0),
                row("onehop", 4, 230.0, 600.0, 0.5),
                row("onehop-off", 1, 240.0, 5.0, 1.0),
            ],
            idles: vec![Idle { of: of("onehop"), file_p99_ms: 0.25 }],
            recoveries: vec![Recovery { of: of("onehop"), took, slow_ms: 15.0, series: Vec::new() }],
        }
    }

    fn judged(results: &Results, steps: &[Step]) -> Vec<String> {
        let verdicts = verdicts(results, &[Application::Cpu], steps);
        verdicts.iter().map(|verdict| format!("{} {}", verdict.word(), verdict.text)).collect()
    }

    #[test]
    fn every_bound_has_a_verdict_and_its_figure() {
        let texts = judged(&results(Some(Duration::from_millis(700))), &[STEPS[0], STEPS[4]]);
        let expected = [
            "met cpu, onehop: goodput at 10C by the peak at least 0.90: 0.958 (230 of 240 a second)",
            "met cpu, onehop: p99 of the accepted at 10C by the unloaded at most 3, or wait and one service: 120.0 \
             (600.0 of 5.0 ms; by the wait, 3004 ms)",
            "met cpu, onehop: median refusal at 10C below 5 ms: 0.40 ms",
            "MISSED cpu, onehop: p99 of the static file at 10C by the idle at most 1.5: 2.00 (0.50 of 0.25 ms)",
            "met cpu, onehop: high priority at 0.5C (its own load 0.03 C) served at least 99 %: 100.0 %",
            "MISSED cpu, onehop: high priority at 10C (its own load 0.50 C) served at least 99 %: 50.0 %",
            "met cpu, onehop: nobody is refused at 0.5C: 0.000 %",
            "met cpu, onehop: all is normal after 10C within 2 s: 0.7 s",
            "- cpu, onehop-fixed: all bounds: not measured",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn what_was_not_asked_for_is_not_measured_and_what_has_no_figure_is_missed() {
        let texts = judged(&results(None), &[STEPS[0]]);
        assert!(texts[0].starts_with("- ") && texts[0].ends_with("not measured"), "{texts:?}");
        assert!(texts.iter().any(|text| text.starts_with("MISSED") && text.ends_with("never")), "{texts:?}");
        let texts = judged(&results(None), &[STEPS[0], STEPS[3]]);
        let without = texts.iter().find(|text| text.contains("at 5C")).unwrap();
        assert!(without.starts_with("MISSED") && without.ends_with("no figure"), "{without}");
    }
}
