//! The rounds: every target once in each, in an order that is drawn anew.
//!
//! Owns the order and what becomes of a target that fails. Never lets a target have a place in the round of its own: what
//! the machine does every few seconds would be that target's.

use onehop_load::caveat::{Caveat, CaveatCode};
use onehop_load::measure;
use onehop_load::progress::Observer;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::target::{Outcome, Turn};
use super::{CompareError, Sample, Settings, Target};

/// All that was measured.
pub(super) struct Measured<'a> {
    targets: &'a [Target],
    settings: &'a Settings,
    pub(super) samples: Vec<Sample>,
    /// What happened meanwhile, for people.
    pub(super) caveats: Vec<Caveat>,
    /// Rounds that have begun.
    pub(super) rounds: usize,
    pub(super) is_broken_off: bool,
    has_been_measured: Vec<bool>,
    random: fastrand::Rng,
    _bound: Bound,
}

/// Binds this thread, and the meter that it starts, to the load's cores until it is dropped.
struct Bound {
    before: Option<CpuSet>,
}

impl<'a> Measured<'a> {
    pub(super) fn nothing(targets: &'a [Target], settings: &'a Settings) -> Self {
        Measured {
            targets,
            settings,
            samples: Vec::new(),
            caveats: Vec::new(),
            rounds: 0,
            is_broken_off: false,
            has_been_measured: vec![false; targets.len()],
            random: fastrand::Rng::with_seed(settings.seed),
            _bound: Bound::to_load_cores(settings),
        }
    }

    /// Measures until there are this many rounds, or until it is interrupted.
    pub(super) fn until(&mut self, rounds: usize, observer: &mut dyn Observer) -> Result<(), CompareError> {
        while self.rounds < rounds && !self.is_broken_off {
            self.round(rounds, observer)?;
            self.rounds += 1;
        }
        Ok(())
    }

    /// Every target once.
    fn round(&mut self, rounds: usize, observer: &mut dyn Observer) -> Result<(), CompareError> {
        let (round, settings) = (self.rounds, self.settings);
        for place in order(self.targets.len(), &mut self.random) {
            let Some(target) = self.targets.get(place) else { continue };
            if observer.is_interrupted() {
                self.break_off(rounds);
                return Ok(());
            }
            let turn = Turn { target, place, round, rounds, settings, observer: &mut *observer };
            match (turn.take(), self.has_been_measured.get_mut(place)) {
                (Ok(Outcome::Measured(sample)), Some(has_been)) => {
                    *has_been = true;
                    self.samples.push(*sample);
                }
                (Err(error), Some(true)) => {
                    let text = format!("round {}: {error}", round + 1);
                    self.caveats.push(CaveatCode::RoundFailed.says(text));
                }
                (Err(error), _) => return Err(error),
                (Ok(_), _) => {
                    self.break_off(rounds);
                    return Ok(());
                }
            }
        }
        // An interruption during the last run is seen only now.
        if observer.is_interrupted() {
            self.break_off(rounds);
        }
        Ok(())
    }

    fn break_off(&mut self, rounds: usize) {
        self.is_broken_off = true;
        let round = self.rounds + 1;
        self.caveats.push(CaveatCode::BrokenOff.says(format!(
            "it was broken off in round {round} of {rounds}: what was measured until then counts"
        )));
    }
}

impl Bound {
    /// Only where the servers have cores too: what is started without any would have those of this thread.
    fn to_load_cores(settings: &Settings) -> Bound {
        if settings.server_cores.is_empty() || settings.load_cores.is_empty() {
            return Bound { before: None };
        }
        let before = sched_getaffinity(None).ok();
        measure::bind_to(&settings.load_cores);
        Bound { before }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // What this thread had it may have again; where not, it stays where it is, and works.
            let _ = sched_setaffinity(None, before);
        }
    }
}

/// The places of all targets in random order.
fn order(targets: usize, random: &mut fastrand::Rng) -> Vec<usize> {
    let mut places: Vec<usize> = (0..targets).collect();
    random.shuffle(&mut places);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_arm_has_every_place_about_as_often() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut first = [0; 3];
        for _ in 0..3000 {
            let mut places = order(3, &mut random);
            first[places[0]] += 1;
            places.sort_unstable();
            assert_eq!(places, [0, 1, 2]);
        }
        assert!(first.iter().all(|count| (900..1100).contains(count)), "{first:?}");
    }

    #[test]
    fn the_same_seed_draws_the_same_orders() {
        let draw = || {
            let mut random = fastrand::Rng::with_seed(9);
            (0..20).map(|_| order(4, &mut random)).collect::<Vec<_>>()
        };
        assert_eq!(draw(), draw());
    }
}
