//! The life of one worker that speaks HTTP: a program that is started here, or one that somebody else starts.
//!
//! Ready is who can be connected to. Decides nothing about other workers, as `handler.rs`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use onehop_config::checked::{App, AppAddress, AppRun};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, sleep, sleep_until, timeout};

use super::handler::lost;
use super::launch::{self, Doors};
use super::messages::{Command, End, News, Task, Withdrawal, reports};
use super::process::{Process, ended_within, explain};
use super::unpacked::unpacked;
use crate::control::loaded;
use crate::limits::{
    ELSEWHERE_PROBE_PERIOD, PROBE_DEADLINE, PROGRAM_PROBE_PERIOD, WORKER_DRAIN_LOOK_PERIOD,
    WORKER_EXIT_EXPLAINED_DEADLINE, WORKER_PING_PERIOD,
};
use crate::request::upstream::dial::connect_unix;
use onehop_workers::limits::HANDLER_CONCURRENCY;
use onehop_workers::{ConnectionEvent, Transport, Worker};

/// Lives until the process has ended.
pub(super) async fn live(mut task: Task) {
    let begun = unpacked(&mut task).await.and_then(|()| begin(&task).map_err(End::before_its_process));
    let end = match begun {
        Ok((process, doors, loaded)) => {
            let begun = Instant::now();
            let (surroundings, pid) = (Arc::clone(&task.surroundings), process.pid());
            surroundings.guard().inspect(|guard| guard.add(pid));
            task.tell(News::Started { pid }).await;
            for news in loaded {
                task.tell(News::Loaded(news)).await;
            }
            let mut life = Life { process, begun, report: None, refused: None };
            let why = life.stages(&mut task, &doors).await.unwrap_or_else(|why| why);
            let end = life.end(&task, why).await;
            surroundings.guard().inspect(|guard| guard.remove(pid));
            let _ = std::fs::remove_file(&doors.socket);
            end
        }
        Err(end) => end,
    };
    task.tell(News::Ended(end)).await;
}

fn begin(task: &Task) -> Result<(Process, Doors, [loaded::News; 2]), String> {
    let surroundings = &task.surroundings;
    let (launch, doors) = launch::program(
        &task.app,
        surroundings.folder()?,
        task.id.0,
        surroundings.packed(),
        &surroundings.ports,
    )?;
    let named = loaded::News { files: launch.files(&task.app), ..loaded::News::default() };
    let loaded = [named, loaded::News::of_folder(&task.app.directory)];
    let process = Process::start(
        launch,
        &surroundings.options,
        &task.app.resources,
        &task.app.name,
        &surroundings.events,
    )?;
    Ok((process, doors, loaded))
}

struct Life {
    process: Process,
    begun: Instant,
    report: Option<mpsc::Receiver<ConnectionEvent>>,
    /// Why what lies in the place of its socket is not connected to.
    refused: Option<String>,
}

/// Why a life ends.
enum Why {
    Exited,
    TooSlow,
    /// A core says so.
    Lost(String),
    Drained,
    Overdue,
    Killed,
}

impl Life {
    async fn stages(&mut self, task: &mut Task, doors: &Doors) -> Result<Why, Why> {
        let deadline = self.begun + task.app.start_timeout;
        let pid = self.process.pid();
        let address = tokio::select! {
            address = reachable(doors, pid, &mut self.refused) => address,
            _ = self.process.ended() => return Err(Why::Exited),
            () = sleep_until(deadline) => return Err(Why::TooSlow),
            _ = task.command() => return Err(Why::Killed),
        };
        let (report, reported) = reports(task.surroundings.cores);
        let transport = Transport::Http { address, uid: doors.uid };
        let worker = Worker::new(task.id, task.seat, transport, concurrency(&task.app), report);
        self.report = Some(reported);
        let runtime = program_name(&task.app.run);
        task.tell(News::Ready { worker: Arc::clone(&worker), runtime }).await;
        self.serve(task, &worker).await?;
        self.drain(task, &worker).await
    }

    /// Until it is told to drain.
    async fn serve(&mut self, task: &mut Task, worker: &Worker) -> Result<(), Why> {
        let mut look = interval(WORKER_PING_PERIOD);
        loop {
            tokio::select! {
                _ = self.process.ended() => return Err(Why::Exited),
                (lost, _) = lost(&mut self.report) => return Err(Why::Lost(lost)),
                command = task.command() => match command {
                    // It knows nothing of that.
                    Command::TakeLeave => {}
                    Command::Drain => return Ok(()),
                    Command::Kill => return Err(Why::Killed),
                },
                _ = look.tick() => task.tell(self.health(task, worker)).await,
            }
        }
    }

    fn health(&self, task: &Task, worker: &Worker) -> News {
        let resident_bytes = self.process.resident_bytes();
        let recycle = &task.app.recycle;
        let is_due = recycle.resident_bytes.is_some_and(|bound| resident_bytes >= bound)
            || recycle.requests.is_some_and(|bound| worker.started() >= bound)
            || recycle.age.is_some_and(|bound| self.begun.elapsed() >= bound);
        News::Health { resident_bytes, lag: Duration::ZERO, is_due }
    }

    async fn drain(&mut self, task: &mut Task, worker: &Worker) -> Result<Why, Why> {
        let deadline = Instant::now() + task.app.stop_timeout;
        let mut look = interval(WORKER_DRAIN_LOOK_PERIOD);
        while worker.in_flight() > 0 {
            tokio::select! {
                _ = self.process.ended() => return Err(Why::Exited),
                () = sleep_until(deadline) => return Err(Why::Overdue),
                command = task.command() => if command == Command::Kill { return Err(Why::Killed) },
                _ = look.tick() => {}
            }
        }
        Ok(Why::Drained)
    }

    async fn end(&mut self, task: &Task, why: Why) -> End {
        let pid = self.process.pid();
        let before = if self.report.is_some() { "" } else { " before it could be connected to" };
        let (reason, failed) = match why {
            Why::Drained => {
                let status = self.process.terminate().await;
                (format!("finished what it had: {}", explain(status)), false)
            }
            Why::Killed => {
                self.process.terminate().await;
                ("it was not wanted any more".to_owned(), false)
            }
            Why::Overdue => {
                task.tell(News::Withdraw(Withdrawal::Lost)).await;
                let status = self.process.terminate().await;
                (format!("did not finish within {:?}: {}", task.app.stop_timeout, explain(status)), false)
            }
            Why::TooSlow => {
                self.process.end().await;
                let reason = format!(
                    "could not be connected to within {:?}: let it listen on the Unix socket $ONEHOP_SOCKET or on \
                     port $PORT of 127.0.0.1{}",
                    task.app.start_timeout,
                    self.refused.take().map(|refused| format!(" ({refused})")).unwrap_or_default(),
                );
                (reason, true)
            }
            Why::Exited | Why::Lost(_) => {
                task.tell(News::Withdraw(Withdrawal::Lost)).await;
                let found = ended_within(&mut self.process, WORKER_EXIT_EXPLAINED_DEADLINE).await;
                self.process.end().await;
                match (found, why) {
                    (None, Why::Lost(reason)) => (reason, true),
                    (Some(status), _) => (format!("ended{before}: {}", explain(status)), true),
                    (None, _) => ("was lost".to_owned(), true),
                }
            }
        };
        let last_lines = if failed { self.process.last_lines().await } else { String::new() };
        End { pid, reason: reason + &last_lines, failed, never_ran: false }
    }
}

/// The life of a worker that somebody else starts: no process, only an address.
pub(super) async fn live_elsewhere(mut task: Task, address: AppAddress) {
    let runtime = program_name(&task.app.run);
    let (mut worker, mut reported) = elsewhere(&task, &address);
    let mut look = interval(ELSEWHERE_PROBE_PERIOD);
    // What was last told. Nothing before the first look: requests wait that long.
    let mut is_there = None;
    let drained = loop {
        tokio::select! {
            command = task.command() => break command == Command::Drain,
            // A connection that broke says no more than that: a look tells.
            _ = lost(&mut reported) => look.reset_immediately(),
            _ = look.tick() => {
                let answers = connects(&address, None).await.is_ok();
                if answers && is_there != Some(true) {
                    (worker, reported) = elsewhere(&task, &address);
                    task.tell(News::Ready { worker: Arc::clone(&worker), runtime: runtime.clone() }).await;
                } else if !answers && is_there != Some(false) {
                    task.tell(News::Withdraw(Withdrawal::Lost)).await;
                }
                is_there = Some(answers);
            }
        }
    };
    let finished = async {
        while worker.in_flight() > 0 {
            sleep(WORKER_DRAIN_LOOK_PERIOD).await;
        }
    };
    if drained {
        let _ = timeout(task.app.stop_timeout, finished).await;
    }
    let reason = "it is not asked any more".to_owned();
    task.tell(News::Ended(End { pid: 0, reason, failed: false, never_ran: false })).await;
}

fn elsewhere(task: &Task, address: &AppAddress) -> (Arc<Worker>, Option<mpsc::Receiver<ConnectionEvent>>) {
    let (report, reported) = reports(task.surroundings.cores);
    let transport = Transport::Http { address: address.clone(), uid: None };
    let worker = Worker::new(task.id, task.seat, transport, concurrency(&task.app), report);
    (worker, Some(reported))
}

/// Requests that a program is handed at a time. Nothing is known of it; one that takes its connections one by one
/// has a listen backlog, and more than that would not reach it.
fn concurrency(app: &App) -> usize {
    app.concurrency.map_or(HANDLER_CONCURRENCY, |written| written as usize)
}

/// Whichever of the two answers first, the Unix socket where both do; a port only if the program itself listens there.
async fn reachable(doors: &Doors, program: u32, refused: &mut Option<String>) -> AppAddress {
    let (unix, tcp) = (AppAddress::Unix(doors.socket.clone()), AppAddress::Tcp(doors.port.address()));
    loop {
        for address in [&unix, &tcp] {
            match connects(address, doors.uid).await {
                Ok(()) => match (*address == tcp).then(|| doors.port.refusal(program)).flatten() {
                    Some(reason) => *refused = Some(reason),
                    None => return address.clone(),
                },
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    *refused = Some(error.to_string());
                }
                Err(_) => {}
            }
        }
        sleep(PROGRAM_PROBE_PERIOD).await;
    }
}

/// Whether somebody takes connections there, and it is who must.
pub(super) async fn connects(address: &AppAddress, uid: Option<u32>) -> io::Result<()> {
    let connected = async {
        match address {
            AppAddress::Tcp(address) => TcpStream::connect(address).await.map(drop),
            AppAddress::Unix(path) => connect_unix(path, uid).await.map(drop),
        }
    };
    timeout(PROBE_DEADLINE, connected).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn program_name(run: &AppRun) -> String {
    match run {
        AppRun::Command { line } => line.first().cloned().unwrap_or_default(),
        AppRun::Elsewhere { address: AppAddress::Tcp(address) } => address.to_string(),
        AppRun::Elsewhere { address: AppAddress::Unix(path) } => format!("unix/{}", path.display()),
        AppRun::Handler { file, .. } => file.display().to_string(),
    }
}
