//! The trees in memory: read at a start or reload, then kept up to date.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use onehop_archive::index::Tree;
use onehop_files::store::Store;
use onehop_files::store::packed::PackedSource;
use onehop_files::tree::{
    self, CompressorProgram, Keeper, KeeperEvent, MemoryBudget, Progress, StoreError, StoreSpec,
};

use super::events::{Event, EventSink, tree_event};
use super::publish::Publisher;
use onehop_archive::installed::Packed;

/// Every tree that is configured, each with its keeper.
pub(super) struct Trees {
    budget: MemoryBudget,
    memory_bytes: u64,
    compressor: Option<CompressorProgram>,
    events: EventSink,
    packed: Option<PackedTrees>,
    kept: Vec<Kept>,
}

/// The trees of the pack that this server is.
struct PackedTrees {
    packed: Arc<Packed>,
    /// By number of the tree in the index, once it was asked for.
    stores: Vec<OnceLock<Arc<Store>>>,
}

struct Kept {
    spec: StoreSpec,
    /// What was read first, until the keeper has it: a tree that has changed must not stay in memory. A tree of a pack
    /// does not change, and has neither.
    first: Option<Arc<Store>>,
    keeper: Option<Keeper>,
}

/// What a reload will do to the trees.
pub(super) struct Change {
    /// By number, for the next snapshot.
    pub(super) stores: Vec<Arc<Store>>,
    specs: Vec<StoreSpec>,
}

impl Trees {
    /// Reads every tree.
    pub(super) fn read(
        specs: &[StoreSpec],
        memory_bytes: u64,
        compressor: Option<CompressorProgram>,
        packed: Option<Arc<Packed>>,
        events: EventSink,
    ) -> Result<(Self, Vec<Arc<Store>>), String> {
        let budget = MemoryBudget::new(memory_bytes);
        let packed = packed.map(|packed| PackedTrees {
            stores: packed.index.trees.iter().map(|_| OnceLock::new()).collect(),
            packed,
        });
        let mut trees = Self { budget, memory_bytes, compressor, events, packed, kept: Vec::new() };
        let mut stores = Vec::new();
        for spec in specs {
            let store = trees.read_one(spec)?;
            stores.push(Arc::clone(&store));
            trees.kept.push(trees.kept_from(spec.clone(), store));
        }
        Ok((trees, stores))
    }

    /// Begins to compress and to watch.
    pub(super) fn watch(&mut self, publisher: &Arc<Publisher>) {
        let mut kept = std::mem::take(&mut self.kept);
        for kept in &mut kept {
            if let Some(first) = kept.first.take() {
                kept.keeper = Some(self.keep(&kept.spec, first, publisher));
            }
        }
        self.kept = kept;
    }

    /// Reads what a reload needs in addition; changes nothing yet. `known` are the stores of now.
    pub(super) fn plan(
        &mut self,
        specs: &[StoreSpec],
        known: &[(StoreSpec, Arc<Store>)],
        memory_bytes: u64,
    ) -> Result<Change, String> {
        self.budget.resize(self.memory_bytes, memory_bytes);
        self.memory_bytes = memory_bytes;
        let mut stores = Vec::new();
        for spec in specs {
            match known.iter().find(|(before, _)| before == spec) {
                Some((_, store)) => stores.push(Arc::clone(store)),
                None => stores.push(self.read_one(spec)?),
            }
        }
        Ok(Change { stores, specs: specs.to_vec() })
    }

    /// Keeps the trees of a change, and lets go of all others.
    pub(super) fn carry_out(&mut self, change: Change, publisher: &Arc<Publisher>) {
        let mut before = std::mem::take(&mut self.kept);
        for (spec, store) in change.specs.into_iter().zip(change.stores) {
            match before.iter().position(|kept| kept.spec == spec) {
                Some(place) => self.kept.push(before.swap_remove(place)),
                None => self.kept.push(self.kept_from(spec, store)),
            }
        }
        drop(before);
        self.watch(publisher);
    }

    /// Stops watching.
    pub(super) fn stop(&mut self) {
        self.kept.clear();
    }

    fn kept_from(&self, spec: StoreSpec, store: Arc<Store>) -> Kept {
        let first = self.root_in_pack(&spec).is_none().then_some(store);
        Kept { spec, first, keeper: None }
    }

    /// The root of a tree that lies below the base of the pack, if this server is one.
    fn root_in_pack(&self, spec: &StoreSpec) -> Option<String> {
        self.packed.as_ref()?.packed.below_base(&spec.root)
    }

    /// The store of a tree in the pack.
    fn find(&self, trees: &PackedTrees, root: &str, spec: &StoreSpec) -> Result<Arc<Store>, String> {
        let packed = &trees.packed;
        let is_wanted = |tree: &&Tree| {
            tree.root == root && tree.dotfiles == spec.dotfiles && tree.follow_outside == spec.follow_outside
        };
        let found = packed.index.trees.iter().zip(&trees.stores).find(|(tree, _)| is_wanted(tree));
        let (tree, store) = found.ok_or_else(|| {
            let name = if root.is_empty() { "the folder of the configuration" } else { root };
            let how = match packed.index.trees.iter().any(|tree| tree.root == root) {
                true => " as it is to be served now (`dotfiles`, `symlinks`)",
                false => "",
            };
            format!("{name} is not in this pack{how}: pack it again, or name a folder outside of it")
        })?;
        let make = || {
            let events = Arc::clone(&self.events);
            let source = PackedSource {
                pack: Arc::clone(&packed.pack),
                index: Arc::clone(&packed.index),
                root: tree.root.clone(),
                budget: self.budget.clone(),
                tell: Arc::new(move |message| events(Event::Warning { message })),
            };
            Arc::new(onehop_files::tree::packed(tree, spec.root.clone(), &Arc::new(source)))
        };
        Ok(Arc::clone(store.get_or_init(make)))
    }

    fn read_one(&self, spec: &StoreSpec) -> Result<Arc<Store>, String> {
        let begun = Instant::now();
        if let (Some(trees), Some(root)) = (&self.packed, self.root_in_pack(spec)) {
            let store = self.find(trees, &root, spec)?;
            self.tell_stored(spec, &store, true, begun);
            return Ok(store);
        }
        let progress =
            Report { root: spec.root.clone(), found: AtomicUsize::new(0), events: Arc::clone(&self.events) };
        let store = tree::read(spec, None, &self.budget, &progress).map_err(|error| explain(&error))?;
        self.tell_stored(spec, &store, false, begun);
        Ok(Arc::new(store))
    }

    fn tell_stored(&self, spec: &StoreSpec, store: &Store, packed: bool, begun: Instant) {
        let totals = &store.totals;
        (self.events)(Event::Stored {
            root: spec.root.clone(),
            files: totals.files,
            bytes: totals.bytes,
            on_disk: totals.on_disk,
            packed,
            took: begun.elapsed(),
        });
        if let Some(index) = &spec.index
            && store.get(index.trim_matches('/').as_bytes()).is_none()
        {
            (self.events)(Event::Warning {
                message: format!(
                    "{} has no {index}: navigations are answered 404 until it is there; did the build run?",
                    spec.root.display()
                ),
            });
        }
    }

    fn keep(&self, spec: &StoreSpec, first: Arc<Store>, publisher: &Arc<Publisher>) -> Keeper {
        let own = spec.clone();
        let publisher = Arc::downgrade(publisher);
        let publish = move |store: Arc<Store>| {
            if let Some(publisher) = publisher.upgrade() {
                publisher.replace_store(&own, store);
            }
        };
        let root = spec.root.clone();
        let events = Arc::clone(&self.events);
        let tell = move |event: KeeperEvent| events(tree_event(&root, event));
        Keeper::start(
            spec.clone(),
            first,
            self.budget.clone(),
            self.compressor.clone(),
            Arc::new(publish),
            Arc::new(tell),
        )
    }
}

pub(super) fn explain(error: &StoreError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

struct Report {
    root: PathBuf,
    found: AtomicUsize,
    events: EventSink,
}

impl Progress for Report {
    fn found(&self, files: usize, _: u64) {
        self.found.store(files, Ordering::Relaxed);
    }

    fn files(&self, done: usize, bytes: u64) {
        let of_files = self.found.load(Ordering::Relaxed);
        (self.events)(Event::Reading { root: self.root.clone(), files: done, of_files, bytes });
    }
}
