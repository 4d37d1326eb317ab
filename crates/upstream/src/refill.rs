//! How one core keeps its share of a peer's minimum of open connections: how many it may dial now.
//!
//! Where the peer refuses, one connection is tried at a time, after longer and longer pauses. Dials nothing.

use std::time::{Duration, Instant};

use crate::limits::{REFILL_DIALS_MAX, REFILL_PAUSE_MAX, REFILL_PAUSE_MIN};

/// The state of one core and peer.
#[derive(Default)]
pub(crate) struct Refill {
    /// Connections that are being made.
    pub(crate) dialling: usize,
    /// Ticks in a row at which connections were missing that are not this core's to open.
    missed: u32,
    /// The pause after the next failure; zero while all is well.
    pause: Duration,
    /// Nothing is opened before.
    not_before: Option<Instant>,
}

/// What is missing.
#[derive(Clone, Copy)]
pub(crate) struct Missing {
    /// In the whole process.
    pub(crate) in_all: usize,
    /// Connections that are this core's to open, those that it has not deducted.
    pub(crate) share: usize,
    /// Connections that are idle on this core.
    pub(crate) idle: usize,
}

impl Refill {
    /// How many connections may be dialled now.
    pub(crate) fn dials_allowed(&mut self, missing: Missing, is_tick: bool) -> Option<usize> {
        if missing.in_all == 0 {
            self.missed = 0;
            return None;
        }
        if self.not_before.is_some_and(|time| Instant::now() < time) {
            return None;
        }
        let own = missing.share.saturating_sub(missing.idle + self.dialling);
        let count = match own {
            // The other cores have not opened theirs since the last tick.
            0 if self.missed > 0 => missing.in_all,
            _ => own.min(missing.in_all),
        };
        if is_tick {
            self.missed = if own == 0 { self.missed.saturating_add(1) } else { 0 };
        }
        let most = if self.pause.is_zero() { REFILL_DIALS_MAX } else { 1 };
        Some(count.min(most.saturating_sub(self.dialling))).filter(|count| *count > 0)
    }

    /// A connection could not be made, or was closed at once.
    pub(crate) fn back_off(&mut self, now: Instant) {
        self.pause = (self.pause * 2).clamp(REFILL_PAUSE_MIN, REFILL_PAUSE_MAX);
        self.not_before = Some(now + self.pause);
    }

    /// A connection was made.
    pub(crate) fn dialled(&mut self) {
        self.not_before = None;
    }

    /// A connection has been open for a while.
    pub(crate) fn recover(&mut self) {
        self.pause = Duration::ZERO;
    }
}
