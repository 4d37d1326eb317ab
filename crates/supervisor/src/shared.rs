//! What the tasks of all applications share.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use onehop_archive::installed::Packed;
use onehop_workers::Windows;
use onehop_workers::{Worker, WorkerId};
use tokio::sync::watch;

use crate::events::{AppEvent, AppEventSink};
use crate::folder::PrivateFolder;
use crate::guard::Guard;
use crate::options::SuperviseOptions;
use crate::port::Ports;
use crate::unpacked::Unpacking;

/// Hands a worker's sockets to the cores, one to each in their order. Each core reports to the worker when it has its
/// socket. The future ends once all are on their way.
pub type Attach =
    Arc<dyn Fn(Arc<Worker>, Vec<UnixStream>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// What the tasks of all applications share.
pub(crate) struct Shared {
    pub(crate) options: SuperviseOptions,
    /// Unpacks what workers need before they start.
    pub(crate) unpacking: Option<Arc<Unpacking>>,
    pub(crate) cores: usize,
    pub(crate) windows: Windows,
    pub(crate) events: AppEventSink,
    pub(crate) ports: Ports,
    attach: watch::Receiver<Option<Attach>>,
    folder: OnceLock<Result<PrivateFolder, String>>,
    guard: OnceLock<Option<Arc<Guard>>>,
    ids: AtomicU64,
}

impl Shared {
    pub(crate) fn new(
        options: SuperviseOptions,
        packed: Option<Arc<Packed>>,
        cores: usize,
        windows: Windows,
        events: AppEventSink,
        attach: watch::Receiver<Option<Attach>>,
    ) -> Self {
        Self {
            options,
            unpacking: packed.map(|packed| Unpacking::new(packed, Arc::clone(&events))),
            cores,
            windows,
            events,
            ports: Ports::default(),
            attach,
            folder: OnceLock::new(),
            guard: OnceLock::new(),
            ids: AtomicU64::new(1),
        }
    }

    /// Waits until the cores run. `None` only where the server does not start after all.
    pub(crate) async fn attach(&self) -> Option<Attach> {
        let mut attach = self.attach.clone();
        attach.wait_for(Option::is_some).await.ok().and_then(|attach| attach.clone())
    }

    pub(crate) fn report(&self, event: AppEvent) {
        (self.events)(event);
    }

    /// The folder of this server's sockets. It is made with the first use.
    pub(crate) fn folder(&self) -> Result<&PrivateFolder, String> {
        self.folder.get_or_init(PrivateFolder::create).as_ref().map_err(String::clone)
    }

    /// Removes the folder: the process may end without dropping this.
    pub(crate) fn remove_folder(&self) {
        if let Some(Ok(folder)) = self.folder.get() {
            folder.remove();
        }
    }

    /// The guard, started with the first use. `None` where the options name none, or the system refuses one.
    pub(crate) fn guard(&self) -> Option<&Guard> {
        let start = || {
            let started = Guard::start(self.options.guard.as_ref()?, Arc::clone(&self.events));
            if let Err(error) = &started {
                let message =
                    format!("nothing ends what workers start should this server be killed: {error}");
                self.report(AppEvent::Warning { message });
            }
            started.ok()
        };
        self.guard.get_or_init(start).as_deref()
    }

    pub(crate) fn end_guard(&self) {
        if let Some(Some(guard)) = self.guard.get() {
            guard.end();
        }
    }

    pub(crate) fn end_unpacking(&self) {
        if let Some(unpacking) = &self.unpacking {
            unpacking.end();
        }
    }

    /// The pack that this server is.
    pub(crate) fn packed(&self) -> Option<&Packed> {
        self.unpacking.as_ref().map(|unpacking| unpacking.packed())
    }

    pub(crate) fn next_id(&self) -> WorkerId {
        WorkerId(self.ids.fetch_add(1, Ordering::Relaxed))
    }

    /// A random number from 0 to 1.
    pub(crate) fn random(&self) -> f64 {
        let number = RandomState::new().hash_one(self.ids.load(Ordering::Relaxed));
        f64::from((number >> 32) as u32) / f64::from(u32::MAX)
    }
}
