//! One worker, from the start of its process to the reason of its end.
//!
//! The same for all that the server starts; [`Kind`] has what differs between the worker protocol (`handler.rs`) and
//! HTTP (`program.rs`). Decides nothing about other workers: reports to the owner of the application (`app.rs`) what
//! happens, and obeys its commands.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use onehop_config::checked::{App, AppRun};
use onehop_workers::Worker;
use tokio::time::{Instant, interval, sleep_until};

use crate::account;
use crate::events::AppEvent;
use crate::handler::Handler;
use crate::launch::{self, Context};
use crate::limits::{WORKER_DRAIN_LOOK_PERIOD, WORKER_EXIT_EXPLAINED_DEADLINE, WORKER_HEALTHY_AFTER};
use crate::loaded::LoadedFiles;
use crate::messages::{End, Reports, Task, Withdrawal, WorkerCommand, WorkerEvent};
use crate::process::{Process, ended_within, explain};
use crate::program::Program;
use crate::progress::{Cause, Ready, Signal};
use crate::shared::Shared;
use crate::{reason, stack};

/// The reason given when a worker was ended because it is no longer needed.
const UNWANTED: &str = "it was not wanted any more";

/// Starts a worker; returns once its process has ended.
pub(crate) async fn run(mut task: Task) {
    let end = match start(&mut task).await {
        Ok((lifecycle, loaded)) => lifecycle.run(&mut task, loaded).await,
        Err(end) => end,
    };
    task.report(WorkerEvent::Ended(end)).await;
}

/// A process that was started.
struct Lifecycle {
    process: Process,
    kind: Kind,
    started: Instant,
    /// Set once it is ready.
    reports: Option<Reports>,
}

/// What differs between workers.
enum Kind {
    /// Speaks the worker protocol on a control connection.
    Handler(Handler),
    /// Speaks HTTP, and knows nothing of this server.
    Program(Program),
}

async fn start(task: &mut Task) -> Result<(Lifecycle, Vec<LoadedFiles>), End> {
    wait_until_unpacked(task).await?;
    launch(task).map_err(End::before_its_process)
}

/// Waits until what the worker needs of the pack is on the machine. Ends early where it is not wanted any more.
async fn wait_until_unpacked(task: &mut Task) -> Result<(), End> {
    let shared = Arc::clone(&task.shared);
    let Some(unpacking) = &shared.unpacking else { return Ok(()) };
    let unpacked = unpacking.done();
    tokio::pin!(unpacked);
    loop {
        tokio::select! {
            done = &mut unpacked => {
                done.map_err(End::before_its_process)?;
                break;
            }
            command = task.command() => match command {
                // No process yet.
                WorkerCommand::AnnounceStop => {}
                WorkerCommand::Drain | WorkerCommand::Kill => {
                    let reason = "it was stopped before the pack was unpacked".to_owned();
                    return Err(End { failed: false, ..End::before_its_process(reason) });
                }
            },
        }
    }
    if let Some((user, group)) = &task.app.user {
        let opened = account::look_up(user, group.as_deref())
            .and_then(|account| unpacking.packed().open_to(account.uid));
        opened.map_err(End::before_its_process)?;
    }
    Ok(())
}

/// Starts the process. Also returns the files that it is known to load.
fn launch(task: &Task) -> Result<(Lifecycle, Vec<LoadedFiles>), String> {
    let (app, shared) = (&*task.app, &*task.shared);
    let context = Context {
        folder: shared.folder()?,
        number: task.id.0,
        cores: shared.cores,
        watch: shared.options.watch,
        packed: shared.packed(),
        ports: &shared.ports,
    };
    let (launch, kind) = match &app.run {
        AppRun::Handler { .. } => {
            let (launch, sockets) = launch::handler(app, &context)?;
            (launch, Kind::Handler(Handler::new(sockets)?))
        }
        AppRun::Command { .. } | AppRun::Elsewhere { .. } => {
            let (launch, addresses) = launch::program(app, &context)?;
            (launch, Kind::Program(Program::new(addresses)))
        }
    };
    let mut loaded = vec![LoadedFiles::from(launch.files(app))];
    if matches!(kind, Kind::Program(_)) {
        loaded.push(LoadedFiles::of_folder(&app.directory));
    }
    let process = Process::start(launch, &shared.options, &app.resources, &app.name, &shared.events)?;
    Ok((Lifecycle { process, kind, started: Instant::now(), reports: None }, loaded))
}

impl Lifecycle {
    async fn run(mut self, task: &mut Task, loaded: Vec<LoadedFiles>) -> End {
        let (shared, pid) = (Arc::clone(&task.shared), self.process.pid());
        shared.guard().inspect(|guard| guard.add(pid));
        task.report(WorkerEvent::Started { pid }).await;
        for files in loaded {
            task.report(WorkerEvent::Loaded(files)).await;
        }
        let cause = self.stages(task).await.unwrap_or_else(|cause| cause);
        let end = self.end(task, cause).await;
        shared.guard().inspect(|guard| guard.remove(pid));
        let _ = std::fs::remove_file(self.kind.socket());
        end
    }

    async fn stages(&mut self, task: &mut Task) -> Result<Cause, Cause> {
        let ready = self.ready(task).await?;
        let runtime = ready.runtime.clone();
        let worker = self.attach(task, ready).await?;
        task.report(WorkerEvent::Ready { worker: Arc::clone(&worker), runtime }).await;
        self.serve(task, &worker).await?;
        self.drain(task, &worker).await
    }

    async fn ready(&mut self, task: &mut Task) -> Result<Ready, Cause> {
        let deadline = self.started + task.app.start_timeout;
        let (app, shared) = (Arc::clone(&task.app), Arc::clone(&task.shared));
        let ready = tokio::select! {
            ready = self.kind.ready(&app, &shared, self.process.pid()) => ready?,
            _ = self.process.ended() => return Err(self.kind.last_message().await),
            () = sleep_until(deadline) => return Err(Cause::TooSlow),
            _ = task.command() => return Err(Cause::Dismissed),
        };
        if let Kind::Handler(handler) = &mut self.kind {
            let loaded = handler.loaded();
            let is_reported = !loaded.files.is_empty();
            task.report(WorkerEvent::Loaded(loaded)).await;
            if !is_reported {
                task.report(WorkerEvent::Loaded(LoadedFiles::of_folder(&app.directory))).await;
            }
        }
        Ok(ready)
    }

    /// Hands the worker's sockets to the cores, once they run.
    async fn attach(&mut self, task: &mut Task, ready: Ready) -> Result<Arc<Worker>, Cause> {
        let Ready { transport, concurrency, sockets, .. } = ready;
        let (shared, count) = (Arc::clone(&task.shared), sockets.len());
        let (report, mut reports) = Reports::new(shared.cores);
        let worker = Worker::new(task.id, task.index, transport, concurrency, report);
        worker.set_pid(self.process.pid());
        if count > 0 {
            let attached = async {
                // `None` only where the server does not start after all.
                let Some(attach) = shared.attach().await else { return std::future::pending().await };
                attach(Arc::clone(&worker), sockets).await;
                reports.attached(count).await
            };
            tokio::select! {
                attached = attached => attached.map_err(Cause::Broken)?,
                _ = self.process.ended() => return Err(Cause::Exited),
                _ = task.command() => return Err(Cause::Dismissed),
            }
        }
        self.reports = Some(reports);
        Ok(worker)
    }

    /// Serves until the command to drain.
    async fn serve(&mut self, task: &mut Task, worker: &Worker) -> Result<(), Cause> {
        let (pid, stuck_after) = (self.process.pid(), task.app.stuck_after);
        loop {
            tokio::select! {
                // What the worker said counts first: it is not stuck where this server itself stood still.
                biased;
                signal = self.kind.signal(worker, pid, stuck_after) => match signal? {
                    Signal::Loaded => self.report_loaded(task).await,
                    Signal::Drain => task.report(WorkerEvent::Withdraw(Withdrawal::Requested)).await,
                    Signal::Health { resident_bytes, lag, requests } => {
                        let is_due = self.is_due(task, resident_bytes, requests);
                        task.report(WorkerEvent::Health { resident_bytes, lag, is_due }).await;
                    }
                    Signal::Due => {
                        if worker.is_withdrawn() {
                            // A core found that it refuses; it may never say so itself, and would stay idle.
                            task.report(WorkerEvent::Withdraw(Withdrawal::Requested)).await;
                        }
                        self.kind.ping(worker).await;
                    }
                },
                _ = self.process.ended() => return Err(Cause::Exited),
                (reason, is_broken) = lost(&mut self.reports) => return Err(Cause::lost(reason, is_broken)),
                command = task.command() => match command {
                    WorkerCommand::AnnounceStop => self.kind.announce_drain().await,
                    WorkerCommand::Drain => return Ok(()),
                    WorkerCommand::Kill => return Err(Cause::Killed),
                },
            }
        }
    }

    /// Waits until the worker, which has been withdrawn, has finished its requests, and ends it.
    async fn drain(&mut self, task: &mut Task, worker: &Worker) -> Result<Cause, Cause> {
        let deadline = Instant::now() + task.app.stop_timeout;
        self.kind.announce_drain().await;
        let mut look = interval(WORKER_DRAIN_LOOK_PERIOD);
        while worker.in_flight() > 0 {
            tokio::select! {
                broken = self.kind.broken() => return Err(broken),
                _ = self.process.ended() => return Err(Cause::Exited),
                // A connection of a program that breaks now has lost its own request, no more.
                (reason, is_broken) = lost(&mut self.reports), if self.kind.is_handler() => {
                    return Err(Cause::lost(reason, is_broken));
                }
                () = sleep_until(deadline) => return Err(Cause::Overdue),
                () = task.killed() => return Err(Cause::Killed),
                _ = look.tick() => {}
            }
        }
        if let Kind::Handler(handler) = &mut self.kind {
            handler.retire().await;
            tokio::select! {
                // Cores may lose its connections before its process has ended, which is what counts.
                _ = self.process.ended() => {}
                () = handler.discard() => {}
                () = sleep_until(deadline) => return Err(Cause::Overdue),
                () = task.killed() => return Err(Cause::Killed),
            }
        }
        Ok(Cause::Retired)
    }

    /// Ends the process, and finds the reason.
    async fn end(&mut self, task: &Task, cause: Cause) -> End {
        let pid = self.process.pid();
        let was_ready = self.reports.is_some();
        let unready = if was_ready { "" } else { self.kind.unready() };
        let (reason, failed) = match cause {
            Cause::Retired => {
                let status = self.process.terminate().await;
                (format!("finished what it had, {}", explain(status)), false)
            }
            Cause::Killed if self.kind.is_handler() => {
                self.process.end().await;
                (UNWANTED.to_owned(), false)
            }
            // A program knows of no other end than the signal. Who still starts has no request, but may be in the middle of
            // a migration, or hold a lock that is a file.
            Cause::Killed | Cause::Dismissed => {
                self.process.terminate().await;
                (UNWANTED.to_owned(), false)
            }
            Cause::Overdue => {
                task.report(WorkerEvent::Withdraw(Withdrawal::Lost)).await;
                let status = self.process.terminate().await;
                (format!("did not finish within {:?}: {}", task.app.stop_timeout, explain(status)), false)
            }
            Cause::Failed(why) => {
                let _ = ended_within(&mut self.process, WORKER_EXIT_EXPLAINED_DEADLINE).await;
                self.process.end().await;
                // What it says holds what it also wrote to standard error.
                let reason = self.with_version(was_ready, reason::whole(&why)).await;
                return End { pid, reason, failed: true, never_ran: false };
            }
            Cause::TooSlow => {
                self.process.end().await;
                (self.kind.too_slow(task.app.start_timeout), true)
            }
            Cause::Stuck(since) => {
                task.report(WorkerEvent::Withdraw(Withdrawal::Stuck)).await;
                let stack = stack::of(&mut self.process).await;
                let app = task.app.name.clone();
                task.shared.report(AppEvent::WorkerStuck { app, pid, since, stack });
                self.process.end().await;
                (format!("its event loop did not turn for {:.1} s", since.as_secs_f64()), true)
            }
            Cause::Exited | Cause::Broken(_) | Cause::ConnectionLost(_) => {
                task.report(WorkerEvent::Withdraw(Withdrawal::Lost)).await;
                let status = ended_within(&mut self.process, WORKER_EXIT_EXPLAINED_DEADLINE).await;
                self.process.end().await;
                let broken = match &cause {
                    Cause::Broken(reason) => Some(reason.clone()),
                    // It ends when its connection is closed: the reason came before its end.
                    _ => self.reports.as_mut().and_then(Reports::already_broken),
                };
                let reason = match (broken, status, cause) {
                    (Some(reason), _, _) => reason,
                    (None, Some(status), _) => format!("ended{unready}: {}", explain(status)),
                    (None, None, Cause::ConnectionLost(reason)) => reason,
                    (None, None, _) => format!("closed its control connection{unready}"),
                };
                (reason, true)
            }
        };
        if !failed {
            return End { pid, reason, failed, never_ran: false };
        }
        let last_lines = self.process.last_lines().await;
        let reason = self.with_version(was_ready, reason).await;
        End { pid, reason: reason + &last_lines, failed, never_ran: false }
    }

    async fn report_loaded(&mut self, task: &Task) {
        if let Kind::Handler(handler) = &mut self.kind {
            task.report(WorkerEvent::Loaded(handler.loaded())).await;
        }
    }

    /// Whether the worker is to be replaced for its age, its requests or its memory.
    fn is_due(&self, task: &Task, resident_bytes: u64, requests: u64) -> bool {
        let (recycle, age) = (&task.app.recycle, self.started.elapsed());
        // A bound below what it needs from the start must not replace workers without pause.
        let is_grown = age >= WORKER_HEALTHY_AFTER;
        recycle.resident_bytes.is_some_and(|bound| is_grown && resident_bytes >= bound)
            || recycle.requests.is_some_and(|bound| requests >= bound)
            || recycle.age.is_some_and(|bound| age >= bound)
    }

    /// The reason, and that the runtime is too old, which may be why a worker was never ready.
    async fn with_version(&self, was_ready: bool, reason: String) -> String {
        if was_ready {
            return reason;
        }
        let version = self.process.node_version().await.unwrap_or_default();
        match reason::unsupported(&version) {
            Some(unsupported) => format!("{unsupported}; it {}", reason::lowered(&reason)),
            None => reason,
        }
    }
}

impl Kind {
    fn is_handler(&self) -> bool {
        matches!(self, Kind::Handler(_))
    }

    /// Waits until the worker is ready. `pid` is its process.
    async fn ready(&mut self, app: &App, shared: &Shared, pid: u32) -> Result<Ready, Cause> {
        match self {
            Kind::Handler(handler) => handler.ready(app, shared).await,
            Kind::Program(program) => Ok(program.ready(app, pid).await),
        }
    }

    /// Why the process has ended that was not ready.
    async fn last_message(&mut self) -> Cause {
        match self {
            Kind::Handler(handler) => handler.last_message().await,
            Kind::Program(_) => Cause::Exited,
        }
    }

    /// Waits for what happens next. May be cancelled and called again.
    async fn signal(&mut self, worker: &Worker, pid: u32, stuck_after: Duration) -> Result<Signal, Cause> {
        match self {
            Kind::Handler(handler) => handler.signal(worker, stuck_after).await,
            Kind::Program(program) => Ok(program.signal(worker, pid).await),
        }
    }

    /// Asks how the worker is.
    async fn ping(&mut self, worker: &Worker) {
        if let Kind::Handler(handler) = self {
            handler.ping(worker).await;
        }
    }

    /// Lets the worker close what its clients would keep open for ever.
    async fn announce_drain(&mut self) {
        if let Kind::Handler(handler) = self {
            handler.announce_drain().await;
        }
    }

    /// Waits until the worker breaks the protocol while it drains.
    async fn broken(&mut self) -> Cause {
        match self {
            Kind::Handler(handler) => handler.broken().await,
            Kind::Program(_) => std::future::pending().await,
        }
    }

    /// The Unix socket on which the worker may listen.
    fn socket(&self) -> &Path {
        match self {
            Kind::Handler(handler) => handler.socket(),
            Kind::Program(program) => program.socket(),
        }
    }

    /// What follows "ended" where it never was ready.
    fn unready(&self) -> &'static str {
        match self {
            Kind::Handler(_) => " before it was ready",
            Kind::Program(_) => " before it could be connected to",
        }
    }

    /// The reason of one that was not ready in time.
    fn too_slow(&self, timeout: Duration) -> String {
        match self {
            Kind::Handler(_) => format!("was not ready within {timeout:?}"),
            Kind::Program(program) => program.too_slow(timeout),
        }
    }
}

/// Waits until a core has lost its connection: why, and whether the worker broke the protocol.
async fn lost(reports: &mut Option<Reports>) -> (String, bool) {
    match reports {
        Some(reports) => reports.lost().await,
        None => std::future::pending().await,
    }
}
