//! In which order requests with weights take turns.
//!
//! Owns the cycle: smooth weighted round robin (each turn every request gains its weight, and the richest is
//! asked and pays all weights), so that the shares are exact over a cycle and even within it. Nothing is drawn:
//! the same plan asks the same.

use super::limits::CYCLE_MAX;

/// Turns, over and over.
#[derive(Debug, Clone)]
pub(super) struct Cycle {
    turns: Vec<u32>,
    next: usize,
}

impl Cycle {
    /// The cycle of these requests (their places and weights), begun at the share `start` of it, 0 to 1.
    pub(super) fn new(weighted: &[(usize, u32)], start: f64) -> Cycle {
        let weights = fitting(weighted);
        let total: i64 = weights.iter().sum();
        let mut credit = vec![0_i64; weights.len()];
        let mut turns = Vec::with_capacity(usize::try_from(total).unwrap_or(0));
        for _ in 0..total {
            for (credit, weight) in credit.iter_mut().zip(&weights) {
                *credit += weight;
            }
            // The first of the richest, so that the order is the plan's where weights are equal.
            let richest = credit.iter().enumerate().rev().max_by_key(|(_, credit)| **credit);
            let Some(place) = richest.map(|(place, _)| place) else { break };
            if let (Some(credit), Some((request, _))) = (credit.get_mut(place), weighted.get(place)) {
                *credit -= total;
                turns.push(u32::try_from(*request).unwrap_or(u32::MAX));
            }
        }
        let next = (start.clamp(0.0, 1.0) * turns.len() as f64) as usize;
        Cycle { turns, next }
    }

    /// Whose turn it is.
    pub(super) fn turn(&mut self) -> usize {
        if self.next >= self.turns.len() {
            self.next = 0;
        }
        let turn = self.turns.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        turn as usize
    }
}

/// Weights without what they have in common, rounded where the cycle would be too long; none below 1.
fn fitting(weighted: &[(usize, u32)]) -> Vec<i64> {
    let common =
        weighted.iter().fold(0, |common, (_, weight)| greatest_common_divisor(common, *weight)).max(1);
    let weights: Vec<u64> = weighted.iter().map(|(_, weight)| u64::from(*weight / common).max(1)).collect();
    let total: u64 = weights.iter().sum();
    let fit = |weight: u64| if total <= CYCLE_MAX { weight } else { (weight * CYCLE_MAX / total).max(1) };
    weights.into_iter().map(|weight| i64::try_from(fit(weight)).unwrap_or(i64::MAX)).collect()
}

fn greatest_common_divisor(one: u32, other: u32) -> u32 {
    let (mut one, mut other) = (one, other);
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(weights: &[u32], turns: usize) -> Vec<usize> {
        let weighted: Vec<(usize, u32)> = weights.iter().copied().enumerate().collect();
        let mut cycle = Cycle::new(&weighted, 0.3);
        let mut seen = vec![0; weights.len()];
        for _ in 0..turns {
            seen[cycle.turn()] += 1;
        }
        seen
    }

    #[test]
    fn each_request_has_exactly_its_share_of_a_cycle() {
        assert_eq!(shares(&[70, 20, 10], 1000), [700, 200, 100]);
        assert_eq!(shares(&[1], 5), [5]);
        assert_eq!(shares(&[3, 3, 3], 9), [3, 3, 3]);
    }

    #[test]
    fn turns_are_mixed_evenly_and_not_in_runs() {
        let mut cycle = Cycle::new(&[(0, 2), (1, 1), (2, 1)], 0.0);
        let turns: Vec<usize> = (0..8).map(|_| cycle.turn()).collect();
        assert_eq!(turns, [0, 1, 2, 0, 0, 1, 2, 0]);
    }

    #[test]
    fn weights_that_are_too_large_for_a_cycle_are_rounded_and_none_is_forgotten() {
        let seen = shares(&[u32::MAX, u32::MAX / 2, 1], 1 << 17);
        assert!(seen[2] >= 1 && (seen[0] as f64 / seen[1] as f64 - 2.0).abs() < 0.001, "{seen:?}");
    }
}
