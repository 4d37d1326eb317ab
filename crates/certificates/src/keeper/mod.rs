//! Keeps certificates fresh: loads what is stored, orders what is missing, renews in time.
//!
//! [`Keeper::set`] names the certificates that are wanted, and handshakes ask for others through [`OnDemand`]. A background
//! thread runs the orders. [`entry`] holds the state of one name and decides its next step; [`attempt`](mod@attempt) makes
//! one attempt. The state is locked only for moments; orders, publishing and events happen without the lock.

mod attempt;
mod entry;
mod on_demand;
mod revoke;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use tokio::sync::{Notify, mpsc};
use tokio::task::{Id, JoinSet};

use crate::Clock;
use crate::issuer::{Issuer, KeyType};
use crate::limits::{
    ASKED_AT_ONCE_MAX, KEEPER_SLEEP_MAX, ON_DEMAND_NAMES_MAX, ON_DEMAND_ORDERS_AT_ONCE_MAX,
    ON_DEMAND_WAITING_MAX, ORDERS_AT_ONCE_MAX, STOP_REMOVAL_MAX, STOP_TIME_MAX, UNANSWERED_TIME,
};
use crate::loaded::{Loaded, canonical};
use crate::store::{CertificateKeys, Storage};
use attempt::{Outcome, ask, attempt, attempt_briefly, fetch_window, load_best};
use entry::{Applied, Entry, Work, WorkKind};
use on_demand::{NoPermission, Request, Requests, UnknownNames};

pub use on_demand::{Asking, Obtaining, OnDemand, Permission};

/// A certificate that a site wants.
#[derive(Clone)]
pub struct Wanted {
    /// A DNS name (with `*` as its first label for a wildcard), or an IP address.
    pub name: String,
    /// The issuers, in the order in which they are asked: the next one if one fails.
    pub issuers: Vec<Arc<dyn Issuer>>,
    /// What its key signs with.
    pub key_type: KeyType,
    /// The part of the certificate's lifetime that is left when it is renewed: [`crate::schedule::RENEWAL_RATIO`].
    pub renewal_ratio: f64,
    /// Asked before each order, if clients choose the name.
    pub permission: Option<Arc<dyn Permission>>,
}

/// What happened, for logs and counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A certificate was issued and stored.
    Obtained {
        /// Its name.
        name: String,
        /// The folder of its issuer.
        issuer: String,
        /// Its end.
        not_after: SystemTime,
        /// Whether it replaces another.
        is_renewal: bool,
    },
    /// A certificate was revoked because an operator asked for it.
    Revoked {
        /// Its name.
        name: String,
        /// The folder of its issuer.
        issuer: String,
    },
    /// An attempt failed.
    Failed {
        /// The name that was ordered.
        name: String,
        /// The folder of the issuer that failed; empty where there is none to ask.
        issuer: String,
        /// The cause and the next step.
        reason: String,
        /// Time until the next attempt; zero if the next issuer is asked at once.
        next_try_in: Duration,
    },
}

/// The state of one wanted certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateStatus {
    /// Its name.
    pub name: String,
    /// The folder of the issuer of the certificate that is served.
    pub issuer: Option<String>,
    /// The end of the certificate that is served.
    pub not_after: Option<SystemTime>,
    /// When it is ordered next: its renewal, or the next attempt after a failure.
    pub next_renewal: SystemTime,
    /// The last failure since the last success, and when.
    pub last_error: Option<(String, SystemTime)>,
}

/// Receives all certificates each time one changes.
pub type Publish = Arc<dyn Fn(Vec<Arc<Loaded>>) + Send + Sync>;

/// Receives events.
pub type Events = Arc<dyn Fn(Event) + Send + Sync>;

/// Obtains and renews certificates until it is dropped. Orders that are under way then end, and their challenges are
/// removed, within [`STOP_TIME_MAX`].
pub struct Keeper {
    shared: Arc<Shared>,
    requests: Requests,
    /// Runs tasks on the keeper's thread.
    runtime: tokio::runtime::Handle,
    thread: Option<JoinHandle<()>>,
    /// Disconnected when the thread ends.
    ended: Mutex<std::sync::mpsc::Receiver<()>>,
}

struct Shared {
    storage: Arc<dyn Storage>,
    clock: Clock,
    publish: Publish,
    events: Events,
    state: Mutex<State>,
    /// Held while publishing, so that no older list replaces a newer one.
    publishing: Mutex<()>,
    /// Held by [`Keeper::set`].
    setting: Mutex<()>,
    wake: Notify,
}

#[derive(Default)]
struct State {
    entries: BTreeMap<String, Entry>,
    unknown: UnknownNames,
    is_stopping: bool,
}

impl Keeper {
    /// Starts the background thread. Fails if the system has no thread or no descriptors left.
    pub fn new(
        storage: Arc<dyn Storage>,
        clock: Clock,
        publish: Publish,
        events: Events,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            storage,
            clock,
            publish,
            events,
            state: Mutex::default(),
            publishing: Mutex::default(),
            setting: Mutex::default(),
            wake: Notify::new(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let theirs = Arc::clone(&shared);
        let (requests, receiver) = Requests::new();
        let (end, ended) = channel();
        let thread = std::thread::Builder::new().name("certificates".to_owned());
        let thread = thread.spawn(move || {
            let _end = end;
            runtime.block_on(run(theirs, receiver));
            // A name that the system resolves right now would be waited for.
            runtime.shutdown_background();
        })?;
        Ok(Self { shared, requests, runtime: handle, thread: Some(thread), ended: Mutex::new(ended) })
    }

    /// Replaces the certificates that are wanted, at start and on reload. On return, what is stored and valid is
    /// published, and so is what the local authority issues; the rest is ordered in the background. Names that
    /// handshakes asked for are forgotten: the next handshake finds them in the store.
    pub fn set(&self, wanted: Vec<Wanted>) {
        let _turn = lock(&self.shared.setting);
        let now = (self.shared.clock)();
        let mut prepared = Vec::with_capacity(wanted.len());
        for mut wanted in wanted {
            wanted.name = canonical(&wanted.name);
            let outcome = self.prepare(&wanted, now);
            prepared.push((wanted, outcome));
        }
        let mut all = Applied::default();
        {
            let mut state = lock(&self.shared.state);
            let mut old = std::mem::take(&mut state.entries);
            for (wanted, outcome) in prepared {
                let name = wanted.name.clone();
                let mut entry = match old.remove(&name) {
                    Some(entry) => entry.with(wanted, now),
                    None => Entry::new(wanted, false, now),
                };
                if let Some(outcome) = outcome {
                    all.append(entry.apply(outcome, now));
                }
                state.entries.insert(name, entry);
            }
        }
        all.is_changed = true;
        self.shared.tell(all);
        self.shared.wake.notify_one();
    }

    /// Loads or issues the certificate of a name, as far as that needs no waiting.
    fn prepare(&self, wanted: &Wanted, now: SystemTime) -> Option<Outcome> {
        {
            let state = lock(&self.shared.state);
            if state.entries.get(&wanted.name).is_some_and(|entry| entry.serves(wanted, now)) {
                return None;
            }
        }
        let is_immediate =
            !wanted.issuers.is_empty() && wanted.issuers.iter().all(|issuer| !issuer.needs_network());
        let found = load_best(&*self.shared.storage, wanted, now);
        match found {
            Some(found) => Some(Outcome::Found(found)),
            None if is_immediate => attempt_briefly(&*self.shared.storage, wanted, now),
            None => None,
        }
    }

    /// The state of every certificate, by name.
    pub fn status(&self) -> Vec<CertificateStatus> {
        lock(&self.shared.state).entries.values().map(Entry::status).collect()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        lock(&self.shared.state).is_stopping = true;
        self.shared.wake.notify_one();
        let ended = lock(&self.ended).recv_timeout(STOP_TIME_MAX);
        if let (Some(thread), Err(RecvTimeoutError::Disconnected)) = (self.thread.take(), ended) {
            // The panic of the thread is in the log.
            let _ = thread.join();
        }
    }
}

impl State {
    /// Removes names on demand whose orders failed and that no handshake waits for, if the table is full. Returns whether it
    /// has room for another name.
    fn make_room(&mut self, now: SystemTime) -> bool {
        let count = |state: &Self| state.entries.values().filter(|entry| entry.is_on_demand).count();
        if count(self) >= ON_DEMAND_NAMES_MAX {
            self.entries.retain(|_, entry| !entry.is_forgettable(now));
        }
        count(self) < ON_DEMAND_NAMES_MAX
    }
}

impl State {
    /// Ends an entry that has no permission, and remembers that.
    fn refuse(&mut self, name: &str, why: NoPermission, now: SystemTime) -> Applied {
        let (reason, is_reported) = self.unknown.refuse(name, why, now);
        let entry = self.entries.remove(name);
        let mut applied = entry.map(|entry| entry.refuse(&reason)).unwrap_or_default();
        if is_reported {
            let (name, issuer) = (name.to_owned(), String::new());
            applied.events.push(Event::Failed { name, issuer, reason, next_try_in: UNANSWERED_TIME });
        }
        applied
    }
}

impl Shared {
    /// Publishes, then reports events, then wakes the waiters, which find what was published.
    fn tell(&self, applied: Applied) {
        if applied.is_changed {
            let _turn = lock(&self.publishing);
            let current = lock(&self.state).entries.values().filter_map(Entry::loaded).collect();
            (self.publish)(current);
        }
        applied.events.into_iter().for_each(|event| (self.events)(event));
        for (waiter, answer) in applied.answers {
            // The client may be gone.
            let _ = waiter.send(answer);
        }
    }

    /// Looks for the certificate that a handshake asks for: in the table, then in the store.
    fn answer(&self, Request { mut wanted, answer }: Request) {
        let now = (self.clock)();
        wanted.name = canonical(&wanted.name);
        let known = {
            let mut state = lock(&self.state);
            if let Some(entry) = state.entries.get_mut(&wanted.name) {
                return entry.wait(answer, now);
            }
            state.unknown.refusal(&wanted.name, now)
        };
        let is_possible = CertificateKeys::new(crate::local::FOLDER, &wanted.name).is_ok();
        let found = if known.is_none() { load_best(&*self.storage, &wanted, now) } else { None };
        let mut state = lock(&self.state);
        // [`Keeper::set`] may have added the name while the store was read.
        if let Some(entry) = state.entries.get_mut(&wanted.name) {
            return entry.wait(answer, now);
        }
        let refusal = match &found {
            _ if known.is_some() => known,
            _ if !is_possible => Some("no certificate can have this name".to_owned()),
            None if !state.unknown.count_name(now) => {
                Some("too many unknown names were asked for in the last minute".to_owned())
            }
            _ if !state.make_room(now) => {
                Some(format!("more than {ON_DEMAND_NAMES_MAX} names were asked for on demand"))
            }
            _ => None,
        };
        if let Some(refusal) = refusal {
            // The client may be gone.
            return drop(answer.send(Err(refusal)));
        }
        let name = wanted.name.clone();
        let mut entry = Entry::new(wanted, true, now);
        let mut applied = Applied::default();
        if let Some(found) = found {
            applied.append(entry.apply(Outcome::Found(found), now));
        }
        let loaded = entry.loaded();
        match loaded {
            Some(loaded) => applied.answers.push((answer, Ok(loaded))),
            None => entry.wait(answer, now),
        }
        state.entries.insert(name, entry);
        drop(state);
        self.tell(applied);
    }

    fn finish(&self, name: &str, outcome: Outcome) {
        let now = (self.clock)();
        let mut state = lock(&self.state);
        // If the name is not wanted any more, the certificate is in the store only.
        let Some(entry) = state.entries.get_mut(name) else { return };
        let applied = match outcome {
            Outcome::Permission(Err(why)) if entry.ends_without_permission(now) => {
                state.refuse(name, why, now)
            }
            outcome => entry.finish(outcome, now),
        };
        drop(state);
        self.tell(applied);
    }

    /// Starts the work that is due and within the bounds, the longest due first. Also returns the time until more is due.
    fn take_due(&self, running: &HashMap<Id, Running>) -> Option<(Vec<(WorkKind, Work)>, Duration)> {
        let now = (self.clock)();
        let mut state = lock(&self.state);
        let State { entries, unknown, is_stopping } = &mut *state;
        if *is_stopping {
            return None;
        }
        let is_due = |entry: &&mut Entry| entry.next().is_some_and(|next| next <= now);
        let mut due: Vec<_> = entries.values_mut().filter(is_due).collect();
        due.sort_by_key(|entry| entry.next());
        let mut work: Vec<(WorkKind, Work)> = Vec::new();
        for entry in due {
            let kind = entry.kind(now);
            let count = running.values().filter(|one| one.kind == kind).count()
                + work.iter().filter(|(other, _)| *other == kind).count();
            if count >= at_once_max(kind) {
                continue;
            }
            if kind == WorkKind::OnDemand
                && let Err(until) = unknown.count_order(now)
            {
                entry.postpone(until);
                continue;
            }
            work.extend(entry.start(now).map(|one| (kind, one)));
        }
        let idle = entries.values().filter_map(Entry::next).filter(|next| *next > now).min();
        let sleep = idle.and_then(|next| next.duration_since(now).ok()).unwrap_or(KEEPER_SLEEP_MAX);
        Some((work, sleep.min(KEEPER_SLEEP_MAX)))
    }
}

/// A task that is under way.
struct Running {
    name: String,
    kind: WorkKind,
    issuers: Vec<Arc<dyn Issuer>>,
}

fn at_once_max(kind: WorkKind) -> usize {
    match kind {
        WorkKind::Order => ORDERS_AT_ONCE_MAX,
        WorkKind::OnDemand => ON_DEMAND_ORDERS_AT_ONCE_MAX,
        WorkKind::Permission => ASKED_AT_ONCE_MAX,
    }
}

async fn run(shared: Arc<Shared>, mut requests: mpsc::Receiver<Request>) {
    let mut tasks = JoinSet::new();
    let mut running: HashMap<Id, Running> = HashMap::new();
    let mut names = Vec::new();
    while let Some((work, sleep)) = shared.take_due(&running) {
        for (kind, work) in work {
            let (shared, name, issuers) = (Arc::clone(&shared), work.name().to_owned(), work.issuers());
            let task = tasks.spawn(async move {
                match work {
                    Work::Order(job) => attempt(&*shared.storage, &shared.clock, job).await,
                    Work::Window { issuer, chain, .. } => fetch_window(&*issuer, &chain).await,
                    Work::Ask { permission, name } => ask(&*permission, &name).await,
                }
            });
            running.insert(task.id(), Running { name, kind, issuers });
        }
        tokio::select! {
            () = shared.wake.notified() => {}
            () = tokio::time::sleep(sleep) => {}
            1.. = requests.recv_many(&mut names, ON_DEMAND_WAITING_MAX) => {
                names.drain(..).for_each(|request| shared.answer(request));
            }
            Some(ended) = tasks.join_next_with_id() => {
                let (id, outcome) = match ended {
                    Ok(ended) => ended,
                    Err(error) => (error.id(), Outcome::panicked()),
                };
                if let Some(task) = running.remove(&id) {
                    shared.finish(&task.name, outcome);
                }
            }
        }
    }
    tasks.shutdown().await;
    remove_leftovers(running.into_values().flat_map(|task| task.issuers)).await;
}

/// Removes the challenges of orders that were cancelled.
async fn remove_leftovers(issuers: impl Iterator<Item = Arc<dyn Issuer>>) {
    let mut known: Vec<Arc<dyn Issuer>> = Vec::new();
    for issuer in issuers {
        if !known.iter().any(|other| Arc::ptr_eq(other, &issuer)) {
            known.push(issuer);
        }
    }
    let mut removals = JoinSet::new();
    known.into_iter().for_each(|issuer| drop(removals.spawn(async move { issuer.remove_leftovers().await })));
    let _ = tokio::time::timeout(STOP_REMOVAL_MAX, removals.join_all()).await;
}

/// Polls a future that never waits: that of the local authority. `None` if it would wait.
pub(crate) fn poll_now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// A lock that a panic has poisoned is used all the same: each change leaves whole values.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
