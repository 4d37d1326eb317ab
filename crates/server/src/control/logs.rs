//! The logs of a configuration: one writer for each output.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use onehop_config::checked::{Checked, LogFormat, LogOutput, LogRoll, ServerLog};
use onehop_metrics::Registry;
use onehop_metrics::access_log::{LogTarget, LogWriter, Warn};
use onehop_metrics::recent::Recent;

use super::events::{Event, EventSink};

/// By number of the site.
pub(super) type SiteLogs = Vec<Vec<LogTarget>>;

/// An access log that is open.
#[derive(Clone)]
pub(super) struct OpenLog {
    output: LogOutput,
    format: LogFormat,
    roll: Option<LogRoll>,
    pub(super) writer: Arc<LogWriter>,
}

/// `log` of the global block, with the writer of its output.
pub(super) type OpenServerLog = (ServerLog, Option<Arc<LogWriter>>);

/// Every log of a configuration.
pub(super) struct Opened {
    pub(super) of_sites: SiteLogs,
    pub(super) of_server: Option<OpenServerLog>,
    /// Each once.
    pub(super) all: Vec<OpenLog>,
}

/// Where access logs report lines that were lost.
#[derive(Clone)]
pub(super) struct LogReports {
    pub(super) dropped: Arc<AtomicU64>,
    pub(super) warn: Warn,
    /// Has the last lines.
    pub(super) recent: Arc<Recent>,
}

impl LogReports {
    /// Counted in the registry, reported as warnings.
    pub(super) fn new(registry: &Registry, events: &EventSink, recent: &Arc<Recent>) -> Self {
        let events = Arc::clone(events);
        let warn: Warn = Arc::new(move |message| events(Event::Warning { message }));
        Self { dropped: Arc::clone(&registry.log_lines_dropped), warn, recent: Arc::clone(recent) }
    }

    /// The log of before that has this output, or one that is opened.
    fn open(&self, output: &LogOutput, roll: Option<LogRoll>, before: &[OpenLog]) -> Result<OpenLog, String> {
        let is_same = |known: &&OpenLog| known.output == *output && known.roll == roll;
        if let Some(known) = before.iter().find(is_same) {
            return Ok(known.clone());
        }
        let (dropped, warn) = (Arc::clone(&self.dropped), Arc::clone(&self.warn));
        let writer = LogWriter::start(output, roll, dropped, warn, Arc::clone(&self.recent));
        let writer = Arc::new(writer.map_err(|error| error.to_string())?);
        Ok(OpenLog { output: output.clone(), format: LogFormat::default(), roll, writer })
    }
}

/// One writer for each output, shared by the sites that name it. Those of before write on.
pub(super) fn open_logs(
    checked: &Checked,
    before: &[OpenLog],
    reports: &LogReports,
) -> Result<Opened, String> {
    let mut open: Vec<OpenLog> = Vec::new();
    let mut all = Vec::new();
    let mut number = 0;
    for site in &checked.sites {
        let mut targets = Vec::new();
        let site_number = reports.recent.site(&site.label);
        for log in &site.logs {
            let cannot = |reason: String| {
                let output = log.output.name();
                format!("cannot open the access log of {}: {output}: {reason}", site.label)
            };
            let known = match open.iter().find(|known| known.output == log.output) {
                Some(known) if known.roll != log.roll => {
                    return Err(cannot("another site has other `roll_…` options for it".to_owned()));
                }
                Some(known) if !may_share(&known.format, &log.format, &log.output) => {
                    return Err(cannot("another site has another `format` for it".to_owned()));
                }
                Some(known) => Some(known.clone()),
                None => None,
            };
            let log_open = match known {
                Some(known) => known,
                None => reports.open(&log.output, log.roll, before).map_err(cannot)?,
            };
            targets.push(LogTarget::new(log, Arc::clone(&log_open.writer), site_number, number));
            number += 1;
            let log_open = OpenLog { format: log.format.clone(), ..log_open };
            if !open.iter().any(|known| known.output == log_open.output) {
                open.push(log_open);
            }
        }
        all.push(targets);
    }
    let of_server = match &checked.global.log {
        None => None,
        Some(log) if matches!(log.output, LogOutput::Stdout | LogOutput::Stderr) => Some((log.clone(), None)),
        Some(log) => {
            let cannot = |reason: String| format!("cannot open the log {}: {reason}", log.output.name());
            let server = match open.iter().find(|known| known.output == log.output) {
                Some(known) if known.roll != log.roll => {
                    return Err(cannot("a site has other `roll_…` options for it".to_owned()));
                }
                Some(known) => known.clone(),
                None => {
                    let opened = reports.open(&log.output, log.roll, before).map_err(cannot)?;
                    open.push(opened.clone());
                    opened
                }
            };
            Some((log.clone(), Some(server.writer)))
        }
    };
    Ok(Opened { of_sites: all, of_server, all: open })
}

/// Whether lines of both formats may go to one output: a reader of a file could not tell which line has which. JSON with and
/// without filters is JSON.
fn may_share(one: &LogFormat, other: &LogFormat, output: &LogOutput) -> bool {
    let is_json = |format: &LogFormat| matches!(format, LogFormat::Json(_) | LogFormat::Filter(_));
    !matches!(output, LogOutput::File(_)) || one == other || (is_json(one) && is_json(other))
}
