//! The output of this process: one bounded queue, and one thread that writes it.
//!
//! Only this thread waits for the terminal, pipe or file behind standard error (or standard output): a reload, a
//! stop and a request never do. The queue refuses lines of applications beyond its bound. Of other events it
//! keeps the newest of each kind and application, which takes the place of the oldest of its kind. The thread
//! reports how many were lost as soon as it can write again.

use std::collections::VecDeque;
use std::mem::{Discriminant, discriminant};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use onehop_server::Event;
use onehop_server::control::AppEvent;
use onehop_server::limits::{
    APP_EVENTS_WAITING_MAX, LOG_FINISH_DEADLINE, WORKER_LINES_WAITING_BYTES_MAX, WORKER_LINES_WAITING_MAX,
};

/// How often lost lines are reported while more are being lost.
const LOSS_REPORT_PERIOD: Duration = Duration::from_secs(1);

/// What is written, and what it is about.
pub(super) struct Entry {
    text: Option<String>,
    /// An event that moves or removes the progress bar.
    progress: Option<Event>,
    kind: Kind,
}

/// Decides what happens to an entry when the queue is full.
#[derive(PartialEq)]
enum Kind {
    /// Progress of a tree: only the newest is of interest.
    Reading,
    /// A line of an application: refused.
    AppLine,
    /// Takes the place of the oldest of its kind.
    Event(Discriminant<Event>),
    /// The same of an application.
    App(Discriminant<AppEvent>, String),
    /// A text of the program itself; a process writes a handful.
    Text,
}

impl Entry {
    /// An event with its line, if it has one.
    pub(super) fn event(event: &Event, text: Option<String>) -> Self {
        let moves_bar = matches!(
            event,
            Event::Reading { .. } | Event::Stored { .. } | Event::Compressed { .. } | Event::Stopping { .. }
        );
        let kind = match event {
            Event::Reading { .. } => Kind::Reading,
            Event::App(AppEvent::Output { .. }) => Kind::AppLine,
            Event::App(event) => Kind::App(discriminant(event), app_of(event).to_owned()),
            other => Kind::Event(discriminant(other)),
        };
        Self { text, progress: moves_bar.then(|| event.clone()), kind }
    }

    /// A text of the program itself.
    pub(super) fn text(text: &str) -> Self {
        Self { text: Some(text.to_owned()), progress: None, kind: Kind::Text }
    }

    fn bytes(&self) -> usize {
        self.text.as_ref().map_or(0, String::len)
    }
}

/// What the thread writes next.
pub(super) enum Next {
    /// A line, after the progress bar was moved.
    Entry(Option<String>, Option<Event>),
    /// So many were lost since the last report.
    Lost(Lost),
}

/// Counts of what could not be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Lost {
    /// Lines of applications.
    pub(super) lines: u64,
    /// Other events.
    pub(super) events: u64,
}

/// Between the callers and the thread.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    entries: VecDeque<Entry>,
    /// How many of them are lines of applications, and their bytes.
    lines: usize,
    line_bytes: usize,
    lost: Lost,
    reported: Option<Instant>,
    is_writing: bool,
}

impl Queue {
    /// Starts the thread.
    pub(super) fn start(mut write: impl FnMut(Next) + Send + 'static) -> std::io::Result<Arc<Self>> {
        let queue = Arc::new(Self::default());
        let its = Arc::clone(&queue);
        // Ends with the process, whatever it waits for then.
        std::thread::Builder::new().name("output".into()).spawn(move || {
            loop {
                write(its.next());
            }
        })?;
        Ok(queue)
    }

    /// Adds an entry, or counts it; never waits for the thread.
    pub(super) fn push(&self, entry: Entry) {
        self.lock().push(entry);
        self.changed.notify_all();
    }

    /// Waits, at most [`LOG_FINISH_DEADLINE`], until everything is written.
    pub(super) fn finish(&self) {
        let is_busy = |state: &mut State| !state.entries.is_empty() || state.is_writing;
        drop(self.changed.wait_timeout_while(self.lock(), LOG_FINISH_DEADLINE, is_busy));
    }

    /// Waits for what is to be written next; what was returned before is written by then.
    fn next(&self) -> Next {
        let mut state = self.lock();
        state.is_writing = false;
        self.changed.notify_all();
        loop {
            if let Some(next) = state.next() {
                state.is_writing = true;
                return next;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, entry: Entry) {
        match &entry.kind {
            Kind::Reading => {
                if let Some(last) = self.entries.back_mut().filter(|last| last.kind == Kind::Reading) {
                    *last = entry;
                    return;
                }
            }
            Kind::AppLine => {
                let bytes = self.line_bytes + entry.bytes();
                if self.lines >= WORKER_LINES_WAITING_MAX || bytes > WORKER_LINES_WAITING_BYTES_MAX {
                    self.lost.lines += 1;
                    return;
                }
                self.lines += 1;
                self.line_bytes = bytes;
            }
            kind @ (Kind::Event(..) | Kind::App(..))
                if self.entries.len() - self.lines >= APP_EVENTS_WAITING_MAX =>
            {
                // Without an older one this is the first of its kind, of which there are few.
                if let Some(older) = self.entries.iter().position(|other| other.kind == *kind) {
                    self.entries.remove(older);
                    self.lost.events += 1;
                }
            }
            Kind::Event(..) | Kind::App(..) | Kind::Text => {}
        }
        self.entries.push_back(entry);
    }

    fn next(&mut self) -> Option<Next> {
        let is_due = self.reported.is_none_or(|reported| reported.elapsed() >= LOSS_REPORT_PERIOD);
        if self.lost != Lost::default() && (is_due || self.entries.is_empty()) {
            self.reported = Some(Instant::now());
            return Some(Next::Lost(std::mem::take(&mut self.lost)));
        }
        let entry = self.entries.pop_front()?;
        if entry.kind == Kind::AppLine {
            self.lines -= 1;
            self.line_bytes -= entry.bytes();
        }
        Some(Next::Entry(entry.text, entry.progress))
    }
}

impl Lost {
    /// For a person.
    pub(super) fn message(self) -> String {
        let Self { lines, events } = self;
        let lost = match (lines, events) {
            (lines, 0) => format!("{lines} lines of applications"),
            (0, events) => format!("{events} events"),
            (lines, events) => format!("{lines} lines of applications and {events} events"),
        };
        format!("{lost} were not shown: the output of this process did not take them in time")
    }
}

/// The application that an event is about.
pub(super) fn app_of(event: &AppEvent) -> &str {
    match event {
        AppEvent::Ready { app, .. }
        | AppEvent::SpeaksHttp { app, .. }
        | AppEvent::Failing { app, .. }
        | AppEvent::CrashLoop { app, .. }
        | AppEvent::Rolled { app, .. }
        | AppEvent::WorkerEnded { app, .. }
        | AppEvent::WorkerStuck { app, .. }
        | AppEvent::Output { app, .. } => app,
        AppEvent::Unpacked { .. } | AppEvent::Warning { .. } => "",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn rolled(app: &str, workers: usize) -> Entry {
        let event = Event::App(AppEvent::Rolled { app: app.to_owned(), workers, took: Duration::ZERO });
        Entry::event(&event, Some(format!("{app} {workers}")))
    }

    fn line(text: &str) -> Entry {
        let event = Event::App(AppEvent::Output {
            app: "api".into(),
            pid: 1,
            is_error: false,
            line: text.to_owned(),
        });
        Entry::event(&event, Some(text.to_owned()))
    }

    type Written = Arc<Mutex<(Vec<String>, Lost)>>;

    /// A queue whose thread is blocked in writing its first entry until the sender is dropped.
    fn blocked() -> (Arc<Queue>, mpsc::Sender<()>, Written) {
        let (reached, blocked) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let written = Arc::new(Mutex::new((Vec::new(), Lost::default())));
        let its = Arc::clone(&written);
        let queue = Queue::start(move |next| {
            let _ = reached.send(());
            let _ = released.recv();
            let mut written = its.lock().expect("unpoisoned");
            match next {
                Next::Entry(text, _) => written.0.extend(text),
                Next::Lost(lost) => {
                    written.1.lines += lost.lines;
                    written.1.events += lost.events;
                }
            }
        })
        .expect("started");
        queue.push(rolled("first", 0));
        blocked.recv().expect("it is blocked");
        (queue, release, written)
    }

    #[test]
    fn lines_beyond_their_number_or_bytes_are_lost_and_counted() {
        for (text, kept) in [("x".to_owned(), WORKER_LINES_WAITING_MAX), ("x".repeat(1024 * 1024), 8)] {
            let (queue, release, written) = blocked();
            for _ in 0..kept + 100 {
                queue.push(line(&text));
            }
            drop(release);
            queue.finish();
            let written = written.lock().expect("unpoisoned");
            assert_eq!((written.0.len(), written.1), (kept + 1, Lost { lines: 100, events: 0 }));
            assert_eq!(queue.lock().line_bytes, 0);
        }
    }

    #[test]
    fn the_newest_event_of_each_application_is_never_lost() {
        let (queue, release, written) = blocked();
        for number in 0..3 * APP_EVENTS_WAITING_MAX {
            queue.push(rolled("api", number));
        }
        queue.push(rolled("other", 7));
        drop(release);
        queue.finish();
        let written = written.lock().expect("unpoisoned");
        let newest = format!("api {}", 3 * APP_EVENTS_WAITING_MAX - 1);
        assert_eq!(written.0.iter().rev().take(2).collect::<Vec<_>>(), ["other 7", &newest]);
        assert_eq!(written.1.events, 2 * APP_EVENTS_WAITING_MAX as u64);
    }

    #[test]
    fn a_thread_that_is_blocked_for_ever_holds_up_the_end_for_a_bounded_time_only() {
        let (queue, _release, _) = blocked();
        let begun = Instant::now();
        queue.finish();
        assert!(begun.elapsed() < LOG_FINISH_DEADLINE + Duration::from_secs(5));
    }
}
