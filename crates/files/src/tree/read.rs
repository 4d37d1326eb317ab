//! Reads a tree into a store.
//!
//! Owns the promise that a store is one moment of its tree: the tree is listed, read and listed again
//! until both listings agree; a file that changes while it is read is read again. A file whose stamp is
//! unchanged is not opened; one whose bytes are unchanged keeps its forms. Never keeps a second copy
//! of bytes that an earlier store has, never stores bytes beyond the budget.

use std::collections::HashMap;
use std::fs::File as Opened;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::assemble::{Got, assemble};
use super::compress::may_shrink;
use super::scan::{Found, Tree, modified, scan, stamp};
use super::variants::take_over;
use super::{MemoryBudget, Progress, StoreError, StoreSpec, hash};
use crate::limits::{
    FILE_READS_MAX, READ_ALONE_BYTES_MAX, READ_ALONE_FILES_MAX, READ_THREADS_MAX, STAMP_TICK,
    STAMP_TICK_COARSE, STORED_FILE_BYTES_MAX, TREE_READS_MAX,
};
use crate::store::budget::Held;
use crate::store::{File, Node, Stamp, Store, Variant};
use crate::{content_type, is_hashed_name};

/// Reads a tree. What `previous` holds unchanged is shared with it.
pub fn read(
    spec: &StoreSpec,
    previous: Option<&Store>,
    budget: &MemoryBudget,
    progress: &dyn Progress,
) -> Result<Store, StoreError> {
    let never = AtomicBool::new(false);
    let reading = Reading { spec, replaced: previous, candidate: None, budget, progress, cancelled: &never };
    Ok(reading.run(&mut |_| {})?.store)
}

/// What a read works with.
pub(super) struct Reading<'a> {
    /// What to read.
    pub(super) spec: &'a StoreSpec,
    /// The store that the result will replace.
    pub(super) replaced: Option<&'a Store>,
    /// A store that was read but is held back.
    pub(super) candidate: Option<&'a Store>,
    /// Bytes that may be stored.
    pub(super) budget: &'a MemoryBudget,
    /// Who watches.
    pub(super) progress: &'a dyn Progress,
    /// Give up.
    pub(super) cancelled: &'a AtomicBool,
}

/// What a read brought.
pub(super) struct Outcome {
    /// The store.
    pub(super) store: Store,
    /// The tree stood still while it was read.
    pub(super) settled: bool,
}

impl Reading<'_> {
    /// Reads. `listed` hears of every listing before anything of it is read: changes to what it then
    /// watches are seen either by the watch or by the second listing.
    pub(super) fn run(&self, listed: &mut dyn FnMut(&Tree)) -> Result<Outcome, StoreError> {
        let mut fresh = Fresh::default();
        let mut tree = scan(self.spec)?;
        for round in 1.. {
            listed(&tree);
            let files = self.files(&tree, &fresh)?;
            let again = scan(self.spec)?;
            let settled =
                again.same(&tree) && files.iter().zip(&tree.files).all(|(got, found)| got.is(found));
            if settled || round == TREE_READS_MAX {
                return Ok(Outcome { store: assemble(self.spec, tree, files), settled });
            }
            for got in files {
                if let Got::Ready(file, _) = got {
                    fresh.insert(file.path.clone(), file);
                }
            }
            tree = again;
        }
        Err(StoreError::Cancelled)
    }

    /// Every file of a listing, in its order.
    fn files(&self, tree: &Tree, fresh: &Fresh) -> Result<Vec<Got>, StoreError> {
        let mut files: Vec<Got> = tree.files.iter().map(|found| self.unchanged(found, fresh)).collect();
        let mut wanted: Vec<usize> = (0..files.len()).filter(|n| matches!(files[*n], Got::Gone)).collect();
        let bytes = wanted.iter().map(|number| tree.files[*number].stamp.length).sum();
        self.progress.found(wanted.len(), bytes);
        // The smallest come first: they gain most from memory, and get it while there is some.
        wanted.sort_by_key(|number| tree.files[*number].stamp.length);
        let returning = self.returning(&files);
        let mut reads = Vec::with_capacity(wanted.len());
        for number in wanted {
            let found = &tree.files[number];
            let held = self.hold(found.stamp.length, returning);
            let earlier = fresh.get(&found.path).into_iter().chain(self.earlier(&found.path));
            match earlier.into_iter().find(|file| held.is_none() && file.stamp == found.stamp) {
                Some(on_disk) => files[number] = Got::Ready(Arc::clone(on_disk), found.stamp),
                None => reads.push(Wanted { number, found, held, returning }),
            }
        }
        for (number, got) in self.read_all(tree, &reads, bytes)? {
            files[number] = got;
        }
        Ok(files)
    }

    /// The file as an earlier store has it in memory, if it is the same.
    fn unchanged(&self, found: &Found, fresh: &Fresh) -> Got {
        let earlier = fresh.get(&found.path).into_iter().chain(self.earlier(&found.path));
        match earlier.into_iter().find(|file| file.identity.is_some() && file.stamp == found.stamp) {
            Some(file) => Got::Ready(Arc::clone(file), found.stamp),
            None => Got::Gone,
        }
    }

    /// Files at the same path in earlier stores, the newest first.
    fn earlier(&self, path: &[u8]) -> impl Iterator<Item = &Arc<File>> {
        [self.candidate, self.replaced].into_iter().flatten().filter_map(|store| match store.get(path) {
            Some(Node::File(number)) => store.file(number),
            _ => None,
        })
    }

    /// Bytes that come back once the store that is replaced is gone.
    fn returning(&self, files: &[Got]) -> u64 {
        let Some(replaced) = self.replaced else { return 0 };
        let shared: u64 = files
            .iter()
            .filter_map(|got| match got {
                Got::Ready(file, _) => Some(held_bytes(file)),
                _ => None,
            })
            .sum();
        (replaced.totals.stored_bytes + replaced.totals.compressed_bytes).saturating_sub(shared)
    }

    fn hold(&self, length: u64, returning: u64) -> Option<Arc<Held>> {
        if length > STORED_FILE_BYTES_MAX {
            return None;
        }
        self.budget.take(length, returning)
    }

    fn read_all(&self, tree: &Tree, wanted: &[Wanted], bytes: u64) -> Result<Vec<(usize, Got)>, StoreError> {
        let alone = wanted.len() <= READ_ALONE_FILES_MAX && bytes <= READ_ALONE_BYTES_MAX;
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = if alone { 1 } else { cores.min(READ_THREADS_MAX) };
        let count = Count::default();
        let work = || {
            let mut results = Vec::new();
            while let Some(wanted) = wanted.get(count.next.fetch_add(1, Ordering::Relaxed)) {
                if self.cancelled.load(Ordering::Relaxed) {
                    return Err(StoreError::Cancelled);
                }
                results.push((wanted.number, self.read_file(&tree.place(wanted.found), wanted)?));
                let done = count.done.fetch_add(1, Ordering::Relaxed) + 1;
                let length = wanted.found.stamp.length;
                self.progress.files(done, count.bytes.fetch_add(length, Ordering::Relaxed) + length);
            }
            Ok(results)
        };
        thread::scope(|scope| {
            // What one that cannot be started would have done is done by the others.
            let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
            let others: Vec<_> = (1..threads).filter_map(start).collect();
            let mut results = work()?;
            for other in others {
                match other.join() {
                    Ok(more) => results.extend(more?),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(results)
        })
    }

    /// Reads one file until it stands still for as long as that takes.
    fn read_file(&self, place: &Path, wanted: &Wanted) -> Result<Got, StoreError> {
        let mut last = wanted.found.stamp;
        for _ in 0..FILE_READS_MAX {
            let unreadable = |source| StoreError::Unreadable { path: place.to_path_buf(), source };
            let file = match open(place) {
                Ok(file) => file,
                Err(error) => return refused(error).map_err(unreadable),
            };
            let found = file.metadata().map_err(unreadable)?;
            if !found.is_file() {
                return Ok(Got::Gone);
            }
            let before = stamp(&found);
            let held = match &wanted.held {
                held if before.length == wanted.found.stamp.length => held.clone(),
                _ => self.hold(before.length, wanted.returning),
            };
            let Some(held) = held else {
                return Ok(Got::Ready(Arc::new(on_disk(wanted.found, before)), before));
            };
            last = before;
            let bytes = match exactly(&file, before.length) {
                Ok(bytes) => bytes,
                Err(error) => return refused(error).map_err(unreadable),
            };
            let after = file.metadata().map_err(unreadable)?;
            if let Some(bytes) = bytes.filter(|_| stamp(&after) == before) {
                return Ok(Got::Ready(self.file(wanted.found, before, bytes, held), before));
            }
        }
        Ok(Got::Ready(Arc::new(on_disk(wanted.found, last)), last))
    }

    /// A file in memory. Where an earlier store has the same bytes, its forms are taken.
    fn file(&self, found: &Found, stamp: Stamp, bytes: Arc<[u8]>, held: Arc<Held>) -> Arc<File> {
        let hash = hash::of_bytes(&bytes);
        let mut file = File { hash, stamp: trusted(stamp), ..on_disk(found, stamp) };
        file.settled = !may_shrink(self.spec, &file);
        let same = self.earlier(&found.path).find(|earlier| {
            earlier.hash == hash && earlier.length == stamp.length && earlier.identity.is_some()
        });
        match same {
            Some(earlier) => take_over(&mut file, earlier),
            None => {
                let form = Variant::new(bytes, None, &file.content_type, file.modified, hash);
                file.identity = Some(form.holding(held));
            }
        }
        Arc::new(file)
    }
}

type Fresh = HashMap<Box<[u8]>, Arc<File>>;

struct Wanted<'a> {
    number: usize,
    found: &'a Found,
    held: Option<Arc<Held>>,
    returning: u64,
}

#[derive(Default)]
struct Count {
    next: AtomicUsize,
    done: AtomicUsize,
    bytes: AtomicU64,
}

/// Opens for reading: no link in the last place, no waiting for a pipe's other end.
fn open(place: &Path) -> io::Result<Opened> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(Opened::from(rustix::fs::open(place, flags, Mode::empty())?))
}

/// All bytes of a file that should be this long, in memory of exactly that size; `None` if it is not.
fn exactly(mut file: &Opened, length: u64) -> io::Result<Option<Arc<[u8]>>> {
    let Ok(length) = usize::try_from(length) else { return Ok(None) };
    let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, length).collect();
    // Nobody else has it yet.
    let Some(space) = Arc::get_mut(&mut bytes) else { return Ok(None) };
    match file.read_exact(space) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let grown = file.read(&mut [0])? != 0;
    Ok((!grown).then_some(bytes))
}

/// What it means for the tree that a file cannot be read. Only what is wrong with this one file is
/// passed over; want of descriptors or memory would silently leave out all the others too.
fn refused(error: io::Error) -> io::Result<Got> {
    match Errno::from_io_error(&error) {
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO | Errno::NODEV) => Ok(Got::Gone),
        Some(Errno::ACCESS | Errno::PERM | Errno::IO) => Ok(Got::Unreadable),
        _ => Err(error),
    }
}

/// A file that is left where it is.
fn on_disk(found: &Found, stamp: Stamp) -> File {
    File {
        path: found.path.clone(),
        content_type: content_type(&found.path).into(),
        modified: modified(&stamp),
        length: stamp.length,
        hash: hash::of_stamp(&stamp),
        identity: None,
        gzip: None,
        brotli: None,
        zstd: None,
        hashed_name: is_hashed_name(&found.path),
        stamp,
        settled: true,
        packed: None,
    }
}

/// The stamp to compare with next time. A change within the same tick of the kernel's clock would leave
/// it as it is, so one that is too young is made to fit nothing.
fn trusted(stamp: Stamp) -> Stamp {
    let (seconds, nanoseconds) = stamp.changed;
    let tick = if nanoseconds == 0 { STAMP_TICK_COARSE } else { STAMP_TICK };
    let changed = u64::try_from(seconds)
        .ok()
        .and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds)));
    let age = changed.and_then(|changed| SystemTime::now().duration_since(changed).ok());
    match age {
        Some(age) if age > tick => stamp,
        _ => Stamp { changed: (i64::MIN, 0), ..stamp },
    }
}

/// Bytes that a file holds in memory.
pub(super) fn held_bytes(file: &File) -> u64 {
    [&file.identity, &file.gzip, &file.brotli, &file.zstd]
        .into_iter()
        .flatten()
        .map(|form| form.bytes.len() as u64)
        .sum()
}
