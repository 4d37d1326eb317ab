//! How many rejected requests the access log gets.

use std::cell::Cell;

use crate::limits::REJECTION_LINES_PER_TICK_MAX;

/// Which rejections one thread writes into access logs: the first ones of each tick.
#[derive(Debug)]
pub struct LogSampling {
    left: Cell<u32>,
}

impl Default for LogSampling {
    fn default() -> Self {
        Self { left: Cell::new(REJECTION_LINES_PER_TICK_MAX) }
    }
}

impl LogSampling {
    /// Whether this rejection is written.
    pub fn takes(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }

    /// Starts the next tick.
    pub fn tick(&self) {
        self.left.set(REJECTION_LINES_PER_TICK_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_rejections_is_a_few_lines_in_each_tick() {
        let sampling = LogSampling::default();
        let written = (0..10_000).filter(|_| sampling.takes()).count();
        assert_eq!(written, REJECTION_LINES_PER_TICK_MAX as usize);
        sampling.tick();
        assert!(sampling.takes());
    }
}
