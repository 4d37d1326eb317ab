//! The real program as a child process.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::{Client, Folder, TIMEOUT, wait_for};

/// A command line that was not started yet. The surroundings are clean: no `PORT`, no `NO_COLOR`, and
/// control sockets go into the test's own folder.
pub struct Program {
    command: Command,
    folder: Option<Folder>,
}

/// A program that ran to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Its exit code; none where a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

/// A program that runs. It is killed, by its process id, when this is dropped.
pub struct Started {
    child: Child,
    stdout: Arc<Lines>,
    stderr: Arc<Lines>,
    _folder: Option<Folder>,
}

/// A server that is ready.
pub struct Onehop {
    /// The process.
    pub process: Started,
    /// The first address that it listens on, `127.0.0.1:43121`.
    pub address: String,
    /// The admin endpoint's address, if there is one.
    pub admin: Option<String>,
}

/// Lines of an output, as they come.
#[derive(Default)]
struct Lines {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lines: Vec<String>,
    ended: bool,
}

/// The binary: `ONEHOP_BINARY`, else the one beside the test that runs (cargo builds it for the
/// integration tests of `crates/onehop`).
fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("ONEHOP_BINARY") {
        return path.into();
    }
    let test = std::env::current_exe().expect("the test's own path");
    let folder = test.parent().and_then(Path::parent).expect("target/PROFILE/deps");
    folder.join("onehop")
}

/// Variables that change what onehop does or shows.
const ENVIRONMENT: [&str; 11] = [
    "PORT",
    "NO_COLOR",
    "ONEHOP_CONTROL",
    "ONEHOP_CACHE",
    "ONEHOP_LISTEN",
    "ONEHOP_LOG",
    "ONEHOP_LOG_TO",
    "ONEHOP_OVERRIDE",
    "ONEHOP_WORKERS",
    "CLICOLOR_FORCE",
    "COLUMNS",
];

impl Program {
    /// `onehop` with these arguments.
    pub fn new<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Program {
        Program::of(&binary(), arguments)
    }

    /// Another program with these arguments: a pack.
    pub fn of<A: AsRef<OsStr>>(program: &Path, arguments: impl IntoIterator<Item = A>) -> Program {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for name in ENVIRONMENT {
            command.env_remove(name);
        }
        Program { command, folder: None }
    }

    /// In this working directory.
    #[must_use]
    pub fn inside(mut self, folder: &Path) -> Program {
        self.command.current_dir(folder);
        self
    }

    /// With this environment variable.
    #[must_use]
    pub fn with_env(mut self, name: &str, value: impl AsRef<OsStr>) -> Program {
        self.command.env(name, value);
        self
    }

    /// Without this environment variable.
    #[must_use]
    pub fn without_env(mut self, name: &str) -> Program {
        self.command.env_remove(name);
        self
    }

    /// With these bounds on its open descriptors, which `ulimit` sets: the soft one, and the hard one.
    #[must_use]
    pub fn with_descriptors(self, soft: u32, hard: u32) -> Program {
        let line = format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec \"$0\" \"$@\"");
        self.through(&["/bin/sh", "-c", &line])
    }

    /// Started by another program, behind whose words the command line stands.
    ///
    /// # Panics
    /// Where no program is named.
    #[must_use]
    pub fn through(mut self, words: &[&str]) -> Program {
        let (program, arguments) = words.split_first().expect("a program");
        let mut other = Command::new(program);
        other.args(arguments).arg(self.command.get_program()).args(self.command.get_args());
        other.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => other.env(name, value),
                None => other.env_remove(name),
            };
        }
        if let Some(folder) = self.command.get_current_dir() {
            other.current_dir(folder);
        }
        self.command = other;
        self
    }

    /// With this file or pipe as its standard error, which is then not collected.
    #[must_use]
    pub fn with_stderr(mut self, error: OwnedFd) -> Program {
        self.command.stderr(error);
        self
    }

    /// Keeps a folder for as long as the process.
    #[must_use]
    pub fn keeping(mut self, folder: Folder) -> Program {
        self.folder = Some(folder);
        self
    }

    /// Runs to the end.
    ///
    /// # Panics
    /// Where the program cannot be started, or does not end within [`TIMEOUT`](crate::TIMEOUT).
    pub fn finish(self) -> Finished {
        self.start().wait_for_end()
    }

    /// Starts it, without waiting for anything.
    ///
    /// # Panics
    /// Where the program cannot be started.
    pub fn start(mut self) -> Started {
        let program = self.command.get_program().display().to_string();
        let mut child = wait_for("a program that nobody writes", || match self.command.spawn() {
            // A file that was written a moment ago is open in each process that another test forked meanwhile, until
            // that has executed its own program (golang/go#22315).
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => None,
            spawned => Some(spawned.unwrap_or_else(|error| panic!("cannot start {program}: {error}"))),
        });
        let stdout = Lines::collect(child.stdout.take().expect("piped"));
        let stderr = child.stderr.take().map_or_else(Lines::none, Lines::collect);
        // What was given to the child is its alone: a pipe's reader sees the end with it.
        drop(self.command);
        Started { child, stdout, stderr, _folder: self.folder }
    }

    /// Starts a server (`--log json` must be among the arguments) and waits until it is ready.
    ///
    /// # Panics
    /// Where it does not become ready; with what it wrote.
    pub fn serve(self) -> Onehop {
        Onehop::ready(self.start())
    }
}

impl Onehop {
    /// `onehop run` with this text as its Onehopfile, in a folder of its own. Listen on port 0 there. A text
    /// without a global block gets one that puts the admin endpoint on a free port.
    pub fn start(configuration: &str) -> Onehop {
        let folder = Folder::new();
        let global =
            if configuration.trim_start().starts_with('{') { "" } else { "{\n\tadmin 127.0.0.1:0\n}\n" };
        folder.write("Onehopfile", format!("{global}{configuration}"));
        let path = folder.path().to_path_buf();
        Program::new(["run", "--log", "json"]).inside(&path).control_in(&path).keeping(folder).serve()
    }

    /// `onehop run` in a folder that holds an Onehopfile.
    pub fn start_in(folder: &Path) -> Onehop {
        Program::new(["run", "--log", "json"]).inside(folder).control_in(folder).serve()
    }

    /// `onehop serve` of a folder, with more arguments, on free ports of 127.0.0.1, one of them for metrics.
    pub fn serve(folder: &Path, arguments: &[&str]) -> Onehop {
        let usual: Vec<&str> = [
            ["serve", "."],
            ["--listen", "127.0.0.1:0"],
            ["--admin", "127.0.0.1:0"],
            ["--control", "off"],
            ["--log", "json"],
        ]
        .concat();
        Program::new(usual.iter().chain(arguments)).inside(folder).serve()
    }

    /// A new connection to the first address.
    pub fn connect(&self) -> Client {
        Client::connect(&self.address)
    }

    /// Whatever `/metrics` says now.
    ///
    /// # Panics
    /// Where there is no admin endpoint.
    pub fn metrics(&self) -> String {
        let address = self.admin.as_deref().expect("an admin endpoint");
        Client::connect(address).get("/metrics").text().to_owned()
    }

    fn ready(process: Started) -> Onehop {
        process.wait_for_event("ready");
        let events = process.events();
        let address_of = |name: &str| {
            let event = events.iter().find(|event| event["event"] == name)?;
            // An address of every interface is reached through loopback.
            Some(event["address"].as_str()?.replace("[::]", "127.0.0.1").replace("0.0.0.0", "127.0.0.1"))
        };
        let address = address_of("listening").expect("a listening event");
        let admin = address_of("admin_listening");
        Onehop { process, address, admin }
    }
}

impl Program {
    /// With a control socket in this folder, as `onehop.sock`.
    #[must_use]
    pub fn control_in(self, folder: &Path) -> Program {
        self.with_env("ONEHOP_CONTROL", folder.join("onehop.sock"))
    }
}

impl Started {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    ///
    /// # Panics
    /// Where it is gone.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("signalled");
    }

    /// How it ended, if it has.
    ///
    /// # Panics
    /// Where the system has lost the child.
    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child")
    }

    /// Waits for its end; none where it still runs after [`TIMEOUT`](crate::TIMEOUT).
    pub fn wait(&mut self) -> Option<ExitStatus> {
        let begun = Instant::now();
        while begun.elapsed() < TIMEOUT {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return Some(status);
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        None
    }

    /// Waits for its end and gives everything that it wrote.
    ///
    /// # Panics
    /// Where it does not end within [`TIMEOUT`](crate::TIMEOUT).
    pub fn wait_for_end(mut self) -> Finished {
        let status = self.wait();
        let status = status.unwrap_or_else(|| panic!("still running:\n{}", self.stderr()));
        self.stdout.wait_for_end();
        self.stderr.wait_for_end();
        Finished { code: status.code(), stdout: self.stdout(), stderr: self.stderr() }
    }

    /// What it wrote to standard output until now.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// What it wrote to standard error until now.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// The events of `--log json` until now.
    pub fn events(&self) -> Vec<Value> {
        let lines = self.stderr.lock();
        lines.lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Waits for the first event of this name.
    ///
    /// # Panics
    /// Where it does not come; with what the program wrote.
    pub fn wait_for_event(&self, name: &str) -> Value {
        self.wait_for_events(name, 1).pop().expect("one event")
    }

    /// Waits for so many events of this name.
    ///
    /// # Panics
    /// Where they do not come; with what the program wrote.
    pub fn wait_for_events(&self, name: &str, count: usize) -> Vec<Value> {
        let begun = Instant::now();
        let mut lines = self.stderr.lock();
        loop {
            let found: Vec<Value> = lines
                .lines
                .iter()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok())
                .filter(|event| event["event"] == name)
                .collect();
            if found.len() >= count {
                return found;
            }
            let timeout = TIMEOUT.saturating_sub(begun.elapsed());
            if lines.ended || timeout.is_zero() {
                panic!("{} of {count} {name:?} events came:\n{}", found.len(), lines.lines.join("\n"));
            }
            let waited = self.stderr.changed.wait_timeout(lines, timeout);
            lines = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until standard error holds this text.
    ///
    /// # Panics
    /// Where it does not come.
    pub fn wait_for_text(&self, text: &str) {
        wait_for(text, || self.stderr().contains(text).then_some(()));
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // The child's own handle: its number cannot have been given away while it was not waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Lines {
    fn collect(output: impl Read + Send + 'static) -> Arc<Lines> {
        let lines = Arc::new(Lines::default());
        let writer = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                writer.lock().lines.push(String::from_utf8_lossy(&line).into_owned());
                writer.changed.notify_all();
            }
            writer.lock().ended = true;
            writer.changed.notify_all();
        });
        lines
    }

    /// Of an output that goes elsewhere.
    fn none() -> Arc<Lines> {
        let lines = Lines::default();
        lines.lock().ended = true;
        Arc::new(lines)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn text(&self) -> String {
        self.lock().lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn wait_for_end(&self) {
        let begun = Instant::now();
        let mut state = self.lock();
        while !state.ended && begun.elapsed() < TIMEOUT {
            let waited = self.changed.wait_timeout(state, TIMEOUT);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_somebody_still_writes_is_started_when_it_is_whole() {
        let folder = Folder::new();
        let program = folder.path().join("true");
        std::fs::copy("/bin/true", &program).expect("copied");
        let writing = std::fs::OpenOptions::new().append(true).open(&program).expect("opened");
        let busy = Command::new(&program).status().expect_err("it is written");
        assert_eq!(busy.kind(), io::ErrorKind::ExecutableFileBusy);
        let closing = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(30));
            drop(writing);
        });
        assert_eq!(Program::of(&program, [""; 0]).finish().code, Some(0));
        closing.join().expect("closed");
    }
}
