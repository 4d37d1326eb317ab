//! Prepares a tree for a pack: what the server would serve of it, with every compressed form that is worth keeping.
//!
//! Owns the promise that the same files give the same bytes: forms are made by the code that the server runs, and no
//! thread's share depends on another's. Never writes, and holds no file above the bound in memory: a larger one is
//! told with its hash, and is read from its place by whoever packs it.

use std::fs::File as Opened;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use onehop_config::checked::Encoding;
use xxhash_rust::xxh3::Xxh3;

use super::assemble::totals;
use super::compress::in_order;
use super::read::Reading;
use super::variants::compressed;
use super::{MemoryBudget, Progress, StoreError, StoreSpec};
use crate::limits::{HOLD_BACK_MAX, PREPARED_BYTES_MAX};
use crate::store::{File, Skipped, Store, Variant};

/// A tree that is ready to be packed.
#[derive(Debug)]
pub struct Prepared {
    /// What is served. A file without its bytes is too large for memory: it lies at [`Prepared::place`], and its hash
    /// is that of its content.
    pub store: Store,
    /// What was left out.
    pub skipped: Skipped,
    /// Nothing of the tree changed while it was read.
    pub settled: bool,
}

impl Prepared {
    /// Where a file lies.
    pub fn place(&self, file: &File) -> PathBuf {
        self.store.resolved_root.join(std::ffi::OsStr::from_bytes(&file.path))
    }
}

/// Reads a tree as the server does and makes its compressed forms. Blocks until all are there.
///
/// # Errors
///
/// The tree cannot be read.
pub fn prepare(
    root: &Path,
    dotfiles: bool,
    follow_outside: bool,
    encodings: &[Encoding],
    progress: &dyn Progress,
) -> Result<Prepared, StoreError> {
    let spec = StoreSpec {
        root: root.to_path_buf(),
        dotfiles,
        follow_outside,
        absent: vec![],
        compress: encodings.to_vec(),
        index: None,
        keep_releases: 0,
        hold_back: HOLD_BACK_MAX,
    };
    // Files take of it in the order of their size, so that the same tree always leaves out the same ones.
    let budget = MemoryBudget::new(PREPARED_BYTES_MAX);
    let cancelled = AtomicBool::new(false);
    let reading = Reading {
        spec: &spec,
        replaced: None,
        candidate: None,
        budget: &budget,
        progress,
        cancelled: &cancelled,
    };
    let outcome = reading.run(&mut |_| {})?;
    let mut prepared =
        Prepared { skipped: outcome.store.skipped.clone(), store: outcome.store, settled: outcome.settled };
    make_forms(&mut prepared.store, &spec, progress);
    for number in 0..prepared.store.files.len() {
        let Some(file) = prepared.store.files.get(number).filter(|file| file.identity.is_none()) else {
            continue;
        };
        let path = prepared.place(file);
        let hash = hash_of(&path).map_err(|source| StoreError::Unreadable { path, source })?;
        if let Some(file) = prepared.store.files.get_mut(number) {
            Arc::make_mut(file).hash = hash;
        }
    }
    prepared.store.totals = totals(&prepared.store.files);
    Ok(prepared)
}

/// Gives each file its forms, on as many threads as there are cores.
fn make_forms(store: &mut Store, spec: &StoreSpec, progress: &dyn Progress) {
    let jobs = in_order(store, spec);
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let made = Mutex::new(Vec::with_capacity(jobs.len()));
    let files = &store.files;
    let work = || {
        // The longest first: the last ones are then done at about the same time.
        while let Some(number) = jobs.iter().rev().nth(next.fetch_add(1, Ordering::Relaxed)) {
            let Some(file) = files.get(*number as usize) else { continue };
            let settled = with_forms(file, &spec.compress);
            made.lock().unwrap_or_else(PoisonError::into_inner).push((*number, settled));
            progress.forms(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
        }
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 1..cores.min(jobs.len()) {
            // What one that cannot be started would have done is done by the others.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    for (number, file) in made.into_inner().unwrap_or_else(PoisonError::into_inner) {
        if let Some(place) = store.files.get_mut(number as usize) {
            *place = file;
        }
    }
}

fn with_forms(file: &File, encodings: &[Encoding]) -> Arc<File> {
    let never = AtomicBool::new(false);
    let form = |encoding| {
        let identity = file.identity.as_ref().filter(|_| encodings.contains(&encoding))?;
        let bytes = compressed(&identity.bytes, encoding, &never)?;
        Some(Variant::new(bytes.into(), Some(encoding), &file.content_type, file.modified, file.hash))
    };
    let (gzip, zstd, brotli) = (form(Encoding::Gzip), form(Encoding::Zstd), form(Encoding::Brotli));
    Arc::new(File { gzip, brotli, zstd, settled: true, ..file.clone() })
}

/// Bytes of one read of a file that is hashed: larger ones need no fewer system calls that would count.
const HASH_READ_BYTES: usize = 64 * 1024;

/// The hash of a content that is read piece by piece; equal to that of the content as a whole.
fn hash_of(path: &Path) -> io::Result<u128> {
    let mut file = Opened::open(path)?;
    let mut hasher = Xxh3::new();
    let mut piece = vec![0; HASH_READ_BYTES];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(hasher.digest128()),
            Ok(read) => hasher.update(piece.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
