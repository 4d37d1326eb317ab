//! A server that was started to be measured.
//!
//! Owns its life: bound to its cores before it runs a line of its own, in a process group of its own, ended with all
//! that descends from it, also what went to the background. Never ends anything else.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, waitpid};

use super::log::Log;
use super::process::{Life, Process};
use super::tree::{MARK, Tree};
use super::{cores, port};
use crate::compare::Start;
use crate::target::Address;

/// What a server gets to end by itself: requests in flight may be answered. After that it is killed.
const END_WITHIN: Duration = Duration::from_secs(5);
/// What the kernel needs to take a killed process away; longer only where it hangs in the kernel.
const KILLED_WITHIN: Duration = Duration::from_secs(2);
/// Between two looks at a process that ends.
const END_POLL: Duration = Duration::from_millis(2);

/// Makes marks of servers differ within this process.
static STARTED: AtomicU64 = AtomicU64::new(0);

/// A server that runs; ended when dropped, with all that descends from it.
#[derive(Debug)]
pub struct Server {
    child: Mutex<Child>,
    first: Pid,
    /// What descends from the first process.
    own: Tree,
    /// Of those that run already and work for it.
    behind: Vec<Address>,
    port: u16,
    log: Log,
    started_at: Instant,
    program: String,
    is_stopped: Mutex<bool>,
}

/// Why a server does not run or does not answer. Its text is for a person.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No words.
    #[error("there is no command to start: write the program and its arguments")]
    Empty,
    /// The program is not there.
    #[error("cannot start `{program}`: there is no such program. Is it installed, and is it in PATH?")]
    NotFound {
        /// As written.
        program: String,
    },
    /// The folder is not there.
    #[error("cannot start `{program}` in {directory}: there is no such folder")]
    NoDirectory {
        /// As written.
        program: String,
        /// As written.
        directory: String,
    },
    /// The system refused.
    #[error("cannot start `{program}`: {source}")]
    Refused {
        /// As written.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody else listens there.
    #[error(
        "`{program}` cannot listen on port {port}: {who} listens there already. End it, or use another port"
    )]
    PortTaken {
        /// As written.
        program: String,
        /// Its fixed port.
        port: u16,
        /// A process, or `somebody`.
        who: String,
    },
    /// No port was free.
    #[error("no free port was found for `{program}`: end some servers, or name a port")]
    NoPort {
        /// As written.
        program: String,
    },
    /// It ended before it answered.
    #[error("`{program}` ended before it answered ({how}){}", told(log))]
    Ended {
        /// As written.
        program: String,
        /// Its status.
        how: String,
        /// Its last lines.
        log: String,
    },
    /// It runs and gave no expected answer.
    #[error("`{program}` gave no expected answer within {within:?}: {last}{}", told(log))]
    NotReady {
        /// As written.
        program: String,
        /// How long was waited.
        within: Duration,
        /// What came last.
        last: String,
        /// Its last lines.
        log: String,
    },
    /// It listens, but not where it was told to.
    #[error(
        "`{program}` was told port {told} in PORT, and listens on {found}: write {{port}} where its command or its \
         settings name the port, or give its fixed port"
    )]
    ListensElsewhere {
        /// As written.
        program: String,
        /// The port in `PORT`.
        told: u16,
        /// The port on which it listens.
        found: u16,
    },
}

impl Server {
    /// Starts a server on these cores; an empty list leaves them to the system.
    ///
    /// # Errors
    /// Where it cannot be started. One that starts and then fails is found by
    /// [`wait_until_ready`](super::wait_until_ready).
    pub fn start(start: &Start, cores: &[usize]) -> Result<Server, StartError> {
        let program = start.words.first().ok_or(StartError::Empty)?.clone();
        let port = port_for(start, &program)?;
        adopt_orphans();
        let refused = |source: io::Error| refusal(&program, start, source);
        let (log, writer) = Log::open().map_err(refused)?;
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}.{number}", std::process::id());
        let mut command = command_for(start, port);
        command.env(MARK, &mark).process_group(0).stdin(Stdio::null());
        command.stdout(writer.try_clone().map_err(refused)?).stderr(writer);
        // A child inherits the cores of the thread that starts it, and runs nothing before.
        let spawn = || {
            cores::bind_to(cores);
            let started_at = Instant::now();
            (started_at, command.spawn())
        };
        let (started_at, child) = std::thread::scope(|scope| scope.spawn(spawn).join())
            .unwrap_or_else(|_| (Instant::now(), Err(io::Error::other("the starting thread broke"))));
        let child = child.map_err(refused)?;
        let first = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let first = first.ok_or_else(|| refused(io::Error::other("a process without a number")))?;
        let own = Tree::marked(child.id(), mark);
        let (child, is_stopped, behind) = (Mutex::new(child), Mutex::new(false), start.behind.clone());
        Ok(Server { child, first, own, behind, port, log, started_at, program, is_stopped })
    }

    /// The port that it was told.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The number of its first process.
    pub fn pid(&self) -> u32 {
        self.first.as_raw_nonzero().get().unsigned_abs()
    }

    /// The moment before it was started.
    pub fn started_at(&self) -> Instant {
        self.started_at
    }

    /// Its processes, with those that work for it.
    pub fn tree(&self) -> Tree {
        self.find_background();
        let behind = self.behind.iter().filter_map(Tree::listening_at);
        behind.fold(self.own.clone(), Tree::with)
    }

    /// How it ended; `None` while it runs. A first process that went well and left others behind has put them into
    /// the background.
    pub fn ended(&self) -> Option<String> {
        let status = match self.child().try_wait() {
            Ok(status) => status?,
            Err(error) => return Some(format!("its end is not known: {error}")),
        };
        if status.success() {
            self.find_background();
            if !self.own.look().is_empty() {
                return None;
            }
        }
        Some(in_words(status))
    }

    /// The last that it wrote, 64 KiB at most.
    pub fn log_tail(&self) -> String {
        self.log.tail()
    }

    /// Bytes that it wrote to its output in all: writing them is a part of its cost.
    pub fn logged_bytes(&self) -> u64 {
        self.log.bytes()
    }

    /// The program, as written.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// Ends it and all that descends from it: asks first, and kills what is still there after five seconds.
    pub fn stop(&self) {
        let mut is_stopped = self.is_stopped.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *is_stopped, true) {
            return;
        }
        self.find_background();
        // Members are remembered from here on, whatever becomes of their parents.
        let before = self.own.look();
        self.signal(Signal::TERM, &before);
        if !self.wait_for_end(END_WITHIN) {
            self.signal(Signal::KILL, &self.own.look());
            self.wait_for_end(KILLED_WITHIN);
        }
        self.reap(&before);
    }

    /// Where its own processes listen.
    pub(crate) fn own_listening(&self) -> Vec<std::net::SocketAddr> {
        self.find_background();
        self.own.listening()
    }

    /// Nothing more will be written.
    pub(crate) fn has_whole_log(&self) -> bool {
        self.log.is_whole()
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The group as a whole, then members that left it. A group's number stays taken as long as it has a member, and
    /// that of our child as long as we have not heard of its end.
    fn signal(&self, signal: Signal, members: &[Process]) {
        let own_group = self.pid();
        let is_running = matches!(self.child().try_wait(), Ok(None));
        if is_running || members.iter().any(|member| member.group == own_group) {
            let _ = kill_process_group(self.first, signal);
        }
        for member in members.iter().filter(|member| member.group != own_group) {
            // A worker's master ends its workers; those that were orphaned have nobody.
            let has_master = members.iter().any(|other| other.life.number == member.parent);
            if signal == Signal::KILL || !has_master {
                kill(member.life, signal);
            }
        }
    }

    fn wait_for_end(&self, within: Duration) -> bool {
        let begun = Instant::now();
        loop {
            let has_ended = !matches!(self.child().try_wait(), Ok(None));
            if has_ended && self.own.look().is_empty() {
                return true;
            }
            if begun.elapsed() > within {
                return false;
            }
            std::thread::sleep(END_POLL);
        }
    }

    /// Hears of the end of orphans that became our children, so that nothing of them stays.
    fn reap(&self, members: &[Process]) {
        let lives = members.iter().map(|member| member.life).chain(self.own.lives());
        for life in lives.filter(|life| life.number != self.pid()) {
            let process = Process::with_number(life.number);
            let is_ours = |process: &Process| process.life == life && process.parent == std::process::id();
            if process.as_ref().is_some_and(is_ours)
                && let Some(number) = i32::try_from(life.number).ok().and_then(Pid::from_raw)
            {
                let _ = waitpid(Some(number), WaitOptions::NOHANG);
            }
        }
    }

    /// Takes in who listens on our port and descends from this process although no member is its parent any more:
    /// it went to the background before it was seen, and wrote over its environment (as nginx does).
    fn find_background(&self) {
        let has_ended = !matches!(self.child().try_wait(), Ok(None));
        if !has_ended {
            self.own.look();
            return;
        }
        let loopback = Address::Tcp((std::net::Ipv4Addr::LOCALHOST, self.port).into());
        if let Some(listening) = Tree::listening_at(&loopback) {
            let is_ours = |process: &Process| descends_from_us(process.life.number);
            self.own.adopt_those(listening.look().iter().filter(|process| is_ours(process)));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn port_for(start: &Start, program: &str) -> Result<u16, StartError> {
    let Some(port) = start.port else {
        return port::free().ok_or_else(|| StartError::NoPort { program: program.to_owned() });
    };
    if port::is_free(port) {
        return Ok(port);
    }
    let holders = Tree::listening_at(&Address::Tcp((std::net::Ipv4Addr::LOCALHOST, port).into()));
    let who = holders.and_then(|tree| tree.processes().first().copied());
    let who = who.map_or("somebody".to_owned(), |number| format!("process {number}"));
    Err(StartError::PortTaken { program: program.to_owned(), port, who })
}

fn command_for(start: &Start, port: u16) -> Command {
    let filled = |word: &String| word.replace("{port}", &port.to_string());
    let mut words = start.words.iter().map(filled);
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).env("PORT", port.to_string());
    command.envs(start.environment.iter().map(|(name, value)| (name, filled(value))));
    if let Some(directory) = &start.directory {
        command.current_dir(directory);
    }
    command
}

fn refusal(program: &str, start: &Start, source: io::Error) -> StartError {
    let program = program.to_owned();
    if source.kind() != io::ErrorKind::NotFound {
        return StartError::Refused { program, source };
    }
    match &start.directory {
        Some(directory) if !directory.is_dir() => {
            StartError::NoDirectory { program, directory: directory.display().to_string() }
        }
        _ => StartError::NotFound { program },
    }
}

/// Orphans of our servers become children of this process and not of the system's first one, so that they can be
/// told from everybody else's (prctl(2), `PR_SET_CHILD_SUBREAPER`). Where that is refused, a mark in the environment
/// is what they are known by.
fn adopt_orphans() {
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

fn descends_from_us(number: u32) -> bool {
    let own = std::process::id();
    let mut process = Process::with_number(number);
    while let Some(now) = process {
        if now.parent == own {
            return true;
        }
        process = if now.parent <= 1 { None } else { Process::with_number(now.parent) };
    }
    false
}

/// Between the look and the signal the kernel would have to use all numbers up for this to hit another.
fn kill(life: Life, signal: Signal) {
    if life.now().is_some()
        && let Some(number) = i32::try_from(life.number).ok().and_then(Pid::from_raw)
    {
        let _ = kill_process(number, signal);
    }
}

fn in_words(status: ExitStatus) -> String {
    status.to_string()
}

/// The last lines that a server wrote, for an error's text.
fn told(log: &str) -> String {
    const LINES: usize = 12;
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return ". It wrote nothing".to_owned();
    }
    let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
    format!(". Its last lines:\n  {}", last.join("\n  "))
}
