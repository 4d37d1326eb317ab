//! Ends what workers started when the server itself is killed.
//!
//! The kernel ends the workers then, but not their children (`npx` starts a shell that starts a server). So one
//! small process, the guard, learns which groups there are; when the pipe from the server is at its end, it
//! kills those that are left. A guard that ends is replaced. Where there is none, the next server ends what is left
//! (`sweep.rs`).

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use onehop_files::null_device::no_output;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::unix::AsyncFd;

use crate::events::{AppEvent, AppEventSink};
use crate::options::ProgramLine;
use crate::process::watched;

/// How long a stop of the server waits for the guard, which only has to notice the end of a pipe.
const GUARD_END_DEADLINE: Duration = Duration::from_secs(1);

/// How often it looks whether the guard has ended.
const GUARD_LOOK_PERIOD: Duration = Duration::from_millis(2);

/// How soon after another a guard is replaced: whatever kills it again and again must not cost a process each time.
const GUARD_REPLACE_PAUSE: Duration = Duration::from_secs(1);

/// The server's end.
pub(crate) struct Guard {
    line: ProgramLine,
    events: AppEventSink,
    state: Mutex<State>,
}

struct State {
    /// None while there is no process.
    running: Option<Running>,
    groups: BTreeSet<u32>,
    is_over: bool,
}

struct Running {
    child: Child,
    input: File,
}

impl Guard {
    /// Starts the process, and another one whenever it has ended. In a runtime.
    pub(crate) fn start(line: &ProgramLine, events: AppEventSink) -> io::Result<Arc<Self>> {
        let running = Running::start(line)?;
        let ended = running.ended();
        let state = State { running: Some(running), groups: BTreeSet::new(), is_over: false };
        let guard = Arc::new(Self { line: line.clone(), events, state: Mutex::new(state) });
        tokio::spawn(Arc::clone(&guard).watch(ended));
        Ok(guard)
    }

    /// This group is there from now on.
    pub(crate) fn add(&self, group: u32) {
        let mut state = self.lock();
        state.groups.insert(group);
        state.send('+', group);
    }

    /// It is not any more, and its number may be given to others.
    pub(crate) fn remove(&self, group: u32) {
        let mut state = self.lock();
        state.groups.remove(&group);
        state.send('-', group);
    }

    /// There are no groups any more.
    pub(crate) fn end(&self) {
        let running = {
            let mut state = self.lock();
            state.is_over = true;
            state.running.take()
        };
        if let Some(Running { mut child, input }) = running {
            drop(input);
            let deadline = Instant::now() + GUARD_END_DEADLINE;
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(GUARD_LOOK_PERIOD);
            }
            // Safe: there are no groups that it could end.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Replaces the process when it has ended; until it is not wanted any more.
    async fn watch(self: Arc<Self>, mut ended: Option<AsyncFd<OwnedFd>>) {
        let mut is_reported = false;
        // Where the system cannot tell the end of a process, it is not replaced.
        while let Some(end) = ended.take() {
            let _ = end.readable().await;
            let replaced = self.replace();
            let (next, message) = match replaced {
                None => return,
                Some(Ok(next)) => (next, "another one took its place".to_owned()),
                Some(Err(error)) => (None, format!("another one cannot be started ({error})")),
            };
            if !std::mem::replace(&mut is_reported, true) {
                let what =
                    "the process that ends what workers start, should this server be killed, has ended";
                (self.events)(AppEvent::Warning { message: format!("{what}: {message}") });
            }
            ended = next;
            tokio::time::sleep(GUARD_REPLACE_PAUSE).await;
        }
    }

    /// Starts another one that knows all groups; the descriptor is readable once it has ended. Nothing where none is wanted.
    fn replace(&self) -> Option<io::Result<Option<AsyncFd<OwnedFd>>>> {
        let mut state = self.lock();
        if state.is_over {
            return None;
        }
        if let Some(Running { mut child, .. }) = state.running.take() {
            let _ = child.wait();
        }
        let running = match Running::start(&self.line) {
            Ok(running) => running,
            Err(error) => return Some(Err(error)),
        };
        let ended = running.ended();
        state.running = Some(running);
        let groups: Vec<u32> = state.groups.iter().copied().collect();
        groups.into_iter().for_each(|group| state.send('+', group));
        Some(Ok(ended))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn send(&mut self, sign: char, group: u32) {
        if let Some(running) = &mut self.running {
            let _ = running.input.write_all(format!("{sign}{group}\n").as_bytes());
        }
    }
}

impl Running {
    fn start((program, arguments): &ProgramLine) -> io::Result<Self> {
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(no_output()?)
            .stderr(no_output()?)
            // Ctrl-C is for the server, which ends in its own time.
            .process_group(0)
            .spawn()?;
        let input = child.stdin.take().map(|input| File::from(OwnedFd::from(input)));
        let input = input.ok_or(io::ErrorKind::BrokenPipe)?;
        // The guard reads at once; whatever happens to it, nothing waits for it.
        fcntl_setfl(&input, fcntl_getfl(&input)? | OFlags::NONBLOCK)?;
        Ok(Self { child, input })
    }

    /// Readable once it has ended.
    fn ended(&self) -> Option<AsyncFd<OwnedFd>> {
        watched(Pid::from_raw(i32::try_from(self.child.id()).ok()?)?)
    }
}

/// The guard's whole life: reads which groups there are until the input ends, then kills those that are left.
pub fn guard_workers(input: impl BufRead) {
    let mut groups = Vec::new();
    for line in input.lines().map_while(Result::ok) {
        let Some((sign, group)) = line.split_at_checked(1) else { continue };
        // Groups 0 and 1 mean others than a worker's (kill(2)).
        let Some(group) = group.parse::<i32>().ok().filter(|group| *group > 1).and_then(Pid::from_raw) else {
            continue;
        };
        groups.retain(|known| *known != group);
        if sign == "+" {
            groups.push(group);
        }
    }
    for group in groups {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_that_are_still_there_are_killed() {
        let start = || Command::new("sleep").arg("1000").process_group(0).spawn().expect("started");
        let (mut kept, mut killed) = (start(), start());
        let lines = format!("+{0}\n+{1}\n-{0}\nnonsense\n+0\n+1\n+-5\n", kept.id(), killed.id());
        guard_workers(lines.as_bytes());
        let status = killed.wait().expect("ended");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
        assert!(kept.try_wait().expect("asked").is_none());
        kept.kill().expect("killed");
        kept.wait().expect("ended");
    }
}
