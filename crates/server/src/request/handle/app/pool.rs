//! The workers of one application, as requests see them: who serves, who has room, who waits.
//!
//! Bounded join-shortest-queue over a central queue: a worker is handed at most `concurrency` requests,
//! the rest waits here, where it can still go to any of them and survives the death of all. Shared by
//! all cores; the common way of a request writes one counter of one worker. Starts and stops nobody:
//! that is `control/supervise/`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use onehop_config::checked::{App, AppAddress};
use tokio::sync::oneshot;

use crate::request::core::Padded;

/// The workers of one application.
pub struct Pool {
    /// What it runs as; the bounds of requests among it.
    pub app: Arc<App>,
    workers: ArcSwap<Vec<Arc<Worker>>>,
    queue: Mutex<VecDeque<oneshot::Sender<Grant>>>,
    /// Length of the queue, so that nobody locks it to find it empty. Changed only by who has locked it.
    queued: AtomicUsize,
    /// Seconds after which asking again makes sense; 0 while the application is well.
    retry_after: AtomicU32,
    /// What a browser is shown instead of a 503 while the application fails and is being worked on.
    failure: ArcSwap<Option<String>>,
}

/// One process, as requests see it.
pub struct Worker {
    /// Unique in the life of the server.
    pub id: WorkerId,
    /// How it is spoken to.
    pub transport: Transport,
    /// Requests that it was handed and has not finished.
    in_flight: Padded<AtomicUsize>,
    /// Requests that it was ever handed.
    begun: AtomicU64,
    /// It takes no more requests.
    is_withdrawn: AtomicBool,
    /// Where cores report what happens to its lanes; never blocks.
    report: Report,
}

/// Unique in the life of the server; grows with every start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u64);

/// How a worker is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// The worker protocol, on one lane for each core.
    Lanes,
    /// HTTP/1.1.
    Http {
        /// Where it listens.
        address: AppAddress,
        /// Who must listen there, if it is a Unix socket: the program may put a link to any other in its place,
        /// and must not reach with the server's rights what it cannot reach with its own. `None` where it has
        /// the server's rights, or is somebody else's.
        uid: Option<u32>,
    },
}

/// Receives what happens to a worker's lanes.
pub type Report = Arc<dyn Fn(WorkerId, LaneReport) + Send + Sync>;

/// What happens to a worker's lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaneReport {
    /// A core serves it from now on.
    Attached {
        /// The core.
        core: usize,
    },
    /// It is of no more use; the worker has to be replaced.
    Lost {
        /// The core.
        core: usize,
        /// For a person.
        reason: String,
        /// The worker broke the protocol; else its end of the lane is gone.
        is_broken: bool,
    },
}

/// A request's place at a worker, on the way to the core that asked for it. Dropped, it is free again.
pub(crate) struct Grant {
    pool: Arc<Pool>,
    worker: Option<Arc<Worker>>,
}

/// What comes of asking for a place.
pub(crate) enum Choice {
    /// This worker; its counter is raised already and has to be lowered by [`Pool::give_back`].
    Now(Arc<Worker>),
    /// It will be sent. A sender that is dropped means that the application has failed meanwhile.
    Later(oneshot::Receiver<Grant>),
    /// As many wait as may.
    QueueFull,
    /// The application does not run; ask again after so many seconds.
    Failing(u32),
}

impl Pool {
    /// An application without workers: requests wait until there is one.
    pub fn new(app: Arc<App>) -> Arc<Self> {
        Arc::new(Self {
            app,
            workers: ArcSwap::default(),
            queue: Mutex::default(),
            queued: AtomicUsize::new(0),
            retry_after: AtomicU32::new(0),
            failure: ArcSwap::default(),
        })
    }

    /// From now on requests may be handed to this worker. All of its lanes must be attached.
    pub fn admit(self: &Arc<Self>, worker: Arc<Worker>) {
        self.workers.rcu(|workers| {
            let mut workers = Vec::clone(workers);
            workers.push(Arc::clone(&worker));
            workers
        });
        self.set_failing(0, None);
        self.hand_out();
    }

    /// From now on no request is handed to this worker; what it has goes on.
    pub fn withdraw(&self, id: WorkerId) {
        self.workers.rcu(|workers| {
            for worker in workers.iter().filter(|worker| worker.id == id) {
                worker.is_withdrawn.store(true, Ordering::SeqCst);
            }
            workers.iter().filter(|worker| worker.id != id).cloned().collect::<Vec<_>>()
        });
    }

    /// The application does not run and it makes no sense to wait for it: requests are answered 503 with
    /// `Retry-After` of so many seconds, those that wait too. 0: it makes sense again. `failure` is shown to
    /// browsers while somebody works on the application.
    pub fn set_failing(&self, retry_after_seconds: u32, failure: Option<String>) {
        self.failure.store(Arc::new(failure));
        self.retry_after.store(retry_after_seconds, Ordering::SeqCst);
        if retry_after_seconds > 0 {
            let mut queue = self.lock_queue();
            let waiting = std::mem::take(&mut *queue);
            self.queued.store(0, Ordering::SeqCst);
            drop(queue);
            drop(waiting);
        }
    }

    /// What [`Pool::set_failing`] was told.
    pub fn failing(&self) -> Option<u32> {
        Some(self.retry_after.load(Ordering::Relaxed)).filter(|seconds| *seconds > 0)
    }

    /// What browsers are shown.
    pub fn failure(&self) -> arc_swap::Guard<Arc<Option<String>>> {
        self.failure.load()
    }

    /// The workers that requests are handed to.
    pub fn workers(&self) -> Arc<Vec<Arc<Worker>>> {
        self.workers.load_full()
    }

    /// Requests that wait for a worker.
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// The same without those whose client has gone; looks at each.
    pub(crate) fn waiting(&self) -> usize {
        self.lock_queue().iter().filter(|waiting| !waiting.is_closed()).count()
    }

    /// A place at the worker that has the fewest requests, or in the queue. `refused_by` is asked only where
    /// nobody else has room.
    pub(crate) fn choose(self: &Arc<Self>, turn: usize, refused_by: Option<WorkerId>) -> Choice {
        if self.queued.load(Ordering::SeqCst) == 0
            && let Some(worker) = self.take_place(turn, refused_by)
        {
            return Choice::Now(worker);
        }
        if let Some(seconds) = self.failing() {
            return Choice::Failing(seconds);
        }
        let (sender, receiver) = oneshot::channel();
        {
            let mut queue = self.lock_queue();
            if queue.len() >= self.app.queue as usize {
                // Those whose client has gone make room.
                queue.retain(|waiting| !waiting.is_closed());
                self.queued.store(queue.len(), Ordering::SeqCst);
                if queue.len() >= self.app.queue as usize {
                    return Choice::QueueFull;
                }
            }
            queue.push_back(sender);
            self.queued.store(queue.len(), Ordering::SeqCst);
        }
        // A place may have become free before anybody could see that somebody waits.
        self.hand_out();
        Choice::Later(receiver)
    }

    /// A request at this worker is over.
    pub(crate) fn give_back(self: &Arc<Self>, worker: &Worker) {
        worker.in_flight.0.fetch_sub(1, Ordering::SeqCst);
        if self.queued.load(Ordering::SeqCst) > 0 {
            self.hand_out();
        }
    }

    /// Gives free places to those who wait, first come first served.
    fn hand_out(self: &Arc<Self>) {
        while self.queued.load(Ordering::SeqCst) > 0 {
            let Some(worker) = self.take_place(0, None) else { return };
            let mut grant = Grant { pool: Arc::clone(self), worker: Some(worker) };
            loop {
                let Some(waiting) = self.next_waiting() else {
                    // Nobody after all; dropping a grant would come back here.
                    if let Some(worker) = grant.worker.take() {
                        worker.in_flight.0.fetch_sub(1, Ordering::SeqCst);
                    }
                    break;
                };
                match waiting.send(grant) {
                    Ok(()) => break,
                    // Its client has gone.
                    Err(refused) => grant = refused,
                }
            }
        }
    }

    /// Raises the counter of the worker with the fewest requests, if one has room.
    fn take_place(&self, turn: usize, refused_by: Option<WorkerId>) -> Option<Arc<Worker>> {
        let workers = self.workers.load();
        let bound = self.app.concurrency as usize;
        // A round that fails means that another thread got a place or gave one back in between.
        loop {
            let count = workers.len();
            let in_turn = (0..count).filter_map(|step| workers.get((turn + step) % count));
            let serving = in_turn.filter(|worker| !worker.is_withdrawn.load(Ordering::SeqCst));
            let (fewest, worker) =
                serving.map(|worker| (worker.in_flight(), worker)).min_by_key(|(in_flight, worker)| {
                    (*in_flight >= bound, refused_by == Some(worker.id), *in_flight)
                })?;
            if fewest >= bound {
                return None;
            }
            // Never above the bound, not even for an instant: who gives a place back would take that for
            // full and leave those who wait alone.
            let raised =
                worker.in_flight.0.compare_exchange(fewest, fewest + 1, Ordering::SeqCst, Ordering::SeqCst);
            if raised.is_ok() {
                // Whoever withdraws a worker looks at its counter afterwards: one of both sees the other.
                if worker.is_withdrawn.load(Ordering::SeqCst) {
                    worker.in_flight.0.fetch_sub(1, Ordering::SeqCst);
                    continue;
                }
                worker.begun.fetch_add(1, Ordering::Relaxed);
                return Some(Arc::clone(worker));
            }
        }
    }

    /// Takes the first one out of the queue. The length is only changed under the lock, so that it is the queue's.
    fn next_waiting(&self) -> Option<oneshot::Sender<Grant>> {
        let mut queue = self.lock_queue();
        let waiting = queue.pop_front();
        self.queued.store(queue.len(), Ordering::SeqCst);
        waiting
    }

    fn lock_queue(&self) -> std::sync::MutexGuard<'_, VecDeque<oneshot::Sender<Grant>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Worker {
    /// A process that is ready.
    pub fn new(id: WorkerId, transport: Transport, report: Report) -> Arc<Self> {
        Arc::new(Self {
            id,
            transport,
            in_flight: Padded(AtomicUsize::new(0)),
            begun: AtomicU64::new(0),
            is_withdrawn: AtomicBool::new(false),
            report,
        })
    }

    /// Requests that it has.
    pub fn in_flight(&self) -> usize {
        self.in_flight.0.load(Ordering::SeqCst)
    }

    /// Requests that it was ever handed.
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Whether it takes no more requests.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.is_withdrawn.load(Ordering::Relaxed)
    }

    /// It is known here that it is gone, before everybody is told: nobody is handed to it any more.
    pub(crate) fn mark_lost(&self) {
        self.is_withdrawn.store(true, Ordering::SeqCst);
    }

    /// Tells the supervisor.
    pub(crate) fn report(&self, report: LaneReport) {
        (self.report)(self.id, report);
    }
}

impl Grant {
    /// The worker; its counter stays raised.
    pub(crate) fn into_worker(mut self) -> Option<Arc<Worker>> {
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
