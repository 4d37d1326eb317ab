//! Who of those in flight rests: came long ago, while others who came later were answered, or may have been.
//!
//! A long poll, a download that its client reads slowly, a socket that waits for its peer keep nobody busy. They are
//! in flight, but not in anybody's way, and a bound that counted them would refuse the very requests they wait for.
//! Requests are counted by the generation they came in; when a new one begins, those of the last but one rest.
//! Whoever stands in a queue is never that old: a generation lasts for a multiple of what an answer takes, and none
//! begins while the event loop that would have to answer is late.
//!
//! Time is handed in. Each request is added to one counter and taken from one; who finds the generations changed
//! meanwhile may take from another one, and both come to rest, where it is even again.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::windows::EventLoop;

/// A generation lasts at least so long: a pause that people notice, and longer than most handlers take.
const GENERATION_MIN: Duration = Duration::from_millis(250);

/// A generation lasts for this many times of what the typical answer takes.
const GENERATION_LATENCIES: u32 = 4;

/// Where nobody was answered in the last one, each lasts twice as long as the one before, up to this power of two:
/// eight seconds. All may wait for something that has become slow.
const SILENT_MAX: u32 = 5;

/// It is looked at so often whether one is over.
const LOOK_PERIOD: Duration = Duration::from_millis(50);

/// Those in flight, by how long they are.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// Those of this generation and of the one before, by turns.
    young: [AtomicI32; 2],
    resting: AtomicI32,
    generation: AtomicU32,
    /// When it began, and the one before it, in nanoseconds.
    began: AtomicU64,
    began_before: AtomicU64,
    /// In nanoseconds: before this it is not over.
    look_at: AtomicU64,
    /// Somebody who did not rest was answered in this generation.
    was_answered: AtomicBool,
    /// Generations one after the other in which some came and nobody was.
    silent: AtomicU32,
}

impl Rest {
    /// One more is in.
    pub(super) fn enter(&self) {
        self.of(self.generation.load(Ordering::Relaxed)).fetch_add(1, Ordering::Relaxed);
    }

    /// One who came at this time is gone.
    pub(super) fn leave(&self, came: u64) {
        let generation = self.generation.load(Ordering::Relaxed);
        let count = if came >= self.began.load(Ordering::Relaxed) {
            self.of(generation)
        } else if came >= self.began_before.load(Ordering::Relaxed) {
            self.of(generation.wrapping_sub(1))
        } else {
            &self.resting
        };
        count.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many rest.
    pub(super) fn resting(&self) -> u32 {
        // Below nothing for as long as one is taken from another counter than the one it was added to.
        u32::try_from(self.resting.load(Ordering::Relaxed)).unwrap_or_default()
    }

    /// Whether one who came at this time rests.
    pub(super) fn is_resting(&self, came: u64) -> bool {
        came < self.began_before.load(Ordering::Relaxed)
    }

    /// Somebody was answered who did not rest.
    pub(super) fn answered(&self) {
        // Most find it said.
        if !self.was_answered.load(Ordering::Relaxed) {
            self.was_answered.store(true, Ordering::Relaxed);
        }
    }

    /// When there is to be a look, in nanoseconds.
    pub(super) fn look_at(&self) -> u64 {
        self.look_at.load(Ordering::Relaxed)
    }

    /// Begins a new generation where this one is over. The typical answer takes `latency`; Of several who come at a time
    /// the first looks, and asks how the event loop is doing that would have to answer; what it was told is returned.
    pub(super) fn look(
        &self,
        now: u64,
        latency: Duration,
        event_loop: impl FnOnce() -> EventLoop,
    ) -> Option<EventLoop> {
        let (look_at, next) = (self.look_at(), now.saturating_add(nanoseconds(LOOK_PERIOD)));
        let is_first = now >= look_at
            && self.look_at.compare_exchange(look_at, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if !is_first {
            return None;
        }
        let event_loop = event_loop();
        self.turn(now, latency, event_loop);
        Some(event_loop)
    }

    fn turn(&self, now: u64, latency: Duration, event_loop: EventLoop) {
        let silent = self.silent.load(Ordering::Relaxed);
        let least = GENERATION_MIN * (1 << silent.min(SILENT_MAX));
        let lasts = least.max(latency.saturating_mul(GENERATION_LATENCIES));
        let began = self.began.load(Ordering::Relaxed);
        if now.saturating_sub(began) < nanoseconds(lasts) || event_loop == EventLoop::Late {
            return;
        }
        let generation = self.generation.load(Ordering::Relaxed);
        let was_answered = self.was_answered.swap(false, Ordering::Relaxed);
        let nobody_came = self.of(generation).load(Ordering::Relaxed) <= 0;
        let silent = if was_answered || nobody_came { 0 } else { silent.saturating_add(1) };
        self.silent.store(silent, Ordering::Relaxed);
        let aged = self.of(generation.wrapping_sub(1)).swap(0, Ordering::Relaxed);
        self.resting.fetch_add(aged, Ordering::Relaxed);
        self.began_before.store(began, Ordering::Relaxed);
        self.began.store(now, Ordering::Relaxed);
        self.generation.store(generation.wrapping_add(1), Ordering::Relaxed);
    }

    fn of(&self, generation: u32) -> &AtomicI32 {
        let [even, odd] = &self.young;
        if generation.is_multiple_of(2) { even } else { odd }
    }
}

/// Of more than 584 years, which are left out, nothing is known.
pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY: Duration = Duration::from_millis(5);

    /// Looks each ten milliseconds, from one time to another.
    fn pass(rest: &Rest, from: u64, to: u64, latency: Duration, is_answered: bool) {
        for milli in (from..to).step_by(10) {
            if is_answered {
                rest.answered();
            }
            rest.look(milli * 1_000_000, latency, || EventLoop::OnTime);
        }
    }

    #[test]
    fn who_came_long_ago_rests_and_leaves_without_a_trace() {
        let rest = Rest::default();
        (0..5).for_each(|_| rest.enter());
        pass(&rest, 0, 400, LATENCY, true);
        assert_eq!(rest.resting(), 0, "not yet");
        pass(&rest, 400, 1_000, LATENCY, true);
        assert_eq!(rest.resting(), 5);
        assert!(rest.is_resting(0));
        (0..5).for_each(|_| rest.leave(0));
        assert_eq!(rest.resting(), 0);
    }

    #[test]
    fn nobody_rests_while_answers_take_as_long_or_the_event_loop_is_late() {
        let rest = Rest::default();
        rest.enter();
        pass(&rest, 0, 3_000, Duration::from_secs(1), true);
        assert_eq!(rest.resting(), 0, "four times of what an answer takes");
        let late = Rest::default();
        late.enter();
        for milli in 0..10_000 {
            late.look(milli * 1_000_000, LATENCY, || EventLoop::Late);
        }
        assert_eq!(late.resting(), 0);
    }

    #[test]
    fn where_nobody_is_answered_it_takes_longer_each_time() {
        let rest = Rest::default();
        rest.enter();
        pass(&rest, 0, 700, LATENCY, false);
        assert_eq!(rest.resting(), 0, "a quarter and half of a second");
        pass(&rest, 700, 1_000, LATENCY, false);
        assert_eq!(rest.resting(), 1);
        rest.enter();
        pass(&rest, 1_000, 3_500, LATENCY, false);
        assert_eq!(rest.resting(), 1, "one and two seconds");
    }

    #[test]
    fn what_threads_count_at_the_wrong_place_is_even_in_the_end() {
        let rest = Rest::default();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let rest = &rest;
                scope.spawn(move || {
                    for turn in 0..20_000_u64 {
                        let now = turn * 100_000;
                        rest.enter();
                        rest.answered();
                        rest.look(now, LATENCY, || EventLoop::Unknown);
                        // Each came a moment before, or just now.
                        rest.leave(now.saturating_sub(thread * 100_000_000));
                    }
                });
            }
        });
        pass(&rest, 2_000, 4_000, LATENCY, true);
        assert_eq!(rest.resting.load(Ordering::Relaxed), 0);
    }
}
