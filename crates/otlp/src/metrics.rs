//! The thread that exports metrics from time to time.
//!
//! A receiver that is not there costs nothing: counters count on, and the next export has them. It is one report, and another one
//! when it is back.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::SystemTime;

use onehop_config::checked::OtlpExport;
use onehop_metrics::families::Families;

use crate::json;
use crate::limits::STOP_WITHIN;
use crate::receiver::{Receiver, Report, Roots};

/// Reads all metrics; `None` where the server is gone.
pub type Read = Box<dyn Fn() -> Option<Families> + Send>;

/// Exports metrics until it is dropped, and once more then.
pub struct MetricsExport {
    settings: Arc<OtlpExport>,
    /// Ends the thread by being dropped.
    stop: Option<mpsc::Sender<()>>,
    /// Is dropped by the thread at its end.
    ended: mpsc::Receiver<()>,
}

impl MetricsExport {
    /// Starts the thread. Counters count since `start`.
    ///
    /// # Errors
    /// Where the system refuses a thread.
    pub fn start(
        settings: Arc<OtlpExport>,
        start: SystemTime,
        read: Read,
        roots: Roots,
        report: Report,
    ) -> io::Result<Self> {
        let ((stop, stopped), (ending, ended)) = (mpsc::channel(), mpsc::channel());
        let its = Arc::clone(&settings);
        thread::Builder::new().name("metrics-export".into()).spawn(move || {
            run(&its, start, &read, roots, &report, &stopped);
            drop::<mpsc::Sender<()>>(ending);
        })?;
        Ok(Self { settings, stop: Some(stop), ended })
    }

    /// What it was started with.
    pub fn settings(&self) -> &Arc<OtlpExport> {
        &self.settings
    }

    /// Exports once more, within a bounded time: an export that takes longer ends with the process.
    pub fn stop(mut self) {
        self.stop = None;
        let _ = self.ended.recv_timeout(STOP_WITHIN);
    }
}

fn run(
    settings: &OtlpExport,
    start: SystemTime,
    read: &Read,
    roots: Roots,
    report: &Report,
    stopped: &mpsc::Receiver<()>,
) {
    let Some(url) = &settings.url else { return };
    let receiver = match Receiver::new(settings, url, roots) {
        Ok(receiver) => receiver,
        Err(cause) => return report(format!("metrics are not exported to {url}: {cause}")),
    };
    let mut is_troubled = false;
    loop {
        let is_last = stopped.recv_timeout(settings.delay) != Err(RecvTimeoutError::Timeout);
        let Some(families) = read() else { return };
        let sent = receiver.send(json::of_metrics(&settings.resource, &families, start, SystemTime::now()));
        match &sent {
            Err(failure) if !is_troubled => report(format!(
                "metrics are not exported to {url}: {}; look at the receiver, or correct OTEL_EXPORTER_OTLP_ENDPOINT",
                failure.cause
            )),
            Ok(()) if is_troubled => report(format!("metrics are exported to {url} again")),
            _ => {}
        }
        is_troubled = sent.is_err();
        if is_last {
            return;
        }
    }
}
