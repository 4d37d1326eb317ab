//! Which bounds hold.
//!
//! Pure: owns the words held, missed and not decided. A bound holds where the whole interval of the ratio is within it.

use onehop_statistics::{Interval, PAIRS_MIN};

use super::CaseRun;
use super::file::Bound;
use crate::compare::Row;

/// A bound and what was found.
#[derive(Debug, Clone)]
pub struct BoundResult {
    /// As written.
    pub bound: Bound,
    /// The first server's figure divided by the other's; `None` where it was not measured.
    pub ratio: Option<Interval>,
    /// Whether it holds.
    pub held: Held,
}

/// Whether a bound holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// The whole interval is within it.
    Yes,
    /// The whole interval is beyond it.
    No,
    /// The interval holds it, or there are too few rounds: more of them decide.
    NotDecided,
}

/// All bounds of the cases that were measured.
pub(super) fn judge(bounds: &[Bound], cases: &[CaseRun]) -> Vec<BoundResult> {
    let of_case = |bound: &Bound| {
        let case = cases.iter().find(|case| case.name == bound.case)?;
        let place = case.comparison.targets.iter().position(|name| *name == bound.against)?;
        let is_it = |row: &&Row| row.test == place && row.metric == bound.figure.0;
        let row = case.comparison.rows.iter().find(is_it);
        let ratio = row.filter(|row| row.pairs >= PAIRS_MIN).map(|row| inverted(&row.ratio));
        let held = ratio.as_ref().map_or(Held::NotDecided, |ratio| held(bound, ratio));
        Some(BoundResult { bound: bound.clone(), ratio, held })
    };
    bounds.iter().filter_map(of_case).collect()
}

/// The control's figure divided by the test's.
fn inverted(ratio: &Interval) -> Interval {
    Interval { low: 1.0 / ratio.high, middle: 1.0 / ratio.middle, high: 1.0 / ratio.low, ..*ratio }
}

fn held(bound: &Bound, ratio: &Interval) -> Held {
    let (is_within, is_beyond) = match (bound.at_most, bound.at_least) {
        (Some(most), _) => (ratio.high <= most, ratio.low > most),
        (None, Some(least)) => (ratio.low >= least, ratio.high < least),
        (None, None) => (true, false),
    };
    match (is_within, is_beyond) {
        (true, _) => Held::Yes,
        (false, true) => Held::No,
        (false, false) => Held::NotDecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Figure;

    #[test]
    fn a_bound_holds_where_the_whole_interval_is_within_it() {
        let bound = |at_most, at_least| Bound {
            case: "page".to_owned(),
            against: "nginx".to_owned(),
            figure: Figure::default(),
            at_most,
            at_least,
        };
        let interval = |low, high| Interval { low, middle: (low + high) / 2.0, high, confidence: 0.99 };
        for (low, high, at_most, at_least) in [
            (0.8, 0.9, Held::Yes, Held::No),
            (0.9, 1.2, Held::NotDecided, Held::NotDecided),
            (1.1, 1.2, Held::No, Held::Yes),
            (f64::NAN, f64::NAN, Held::NotDecided, Held::NotDecided),
        ] {
            assert_eq!(held(&bound(Some(1.0), None), &interval(low, high)), at_most, "{low} to {high}");
            assert_eq!(held(&bound(None, Some(1.0)), &interval(low, high)), at_least, "{low} to {high}");
        }
        let turned = inverted(&interval(0.5, 0.8));
        assert!((turned.low - 1.25).abs() < 1e-9 && (turned.high - 2.0).abs() < 1e-9, "{turned:?}");
    }
}
