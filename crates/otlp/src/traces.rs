//! The queue of spans, and the thread that exports them.
//!
//! The thread begins with the first span, so that a server without `tracing` has none. A receiver that is not there costs the spans
//! of that time, which are counted, one report, and another one when it is back.

use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use onehop_config::checked::OtlpExport;

use crate::json;
use crate::limits::{SPANS_OF_EXPORT_MAX, SPANS_WAITING_MAX, STOP_WITHIN};
use crate::receiver::{Failure, Receiver, Report, Roots};
use crate::span::Span;

/// Spans on their way out. Cores share one.
#[derive(Clone)]
pub struct Traces {
    queue: Arc<Queue>,
    roots: Roots,
    report: Report,
}

struct Queue {
    state: Mutex<State>,
    /// Notified when a first span waits, an export is full, the server stops, or the thread ends.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    spans: Vec<Span>,
    /// Spans that are being exported, and may come back.
    exporting: usize,
    /// Spans that were lost since exports went well last.
    lost: u64,
    /// The server stops.
    is_stopping: bool,
    /// The thread runs.
    is_exporting: bool,
}

impl Traces {
    /// Exports nothing until the first span comes.
    pub fn new(roots: Roots, report: Report) -> Self {
        Self { queue: Arc::new(Queue { state: Mutex::default(), changed: Condvar::new() }), roots, report }
    }

    /// Takes a span, or counts it as lost where too many wait. The first one says where all of them go: the environment is the
    /// same for the whole process.
    pub fn add(&self, span: Span, export: &Arc<OtlpExport>) {
        let Some(url) = &export.url else { return };
        let mut state = self.queue.lock();
        if state.spans.len() + state.exporting >= SPANS_WAITING_MAX {
            state.lost += 1;
            return;
        }
        state.spans.push(span);
        if state.spans.len() == 1 || state.spans.len() == SPANS_OF_EXPORT_MAX {
            self.queue.changed.notify_all();
        }
        if state.is_exporting || state.is_stopping {
            return;
        }
        let (export, url, traces) = (Arc::clone(export), url.clone(), self.clone());
        let thread = thread::Builder::new().name("traces".into()).spawn(move || traces.run(&export, &url));
        state.is_exporting = thread.is_ok();
    }

    /// Exports what waits, within a bounded time: an export that takes longer ends with the process.
    pub fn stop(&self) {
        let mut state = self.queue.lock();
        state.is_stopping = true;
        self.queue.changed.notify_all();
        let is_exporting = |state: &mut State| state.is_exporting;
        drop(self.queue.changed.wait_timeout_while(state, STOP_WITHIN, is_exporting));
    }

    /// Exports until the server stops.
    fn run(&self, export: &OtlpExport, url: &str) {
        match Receiver::new(export, url, self.roots) {
            Ok(receiver) => self.export(&receiver),
            Err(cause) => {
                (self.report)(format!("spans are not exported to {url}: {cause}"));
                // Those that come are dropped in the queue.
                self.queue.wait_for_stop();
            }
        }
        self.queue.lock().is_exporting = false;
        self.queue.changed.notify_all();
    }

    fn export(&self, receiver: &Receiver<'_>) {
        let url = receiver.url;
        let (mut is_troubled, mut known_lost) = (false, 0);
        loop {
            let (spans, is_stopping) = self.queue.wait(receiver.export.delay);
            if spans.is_empty() {
                return;
            }
            let sent = send_all(receiver, &spans);
            let (mut state, mut report) = (self.queue.lock(), None);
            state.exporting = 0;
            if let Err((left, Failure { cause, is_temporary })) = sent {
                if is_temporary && !is_stopping {
                    state.spans.extend_from_slice(left);
                } else {
                    state.lost += left.len() as u64;
                }
                let next = "look at the receiver, or correct OTEL_EXPORTER_OTLP_ENDPOINT";
                report = (!is_troubled).then(|| format!("spans are not exported to {url}: {cause}; {next}"));
                is_troubled = true;
            } else if state.lost > known_lost {
                let next = "export fewer with OTEL_TRACES_SAMPLER";
                let message =
                    || format!("spans are lost: more than {SPANS_WAITING_MAX} wait for {url}; {next}");
                report = (!is_troubled).then(message);
                is_troubled = true;
            } else if is_troubled {
                let lost = mem::take(&mut state.lost);
                report = Some(format!("spans are exported to {url} again; {lost} were lost"));
                is_troubled = false;
            }
            known_lost = state.lost;
            drop(state);
            if let Some(report) = report {
                (self.report)(report);
            }
            if is_stopping {
                return;
            }
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a first span, then for so long or for a full export; a stop ends both. All spans, and whether the server stops.
    fn wait(&self, delay: Duration) -> (Vec<Span>, bool) {
        let is_empty = |state: &mut State| state.spans.is_empty() && !state.is_stopping;
        let state = self.changed.wait_while(self.lock(), is_empty).unwrap_or_else(PoisonError::into_inner);
        // What could not be exported waits for the whole time, however much it is.
        let known = state.spans.len();
        let is_waited_for = |state: &mut State| {
            let is_full = state.spans.len() >= SPANS_OF_EXPORT_MAX && state.spans.len() > known;
            !is_full && !state.is_stopping
        };
        let waited = self.changed.wait_timeout_while(state, delay, is_waited_for);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.exporting = state.spans.len();
        (mem::take(&mut state.spans), state.is_stopping)
    }

    fn wait_for_stop(&self) {
        drop(self.changed.wait_while(self.lock(), |state| !state.is_stopping));
    }
}

/// Sends spans in exports of bounded size. The error has those that were not taken; after it no further export is tried.
fn send_all<'s>(receiver: &Receiver<'_>, spans: &'s [Span]) -> Result<(), (&'s [Span], Failure)> {
    for (number, part) in spans.chunks(SPANS_OF_EXPORT_MAX).enumerate() {
        let sent = receiver.send(json::of_spans(&receiver.export.resource, part));
        sent.map_err(|failure| (spans.get(number * SPANS_OF_EXPORT_MAX..).unwrap_or_default(), failure))?;
    }
    Ok(())
}
