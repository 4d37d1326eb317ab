//! The compressing process, from the outside.
//!
//! Owns its life: started with the first job, killed and reaped when the work is done or not wanted any
//! more. A process that ends early or answers nonsense is an error with its cause. Never waits longer for
//! it than until the work is cancelled. The other side is `compressor.rs`.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use onehop_config::checked::Encoding;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio};

use super::events::{Events, KeeperEvent};
use super::frames::{read_result, write_job};
use super::variants::compressed;
use crate::limits::COMPRESS_CANCEL_PERIOD;
use crate::null_device::no_output;

/// How the process that compresses is started. Its environment is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompressorProgram {
    /// The program.
    pub path: PathBuf,
    /// What makes it call [`prepare_forms_for_server`](super::prepare_forms_for_server).
    pub arguments: Vec<OsString>,
}

/// Who compresses the files of a tree.
pub(super) struct CompressorPool {
    /// Without one, the server itself.
    program: Option<CompressorProgram>,
    events: Events,
    /// It was said that the program cannot be started.
    is_said: AtomicBool,
}

/// What one thread compresses with: a process of its own, or itself.
pub(super) struct Worker<'a> {
    compressors: &'a CompressorPool,
    cancelled: &'a AtomicBool,
    process: Option<Process>,
}

impl CompressorPool {
    pub(super) fn new(program: Option<CompressorProgram>, events: Events) -> Self {
        Self { program, events, is_said: AtomicBool::new(false) }
    }

    /// Starts nothing yet.
    pub(super) fn worker<'a>(&'a self, cancelled: &'a AtomicBool) -> Worker<'a> {
        Worker { compressors: self, cancelled, process: None }
    }

    /// Says something.
    pub(super) fn tell(&self, event: KeeperEvent) {
        (self.events)(event);
    }

    /// `None` where the server has to do it itself.
    fn start(&self) -> Option<Process> {
        let program = self.program.as_ref()?;
        match Process::start(program) {
            Ok(process) => Some(process),
            Err(error) => {
                if !self.is_said.swap(true, Ordering::Relaxed) {
                    self.tell(KeeperEvent::CompressorMissing { reason: error.to_string() });
                }
                None
            }
        }
    }
}

impl Worker<'_> {
    /// The form of `bytes` in a coding; `None` if it is not small enough or the work was cancelled. An
    /// error means that the process is lost, and says why.
    pub(super) fn form(&mut self, bytes: &[u8], encoding: Encoding) -> Result<Option<Arc<[u8]>>, String> {
        if self.process.is_none() {
            self.process = self.compressors.start();
        }
        let Some(process) = &mut self.process else {
            return Ok(compressed(bytes, encoding, self.cancelled).map(Arc::from));
        };
        let form = process.form(bytes, encoding, self.cancelled);
        form.or_else(|error| {
            let reason = self.process.take().map(|process| process.end(&error)).unwrap_or_default();
            if self.cancelled.load(Ordering::Relaxed) { Ok(None) } else { Err(reason) }
        })
    }

    /// Ends the process and what it holds; the next form is made by another.
    pub(super) fn let_go(&mut self) {
        self.process = None;
    }
}

struct Process {
    child: Child,
    jobs: ChildStdin,
    results: ChildStdout,
}

impl Process {
    fn start(program: &CompressorProgram) -> io::Result<Self> {
        let mut child = Command::new(&program.path)
            .arg0("onehop")
            .args(&program.arguments)
            .env_clear()
            // A Ctrl-C is for the server, which ends this process itself.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // The server's own may be a log of JSON lines; how the process ended is told there.
            .stderr(no_output()?)
            .spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take());
        let (Some(jobs), Some(results)) = pipes else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(io::Error::other("a process without pipes"));
        };
        let process = Self { child, jobs, results };
        ioctl_fionbio(&process.jobs, true)?;
        ioctl_fionbio(&process.results, true)?;
        Ok(process)
    }

    fn form(
        &mut self,
        bytes: &[u8],
        encoding: Encoding,
        cancelled: &AtomicBool,
    ) -> io::Result<Option<Arc<[u8]>>> {
        write_job(&mut Patient { pipe: &self.jobs, cancelled }, encoding, bytes)?;
        read_result(&mut Patient { pipe: &self.results, cancelled }, bytes.len())
    }

    /// Ends the process after an error; tells why it was one.
    fn end(mut self, error: &io::Error) -> String {
        let _ = self.child.kill();
        match (error.kind(), self.child.wait()) {
            // Its pipes were closed because it was gone: that it was then killed changes nothing.
            (ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe, Ok(status)) => status.to_string(),
            _ => error.to_string(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Its own handle: its number cannot have been given away while it was not waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A pipe that is waited for until the work is cancelled.
struct Patient<'a, P> {
    pipe: &'a P,
    cancelled: &'a AtomicBool,
}

impl<P: AsFd> Patient<'_, P> {
    fn wait(&self, what: PollFlags) -> io::Result<()> {
        let period = Timespec::try_from(COMPRESS_CANCEL_PERIOD).map_err(io::Error::other)?;
        loop {
            if self.cancelled.load(Ordering::Relaxed) {
                return Err(io::Error::other("cancelled"));
            }
            match poll(&mut [PollFd::new(self.pipe, what)], Some(&period)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn until_ready(
        &self,
        what: PollFlags,
        mut work: impl FnMut() -> rustix::io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            self.wait(what)?;
            match work() {
                Err(Errno::AGAIN | Errno::INTR) => {}
                done => return Ok(done?),
            }
        }
    }
}

impl<P: AsFd> Read for Patient<'_, P> {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        self.until_ready(PollFlags::IN, || rustix::io::read(self.pipe, &mut *space))
    }
}

impl<P: AsFd> Write for Patient<'_, P> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.until_ready(PollFlags::OUT, || rustix::io::write(self.pipe, bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
