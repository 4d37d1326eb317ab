//! What the tasks of an application tell each other.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::Surroundings;
use crate::control::loaded;
use onehop_config::checked::App;
use onehop_workers::{ConnectionEvent, Report, Worker, WorkerId, WorkerIndex};

/// From the control plane to the owner of an application.
pub(super) enum Order {
    /// So many workers from now on; answered at once.
    Workers(usize, oneshot::Sender<()>),
    /// New workers in the place of all.
    Roll(oneshot::Sender<Result<(), String>>),
    /// As many workers as the settings say; new ones in the place of all only if the application does not run.
    Keep(oneshot::Sender<Result<(), String>>),
    /// Answered when all workers serve, or one has failed.
    AwaitReady(oneshot::Sender<Result<(), String>>),
    /// The server begins to stop: workers close what would stay open for ever, and serve on.
    TakeLeave,
    /// No more workers; answered when the last has ended.
    Stop(oneshot::Sender<()>),
}

/// From a worker's task to the owner of its application.
pub(super) struct Told {
    pub(super) id: WorkerId,
    pub(super) what: News,
}

/// What happened to a worker.
pub(super) enum News {
    /// Its process runs.
    Started { pid: u32 },
    /// It may be handed requests.
    Ready { worker: Arc<Worker>, runtime: String },
    /// It has loaded these files.
    Loaded(loaded::News),
    /// How it is.
    Health { resident_bytes: u64, lag: Duration, is_due: bool },
    /// It may not be handed requests any more.
    Withdraw(Withdrawal),
    /// It is gone.
    Ended(End),
}

/// Why a worker is handed no more requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Withdrawal {
    /// It asked for it, and is to finish what it has.
    Asked,
    /// Its event loop does not turn.
    Stuck,
    /// It is about to end.
    Lost,
}

/// How a worker ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    pub(super) pid: u32,
    /// For a person.
    pub(super) reason: String,
    /// Nobody wanted it to end.
    pub(super) failed: bool,
    /// There never was a process.
    pub(super) never_ran: bool,
}

impl End {
    /// Of one for which nothing could be started.
    pub(super) fn before_its_process(reason: String) -> Self {
        Self { pid: 0, reason, failed: true, never_ran: true }
    }
}

/// From the owner of an application to a worker's task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    /// Only to who speaks the worker protocol: close tunnels, serve on.
    TakeLeave,
    /// Finish what is in flight, then end.
    Drain,
    /// End at once.
    Kill,
}

/// What a worker's task is given.
pub(super) struct Task {
    pub(super) id: WorkerId,
    pub(super) seat: WorkerIndex,
    pub(super) app: Arc<App>,
    pub(super) surroundings: Arc<Surroundings>,
    pub(super) tell: mpsc::Sender<Told>,
    pub(super) commands: mpsc::Receiver<Command>,
}

impl Task {
    pub(super) async fn tell(&self, what: News) {
        // The owner outlives its workers, but for a server that is being torn down.
        let _ = self.tell.send(Told { id: self.id, what }).await;
    }

    /// The next command; a lost owner wants the end.
    pub(super) async fn command(&mut self) -> Command {
        self.commands.recv().await.unwrap_or(Command::Kill)
    }
}

/// Where cores report, without ever waiting: every lane has room for its beginning and its end. What is said
/// again of a program elsewhere that does not answer is dropped where it waits to be heard already.
pub(super) fn reports(cores: usize) -> (Report, mpsc::Receiver<ConnectionEvent>) {
    let (sender, receiver) = mpsc::channel(2 * cores.max(1));
    let report = Arc::new(move |report: ConnectionEvent| drop(sender.try_send(report)));
    (report, receiver)
}
