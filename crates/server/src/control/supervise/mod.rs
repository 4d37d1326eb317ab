//! The supervisor: starts the workers of applications, watches, replaces and ends them.
//!
//! One thread with a runtime of its own; in it one task that owns each application (`app.rs`) and one for each
//! of its workers (`handler.rs`, `program.rs`), which tell each other in messages (`messages.rs`). The thread
//! outlives every worker, and is the parent whose death ends them. Never touches a request: cores see a
//! [`Pool`] of workers that are admitted to it and withdrawn from it.

mod account;
mod app;
mod control_lane;
mod data;
mod embedded;
mod environment;
pub(super) mod folder;
mod guard;
mod handler;
mod launch;
mod leftovers;
mod messages;
mod output;
mod pause;
mod port;
mod process;
mod program;
mod reason;
mod stack;
mod sweep;
mod unpacked;
mod view;

use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use onehop_config::checked::{App, AppRun};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use super::cores::LaneDoors;
use super::events::{Event, EventSink};
use super::loaded::{Files, Loaded};
use super::running::Restart;
use super::status::AppStatus;
use crate::limits::APP_MESSAGES_MAX;
use folder::PrivateFolder;
use guard::Guard;
use messages::Order;
use onehop_archive::installed::Packed;
use onehop_workers::limits::WORKERS_MAX;
use onehop_workers::{Pool, Windows, WorkerId};
use port::Ports;
use unpacked::Unpacking;
use view::View;

pub use guard::guard_workers;

/// A program, and its first arguments.
pub type ProgramLine = (PathBuf, Vec<OsString>);

/// What the program decides about workers.
#[derive(Debug, Clone, Default)]
pub struct SuperviseOptions {
    /// The program that prepares a worker's process and then becomes it; `None` starts workers directly, without
    /// limits and without a parent whose death they notice.
    pub launcher: Option<ProgramLine>,
    /// The program that runs [`guard_workers`]; `None` does without.
    pub guard: Option<ProgramLine>,
    /// Somebody works on the applications: browsers are shown why one does not start, and handlers run with
    /// NODE_ENV=development. A change of their files is a reload.
    pub watch: bool,
}

/// The supervisor, as the rest of the control plane has it. Its calls may wait; none is for a runtime's task.
pub(super) struct Supervisor {
    surroundings: Arc<Surroundings>,
    doors: watch::Sender<Option<LaneDoors>>,
    engine: Mutex<Option<Engine>>,
    apps: Mutex<Vec<Supervised>>,
}

/// An application that is supervised.
#[derive(Clone)]
pub(super) struct Supervised {
    pub(super) pool: Arc<Pool>,
    orders: mpsc::Sender<Order>,
    view: View,
    loaded: Arc<Loaded>,
}

/// What a reload wants, made ready: nothing that can fail is left.
pub(super) struct Change {
    /// In the order of the wishes.
    apps: Vec<Supervised>,
    fresh: Vec<Supervised>,
}

/// The thread.
struct Engine {
    handle: Handle,
    close: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// What all applications share.
pub(super) struct Surroundings {
    options: SuperviseOptions,
    /// What has to lie on the machine before a worker starts.
    unpacking: Option<Unpacking>,
    cores: usize,
    windows: Windows,
    events: EventSink,
    doors: watch::Receiver<Option<LaneDoors>>,
    folder: OnceLock<Result<PrivateFolder, String>>,
    guard: OnceLock<Option<Arc<Guard>>>,
    ports: Ports,
    ids: AtomicU64,
}

impl Supervisor {
    /// Supervises nothing yet; workers have a lane for each of so many cores, and start once the pack, if there is one,
    /// is unpacked.
    pub(super) fn new(
        options: SuperviseOptions,
        packed: Option<Arc<Packed>>,
        cores: usize,
        windows: Windows,
        events: EventSink,
    ) -> Self {
        let (doors, opened) = watch::channel(None);
        let surroundings = Surroundings {
            options,
            unpacking: packed.map(Unpacking::new),
            cores,
            windows,
            events,
            doors: opened,
            folder: OnceLock::new(),
            guard: OnceLock::new(),
            ports: Ports::default(),
            ids: AtomicU64::new(1),
        };
        Self { surroundings: Arc::new(surroundings), doors, engine: Mutex::default(), apps: Mutex::default() }
    }

    /// Starts the workers of these applications, without waiting for them.
    pub(super) fn start(&self, wishes: Vec<Arc<App>>) -> std::io::Result<Vec<Arc<Pool>>> {
        let started = wishes.into_iter().map(|app| self.supervise(app)).collect::<Result<Vec<_>, _>>()?;
        let pools = started.iter().map(|app| Arc::clone(&app.pool)).collect();
        *self.lock_apps() = started;
        Ok(pools)
    }

    /// The cores are there: lanes can be handed over.
    pub(super) fn open(&self, doors: LaneDoors) {
        self.doors.send_replace(Some(doors));
    }

    /// Makes ready what a reload wants: new applications and those whose settings changed serve, those whose files
    /// changed have new workers, all others keep theirs. If one does not, no application is added or taken away, and
    /// the reason is returned.
    pub(super) fn prepare(&self, wishes: &[Arc<App>], restart: Restart) -> Result<Change, String> {
        let before = self.lock_apps().clone();
        let (mut apps, mut fresh, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
        for wish in wishes {
            let (sender, receiver) = oneshot::channel();
            let known = before.iter().find(|known| known.pool.app == *wish);
            let (app, order) = match known {
                Some(known) if restart == Restart::All || known.loaded.has_changed() => {
                    (known.clone(), Order::Roll(sender))
                }
                Some(known) => (known.clone(), Order::Keep(sender)),
                None => {
                    let app = self.supervise(Arc::clone(wish)).map_err(|error| error.to_string())?;
                    fresh.push(app.clone());
                    (app, Order::AwaitReady(sender))
                }
            };
            let _ = app.orders.blocking_send(order);
            waiting.push((wish.name.clone(), receiver));
            apps.push(app);
        }
        let change = Change { apps, fresh };
        for (name, receiver) in waiting {
            let ready = receiver.blocking_recv().unwrap_or_else(|_| Err("it is being stopped".to_owned()));
            if let Err(reason) = ready {
                let old = before.iter().find(|old| old.pool.app.name == name);
                if let Some(old) = old.filter(|_| self.surroundings.options.watch) {
                    old.pool.set_failing(old.pool.failing().unwrap_or(0), Some(reason.clone()));
                }
                self.abandon(change);
                return Err(format!("application {name}: {reason}"));
            }
        }
        Ok(change)
    }

    /// A change that is not carried out after all.
    pub(super) fn abandon(&self, change: Change) {
        for app in change.fresh {
            app.stop();
        }
    }

    /// The change is published: what is no longer wanted finishes what it has.
    pub(super) fn carry_out(&self, change: Change) {
        let before = std::mem::replace(&mut *self.lock_apps(), change.apps);
        let now = self.lock_apps();
        for app in before {
            if !now.iter().any(|kept| Arc::ptr_eq(&kept.pool, &app.pool)) {
                app.stop();
            }
        }
    }

    /// What the processes of an application have loaded; nothing where it does not run.
    pub(super) fn files(&self, name: &str) -> Option<Arc<Files>> {
        self.lock_apps().iter().find(|app| app.pool.app.name == name)?.loaded.files()
    }

    /// Every application.
    pub(super) fn status(&self) -> Vec<AppStatus> {
        self.lock_apps().iter().map(|app| app.view.status(&app.pool)).collect()
    }

    /// Changes the number of an application's workers, if there is one given.
    pub(super) fn workers(&self, name: &str, wanted: Option<usize>) -> Result<AppStatus, String> {
        let found = self.lock_apps().iter().find(|app| app.pool.app.name == name).cloned();
        let app = found.ok_or_else(|| format!("there is no application `{name}`"))?;
        if let Some(count) = wanted {
            if !(1..=WORKERS_MAX).contains(&count) {
                return Err(format!("write a number of workers from 1 to {WORKERS_MAX}"));
            }
            let (sender, taken) = oneshot::channel();
            let _ = app.orders.blocking_send(Order::Workers(count, sender));
            let _ = taken.blocking_recv();
        }
        Ok(app.view.status(&app.pool))
    }

    /// The server begins to stop: workers close what their clients would keep open for ever, and serve on.
    pub(super) fn take_leave(&self) {
        for app in &*self.lock_apps() {
            let _ = app.orders.blocking_send(Order::TakeLeave);
        }
    }

    /// Lets every worker finish what it has, and ends all of them; returns when none is left.
    pub(super) fn stop(&self) {
        let apps = std::mem::take(&mut *self.lock_apps());
        let waiting: Vec<_> = apps.iter().map(Supervised::stop).collect();
        for gone in waiting {
            let _ = gone.blocking_recv();
        }
        let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Engine { close, thread, .. }) = engine {
            let _ = close.send(());
            let _ = thread.join();
        }
        if let Some(unpacking) = &self.surroundings.unpacking {
            unpacking.end();
        }
        if let Some(Some(guard)) = self.surroundings.guard.get() {
            guard.end();
        }
        // Whoever still holds this holds it until the process ends, where nothing is dropped.
        if let Some(Ok(folder)) = self.surroundings.folder.get() {
            folder.remove();
        }
    }

    fn supervise(&self, app: Arc<App>) -> std::io::Result<Supervised> {
        let handle = self.engine()?;
        let pool = Pool::new(Arc::clone(&app));
        let view = View::default();
        let (orders, received) = mpsc::channel(APP_MESSAGES_MAX);
        let surroundings = Arc::clone(&self.surroundings);
        let loaded = Arc::<Loaded>::default();
        let (its_pool, its_view, its_loaded) = (Arc::clone(&pool), view.clone(), Arc::clone(&loaded));
        handle.spawn(app::Owner::new(app, its_pool, surroundings, its_view, its_loaded).run(received));
        Ok(Supervised { pool, orders, view, loaded })
    }

    /// The thread is there from the first application on.
    fn engine(&self) -> std::io::Result<Handle> {
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = &*engine {
            return Ok(engine.handle.clone());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let handle = runtime.handle().clone();
        let (close, closed) = oneshot::channel();
        let thread = std::thread::Builder::new().name("supervisor".into()).spawn(move || {
            // Ends as well when whoever could close it is gone.
            let _ = runtime.block_on(closed);
            runtime.shutdown_background();
        })?;
        // Nobody waits for it: without it folders lie around longer.
        let _ = std::thread::Builder::new().name("sweep".into()).spawn(sweep::sweep);
        *engine = Some(Engine { handle: handle.clone(), close, thread });
        Ok(handle)
    }

    fn lock_apps(&self) -> MutexGuard<'_, Vec<Supervised>> {
        self.apps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of each worker: its control lane, two outputs, and two that tell of its end.
const DESCRIPTORS_BESIDE_LANES: usize = 5;

/// Lanes of an application's workers; none where they speak HTTP.
pub(super) fn lanes(app: &App, cores: usize) -> usize {
    if matches!(app.run, AppRun::Handler { .. }) { app::configured(app, cores) * cores } else { 0 }
}

/// Descriptors that an application's workers may take: lanes, outputs and what tells their end, while all are replaced by
/// others.
pub(super) fn descriptors(app: &App, cores: usize) -> usize {
    2 * app::configured(app, cores) * (cores + DESCRIPTORS_BESIDE_LANES)
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // A start that failed, or a server that nobody waited for: its workers have nothing to finish, and
        // the end of the thread drops, and so kills, them.
        let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Engine { close, thread, .. }) = engine {
            let _ = close.send(());
            let _ = thread.join();
        }
        if let Some(unpacking) = &self.surroundings.unpacking {
            unpacking.end();
        }
    }
}

impl Change {
    /// In the order of the wishes.
    pub(super) fn pools(&self) -> Vec<Arc<Pool>> {
        self.apps.iter().map(|app| Arc::clone(&app.pool)).collect()
    }
}

impl Supervised {
    fn stop(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let _ = self.orders.blocking_send(Order::Stop(sender));
        receiver
    }
}

impl Surroundings {
    /// The cores' doors, once they are there.
    async fn doors(&self) -> Option<LaneDoors> {
        let mut doors = self.doors.clone();
        doors.wait_for(Option::is_some).await.ok().and_then(|doors| doors.clone())
    }

    fn say(&self, event: Event) {
        (self.events)(event);
    }

    fn folder(&self) -> Result<&PrivateFolder, String> {
        self.folder.get_or_init(PrivateFolder::create).as_ref().map_err(String::clone)
    }

    /// None where there is to be none, or the system refuses one.
    fn guard(&self) -> Option<&Guard> {
        let start = || {
            let started = Guard::start(self.options.guard.as_ref()?, Arc::clone(&self.events));
            if let Err(error) = &started {
                let message =
                    format!("nothing ends what workers start should this server be killed: {error}");
                self.say(Event::Warning { message });
            }
            started.ok()
        };
        self.guard.get_or_init(start).as_deref()
    }

    /// The pack that this server is.
    fn packed(&self) -> Option<&Packed> {
        self.unpacking.as_ref().map(Unpacking::packed)
    }

    fn next_id(&self) -> WorkerId {
        WorkerId(self.ids.fetch_add(1, Ordering::Relaxed))
    }

    /// From 0 to 1.
    fn chance(&self) -> f64 {
        let number = RandomState::new().hash_one(self.ids.load(Ordering::Relaxed));
        f64::from((number >> 32) as u32) / f64::from(u32::MAX)
    }
}
