//! Processes that a killed server left.
//!
//! Usually the guard ends them. Where it was killed too, the next server does: every process that a server starts has a
//! random number in its environment (`ONEHOP_INVOCATION_ID`) that its children inherit, and the server's private folder
//! keeps the number. A process counts as left only if it has the number of a folder whose server is gone, and runs in that
//! server's session: what made a session of its own was meant to stay. Never ends anything else.

use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::limits::INVOCATION_FILE_BYTES_MAX;

/// The variable that holds the number of the server.
pub(crate) const INVOCATION_ID: &str = "ONEHOP_INVOCATION_ID";

/// One life of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invocation {
    /// 128 random bits in hexadecimal digits.
    pub(crate) id: String,
    session: i32,
}

impl Invocation {
    pub(crate) fn new() -> Self {
        // From the system's random numbers (getrandom(2)), which need no /dev.
        let random = || RandomState::new().build_hasher().finish();
        let id = format!("{:016x}{:016x}", random(), random());
        // Where there is no /proc, processes that are left are not found either.
        Self { id, session: session_of("self").unwrap_or(0) }
    }

    /// Writes it into a server's private folder.
    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(folder.join(FILE))?;
        writeln!(file, "{} {}", self.id, self.session)
    }

    /// Reads that of the server to which the folder belonged.
    pub(crate) fn read(folder: &Path) -> Option<Self> {
        let mut text = String::new();
        fs::File::open(folder.join(FILE))
            .ok()?
            .take(INVOCATION_FILE_BYTES_MAX)
            .read_to_string(&mut text)
            .ok()?;
        let (id, session) = text.trim().split_once(' ')?;
        let is_id = id.len() == 32 && id.bytes().all(|digit| digit.is_ascii_hexdigit());
        Some(Self { id: id.to_owned(), session: session.parse().ok()? }).filter(|_| is_id)
    }

    /// Ends all processes that it left.
    pub(crate) fn end_processes(&self) {
        let pids = fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
        for pid in pids {
            let _ = self.end_if_left(pid);
        }
    }

    fn end_if_left(&self, pid: Pid) -> Option<()> {
        // Before it is examined: another process may get the number later.
        let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        if session_of(&pid.as_raw_nonzero().to_string()) != Some(self.session) {
            return None;
        }
        let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()?;
        let wanted = format!("{INVOCATION_ID}={}", self.id);
        environment.split(|byte| *byte == 0).find(|variable| *variable == wanted.as_bytes())?;
        pidfd_send_signal(&process, Signal::KILL).ok()
    }
}

/// The session of a process (proc_pid_stat(5)); 0 where it is one of another PID namespace.
fn session_of(pid: &str) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Its name may hold anything.
    stat.rsplit_once(')')?.1.split_whitespace().nth(3)?.parse().ok()
}

/// The file in a server's private folder.
const FILE: &str = "invocation";

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn only_processes_that_have_the_number_and_the_session_are_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let invocation = Invocation::new();
        invocation.write(folder.path()).expect("written");
        assert_eq!(Invocation::read(folder.path()), Some(invocation.clone()));
        let start = |program: &str, id: &str| {
            Command::new(program).arg("sleep").arg("1000").env(INVOCATION_ID, id).spawn().expect("started")
        };
        let mut left = start("env", &invocation.id);
        let mut other = start("env", &Invocation::new().id);
        let mut own_session = start("setsid", &invocation.id);
        // The last of them is what it is to be once it has its own session and program.
        let runs =
            |pid: u32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"sleep"));
        let has_session = |pid: u32| session_of(&pid.to_string()) == Some(pid.cast_signed());
        let is_ready = |pid: u32| runs(pid) && has_session(pid);
        while !is_ready(own_session.id()) {
            std::thread::yield_now();
        }
        while !runs(left.id()) {
            std::thread::yield_now();
        }
        invocation.end_processes();
        let status = left.wait().expect("ended");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
        for kept in [&mut other, &mut own_session] {
            assert!(kept.try_wait().expect("asked").is_none());
            kept.kill().expect("killed");
            kept.wait().expect("ended");
        }
    }

    #[test]
    fn a_file_that_is_none_of_a_server_names_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(Invocation::read(folder.path()), None);
        for text in ["", "0 1", "zz 1", &format!("{} x", "0".repeat(32)), &"0".repeat(100_000)] {
            fs::write(folder.path().join(FILE), text).expect("written");
            assert_eq!(Invocation::read(folder.path()), None, "{text}");
        }
    }
}
