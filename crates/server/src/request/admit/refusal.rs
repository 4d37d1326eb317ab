//! How many rejected requests the access log gets.

use std::cell::Cell;

use crate::limits::SHED_LINES_PER_TICK_MAX;

/// Which refusals a core writes into access logs: the first ones of each tick.
pub(crate) struct Sampling {
    left: Cell<u32>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { left: Cell::new(SHED_LINES_PER_TICK_MAX) }
    }
}

impl Sampling {
    /// Whether this one is written.
    pub(crate) fn takes(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }

    /// A tick has passed.
    pub(crate) fn tick(&self) {
        self.left.set(SHED_LINES_PER_TICK_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_a_few_lines_in_each_tick() {
        let sampling = Sampling::default();
        let written = (0..10_000).filter(|_| sampling.takes()).count();
        assert_eq!(written, SHED_LINES_PER_TICK_MAX as usize);
        sampling.tick();
        assert!(sampling.takes());
    }
}
