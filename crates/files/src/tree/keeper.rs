//! Keeps one store up to date with its tree.
//!
//! Owns one thread that watches, reads what changed and hands each new store to its `publish`, and one
//! below it that compresses. Stores are published in the order of their trees; compressing an older one
//! ends when a newer one is there, and what it has made is kept. Never publishes a mix of two builds,
//! and never gives up: what cannot be read now is tried again, and the last store stays.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::compressor_process::CompressorProgram;
use super::events::{Events, KeeperEvent, Publish};
use super::hold::{Hold, Verdict};
use super::publisher::StorePublisher;
use super::read::{Outcome, Reading};
use super::stop::Stop;
use super::watcher::{TreeWatcher, Woken};
use super::{MemoryBudget, Silent, StoreError, StoreSpec};
use crate::limits::{CHURN_WAIT_MAX, POLL_PERIOD, QUIET_PERIOD};
use crate::store::{Skipped, Store};

/// Keeps a store up to date as long as it lives. Dropping it ends its threads.
#[derive(Debug)]
pub struct Keeper {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Begins with a store that was read (and is already published), compresses it, and publishes
    /// whatever comes after it. Without a `compressor`, it compresses in this process.
    pub fn start(
        spec: StoreSpec,
        first: Arc<Store>,
        budget: MemoryBudget,
        compressor: Option<CompressorProgram>,
        publish: Publish,
        events: Events,
    ) -> Self {
        let root = spec.clone();
        let watcher = |stop, events: &Events| TreeWatcher::open(&root, stop, events);
        Self::start_with(spec, first, budget, compressor, publish, events, watcher)
    }

    /// The same with watcher of one's own.
    pub(super) fn start_with(
        spec: StoreSpec,
        first: Arc<Store>,
        budget: MemoryBudget,
        compressor: Option<CompressorProgram>,
        publish: Publish,
        events: Events,
        watcher: impl FnOnce(Arc<Stop>, &Events) -> TreeWatcher,
    ) -> Self {
        let stop = Arc::new(Stop::new());
        let mut hold = Hold::default();
        hold.published(&first, spec.index.as_deref());
        let skipped = first.skipped.clone();
        let publisher =
            StorePublisher::new(first, publish, Arc::clone(&events), Arc::clone(&stop), compressor);
        let watcher = watcher(Arc::clone(&stop), &events);
        let mut work = Work {
            spec,
            budget,
            events,
            publisher,
            watcher,
            hold,
            skipped,
            candidate: None,
            awaited: Vec::new(),
            gone: false,
        };
        let run = move || {
            // A thread that may not be nicer works all the same.
            let _ = rustix::process::setpriority_process(None, NICENESS);
            work.run();
        };
        // Without a thread the first store is served for good, which is what a failed watch means too.
        let thread = thread::Builder::new().name("store-keeper".into()).spawn(run).ok();
        Self { stop, thread }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            // A panic of that thread has been reported by then.
            let _ = thread.join();
        }
    }
}

/// How nice the keeper is to the threads that answer (setpriority(2)).
const NICENESS: i32 = 5;

struct Work {
    spec: StoreSpec,
    budget: MemoryBudget,
    events: Events,
    publisher: StorePublisher,
    watcher: TreeWatcher,
    hold: Hold,
    /// What was left out when that was last said.
    skipped: Skipped,
    /// A store that was read and not published; spares reading its files again.
    candidate: Option<Store>,
    /// What was missing when that was last said.
    awaited: Vec<String>,
    /// The root is missing.
    gone: bool,
}

/// When to look next.
type Next = ControlFlow<(), Option<Instant>>;

impl Work {
    fn run(&mut self) {
        self.publisher.compress(&self.spec, &self.budget);
        let mut next = self.first_look();
        while let ControlFlow::Continue(until) = next {
            let until = until.into_iter().chain(self.publisher.releases_due()).min();
            let woken = self.watcher.wait(&self.spec, until);
            self.publisher.drop_old_releases();
            next = match woken {
                Woken::Stopped => return,
                Woken::Changed { overflow } => {
                    if overflow {
                        (self.events)(KeeperEvent::Overflow);
                    }
                    self.update_when_quiet()
                }
                Woken::Late => self.update(Instant::now()),
            };
        }
    }

    /// Begins to watch. The tree may have changed since it was first read, and may still be changing.
    fn first_look(&mut self) -> Next {
        match self.read() {
            Ok(outcome) if self.publisher.changed(&outcome.store) == 0 => {
                ControlFlow::Continue(self.judge(outcome.store, Instant::now()))
            }
            Ok(outcome) => {
                self.candidate = Some(outcome.store);
                self.update_when_quiet()
            }
            Err(StoreError::Cancelled) => ControlFlow::Break(()),
            Err(error) => ControlFlow::Continue(self.unreadable(error)),
        }
    }

    /// Waits for the tree to be quiet, or for long enough, and brings the store up to date.
    fn update_when_quiet(&mut self) -> Next {
        let begun = Instant::now();
        self.quiet(begun)?;
        self.update(begun)
    }

    /// Waits until nothing changes any more, or until it has been changing for too long.
    fn quiet(&mut self, begun: Instant) -> ControlFlow<()> {
        let latest = (begun + CHURN_WAIT_MAX).max(Instant::now() + QUIET_PERIOD);
        loop {
            match self.watcher.wait(&self.spec, Some(latest.min(Instant::now() + QUIET_PERIOD))) {
                Woken::Stopped => return ControlFlow::Break(()),
                Woken::Changed { .. } if Instant::now() < latest => {}
                Woken::Changed { .. } | Woken::Late => return ControlFlow::Continue(()),
            }
        }
    }

    /// Reads the tree until it stands still meanwhile, and publishes it if it may be.
    fn update(&mut self, begun: Instant) -> Next {
        loop {
            let outcome = match self.read() {
                Ok(outcome) => outcome,
                Err(StoreError::Cancelled) => return ControlFlow::Break(()),
                Err(error) => return ControlFlow::Continue(self.unreadable(error)),
            };
            if self.gone {
                self.gone = false;
                (self.events)(KeeperEvent::RootBack);
            }
            let age = begun.elapsed();
            let touched = self.watcher.look(&self.spec);
            if (touched && age < CHURN_WAIT_MAX) || (!outcome.settled && age < 2 * CHURN_WAIT_MAX) {
                self.candidate = Some(outcome.store);
                self.quiet(begun)?;
                continue;
            }
            return ControlFlow::Continue(self.judge(outcome.store, begun));
        }
    }

    fn read(&mut self) -> Result<Outcome, StoreError> {
        let replaced = self.publisher.latest();
        let reading = Reading {
            spec: &self.spec,
            replaced: Some(&replaced),
            candidate: self.candidate.as_ref(),
            budget: &self.budget,
            progress: &Silent,
            cancelled: self.publisher.stop().flag(),
        };
        let (watcher, events) = (&mut self.watcher, &self.events);
        reading.run(&mut |tree| watcher.follow(tree, events))
    }

    /// Publishes a store, or puts it aside; returns when to look again if nothing happens.
    fn judge(&mut self, store: Store, begun: Instant) -> Option<Instant> {
        let index = self.spec.index.as_deref();
        match self.hold.judge(&store, index, self.spec.hold_back, Instant::now()) {
            Verdict::Complete => {}
            Verdict::Incomplete { missing, until } => {
                if missing != self.awaited {
                    self.awaited.clone_from(&missing);
                    (self.events)(KeeperEvent::HeldBack { missing });
                }
                self.candidate = Some(store);
                return Some(until);
            }
            Verdict::Overdue { missing } => {
                (self.events)(KeeperEvent::PublishedIncomplete { missing });
            }
        }
        self.candidate = None;
        self.awaited.clear();
        if store.skipped != self.skipped {
            self.skipped = store.skipped.clone();
            (self.events)(KeeperEvent::Skipped(self.skipped.clone()));
        }
        self.hold.published(&store, index);
        let files = store.totals.files;
        if let Some(changed) = self.publisher.publish(store, &self.spec, &self.budget) {
            // Files that were only touched are not worth a line.
            if changed > 0 {
                (self.events)(KeeperEvent::Published { files, changed, took: begun.elapsed() });
            }
            self.publisher.compress(&self.spec, &self.budget);
        }
        None
    }

    /// Says why the tree cannot be read; returns when to try again if nothing happens.
    fn unreadable(&mut self, error: StoreError) -> Option<Instant> {
        self.candidate = None;
        if !matches!(error, StoreError::MissingRoot { .. }) {
            (self.events)(KeeperEvent::Failed { error });
            return Some(Instant::now() + FAILED_PERIOD);
        }
        if !self.gone {
            self.gone = true;
            (self.events)(KeeperEvent::RootVanished);
        }
        // It may have come back before it was watched.
        let back = self.watcher.expect(&self.spec, &self.events);
        back.then(|| Instant::now() + QUIET_PERIOD)
    }
}

/// How long until a tree that could not be read is tried again.
const FAILED_PERIOD: Duration = POLL_PERIOD.saturating_mul(5);
