//! That what workers need of a pack is unpacked before the first of them starts.
//!
//! Owns one thread at a time that unpacks, with little priority: pages are answered meanwhile. A failure is that of the
//! application's start, and is tried again with its next one.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::oneshot;

use super::account;
use super::messages::{Command, End, Task};
use super::{Event, Surroundings};
use onehop_archive::installed::{Earlier, Packed, Unpacked};

/// What is unpacked.
pub(super) struct Unpacking {
    packed: Arc<Packed>,
    /// Held while somebody sees to it: the others wait.
    done: tokio::sync::Mutex<Option<Unpacked>>,
    /// Held by the thread that unpacks: one whose worker is not wanted any more is not overtaken.
    turn: Mutex<()>,
    /// The server stops: nothing more is unpacked.
    stop: AtomicBool,
}

/// How nice unpacking is to the threads that answer (setpriority(2)).
const NICENESS: i32 = 5;

impl Unpacking {
    pub(super) fn new(packed: Arc<Packed>) -> Self {
        let done = tokio::sync::Mutex::default();
        Self { packed, done, turn: Mutex::default(), stop: AtomicBool::new(false) }
    }

    pub(super) fn packed(&self) -> &Packed {
        &self.packed
    }

    /// No worker is wanted any more: what is being unpacked is removed again before this returns.
    pub(super) fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.turn.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Waits until the worker of this task may start. Ends early where it is not wanted any more.
pub(super) async fn unpacked(task: &mut Task) -> Result<(), End> {
    let surroundings = Arc::clone(&task.surroundings);
    let Some(unpacking) = &surroundings.unpacking else { return Ok(()) };
    let done = lies_there(&surroundings, unpacking);
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
    if let Some((user, group)) = &task.app.user {
        let opened = account::look_up(user, group.as_deref())
            .and_then(|account| unpacking.packed.open_to(account.uid));
        opened.map_err(End::before_its_process)?;
    }
    Ok(())
}

/// Unpacks for the first worker, and again for one that finds that it was removed since.
async fn lies_there(surroundings: &Arc<Surroundings>, unpacking: &Unpacking) -> Result<(), String> {
    let mut done = unpacking.done.lock().await;
    let folder = unpacking.packed.folder.path();
    if done.as_ref().is_some_and(|unpacked| unpacked.lies_in(folder)) {
        return Ok(());
    }
    let was_there = done.take().is_some();
    let unpacked = on_a_thread(Arc::clone(surroundings)).await?;
    if was_there && unpacked.written > 0 && unpacked.aside.is_none() {
        let message = format!("{} was removed: everything was unpacked anew", folder.display());
        surroundings.say(Event::Warning { message });
    }
    *done = Some(unpacked);
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
        if unpacking.stop.load(Ordering::Relaxed) {
            return;
        }
        let begun = Instant::now();
        let unpacked = unpacking.packed.unpack(&unpacking.stop);
        if let Ok(unpacked) = &unpacked {
            tell(&surroundings, unpacked, begun);
        }
        let _ = sender.send(unpacked);
        for earlier in unpacking.packed.sweep() {
            surroundings.say(Event::Warning { message: of_earlier(&earlier) });
        }
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
    let folder = unpacking.packed.folder.path();
    for message in warnings(folder, unpacked) {
        surroundings.say(Event::Warning { message });
    }
    if unpacked.written > 0 {
        let folder = folder.to_path_buf();
        surroundings.say(Event::Unpacked { folder, files: unpacked.written, took: begun.elapsed() });
    }
}

/// What is not as it was unpacked, with what to do about it.
fn warnings(folder: &Path, unpacked: &Unpacked) -> Vec<String> {
    let Unpacked { kept, repaired, aside, .. } = unpacked;
    let folder = folder.display();
    let mut all = Vec::new();
    if let Some(aside) = aside {
        all.push(format!(
            "{folder} did not belong to this user alone: it is kept as {}, and the pack was unpacked anew; move what an \
             application wrote there, then remove it",
            aside.display()
        ));
    }
    if kept.count > 0 {
        all.push(format!(
            "{folder} holds files that the application changed or added: {}; they are kept, but the next version of the \
             pack is unpacked elsewhere and does not see them: {DATA_ADVICE}",
            kept.text()
        ));
    }
    if repaired.aside.count > 0 {
        all.push(format!(
            "{folder} held code that is not what was packed: the packed files are back, and the changed ones are kept as {}",
            repaired.aside.text()
        ));
    }
    if repaired.missing.count > 0 {
        all.push(format!(
            "{folder} lacked files that were unpacked there; they are back: {}",
            repaired.missing.text()
        ));
    }
    all
}

/// What to do with what an application writes.
const DATA_ADVICE: &str = "move them to the data directory and let the application write there (`data NAME` in its block sets APP_DATA_DIR)";

fn of_earlier(earlier: &Earlier) -> String {
    let folder = earlier.folder.display();
    let files = if earlier.files.count > 0 { format!(": {}", earlier.files.text()) } else { String::new() };
    format!(
        "the folder of an earlier version, {folder}, holds files that the application changed or added{files}; it stays \
         until it is removed by hand: {DATA_ADVICE}"
    )
}
