//! Shows what the server has to say: as lines for a person, or as one JSON object per line.
//!
//! Everything goes to standard error, since standard output belongs to the access log; `--log-to stdout` puts both
//! there, line by line. Events come from any thread, so a line is written in one piece and never waits for anything
//! but the terminal.

pub(crate) mod json;
mod plain;
mod progress;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use onehop_server::Event;
use onehop_server::control::EventSink;

use crate::arguments::{LogForm, LogTo, Process};
use progress::Progress;

/// Where events are shown.
#[derive(Clone)]
pub(crate) struct Reporter {
    form: LogForm,
    progress: Arc<Mutex<Progress>>,
    lines: Arc<Mutex<plain::Lines>>,
}

impl Reporter {
    /// As the options ask for it; from now on every line of this process goes there, also those of failures. The
    /// progress bar is for a terminal and for persons only.
    pub(crate) fn of(process: &Process) -> Self {
        let form = process.log;
        TO_STDOUT.store(process.log_to == LogTo::Stdout, Ordering::Relaxed);
        Self::in_form(form)
    }

    fn in_form(form: LogForm) -> Self {
        let progress = Arc::new(Mutex::new(Progress::new(form == LogForm::Plain)));
        Self { form, progress, lines: Arc::default() }
    }

    /// The first line: who is this, and what does it read.
    pub(crate) fn starting(&self, reads: &str) {
        let version = env!("CARGO_PKG_VERSION");
        match self.form {
            LogForm::Plain => self.line(&format!("onehop {version} {reads}")),
            LogForm::Json => self.line(&json::starting(version, reads)),
        }
    }

    /// A warning of the program itself.
    pub(crate) fn warn(&self, message: impl Into<String>) {
        self.show(&Event::Warning { message: message.into() });
    }

    /// Shows one event.
    pub(crate) fn show(&self, event: &Event) {
        if !self.progress.lock().unwrap_or_else(PoisonError::into_inner).note(event) {
            return;
        }
        let line = match self.form {
            LogForm::Plain => self.lines.lock().unwrap_or_else(PoisonError::into_inner).line(event),
            LogForm::Json => Some(json::line(event)),
        };
        if let Some(line) = line {
            self.line(&line);
        }
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

    fn line(&self, text: &str) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).beside(|| write_line(text));
    }
}

/// Whether lines go to standard output: of the process, as the streams themselves are.
static TO_STDOUT: AtomicBool = AtomicBool::new(false);

/// One line, in one piece. A stream that was closed is no reason to stop serving.
pub(crate) fn write_line(text: &str) {
    let line = format!("{text}\n");
    let _ = if TO_STDOUT.load(Ordering::Relaxed) {
        std::io::stdout().lock().write_all(line.as_bytes())
    } else {
        std::io::stderr().lock().write_all(line.as_bytes())
    };
}
