//! The life of one worker that speaks the worker protocol, from its start to its end.
//!
//! Follows docs/worker-protocol.md on the control lane. Decides nothing about other workers: it tells the
//! owner of the application (`app.rs`) what happens, and obeys it.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use onehop_config::checked::{App, AppAddress};
use onehop_wire::{Pong, Transport as Spoken};
use onehop_workers::limits::{HANDLER_CONCURRENCY, SERVER_CONCURRENCY};
use onehop_workers::{ConnectionEvent, Transport, Worker};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, sleep_until};

use super::control_lane::{ControlLane, Heard};
use super::launch::{self, Beside, HttpSocket, Lanes};
use super::messages::{Command, End, News, Task, Withdrawal, reports};
use super::process::{Process, ended_within, explain};
use super::program::connects;
use super::reason;
use super::stack;
use super::unpacked::unpacked;
use crate::control::events::Event;
use crate::control::loaded::{self, Files};
use crate::limits::{
    WORKER_BUSY_PING_PERIOD, WORKER_DRAIN_LOOK_PERIOD, WORKER_EXIT_EXPLAINED_DEADLINE, WORKER_HEALTHY_AFTER,
    WORKER_LAG_SETTLED, WORKER_OUTPUT_END_DEADLINE, WORKER_PING_PERIOD,
};

/// Lives until the process has ended.
pub(super) async fn live(mut task: Task) {
    let begun = unpacked(&mut task).await.and_then(|()| begin(&task).map_err(End::before_its_process));
    let end = match begun {
        Ok((process, lanes, files, since)) => {
            let begun = Instant::now();
            let pid = process.pid();
            let socket = lanes.http.path.clone();
            let surroundings = Arc::clone(&task.surroundings);
            surroundings.guard().inspect(|guard| guard.add(pid));
            task.tell(News::Started { pid }).await;
            task.tell(News::Loaded(loaded::News { files, ..loaded::News::default() })).await;
            let mut life =
                Life { process, begun, since, report: None, has_said_drain: false, silent: Vec::new() };
            let why = life.run(&mut task, lanes).await;
            let end = life.end(&task, why).await;
            surroundings.guard().inspect(|guard| guard.remove(pid));
            let _ = std::fs::remove_file(socket);
            end
        }
        Err(end) => end,
    };
    task.tell(News::Ended(end)).await;
}

fn begin(task: &Task) -> Result<(Process, Lanes, Files, SystemTime), String> {
    let surroundings = &task.surroundings;
    let options = &surroundings.options;
    let beside = Beside {
        folder: surroundings.folder()?,
        number: task.id.0,
        cores: surroundings.cores,
        watch: options.watch,
        packed: surroundings.packed(),
    };
    let (launch, lanes) = launch::handler(&task.app, &beside)?;
    let (files, since) = (launch.files(&task.app), SystemTime::now());
    let process = Process::start(launch, options, &task.app.resources, &task.app.name, &surroundings.events)?;
    Ok((process, lanes, files, since))
}

struct Life {
    process: Process,
    begun: Instant,
    /// What is loaded from now on was loaded after this.
    since: SystemTime,
    report: Option<mpsc::Receiver<ConnectionEvent>>,
    has_said_drain: bool,
    /// Lanes that nobody uses: at their end the worker would give itself up.
    silent: Vec<UnixStream>,
}

/// Why a life ends.
enum Why {
    /// By itself; the status is asked for.
    Exited,
    /// It was not ready in time.
    TooSlow,
    /// It says so.
    Failed(String),
    /// It does not keep to the protocol; for a person.
    Broken(String),
    /// A core has lost its lane; for a person.
    LaneLost(String),
    /// It did not turn for so long.
    Stuck(Duration),
    /// It did what it was told.
    Retired,
    /// It was told to end, and did not in time.
    Overdue,
    /// It was not wanted any more.
    Killed,
}

impl Life {
    async fn run(&mut self, task: &mut Task, lanes: Lanes) -> Why {
        match self.stages(task, lanes).await {
            Ok(why) | Err(why) => why,
        }
    }

    async fn stages(&mut self, task: &mut Task, lanes: Lanes) -> Result<Why, Why> {
        let deadline = self.begun + task.app.start_timeout;
        let mut control = ControlLane::new(lanes.control)
            .map_err(|error| Why::Broken(format!("its control lane cannot be used: {error}")))?;
        control.hello(lanes.data.len(), task.surroundings.windows, &task.app.name).await;
        let (runtime, spoken) = self.handshake(task, &mut control, deadline).await?;
        let paths = control.take_loaded();
        let is_told = !paths.is_empty();
        self.loaded(task, paths).await;
        if !is_told {
            task.tell(News::Loaded(loaded::News::of_folder(&task.app.directory))).await;
        }
        let (report, mut reported) = reports(task.surroundings.cores);
        let (transport, data) = match spoken {
            Spoken::Frames | Spoken::FramesForServer => (Transport::Frames, lanes.data),
            Spoken::Http => {
                self.silent = lanes.data;
                (over_http(lanes.http).await?, Vec::new())
            }
        };
        let worker = Worker::new(task.id, task.seat, transport, concurrency(&task.app, spoken), report);
        let surroundings = Arc::clone(&task.surroundings);
        tokio::select! {
            attached = attach(surroundings, &worker, data, &mut reported) => attached.map_err(Why::Broken)?,
            _ = self.process.ended() => return Err(Why::Exited),
            _ = task.command() => return Err(Why::Killed),
        }
        self.report = Some(reported);
        if let Some(unsupported) = reason::unsupported(&runtime) {
            let message = format!("application {}: {unsupported}", task.app.name);
            task.surroundings.say(Event::Warning { message });
        }
        task.tell(News::Ready { worker: Arc::clone(&worker), runtime }).await;
        self.serve(task, &mut control, &worker).await?;
        self.drain(task, &mut control, &worker).await
    }

    async fn handshake(
        &mut self,
        task: &mut Task,
        control: &mut ControlLane,
        deadline: Instant,
    ) -> Result<(String, Spoken), Why> {
        let heard = async {
            loop {
                match control.hear().await {
                    Ok(Heard::Loaded) => {}
                    heard => return heard,
                }
            }
        };
        tokio::select! {
            heard = heard => match heard {
                Ok(Heard::Ready(runtime, spoken)) => Ok((runtime, spoken)),
                Ok(Heard::Failed(why)) => Err(Why::Failed(why)),
                Ok(Heard::End) => Err(Why::Exited),
                Ok(Heard::Pong(_) | Heard::Drain | Heard::Loaded) => {
                    Err(Why::Broken("it broke the worker protocol: it spoke before it was ready".into()))
                }
                Err(broken) => Err(not_a_frame(broken)),
            },
            _ = self.process.ended() => {
                // What it said last may not have been heard yet.
                let last = tokio::time::timeout(WORKER_OUTPUT_END_DEADLINE, control.hear()).await;
                Err(match last {
                    Ok(Ok(Heard::Failed(why))) => Why::Failed(why),
                    Ok(Err(broken)) => not_a_frame(broken),
                    _ => Why::Exited,
                })
            }
            () = sleep_until(deadline) => Err(Why::TooSlow),
            // There is nothing to finish yet.
            _ = task.command() => Err(Why::Killed),
        }
    }

    /// Until it is told to drain.
    async fn serve(
        &mut self,
        task: &mut Task,
        control: &mut ControlLane,
        worker: &Worker,
    ) -> Result<(), Why> {
        let mut pace = Pace::new();
        let mut token = 0;
        let mut asked: Option<Instant> = None;
        loop {
            // A worker that answers requests is not stuck, however long its turn lasts.
            let silent_since = asked.map(|asked| asked.max(worker.last_heard().into()));
            let stuck_at = silent_since.map(|since| since + task.app.stuck_after);
            tokio::select! {
                // What it said counts first: it is not stuck where this server itself stood still.
                biased;
                heard = control.hear() => match understood(heard)? {
                    Said::Loaded => self.loaded(task, control.take_loaded()).await,
                    Said::Pong(pong) => {
                        if asked.take().is_none() || pong.token != token {
                            return Err(Why::Broken("it answered a PING that was not asked".into()));
                        }
                        worker.measured_lag(Duration::from_micros(pong.delay_us.into()));
                        self.since = SystemTime::now();
                        task.tell(self.health(task, &pong, worker)).await;
                    }
                    Said::Drain => task.tell(News::Withdraw(Withdrawal::Asked)).await,
                },
                _ = self.process.ended() => return Err(Why::Exited),
                (reason, is_broken) = lost(&mut self.report) => {
                    return Err(if is_broken { Why::Broken(reason) } else { Why::LaneLost(reason) });
                }
                command = task.command() => match command {
                    Command::TakeLeave => self.say_drain(&mut *control).await,
                    Command::Drain => return Ok(()),
                    Command::Kill => return Err(Why::Killed),
                },
                () = until(stuck_at) => {
                    if silent_since.is_none_or(|since| since >= worker.last_heard().into()) {
                        return Err(Why::Stuck(asked.map_or(Duration::ZERO, |asked| asked.elapsed())));
                    }
                }
                () = pace.tick(worker) => {
                    if worker.is_withdrawn() {
                        // A core found that it refuses; it may never say so itself, and would stand idle.
                        task.tell(News::Withdraw(Withdrawal::Asked)).await;
                    }
                    if asked.is_none() {
                        token += 1;
                        let now = Instant::now();
                        asked = Some(now);
                        worker.was_pinged(now.into_std());
                        control.ping(token).await;
                    }
                }
            }
        }
    }

    async fn loaded(&mut self, task: &Task, paths: Vec<PathBuf>) {
        let since = std::mem::replace(&mut self.since, SystemTime::now());
        let files = loaded::loaded(paths, since);
        task.tell(News::Loaded(loaded::News { files, ..loaded::News::default() })).await;
    }

    /// Of a worker that never was ready the reason may be that its runtime is too old.
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

    async fn say_drain(&mut self, control: &mut ControlLane) {
        if !std::mem::replace(&mut self.has_said_drain, true) {
            control.drain().await;
        }
    }

    fn health(&self, task: &Task, pong: &Pong, worker: &Worker) -> News {
        let recycle = &task.app.recycle;
        // A bound below what it needs to begin with must not replace workers without pause.
        let is_grown = self.begun.elapsed() >= WORKER_HEALTHY_AFTER;
        let is_due = recycle.resident_bytes.is_some_and(|bound| is_grown && pong.resident_bytes >= bound)
            || recycle.requests.is_some_and(|bound| worker.started().max(pong.begun) >= bound)
            || recycle.age.is_some_and(|bound| self.begun.elapsed() >= bound);
        let lag = Duration::from_micros(pong.delay_us.into());
        News::Health { resident_bytes: pong.resident_bytes, lag, is_due }
    }

    /// It has been withdrawn: what it was handed is finished, then it ends.
    async fn drain(
        &mut self,
        task: &mut Task,
        control: &mut ControlLane,
        worker: &Worker,
    ) -> Result<Why, Why> {
        let deadline = Instant::now() + task.app.stop_timeout;
        self.say_drain(control).await;
        let mut look = interval(WORKER_DRAIN_LOOK_PERIOD);
        while worker.in_flight() > 0 {
            tokio::select! {
                heard = control.hear() => {
                    understood(heard)?;
                    control.take_loaded();
                }
                _ = self.process.ended() => return Err(Why::Exited),
                (reason, is_broken) = lost(&mut self.report) => {
                    return Err(if is_broken { Why::Broken(reason) } else { Why::LaneLost(reason) });
                }
                () = sleep_until(deadline) => return Err(Why::Overdue),
                command = task.command() => if command == Command::Kill { return Err(Why::Killed) },
                _ = look.tick() => {}
            }
        }
        control.retire().await;
        loop {
            tokio::select! {
                // Whatever it says now, its end is what counts; cores may lose its lanes before.
                heard = control.hear() => if matches!(heard, Ok(Heard::End) | Err(_)) {
                    tokio::select! {
                        _ = self.process.ended() => return Ok(Why::Retired),
                        () = sleep_until(deadline) => return Err(Why::Overdue),
                    }
                },
                _ = self.process.ended() => return Ok(Why::Retired),
                () = sleep_until(deadline) => return Err(Why::Overdue),
                command = task.command() => if command == Command::Kill { return Err(Why::Killed) },
            }
        }
    }

    async fn end(&mut self, task: &Task, why: Why) -> End {
        let pid = self.process.pid();
        let was_ready = self.report.is_some();
        let before = if was_ready { "" } else { " before it was ready" };
        let (reason, failed) = match why {
            Why::Retired => {
                let status = self.process.ended().await;
                (format!("finished what it had, {}", explain(status)), false)
            }
            Why::Killed => {
                self.process.end().await;
                ("it was not wanted any more".to_owned(), false)
            }
            Why::Overdue => {
                task.tell(News::Withdraw(Withdrawal::Lost)).await;
                let status = self.process.terminate().await;
                (format!("did not finish within {:?}: {}", task.app.stop_timeout, explain(status)), false)
            }
            Why::Failed(why) => {
                let _ = ended_within(&mut self.process, WORKER_EXIT_EXPLAINED_DEADLINE).await;
                self.process.end().await;
                // What it says holds what it also wrote to standard error.
                let reason = self.with_version(was_ready, reason::whole(&why)).await;
                return End { pid, reason, failed: true, never_ran: false };
            }
            Why::TooSlow => {
                self.process.end().await;
                (format!("was not ready within {:?}", task.app.start_timeout), true)
            }
            Why::Stuck(since) => {
                task.tell(News::Withdraw(Withdrawal::Stuck)).await;
                let stack = stack::of(&mut self.process).await;
                let app = task.app.name.clone();
                task.surroundings.say(Event::WorkerStuck { app, pid, since, stack });
                self.process.end().await;
                (format!("its event loop did not turn for {:.1} s", since.as_secs_f64()), true)
            }
            Why::Exited | Why::Broken(_) | Why::LaneLost(_) => {
                task.tell(News::Withdraw(Withdrawal::Lost)).await;
                let found = ended_within(&mut self.process, WORKER_EXIT_EXPLAINED_DEADLINE).await;
                self.process.end().await;
                let broken = match &why {
                    Why::Broken(reason) => Some(reason.clone()),
                    // It ends when its lane is closed: the reason came before its end.
                    _ => self.report.as_mut().and_then(already_broken),
                };
                match (broken, found, why) {
                    (Some(reason), _, _) => (reason, true),
                    (None, Some(status), _) => (format!("ended{before}: {}", explain(status)), true),
                    (None, None, Why::LaneLost(reason)) => (reason, true),
                    (None, None, _) => (format!("closed its control lane{before}"), true),
                }
            }
        };
        let last_lines = if failed { self.process.last_lines().await } else { String::new() };
        let reason = if failed { self.with_version(was_ready, reason).await } else { reason };
        End { pid, reason: reason + &last_lines, failed, never_ran: false }
    }
}

/// When a worker is asked how it is: often while requests come. (Those that stay, as tunnels do, are no reason.)
struct Pace {
    next: Instant,
    /// Requests that it was handed until the last time.
    begun: u64,
}

impl Pace {
    fn new() -> Self {
        Self { next: Instant::now(), begun: 0 }
    }

    /// Waits until it is to be asked. What was waited for is kept where this is dropped before.
    async fn tick(&mut self, worker: &Worker) {
        sleep_until(self.next).await;
        let begun = worker.started();
        let is_busy = begun != self.begun || worker.lag(Instant::now().into_std()) >= WORKER_LAG_SETTLED;
        self.begun = begun;
        self.next = Instant::now() + if is_busy { WORKER_BUSY_PING_PERIOD } else { WORKER_PING_PERIOD };
    }
}

/// Requests that the worker is handed at a time.
fn concurrency(app: &App, spoken: Spoken) -> usize {
    let usual = match spoken {
        Spoken::Frames => HANDLER_CONCURRENCY,
        Spoken::Http | Spoken::FramesForServer => SERVER_CONCURRENCY,
    };
    app.concurrency.map_or(usual, |written| written as usize)
}

fn not_a_frame(broken: onehop_wire::Broken) -> Why {
    Why::Broken(format!("its first frame is none of the worker protocol: {broken}"))
}

/// How a worker is reached that asks for HTTP. That it listens is looked at once; afterwards its control lane
/// tells how it is.
async fn over_http(socket: HttpSocket) -> Result<Transport, Why> {
    let HttpSocket { path, uid } = socket;
    let address = AppAddress::Unix(path);
    match connects(&address, uid).await {
        Ok(()) => Ok(Transport::Http { address, uid }),
        Err(error) => Err(Why::Broken(format!(
            "it is ready to be spoken to in HTTP, and the socket that $ONEHOP_HTTP_SOCKET named takes no connection: {error}"
        ))),
    }
}

/// Hands the lanes over, once the cores are there.
async fn attach(
    surroundings: Arc<super::Surroundings>,
    worker: &Arc<Worker>,
    lanes: Vec<UnixStream>,
    reported: &mut mpsc::Receiver<ConnectionEvent>,
) -> Result<(), String> {
    let cores = lanes.len();
    // None only where the server does not start after all.
    let Some(doors) = surroundings.doors().await else { return std::future::pending().await };
    doors.attach(worker, lanes).await;
    let mut attached = 0;
    while attached < cores {
        match reported.recv().await {
            Some(ConnectionEvent::Attached { .. }) => attached += 1,
            Some(ConnectionEvent::Lost { reason, .. }) => return Err(reason),
            None => break,
        }
    }
    Ok(())
}

/// What a worker that is ready says.
enum Said {
    Pong(Pong),
    /// It asks for no more requests.
    Drain,
    Loaded,
}

fn understood(heard: Result<Heard, onehop_wire::Broken>) -> Result<Said, Why> {
    match heard {
        Ok(Heard::Pong(pong)) => Ok(Said::Pong(pong)),
        Ok(Heard::Drain) => Ok(Said::Drain),
        Ok(Heard::Loaded) => Ok(Said::Loaded),
        Ok(Heard::End) => Err(Why::Exited),
        Ok(Heard::Ready(..) | Heard::Failed(_)) => Err(Why::Broken("it was ready a second time".into())),
        Err(broken) => Err(Why::Broken(format!("its control lane is broken: {broken}"))),
    }
}

/// Waits until a core has lost a lane; why, and whether the worker broke the protocol.
pub(super) async fn lost(reported: &mut Option<mpsc::Receiver<ConnectionEvent>>) -> (String, bool) {
    let Some(reported) = reported else { return std::future::pending().await };
    loop {
        match reported.recv().await {
            Some(ConnectionEvent::Lost { reason, is_broken, .. }) => return (reason, is_broken),
            Some(_) => {}
            None => return std::future::pending().await,
        }
    }
}

/// How the worker broke the protocol, if a core has said so.
fn already_broken(reported: &mut mpsc::Receiver<ConnectionEvent>) -> Option<String> {
    loop {
        if let ConnectionEvent::Lost { reason, is_broken: true, .. } = reported.try_recv().ok()? {
            return Some(reason);
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
