//! The history at work: one thread that is no core's samples what all cores have counted, and writes events down.
//!
//! Nothing of the data plane waits for it: counters are read while cores write them, and events that come while the
//! disk is slow are dropped beyond a bound. `meter.rs` makes samples, `overload.rs` finds overloads in them, `explain.rs` chooses
//! the events that explain a curve. Views are answered on the admin's threads.

mod explain;
mod meter;
mod overload;
mod process;
mod view;

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use onehop_config::checked;
use onehop_history::limits::SAMPLE_SECONDS;
use onehop_history::{Event as Kept, History, Settings};
use onehop_metrics::site::SiteCounters;
use onehop_supervisor::{AppStatus, data};

use super::events::{Event, EventSink};
use crate::limits::HISTORY_EVENTS_WAITING_MAX;
use meter::Meter;
use overload::Overloads;

pub(super) use view::handlers;
pub use view::{Live, View};

/// What the thread looks at.
pub(super) trait Observed: Send + Sync {
    /// What was counted until now.
    fn reading(&self) -> Reading;

    /// What the configuration says, and its data directory.
    fn history_settings(&self) -> (Option<checked::History>, Option<PathBuf>);
}

/// What was counted until now.
pub(super) struct Reading {
    /// The counters of each site, one for each core.
    pub(super) sites: Vec<(Arc<str>, Vec<Arc<SiteCounters>>)>,
    /// Connections that are open.
    pub(super) connections: u64,
    /// Every application.
    pub(super) apps: Vec<AppStatus>,
}

/// The thread, and the history that it writes.
pub(super) struct Recorder {
    /// The server's own folder among the histories of a data directory; without one, memory is used.
    name: Option<String>,
    history: Arc<Mutex<Option<History>>>,
    messages: SyncSender<Message>,
    received: Mutex<Option<Receiver<Message>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

enum Message {
    Event(Kept),
    Stop,
}

impl Recorder {
    /// Collects events from now on: those that come through the sink, which hands them on and never waits.
    pub(super) fn new(name: Option<String>, events: EventSink) -> (Self, EventSink) {
        let (messages, received) = sync_channel(HISTORY_EVENTS_WAITING_MAX);
        let to_history = messages.clone();
        let sink = move |event| {
            // Those that explain a curve are kept.
            if let Some(kept) = explain::kept(&event, now()) {
                let _ = to_history.try_send(Message::Event(kept));
            }
            events(event);
        };
        let recorder = Self {
            name,
            history: Arc::default(),
            messages,
            received: Mutex::new(Some(received)),
            thread: Mutex::default(),
        };
        (recorder, Arc::new(sink))
    }

    /// Samples until [`Recorder::stop`], or until there is nothing to look at.
    pub(super) fn start(&self, observed: Weak<dyn Observed>, events: EventSink) -> io::Result<()> {
        let Some(received) = self.received.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        let (name, history) = (self.name.clone(), Arc::clone(&self.history));
        let (send_locked, locked) = sync_channel(1);
        let thread = thread::Builder::new().name("history".into()).spawn(move || {
            let mut opening = lock(&history);
            // Whoever looks from now on waits until it is open.
            let _ = send_locked.send(());
            if let Some(observed) = observed.upgrade() {
                adjust(&mut opening, name.as_deref(), &*observed);
            }
            drop(opening);
            let work = Work { name, history, observed, events, overloads: Overloads::default() };
            work.run(&received);
        })?;
        let _ = locked.recv();
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// Takes a last sample, and ends the thread.
    pub(super) fn stop(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = self.messages.send(Message::Stop);
            let _ = thread.join();
        }
    }

    /// Looks at the history; `None` where it is off.
    pub(super) fn look<T>(&self, look: impl FnOnce(&mut History, u64) -> T) -> Option<T> {
        lock(&self.history).as_mut().map(|history| look(history, now()))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // The thread itself may be the last that looks at the server.
        let _ = self.messages.try_send(Message::Stop);
    }
}

/// What the thread has.
struct Work {
    name: Option<String>,
    history: Arc<Mutex<Option<History>>>,
    observed: Weak<dyn Observed>,
    events: EventSink,
    overloads: Overloads,
}

impl Work {
    fn run(mut self, received: &Receiver<Message>) {
        let mut meter = Meter::new(Instant::now());
        let mut due = Instant::now() + until_next();
        loop {
            match received.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(Message::Event(event)) => {
                    if let Some(history) = &mut *lock(&self.history) {
                        history.append_event(event);
                    }
                }
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    self.sample(&mut meter);
                    return;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if Instant::now() >= due {
                if !self.sample(&mut meter) {
                    return;
                }
                due = Instant::now() + until_next();
            }
        }
    }

    /// Whether there is still something to look at.
    fn sample(&mut self, meter: &mut Meter) -> bool {
        let Some(observed) = self.observed.upgrade() else { return false };
        let mut sample = meter.sample(observed.reading(), Instant::now());
        // The middle of the time that it covers: a thread that woke late counts to the interval before.
        sample.at = now_ms().saturating_sub(sample.covered_ms / 2) / 1_000;
        let mut overloads = self.overloads.changes(&sample, now());
        let mut history = lock(&self.history);
        adjust(&mut history, self.name.as_deref(), &*observed);
        if let Some(history) = &mut *history {
            overloads.drain(..).for_each(|event| history.append_event(event));
            history.append(sample);
            for notice in history.take_notices() {
                (self.events)(Event::Warning { message: notice.text.clone() });
                history.append_event(notice);
            }
        }
        true
    }
}

/// Opens the history that the configuration asks for now, and closes another one.
fn adjust(history: &mut Option<History>, name: Option<&str>, observed: &dyn Observed) {
    let (settings, data_directory) = observed.history_settings();
    let wanted = settings.map(|settings| Settings {
        folder: name.and_then(|name| {
            Some(
                data::existing_folder_of_server(data_directory.as_deref(), checked::HISTORY_FOLDER)?
                    .join(name),
            )
        }),
        keep_seconds: settings.keep.as_secs(),
        bytes_max: settings.bytes,
    });
    // A folder that came into being meanwhile, for certificates, is for the next start.
    let is_same = match (&wanted, &*history) {
        (Some(wanted), Some(history)) => {
            let has = history.settings();
            *has == *wanted
                || (has.folder.is_none()
                    && data_directory.is_none()
                    && (has.keep_seconds, has.bytes_max) == (wanted.keep_seconds, wanted.bytes_max))
        }
        (None, None) => true,
        _ => false,
    };
    if !is_same {
        // The folder's lock goes with the old one.
        *history = None;
        *history = wanted.map(|settings| History::open(settings, now()));
    }
}

fn lock(history: &Mutex<Option<History>>) -> MutexGuard<'_, Option<History>> {
    history.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Until the next interval begins by the clock, so that samples of all processes fall into the same intervals.
fn until_next() -> Duration {
    let step = SAMPLE_SECONDS * 1_000;
    Duration::from_millis(step - now_ms() % step)
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Seconds since 1970.
fn now() -> u64 {
    now_ms() / 1_000
}
