//! All applications: what a start, a reload and a stop of the server ask of them.
//!
//! One thread with a runtime of its own; in it one task that owns each application (`app.rs`) and one for each of its
//! workers (`lifecycle.rs`), which send each other messages (`messages.rs`). The thread outlives every worker, and is the
//! parent whose death ends them.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use onehop_archive::installed::Packed;
use onehop_config::checked::App;
use onehop_workers::Pool;
use onehop_workers::Windows;
use onehop_workers::limits::WORKERS_MAX;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use crate::app::Owner;
use crate::events::AppEventSink;
use crate::limits::APP_MESSAGES_MAX;
use crate::loaded::{Files, Loaded};
use crate::messages::AppCommand;
use crate::options::SuperviseOptions;
use crate::shared::{Attach, Shared};
use crate::status::AppStatus;
use crate::sweep::sweep;
use crate::view::View;

/// Which applications a reload gives new processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// Those whose settings have changed, or a file that they have loaded.
    Changed,
    /// All.
    All,
}

/// Why the supervisor does not do what it was asked; the text is for a person.
#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    /// An application does not run as a reload wants it.
    #[error("application {app}: {reason}")]
    NotReady {
        /// Its name.
        app: String,
        /// Why its first worker failed.
        reason: String,
    },
    /// No application has this name.
    #[error("there is no application `{0}`")]
    UnknownApp(String),
    /// Out of the range of workers.
    #[error("write a number of workers from 1 to {WORKERS_MAX}")]
    WorkerCount,
    /// The supervisor's thread cannot be started.
    #[error(transparent)]
    Thread(#[from] io::Error),
}

/// Supervises all applications of a server. Its calls may wait; a task of a runtime must not make them.
pub struct Supervisor {
    shared: Arc<Shared>,
    attach: watch::Sender<Option<Attach>>,
    thread: Mutex<Option<Thread>>,
    apps: Mutex<Vec<Supervised>>,
}

/// An application that is supervised.
#[derive(Clone)]
struct Supervised {
    pool: Arc<Pool>,
    commands: mpsc::Sender<AppCommand>,
    view: View,
    loaded: Arc<Loaded>,
}

/// What a reload wants, made ready: nothing that can fail is left.
pub struct Change {
    /// In the order in which the applications were given.
    apps: Vec<Supervised>,
    new: Vec<Supervised>,
}

/// The supervisor's thread.
struct Thread {
    runtime: Handle,
    close: oneshot::Sender<()>,
    handle: JoinHandle<()>,
}

impl Supervisor {
    /// Supervises nothing yet. Each worker has a connection to each of so many cores, and starts once the pack, if there
    /// is one, is unpacked.
    pub fn new(
        options: SuperviseOptions,
        packed: Option<Arc<Packed>>,
        cores: usize,
        windows: Windows,
        events: AppEventSink,
    ) -> Self {
        let (attach, attached) = watch::channel(None);
        let shared = Arc::new(Shared::new(options, packed, cores, windows, events, attached));
        Self { shared, attach, thread: Mutex::default(), apps: Mutex::default() }
    }

    /// Starts the workers of these applications, without waiting for them.
    pub fn start(&self, apps: Vec<Arc<App>>) -> io::Result<Vec<Arc<Pool>>> {
        let started = apps.into_iter().map(|app| self.supervise(app)).collect::<Result<Vec<_>, _>>()?;
        let pools = started.iter().map(|app| Arc::clone(&app.pool)).collect();
        *self.lock_apps() = started;
        Ok(pools)
    }

    /// The cores run: sockets can be handed to them.
    pub fn open(&self, attach: Attach) {
        self.attach.send_replace(Some(attach));
    }

    /// Makes ready what a reload wants: new applications and those whose settings changed serve, those whose files
    /// changed have new workers, all others keep theirs. If one does not, no application is added or removed.
    pub fn prepare(&self, wanted: &[Arc<App>], restart: Restart) -> Result<Change, SuperviseError> {
        let before = self.lock_apps().clone();
        let (mut change, mut waiting) = (Change { apps: Vec::new(), new: Vec::new() }, Vec::new());
        for wanted in wanted {
            let (sender, receiver) = oneshot::channel();
            let known = before.iter().find(|known| known.pool.app == *wanted);
            let (app, command) = match known {
                Some(known) if restart == Restart::All || known.loaded.has_changed() => {
                    (known.clone(), AppCommand::Roll(sender))
                }
                Some(known) => (known.clone(), AppCommand::Keep(sender)),
                None => {
                    let app = self.supervise(Arc::clone(wanted))?;
                    change.new.push(app.clone());
                    (app, AppCommand::AwaitReady(sender))
                }
            };
            let _ = app.commands.blocking_send(command);
            waiting.push((wanted.name.clone(), receiver));
            change.apps.push(app);
        }
        for (name, receiver) in waiting {
            let ready = receiver.blocking_recv().unwrap_or_else(|_| Err("it is being stopped".to_owned()));
            if let Err(reason) = ready {
                let old = before.iter().find(|old| old.pool.app.name == name);
                if let Some(old) = old.filter(|_| self.shared.options.watch) {
                    old.pool.set_failing(old.pool.failing().unwrap_or(0), Some(reason.clone()));
                }
                self.abandon(change);
                return Err(SuperviseError::NotReady { app: name, reason });
            }
        }
        Ok(change)
    }

    /// Ends what was started for a change that is not carried out after all.
    pub fn abandon(&self, change: Change) {
        for app in change.new {
            app.stop();
        }
    }

    /// The change is published: applications that are no longer wanted finish their requests and end.
    pub fn carry_out(&self, change: Change) {
        let before = std::mem::replace(&mut *self.lock_apps(), change.apps);
        let now = self.lock_apps();
        for app in before {
            if !now.iter().any(|kept| Arc::ptr_eq(&kept.pool, &app.pool)) {
                app.stop();
            }
        }
    }

    /// The files that the processes of an application have loaded; `None` where it does not run.
    pub fn files(&self, name: &str) -> Option<Arc<Files>> {
        self.lock_apps().iter().find(|app| app.pool.app.name == name)?.loaded.files()
    }

    /// The status of every application.
    pub fn status(&self) -> Vec<AppStatus> {
        self.lock_apps().iter().map(|app| app.view.status(&app.pool)).collect()
    }

    /// Changes the number of an application's workers, if there is one given.
    pub fn workers(&self, name: &str, wanted: Option<usize>) -> Result<AppStatus, SuperviseError> {
        let found = self.lock_apps().iter().find(|app| app.pool.app.name == name).cloned();
        let app = found.ok_or_else(|| SuperviseError::UnknownApp(name.to_owned()))?;
        if let Some(count) = wanted {
            if !(1..=WORKERS_MAX).contains(&count) {
                return Err(SuperviseError::WorkerCount);
            }
            let (sender, done) = oneshot::channel();
            let _ = app.commands.blocking_send(AppCommand::Workers(count, sender));
            let _ = done.blocking_recv();
        }
        Ok(app.view.status(&app.pool))
    }

    /// Replaces all workers of an application; gives what it has once a new one serves.
    pub fn roll(&self, name: &str) -> Result<AppStatus, SuperviseError> {
        let found = self.lock_apps().iter().find(|app| app.pool.app.name == name).cloned();
        let app = found.ok_or_else(|| SuperviseError::UnknownApp(name.to_owned()))?;
        let (sender, ready) = oneshot::channel();
        let _ = app.commands.blocking_send(AppCommand::Roll(sender));
        match ready.blocking_recv().unwrap_or_else(|_| Err("it is being stopped".to_owned())) {
            Ok(()) => Ok(app.view.status(&app.pool)),
            Err(reason) => Err(SuperviseError::NotReady { app: name.to_owned(), reason }),
        }
    }

    /// The server begins to stop: workers close what their clients would keep open for ever, and continue to serve.
    pub fn announce_stop(&self) {
        for app in &*self.lock_apps() {
            let _ = app.commands.blocking_send(AppCommand::AnnounceStop);
        }
    }

    /// Lets every worker finish its requests, and ends all of them; returns when none is left.
    pub fn stop(&self) {
        let apps = std::mem::take(&mut *self.lock_apps());
        let waiting: Vec<_> = apps.iter().map(Supervised::stop).collect();
        for gone in waiting {
            let _ = gone.blocking_recv();
        }
        self.end_thread();
        self.shared.end_guard();
        // Values that hold the folder may live until the process ends, which drops nothing.
        self.shared.remove_folder();
    }

    fn supervise(&self, app: Arc<App>) -> io::Result<Supervised> {
        let runtime = self.runtime()?;
        let pool = Pool::new(Arc::clone(&app));
        let view = View::default();
        let (commands, received) = mpsc::channel(APP_MESSAGES_MAX);
        let loaded = Arc::<Loaded>::default();
        let supervised = Supervised { pool, commands, view, loaded };
        let Supervised { pool, view, loaded, .. } = supervised.clone();
        runtime.spawn(Owner::new(app, pool, Arc::clone(&self.shared), view, loaded).run(received));
        Ok(supervised)
    }

    /// The runtime of the thread, which the first application starts.
    fn runtime(&self) -> io::Result<Handle> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = &*thread {
            return Ok(thread.runtime.clone());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (close, closed) = oneshot::channel();
        let spawned = std::thread::Builder::new().name("supervisor".into()).spawn(move || {
            // The sender's end counts as closing, too.
            let _ = runtime.block_on(closed);
            runtime.shutdown_background();
        })?;
        // Nothing waits for it: without it folders only stay for longer.
        let _ = std::thread::Builder::new().name("sweep".into()).spawn(sweep);
        *thread = Some(Thread { runtime: handle.clone(), close, handle: spawned });
        Ok(handle)
    }

    /// Ends the thread, and with it all workers that are left.
    fn end_thread(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Thread { close, handle, .. }) = thread {
            let _ = close.send(());
            let _ = handle.join();
        }
        self.shared.end_unpacking();
    }

    fn lock_apps(&self) -> MutexGuard<'_, Vec<Supervised>> {
        self.apps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // After a start that failed, or where nothing waited for the server, workers have nothing to finish: the end of
        // the thread drops, and so kills, them.
        self.end_thread();
    }
}

impl Change {
    /// The pools of the applications, in the order in which those were given.
    pub fn pools(&self) -> Vec<Arc<Pool>> {
        self.apps.iter().map(|app| Arc::clone(&app.pool)).collect()
    }
}

impl Supervised {
    fn stop(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let _ = self.commands.blocking_send(AppCommand::Stop(sender));
        receiver
    }
}
