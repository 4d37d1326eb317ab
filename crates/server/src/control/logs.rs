//! The logs of a configuration: one writer for each output.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
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
        let writer = writer.map_err(|error| match output {
            LogOutput::File(path) => reason(path, &error),
            _ => error.to_string(),
        });
        let writer = Arc::new(writer?);
        Ok(OpenLog { output: output.clone(), format: LogFormat::default(), roll, writer })
    }
}

/// Why a log cannot be written, with the next step where the user is the wrong one: a trial as root leaves files that are
/// root's.
pub(super) fn reason(path: &Path, error: &std::io::Error) -> String {
    if error.kind() != std::io::ErrorKind::PermissionDenied {
        return error.to_string();
    }
    let place = path.ancestors().find(|place| place.exists()).unwrap_or(path);
    let owner = std::fs::metadata(place).map_or_else(|_| "?".to_owned(), |place| place.uid().to_string());
    let user = rustix::process::geteuid().as_raw();
    let folder = path.parent().unwrap_or(path);
    let next = if place == path {
        format!("chown {user} {}", path.display())
    } else if place == folder {
        // Others write there too.
        format!("log into a folder of its own: install -d -o {user} {}", folder.join("onehop").display())
    } else {
        format!("install -d -o {user} {}", folder.display())
    };
    format!("{error}: {} is user {owner}'s, and onehop runs as user {user}\n  {next}", place.display())
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

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::*;

    #[test]
    fn a_log_that_another_user_owns_is_named_with_both_users() {
        let user = rustix::process::geteuid().as_raw();
        for (path, next) in [
            ("/", format!("chown {user} /")),
            ("/app.log", format!("log into a folder of its own: install -d -o {user} /onehop")),
            ("/nowhere/app.log", format!("install -d -o {user} /nowhere")),
        ] {
            let text = reason(Path::new(path), &Error::from(ErrorKind::PermissionDenied));
            assert!(
                text.ends_with(&format!("/ is user 0's, and onehop runs as user {user}\n  {next}")),
                "{text}"
            );
        }
        let other = reason(Path::new("/nowhere/app.log"), &Error::from(ErrorKind::NotFound));
        assert!(!other.contains("user"), "{other}");
    }
}
