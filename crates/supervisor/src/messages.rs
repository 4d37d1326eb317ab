//! What the tasks of an application send each other.

use std::sync::Arc;
use std::time::Duration;

use onehop_config::checked::App;
use onehop_workers::{ConnectionEvent, Report, Worker, WorkerId, WorkerIndex};
use tokio::sync::{mpsc, oneshot};

use crate::loaded::LoadedFiles;
use crate::shared::Shared;

/// Receives whether an application runs as it was asked to, or the reason for a person.
pub(crate) type ReadySender = oneshot::Sender<Result<(), String>>;

/// From the control plane to the owner of an application.
pub(crate) enum AppCommand {
    /// Have this number of workers; answered at once.
    Workers(usize, oneshot::Sender<()>),
    /// Replace all workers.
    Roll(ReadySender),
    /// Have as many workers as the settings want; replace all of them only if the application does not run.
    Keep(ReadySender),
    /// Answered when all workers serve, or one has failed.
    AwaitReady(ReadySender),
    /// The server begins to stop: workers close what would stay open for ever, and continue to serve.
    AnnounceStop,
    /// Have no workers; answered when the last has ended.
    Stop(oneshot::Sender<()>),
}

/// From a worker's task to the owner of its application: what happened to the worker.
pub(crate) enum WorkerEvent {
    /// Its process runs.
    Started { pid: u32 },
    /// It may be handed requests.
    Ready { worker: Arc<Worker>, runtime: String },
    /// It has loaded these files.
    Loaded(LoadedFiles),
    /// What it takes, how late its event loop is, and whether it is to be replaced for what it has served.
    Health { resident_bytes: u64, lag: Duration, is_due: bool },
    /// It may not be handed requests any more.
    Withdraw(Withdrawal),
    /// It is gone.
    Ended(End),
}

/// Why a worker is handed no more requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Withdrawal {
    /// It asked for it, and is to finish its requests.
    Requested,
    /// Its event loop does not turn.
    Stuck,
    /// It is about to end.
    Lost,
}

/// How a worker ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) pid: u32,
    /// For a person.
    pub(crate) reason: String,
    /// It ended although it was wanted.
    pub(crate) failed: bool,
    /// There never was a process.
    pub(crate) never_ran: bool,
}

impl End {
    /// The end of a worker whose process could not be started.
    pub(crate) fn before_its_process(reason: String) -> Self {
        Self { pid: 0, reason, failed: true, never_ran: true }
    }
}

/// From the owner of an application to a worker's task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerCommand {
    /// Close tunnels, continue to serve. Only workers that speak the worker protocol can.
    AnnounceStop,
    /// Finish what is in flight, then end.
    Drain,
    /// End at once.
    Kill,
}

/// What a worker's task is given.
pub(crate) struct Task {
    pub(crate) id: WorkerId,
    pub(crate) index: WorkerIndex,
    pub(crate) app: Arc<App>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) events: mpsc::Sender<(WorkerId, WorkerEvent)>,
    pub(crate) commands: mpsc::Receiver<WorkerCommand>,
}

impl Task {
    pub(crate) async fn report(&self, event: WorkerEvent) {
        // The owner outlives its workers, except in a server that is being torn down.
        let _ = self.events.send((self.id, event)).await;
    }

    /// The next command; without an owner the worker is to end.
    pub(crate) async fn command(&mut self) -> WorkerCommand {
        self.commands.recv().await.unwrap_or(WorkerCommand::Kill)
    }

    /// Waits for the command to end at once.
    pub(crate) async fn killed(&mut self) {
        while self.command().await != WorkerCommand::Kill {}
    }
}

/// What cores report about their connections to one worker.
pub(crate) struct Reports(mpsc::Receiver<ConnectionEvent>);

impl Reports {
    /// For so many cores, which never wait: every connection has room for its beginning and its end. The channel drops what
    /// is reported again about a program elsewhere while the first report waits to be read.
    pub(crate) fn new(cores: usize) -> (Report, Self) {
        let (sender, receiver) = mpsc::channel(2 * cores.max(1));
        let report = Arc::new(move |report: ConnectionEvent| drop(sender.try_send(report)));
        (report, Self(receiver))
    }

    /// Waits until so many cores have their connection; the error is why one of them lost it.
    pub(crate) async fn attached(&mut self, cores: usize) -> Result<(), String> {
        let mut attached = 0;
        while attached < cores {
            match self.0.recv().await {
                Some(ConnectionEvent::Attached { .. }) => attached += 1,
                Some(ConnectionEvent::Lost { reason, .. }) => return Err(reason),
                None => break,
            }
        }
        Ok(())
    }

    /// Waits until a core has lost its connection: why, and whether the worker broke the protocol.
    pub(crate) async fn lost(&mut self) -> (String, bool) {
        loop {
            match self.0.recv().await {
                Some(ConnectionEvent::Lost { reason, is_broken, .. }) => return (reason, is_broken),
                Some(ConnectionEvent::Attached { .. }) => {}
                None => return std::future::pending().await,
            }
        }
    }

    /// How the worker broke the protocol, if a core has reported it.
    pub(crate) fn already_broken(&mut self) -> Option<String> {
        loop {
            if let ConnectionEvent::Lost { reason, is_broken: true, .. } = self.0.try_recv().ok()? {
                return Some(reason);
            }
        }
    }
}
