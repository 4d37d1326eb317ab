//! Which rate is tried next.
//!
//! Pure: owns the way up by doubling until a rate is too much, the bisection between the highest rate within the limit
//! and the lowest beyond it, and the longer steps that look at both of them again. A stall of the machine looks like a
//! server that is overloaded, and a lucky step like one that is not: neither side of the result rests on one step, and
//! the second comes some steps later, when the machine may do something else.

/// Down from a first rate that is already too much: latency limits far below a server's capacity are rare.
const STEP_DOWN: f64 = 0.25;
/// Up while nothing is too much.
const STEP_UP: f64 = 2.0;
/// Steps that are kept for the confirmation.
const STEPS_KEPT: usize = 2;
/// Steps beyond the limit that settle a rate.
const LOOKS: usize = 3;
/// Rates whose confirmation may fail. A server that keeps the limit for one step and not for a longer one, again and
/// again, is not steady enough to have a highest rate.
const CONFIRMATIONS_MAX: usize = 8;
/// The finest that is distinguished: less is the noise of any machine.
const PRECISION_MIN: f64 = 0.005;

/// What came of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Within,
    Beyond,
    /// Beyond the limit, and the load itself is why.
    LoadAtItsLimit,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Next {
    Try(f64),
    /// A longer step.
    Confirm(f64),
    Done,
}

/// A rate that was beyond the limit.
#[derive(Debug, Clone, Copy)]
struct Beyond {
    rate: f64,
    /// In so many steps.
    looks: usize,
    /// In the last of them the load was why.
    is_load: bool,
}

/// A search on its way.
#[derive(Debug)]
pub(super) struct Bisection {
    precision: f64,
    steps_left: usize,
    start: f64,
    lowest: f64,
    /// The last that was told.
    next: Next,
    /// Rates that were within the limit when they were tried last, rising.
    within: Vec<f64>,
    /// Rates that were not, falling; all above those.
    beyond: Vec<Beyond>,
    confirmations_failed: usize,
    /// The highest that a longer step has confirmed.
    best: Option<f64>,
}

impl Bisection {
    /// From the rate `start` and never below `lowest`, requests per second.
    pub(super) fn new(start: f64, lowest: f64, precision: f64, steps_max: usize) -> Bisection {
        Bisection {
            precision: if precision.is_nan() { PRECISION_MIN } else { precision.max(PRECISION_MIN) },
            steps_left: steps_max,
            // A rate of nothing, or none at all, cannot be doubled.
            start: if start.is_finite() { start.max(lowest) } else { lowest },
            lowest,
            next: Next::Done,
            within: Vec::new(),
            beyond: Vec::new(),
            confirmations_failed: 0,
            best: None,
        }
    }

    /// The next step; to be followed by [`Bisection::saw`] unless it is the last.
    pub(super) fn next(&mut self) -> Next {
        self.next = if self.steps_left == 0 || self.is_given_up() { Next::Done } else { self.decide() };
        self.next
    }

    fn decide(&self) -> Next {
        let within = self.within.last().copied();
        let is_confirmed = within == self.best;
        match (within, self.beyond.last().copied()) {
            (None, None) => Next::Try(self.start),
            (None, Some(beyond)) if beyond.rate > self.lowest => {
                Next::Try((beyond.rate * STEP_DOWN).max(self.lowest))
            }
            (Some(within), _) if self.steps_left <= STEPS_KEPT && !is_confirmed => Next::Confirm(within),
            (Some(within), None) => Next::Try(within * STEP_UP),
            (Some(within), Some(beyond)) if !self.is_precise() => Next::Try((within * beyond.rate).sqrt()),
            (Some(within), Some(_)) if !is_confirmed => Next::Confirm(within),
            (_, Some(beyond)) if beyond.looks < LOOKS => Next::Confirm(beyond.rate),
            (_, Some(_)) => Next::Done,
        }
    }

    /// What came of the last step.
    pub(super) fn saw(&mut self, seen: Seen) {
        let (Next::Try(rate) | Next::Confirm(rate)) = self.next else { return };
        self.steps_left = self.steps_left.saturating_sub(1);
        let is_confirmation = matches!(self.next, Next::Confirm(_));
        if seen == Seen::Within {
            // A rate that was beyond the limit in earlier steps is tried now, and still has to be confirmed.
            if is_confirmation && self.within.last() == Some(&rate) {
                self.best = Some(rate);
            }
            self.beyond.retain(|beyond| beyond.rate > rate);
            self.within.retain(|within| *within < rate);
            self.within.push(rate);
            return;
        }
        let is_load = seen == Seen::LoadAtItsLimit;
        match self.beyond.last_mut().filter(|beyond| beyond.rate <= rate) {
            Some(beyond) => *beyond = Beyond { looks: beyond.looks + 1, is_load, ..*beyond },
            None => {
                self.confirmations_failed += usize::from(is_confirmation);
                self.within.retain(|within| *within < rate);
                self.beyond.push(Beyond { rate, looks: 1, is_load });
            }
        }
    }

    /// The highest rate that was within the limit in a step and in the longer one that confirmed it.
    pub(super) fn best(&self) -> Option<f64> {
        self.best
    }

    /// Whether too many confirmations failed.
    pub(super) fn is_given_up(&self) -> bool {
        self.confirmations_failed >= CONFIRMATIONS_MAX
    }

    /// Whether no rate was within the limit at all.
    pub(super) fn is_none_within(&self) -> bool {
        self.within.is_empty() && self.confirmations_failed == 0
    }

    /// Whether what stopped the search was the load.
    pub(super) fn is_load_the_limit(&self) -> bool {
        self.beyond.last().is_some_and(|beyond| beyond.is_load)
    }

    /// Whether the highest rate within the limit and the lowest beyond it are as near as they were to be.
    pub(super) fn is_precise(&self) -> bool {
        match (self.within.last(), self.beyond.last()) {
            (Some(within), Some(beyond)) => beyond.rate <= within * (1.0 + self.precision),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches a server of which this says everything; the steps and the search at its end.
    fn search(
        start: f64,
        steps_max: usize,
        mut server: impl FnMut(f64, bool) -> Seen,
    ) -> (Vec<Next>, Bisection) {
        let mut search = Bisection::new(start, 1.0, 0.05, steps_max);
        let mut steps = Vec::new();
        loop {
            let step = search.next();
            let (Next::Try(rate) | Next::Confirm(rate)) = step else { return (steps, search) };
            steps.push(step);
            search.saw(server(rate, matches!(step, Next::Confirm(_))));
        }
    }

    fn up_to(most: f64) -> impl FnMut(f64, bool) -> Seen {
        move |rate, _| if rate <= most { Seen::Within } else { Seen::Beyond }
    }

    #[test]
    fn the_highest_rate_is_found_within_its_precision_and_confirmed() {
        for (start, most) in [(50.0, 51.0), (32.0, 64.0), (500.0, 777.0), (1e5, 99_000.0), (8000.0, 30.0)] {
            let (steps, search) = search(start, 40, up_to(most));
            let best = search.best().unwrap();
            assert!(best <= most && best * 1.05 >= most * 0.999, "{most}: {best}");
            let [.., confirmation, Next::Confirm(above), Next::Confirm(_)] = steps.as_slice() else {
                panic!("{steps:?}")
            };
            assert_eq!(*confirmation, Next::Confirm(best));
            assert!(*above > most, "both sides are looked at again: {steps:?}");
            assert!(steps.len() <= 22, "{most}: {} steps", steps.len());
            assert!(!search.is_load_the_limit() && search.is_precise());
        }
    }

    #[test]
    fn a_rate_that_was_beyond_the_limit_once_by_a_stall_is_not_the_end() {
        for stalled in 0..8 {
            let mut step = 0;
            let (steps, search) = search(400.0, 40, |rate, _| {
                step += 1;
                if step == stalled + 1 || rate > 777.0 { Seen::Beyond } else { Seen::Within }
            });
            let best = search.best().unwrap();
            assert!(best <= 777.0 && best * 1.05 >= 776.0, "{stalled}: {best} {steps:?}");
        }
    }

    #[test]
    fn a_rate_that_was_within_the_limit_once_by_luck_is_not_the_best() {
        for lucky in 0..20 {
            let mut step = 0;
            let (steps, search) = search(400.0, 40, |rate, _| {
                step += 1;
                if step == lucky + 1 || rate <= 777.0 { Seen::Within } else { Seen::Beyond }
            });
            let best = search.best().unwrap();
            assert!(best <= 777.0 && best * 1.05 >= 776.0, "{lucky}: {best} {steps:?}");
        }
    }

    #[test]
    fn a_server_that_no_rate_suits_is_asked_down_to_the_lowest_and_there_again() {
        let (steps, search) = search(1000.0, 30, |_, _| Seen::Beyond);
        assert_eq!(
            steps.split_at(steps.len() - 3).1,
            [Next::Try(1.0), Next::Confirm(1.0), Next::Confirm(1.0)]
        );
        assert_eq!(search.best(), None);
        assert!(search.is_none_within());
    }

    #[test]
    fn a_rate_that_fails_its_confirmation_is_not_the_best() {
        let luck = |rate: f64, is_longer: bool| {
            if rate > 900.0 || (rate > 820.0 && is_longer) { Seen::Beyond } else { Seen::Within }
        };
        let (steps, search) = search(100.0, 40, luck);
        let best = search.best().unwrap();
        assert!(best <= 820.0 && best * 1.05 > 800.0, "{best}: {steps:?}");
    }

    #[test]
    fn a_server_that_fails_every_confirmation_has_no_best_rate_and_the_search_ends() {
        let (steps, search) =
            search(
                100.0,
                50,
                |rate, is_longer| {
                    if rate > 900.0 || is_longer { Seen::Beyond } else { Seen::Within }
                },
            );
        assert_eq!((search.best(), search.is_none_within()), (None, false));
        assert!(steps.len() < 40, "{steps:?}");
    }

    #[test]
    fn the_load_s_own_limit_is_reported_apart() {
        let (_, search) =
            search(100.0, 30, |rate, _| if rate <= 5000.0 { Seen::Within } else { Seen::LoadAtItsLimit });
        assert!(search.is_load_the_limit() && search.best().is_some_and(|best| best > 4700.0));
    }

    #[test]
    fn the_number_of_steps_is_bounded_and_one_is_kept_for_the_confirmation() {
        let (steps, search) = search(1.0, 12, up_to(900.0));
        assert!(steps.len() <= 12 && steps.contains(&Next::Confirm(search.best().unwrap())), "{steps:?}");
        assert!(!search.is_precise());
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
