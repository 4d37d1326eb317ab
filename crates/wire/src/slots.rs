//! Which slots of a data connection are taken, and by which generation.
//!
//! Owns the numbers; what belongs to an exchange is the caller's, in a table of its own with the same index.
//! Never gives out the slot that means the connection itself.

/// The slots of one data connection.
///
/// Invariant: a slot below `uses.len()` is either live or in `free`, and was used `uses[slot]` times.
#[derive(Debug, Clone)]
pub struct Slots {
    max: u16,
    /// How often each slot was used. Wider than a generation, so that one that has not been reached yet can
    /// be told from one that has passed, however old the connection is.
    uses: Vec<u64>,
    live: Vec<bool>,
    /// Those that were used and are not, the last one on top.
    free: Vec<u16>,
}

/// What a slot and a generation say of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// It is open.
    Live,
    /// It is over: its frames count for nothing.
    Late,
    /// There was none: the other side has broken the protocol.
    Never,
}

impl Slots {
    /// No slot is taken; at most `max` will be at the same time.
    pub const fn new(max: u16) -> Slots {
        Slots { max, uses: Vec::new(), live: Vec::new(), free: Vec::new() }
    }

    /// Takes a slot, with its generation; `None` if all are taken.
    ///
    /// The slot that was closed last comes first: what the caller keeps for it is still in the cache, and a
    /// connection that has seen at most n exchanges at once has used n slots only. It allocates when it uses a slot
    /// for the first time.
    pub fn open(&mut self) -> Option<(u16, u32)> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = u16::try_from(self.uses.len()).ok().filter(|slot| *slot < self.max)?;
                self.uses.push(0);
                self.live.push(false);
                slot
            }
        };
        let index = usize::from(slot);
        *self.live.get_mut(index)? = true;
        let uses = self.uses.get_mut(index)?;
        *uses += 1;
        Some((slot, generation_of(*uses)))
    }

    /// Gives a slot back. Returns whether it was taken.
    pub fn close(&mut self, slot: u16) -> bool {
        let was_live = self.live.get_mut(usize::from(slot)).is_some_and(std::mem::take);
        if was_live {
            self.free.push(slot);
        }
        was_live
    }

    /// What is known of this exchange.
    pub fn check(&self, slot: u16, generation: u32) -> Known {
        let index = usize::from(slot);
        let (Some(&uses), Some(&live)) = (self.uses.get(index), self.live.get(index)) else {
            return Known::Never;
        };
        let newest = generation_of(uses);
        if generation == newest {
            return if live { Known::Live } else { Known::Late };
        }
        // How many generations ago it was; for one that is yet to come that is more than ever were, until
        // generations have begun anew.
        if u64::from(newest.wrapping_sub(generation)) < uses { Known::Late } else { Known::Never }
    }

    /// How many are taken.
    pub fn live(&self) -> usize {
        self.uses.len() - self.free.len()
    }
}

/// The first use is generation 0; after the last number it begins anew.
const fn generation_of(uses: u64) -> u32 {
    uses.wrapping_sub(1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_dense_and_the_last_one_that_was_closed_comes_first() {
        let mut slots = Slots::new(3);
        assert_eq!([slots.open(), slots.open(), slots.open()], [Some((0, 0)), Some((1, 0)), Some((2, 0))]);
        assert_eq!(slots.open(), None);
        assert!(slots.close(0) && slots.close(2));
        assert_eq!(slots.live(), 1);
        assert_eq!([slots.open(), slots.open(), slots.open()], [Some((2, 1)), Some((0, 1)), None]);
    }

    #[test]
    fn what_was_never_given_out_differs_from_what_is_over() {
        let mut slots = Slots::new(2);
        assert_eq!(slots.check(0, 0), Known::Never);
        slots.open();
        assert_eq!(
            [slots.check(0, 0), slots.check(0, 1), slots.check(1, 0)],
            [Known::Live, Known::Never, Known::Never]
        );
        assert_eq!(slots.check(0, u32::MAX), Known::Never);
        slots.close(0);
        assert_eq!([slots.check(0, 0), slots.check(0, 1)], [Known::Late, Known::Never]);
        slots.open();
        assert_eq!(
            [slots.check(0, 0), slots.check(0, 1), slots.check(0, 2)],
            [Known::Late, Known::Live, Known::Never]
        );
    }

    #[test]
    fn a_slot_is_closed_once() {
        let mut slots = Slots::new(1);
        assert!(!slots.close(0) && !slots.close(u16::MAX));
        slots.open();
        assert!(slots.close(0));
        assert!(!slots.close(0));
        assert_eq!((slots.live(), slots.open(), slots.open()), (0, Some((0, 1)), None));
    }

    #[test]
    fn generations_begin_anew_after_the_last_one() {
        let mut slots = Slots::new(1);
        slots.open();
        slots.close(0);
        // As if it had been used so often: the next use is the last generation.
        slots.uses[0] = u64::from(u32::MAX);
        assert_eq!(slots.open(), Some((0, u32::MAX)));
        assert_eq!([slots.check(0, 0), slots.check(0, u32::MAX)], [Known::Late, Known::Live]);
        slots.close(0);
        assert_eq!(slots.open(), Some((0, 0)));
        assert_eq!([slots.check(0, 0), slots.check(0, u32::MAX)], [Known::Live, Known::Late]);
        // It was given out four billion uses ago.
        assert_eq!(slots.check(0, 1), Known::Late);
    }

    #[test]
    fn no_number_of_slots_gives_out_the_one_of_the_connection() {
        let mut slots = Slots::new(u16::MAX);
        let last = std::iter::from_fn(|| slots.open()).last();
        assert_eq!(last, Some((crate::limits::CONNECTION_SLOT - 1, 0)));
        assert_eq!(Slots::new(0).open(), None);
    }
}
