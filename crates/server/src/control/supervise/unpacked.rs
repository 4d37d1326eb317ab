//! That what workers need of a pack is unpacked before the first of them starts.
//!
//! Owns one thread at a time that unpacks, with little priority: pages are answered meanwhile. A failure is that of the
//! application's start, and is tried again with its next one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::{OnceCell, oneshot};

use super::messages::{Command, End, Task};
use super::{Event, Surroundings};
use crate::control::packed::{Packed, Unpacked};

/// What is unpacked, once.
pub(super) struct Unpacking {
    packed: Arc<Packed>,
    done: OnceCell<Unpacked>,
    /// Held by the thread that unpacks: one whose worker is not wanted any more is not overtaken.
    turn: Mutex<()>,
}

/// How nice unpacking is to the threads that answer (setpriority(2)).
const NICENESS: i32 = 5;

impl Unpacking {
    pub(super) fn new(packed: Arc<Packed>) -> Self {
        Self { packed, done: OnceCell::new(), turn: Mutex::default() }
    }

    pub(super) fn packed(&self) -> &Packed {
        &self.packed
    }
}

/// Waits until the worker of this task may start. Ends early where it is not wanted any more.
pub(super) async fn unpacked(task: &mut Task) -> Result<(), End> {
    let surroundings = Arc::clone(&task.surroundings);
    let Some(unpacking) = &surroundings.unpacking else { return Ok(()) };
    let done = unpacking.done.get_or_try_init(|| on_a_thread(Arc::clone(&surroundings)));
    tokio::pin!(done);
    loop {
        tokio::select! {
            done = &mut done => {
                done.map_err(End::before_its_process)?;
                break;
            }
            command = task.command() => match command {
                // There is nobody yet who could be told.
                Command::TakeLeave => {}
                Command::Drain | Command::Kill => {
                    let reason = "it was stopped before the pack was unpacked".to_owned();
                    return Err(End { failed: false, ..End::before_its_process(reason) });
                }
            },
        }
    }
    if task.app.user.is_some() {
        let opened = unpacking.packed.open_to_others();
        opened.map_err(|error| {
            End::before_its_process(format!("its user cannot be let into the folder of the pack: {error}"))
        })?;
    }
    Ok(())
}

async fn on_a_thread(surroundings: Arc<Surroundings>) -> Result<Unpacked, String> {
    let (sender, receiver) = oneshot::channel();
    let run = move || {
        // A thread that may not be nicer works all the same.
        let _ = rustix::process::setpriority_process(None, NICENESS);
        let Some(unpacking) = &surroundings.unpacking else { return };
        // The lock guards no data: a panic of its holder leaves nothing broken.
        let turn = unpacking.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = Instant::now();
        let unpacked = unpacking.packed.unpack();
        if let Ok(unpacked) = &unpacked {
            tell(&surroundings, unpacked, begun);
        }
        let _ = sender.send(unpacked);
        unpacking.packed.sweep();
        drop(turn);
    };
    let started = std::thread::Builder::new().name("unpack".into()).spawn(run);
    started.map_err(|error| format!("the pack cannot be unpacked: {error}"))?;
    receiver
        .await
        .unwrap_or_else(|_| Err("the pack could not be unpacked: a thread of the server ended".to_owned()))
}

fn tell(surroundings: &Surroundings, unpacked: &Unpacked, begun: Instant) {
    let Some(unpacking) = &surroundings.unpacking else { return };
    if let Some(what) = &unpacked.changed {
        let message = format!("{what} is not what was unpacked there: everything was unpacked anew");
        surroundings.say(Event::Warning { message });
    }
    if unpacked.written > 0 {
        let folder = unpacking.packed.folder.path().to_path_buf();
        surroundings.say(Event::Unpacked { folder, files: unpacked.written, took: begun.elapsed() });
    }
}
