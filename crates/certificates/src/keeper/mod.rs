//! Keeps certificates fresh: loads what is stored, orders what is missing, renews in time.
//!
//! [`Keeper::set`] says which certificates are wanted. A background thread runs the orders; [`entry`] is what is known
//! of one name and decides what is next, [`attempt`](mod@attempt) is one attempt. The state is locked only for moments; orders,
//! publishing and events happen without the lock.

mod attempt;
mod entry;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use tokio::sync::{Notify, oneshot};
use tokio::task::{Id, JoinSet};

use crate::Clock;
use crate::issuer::{Issuer, KeyType};
use crate::limits::{KEEPER_SLEEP_MAX, ON_DEMAND_NAMES_MAX, ORDERS_AT_ONCE_MAX, WAITERS_PER_NAME_MAX};
use crate::loaded::{Loaded, canonical};
use crate::store::Storage;
use attempt::{Outcome, attempt, attempt_briefly, fetch_window, load_best};
use entry::{Applied, Entry, Work};

/// A certificate that a site wants.
#[derive(Clone)]
pub struct Wanted {
    /// A DNS name (with `*` as its first label for a wildcard), or an IP address.
    pub name: String,
    /// Who may issue it: the first, or the next one if that fails.
    pub issuers: Vec<Arc<dyn Issuer>>,
    /// What its key signs with.
    pub key_type: KeyType,
    /// The part of its life that is left when it is renewed: [`crate::schedule::RENEWAL_RATIO`].
    pub renewal_ratio: f64,
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

/// Takes all certificates that are there, each time one changes.
pub type Publish = Arc<dyn Fn(Vec<Arc<Loaded>>) + Send + Sync>;

/// Takes events.
pub type Events = Arc<dyn Fn(Event) + Send + Sync>;

/// The answer to [`Keeper::obtain_now`]: the certificate, or why there is none.
pub type Obtaining = oneshot::Receiver<Result<Arc<Loaded>, String>>;

/// Keeps certificates fresh until it is dropped.
pub struct Keeper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
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
    is_stopping: bool,
}

impl Keeper {
    /// Starts the background thread. It fails if the system has no thread or no descriptors left.
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
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("certificates".to_owned());
        let thread = thread.spawn(move || runtime.block_on(run(theirs)))?;
        Ok(Self { shared, thread: Some(thread) })
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

    /// What is to be known of a name before [`Keeper::set`] returns.
    fn prepare(&self, wanted: &Wanted, now: SystemTime) -> Option<Outcome> {
        {
            let state = lock(&self.shared.state);
            if state.entries.get(&wanted.name).is_some_and(|entry| entry.serves(wanted, now)) {
                return None;
            }
        }
        let is_local = |issuer: &Arc<dyn Issuer>| issuer.folder() == crate::local::FOLDER;
        let is_immediate = !wanted.issuers.is_empty() && wanted.issuers.iter().all(is_local);
        let found = load_best(&*self.shared.storage, wanted, now);
        match found {
            Some(found) => Some(Outcome::Found(found)),
            None if is_immediate => attempt_briefly(&*self.shared.storage, wanted, now),
            None => None,
        }
    }

    /// Obtains a certificate that a handshake asks for, once for all handshakes that ask for its name: the certificate
    /// that is there, the one in the store, or a new one. It is renewed until the next [`Keeper::set`]. While a failure
    /// is recent, the answer is that failure. The answer is an error of the channel if [`Keeper::set`] or the end of
    /// the keeper came first.
    pub fn obtain_now(&self, mut wanted: Wanted) -> Obtaining {
        wanted.name = canonical(&wanted.name);
        let (sender, receiver) = oneshot::channel();
        let now = (self.shared.clock)();
        let mut state = lock(&self.shared.state);
        if !state.entries.contains_key(&wanted.name) && !state.make_room(now) {
            let message = format!("more than {ON_DEMAND_NAMES_MAX} names were asked for on demand");
            // Who asked may have left.
            let _ = sender.send(Err(message));
            return receiver;
        }
        let name = wanted.name.clone();
        let entry = state.entries.entry(name).or_insert_with(|| Entry::new(wanted, true, now));
        match entry.answer(now) {
            Some(answer) => drop(sender.send(answer)),
            None if entry.waiters.len() >= WAITERS_PER_NAME_MAX => {
                let message = "too many handshakes wait for this certificate".to_owned();
                drop(sender.send(Err(message)));
            }
            None => entry.waiters.push(sender),
        }
        drop(state);
        self.shared.wake.notify_one();
        receiver
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
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl State {
    /// Whether there is room for another name on demand, after what failed and is not waited for has been removed.
    fn make_room(&mut self, now: SystemTime) -> bool {
        let count = |state: &Self| state.entries.values().filter(|entry| entry.is_on_demand).count();
        if count(self) >= ON_DEMAND_NAMES_MAX {
            self.entries.retain(|_, entry| !entry.is_forgettable(now));
        }
        count(self) < ON_DEMAND_NAMES_MAX
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
            // Who asked may have left.
            let _ = waiter.send(answer);
        }
    }

    fn finish(&self, name: &str, outcome: Outcome) {
        let now = (self.clock)();
        let applied = match lock(&self.state).entries.get_mut(name) {
            Some(entry) => entry.finish(outcome, now),
            // It is not wanted any more; it is in the store.
            None => return,
        };
        self.tell(applied);
    }

    /// Takes work that is due, the longest due first; and how long until there is more.
    fn take_due(&self, room: usize) -> Option<(Vec<Work>, Duration)> {
        let now = (self.clock)();
        let mut state = lock(&self.state);
        if state.is_stopping {
            return None;
        }
        let idle = || state.entries.values().filter_map(Entry::next).filter(|next| *next > now).min();
        let sleep = idle().and_then(|next| next.duration_since(now).ok()).unwrap_or(KEEPER_SLEEP_MAX);
        let is_due = |entry: &&mut Entry| entry.next().is_some_and(|next| next <= now);
        let mut due: Vec<_> = state.entries.values_mut().filter(is_due).collect();
        due.sort_by_key(|entry| entry.next());
        let work = due.into_iter().take(room).filter_map(|entry| entry.start(now)).collect();
        Some((work, sleep.min(KEEPER_SLEEP_MAX)))
    }
}

async fn run(shared: Arc<Shared>) {
    let mut tasks = JoinSet::new();
    let mut names: HashMap<Id, String> = HashMap::new();
    while let Some((work, sleep)) = shared.take_due(ORDERS_AT_ONCE_MAX.saturating_sub(tasks.len())) {
        for work in work {
            let (shared, name) = (Arc::clone(&shared), work.name().to_owned());
            let task = tasks.spawn(async move {
                match work {
                    Work::Order(job) => attempt(&*shared.storage, &shared.clock, job).await,
                    Work::Window { issuer, chain, .. } => fetch_window(&*issuer, &chain).await,
                }
            });
            names.insert(task.id(), name);
        }
        tokio::select! {
            () = shared.wake.notified() => {}
            () = tokio::time::sleep(sleep) => {}
            Some(ended) = tasks.join_next_with_id() => {
                let (id, outcome) = match ended {
                    Ok(ended) => ended,
                    Err(error) => (error.id(), Outcome::panicked()),
                };
                if let Some(name) = names.remove(&id) {
                    shared.finish(&name, outcome);
                }
            }
        }
    }
}

/// Polls a future that never waits: that of the local authority. `None` if it would wait.
pub(crate) fn poll_now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// A thread that panicked leaves whole values behind: each is changed in one go.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
