//! A server that was started to be measured.
//!
//! Owns its life: bound to its cores before it runs a line of its own, in a process group of its own, ended with all
//! that descends from it, also what went to the background. Never ends anything else.

use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, waitpid};

use super::Start;
use super::log::Log;
use super::process::{Life, Process};
use super::tree::{MARK, Tree};
use super::{cores, port};
use crate::url::Address;

/// What a server gets to end by itself: requests in flight may be answered. After that it is killed.
const END_WITHIN: Duration = Duration::from_secs(5);
/// The same where somebody wants the end now.
const HURRIED_END_WITHIN: Duration = Duration::from_millis(300);
/// What the kernel needs to take a killed process away; longer only where it hangs in the kernel.
const KILLED_WITHIN: Duration = Duration::from_secs(2);
/// Between two looks at a process that ends.
const END_POLL: Duration = Duration::from_millis(2);

/// A first process that went well has put the server into the background, or had nothing to do: so long after its end
/// nobody will appear any more.
const BACKGROUND_WITHIN: Duration = Duration::from_secs(1);

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
    /// When the first process was found to have ended well.
    left_at: Mutex<Option<Instant>>,
    end_within: Duration,
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
    /// A file that it needs.
    #[error("{file}: {source}")]
    File {
        /// As written.
        file: String,
        /// What the system said.
        source: io::Error,
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
    #[error("`{program}` ended before it answered ({how}){}", reported(log))]
    Ended {
        /// As written.
        program: String,
        /// Its status.
        how: String,
        /// Its last lines.
        log: String,
    },
    /// It runs and gave no expected answer.
    #[error("`{program}` gave no expected answer within {within:?}: {last}{}", reported(log))]
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
        "`{program}` was told port {reported} in PORT, and listens on {found}: write {{port}} where its command or its \
         settings name the port, or give its fixed port"
    )]
    ListensElsewhere {
        /// As written.
        program: String,
        /// The port in `PORT`.
        reported: u16,
        /// The port on which it listens.
        found: u16,
    },
}

impl Server {
    /// Starts a server on these cores; an empty list leaves it all that this process may use, also where the calling
    /// thread is bound to some.
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
        let allowed = cores::allowed();
        let cores = if cores.is_empty() { &allowed } else { cores };
        let spawn = || {
            if !cores::bind_to(cores) {
                let why =
                    format!("it cannot be bound to the cores {cores:?}, which this process may not use");
                return (Instant::now(), Err(io::Error::other(why)));
            }
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
        let (end_within, left_at) = (END_WITHIN, Mutex::new(None));
        Ok(Server {
            child,
            first,
            own,
            behind,
            port,
            log,
            started_at,
            program,
            is_stopped,
            left_at,
            end_within,
        })
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
        if status.success() && !*self.is_stopped.lock().unwrap_or_else(PoisonError::into_inner) {
            if self.own.look().is_empty() {
                self.find_background();
            }
            let mut left_at = self.left_at.lock().unwrap_or_else(PoisonError::into_inner);
            let left_at = *left_at.get_or_insert_with(Instant::now);
            if !self.own.look().is_empty() || left_at.elapsed() < BACKGROUND_WITHIN {
                return None;
            }
        }
        Some(status.to_string())
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
        self.stop_hurried_by(&|| false);
    }

    /// The same; from the moment at which `is_hurried` says so, what is still there is killed after 300 ms.
    pub fn stop_hurried_by(&self, is_hurried: &dyn Fn() -> bool) {
        let mut is_stopped = self.is_stopped.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *is_stopped, true) {
            return;
        }
        self.find_background();
        // Members are remembered from here on, whatever becomes of their parents.
        let before = self.own.look();
        self.signal(Signal::TERM, &before);
        if !self.wait_for_end(self.end_within, is_hurried) {
            self.signal(Signal::KILL, &self.own.look());
            self.wait_for_end(KILLED_WITHIN, &|| false);
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

    fn wait_for_end(&self, mut within: Duration, is_hurried: &dyn Fn() -> bool) -> bool {
        let begun = Instant::now();
        let mut has_been_hurried = false;
        loop {
            if !has_been_hurried && is_hurried() {
                has_been_hurried = true;
                within = within.min(begun.elapsed() + HURRIED_END_WITHIN);
            }
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

    /// Hears of the end of orphans that became our children, so that nothing of them stays. A process of several
    /// threads is heard of when the last of them has ended.
    fn reap(&self, members: &[Process]) {
        let lives: BTreeSet<Life> =
            members.iter().map(|member| member.life).chain(self.own.lives()).collect();
        let is_left = |life: &Life| {
            let process = Process::with_number(life.number);
            process.is_some_and(|process| process.life == *life && process.parent == std::process::id())
        };
        let begun = Instant::now();
        for life in lives.iter().filter(|life| life.number != self.pid()) {
            let Some(number) = i32::try_from(life.number).ok().and_then(Pid::from_raw) else { continue };
            while is_left(life) && matches!(waitpid(Some(number), WaitOptions::NOHANG), Ok(None)) {
                if begun.elapsed() > KILLED_WITHIN {
                    return;
                }
                std::thread::sleep(END_POLL);
            }
        }
    }

    /// Takes in who listens on our port and descends from this process although no member is its parent any more:
    /// it went to the background before it was seen, and wrote over its environment (as nginx does).
    fn find_background(&self) {
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
        return port::free_port().ok_or_else(|| StartError::NoPort { program: program.to_owned() });
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
pub(crate) fn kill(life: Life, signal: Signal) {
    if life.now().is_some()
        && let Some(number) = i32::try_from(life.number).ok().and_then(Pid::from_raw)
    {
        let _ = kill_process(number, signal);
    }
}

/// The last lines that a server wrote, for an error's text.
fn reported(log: &str) -> String {
    const LINES: usize = 12;
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return ". It wrote nothing".to_owned();
    }
    let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
    format!(". Its last lines:\n  {}", last.join("\n  "))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{NODE_SERVER, TIMEOUTS, request, response_of, start_of, started, wait_for};
    use super::super::wait_until_ready;
    use super::*;
    use crate::plan::Timeouts;

    fn ready(server: &mut Server, path: &str) -> Result<crate::Response, StartError> {
        let request = request(path, server.port());
        wait_until_ready(server, &request, Timeouts::default(), TIMEOUTS)
    }

    fn assert_all_ended(lives: &[Life]) {
        let left: Vec<_> = lives.iter().filter_map(|life| Process::with_number(life.number)).collect();
        let left: Vec<_> = left.iter().filter(|process| lives.contains(&process.life)).collect();
        assert!(left.is_empty(), "{left:?}");
    }

    #[test]
    fn a_server_is_reported_its_port_and_leaves_nothing() {
        let mut server = started(&["node", "-e", NODE_SERVER]);
        let response = ready(&mut server, "/").unwrap();
        assert_eq!((response.status, response.body.as_slice()), (200, &b"hello"[..]));
        let tree = server.tree();
        assert_eq!(tree.listening().iter().map(|at| at.port()).collect::<Vec<_>>(), [server.port()]);
        assert_eq!(tree.processes(), [server.pid()]);
        assert_eq!(server.ended(), None);
        let lives = server.own.lives();
        server.stop();
        assert!(server.ended().is_some());
        assert_all_ended(&lives);
    }

    #[test]
    fn the_port_stands_in_words_and_environment() {
        let mut start = start_of(&["sh", "-c", "echo {port} $PORT $OTHER"]);
        start.environment.push(("OTHER".to_owned(), "x{port}".to_owned()));
        let server = Server::start(&start, &[]).unwrap();
        let text = wait_for("its line", || Some(server.log_tail()).filter(|text| text.ends_with('\n')));
        let port = server.port();
        assert_eq!(text, format!("{port} {port} x{port}\n"));
    }

    #[test]
    fn a_server_runs_on_its_cores_from_the_first_line_on() {
        let core = *cores::allowed().first().unwrap();
        let start = start_of(&["sh", "-c", "grep Cpus_allowed_list /proc/self/status; sleep 30"]);
        let server = Server::start(&start, &[core]).unwrap();
        let text = wait_for("its line", || Some(server.log_tail()).filter(|text| text.ends_with('\n')));
        assert_eq!(text, format!("Cpus_allowed_list:\t{core}\n"));
        assert!(cores::allowed().contains(&core));
    }

    #[test]
    fn cores_that_may_not_be_used_are_refused() {
        let error = Server::start(&start_of(&["true"]), &[1023]).unwrap_err().to_string();
        assert!(error.contains("`true`: it cannot be bound to the cores [1023]"), "{error}");
    }

    #[test]
    fn one_that_went_to_the_background_still_runs_and_is_ended() {
        let script = format!("setsid node -e '{NODE_SERVER}' & sleep 0.05; exit 0");
        let mut server = started(&["sh", "-c", &script]);
        ready(&mut server, "/").unwrap();
        wait_for("the first process's end", || server.child().try_wait().unwrap());
        assert_eq!(server.ended(), None);
        let lives = wait_for("one member", || Some(server.own.look()).filter(|members| members.len() == 1));
        assert_ne!(lives[0].life.number, server.pid());
        assert_eq!(lives[0].parent, std::process::id(), "orphans are ours");
        server.stop();
        assert_all_ended(&[lives[0].life]);
    }

    #[test]
    fn nginx_in_the_background_is_one_server_with_its_workers() {
        let folder = tempfile::tempdir().unwrap();
        let settings = folder.path().join("nginx.conf");
        let text = "daemon on; worker_processes 2; pid here.pid; error_log stderr; events {}\n\
                    http { access_log off; server { listen 127.0.0.1:PORT; location / { return 200 hi; } } }";
        let mut start = start_of(&["nginx", "-p", folder.path().to_str().unwrap(), "-c", "nginx.conf"]);
        let port = port::free_port().unwrap();
        start.port = Some(port);
        std::fs::write(&settings, text.replace("PORT", &port.to_string())).unwrap();
        let mut server = match Server::start(&start, &[]) {
            Err(StartError::NotFound { .. }) => return,
            server => server.unwrap(),
        };
        ready(&mut server, "/").unwrap();
        let members = || Some(server.tree().look()).filter(|members| members.len() == 3);
        let members = wait_for("a master and two workers", members);
        assert_eq!(server.ended(), None);
        let found = Tree::listening_at(&Address::Tcp((std::net::Ipv4Addr::LOCALHOST, port).into())).unwrap();
        assert_eq!(found.processes().len(), 3);
        server.stop();
        assert_all_ended(&members.iter().map(|member| member.life).collect::<Vec<_>>());
    }

    #[test]
    fn one_that_wipes_its_environment_in_the_background_is_found_by_its_port() {
        let script = format!("(setsid env -u {MARK} node -e '{NODE_SERVER}' &) & exit 0");
        let mut server = started(&["sh", "-c", &script]);
        ready(&mut server, "/").unwrap();
        let found = || Some(server.tree().look()).filter(|members| members.len() == 1);
        let members = wait_for("one member", found);
        server.stop();
        assert_all_ended(&[members[0].life]);
    }

    #[test]
    fn what_does_not_end_is_killed_also_in_a_group_of_its_own() {
        let script = "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo on; while :; do sleep 0.1; done' & \
                      while :; do sleep 0.1; done";
        let mut server = started(&["sh", "-c", script]);
        server.end_within = Duration::from_millis(100);
        wait_for("the child's word", || server.log_tail().contains("on").then_some(()));
        let lives = server.own.lives();
        assert!(lives.len() >= 2, "{lives:?}");
        drop(server);
        assert_all_ended(&lives);
    }

    #[test]
    fn one_that_ends_at_once_says_why() {
        let mut server = started(&["sh", "-c", "echo no configuration here >&2; exit 3"]);
        let error = ready(&mut server, "/").unwrap_err();
        assert!(matches!(error, StartError::Ended { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("exit status: 3") && text.contains("no configuration here"), "{text}");
    }

    #[test]
    fn a_program_or_folder_that_is_not_there_is_named() {
        let error = Server::start(&start_of(&["no-such-server"]), &[]).unwrap_err().to_string();
        assert!(error.contains("`no-such-server`: there is no such program"), "{error}");
        let mut start = start_of(&["true"]);
        start.directory = Some("/no/such/folder".into());
        let error = Server::start(&start, &[]).unwrap_err().to_string();
        assert!(error.contains("/no/such/folder: there is no such folder"), "{error}");
        assert!(matches!(Server::start(&start_of(&[]), &[]), Err(StartError::Empty)));
    }

    #[test]
    fn a_fixed_port_that_is_taken_is_reported_with_who_has_it() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut start = start_of(&["true"]);
        start.port = Some(taken.local_addr().unwrap().port());
        let own = format!("process {} listens there", std::process::id());
        let reported = || Server::start(&start, &[]).unwrap_err().to_string();
        // For a moment a child that another test starts holds the same socket.
        let begun = Instant::now();
        while !reported().contains(&own) {
            assert!(begun.elapsed() < Duration::from_secs(20), "{}", reported());
        }
    }

    #[test]
    fn one_that_listens_elsewhere_is_found_there() {
        let other = port::free_port().unwrap();
        let mut start = start_of(&["node", "-e", NODE_SERVER]);
        start.environment.push(("AT".to_owned(), other.to_string()));
        let mut server = Server::start(&start, &[]).unwrap();
        let error = ready(&mut server, "/").unwrap_err();
        let StartError::ListensElsewhere { reported, found, .. } = error else { panic!("{error}") };
        assert_eq!((reported, found), (server.port(), other));
    }

    #[test]
    fn an_answer_that_is_not_expected_is_shown_when_time_is_over() {
        let mut server = started(&["node", "-e", NODE_SERVER]);
        ready(&mut server, "/").unwrap();
        let request = request("/missing", server.port());
        // Never less than this: a busy machine needs some of it for one answer.
        let within = Duration::from_secs(2);
        let error = wait_until_ready(&mut server, &request, Timeouts::default(), within).unwrap_err();
        assert!(error.to_string().contains("it answered with status 503: hello"), "{error}");
    }

    #[test]
    fn much_output_holds_nobody_up_and_only_its_end_is_kept() {
        let script =
            "i=0; while [ $i -lt 40 ]; do head -c 100000 /dev/zero | tr '\\0' x; i=$((i+1)); done; echo end";
        let server = started(&["sh", "-c", script]);
        wait_for("its end", || server.log_tail().ends_with("end\n").then_some(()));
        assert_eq!(server.logged_bytes(), 4_000_004);
        assert_eq!(server.log_tail().len(), 64 * 1024);
    }

    #[test]
    fn servers_behind_are_weighed_with_it_and_never_ended() {
        let mut behind = started(&["node", "-e", NODE_SERVER]);
        ready(&mut behind, "/").unwrap();
        let mut start = start_of(&["node", "-e", NODE_SERVER]);
        start.behind.push(Address::Tcp((std::net::Ipv4Addr::LOCALHOST, behind.port()).into()));
        let mut server = Server::start(&start, &[]).unwrap();
        ready(&mut server, "/").unwrap();
        let mut both = [behind.pid(), server.pid()];
        both.sort_unstable();
        let mut found = server.tree().processes();
        found.sort_unstable();
        assert_eq!(found, both);
        server.stop();
        assert_eq!(behind.ended(), None);
        assert_eq!(response_of("/", behind.port()), "hello");
    }
}
