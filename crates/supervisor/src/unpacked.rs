//! Unpacks what workers need of a pack before the first of them starts.
//!
//! Owns one thread at a time that unpacks, with low priority: pages are answered meanwhile. A failure fails the start of the
//! worker, and the next start tries again.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use onehop_archive::installed::{Earlier, Packed, Unpacked};
use tokio::sync::oneshot;

use crate::events::{AppEvent, AppEventSink};

/// A pack whose content is unpacked when it is needed.
pub(crate) struct Unpacking {
    packed: Arc<Packed>,
    events: AppEventSink,
    /// Held while a worker unpacks: the others wait.
    done: tokio::sync::Mutex<Option<Unpacked>>,
    /// Held by the thread that unpacks, also after its worker is not wanted any more: the next thread waits for it.
    turn: Mutex<()>,
    /// The server stops: nothing more is unpacked.
    stop: AtomicBool,
}

/// How nice unpacking is to the threads that answer (setpriority(2)).
const NICENESS: i32 = 5;

impl Unpacking {
    pub(crate) fn new(packed: Arc<Packed>, events: AppEventSink) -> Arc<Self> {
        let done = tokio::sync::Mutex::default();
        Arc::new(Self { packed, events, done, turn: Mutex::default(), stop: AtomicBool::new(false) })
    }

    pub(crate) fn packed(&self) -> &Packed {
        &self.packed
    }

    /// Unpacks for the first worker, and again for one that finds that it was removed since. An error is for a person.
    pub(crate) async fn done(self: &Arc<Self>) -> Result<(), String> {
        let mut done = self.done.lock().await;
        let folder = self.packed.folder.path();
        if done.as_ref().is_some_and(|unpacked| unpacked.lies_in(folder)) {
            return Ok(());
        }
        let was_there = done.take().is_some();
        let unpacked = self.unpack_on_a_thread().await?;
        if was_there && unpacked.written > 0 && unpacked.aside.is_none() {
            self.warn(format!("{} was removed: everything was unpacked anew", folder.display()));
        }
        *done = Some(unpacked);
        Ok(())
    }

    /// No worker is wanted any more: what is being unpacked is removed again before this returns.
    pub(crate) fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.turn.lock().unwrap_or_else(PoisonError::into_inner));
    }

    async fn unpack_on_a_thread(self: &Arc<Self>) -> Result<Unpacked, String> {
        let (sender, receiver) = oneshot::channel();
        let this = Arc::clone(self);
        let run = move || {
            // Without the lower priority it works all the same.
            let _ = rustix::process::setpriority_process(None, NICENESS);
            // The lock guards no data: a panic of its holder leaves nothing broken.
            let turn = this.turn.lock().unwrap_or_else(PoisonError::into_inner);
            if this.stop.load(Ordering::Relaxed) {
                return;
            }
            let started = Instant::now();
            let unpacked = this.packed.unpack(&this.stop);
            if let Ok(unpacked) = &unpacked {
                this.report(unpacked, started);
            }
            let _ = sender.send(unpacked);
            for earlier in this.packed.sweep() {
                this.warn(of_earlier(&earlier));
            }
            drop(turn);
        };
        let started = std::thread::Builder::new().name("unpack".into()).spawn(run);
        started.map_err(|error| format!("the pack cannot be unpacked: {error}"))?;
        receiver.await.unwrap_or_else(|_| {
            Err("the pack could not be unpacked: a thread of the server ended".to_owned())
        })
    }

    fn report(&self, unpacked: &Unpacked, started: Instant) {
        let folder = self.packed.folder.path();
        warnings(folder, unpacked).into_iter().for_each(|message| self.warn(message));
        if unpacked.written > 0 {
            let (folder, files, took) = (folder.to_path_buf(), unpacked.written, started.elapsed());
            (self.events)(AppEvent::Unpacked { folder, files, took });
        }
    }

    fn warn(&self, message: String) {
        (self.events)(AppEvent::Warning { message });
    }
}

/// Messages about files that are not as they were unpacked, with what to do about them.
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
