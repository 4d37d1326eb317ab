//! Shows what the server has to say: as lines for a person, or as one JSON object per line.
//!
//! Everything goes to standard error, since standard output belongs to the access log; `--log-to stdout` puts both
//! there, line by line. Events come from any thread; `output.rs` writes them, so that nothing else waits for the
//! terminal, pipe or file behind it.

pub(crate) mod json;
mod output;
mod plain;
mod progress;
mod recent;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Instant, SystemTime};

use onehop_config::checked::ServerLogFormat;
use onehop_message::calendar::Moment;
use onehop_server::Event;
use onehop_server::control::{EventSink, Recent, ServerLogTarget};
use onehop_server::limits::LOG_FINISH_DEADLINE;

use crate::arguments::{LogForm, LogTo, Process};
use output::{Entry, Next, Queue};
pub(crate) use plain::printable;
use progress::Progress;

/// Where events are shown.
#[derive(Clone)]
pub(crate) struct Reporter {
    form: LogForm,
    to_stdout: bool,
    queue: Arc<Queue>,
    lines: Arc<Mutex<plain::Lines>>,
    /// What `onehop logs` shows.
    recent: Arc<Recent>,
    /// What the configuration says of all this.
    server_log: Arc<ServerLogTarget>,
}

impl Reporter {
    /// As the options ask for it; from now on every line of this process goes there, also those of failures and
    /// panics. The progress bar is for a terminal and for persons only.
    ///
    /// # Errors
    /// Where the system refuses a thread.
    pub(crate) fn of(process: &Process) -> std::io::Result<Self> {
        let form = process.log;
        let to_stdout = process.log_to == LogTo::Stdout;
        TO_STDOUT.store(to_stdout, Ordering::Relaxed);
        let mut progress = Progress::new(form == LogForm::Plain);
        let queue = Queue::start(move |next| write_next(next, form, &mut progress))?;
        let queue = Arc::clone(QUEUE.get_or_init(|| queue));
        std::panic::set_hook(Box::new(|panic| {
            write_line(&panic.to_string());
            finish();
        }));
        let server_log = Arc::clone(SERVER_LOG.get_or_init(Arc::default));
        Ok(Self { form, to_stdout, queue, lines: Arc::default(), recent: Arc::default(), server_log })
    }

    /// The first line: who is this, and what does it read.
    pub(crate) fn starting(&self, reads: &str) {
        let version = env!("CARGO_PKG_VERSION");
        write_line(&match self.form {
            LogForm::Plain => stamped(&format!("onehop {version} {reads}")),
            LogForm::Json => json::starting(version, reads),
        });
    }

    /// A warning of the program itself.
    pub(crate) fn warn(&self, message: impl Into<String>) {
        self.show(&Event::Warning { message: message.into() });
    }

    /// Shows one event. Never waits for the output.
    pub(crate) fn show(&self, event: &Event) {
        // Most of them only move the bar.
        if matches!(event, Event::Reading { .. }) {
            return self.queue.push(Entry::event(event, None));
        }
        let at = SystemTime::now();
        let plain = self.lines.lock().unwrap_or_else(PoisonError::into_inner).line(event);
        let record = json::line(event, at);
        let text = self.chosen(event, plain.as_deref(), &record, at);
        self.queue.push(Entry::event(event, text));
        if let Some(plain) = plain {
            self.recent.add_note(recent::note(event, at, plain, record));
        }
    }

    /// What the process writes itself of an event; `log` of the global block may send it elsewhere.
    fn chosen(&self, event: &Event, plain: Option<&str>, record: &str, at: SystemTime) -> Option<String> {
        let log = self.server_log.current();
        let form = match log.as_ref().and_then(|log| log.format()) {
            Some(ServerLogFormat::Console) => LogForm::Plain,
            Some(ServerLogFormat::Json) => LogForm::Json,
            None => self.form,
        };
        let text = match form {
            LogForm::Plain => plain.map(stamped),
            LogForm::Json => Some(record.to_owned()),
        };
        // As the command line says, also after a reload that took the log away.
        let stream = log.as_ref().map_or(Some(self.to_stdout), |log| log.stream());
        TO_STDOUT.store(stream.unwrap_or(self.to_stdout), Ordering::Relaxed);
        let Some(log) = log else { return text };
        let is_error = recent::is_error(event);
        let text = text.filter(|_| !log.leaves_out(is_error))?;
        if stream.is_some() {
            return Some(text);
        }
        log.write(&text, at, is_error);
        None
    }

    /// What the server sets to what its configuration says.
    pub(crate) fn server_log(&self) -> Arc<ServerLogTarget> {
        Arc::clone(&self.server_log)
    }

    /// The last lines, to which the server adds those of access logs.
    pub(crate) fn recent(&self) -> Arc<Recent> {
        Arc::clone(&self.recent)
    }

    /// A sink for the server that hands each event on and then shows it, so that whoever reads it finds
    /// the program prepared.
    pub(crate) fn sink(&self, first: impl Fn(&Event) + Send + Sync + 'static) -> EventSink {
        let reporter = self.clone();
        Arc::new(move |event| {
            first(&event);
            reporter.show(&event);
        })
    }
}

/// Whether lines go to standard output: of the process, as the streams themselves are.
static TO_STDOUT: AtomicBool = AtomicBool::new(false);

/// Where messages go that `log` of the global block sends elsewhere.
static SERVER_LOG: OnceLock<Arc<ServerLogTarget>> = OnceLock::new();

/// What a server's lines go through; commands that end by themselves write directly.
static QUEUE: OnceLock<Arc<Queue>> = OnceLock::new();

/// One line, in one piece. A stream that was closed is no reason to stop serving.
pub(crate) fn write_line(text: &str) {
    match QUEUE.get() {
        Some(queue) => queue.push(Entry::text(text)),
        None => write_now(text),
    }
}

/// Waits, within a bound, until everything is written.
pub(crate) fn finish() {
    if let Some(log) = SERVER_LOG.get() {
        log.finish(Instant::now() + LOG_FINISH_DEADLINE);
    }
    if let Some(queue) = QUEUE.get() {
        queue.finish();
    }
}

fn write_next(next: Next, form: LogForm, progress: &mut Progress) {
    let text = match next {
        Next::Lost(lost) => {
            let event = Event::Warning { message: lost.message() };
            match form {
                LogForm::Plain => plain::Lines::default().line(&event).as_deref().map(stamped),
                LogForm::Json => Some(json::line(&event, SystemTime::now())),
            }
        }
        Next::Entry(text, None) => text,
        Next::Entry(text, Some(event)) => {
            let is_due = progress.note(&event);
            let is_reading = matches!(event, Event::Reading { .. });
            if is_reading && is_due && form == LogForm::Json {
                Some(json::line(&event, SystemTime::now()))
            } else {
                text
            }
        }
    };
    if let Some(text) = text {
        progress.beside(|| write_now(&text));
    }
}

/// A line with the time in front: an output that is written later does not change when something happened.
fn stamped(line: &str) -> String {
    format!("{} {line}", Moment::of(SystemTime::now()).rfc3339())
}

fn write_now(text: &str) {
    let line = format!("{text}\n");
    let _ = if TO_STDOUT.load(Ordering::Relaxed) {
        std::io::stdout().lock().write_all(line.as_bytes())
    } else {
        std::io::stderr().lock().write_all(line.as_bytes())
    };
}
