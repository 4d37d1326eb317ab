//! Active health: asks upstreams how they are, on one thread for the whole process, however many cores there are.
//!
//! One task for each upstream and settings; what directives have in common is asked once. A task stays over reloads for
//! as long as somebody wants its answer, and so does what it has found. Never speaks to a client, and never uses a
//! connection of the pool: a question is a new connection each time, as it is for the next client.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onehop_config::checked::proxy::ActiveHealth;
use regex_lite::Regex;
use tokio::sync::{Semaphore, watch};
use tokio::task::{AbortHandle, LocalSet};
use tokio::time::{self, MissedTickBehavior};

use super::ask;
use crate::control::events::{Event, EventSink};
use crate::limits::{
    PROXY_QUESTION_INTERVAL_MAX, PROXY_QUESTION_INTERVAL_MIN, PROXY_QUESTIONS_AT_ONCE_MAX,
    PROXY_QUESTIONS_FIRST_WITHIN,
};
use crate::request::handle::proxy::health::{Active, Change};
use onehop_upstream::peer::Peer;

/// What is asked, of whom, for whom.
pub(super) struct Question {
    /// Who learns the answer; the same one is the same question.
    pub(super) active: Arc<Active>,
    pub(super) settings: ActiveHealth,
    pub(super) body: Option<Regex>,
    /// Whom it goes to: the upstream itself, or who stands for it. Its connections are none of the pool's.
    pub(super) peer: Arc<Peer>,
    /// The `upstream` label.
    pub(super) upstream: String,
    /// The sites that send requests there.
    pub(super) sites: Vec<String>,
}

/// Every question that somebody wants to be asked.
pub(super) type Questions = Arc<[Arc<Question>]>;

/// Asks until there is nobody left to tell it what to ask.
pub(super) async fn run(mut wanted: watch::Receiver<Questions>, events: EventSink) {
    let (tasks, turns) = (LocalSet::new(), Rc::new(Semaphore::new(PROXY_QUESTIONS_AT_ONCE_MAX)));
    let mut running: Vec<(Arc<Active>, AbortHandle)> = Vec::new();
    tasks
        .run_until(async {
            loop {
                let questions = Arc::clone(&wanted.borrow_and_update());
                running.retain(|(active, task)| {
                    let is_wanted = questions.iter().any(|question| Arc::ptr_eq(&question.active, active));
                    if !is_wanted {
                        task.abort();
                    }
                    is_wanted
                });
                for (number, question) in questions.iter().enumerate() {
                    if !running.iter().any(|(active, _)| Arc::ptr_eq(active, &question.active)) {
                        let place = Place { number, of: questions.len() };
                        let (wanted, events) = (wanted.clone(), Arc::clone(&events));
                        let task =
                            again_and_again(Arc::clone(question), place, Rc::clone(&turns), wanted, events);
                        let task = tokio::task::spawn_local(task).abort_handle();
                        running.push((Arc::clone(&question.active), task));
                    }
                }
                if wanted.changed().await.is_err() {
                    return;
                }
            }
        })
        .await;
}

/// Whose turn is when, so that not all are asked at the same moment.
#[derive(Clone, Copy)]
struct Place {
    number: usize,
    of: usize,
}

impl Place {
    /// Its share of a time.
    fn share(self, time: Duration) -> Duration {
        let number = u32::try_from(self.number).unwrap_or(u32::MAX);
        (time / u32::try_from(self.of).unwrap_or(u32::MAX).max(1)).saturating_mul(number)
    }
}

async fn again_and_again(
    question: Arc<Question>,
    place: Place,
    turns: Rc<Semaphore>,
    wanted: watch::Receiver<Questions>,
    events: EventSink,
) {
    let interval = question.settings.interval.clamp(PROXY_QUESTION_INTERVAL_MIN, PROXY_QUESTION_INTERVAL_MAX);
    let start = time::Instant::now();
    // An upstream that is dead at the start should not be found out after an interval only.
    let first = start + place.share(interval.min(PROXY_QUESTIONS_FIRST_WITHIN));
    let mut second = start + place.share(interval);
    if second <= first {
        second += interval;
    }
    time::sleep_until(first).await;
    once(&question, &turns, &wanted, &events).await;
    let mut ticks = time::interval_at(second, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        once(&question, &turns, &wanted, &events).await;
    }
}

async fn once(
    question: &Question,
    turns: &Semaphore,
    wanted: &watch::Receiver<Questions>,
    events: &EventSink,
) {
    // Never closed.
    let Ok(_turn) = turns.acquire().await else { return };
    let found = match time::timeout(question.settings.timeout, ask::ask(question)).await {
        Ok(found) => found,
        Err(_) => Err(format!("no answer within {:?}", question.settings.timeout)),
    };
    let settings = &question.settings;
    let reason = found.as_ref().err().cloned();
    let Some(change) = question.active.found(found, settings.passes, settings.fails, Instant::now()) else {
        return;
    };
    // A reload may have changed whose upstream it is.
    let newest = wanted.borrow().iter().find(|other| Arc::ptr_eq(&other.active, &question.active)).cloned();
    let sites = newest.map_or_else(|| question.sites.clone(), |newest| newest.sites.clone());
    let upstream = question.upstream.clone();
    events(match change {
        Change::Down => Event::UpstreamDown { upstream, sites, reason: reason.unwrap_or_default() },
        Change::Up(after) => Event::UpstreamUp { upstream, sites, after },
    });
}
