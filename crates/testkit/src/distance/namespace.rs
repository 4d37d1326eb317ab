//! One network namespace: what runs in it, and its settings.
//!
//! Owns the namespace by an open descriptor, so that it has no name on the machine and vanishes with its last user.
//! Only threads made for it ever enter it; no other thread changes its network.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::os::fd::AsFd as _;
use std::panic::resume_unwind;
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A network namespace.
#[derive(Debug)]
pub struct Namespace {
    space: File,
}

impl Namespace {
    /// A new one, in which even loopback is down.
    ///
    /// # Errors
    /// Where the system does not allow it, or `unshare` is missing.
    pub fn new() -> io::Result<Namespace> {
        // A thread of ours cannot leave its namespace for a new one without unsafe code; a child shows us its own.
        let words = ["--net", "sh", "-c", "echo made && exec cat"];
        let mut child = Command::new("unshare")
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("cannot run unshare: {error}")))?;
        let space = space_of(&mut child);
        drop(child.stdin.take());
        let output = child.wait_with_output()?;
        space.map(|space| Namespace { space }).map_err(|error| {
            let reported = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            if reported.is_empty() { error } else { io::Error::new(error.kind(), reported) }
        })
    }

    /// Runs this on a thread that is in the namespace. Sockets that it makes belong there for good, and processes
    /// that it starts run there.
    ///
    /// # Errors
    /// Where the namespace cannot be entered.
    ///
    /// # Panics
    /// Where the work does.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        let inside = || {
            move_into_link_name_space(self.space.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        };
        let outcome = thread::scope(|scope| scope.spawn(inside).join());
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Sets one of the kernel's settings that belong to a namespace, `net/ipv4/tcp_slow_start_after_idle`.
    ///
    /// # Errors
    /// Where there is no such setting, or not for a namespace, or the value is none.
    pub fn set(&self, name: &str, value: &str) -> io::Result<()> {
        self.run(|| std::fs::write(format!("/proc/sys/{name}"), value))?
            .map_err(|error| io::Error::new(error.kind(), format!("cannot set {name} to {value}: {error}")))
    }

    /// The value of such a setting.
    ///
    /// # Errors
    /// Where there is no such setting.
    pub fn setting(&self, name: &str) -> io::Result<String> {
        let text = self.run(|| std::fs::read_to_string(format!("/proc/sys/{name}")))?;
        text.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// The child's namespace, once it has one of its own.
fn space_of(child: &mut Child) -> io::Result<File> {
    let mut line = String::new();
    if let Some(output) = child.stdout.as_mut() {
        BufReader::new(output).read_line(&mut line)?;
    }
    if line.trim() != "made" {
        return Err(io::Error::other("unshare made no namespace"));
    }
    File::open(format!("/proc/{}/ns/net", child.id()))
}
