//! What `bench proxy` has to show, and whether it does.
//!
//! PURE: figures of rounds in, verdicts out. A bound whose arms were measured without a figure that counts is told as
//! missed; one whose arms were not asked for as not measured. None is left out.

use onehop_load::statistics::median;

/// One arm in one case in one round, where its figures count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figures {
    pub(super) round: u64,
    pub(super) cpu_us: f64,
    pub(super) rate: f64,
    pub(super) p50_us: f64,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// CPU time per request, at most so many thousandths of the other's.
    Cpu(u32),
    /// Rate, not below the other's.
    Rate,
    /// Median latency, not above the other's.
    Median,
}

struct Bound {
    case: &'static str,
    other: &'static str,
    what: What,
    /// Thousandths that would be better still.
    goal: Option<u32>,
}

/// A bound, whether it is met, and the figure.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict {
    pub(super) text: String,
    /// `None` where one of the arms was not asked for.
    pub(super) is_met: Option<bool>,
}

/// The arm whose bounds these are.
const OURS: &str = "onehop";

/// With nginx beside: a whole. With Caddy: a fifth.
const WHOLE: u32 = 1000;

const BOUNDS: &[Bound] = &[
    cpu("page-c1", "nginx", WHOLE, Some(900)),
    cpu("page-c64", "nginx", WHOLE, Some(900)),
    cpu("page-c512", "nginx", WHOLE, Some(900)),
    cpu("page-c1", "caddy", 200, None),
    cpu("page-c64", "caddy", 200, None),
    cpu("page-c512", "caddy", 200, None),
    Bound { case: "page-c1", other: "nginx", what: What::Median, goal: None },
    Bound { case: "body-100k", other: "nginx", what: What::Rate, goal: None },
    Bound { case: "body-10m", other: "nginx", what: What::Rate, goal: None },
];

const fn cpu(case: &'static str, other: &'static str, most: u32, goal: Option<u32>) -> Bound {
    Bound { case, other, what: What::Cpu(most), goal }
}

/// Judges every bound of these cases by the median of the ratios within a round. `figures` gives those of a case
/// and an arm that count; `None` where it was not measured at all.
pub(super) fn verdicts(cases: &[&str], figures: impl Fn(&str, &str) -> Option<Vec<Figures>>) -> Vec<Verdict> {
    let of_cases = BOUNDS.iter().filter(|bound| cases.contains(&bound.case));
    let judged = |bound: &Bound| {
        let (ours, others) = (figures(bound.case, OURS), figures(bound.case, bound.other));
        bound.judged(ours.as_deref(), others.as_deref())
    };
    of_cases.map(judged).collect()
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

impl Bound {
    fn judged<'f>(&self, ours: Option<&'f [Figures]>, others: Option<&'f [Figures]>) -> Verdict {
        let Bound { case, other, .. } = self;
        let (what, limit) = match self.what {
            What::Cpu(most) => ("CPU per request", format!("at most {:.2}", thousandths(most))),
            What::Rate => ("answers per second", "at least 1.00".to_owned()),
            What::Median => ("median latency", "at most 1.00".to_owned()),
        };
        let text = format!("{case}: {what} by {other}'s {limit}");
        let (Some(ours), Some(others)) = (ours, others) else {
            return Verdict { text: format!("{text}: not measured"), is_met: None };
        };
        let pair = |one: &'f Figures| Some((one, others.iter().find(|two| two.round == one.round)?));
        let ratios = ours.iter().filter_map(pair).map(|(one, two)| self.ratio(one, two));
        let ratios: Vec<f64> = ratios.filter(|ratio| ratio.is_finite()).collect();
        if ratios.is_empty() {
            return Verdict { text: format!("{text}: no figure that counts"), is_met: Some(false) };
        }
        let ratio = median(&ratios);
        let is_met = match self.what {
            What::Cpu(most) => ratio <= thousandths(most),
            What::Rate => ratio >= 1.0,
            What::Median => ratio <= 1.0,
        };
        let goal = match self.goal {
            Some(goal) if ratio <= thousandths(goal) => {
                format!(" (the goal of {:.2} too)", thousandths(goal))
            }
            Some(goal) => format!(" (the goal of {:.2} not)", thousandths(goal)),
            None => String::new(),
        };
        Verdict { text: format!("{text}: {ratio:.3}{goal}"), is_met: Some(is_met) }
    }

    fn ratio(&self, one: &Figures, two: &Figures) -> f64 {
        match self.what {
            What::Cpu(_) => one.cpu_us / two.cpu_us,
            What::Rate => one.rate / two.rate,
            What::Median => one.p50_us / two.p50_us,
        }
    }
}

fn thousandths(count: u32) -> f64 {
    f64::from(count) / f64::from(WHOLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(round: u64, cpu_us: f64, rate: f64) -> Figures {
        Figures { round, cpu_us, rate, p50_us: 50.0 }
    }

    #[test]
    fn a_bound_is_judged_by_the_median_of_ratios_within_a_round() {
        let given = |case: &str, arm: &str| match (case, arm) {
            ("page-c64", "onehop") => {
                Some(vec![figures(0, 9.0, 1.0), figures(1, 8.0, 1.0), figures(2, 40.0, 1.0)])
            }
            ("page-c64", "nginx") => {
                Some(vec![figures(0, 10.0, 1.0), figures(1, 10.0, 1.0), figures(2, 10.0, 1.0)])
            }
            ("page-c64", "caddy") => Some(vec![figures(1, 30.0, 1.0)]),
            _ => None,
        };
        let verdicts = verdicts(&["page-c64"], given);
        let texts: Vec<(&str, &str)> =
            verdicts.iter().map(|verdict| (verdict.text.as_str(), verdict.word())).collect();
        assert_eq!(
            texts,
            [
                ("page-c64: CPU per request by nginx's at most 1.00: 0.900 (the goal of 0.90 too)", "met"),
                ("page-c64: CPU per request by caddy's at most 0.20: 0.267", "MISSED"),
            ]
        );
    }

    #[test]
    fn a_bound_without_figures_is_missed_unless_an_arm_was_not_asked_for() {
        let text = |why: &str| format!("body-10m: answers per second by nginx's at least 1.00: {why}");
        let void = verdicts(&["body-10m"], |_, _| Some(Vec::new()));
        assert_eq!(void, [Verdict { text: text("no figure that counts"), is_met: Some(false) }]);
        let absent = verdicts(&["body-10m"], |_, arm| (arm == "onehop").then(|| vec![figures(0, 1.0, 1.0)]));
        assert_eq!(absent, [Verdict { text: text("not measured"), is_met: None }]);
    }

    #[test]
    fn rates_are_bound_from_below_and_latencies_from_above() {
        let given =
            |_: &str, arm: &str| Some(vec![figures(0, 1.0, if arm == "onehop" { 9.0 } else { 10.0 })]);
        let verdicts = verdicts(&["body-100k", "page-c1"], given);
        let words: Vec<&str> = verdicts.iter().map(Verdict::word).collect();
        assert_eq!(words, ["met", "MISSED", "met", "MISSED"], "{verdicts:?}");
    }
}
