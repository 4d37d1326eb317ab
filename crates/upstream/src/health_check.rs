//! Active health checks, on one thread for the whole process, however many cores there are.
//!
//! One task for each upstream and settings; what directives have in common is checked once. A task stays over reloads for
//! as long as a directive wants its result, and so does what it has found. Never uses a connection of a pool: each check
//! makes a new connection, as the next client would.

mod probe;

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onehop_config::checked::proxy::ActiveHealth;
use regex_lite::Regex;
use tokio::sync::{Semaphore, watch};
use tokio::task::{AbortHandle, LocalSet};
use tokio::time::{self, MissedTickBehavior};

use crate::health::{Active, Change};
use crate::limits::{
    HEALTH_CHECK_INTERVAL_MAX, HEALTH_CHECK_INTERVAL_MIN, HEALTH_CHECKS_AT_ONCE_MAX,
    HEALTH_CHECKS_FIRST_WITHIN,
};
use crate::peer::Peer;

/// What is checked, and for which sites.
pub struct HealthCheck {
    /// Receives the results; the same one is the same check.
    pub active: Arc<Active>,
    /// As configured.
    pub settings: ActiveHealth,
    /// What the response's body has to match.
    pub body: Option<Regex>,
    /// Where it goes: the upstream, or what stands for it.
    pub peer: Arc<Peer>,
    /// The `upstream` label.
    pub upstream: String,
    /// The sites that send requests there.
    pub sites: Vec<String>,
}

/// What a check has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HealthEvent {
    /// The upstream gets no more requests.
    Down {
        /// Its label.
        upstream: String,
        /// The sites that send requests there.
        sites: Vec<String>,
        /// What is wrong.
        reason: String,
    },
    /// The upstream gets requests again.
    Up {
        /// Its label.
        upstream: String,
        /// The sites that send requests there.
        sites: Vec<String>,
        /// How long it was down.
        after: Duration,
    },
}

/// Receives what checks have changed; never blocks.
pub type Report = Rc<dyn Fn(HealthEvent)>;

/// Every check that a directive wants.
pub type HealthChecks = Arc<[Arc<HealthCheck>]>;

impl HealthCheck {
    /// The same, also for other sites.
    pub fn also_for(&self, sites: &[String]) -> Self {
        let mut all = self.sites.clone();
        all.extend(sites.iter().filter(|site| !self.sites.contains(site)).cloned());
        Self {
            active: Arc::clone(&self.active),
            settings: self.settings.clone(),
            body: self.body.clone(),
            peer: Arc::clone(&self.peer),
            upstream: self.upstream.clone(),
            sites: all,
        }
    }
}

/// Runs the checks until the sender is dropped.
pub async fn run(mut wanted: watch::Receiver<HealthChecks>, report: Report) {
    let (tasks, turns) = (LocalSet::new(), Rc::new(Semaphore::new(HEALTH_CHECKS_AT_ONCE_MAX)));
    let mut running: Vec<(Arc<Active>, AbortHandle)> = Vec::new();
    tasks
        .run_until(async {
            loop {
                let checks = Arc::clone(&wanted.borrow_and_update());
                running.retain(|(active, task)| {
                    let is_wanted = checks.iter().any(|check| Arc::ptr_eq(&check.active, active));
                    if !is_wanted {
                        task.abort();
                    }
                    is_wanted
                });
                for (number, check) in checks.iter().enumerate() {
                    if !running.iter().any(|(active, _)| Arc::ptr_eq(active, &check.active)) {
                        let turn = Turn { number, of: checks.len() };
                        let (wanted, report) = (wanted.clone(), Rc::clone(&report));
                        let task = repeat(Arc::clone(check), turn, Rc::clone(&turns), wanted, report);
                        let task = tokio::task::spawn_local(task).abort_handle();
                        running.push((Arc::clone(&check.active), task));
                    }
                }
                if wanted.changed().await.is_err() {
                    return;
                }
            }
        })
        .await;
}

/// When a check starts, so that not all run at the same moment.
#[derive(Clone, Copy)]
struct Turn {
    number: usize,
    of: usize,
}

impl Turn {
    /// Its share of a time.
    fn share(self, time: Duration) -> Duration {
        let number = u32::try_from(self.number).unwrap_or(u32::MAX);
        (time / u32::try_from(self.of).unwrap_or(u32::MAX).max(1)).saturating_mul(number)
    }
}

async fn repeat(
    check: Arc<HealthCheck>,
    turn: Turn,
    turns: Rc<Semaphore>,
    wanted: watch::Receiver<HealthChecks>,
    report: Report,
) {
    let interval = check.settings.interval.clamp(HEALTH_CHECK_INTERVAL_MIN, HEALTH_CHECK_INTERVAL_MAX);
    let start = time::Instant::now();
    // An upstream that is dead at the start should not be found out after an interval only.
    let first = start + turn.share(interval.min(HEALTH_CHECKS_FIRST_WITHIN));
    let mut second = start + turn.share(interval);
    if second <= first {
        second += interval;
    }
    time::sleep_until(first).await;
    once(&check, &turns, &wanted, &report).await;
    let mut ticks = time::interval_at(second, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        once(&check, &turns, &wanted, &report).await;
    }
}

async fn once(
    check: &HealthCheck,
    turns: &Semaphore,
    wanted: &watch::Receiver<HealthChecks>,
    report: &Report,
) {
    // Never closed.
    let Ok(_turn) = turns.acquire().await else { return };
    let found = match time::timeout(check.settings.timeout, probe::probe(check)).await {
        Ok(found) => found,
        Err(_) => Err(format!("no answer within {:?}", check.settings.timeout)),
    };
    let settings = &check.settings;
    let reason = found.as_ref().err().cloned();
    let Some(change) = check.active.found(found, settings.passes, settings.fails, Instant::now()) else {
        return;
    };
    // A reload may have changed whose upstream it is.
    let newest = wanted.borrow().iter().find(|other| Arc::ptr_eq(&other.active, &check.active)).cloned();
    let sites = newest.map_or_else(|| check.sites.clone(), |newest| newest.sites.clone());
    let upstream = check.upstream.clone();
    report(match change {
        Change::Down => HealthEvent::Down { upstream, sites, reason: reason.unwrap_or_default() },
        Change::Up(after) => HealthEvent::Up { upstream, sites, after },
    });
}
