//! Ctrl-C in a measurement.
//!
//! Owns the end of the servers that were started: each is in a process group of its own, so that nobody else ends
//! them, and one that goes on running would share its core with whatever is measured next.

use std::thread;

use onehop_load::measure::Tree;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::Outcome;

/// What shells tell of a program that was interrupted.
const INTERRUPTED: i32 = 130;

/// From now on the first signal to end ends the servers too, and nothing is written.
#[expect(clippy::disallowed_methods, reason = "a measurement cannot be unwound, and its servers were ended")]
pub(crate) fn end_servers_with_us() -> Outcome {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        if signals.forever().next().is_some() {
            end_children();
            eprintln!("interrupted: the servers were ended, and nothing was written");
            std::process::exit(INTERRUPTED);
        }
    })?;
    Ok(())
}

/// All that descends from this process, its own children first found.
fn end_children() {
    let own = rustix::process::getpid();
    for process in Tree::of(std::process::id()).processes() {
        let process = i32::try_from(process).ok().and_then(Pid::from_raw);
        if let Some(process) = process.filter(|process| *process != own) {
            // One that ended meanwhile is no error.
            let _ = kill_process(process, Signal::KILL);
        }
    }
}
