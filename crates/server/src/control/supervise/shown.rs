//! Shows the supervisor's events on a thread of its own, so that a terminal that stands still stops nobody.
//!
//! Never makes who tells wait. What waits is bounded: lines of output are refused beyond their bound. Of what
//! happened to applications the newest of each kind and application is never lost; where too much waits, it
//! takes the place of the oldest of its kind, and how many went that way is told.

use std::collections::VecDeque;
use std::mem::discriminant;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::control::events::{Event, EventSink};
use crate::limits::{
    APP_EVENTS_WAITING_MAX, LOG_FINISH_DEADLINE, WORKER_LINES_WAITING_BYTES_MAX, WORKER_LINES_WAITING_MAX,
};

/// Where events are handed over. The thread ends with the last of these, once all is shown.
#[derive(Clone)]
pub(super) struct Shown {
    door: Arc<Door>,
}

struct Door {
    desk: Arc<Desk>,
}

/// Between who tells and the thread.
#[derive(Default)]
struct Desk {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Event>,
    /// How many of them are lines of output.
    lines: usize,
    /// Bytes of these lines.
    line_bytes: usize,
    /// Events that newer ones took the place of, and that nobody was told of yet.
    superseded: u64,
    is_showing: bool,
    is_closed: bool,
}

impl Shown {
    /// Starts the thread.
    pub(super) fn start(events: EventSink) -> std::io::Result<Self> {
        let desk = Arc::new(Desk::default());
        let its_desk = Arc::clone(&desk);
        std::thread::Builder::new().name("app-output".into()).spawn(move || {
            while let Some(event) = its_desk.next() {
                events(event);
            }
        })?;
        Ok(Self { door: Arc::new(Door { desk }) })
    }

    /// A line of output; whether it will be shown.
    pub(super) fn show_line(&self, line: Event) -> bool {
        let desk = &self.door.desk;
        let mut waiting = desk.lock();
        let bytes = waiting.line_bytes + line_bytes(&line);
        if waiting.lines >= WORKER_LINES_WAITING_MAX || bytes > WORKER_LINES_WAITING_BYTES_MAX {
            return false;
        }
        waiting.lines += 1;
        waiting.line_bytes = bytes;
        waiting.events.push_back(line);
        desk.changed.notify_all();
        true
    }

    /// What happened to an application.
    pub(super) fn tell(&self, event: Event) {
        let desk = &self.door.desk;
        desk.lock().tell(event);
        desk.changed.notify_all();
    }

    /// Waits, within a bound, until what was handed over is shown.
    pub(super) fn finish(&self) {
        let desk = &self.door.desk;
        let is_busy = |waiting: &mut Waiting| !waiting.events.is_empty() || waiting.is_showing;
        drop(desk.changed.wait_timeout_while(desk.lock(), LOG_FINISH_DEADLINE, is_busy));
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.desk.lock().is_closed = true;
        self.desk.changed.notify_all();
    }
}

impl Desk {
    /// The next event to be shown; whoever asks has shown the one before.
    fn next(&self) -> Option<Event> {
        let mut waiting = self.lock();
        waiting.is_showing = false;
        self.changed.notify_all();
        let is_idle = |waiting: &mut Waiting| waiting.events.is_empty() && !waiting.is_closed;
        let mut waiting = self.changed.wait_while(waiting, is_idle).unwrap_or_else(PoisonError::into_inner);
        let event = waiting.next()?;
        waiting.is_showing = true;
        Some(event)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn tell(&mut self, event: Event) {
        if self.events.len() - self.lines >= APP_EVENTS_WAITING_MAX {
            let kind = discriminant(&event);
            let is_older = |other: &Event| discriminant(other) == kind && app_of(other) == app_of(&event);
            // Without one it is the first of its kind, of which there are few.
            if let Some(place) = self.events.iter().position(is_older) {
                self.events.remove(place);
                self.superseded += 1;
            }
        }
        self.events.push_back(event);
    }

    fn next(&mut self) -> Option<Event> {
        if self.superseded > 0 {
            let count = std::mem::take(&mut self.superseded);
            let message = format!("{count} events of applications were not shown: the log did not take them");
            return Some(Event::Warning { message });
        }
        let event = self.events.pop_front()?;
        self.lines -= usize::from(matches!(event, Event::AppOutput { .. }));
        self.line_bytes -= line_bytes(&event);
        Some(event)
    }
}

fn line_bytes(event: &Event) -> usize {
    match event {
        Event::AppOutput { line, .. } => line.len(),
        _ => 0,
    }
}

/// The application that an event of the supervisor is about.
fn app_of(event: &Event) -> &str {
    match event {
        Event::AppReady { app, .. }
        | Event::AppSpeaksHttp { app, .. }
        | Event::AppFailing { app, .. }
        | Event::AppRolled { app, .. }
        | Event::WorkerEnded { app, .. }
        | Event::WorkerStuck { app, .. } => app,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    fn rolled(app: &str, workers: usize) -> Event {
        Event::AppRolled { app: app.to_owned(), workers, took: Duration::ZERO }
    }

    fn line() -> Event {
        Event::AppOutput { app: "api".into(), pid: 1, is_error: false, line: "x".into() }
    }

    #[test]
    fn a_burst_of_lines_waits_and_long_ones_are_bounded_by_their_bytes() {
        let (reached, standing) = mpsc::channel();
        let (go_on, gate) = mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        let shown = Shown::start(Arc::new(move |_| {
            let _ = reached.send(());
            let _ = gate.lock().expect("unpoisoned").recv();
        }))
        .expect("started");
        shown.tell(rolled("first", 0));
        standing.recv().expect("it stands still");
        assert!((0..20_000).all(|_| shown.show_line(line())));
        let long = || Event::AppOutput {
            app: "api".into(),
            pid: 1,
            is_error: false,
            line: "x".repeat(WORKER_LINES_WAITING_BYTES_MAX / 4),
        };
        assert_eq!((0..9).filter(|_| shown.show_line(long())).count(), 3);
        drop(go_on);
        shown.finish();
        assert_eq!(shown.door.desk.lock().line_bytes, 0);
        assert!(shown.show_line(long()));
    }

    #[test]
    fn a_sink_that_stands_still_stops_nobody_and_loses_no_newest_state() {
        let (reached, standing) = mpsc::channel();
        let (go_on, gate) = mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        let all = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&all);
        let shown = Shown::start(Arc::new(move |event| {
            let _ = reached.send(());
            // Its other end is dropped when it may go on.
            let _ = gate.lock().expect("unpoisoned").recv();
            seen.lock().expect("unpoisoned").push(event);
        }))
        .expect("started");
        shown.tell(rolled("first", 0));
        standing.recv().expect("it stands still");
        let taken = (0..2 * WORKER_LINES_WAITING_MAX).filter(|_| shown.show_line(line())).count();
        assert_eq!(taken, WORKER_LINES_WAITING_MAX);
        for number in 0..3 * APP_EVENTS_WAITING_MAX {
            shown.tell(rolled("api", number));
        }
        shown.tell(rolled("other", 7));
        let waiting = shown.door.desk.lock().events.len();
        assert_eq!(waiting, WORKER_LINES_WAITING_MAX + APP_EVENTS_WAITING_MAX + 1);
        drop(go_on);
        shown.finish();
        let all = all.lock().expect("unpoisoned");
        assert_eq!(all.last(), Some(&rolled("other", 7)));
        assert!(all.contains(&rolled("api", 3 * APP_EVENTS_WAITING_MAX - 1)));
        let told = format!("{} events", 2 * APP_EVENTS_WAITING_MAX);
        let is_told =
            |event: &Event| matches!(event, Event::Warning { message } if message.starts_with(&told));
        assert!(all.iter().any(is_told));
    }
}
