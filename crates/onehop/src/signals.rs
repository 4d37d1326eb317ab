//! Signals: SIGHUP reads the configuration again, SIGUSR1 opens log files anew, SIGTERM and SIGINT stop, a second SIGINT ends at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use onehop_load::measure::Tree;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

/// A second interrupt counts only after this: a wrapper often passes on the one that the terminal has
/// already sent to everybody, and nobody presses twice as fast as this.
const SAME_INTERRUPT: Duration = Duration::from_millis(150);

/// What the main thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Read the configuration again.
    Reload,
    /// Open the files of access logs anew.
    ReopenLogs,
    /// Stop.
    Stop,
    /// The server has begun to stop by itself, or through its control socket.
    Stopping,
}

/// Asks for the end of a measurement, by setting the flag, at the first SIGINT, SIGTERM, SIGQUIT, or SIGHUP (a
/// terminal that was closed, unless nohup has it ignored); the second ends the process at once. Either way the servers
/// that were started end with it.
#[expect(clippy::disallowed_methods, reason = "a person who interrupts twice wants the end now")]
pub(crate) fn break_off(asked: Arc<AtomicBool>) -> io::Result<()> {
    let mut wanted = vec![SIGINT, SIGTERM, SIGQUIT];
    if !is_ignored(SIGHUP) {
        wanted.push(SIGHUP);
    }
    let mut signals = Signals::new(wanted)?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        let mut first: Option<Instant> = None;
        for _ in signals.forever() {
            if first.is_some_and(|first| first.elapsed() > SAME_INTERRUPT) {
                end_children();
                crate::report::write_line("interrupted again: ending at once");
                std::process::exit(1);
            }
            first.get_or_insert_with(Instant::now);
            asked.store(true, Ordering::Release);
        }
    })?;
    Ok(())
}

/// Whether this process was started with the signal ignored (proc(5), `SigIgn`: a bit for each, from 1).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    u32::try_from(signal - 1).ok().and_then(|bit| mask.checked_shr(bit)).is_some_and(|rest| rest & 1 == 1)
}

/// Servers under measurement have process groups of their own: nobody else ends them.
fn end_children() {
    let own = std::process::id();
    for process in Tree::of(own).processes() {
        let process = i32::try_from(process).ok().and_then(Pid::from_raw);
        if let Some(process) = process.filter(|process| *process != rustix::process::getpid()) {
            // One that ended meanwhile is no error.
            let _ = kill_process(process, Signal::KILL);
        }
    }
}

/// Listens from now on. Until `serving` is set, SIGTERM and SIGINT end the process at once: nothing is
/// in flight yet, and reading a large tree cannot be interrupted otherwise.
#[expect(
    clippy::disallowed_methods,
    reason = "a person who interrupts twice, or before anything is served, wants the end now"
)]
pub(crate) fn listen(actions: Sender<Action>, serving: Arc<AtomicBool>) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM, SIGUSR1])?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        let mut stop_was_asked: Option<Instant> = None;
        for signal in signals.forever() {
            // An error means that the main thread is past listening: it is stopping.
            if signal == SIGHUP {
                let _ = actions.send(Action::Reload);
                continue;
            }
            if signal == SIGUSR1 {
                let _ = actions.send(Action::ReopenLogs);
                continue;
            }
            if !serving.load(Ordering::Acquire) {
                crate::report::finish();
                std::process::exit(0);
            }
            if signal == SIGINT && stop_was_asked.is_some_and(|asked| asked.elapsed() > SAME_INTERRUPT) {
                crate::report::write_line("interrupted again: ending at once");
                crate::report::finish();
                std::process::exit(1);
            }
            stop_was_asked.get_or_insert_with(Instant::now);
            let _ = actions.send(Action::Stop);
        }
    })?;
    Ok(())
}
