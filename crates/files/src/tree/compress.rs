//! Compresses a store in the background.
//!
//! Owns the order (what a first visit needs comes first), the threads and the batches in which results
//! are published. Never keeps a request or a publication of changed files waiting: it works on copies
//! of a published store, at low priority, and stops when it is told to. Each thread has its forms made by
//! a process of its own (`compressor_process.rs`); a file on which that process is lost is served as it is.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use onehop_config::checked::Encoding;

use super::assemble::totals;
use super::compressor_process::{CompressorPool, Worker};
use super::events::KeeperEvent;
use super::{MemoryBudget, StoreSpec};
use crate::is_compressible;
use crate::limits::{
    COMPRESS_ALONE_BYTES_MIN, COMPRESS_BATCH_PERIOD, COMPRESS_BYTES_MIN, COMPRESSOR_LOSSES_MAX,
};
use crate::store::{File, Store, Variant};

/// What is compressed, by whom.
pub(super) struct Compression<'a> {
    /// A published store.
    pub(super) store: &'a Arc<Store>,
    /// Its forms.
    pub(super) spec: &'a StoreSpec,
    /// Bytes that may be stored.
    pub(super) budget: &'a MemoryBudget,
    /// Who makes them.
    pub(super) compressors: &'a CompressorPool,
    /// Files at one time.
    pub(super) threads: usize,
    /// Give up.
    pub(super) cancelled: &'a AtomicBool,
}

/// Makes the compressed forms that are still to be made, and publishes them in batches and at the end.
/// Publishes nothing when there is nothing to do or after it was cancelled. Blocks until it is done.
pub(super) fn compress(wanted: &Compression<'_>, publish: &mut dyn FnMut(Arc<Store>)) {
    let jobs = in_order(wanted.store, wanted.spec);
    if jobs.is_empty() {
        return;
    }
    let threads = wanted.threads.clamp(1, jobs.len());
    let (next, lost, alone) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(()));
    let jobs = Jobs { wanted, jobs, next, lost, alone };
    let (results, finished) = sync_channel(RESULTS_MAX);
    thread::scope(|scope| {
        for _ in 0..threads {
            let (jobs, results) = (&jobs, results.clone());
            // Where none can be started, files stay as they are until the next change.
            let _ = thread::Builder::new().spawn_scoped(scope, move || jobs.work(&results));
        }
        drop(results);
        gather(wanted, &finished, publish);
    });
}

/// Whether a file is worth compressing at all.
pub(super) fn may_shrink(spec: &StoreSpec, file: &File) -> bool {
    !spec.compress.is_empty()
        && file.length >= COMPRESS_BYTES_MIN as u64
        && is_compressible(&file.content_type)
}

/// Results that wait to be published; a worker that is ahead of that waits.
const RESULTS_MAX: usize = 64;

/// How nice compression is to everything else on the machine (setpriority(2)).
const NICENESS: i32 = 10;

/// Building a batch may take this share of the time, so that a huge store does not do little else.
const BATCH_SHARE: u32 = 10;

struct Jobs<'a> {
    wanted: &'a Compression<'a>,
    /// Numbers of files.
    jobs: Vec<u32>,
    next: AtomicUsize,
    /// Processes that were lost.
    lost: AtomicUsize,
    /// Held while a large file is worked on, so that the large workspaces exist once.
    alone: Mutex<()>,
}

impl Jobs<'_> {
    fn work(&self, results: &SyncSender<(u32, Arc<File>)>) {
        // A thread that may not be nicer works all the same.
        let _ = rustix::process::setpriority_process(None, NICENESS);
        let Compression { store, compressors, cancelled, .. } = self.wanted;
        let mut worker = compressors.worker(cancelled);
        while let Some(number) = self.jobs.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            // What is left then stays unsettled, and is tried again when the tree changes.
            if self.lost.load(Ordering::Relaxed) > COMPRESSOR_LOSSES_MAX {
                return;
            }
            let file = store.file(*number).and_then(|file| self.settle(file, &mut worker));
            let Some(file) = file else { continue };
            if cancelled.load(Ordering::Relaxed) || results.send((*number, file)).is_err() {
                return;
            }
        }
    }

    /// The file with its compressed forms.
    fn settle(&self, file: &File, worker: &mut Worker<'_>) -> Option<Arc<File>> {
        let identity = file.identity.clone()?;
        let large = identity.bytes.len() >= COMPRESS_ALONE_BYTES_MIN;
        // The lock guards no data: a panic of its holder leaves nothing broken.
        let _turn = large.then(|| self.alone.lock().unwrap_or_else(PoisonError::into_inner));
        let mut is_lost = false;
        let mut form = |encoding: Encoding, present: &Option<Variant>| {
            if is_lost || present.is_some() || !self.wanted.spec.compress.contains(&encoding) {
                return present.clone();
            }
            let bytes = worker.form(&identity.bytes, encoding).unwrap_or_else(|reason| {
                // The same bytes would probably end the next process, too.
                is_lost = true;
                self.lose(file, reason);
                None
            })?;
            let held = self.wanted.budget.take(bytes.len() as u64, 0)?;
            let form = Variant::new(bytes, Some(encoding), &file.content_type, file.modified, file.hash);
            Some(form.holding(held))
        };
        let gzip = form(Encoding::Gzip, &file.gzip);
        let zstd = form(Encoding::Zstd, &file.zstd);
        let brotli = form(Encoding::Brotli, &file.brotli);
        if large {
            // While it is the only one: a process keeps the workspaces that it has had.
            worker.let_go();
        }
        Some(Arc::new(File { gzip, brotli, zstd, settled: true, ..file.clone() }))
    }

    fn lose(&self, file: &File, reason: String) {
        let goes_on = self.lost.fetch_add(1, Ordering::Relaxed) < COMPRESSOR_LOSSES_MAX;
        let path = String::from_utf8_lossy(&file.path).into_owned();
        self.wanted.compressors.tell(KeeperEvent::CompressorLost { path, reason, goes_on });
    }
}

/// Publishes results as they come, in batches.
fn gather(
    wanted: &Compression<'_>,
    finished: &Receiver<(u32, Arc<File>)>,
    publish: &mut dyn FnMut(Arc<Store>),
) {
    let mut latest = Arc::clone(wanted.store);
    let mut pending = Vec::new();
    let mut due = Instant::now() + COMPRESS_BATCH_PERIOD;
    loop {
        let wait =
            if pending.is_empty() { Duration::MAX } else { due.saturating_duration_since(Instant::now()) };
        let ended = match finished.recv_timeout(wait) {
            Ok(result) => {
                pending.push(result);
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        if wanted.cancelled.load(Ordering::Relaxed) {
            return;
        }
        if !pending.is_empty() && (ended || Instant::now() >= due) {
            let begun = Instant::now();
            latest = Arc::new(with(&latest, pending.drain(..)));
            publish(Arc::clone(&latest));
            due = Instant::now() + COMPRESS_BATCH_PERIOD.max(begun.elapsed() * BATCH_SHARE);
        }
        if ended {
            return;
        }
    }
}

fn with(store: &Store, files: impl Iterator<Item = (u32, Arc<File>)>) -> Store {
    let mut next = store.clone();
    for (number, file) in files {
        if let Some(place) = next.files.get_mut(number as usize) {
            *place = file;
        }
    }
    next.totals = totals(&next.files);
    next
}

/// Files still to be compressed: what a page needs first, and of that the smallest.
pub(super) fn in_order(store: &Store, spec: &StoreSpec) -> Vec<u32> {
    let unsettled = |file: &File| !file.settled && file.identity.is_some();
    let mut jobs: Vec<u32> = (0..).zip(&store.files).filter(|(_, f)| unsettled(f)).map(|(n, _)| n).collect();
    jobs.sort_by_cached_key(|number| {
        let Some(file) = store.file(*number) else { return (u8::MAX, 0) };
        let kind = &*file.content_type;
        let class = match () {
            () if spec
                .index
                .as_ref()
                .is_some_and(|index| index.trim_matches('/').as_bytes() == &*file.path) =>
            {
                0
            }
            () if kind.starts_with("text/html") => 1,
            () if kind.contains("javascript") || kind.starts_with("text/css") => 2,
            () => 3,
        };
        (class, file.length)
    });
    jobs
}
