//! `round_robin` and `weighted_round_robin`: whose turn it is, counted for the whole process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Candidates;
use crate::member::Member;
use crossbeam_utils::CachePadded;

/// One after the other.
#[derive(Default)]
pub(super) struct Turns(Counter);

/// One after the other, each as often in a row as its weight says.
pub(super) struct WeightedTurns {
    counter: Counter,
    /// By number of the member; without one it gets nothing.
    weights: Box<[usize]>,
}

/// One for all cores, so that turns are exact over the process.
struct Counter(CachePadded<AtomicUsize>);

impl Turns {
    /// Whose turn it is. One that is passed over takes its turn all the same: what would have been its requests is
    /// spread over all others, not given to its neighbour.
    pub(super) fn next<'a>(&self, among: &Candidates<'a>) -> Option<&'a Arc<Member>> {
        let members = among.members;
        (0..members.len()).find_map(|_| {
            let turn = self.0.next().checked_rem(members.len())?;
            members.get(turn).filter(|member| among.has(member))
        })
    }
}

impl WeightedTurns {
    pub(super) fn new(weights: &[u32]) -> Self {
        let weights = weights.iter().map(|weight| usize::try_from(*weight).unwrap_or(usize::MAX));
        Self { counter: Counter::default(), weights: weights.collect() }
    }

    /// Whose turn it is among those that are available, so that their shares stay in proportion when one is missing.
    pub(super) fn next<'a>(&self, among: &Candidates<'a>) -> Option<&'a Arc<Member>> {
        let weight = |member: &Member| self.weights.get(member.number).copied().unwrap_or(0);
        // Seen twice: one that fails in between is met by the last line.
        let total = among.available().fold(0usize, |sum, member| sum.saturating_add(weight(member)));
        let mut turn = self.counter.next().checked_rem(total)?;
        let mut last = None;
        for member in among.available().filter(|member| weight(member) > 0) {
            match turn.checked_sub(weight(member)) {
                None => return Some(member),
                Some(rest) => turn = rest,
            }
            last = Some(member);
        }
        last
    }
}

impl Counter {
    /// From 1, as Caddy counts.
    fn next(&self) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self(CachePadded::new(AtomicUsize::new(0)))
    }
}
