//! What the calling thread does while the others load: it listens, tells the observer, and ends the run.
//!
//! Owns the decision that a run is over for another reason than its time or its number of requests.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::limits::{HOPELESS_AFTER, PIECE};
use super::record::Piece;
use super::series::{Cut, Series, merged, quantile};
use super::thread::{Shared, nanoseconds};
use crate::outcome::End;
use crate::plan::Plan;
use crate::progress::{Observer, Progress};

/// Failures below which nothing is hopeless, where there are as many connections.
const FAILURES_MIN: usize = 10;

/// Answers that have to have one unexpected status before a run is given up for it: a server that warms up may refuse
/// a few.
const SAME_STATUS_MIN: u64 = 10;

/// A run that goes on.
pub(super) struct Watch<'a> {
    plan: &'a Plan,
    shared: &'a Shared,
    series: Series,
    threads: usize,
    origin: Instant,
    piece_length: f64,
    /// Pieces that have not come from all threads.
    growing: BTreeMap<(bool, u64), Growing>,
    progress: Progress,
    /// Whole answers, of the warm-up too.
    responses: u64,
    /// The unexpected status that all answers had until now.
    only_status: OnlyStatus,
    failures: u64,
    end: Option<End>,
}

/// Which statuses came.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnlyStatus {
    Nothing,
    /// This unexpected one alone.
    One(u16),
    /// An expected one, or several.
    Various,
}

#[derive(Default)]
struct Growing {
    threads: usize,
    good: u64,
    steps: Vec<(Duration, u64)>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(plan: &'a Plan, shared: &'a Shared, cut: Cut, threads: usize, origin: Instant) -> Self {
        Watch {
            plan,
            shared,
            series: Series::new(cut, threads),
            threads,
            origin,
            piece_length: Duration::from_nanos(cut.piece).as_secs_f64(),
            growing: BTreeMap::new(),
            progress: Progress::default(),
            responses: 0,
            only_status: OnlyStatus::Nothing,
            failures: 0,
            end: None,
        }
    }

    /// Waits until all threads are done.
    pub(super) fn until_over(
        mut self,
        pieces: &Receiver<Piece>,
        observer: &mut dyn Observer,
    ) -> (End, Series) {
        let mut next = self.origin + PIECE;
        loop {
            match pieces.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(piece) => self.take(&piece),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    next = Instant::now() + PIECE;
                    self.look(observer);
                }
            }
        }
        let is_spent = self.shared.spent.load(Ordering::Relaxed);
        let end = self.end.unwrap_or(if is_spent { End::Requests } else { End::Time });
        (end, self.series)
    }

    fn take(&mut self, piece: &Piece) {
        self.series.add(piece);
        self.responses += piece.good + piece.unexpected;
        self.failures += piece.failures;
        self.only_status = self.only_status.after(piece);
        if self.progress.is_warming_up && !piece.is_warm_up {
            self.progress = Progress::default();
            self.growing.retain(|(is_measured, _), _| *is_measured);
        }
        if piece.is_warm_up || !self.progress.is_warming_up {
            self.progress.is_warming_up = piece.is_warm_up;
            self.progress.good += piece.good;
            self.progress.bad += piece.unexpected + piece.failures;
        }
        let key = (!piece.is_warm_up, piece.index);
        let growing = self.growing.entry(key).or_default();
        growing.threads += 1;
        growing.good += piece.good;
        growing.steps = merged(&growing.steps, &piece.steps);
        if growing.threads >= self.threads {
            self.progress.rate = growing.good as f64 / self.piece_length;
            self.progress.p50 = quantile(&growing.steps, 0.5);
            self.progress.p99 = quantile(&growing.steps, 0.99);
            // Those before it, which some thread slept through, are over too.
            self.growing = self.growing.split_off(&(key.0, key.1 + 1));
        }
    }

    fn look(&mut self, observer: &mut dyn Observer) {
        let since = self.origin.elapsed();
        let warm_up = self.plan.warm_up;
        let progress = &mut self.progress;
        progress.is_warming_up = since < warm_up;
        progress.elapsed = if progress.is_warming_up { since } else { since - warm_up };
        progress.share = if progress.is_warming_up {
            Some(since.as_secs_f64() / warm_up.as_secs_f64())
        } else {
            let share = |part: f64, whole: f64| (part / whole).min(1.0);
            let elapsed = progress.elapsed.as_secs_f64();
            let of_time = self.plan.until.time.map(|time| share(elapsed, time.as_secs_f64()));
            let done = (progress.good + progress.bad) as f64;
            let of_requests = self.plan.until.requests.map(|requests| share(done, requests as f64));
            of_time.into_iter().chain(of_requests).reduce(f64::max)
        };
        observer.progress(&self.progress);
        if self.end.is_some() {
            return;
        }
        if observer.is_interrupted() {
            self.stop(End::Interrupted, true);
        } else if self.is_hopeless(since) {
            let failure = self.shared.failure.lock().ok().and_then(|failure| failure.clone());
            self.stop(End::Hopeless(failure.unwrap_or_default()), true);
        } else if let (OnlyStatus::One(status), SAME_STATUS_MIN..) = (self.only_status, self.responses) {
            self.stop(End::OneStatus { status, answers: self.responses }, true);
        } else if let (Some(narrow), Some(width)) = (self.plan.until.narrow, self.series.width())
            && width < narrow
        {
            self.stop(End::Narrow, false);
        }
    }

    fn is_hopeless(&self, since: Duration) -> bool {
        let failures_min = self.plan.pace.connections().min(FAILURES_MIN) as u64;
        since >= HOPELESS_AFTER && self.responses == 0 && self.failures >= failures_min
    }

    fn stop(&mut self, end: End, abrupt: bool) {
        self.end = Some(end);
        let now = nanoseconds(self.origin.elapsed());
        self.shared.end.fetch_min(now, Ordering::Relaxed);
        self.shared.abrupt.store(abrupt, Ordering::Relaxed);
    }
}

impl OnlyStatus {
    fn after(self, piece: &Piece) -> OnlyStatus {
        match (self, piece.status) {
            _ if piece.good > 0 || piece.has_other_statuses => OnlyStatus::Various,
            (OnlyStatus::Nothing, Some(status)) => OnlyStatus::One(status),
            (OnlyStatus::One(before), Some(status)) if before != status => OnlyStatus::Various,
            (before, _) => before,
        }
    }
}
