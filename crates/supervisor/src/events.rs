//! What the supervisor reports; the program decides how to show it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Receives events, from any thread. Must never wait: a stop and a reload report events, too.
pub type AppEventSink = Arc<dyn Fn(AppEvent) + Send + Sync>;

/// What happens to an application and its workers.
#[derive(Debug, Clone, PartialEq)]
pub enum AppEvent {
    /// An application answers requests: its first worker is ready.
    Ready {
        /// The application.
        app: String,
        /// `node 20.20.2`, or the program.
        runtime: String,
        /// Workers that are wanted.
        workers: usize,
        /// Since the first of them was started.
        took: Duration,
        /// Starts in a row that failed before; 0 where it did not fail.
        failures: u32,
    },
    /// A handler's workers are spoken to in HTTP on a Unix socket, and not in frames.
    SpeaksHttp {
        /// The application.
        app: String,
        /// `node 20.20.2`.
        runtime: String,
        /// The configuration asks for it; else the worker does, and has written why.
        is_asked: bool,
    },
    /// A worker has ended, or was ended.
    WorkerEnded {
        /// The application.
        app: String,
        /// Its process id.
        pid: u32,
        /// For a person: what happened, with the last lines that it wrote to standard error if it failed.
        reason: String,
        /// How long it is waited before another one is started; none where none is.
        restart_in: Option<Duration>,
        /// It ended although it was wanted.
        failed: bool,
    },
    /// A worker of an application that runs ends again and again; ends for the same reason are not reported any more.
    CrashLoop {
        /// The application.
        app: String,
        /// For a person.
        reason: String,
        /// Starts in a row that failed.
        failures: u32,
    },
    /// An application does not run; requests are answered 503. Until it runs, ends for the same reason are not reported.
    Failing {
        /// The application.
        app: String,
        /// For a person: cause and next step.
        reason: String,
        /// How long it is waited before the next try.
        retry_in: Duration,
        /// Starts in a row that failed; 0 where nothing is started.
        failures: u32,
    },
    /// All workers of an application were replaced by new ones.
    Rolled {
        /// The application.
        app: String,
        /// Workers.
        workers: usize,
        /// How long it took.
        took: Duration,
    },
    /// A worker's event loop does not turn.
    WorkerStuck {
        /// The application.
        app: String,
        /// Its process id.
        pid: u32,
        /// How long it has not turned.
        since: Duration,
        /// Where it is, a line each, if that could be found out.
        stack: String,
    },
    /// A worker wrote a line.
    Output {
        /// The application.
        app: String,
        /// Its process id.
        pid: u32,
        /// To standard error instead of standard output.
        is_error: bool,
        /// Without its line end.
        line: String,
    },
    /// What applications need was unpacked.
    Unpacked {
        /// Into this folder.
        folder: PathBuf,
        /// Files that were written.
        files: usize,
        /// How long it took.
        took: Duration,
    },
    /// Something is wrong, and the supervisor continues.
    Warning {
        /// For a person: place, cause, next step.
        message: String,
    },
}
