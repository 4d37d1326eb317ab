//! What the rest of the server sees of an application: a copy that its owner keeps up to date.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use onehop_workers::{Pool, Worker, WorkerId};
use tokio::time::Instant;

use crate::limits::WORKER_LAG_SETTLED;
use crate::status::{AppStatus, WorkerStatus};

/// A copy of an application's state. Locked for moments only.
#[derive(Clone, Default)]
pub(crate) struct View {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    wanted: usize,
    failures: u64,
    reason: Option<String>,
    members: BTreeMap<WorkerId, (Member, Health)>,
}

/// A worker.
pub(crate) struct Member {
    pub(crate) pid: u32,
    pub(crate) state: State,
    pub(crate) started: Instant,
    pub(crate) worker: Option<Arc<Worker>>,
}

#[derive(Default, Clone, Copy)]
struct Health {
    resident_bytes: u64,
    lag: Duration,
}

/// The state of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Starting,
    Serving,
    Draining,
    Stuck,
    /// It is ending by itself, and is about to report how.
    Ending,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Starting => "starting",
            State::Serving => "serving",
            State::Draining | State::Ending => "draining",
            State::Stuck => "stuck",
        }
    }
}

impl View {
    pub(crate) fn show(&self, wanted: usize, members: impl Iterator<Item = (WorkerId, Member)>) {
        let mut inner = self.lock();
        inner.wanted = wanted;
        let before = std::mem::take(&mut inner.members);
        let health = |id: &WorkerId| before.get(id).map(|(_, health)| *health).unwrap_or_default();
        inner.members = members.map(|(id, member)| (id, (member, health(&id)))).collect();
    }

    pub(crate) fn health(&self, id: WorkerId, resident_bytes: u64, lag: Duration) {
        if let Some((_, health)) = self.lock().members.get_mut(&id) {
            *health = Health { resident_bytes, lag };
        }
    }

    /// Why the application fails, if it does.
    pub(crate) fn fails(&self, reason: Option<String>) {
        self.lock().reason = reason;
    }

    /// A worker ended although it was wanted.
    pub(crate) fn failed(&self) {
        self.lock().failures += 1;
    }

    pub(crate) fn status(&self, pool: &Pool) -> AppStatus {
        let inner = self.lock();
        let serves = inner.members.values().any(|(member, _)| member.state == State::Serving);
        let state = match (serves, &inner.reason) {
            (true, _) => "serving",
            (false, Some(_)) => "failing",
            (false, None) => "starting",
        };
        AppStatus {
            app: pool.app.name.clone(),
            state,
            reason: inner.reason.clone(),
            wanted: inner.wanted,
            queued: pool.queued(),
            failures: inner.failures,
            workers: inner.members.values().map(|(member, health)| worker(member, *health)).collect(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn worker(member: &Member, health: Health) -> WorkerStatus {
    let unanswered = member.worker.as_ref().and_then(|worker| worker.unanswered(Instant::now().into_std()));
    let lag = health.lag.max(unanswered.filter(|age| *age >= WORKER_LAG_SETTLED).unwrap_or_default());
    WorkerStatus {
        pid: member.pid,
        state: member.state.name(),
        protocol: member.worker.as_ref().map(|worker| worker.transport.name()),
        in_flight: member.worker.as_ref().map_or(0, |worker| worker.in_flight()),
        concurrency: member.worker.as_ref().map(|worker| worker.concurrency),
        requests: member.worker.as_ref().map_or(0, |worker| worker.started()),
        age_seconds: member.started.elapsed().as_secs(),
        resident_bytes: health.resident_bytes,
        lag_ms: lag.as_secs_f64() * 1_000.0,
    }
}
