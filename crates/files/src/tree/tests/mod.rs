//! Stores of real folders.

mod compressing;
mod keeping;
mod packed;
mod preparing;
mod reading;
mod rebuilds;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use onehop_config::checked::Encoding;

use super::stop::Stop;
use super::watcher::TreeWatcher;
use super::{Events, Keeper, KeeperEvent, MemoryBudget, Silent, StoreError, StoreSpec, read};
use crate::store::{File, Node, Store};

/// More than any wait needs on a busy machine: compression has the lowest priority there.
const TIMEOUT: Duration = Duration::from_secs(120);

const EVERY_ENCODING: [Encoding; 3] = [Encoding::Gzip, Encoding::Brotli, Encoding::Zstd];

/// A folder to serve, in a folder of its own.
struct Site {
    /// Free of links.
    around: PathBuf,
    spec: StoreSpec,
    budget: MemoryBudget,
    _folder: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let around = fs::canonicalize(folder.path()).expect("it exists");
        let root = around.join("root");
        fs::create_dir(&root).expect("create");
        let spec = StoreSpec {
            root,
            dotfiles: false,
            follow_outside: false,
            absent: vec![],
            compress: vec![],
            index: None,
            keep_releases: 0,
            hold_back: 2 * TIMEOUT,
        };
        Self { around, spec, budget: MemoryBudget::new(1 << 30), _folder: folder }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.spec.root.join(path)
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        write(&self.path(path), content);
    }

    fn read(&self) -> Result<Store, StoreError> {
        read(&self.spec, None, &self.budget, &Silent)
    }

    fn read_after(&self, previous: &Store) -> Store {
        read(&self.spec, Some(previous), &self.budget, &Silent).expect("a store")
    }

    /// Reads until no file is so young that it is not trusted.
    fn read_aged(&self) -> Store {
        let begun = Instant::now();
        loop {
            let store = self.read().expect("a store");
            if store.files.iter().all(|file| file.stamp.changed.0 != i64::MIN) {
                return store;
            }
            assert!(begun.elapsed() < TIMEOUT);
        }
    }

    /// Reads, and keeps what was read.
    fn keep(&self) -> Kept {
        self.keep_from(Arc::new(self.read().expect("a store")))
    }

    fn keep_from(&self, first: Arc<Store>) -> Kept {
        self.keep_with(first, |stop, events| TreeWatcher::open(&self.spec, stop, events))
    }

    fn keep_with(&self, first: Arc<Store>, watcher: impl FnOnce(Arc<Stop>, &Events) -> TreeWatcher) -> Kept {
        let (stores, published) = channel();
        let (says, events) = channel();
        let keeper = Keeper::start_with(
            self.spec.clone(),
            Arc::clone(&first),
            self.budget.clone(),
            None,
            Arc::new(move |store| drop(stores.send(store))),
            Arc::new(move |event| drop(says.send(event))),
            watcher,
        );
        Kept { keeper, first, published, events }
    }
}

/// A kept store and what is heard of it.
struct Kept {
    keeper: Keeper,
    first: Arc<Store>,
    published: Receiver<Arc<Store>>,
    events: Receiver<KeeperEvent>,
}

impl Kept {
    /// The next store for which this holds.
    fn store(&self, what: impl Fn(&Store) -> bool) -> Arc<Store> {
        let until = Instant::now() + TIMEOUT;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let store = self.published.recv_timeout(left).expect("such a store is published");
            if what(&store) {
                return store;
            }
        }
    }

    /// The next event for which this holds.
    fn event(&self, what: impl Fn(&KeeperEvent) -> bool) -> KeeperEvent {
        let until = Instant::now() + TIMEOUT;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let event = self.events.recv_timeout(left).expect("such an event happens");
            if what(&event) {
                return event;
            }
        }
    }
}

fn write(path: &Path, content: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().expect("a parent")).expect("create");
    fs::write(path, content).expect("write");
}

fn file<'a>(store: &'a Store, path: &str) -> Option<&'a Arc<File>> {
    match store.get(path.as_bytes())? {
        Node::File(number) => store.file(number),
        Node::Folder(_) => None,
    }
}

fn content<'a>(store: &'a Store, path: &str) -> Option<&'a [u8]> {
    file(store, path)?.identity.as_ref().map(|form| &*form.bytes)
}

/// Paths of all files.
fn paths(store: &Store) -> Vec<String> {
    store.files.iter().map(|file| String::from_utf8_lossy(&file.path).into_owned()).collect()
}

/// Text of that length that differs from seed to seed.
fn text(length: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761).max(1);
    let mut text = Vec::with_capacity(length + 16);
    while text.len() < length {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text.extend_from_slice(format!("let v{} = {};\n", state >> 28, state >> 20).as_bytes());
    }
    text.truncate(length);
    text
}
