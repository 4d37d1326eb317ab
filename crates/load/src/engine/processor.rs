//! What a thread of the load costs, and where it may run.
//!
//! Owns `/proc/thread-self/schedstat` (Documentation/scheduler/sched-stats: time on a core, time in the run queue,
//! both in nanoseconds), the binding to a core and the exactness of timers.

use std::num::NonZeroU64;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};

/// What the calling thread used within the measured time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Processor {
    begun: Option<Reading>,
    ended: Option<Reading>,
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    at: u64,
    on_core: u64,
    waiting: u64,
}

impl Processor {
    /// Reads once when the measurement begins and once when the last request has begun.
    #[inline]
    pub(super) fn look(&mut self, now: u64, measured_from: u64, is_stopping: bool) {
        if self.begun.is_none() && now >= measured_from {
            self.begun = read(now);
        }
        if self.ended.is_none() && is_stopping && self.begun.is_some() {
            self.ended = read(now);
        }
    }

    /// CPU time.
    pub(super) fn used(&self) -> Duration {
        Duration::from_nanos(self.between(|reading| reading.on_core))
    }

    /// Share of the time on a core.
    pub(super) fn share(&self) -> f64 {
        self.between(|reading| reading.on_core) as f64 / self.wall()
    }

    /// Share of the time in which it was ready and had no core.
    pub(super) fn waiting(&self) -> f64 {
        self.between(|reading| reading.waiting) as f64 / self.wall()
    }

    fn wall(&self) -> f64 {
        self.between(|reading| reading.at).max(1) as f64
    }

    fn between(&self, of: impl Fn(&Reading) -> u64) -> u64 {
        match (&self.begun, &self.ended) {
            (Some(begun), Some(ended)) => of(ended).saturating_sub(of(begun)),
            _ => 0,
        }
    }
}

fn read(at: u64) -> Option<Reading> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let mut numbers = text.split_ascii_whitespace().map_while(|word| word.parse().ok());
    Some(Reading { at, on_core: numbers.next()?, waiting: numbers.next()? })
}

/// Binds the calling thread to a core and has its timers exact.
pub(super) fn settle_in(core: Option<usize>) -> rustix::io::Result<()> {
    // The usual slack of 50 us would be seen as lateness. Where it cannot be set, it is.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let Some(core) = core else { return Ok(()) };
    if core >= CpuSet::MAX_CPU {
        return Err(rustix::io::Errno::INVAL);
    }
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores)
}
