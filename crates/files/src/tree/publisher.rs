//! The store that is served now, and the thread that compresses it.
//!
//! Owns the order of publications: both a changed tree and newly compressed files pass through one
//! lock, and a store that is superseded is never published after the one that superseded it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::assemble::totals;
use super::compress::{Compression, compress};
use super::compressor_process::{CompressorPool, CompressorProgram};
use super::events::{Events, KeeperEvent, Publish};
use super::releases::Releases;
use super::stop::Stop;
use super::variants::take_over;
use super::{MemoryBudget, StoreSpec};
use crate::limits::COMPRESS_THREADS_MAX;
use crate::store::{File, Node, Store};

/// The latest store.
pub(super) struct StorePublisher {
    published: Arc<Published>,
    stop: Arc<Stop>,
    /// The last compression that was begun.
    background: Option<Background>,
    /// What is kept of earlier builds.
    releases: Releases,
}

struct Published {
    latest: Mutex<Arc<Store>>,
    publish: Publish,
    events: Events,
    compressors: CompressorPool,
}

struct Background {
    cancelled: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl StorePublisher {
    pub(super) fn new(
        first: Arc<Store>,
        publish: Publish,
        events: Events,
        stop: Arc<Stop>,
        compressor: Option<CompressorProgram>,
    ) -> Self {
        let compressors = CompressorPool::new(compressor, Arc::clone(&events));
        let published = Arc::new(Published { latest: Mutex::new(first), publish, events, compressors });
        Self { published, stop, background: None, releases: Releases::default() }
    }

    pub(super) fn latest(&self) -> Arc<Store> {
        Arc::clone(&self.published.lock())
    }

    pub(super) fn stop(&self) -> &Stop {
        &self.stop
    }

    /// How many files of a store are new or different in it, or gone.
    pub(super) fn changed(&self, store: &Store) -> usize {
        changed(store, &self.published.lock())
    }

    /// Publishes the store of a changed tree; returns how many files are new, different or gone, or
    /// `None` if nothing is.
    pub(super) fn publish(
        &mut self,
        mut store: Store,
        spec: &StoreSpec,
        budget: &MemoryBudget,
    ) -> Option<usize> {
        let mut latest = self.published.lock();
        adopt(&mut store, &latest);
        if same(&store, &latest) {
            return None;
        }
        // Under the lock, where compression asks before it publishes; and only now, because nobody
        // begins it again for a tree that is the same.
        if let Some(background) = &self.background {
            background.cancelled.store(true, Ordering::Release);
        }
        let changed = changed(&store, &latest);
        self.releases.replace(&latest, &mut store, spec.keep_releases, budget, Instant::now());
        *latest = Arc::new(store);
        (self.published.publish)(Arc::clone(&latest));
        Some(changed)
    }

    /// When something that is kept of earlier builds is too old.
    pub(super) fn releases_due(&self) -> Option<Instant> {
        self.releases.due()
    }

    /// Stops serving what is kept of earlier builds and too old.
    pub(super) fn drop_old_releases(&mut self) {
        if self.releases.drop_old(Instant::now()) {
            let mut latest = self.published.lock();
            *latest = Arc::new(Store { kept: self.releases.files(), ..Store::clone(&latest) });
            (self.published.publish)(Arc::clone(&latest));
        }
    }

    /// Begins to compress the latest store. What is still being compressed of an earlier one ends
    /// first, so that its memory is not needed twice.
    pub(super) fn compress(&mut self, spec: &StoreSpec, budget: &MemoryBudget) {
        let before = self.background.take();
        if let Some(before) = &before {
            before.cancelled.store(true, Ordering::Release);
        }
        let cancelled = Arc::new(AtomicBool::new(false));
        let (spec, budget) = (spec.clone(), budget.clone());
        let (published, stop, flag) =
            (Arc::clone(&self.published), Arc::clone(&self.stop), Arc::clone(&cancelled));
        let run = move || {
            if let Some(before) = before {
                let _ = before.thread.join();
            }
            if !stop.stopped() {
                published.compress(&spec, &budget, &flag);
            }
        };
        // Without a thread nothing is compressed, and the files are served as they are.
        let thread = thread::Builder::new().name("store-compress".into()).spawn(run);
        self.background = thread.ok().map(|thread| Background { cancelled, thread });
    }
}

impl Drop for StorePublisher {
    fn drop(&mut self) {
        if let Some(background) = self.background.take() {
            background.cancelled.store(true, Ordering::Release);
            let _ = background.thread.join();
        }
    }
}

impl Published {
    fn lock(&self) -> MutexGuard<'_, Arc<Store>> {
        // A panic of `publish` leaves the latest store behind, which is whole.
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn compress(&self, spec: &StoreSpec, budget: &MemoryBudget, cancelled: &AtomicBool) {
        let begun = Instant::now();
        let first = Arc::clone(&self.lock());
        let threads = thread::available_parallelism().map_or(1, usize::from).min(COMPRESS_THREADS_MAX);
        let mut bytes = None;
        let wanted =
            Compression { store: &first, spec, budget, compressors: &self.compressors, threads, cancelled };
        compress(&wanted, &mut |store| {
            let mut latest = self.lock();
            // Under the lock, in which a store is also superseded.
            if !cancelled.load(Ordering::Acquire) {
                bytes = Some(store.totals.compressed_bytes);
                // What was kept when this store was read may be too old since.
                let store = match Arc::ptr_eq(&store.kept, &latest.kept) {
                    true => store,
                    false => Arc::new(Store { kept: Arc::clone(&latest.kept), ..Store::clone(&store) }),
                };
                *latest = Arc::clone(&store);
                (self.publish)(store);
            }
        });
        if let Some(bytes) = bytes.filter(|_| !cancelled.load(Ordering::Acquire)) {
            (self.events)(KeeperEvent::Compressed { bytes, took: begun.elapsed() });
        }
    }
}

/// Takes over forms that were made since the store was read.
fn adopt(store: &mut Store, latest: &Store) {
    let mut adopted = false;
    for file in &mut store.files {
        if file.settled {
            continue;
        }
        if let Some(known) = at(latest, &file.path)
            && known.settled
            && known.hash == file.hash
            && known.identity.is_some()
        {
            take_over(Arc::make_mut(file), known);
            adopted = true;
        }
    }
    if adopted {
        store.totals = totals(&store.files);
    }
}

fn at<'a>(store: &'a Store, path: &[u8]) -> Option<&'a Arc<File>> {
    match store.get(path) {
        Some(Node::File(number)) => store.file(number),
        _ => None,
    }
}

fn same(a: &Store, b: &Store) -> bool {
    a.resolved_root == b.resolved_root
        && a.files.len() == b.files.len()
        && a.folders.len() == b.folders.len()
        && a.files.iter().zip(&b.files).all(|(a, b)| Arc::ptr_eq(a, b))
        && a.folders.iter().zip(&b.folders).all(|(a, b)| a.path == b.path)
}

fn changed(new: &Store, old: &Store) -> usize {
    let differs = |file: &&Arc<File>| at(old, &file.path).is_none_or(|known| known.hash != file.hash);
    let gone = |file: &&Arc<File>| at(new, &file.path).is_none();
    new.files.iter().filter(differs).count() + old.files.iter().filter(gone).count()
}
