//! What one thread notes while it asks.
//!
//! Owns the counts, the pieces of the series that are handed over as time goes by, and the quiet times. Notes a
//! request when it is over, never before. Requests that began in the warm-up are in no tally; the series has every
//! answer that ended in its time.

use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use super::limits::{QUIETS_MAX, STALL_MIN};
use crate::latency::Latencies;
use crate::outcome::{Failures, Tally};

/// A piece of the series over time, of one thread.
#[derive(Debug, Default)]
pub(super) struct Piece {
    /// The thread.
    pub thread: usize,
    /// Its number from the begin of the measurement, or of the warm-up.
    pub index: u64,
    /// It is of the warm-up.
    pub is_warm_up: bool,
    /// Whole, expected answers.
    pub good: u64,
    /// Whole answers with another status.
    pub unexpected: u64,
    /// The first of those statuses.
    pub status: Option<u16>,
    /// There are others among them.
    pub has_other_statuses: bool,
    /// Requests without a whole answer.
    pub failures: u64,
    /// Latencies of the good, value and count, in rising order.
    pub steps: Vec<(Duration, u64)>,
}

/// A time in which a thread had no answer. Nanoseconds of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quiet {
    /// The answer before.
    pub from: u64,
    /// The answer after.
    pub to: u64,
    /// Since when an answer was waited for; `None` where none was.
    pub waiting: Option<u64>,
}

/// Why there is no whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    Connect,
    Tls,
    Closed,
    Truncated,
    Reset,
    GoAway,
    Malformed,
    TimedOut,
    Unsent,
}

/// A request that is over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Past {
    pub request: usize,
    pub begun: u64,
    pub sent: u64,
    pub now: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
}

/// The times that matter to notes, nanoseconds of the run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// The end of the warm-up.
    pub measured_from: u64,
    /// The length of a piece.
    pub piece: u64,
}

/// The notes of one thread.
#[derive(Debug)]
pub(super) struct Record {
    times: Times,
    is_open: bool,
    tallies: Vec<Tally>,
    /// Whole answers by request and status; a map would be looked through for each answer.
    statuses: Vec<Vec<u64>>,
    piece: Piece,
    piece_latencies: Latencies,
    piece_end: u64,
    sender: SyncSender<Piece>,
    quiets: Vec<Quiet>,
    last_response: u64,
    /// Since when requests were waited for that were given up after the last answer.
    given_up_since: Option<u64>,
    /// How long requests were waited for that were given up; of the measured time, all requests together.
    given_up: Latencies,
    /// When the last counted request was over.
    last_end: u64,
    /// Good answers that ended in the measured time, whenever they began.
    completed: u64,
}

/// What is left of the notes at the end.
#[derive(Debug)]
pub(super) struct Notes {
    pub tallies: Vec<Tally>,
    pub quiets: Vec<Quiet>,
    pub given_up: Latencies,
    pub last_end: u64,
    pub completed: u64,
}

/// Statuses that are counted: those that a status line can say.
const STATUSES: usize = 1000;

impl Record {
    pub(super) fn new(
        requests: usize,
        is_open: bool,
        thread: usize,
        times: Times,
        sender: SyncSender<Piece>,
    ) -> Self {
        let mut record = Record {
            times,
            is_open,
            tallies: vec![Tally::default(); requests],
            statuses: vec![vec![0; STATUSES]; requests],
            piece: Piece { thread, ..Piece::default() },
            piece_latencies: Latencies::new(),
            piece_end: 0,
            sender,
            quiets: Vec::new(),
            last_response: 0,
            given_up_since: None,
            given_up: Latencies::new(),
            last_end: 0,
            completed: 0,
        };
        record.next_piece(0);
        record
    }

    /// When the current piece of the series is over.
    pub(super) fn piece_end(&self) -> u64 {
        self.piece_end
    }

    /// Hands over what is over.
    #[inline]
    pub(super) fn tick(&mut self, now: u64) {
        if now >= self.piece_end {
            self.hand_over();
            self.next_piece(now);
        }
    }

    /// A whole answer came. `waiting` is since when the thread waited for any, `in_time` whether the run's time
    /// was not over.
    #[inline]
    pub(super) fn response(&mut self, past: Past, status: u16, expected: bool, waiting: u64, in_time: bool) {
        self.tick(past.now);
        if past.now.saturating_sub(self.last_response) > STALL_MIN.as_nanos() as u64 {
            self.note_quiet(past.now, Some(waiting));
        }
        self.last_response = past.now;
        self.given_up_since = None;
        let took = Duration::from_nanos(past.now.saturating_sub(past.begun));
        if expected {
            self.piece.good += 1;
            self.piece_latencies.record(took);
            if in_time && past.now >= self.times.measured_from {
                self.completed += 1;
            }
        } else {
            self.piece.unexpected += 1;
            let first = *self.piece.status.get_or_insert(status);
            self.piece.has_other_statuses |= status != first;
        }
        if past.begun < self.times.measured_from {
            return;
        }
        self.last_end = past.now;
        let Some(tally) = self.tallies.get_mut(past.request) else { return };
        tally.bytes_read += past.bytes_read;
        tally.bytes_written += past.bytes_written;
        if let Some(count) =
            self.statuses.get_mut(past.request).and_then(|counts| counts.get_mut(usize::from(status)))
        {
            *count += 1;
        }
        if expected {
            tally.good += 1;
            tally.latency.record(took);
            if self.is_open {
                tally.service.record(Duration::from_nanos(past.now.saturating_sub(past.sent)));
            }
        } else {
            tally.unexpected += 1;
            tally.unexpected_latency.record(took);
        }
    }

    /// There is no whole answer.
    pub(super) fn failure(&mut self, past: Past, failure: Failure) {
        self.tick(past.now);
        self.piece.failures += 1;
        if failure == Failure::TimedOut {
            self.given_up_since = Some(self.given_up_since.map_or(past.sent, |since| since.min(past.sent)));
        }
        if past.begun < self.times.measured_from {
            return;
        }
        if failure == Failure::TimedOut {
            self.given_up.record(Duration::from_nanos(past.now.saturating_sub(past.begun)));
        }
        // A request that was never sent ends nothing.
        if failure != Failure::Unsent {
            self.last_end = past.now;
        }
        let Some(tally) = self.tallies.get_mut(past.request) else { return };
        tally.bytes_read += past.bytes_read;
        tally.bytes_written += past.bytes_written;
        *counter(&mut tally.failures, failure) += 1;
    }

    /// The end, with what was still waited for.
    pub(super) fn finish(mut self, now: u64, waiting: Option<u64>) -> Notes {
        self.note_quiet(now, waiting);
        self.hand_over();
        for (tally, counts) in self.tallies.iter_mut().zip(&self.statuses) {
            let seen = (0_u16..).zip(counts).filter(|(_, count)| **count > 0);
            tally.statuses = seen.map(|(status, count)| (status, *count)).collect();
        }
        Notes {
            tallies: self.tallies,
            quiets: self.quiets,
            given_up: self.given_up,
            last_end: self.last_end,
            completed: self.completed,
        }
    }

    fn note_quiet(&mut self, now: u64, waiting: Option<u64>) {
        let waiting = waiting.into_iter().chain(self.given_up_since).min();
        if self.quiets.len() < QUIETS_MAX {
            self.quiets.push(Quiet { from: self.last_response, to: now, waiting });
        }
    }

    fn hand_over(&mut self) {
        let thread = self.piece.thread;
        let mut piece = std::mem::replace(&mut self.piece, Piece { thread, ..Piece::default() });
        piece.steps = self.piece_latencies.steps().collect();
        self.piece_latencies.clear();
        match self.sender.try_send(piece) {
            // Somebody who watches and does not come for a minute loses the series, and no count.
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }

    fn next_piece(&mut self, now: u64) {
        let Times { measured_from, piece } = self.times;
        let is_warm_up = now < measured_from;
        let origin = if is_warm_up { 0 } else { measured_from };
        let index = (now - origin) / piece.max(1);
        let end = origin.saturating_add((index + 1).saturating_mul(piece));
        self.piece.index = index;
        self.piece.is_warm_up = is_warm_up;
        self.piece_end = if is_warm_up { end.min(measured_from) } else { end };
    }
}

fn counter(failures: &mut Failures, failure: Failure) -> &mut u64 {
    match failure {
        Failure::Connect => &mut failures.connect,
        Failure::Tls => &mut failures.tls,
        Failure::Closed => &mut failures.closed,
        Failure::Truncated => &mut failures.truncated,
        Failure::Reset => &mut failures.reset,
        Failure::GoAway => &mut failures.goaway,
        Failure::Malformed => &mut failures.malformed,
        Failure::TimedOut => &mut failures.timed_out,
        Failure::Unsent => &mut failures.unsent,
    }
}
