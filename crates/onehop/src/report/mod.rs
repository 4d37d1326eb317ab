//! Shows what the server has to say: as lines for a person, or as one JSON object per line.
//!
//! Everything goes to standard error; standard output belongs to the access log. Events come from any
//! thread, so a line is written in one piece and never waits for anything but the terminal.

pub(crate) mod json;
mod plain;
mod progress;

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use onehop_server::Event;
use onehop_server::control::EventSink;

use crate::arguments::LogForm;
use progress::Progress;

/// Where events are shown.
#[derive(Clone)]
pub(crate) struct Reporter {
    form: LogForm,
    progress: Arc<Mutex<Progress>>,
    lines: Arc<Mutex<plain::Lines>>,
}

impl Reporter {
    /// In this form; the progress bar is for a terminal and for persons only.
    pub(crate) fn new(form: LogForm) -> Self {
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

/// One line to standard error, in one piece. A closed standard error is no reason to stop serving.
pub(crate) fn write_line(text: &str) {
    let _ = std::io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}
