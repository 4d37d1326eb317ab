//! Compresses a store in the background.
//!
//! Owns the order (what a first visit needs comes first), the threads and the batches in which results
//! are published. Never keeps a request or a publication of changed files waiting: it works on copies
//! of a published store, at low priority, and stops when it is told to.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use onehop_config::checked::Encoding;

use super::assemble::totals;
use super::forms::compressed;
use super::{MemoryBudget, StoreSpec};
use crate::limits::{COMPRESS_ALONE_BYTES_MIN, COMPRESS_BATCH_PERIOD, COMPRESS_BYTES_MIN};
use crate::request::handle::files::is_compressible;
use crate::request::handle::files::store::{File, Form, Store};

/// Makes the compressed forms that are still to be made, and publishes them in batches and at the end.
/// Publishes nothing when there is nothing to do or after it was cancelled. Blocks until it is done.
pub fn compress(
    store: &Arc<Store>,
    spec: &StoreSpec,
    budget: &MemoryBudget,
    threads: usize,
    cancelled: &AtomicBool,
    publish: &mut dyn FnMut(Arc<Store>),
) {
    let jobs = in_order(store, spec);
    if jobs.is_empty() {
        return;
    }
    let threads = threads.clamp(1, jobs.len());
    let workshop =
        Workshop { store, spec, budget, cancelled, jobs, next: AtomicUsize::new(0), alone: Mutex::new(()) };
    let (results, finished) = sync_channel(RESULTS_MAX);
    thread::scope(|scope| {
        for _ in 0..threads {
            let (workshop, results) = (&workshop, results.clone());
            scope.spawn(move || workshop.work(&results));
        }
        drop(results);
        gather(store, &finished, cancelled, publish);
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

struct Workshop<'a> {
    store: &'a Store,
    spec: &'a StoreSpec,
    budget: &'a MemoryBudget,
    cancelled: &'a AtomicBool,
    /// Numbers of files.
    jobs: Vec<u32>,
    next: AtomicUsize,
    /// Held while a large file is worked on, so that the large workspaces exist once.
    alone: Mutex<()>,
}

impl Workshop<'_> {
    fn work(&self, results: &SyncSender<(u32, Arc<File>)>) {
        // A thread that may not be nicer works all the same.
        let _ = rustix::process::setpriority_process(None, NICENESS);
        while let Some(number) = self.jobs.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let Some(file) = self.store.file(*number).and_then(|file| self.settle(file)) else { continue };
            if self.cancelled.load(Ordering::Relaxed) || results.send((*number, file)).is_err() {
                return;
            }
        }
    }

    /// The file with its compressed forms.
    fn settle(&self, file: &File) -> Option<Arc<File>> {
        let identity = file.identity.clone()?;
        let large = identity.bytes.len() >= COMPRESS_ALONE_BYTES_MIN;
        // The lock guards no data: a panic of its holder leaves nothing broken.
        let _turn = large.then(|| self.alone.lock().unwrap_or_else(PoisonError::into_inner));
        let form = |encoding: Encoding, present: &Option<Form>| {
            if present.is_some() || !self.spec.compress.contains(&encoding) {
                return present.clone();
            }
            let bytes = compressed(&identity.bytes, encoding, self.cancelled)?;
            let held = self.budget.take(bytes.len() as u64, 0)?;
            let form = Form::new(bytes.into(), Some(encoding), &file.content_type, file.modified, file.hash);
            Some(form.holding(held))
        };
        let gzip = form(Encoding::Gzip, &file.gzip);
        let zstd = form(Encoding::Zstd, &file.zstd);
        let brotli = form(Encoding::Brotli, &file.brotli);
        Some(Arc::new(File { gzip, brotli, zstd, settled: true, ..file.clone() }))
    }
}

/// Publishes results as they come, in batches.
fn gather(
    store: &Arc<Store>,
    finished: &Receiver<(u32, Arc<File>)>,
    cancelled: &AtomicBool,
    publish: &mut dyn FnMut(Arc<Store>),
) {
    let mut latest = Arc::clone(store);
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
        if cancelled.load(Ordering::Relaxed) {
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
