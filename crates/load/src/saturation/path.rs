//! Which rate is tried next.
//!
//! Pure: owns the way from a low rate up by doubling, then between the best and the lowest that is too much, then
//! once more the best. Never calls a rate the best that was within the limit only once.

/// Steps down from a first rate that is already too much, each to a tenth.
const STEPS_DOWN_MAX: usize = 3;
const STEP_DOWN: f64 = 0.1;
/// Steps up while nothing is too much.
const STEP_UP: f64 = 2.0;
/// Confirmations that may fail before the search gives up: whoever is within the limit once and not twice so often
/// has no rate that is within.
const CONFIRMATIONS_MAX: usize = 4;
/// The finest that is distinguished: less is the noise of any machine.
const PRECISION_MIN: f64 = 0.005;

/// What came of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Within,
    Beyond,
    /// Nothing was learned of the server.
    LoadAtItsLimit,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Step {
    Try(f64),
    Confirm(f64),
    Done,
}

/// A search on its way.
#[derive(Debug)]
pub(super) struct Path {
    precision: f64,
    points_max: usize,
    tried: usize,
    /// The last step that was told.
    step: Step,
    start: f64,
    steps_down: usize,
    /// Rates that were within the limit, rising.
    within: Vec<f64>,
    /// The lowest that was not, and whether that was the load's own limit.
    beyond: Option<(f64, bool)>,
    confirmations: usize,
    best: Option<f64>,
}

impl Path {
    /// From this rate, requests per second.
    pub(super) fn new(start: f64, precision: f64, points_max: usize) -> Path {
        Path {
            precision: if precision.is_nan() { PRECISION_MIN } else { precision.max(PRECISION_MIN) },
            points_max,
            tried: 0,
            step: Step::Done,
            // A rate of nothing, or none at all, cannot be doubled.
            start: if start.is_finite() { start.max(1.0) } else { 1.0 },
            steps_down: 0,
            within: Vec::new(),
            beyond: None,
            confirmations: 0,
            best: None,
        }
    }

    /// The next step; to be followed by [`Path::saw`] unless it is the last.
    pub(super) fn next(&mut self) -> Step {
        self.step =
            if self.tried >= self.points_max || self.best.is_some() { Step::Done } else { self.decide() };
        self.step
    }

    fn decide(&self) -> Step {
        let below = self.within.last().copied();
        match (below, self.beyond) {
            _ if self.confirmations >= CONFIRMATIONS_MAX => Step::Done,
            (None, None) => Step::Try(self.start),
            (None, Some((beyond, _))) if self.steps_down < STEPS_DOWN_MAX && beyond > 1.0 => {
                Step::Try((beyond * STEP_DOWN).max(1.0))
            }
            (None, Some(_)) => Step::Done,
            (Some(below), None) => Step::Try(below * STEP_UP),
            (Some(below), Some((beyond, _))) if beyond > below * (1.0 + self.precision) => {
                // The last point is kept for confirming.
                if self.points_max - self.tried <= 1 {
                    Step::Confirm(below)
                } else {
                    Step::Try((below * beyond).sqrt())
                }
            }
            (Some(below), Some(_)) => Step::Confirm(below),
        }
    }

    /// What came of the last step.
    pub(super) fn saw(&mut self, seen: Seen) {
        self.tried += 1;
        match self.step {
            Step::Done => {}
            Step::Try(rate) if seen == Seen::Within => self.within.push(rate),
            Step::Try(rate) => {
                self.steps_down += usize::from(self.within.is_empty());
                self.beyond = Some((rate, seen == Seen::LoadAtItsLimit));
            }
            Step::Confirm(rate) if seen == Seen::Within => self.best = Some(rate),
            Step::Confirm(rate) => {
                self.confirmations += 1;
                self.beyond = Some((rate, seen == Seen::LoadAtItsLimit));
                self.within.pop();
            }
        }
    }

    /// Points so far.
    pub(super) fn tried(&self) -> usize {
        self.tried
    }

    /// The highest rate that was within the limit twice.
    pub(super) fn best(&self) -> Option<f64> {
        self.best
    }

    /// Whether what stopped the search was the load.
    pub(super) fn is_load_the_limit(&self) -> bool {
        self.beyond.is_some_and(|(_, is_load)| is_load)
    }

    /// Whether more points would have told more.
    pub(super) fn is_out_of_points(&self) -> bool {
        let is_precise = match (self.within.last(), self.beyond) {
            (Some(below), Some((beyond, _))) => beyond <= below * (1.0 + self.precision),
            _ => false,
        };
        self.tried >= self.points_max && !(self.best.is_some() && is_precise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a server that this says all about; the steps and the path at its end.
    fn search(start: f64, points_max: usize, mut server: impl FnMut(f64, bool) -> Seen) -> (Vec<Step>, Path) {
        let mut path = Path::new(start, 0.05, points_max);
        let mut steps = Vec::new();
        loop {
            let step = path.next();
            let (Step::Try(rate) | Step::Confirm(rate)) = step else { return (steps, path) };
            steps.push(step);
            let seen = server(rate, matches!(step, Step::Confirm(_)));
            path.saw(seen);
        }
    }

    fn up_to(most: f64) -> impl FnMut(f64, bool) -> Seen {
        move |rate, _| if rate <= most { Seen::Within } else { Seen::Beyond }
    }

    #[test]
    fn the_highest_rate_is_found_within_its_precision_and_confirmed() {
        for most in [51.0, 64.0, 777.0, 1234.0, 99_000.0] {
            let (steps, path) = search(50.0, 30, up_to(most));
            let best = path.best().unwrap();
            assert!(best <= most && best * 1.05 >= most * 0.999, "{most}: {best}");
            assert_eq!(steps.last(), Some(&Step::Confirm(best)));
            assert!(steps.len() <= 19, "{most}: {} points", steps.len());
            assert!(!path.is_load_the_limit() && !path.is_out_of_points());
        }
    }

    #[test]
    fn a_first_rate_that_is_too_much_is_followed_by_lower_ones() {
        let (_, path) = search(1000.0, 30, up_to(30.0));
        let best = path.best().unwrap();
        assert!((28.0..=30.0).contains(&best), "{best}");
        let (steps, path) = search(1000.0, 30, |_, _| Seen::Beyond);
        assert_eq!((path.best(), steps.len()), (None, 3));
    }

    #[test]
    fn a_rate_that_is_within_only_once_is_not_the_best() {
        // From 820 to 900 it is luck: whoever asks again is not within.
        let luck = |rate: f64, is_again: bool| {
            if rate > 900.0 || (rate > 820.0 && is_again) { Seen::Beyond } else { Seen::Within }
        };
        let (steps, path) = search(100.0, 40, luck);
        let best = path.best().unwrap();
        assert!(best <= 820.0 && best * 1.05 > 800.0, "{best}: {steps:?}");
        let confirmations = steps.iter().filter(|step| matches!(step, Step::Confirm(_)));
        assert!(confirmations.count() > 1, "{steps:?}");
    }

    #[test]
    fn a_server_that_never_is_within_twice_has_no_best_rate_and_an_end() {
        let once =
            |rate: f64, is_again: bool| if rate > 900.0 || is_again { Seen::Beyond } else { Seen::Within };
        let (steps, path) = search(100.0, 50, once);
        assert_eq!(path.best(), None);
        assert!(steps.len() < 30, "{steps:?}");
    }

    #[test]
    fn the_load_s_own_limit_is_reported_apart() {
        let (_, path) =
            search(100.0, 30, |rate, _| if rate <= 5000.0 { Seen::Within } else { Seen::LoadAtItsLimit });
        assert!(path.is_load_the_limit() && path.best().is_some_and(|best| best > 4700.0));
    }

    #[test]
    fn the_number_of_points_is_bounded_and_the_last_one_confirms() {
        let (steps, path) = search(1.0, 12, up_to(900.0));
        assert_eq!((steps.len(), steps.last()), (12, Some(&Step::Confirm(path.best().unwrap()))));
        assert!(path.is_out_of_points());
        let (steps, path) = search(1.0, 5, |_, _| Seen::Within);
        assert_eq!((steps.len(), path.best()), (5, None));
        assert!(path.is_out_of_points());
    }

    #[test]
    fn settings_that_make_no_sense_end_too() {
        for start in [0.0, f64::NAN, f64::INFINITY, -5.0] {
            let (steps, _) = search(start, 50, up_to(100.0));
            assert!(steps.len() < 50, "{start}: {}", steps.len());
        }
        assert_eq!(search(1.0, 0, up_to(1.0)).0.len(), 0);
    }
}
