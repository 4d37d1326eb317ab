//! What the first process of a container has to do: end what is left behind, and pass signals on.
//!
//! The kernel gives processes without a parent to process 1, and spares it signals that it did not ask for. A server
//! is not made for the former, and programs that it runs may leave such processes behind at any rate. So process 1
//! starts this very program again with the same arguments and keeps nothing but its number. It holds no table of
//! processes: what ended is asked of the kernel, one after the other.

use std::ffi::c_int;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use super::exec_worker;
use crate::failure::Failure;

/// Signals that are passed on: what engines and people send to a container.
const PASSED_ON: [c_int; 6] = [SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2];

/// What shells add to the number of a signal that ended a process.
const BY_SIGNAL: i32 = 128;

/// Whether this is the first process of its namespace.
pub(crate) fn is_asked_for() -> bool {
    getpid().is_init()
}

/// Starts the program again and returns its exit code when it has ended. Whatever else runs then is ended by the
/// kernel, together with this process.
pub(crate) fn start_and_wait() -> Result<ExitCode, Failure> {
    let failed = |what: &str, error: std::io::Error| Failure::failed(format!("cannot {what}: {error}"));
    // Before there is a child: neither its end nor a signal that is meant for it may be missed.
    let mut signals = Signals::new(PASSED_ON.into_iter().chain([SIGCHLD]))
        .map_err(|error| failed("listen for signals", error))?;
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    let child = Command::new(exec_worker::launcher().0).arg0(name).args(arguments).spawn();
    let child = child.map_err(|error| failed("start itself as process 1 of a container", error))?;
    let child = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let child = child.ok_or_else(|| Failure::failed("the system gave a process no number"))?;
    for signal in signals.forever() {
        if signal == SIGCHLD {
            if let Some(code) = reap(child) {
                return Ok(code);
            }
        } else if let Some(signal) = Signal::from_named_raw(signal) {
            // One that has just ended is told of by its own signal.
            let _ = kill_process(child, signal);
        }
    }
    Err(Failure::failed("signals are no longer delivered"))
}

/// Takes note of everything that has ended. The exit code, once the child is among it.
fn reap(child: Pid) -> Option<ExitCode> {
    let mut code = None;
    // Ends: each turn takes away a process that has ended, or is the last.
    while let Ok(Some((process, status))) = wait(WaitOptions::NOHANG) {
        if process == child {
            let number = match (status.exit_status(), status.terminating_signal()) {
                (Some(number), _) => number,
                (None, Some(signal)) => BY_SIGNAL + signal,
                // Without further options only ends are told.
                (None, None) => continue,
            };
            code = Some(ExitCode::from(u8::try_from(number).unwrap_or(u8::MAX)));
        }
    }
    code
}
