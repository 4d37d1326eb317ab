//! The trees in memory: read at a start or reload, then kept up to date.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::events::{Event, EventSink, tree_event};
use super::publish::Publisher;
use super::store::{
    self, CompressorProgram, Keeper, KeeperEvent, MemoryBudget, Progress, StoreError, StoreSpec,
};
use crate::limits::HOLD_BACK_MAX;
use crate::request::handle::files::store::Store;
use crate::request::route::StoreWish;

/// Every tree that is configured, each with its keeper.
pub(super) struct Trees {
    budget: MemoryBudget,
    memory_bytes: u64,
    compressor: Option<CompressorProgram>,
    events: EventSink,
    kept: Vec<Kept>,
}

struct Kept {
    wish: StoreWish,
    /// What was read first, until the keeper has it: a tree that has changed must not stay in memory.
    first: Option<Arc<Store>>,
    keeper: Option<Keeper>,
}

/// What a reload will do to the trees.
pub(super) struct Change {
    /// By number, for the next snapshot.
    pub(super) stores: Vec<Arc<Store>>,
    wishes: Vec<StoreWish>,
}

impl Trees {
    /// Reads every tree.
    pub(super) fn read(
        wishes: &[StoreWish],
        memory_bytes: u64,
        compressor: Option<CompressorProgram>,
        events: EventSink,
    ) -> Result<(Self, Vec<Arc<Store>>), String> {
        let budget = MemoryBudget::new(memory_bytes);
        let mut trees = Self { budget, memory_bytes, compressor, events, kept: Vec::new() };
        let mut stores = Vec::new();
        for wish in wishes {
            let store = trees.read_one(wish)?;
            stores.push(Arc::clone(&store));
            trees.kept.push(Kept { wish: wish.clone(), first: Some(store), keeper: None });
        }
        Ok((trees, stores))
    }

    /// Begins to compress and to watch.
    pub(super) fn watch(&mut self, publisher: &Arc<Publisher>) {
        let mut kept = std::mem::take(&mut self.kept);
        for kept in &mut kept {
            if let Some(first) = kept.first.take() {
                kept.keeper = Some(self.keep(&kept.wish, first, publisher));
            }
        }
        self.kept = kept;
    }

    /// Reads what a reload needs in addition; changes nothing yet. `known` are the stores of now.
    pub(super) fn plan(
        &mut self,
        wishes: &[StoreWish],
        known: &[(StoreWish, Arc<Store>)],
        memory_bytes: u64,
    ) -> Result<Change, String> {
        self.budget.resize(self.memory_bytes, memory_bytes);
        self.memory_bytes = memory_bytes;
        let mut stores = Vec::new();
        for wish in wishes {
            match known.iter().find(|(before, _)| before == wish) {
                Some((_, store)) => stores.push(Arc::clone(store)),
                None => stores.push(self.read_one(wish)?),
            }
        }
        Ok(Change { stores, wishes: wishes.to_vec() })
    }

    /// Keeps the trees of a change, and lets go of all others.
    pub(super) fn carry_out(&mut self, change: Change, publisher: &Arc<Publisher>) {
        let mut before = std::mem::take(&mut self.kept);
        for (wish, store) in change.wishes.into_iter().zip(change.stores) {
            match before.iter().position(|kept| kept.wish == wish) {
                Some(place) => self.kept.push(before.swap_remove(place)),
                None => self.kept.push(Kept { wish, first: Some(store), keeper: None }),
            }
        }
        drop(before);
        self.watch(publisher);
    }

    /// Stops watching.
    pub(super) fn stop(&mut self) {
        self.kept.clear();
    }

    fn read_one(&self, wish: &StoreWish) -> Result<Arc<Store>, String> {
        let begun = Instant::now();
        let progress =
            Report { root: wish.root.clone(), found: AtomicUsize::new(0), events: Arc::clone(&self.events) };
        let store =
            store::read(&spec(wish), None, &self.budget, &progress).map_err(|error| explain(&error))?;
        let totals = &store.totals;
        (self.events)(Event::Stored {
            root: wish.root.clone(),
            files: totals.files,
            bytes: totals.bytes,
            on_disk: totals.on_disk,
            took: begun.elapsed(),
        });
        if let Some(index) = &wish.index
            && store.get(index.trim_matches('/').as_bytes()).is_none()
        {
            (self.events)(Event::Warning {
                message: format!(
                    "{} has no {index}: navigations are answered 404 until it is there; did the build run?",
                    wish.root.display()
                ),
            });
        }
        Ok(Arc::new(store))
    }

    fn keep(&self, wish: &StoreWish, first: Arc<Store>, publisher: &Arc<Publisher>) -> Keeper {
        let own = wish.clone();
        let publisher = Arc::downgrade(publisher);
        let publish = move |store: Arc<Store>| {
            if let Some(publisher) = publisher.upgrade() {
                publisher.replace_store(&own, store);
            }
        };
        let root = wish.root.clone();
        let events = Arc::clone(&self.events);
        let tell = move |event: KeeperEvent| events(tree_event(&root, event));
        Keeper::start(
            spec(wish),
            first,
            self.budget.clone(),
            self.compressor.clone(),
            Arc::new(publish),
            Arc::new(tell),
        )
    }
}

fn explain(error: &StoreError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

fn spec(wish: &StoreWish) -> StoreSpec {
    StoreSpec {
        root: wish.root.clone(),
        dotfiles: wish.dotfiles,
        follow_outside: wish.follow_outside,
        compress: wish.compress.clone(),
        index: wish.index.clone(),
        hold_back: HOLD_BACK_MAX,
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
