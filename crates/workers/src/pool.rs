//! The workers of one application as requests see them: which of them serve, which have room, which requests wait.
//!
//! Bounded join-shortest-queue over a central queue: a worker is handed at most as many requests as it was made with
//! (`concurrency`). The rest waits here, where each can still go to any worker and survives the death of all. Shared by
//! all cores; the common request writes one counter of one worker. Starts and ends no process: that is the supervisor.
//!
//! A request may have an [`Affinity`] for one worker: while that one serves and is full, the request waits for it and
//! for no other.

mod queue;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use onehop_config::checked::App;
use onehop_connection::SlotHolder;
use onehop_limits::ConcurrencyLimiter;
use onehop_limits::wait_queue::WaitQueue;
use tokio::sync::oneshot;

use crate::affinity::{Affinity, AffinityPolicy, rendezvous};
use crate::worker::{Raised, Worker, WorkerId, WorkerIndex};
use queue::Queue;
pub use queue::Ticket;

/// The workers of one application.
pub struct Pool {
    /// Its settings; the bounds of requests are among them.
    pub app: Arc<App>,
    workers: ArcSwap<Vec<Arc<Worker>>>,
    queue: WaitQueue<Queue<Grant>>,
    /// How many workers are wanted: their indexes are below it.
    worker_count: AtomicUsize,
    /// Which requests go to the same worker, where any do.
    pub affinity: Option<AffinityPolicy>,
    /// Seconds after which asking again makes sense; 0 while the application is well.
    retry_after: AtomicU32,
    /// Bounds the requests that are given to it, around the queue and the workers' own bounds.
    pub limiter: Option<Arc<ConcurrencyLimiter>>,
    /// Shown to browsers instead of a 503 while the application fails and a developer works on it.
    failure: ArcSwap<Option<String>>,
}

/// A slot at a worker, on its way to the core whose request waits. Dropped, it is free again.
pub struct Grant {
    pool: Arc<Pool>,
    worker: Option<Arc<Worker>>,
}

/// What comes of asking for a slot at a worker.
pub enum Choice {
    /// This worker; its counter is raised already and has to be lowered by [`Pool::give_back`].
    Now(Arc<Worker>),
    /// The slot will be sent. A sender that is dropped means that the application has failed meanwhile, or that the
    /// request had to make room: see [`Pool::half_closed`].
    Later(oneshot::Receiver<Grant>, Ticket),
    /// As many requests wait as may, or as many for this worker.
    QueueFull,
    /// The application does not run; ask again after so many seconds.
    Failing(u32),
}

impl Pool {
    /// An application without workers: requests wait until there is one.
    pub fn new(app: Arc<App>) -> Arc<Self> {
        let affinity = app.sticky.as_ref().map(|sticky| AffinityPolicy::new(sticky, &app.name));
        let limiter = app.limit.as_ref().map(|limit| ConcurrencyLimiter::new(Arc::clone(limit)));
        Arc::new(Self {
            worker_count: AtomicUsize::new(1),
            affinity,
            app,
            workers: ArcSwap::default(),
            queue: WaitQueue::new(Queue::default()),
            retry_after: AtomicU32::new(0),
            limiter,
            failure: ArcSwap::default(),
        })
    }

    /// Hands requests to this worker from now on. All of its worker connections must be attached.
    pub fn admit(self: &Arc<Self>, worker: Arc<Worker>) {
        self.workers.rcu(|workers| {
            let mut workers = Vec::clone(workers);
            workers.push(Arc::clone(&worker));
            workers
        });
        self.set_failing(0, None);
        self.hand_out();
    }

    /// Hands no more requests to this worker; those that it has continue.
    pub fn withdraw(self: &Arc<Self>, id: WorkerId) {
        self.workers.rcu(|workers| {
            for worker in workers.iter().filter(|worker| worker.id == id) {
                worker.mark_lost();
            }
            workers.iter().filter(|worker| worker.id != id).cloned().collect::<Vec<_>>()
        });
        // Requests that wait for it wait for any worker now.
        if !self.queue.is_empty() {
            self.hand_out();
        }
    }

    /// Notes that the application does not run and it makes no sense to wait for it: requests are answered 503 with
    /// `Retry-After` of so many seconds, those that wait too. 0: it makes sense again. `failure` is shown to
    /// browsers while a developer works on the application.
    pub fn set_failing(&self, retry_after_seconds: u32, failure: Option<String>) {
        self.failure.store(Arc::new(failure));
        self.retry_after.store(retry_after_seconds, Ordering::SeqCst);
        if retry_after_seconds > 0 {
            // Their tasks wake without the lock.
            let waiting = self.queue.lock().take_all();
            drop(waiting);
        }
    }

    /// Seconds after which a client should try again, while the application fails.
    pub fn failing(&self) -> Option<u32> {
        Some(self.retry_after.load(Ordering::Relaxed)).filter(|seconds| *seconds > 0)
    }

    /// The message that browsers see while the application fails.
    pub fn failure(&self) -> arc_swap::Guard<Arc<Option<String>>> {
        self.failure.load()
    }

    /// Sets how many workers are wanted: they have the indexes below this number, and their successors after them.
    pub fn set_worker_count(&self, count: usize) {
        self.worker_count.store(count, Ordering::Relaxed);
    }

    /// How many workers are wanted.
    pub fn worker_count(&self) -> usize {
        self.worker_count.load(Ordering::Relaxed)
    }

    /// The workers that requests are handed to.
    pub fn workers(&self) -> Arc<Vec<Arc<Worker>>> {
        self.workers.load_full()
    }

    /// The worker with this id, while requests are handed to it.
    pub fn worker(&self, id: WorkerId) -> Option<Arc<Worker>> {
        self.workers.load().iter().find(|worker| worker.id == id).cloned()
    }

    /// Whether a worker serves.
    pub fn has_workers(&self) -> bool {
        !self.workers.load().is_empty()
    }

    /// How late the event loop is of the worker that the affinity leads to; else of the one that is late the least: a
    /// request goes to the worker that has the fewest requests, and late ones have more. Zero where none serves.
    pub fn lag(&self, now: Instant, affinity: Affinity) -> Duration {
        self.least_late(affinity, |worker| worker.lag(now)).unwrap_or_default()
    }

    /// The same as the worker reported it last, not smoothed; `None` where none reports it.
    pub fn reported_lag(&self, now: Instant, affinity: Affinity) -> Option<Duration> {
        self.least_late(affinity, |worker| worker.reported_lag(now)).flatten()
    }

    fn least_late<T: Ord>(&self, affinity: Affinity, lag: impl Fn(&Worker) -> T) -> Option<T> {
        let index = self.index_for(affinity);
        let workers = self.workers.load();
        let serving = || workers.iter().filter(|worker| !worker.is_withdrawn());
        let least_of =
            |index| serving().filter(|worker| worker.index == index).map(|worker| lag(worker)).min();
        index.and_then(least_of).or_else(|| serving().map(|worker| lag(worker)).min())
    }

    /// Requests that wait for a worker.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Requests that wait and whose client has not gone; looks at each.
    pub fn waiting(&self) -> usize {
        self.queue.lock().open()
    }

    /// Takes a slot at a worker, or joins the queue: at the worker that the affinity leads to; without one, or where
    /// that worker does not serve, at the one with the fewest requests. `refused_by` is taken only where no other has
    /// room.
    pub fn choose(self: &Arc<Self>, turn: usize, refused_by: Option<WorkerId>, affinity: Affinity) -> Choice {
        let index = self.index_for(affinity);
        if self.queue.is_empty()
            && let Some(worker) = self.take_slot_at(index, turn, refused_by)
        {
            return Choice::Now(worker);
        }
        if let Some(seconds) = self.failing() {
            return Choice::Failing(seconds);
        }
        let (sender, receiver) = oneshot::channel();
        let ticket = {
            let mut queue = self.queue.lock_to_wait();
            // Requests that wait for a worker that is full do not hold up those that may go elsewhere.
            if !queue.is_ahead_of(index)
                && let Some(worker) = self.take_slot_at(index, turn, refused_by)
            {
                return Choice::Now(worker);
            }
            if !queue.has_room(index, self.app.queue as usize) {
                // Requests whose client has gone make room, then one whose client may have.
                queue.retain_open();
                let has_room = |queue: &Queue<Grant>| queue.has_room(index, self.app.queue as usize);
                if !(has_room(&queue) || (queue.drop_half_closed() && has_room(&queue))) {
                    return Choice::QueueFull;
                }
            }
            queue.push(index, sender)
        };
        // A slot may have become free before its thread could see that this request waits.
        self.hand_out();
        Choice::Later(receiver, ticket)
    }

    /// Notes that the client of a request that waits has closed its sending side, and may have left: in a full queue
    /// such a request makes room for another.
    pub fn half_closed(&self, ticket: Ticket) {
        self.queue.lock().half_closed(ticket);
    }

    /// Requests that its workers take at a time.
    pub fn slots(&self) -> u64 {
        self.workers.load().iter().map(|worker| worker.concurrency as u64).sum()
    }

    /// Frees a slot: a request at this worker is over, or waits for its client.
    pub fn give_back(self: &Arc<Self>, worker: &Worker) {
        worker.lower();
        self.hand_out_if_wanted();
    }

    fn hand_out_if_wanted(self: &Arc<Self>) {
        if !self.queue.is_empty() {
            self.hand_out();
        }
    }

    /// Gives free slots to the requests that wait, first come first served; one that waits for a certain worker holds
    /// up no other.
    fn hand_out(self: &Arc<Self>) {
        while !self.queue.is_empty() {
            let Some((waiting, worker)) = self.next_pair() else { return };
            let grant = Grant { pool: Arc::clone(self), worker: Some(worker) };
            if let Err(mut refused) = waiting.send(grant) {
                // Its client has gone; dropping the grant would come back here.
                if let Some(worker) = refused.worker.take() {
                    worker.lower();
                }
            }
        }
    }

    /// Takes the first request out of the queue for which there is a slot, with that slot.
    fn next_pair(&self) -> Option<(oneshot::Sender<Grant>, Arc<Worker>)> {
        self.queue.lock().take_first(|index| self.take_slot_at(index, 0, None))
    }

    /// Where an affinity leads now; `None`: anywhere.
    fn index_for(&self, affinity: Affinity) -> Option<WorkerIndex> {
        match affinity {
            Affinity::Any => None,
            Affinity::Worker(index) => Some(index),
            Affinity::Hash(hash) => {
                let workers = self.workers.load();
                let serving = workers.iter().filter(|worker| !worker.is_withdrawn());
                serving.map(|worker| worker.index).max_by_key(|index| rendezvous(hash, index.0))
            }
        }
    }

    /// Raises the counter of the worker with this index, if it has room; of any, where no index is given or no worker
    /// with it serves.
    fn take_slot_at(
        &self,
        index: Option<WorkerIndex>,
        turn: usize,
        refused_by: Option<WorkerId>,
    ) -> Option<Arc<Worker>> {
        if let Some(index) = index {
            let workers = self.workers.load();
            // While a worker is replaced two have its index; the newer one stays.
            let mut newest_first = workers.iter().rev();
            let is_it = |worker: &&Arc<Worker>| worker.index == index && refused_by != Some(worker.id);
            while let Some(worker) = newest_first.find(is_it) {
                match worker.raise() {
                    Raised::Yes => return Some(Arc::clone(worker)),
                    Raised::Full => return None,
                    Raised::Withdrawn => {}
                }
            }
        }
        self.take_slot(turn, refused_by)
    }

    /// Raises the counter of the worker with the fewest requests, if one has room.
    fn take_slot(&self, turn: usize, refused_by: Option<WorkerId>) -> Option<Arc<Worker>> {
        let workers = self.workers.load();
        // A round that fails means that another thread took a slot or freed one in between.
        loop {
            let count = workers.len();
            let in_turn = (0..count).filter_map(|step| workers.get((turn + step) % count));
            let serving = in_turn.filter(|worker| !worker.is_withdrawn());
            let (fewest, worker) =
                serving.map(|worker| (worker.in_flight(), worker)).min_by_key(|(in_flight, worker)| {
                    (*in_flight >= worker.concurrency, refused_by == Some(worker.id), *in_flight)
                })?;
            if fewest >= worker.concurrency {
                return None;
            }
            match worker.raise_from(fewest) {
                Some(Raised::Yes) => return Some(Arc::clone(worker)),
                Some(Raised::Full | Raised::Withdrawn) | None => {}
            }
        }
    }
}

impl SlotHolder for Pool {
    fn is_wanted(&self) -> bool {
        self.queued() > 0
    }

    fn capacity(&self) -> u64 {
        self.slots()
    }

    fn slot_released(self: Arc<Self>) {
        self.hand_out_if_wanted();
    }
}

impl Grant {
    /// The worker; its counter stays raised.
    pub fn into_worker(mut self) -> Option<Arc<Worker>> {
        self.worker.take()
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            self.pool.give_back(&worker);
        }
    }
}

#[cfg(test)]
mod tests;
