//! A worker's process: started in a group of its own, read, signalled, and ended for certain.
//!
//! Nothing of the group outlives this value: what the worker left behind is killed before its number can be
//! given to another process.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use onehop_config::checked::AppResources;
use onehop_files::null_device::no_input;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use tokio::io::unix::AsyncFd;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::events::AppEventSink;
use crate::launch::Launch;
use crate::limits::{WORKER_OUTPUT_END_DEADLINE, WORKER_TERMINATE_DEADLINE};
use crate::options::SuperviseOptions;
use crate::output::{LastLines, Source, TraceReader, drain};
use crate::reason;

/// A worker's runtime that is Node, and the user and group that it runs as.
struct Node {
    program: PathBuf,
    account: Option<(u32, u32)>,
}

/// A process that runs, or has ended and was not waited for yet.
pub(crate) struct Process {
    child: Child,
    pid: Pid,
    /// Readable once it has ended; none where the kernel has no such thing.
    ended: Option<AsyncFd<OwnedFd>>,
    status: Option<ExitStatus>,
    readers: Vec<JoinHandle<()>>,
    last_lines: LastLines,
    is_interrupted: Arc<AtomicBool>,
    /// Lines of its stack once it is interrupted; an empty one ends them.
    pub(crate) trace: mpsc::Receiver<String>,
    /// `None` for other runtimes and programs.
    node: Option<Node>,
}

impl Process {
    /// Starts a process. The error is for a person.
    pub(crate) fn start(
        launch: Launch,
        options: &SuperviseOptions,
        resources: &AppResources,
        app: &str,
        events: &AppEventSink,
    ) -> Result<Self, String> {
        let program = launch.program.display().to_string();
        let node = launch.is_node.then(|| Node {
            program: launch.program.clone(),
            account: launch.account.as_ref().map(|account| (account.uid, account.gid)),
        });
        let failed = |error: io::Error| format!("cannot start {program}: {error}");
        let mut child =
            command(launch, options, resources).and_then(|mut command| command.spawn()).map_err(failed)?;
        let number = child.id().unwrap_or_default();
        let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        let ended = watched(pid);
        let last_lines = LastLines::default();
        let (reader, is_interrupted, trace) = TraceReader::new();
        let source = |is_error| Source { app: app.to_owned(), pid: number, is_error };
        let mut readers = Vec::new();
        if let Some(output) = child.stdout.take() {
            readers.push(tokio::spawn(drain(output, source(false), Arc::clone(events), None, None)));
        }
        if let Some(output) = child.stderr.take() {
            let last = Some(last_lines.clone());
            let drained = drain(output, source(true), Arc::clone(events), last, Some(reader));
            readers.push(tokio::spawn(drained));
        }
        Ok(Self { child, pid, ended, status: None, readers, last_lines, is_interrupted, trace, node })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until it has ended by itself, then ends what it left behind. May be cancelled and called again.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        if let Some(status) = self.status {
            return status;
        }
        if let Some(ended) = &self.ended {
            // Until its status is asked for, no other process gets its number or its group's.
            let _ = ended.readable().await;
            self.kill();
        }
        let status = self.child.wait().await.unwrap_or_else(|_| ExitStatus::from_raw(0));
        self.status = Some(status);
        status
    }

    /// Asks its group to end, and kills it if it has not in time.
    pub(crate) async fn terminate(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        match tokio::time::timeout(WORKER_TERMINATE_DEADLINE, self.ended()).await {
            Ok(status) => status,
            Err(_) => self.end().await,
        }
    }

    /// Kills its group.
    pub(crate) async fn end(&mut self) -> ExitStatus {
        self.kill();
        self.ended().await
    }

    /// Whether it prints its stack when it is interrupted.
    pub(crate) fn traces_interrupts(&self) -> bool {
        self.node.is_some()
    }

    /// The version of its runtime, `node 20.20.2`, where that is Node.
    pub(crate) async fn node_version(&self) -> Option<String> {
        let Node { program, account } = self.node.as_ref()?;
        Some(reason::version(program, *account).await)
    }

    /// Interrupts the process itself, not its group.
    pub(crate) fn interrupt(&self) {
        if self.status.is_none() {
            self.is_interrupted.store(true, Ordering::Relaxed);
            let _ = kill_process(self.pid, Signal::INT);
        }
    }

    /// Its last lines on standard error, once it has ended.
    pub(crate) async fn last_lines(&mut self) -> String {
        let readers = std::mem::take(&mut self.readers);
        let all = async {
            for reader in readers {
                let _ = reader.await;
            }
        };
        let _ = tokio::time::timeout(WORKER_OUTPUT_END_DEADLINE, all).await;
        self.last_lines.indented()
    }

    fn signal(&self, signal: Signal) {
        if self.status.is_none() {
            let _ = kill_process_group(self.pid, signal);
        }
    }

    fn kill(&self) {
        self.signal(Signal::KILL);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        for reader in &self.readers {
            reader.abort();
        }
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe to call; this one owns the descriptor and hands it to no one"
)]
pub(crate) fn watched(pid: Pid) -> Option<AsyncFd<OwnedFd>> {
    AsyncFd::new(pidfd_open(pid, PidfdFlags::NONBLOCK).ok()?).ok()
}

fn command(launch: Launch, options: &SuperviseOptions, resources: &AppResources) -> io::Result<Command> {
    let mut command = match &options.launcher {
        Some((program, arguments)) => {
            let mut command = std::process::Command::new(program);
            command.args(arguments).arg(std::process::id().to_string());
            command.args(limits(resources)).arg("--").arg(&launch.program);
            command
        }
        None => std::process::Command::new(&launch.program),
    };
    command.args(&launch.arguments).env_clear().envs(launch.environment).current_dir(&launch.directory);
    command.stdin(no_input()?).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    if let Some(account) = &launch.account {
        // Setting the user also gives up every other group, which the standard library does for root.
        command.gid(account.gid).uid(account.uid);
    }
    let mappings = launch.descriptors.into_iter().zip(FIRST_DESCRIPTOR..);
    let mappings = mappings.map(|(parent_fd, child_fd)| FdMapping { parent_fd, child_fd });
    command.fd_mappings(mappings.collect()).map_err(io::Error::other)?;
    let mut command = Command::from(command);
    command.kill_on_drop(true);
    Ok(command)
}

const FIRST_DESCRIPTOR: i32 = 3;

/// The limits as the launcher reads them.
fn limits(resources: &AppResources) -> Vec<String> {
    let all = [
        ("memory", resources.memory_bytes),
        ("files", resources.open_files),
        ("processes", resources.processes),
        ("cpu", resources.cpu_seconds),
    ];
    all.iter().filter_map(|(name, limit)| limit.map(|limit| format!("{name}={limit}"))).collect()
}

/// Resident bytes of a process (proc_pid_statm(5)).
pub(crate) fn resident_bytes(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0).saturating_mul(rustix::param::page_size() as u64)
}

/// How a process ended, for a person.
pub(crate) fn explain(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(9)) => "SIGKILL (for instance where memory runs out)".to_owned(),
        (None, Some(number)) => {
            let known = SIGNALS.iter().find(|(known, _)| *known == number);
            known.map_or_else(|| format!("signal {number}"), |(_, name)| (*name).to_owned())
        }
        (None, None) => "an unknown status".to_owned(),
    }
}

/// Signals that end a process (signal(7)).
const SIGNALS: [(i32, &str); 16] = [
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (10, "SIGUSR1"),
    (11, "SIGSEGV"),
    (12, "SIGUSR2"),
    (13, "SIGPIPE"),
    (15, "SIGTERM"),
    (24, "SIGXCPU (its CPU time is used up)"),
    (25, "SIGXFSZ"),
    (31, "SIGSYS"),
];

/// Waits for the process to end, no longer than this.
pub(crate) async fn ended_within(process: &mut Process, deadline: Duration) -> Option<ExitStatus> {
    tokio::time::timeout(deadline, process.ended()).await.ok()
}
