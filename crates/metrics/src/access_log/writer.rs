//! The thread that writes one access log, its bounded queue, and what it reports about lost lines.
//!
//! A core never waits for it. The beginning and the end of a loss are one report each; every lost line counts in
//! `onehop_log_lines_dropped_total`.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use onehop_config::checked::{LogOutput, LogRoll};

use super::sink::Sink;
use crate::limits::{LOG_BATCHES_MAX, LOG_LOSS_QUIET, LOG_ROLL_RETRY};
use crate::recent::{Mark, Recent};

/// Receives a warning for the operator; must never wait.
pub type Warn = Arc<dyn Fn(String) + Send + Sync>;

/// A thread that writes log lines. It ends when the last owner is dropped, after the last line.
#[derive(Debug)]
pub struct LogWriter {
    shared: Arc<Shared>,
}

/// Whole lines.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) text: Vec<u8>,
    /// One for each line.
    pub(super) marks: Vec<Mark>,
}

/// What the cores and the thread share.
struct Shared {
    /// The log's path, or the stream's name.
    name: String,
    state: Mutex<State>,
    changed: Condvar,
    losses: Mutex<Option<Loss>>,
    dropped: Arc<AtomicU64>,
    warn: Warn,
    /// Has what was written last.
    recent: Arc<Recent>,
}

#[derive(Default)]
struct State {
    batches: VecDeque<Batch>,
    /// Lines that are being written.
    writing: u64,
    reopens: bool,
    is_closed: bool,
}

/// Lines are being lost.
struct Loss {
    lines: u64,
    /// The last time.
    at: Instant,
    /// A batch was written whole since then.
    is_written_since: bool,
}

/// What the thread does next.
enum Next {
    Write(Batch),
    Reopen,
    /// Check whether a loss is over.
    Check,
    End,
}

impl LogWriter {
    /// Opens the output and starts its thread. A file is appended to. Lost lines are added to `dropped`; those that were
    /// written last stay in `recent`.
    pub fn start(
        output: &LogOutput,
        roll: Option<LogRoll>,
        dropped: Arc<AtomicU64>,
        warn: Warn,
        recent: Arc<Recent>,
    ) -> io::Result<Self> {
        let sink = Sink::open(output, roll)?;
        let name = output.name();
        let shared = Shared {
            name,
            state: Mutex::default(),
            changed: Condvar::new(),
            losses: Mutex::default(),
            dropped,
            warn,
            recent,
        };
        let shared = Arc::new(shared);
        let state = Arc::clone(&shared);
        std::thread::Builder::new().name("access-log".into()).spawn(move || state.write_all(sink))?;
        Ok(Self { shared })
    }

    /// Opens a file anew at the same path, after the one before was moved away.
    pub fn reopen(&self) {
        self.shared.lock().reopens = true;
        self.shared.changed.notify_all();
    }

    /// Takes lines. Those that do not fit are lost; at a core's end, where one batch of each core comes, all fit.
    pub(super) fn hand_over(&self, batch: Batch, is_last: bool) {
        let mut state = self.shared.lock();
        if state.batches.len() >= LOG_BATCHES_MAX && !is_last {
            drop(state);
            self.shared.lost(batch.lines(), "it is written more slowly than requests are answered");
            return;
        }
        state.batches.push_back(batch);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Waits, at most until then, until every line is written, and reports lost lines.
    pub fn finish(&self, until: Instant) {
        let is_busy = |state: &mut State| !state.batches.is_empty() || state.writing > 0;
        let wait = until.saturating_duration_since(Instant::now());
        let waited = self.shared.changed.wait_timeout_while(self.shared.lock(), wait, is_busy);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let unwritten = std::mem::take(&mut state.batches);
        let unwritten = unwritten.iter().map(Batch::lines).sum::<u64>() + state.writing;
        drop(state);
        if unwritten > 0 {
            self.shared.lost(unwritten, "it was not written before the end");
        }
        // Not behind the lock: the warning may be a line of this very log.
        let loss = self.shared.lock_losses().take();
        if let Some(loss) = loss {
            (self.shared.warn)(format!("the log {}: {} lines were lost", self.shared.name, loss.lines));
        }
    }
}

impl Batch {
    fn lines(&self) -> u64 {
        self.marks.len() as u64
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn write_all(&self, mut sink: Sink) {
        let mut roll_tried: Option<Instant> = None;
        loop {
            match self.next() {
                Next::Write(batch) => {
                    if roll_tried.is_none_or(|tried| tried.elapsed() >= LOG_ROLL_RETRY)
                        && let Err(error) = sink.roll_before(batch.text.len())
                    {
                        roll_tried = Some(Instant::now());
                        (self.warn)(format!("the log {} cannot be rotated and grows on: {error}", self.name));
                    }
                    match sink.write(&batch.text, &batch.marks) {
                        Ok(()) => self.written(),
                        Err(failed) => self.lost(failed.lines, &failed.error.to_string()),
                    }
                    // Messages of the server are there already.
                    if !batch.marks.iter().any(Mark::is_of_server) {
                        self.recent.add_requests(batch.text, batch.marks);
                    }
                }
                Next::Reopen => {
                    if let Err(error) = sink.reopen() {
                        (self.warn)(format!(
                            "the log {} cannot be opened anew, the file before is written on: {error}",
                            self.name
                        ));
                    }
                }
                Next::Check => {}
                Next::End => return,
            }
            self.recover();
        }
    }

    /// The next step of the thread, which has finished the one before.
    fn next(&self) -> Next {
        let mut state = self.lock();
        state.writing = 0;
        self.changed.notify_all();
        loop {
            if let Some(batch) = state.batches.pop_front() {
                state.writing = batch.lines();
                return Next::Write(batch);
            }
            // Behind the lines that were there before it.
            if std::mem::take(&mut state.reopens) {
                return Next::Reopen;
            }
            if state.is_closed {
                return Next::End;
            }
            if self.lock_losses().as_ref().is_none_or(|loss| !loss.is_written_since) {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            } else {
                let waited = self.changed.wait_timeout(state, LOG_LOSS_QUIET);
                let (next, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                state = next;
                if timeout.timed_out() {
                    return Next::Check;
                }
            }
        }
    }

    fn lost(&self, lines: u64, reason: &str) {
        self.dropped.fetch_add(lines, Ordering::Relaxed);
        let mut losses = self.lock_losses();
        let is_first = losses.is_none();
        let loss =
            losses.get_or_insert_with(|| Loss { lines: 0, at: Instant::now(), is_written_since: false });
        loss.lines += lines;
        loss.at = Instant::now();
        loss.is_written_since = false;
        drop(losses);
        if is_first {
            (self.warn)(format!(
                "the log {} loses lines: {reason}; onehop_log_lines_dropped_total counts them",
                self.name
            ));
        }
    }

    fn written(&self) {
        if let Some(loss) = &mut *self.lock_losses() {
            loss.is_written_since = true;
        }
    }

    /// Reports that a loss is over, once lines were written and none was lost for [`LOG_LOSS_QUIET`].
    fn recover(&self) {
        let is_over = |loss: &mut Loss| loss.is_written_since && loss.at.elapsed() >= LOG_LOSS_QUIET;
        let over = self.lock_losses().take_if(is_over);
        if let Some(loss) = over {
            (self.warn)(format!("the log {} is written again: {} lines were lost", self.name, loss.lines));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_losses(&self) -> MutexGuard<'_, Option<Loss>> {
        self.losses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("name", &self.name).finish_non_exhaustive()
    }
}
