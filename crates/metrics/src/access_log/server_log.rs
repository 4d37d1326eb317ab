//! Where the server's own messages go: `log` of the global block.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Instant, SystemTime};

use onehop_config::checked::{LogOutput, ServerLog, ServerLogFormat};

use super::writer::{Batch, LogWriter};
use crate::recent::Mark;

/// Where the loaded configuration sends the server's own messages. The program reads it for each message; the server sets it at
/// start and at reloads.
#[derive(Debug, Default)]
pub struct ServerLogTarget {
    current: RwLock<Option<Arc<Current>>>,
}

/// What holds until the next reload.
#[derive(Debug)]
pub struct Current {
    settings: ServerLog,
    /// `None` for standard output and standard error, which the program writes itself.
    writer: Option<Arc<LogWriter>>,
}

impl ServerLogTarget {
    /// What holds from now on. The writer is that of the output, unless it is a stream of the process.
    pub fn set(&self, log: Option<(ServerLog, Option<Arc<LogWriter>>)>) {
        let current = log.map(|(settings, writer)| Arc::new(Current { settings, writer }));
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = current;
    }

    /// What holds now; `None`: the command line decides.
    pub fn current(&self) -> Option<Arc<Current>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits, at most until then, until every message is written.
    pub fn finish(&self, until: Instant) {
        if let Some(writer) = self.current().as_ref().and_then(|current| current.writer.as_ref()) {
            writer.finish(until);
        }
    }
}

impl Current {
    /// What messages look like; `None`: as the command line says.
    pub fn format(&self) -> Option<ServerLogFormat> {
        self.settings.format
    }

    /// Whether a message is left out.
    pub fn leaves_out(&self, is_error: bool) -> bool {
        self.settings.only_errors && !is_error
    }

    /// Whether messages go to standard output of the process (`true`) or standard error; `None`: they go to [`Self::write`].
    pub fn stream(&self) -> Option<bool> {
        match self.settings.output {
            LogOutput::Stdout => Some(true),
            LogOutput::Stderr => Some(false),
            LogOutput::Discard | LogOutput::File(_) | LogOutput::Net(_) => None,
        }
    }

    /// Hands a message over to the thread that writes it. Never waits; what does not fit is lost and counted.
    pub fn write(&self, message: &str, at: SystemTime, is_error: bool) {
        let Some(writer) = &self.writer else { return };
        let text = format!("{message}\n").into_bytes();
        let is_json = self.settings.format == Some(ServerLogFormat::Json);
        let mark = Mark { end: text.len(), at, site: 0, status: Mark::OF_SERVER, is_json, is_error };
        writer.hand_over(Batch { text, marks: vec![mark] }, false);
    }
}
