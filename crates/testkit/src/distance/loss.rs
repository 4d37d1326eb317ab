//! Which packets are lost on the way.
//!
//! PURE: the same packets of a direction are lost in each run, whatever they hold, so that all who are compared meet the
//! same loss.

use super::segment::Towards;

/// Of so many packets the share to lose is given.
const MILLE: u64 = 1000;

/// Chooses packets of one direction.
#[derive(Debug)]
pub(super) struct Loss {
    per_mille: u64,
    state: u64,
}

impl Loss {
    pub(super) fn new(per_mille: u32, towards: Towards) -> Loss {
        // The two directions do not lose the same ones.
        Loss { per_mille: u64::from(per_mille), state: u64::from(towards == Towards::Near) }
    }

    /// Whether the next packet is lost. The generator is SplitMix64 (Steele, Lea, Flood, 2014).
    pub(super) fn takes_next(&mut self) -> bool {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % MILLE < self.per_mille
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost_of_ten_thousand(per_mille: u32, towards: Towards) -> Vec<usize> {
        let mut loss = Loss::new(per_mille, towards);
        (0..10_000).filter(|_| loss.takes_next()).collect()
    }

    #[test]
    fn one_packet_in_a_hundred_is_lost_and_always_the_same_one() {
        let lost = lost_of_ten_thousand(10, Towards::Far);
        assert!((80..120).contains(&lost.len()), "{}", lost.len());
        assert_eq!(lost, lost_of_ten_thousand(10, Towards::Far));
        assert_ne!(lost, lost_of_ten_thousand(10, Towards::Near));
        assert!(lost_of_ten_thousand(0, Towards::Far).is_empty());
    }
}
