//! Ctrl-C and `kill` during a measurement.
//!
//! Owns SIGINT and SIGTERM from the first measurement on. Servers under measurement have process groups of their own,
//! so that nobody else ends them: this file must never let the process end and leave one behind on a core that the
//! next measurement uses.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use onehop_load::Observer;
use onehop_load::measure::Tree;
use rustix::process::{Pid, Signal, getpid, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::Outcome;

/// The load hears of it within a tenth of a second; what does not listen (a build, wrk, a server that is waited for)
/// has so long.
const END_WITHIN: Duration = Duration::from_secs(3);
/// A second signal counts only after this: a wrapper often passes on the one that the terminal has already sent to
/// everybody.
const SAME_SIGNAL: Duration = Duration::from_millis(150);
/// What shells tell of a process that SIGINT ended.
const INTERRUPTED: i32 = 130;

static IS_ASKED: AtomicBool = AtomicBool::new(false);
static LISTENS: Once = Once::new();

/// Breaks off where the person who measures asked for the end.
pub(crate) struct Interruptible;

impl Observer for Interruptible {
    fn is_interrupted(&self) -> bool {
        IS_ASKED.load(Ordering::Acquire)
    }
}

/// Runs a measurement that a signal ends together with its servers.
pub(crate) fn watched(measure: impl FnOnce(&[&str]) -> Outcome, words: &[&str]) -> Outcome {
    let mut outcome = Ok(());
    LISTENS.call_once(|| outcome = listen());
    outcome?;
    let outcome = measure(words);
    if IS_ASKED.load(Ordering::Acquire) { broken_off() } else { outcome }
}

/// An error where the end was asked for: what follows would only be figures of a measurement that was cut short.
pub(crate) fn check() -> Outcome {
    if IS_ASKED.load(Ordering::Acquire) { broken_off() } else { Ok(()) }
}

fn broken_off() -> Outcome {
    Err("broken off by a signal: nothing was kept, and the servers are ended".into())
}

fn listen() -> Outcome {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut first: Option<Instant> = None;
        for _ in signals.forever() {
            IS_ASKED.store(true, Ordering::Release);
            match first {
                Some(first) if first.elapsed() > SAME_SIGNAL => end_at_once(),
                Some(_) => {}
                None => {
                    first = Some(Instant::now());
                    thread::spawn(|| {
                        thread::sleep(END_WITHIN);
                        end_at_once();
                    });
                }
            }
        }
    })?;
    Ok(())
}

/// Orphans of the servers are children of this process, so that its tree has them all.
#[expect(
    clippy::disallowed_methods,
    reason = "whoever asks for the end has it, also of what does not listen"
)]
fn end_at_once() {
    for process in Tree::of(std::process::id()).processes() {
        let process = i32::try_from(process).ok().and_then(Pid::from_raw);
        if let Some(process) = process.filter(|process| *process != getpid()) {
            // One that ended meanwhile is no error.
            let _ = kill_process(process, Signal::KILL);
        }
    }
    eprintln!("error: broken off by a signal: all that was started is ended");
    std::process::exit(INTERRUPTED);
}
