//! Ends what workers started when the server itself is killed.
//!
//! The kernel ends the workers then, but not their children (`npx` starts a shell that starts a server). So one
//! small process, the guard, is told which groups there are; when the pipe from the server is at its end, it
//! kills those that are left. Where there is no guard, everything else goes on as it is.

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};

use super::ProgramLine;
use crate::control::null::no_output;

/// How long a stop of the server waits for the guard, which only has to notice the end of a pipe.
const GUARD_END_DEADLINE: Duration = Duration::from_secs(1);

/// How often it looks whether the guard has ended.
const GUARD_LOOK_PERIOD: Duration = Duration::from_millis(2);

/// The server's end.
#[derive(Debug)]
pub(super) struct Guard {
    running: Mutex<Option<(Child, File)>>,
}

impl Guard {
    /// Starts the process.
    pub(super) fn start((program, arguments): &ProgramLine) -> io::Result<Self> {
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
        // The guard reads at once; whatever happens to it, nobody waits for it.
        fcntl_setfl(&input, fcntl_getfl(&input)? | OFlags::NONBLOCK)?;
        Ok(Self { running: Mutex::new(Some((child, input))) })
    }

    /// This group is there from now on.
    pub(super) fn add(&self, group: u32) {
        self.tell('+', group);
    }

    /// It is not any more, and its number may be given to others.
    pub(super) fn remove(&self, group: u32) {
        self.tell('-', group);
    }

    /// There are no groups any more.
    pub(super) fn end(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((mut child, input)) = running {
            drop(input);
            let deadline = Instant::now() + GUARD_END_DEADLINE;
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(GUARD_LOOK_PERIOD);
            }
            // In the way of nobody: there are no groups that it could end.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn tell(&self, sign: char, group: u32) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, input)) = &*running {
            let mut input = input;
            let _ = input.write_all(format!("{sign}{group}\n").as_bytes());
        }
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
