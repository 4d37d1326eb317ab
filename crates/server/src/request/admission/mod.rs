//! Admission: the permits that a request acquires from the limits on its route, before it calls an application or an
//! upstream or reads the disk. What is answered from memory acquires none.
//!
//! A request acquires them outermost first: the whole server's, its site's, those of its routes, its application's own.
//! [`Limiters`] are the limiters on a route, [`Permits`] what a request holds of them. The limiters themselves are in
//! `onehop_limits`; this is their wiring: which of them a request meets, and how late the event loop of the application is
//! that would answer. [`rate`] counts requests per client.
//!
//! Never answers.

pub mod rate;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onehop_config::checked::limit::{Limit, Priority};
use onehop_connection::{Ended, Extent};
use onehop_limits::concurrency::{self, Acquire, ConcurrencyLimiter, QueuePosition};
use onehop_limits::event_loop_lag;
use onehop_message::error::{HttpError, LimitCause};
use onehop_workers::pool::{Choice, Grant, Ticket};
use onehop_workers::{Affinity, Pool};
use tokio::sync::oneshot;

use crate::limits::SITE_LIMITS_MAX;
use onehop_workers::limits::APP_RETRY_AFTER_SECONDS;

/// The bit of the application's own limiter, which comes last.
const OWN: u32 = SITE_LIMITS_MAX as u32;

/// The limiters of one site, in the order in which requests acquire permits from them.
#[derive(Default)]
pub struct SiteLimiters {
    all: Box<[Arc<ConcurrencyLimiter>]>,
    /// Those that apply to every request of the site, as bits.
    always: u64,
    /// One of them bounds how late an application's event loop is.
    uses_lag: bool,
}

/// The limits that a request's routes name, and its priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestLimits {
    /// By number among its site's limiters, as bits.
    limits: u64,
    priority: Priority,
}

/// The limiters on a request's route, in their order.
#[derive(Clone, Copy)]
pub(crate) struct Limiters<'g> {
    site: &'g [Arc<ConcurrencyLimiter>],
    /// The application that is called, if it is one.
    pool: Option<&'g Arc<Pool>>,
    wanted: u64,
    priority: Priority,
    /// The worker to which it goes, as far as that matters.
    affinity: Affinity,
}

/// The permits that a request holds. Dropped, it releases them.
pub(crate) struct Permits<'g> {
    limiters: Limiters<'g>,
    /// By number of the limiter, as bits.
    held: u64,
    core: usize,
    /// Those that it has released for as long as its client keeps it waiting.
    paused: u64,
    /// Since when it holds all of them; `None` too once it is known how long its response took.
    since: Option<Instant>,
    /// Requests that were then in flight at the innermost adaptive limiter; 0 where there is none.
    in_flight_at_start: u32,
}

/// The result of asking for permits.
pub(crate) enum Acquired<'g> {
    /// The request holds all of them.
    Admitted(Permits<'g>),
    /// It waits for one.
    Queued(Queued<'g>),
    /// It is rejected, by this limit where it is one.
    Rejected(HttpError, Option<&'g Arc<Limit>>),
}

/// A request that waits for a permit; it holds none of the limiters before that one.
pub(crate) struct Queued<'g> {
    permits: Permits<'g>,
    number: u32,
    waits_for: WaitsFor<'g>,
}

/// What a request waits for.
enum WaitsFor<'g> {
    /// A permit.
    Permit(concurrency::Queued<'g>),
    /// A worker, in the application's own queue: without one there is no latency from which a bound could be learned.
    Worker(&'g Arc<Pool>, oneshot::Receiver<Grant>, Ticket),
}

impl SiteLimiters {
    /// Takes limiters in their order, at most [`SITE_LIMITS_MAX`]. The first one applies to every request if `has_server`
    /// says that it is the whole server's.
    pub fn new(all: Vec<Arc<ConcurrencyLimiter>>, has_server: bool) -> Self {
        let uses_lag = all.iter().any(|limiter| limiter.limit().lag.is_some());
        Self { all: all.into(), always: u64::from(has_server), uses_lag }
    }
}

impl RequestLimits {
    /// Adds the limit with this number.
    pub(crate) fn add(&mut self, number: u8) {
        self.limits |= 1u64.checked_shl(u32::from(number)).unwrap_or(0);
    }

    /// Sets the priority at all limiters.
    pub(crate) fn set_priority(&mut self, priority: Priority) {
        self.priority = priority;
    }
}

impl<'g> Limiters<'g> {
    /// The limiters of this site for a request that calls an application, or something else.
    pub(crate) fn new(site: &'g SiteLimiters, limits: RequestLimits, pool: Option<&'g Arc<Pool>>) -> Self {
        // While an application fails, the response is its own error, which needs no permit. A bound that the configuration
        // names always holds.
        let has_own = pool.is_some_and(|pool| {
            pool.limiter.as_ref().is_some_and(|limiter| !limiter.is_adaptive() || pool.failing().is_none())
        });
        let wanted = limits.limits | site.always | (u64::from(has_own) << OWN);
        Self { site: &site.all, pool, wanted, priority: limits.priority, affinity: Affinity::Any }
    }

    /// The same for a request that prefers one worker, whose lag counts then. `affinity` is only called where a lag counts.
    pub(crate) fn with_affinity(self, site: &SiteLimiters, affinity: impl FnOnce(&Pool) -> Affinity) -> Self {
        let of_pool = |pool: &&Arc<Pool>| {
            let own = pool.limiter.as_ref().is_some_and(|limiter| limiter.limit().lag.is_some());
            pool.affinity.is_some() && (own || site.uses_lag)
        };
        let affinity = self.pool.filter(of_pool).map_or(Affinity::Any, |pool| affinity(pool));
        Self { affinity, ..self }
    }

    /// The lowest bound of these limiters, if one has any.
    pub(crate) fn places(&self) -> Option<u64> {
        let limiters = (0..=OWN).filter(|number| self.wanted & (1 << number) != 0);
        let bounds = limiters.filter_map(|number| self.limiter(number)).map(|limiter| limiter.bound());
        bounds.filter(|bound| *bound < u32::MAX).min().map(u64::from)
    }

    fn limiter(&self, number: u32) -> Option<&'g Arc<ConcurrencyLimiter>> {
        match number {
            OWN => self.pool?.limiter.as_ref(),
            number => self.site.get(number as usize),
        }
    }

    /// Whether the event loop of the application that would answer is later than this limit allows.
    fn is_late(&self, limit: &Limit, now: Instant) -> bool {
        let (Some(max), Some(pool)) = (limit.lag, self.pool) else { return false };
        let lag = pool.lag(now, self.affinity);
        lag > max && event_loop_lag::rejects(lag, max, fastrand::f64())
    }

    /// While no worker serves yet, requests wait in the application's queue, whatever queue and wait the limiter has: those
    /// that come during a start meet the adaptive bound when it is over, instead of the first worker all at once.
    fn wait_for_worker(
        &self,
        number: u32,
        limiter: &ConcurrencyLimiter,
    ) -> Option<Result<WaitsFor<'g>, HttpError>> {
        let pool = self.pool.filter(|pool| number == OWN && limiter.is_adaptive() && !pool.has_workers())?;
        match pool.choose(0, None, Affinity::Any) {
            // A worker has started in this moment.
            Choice::Now(worker) => {
                pool.give_back(&worker);
                None
            }
            Choice::Failing(_) => None,
            Choice::Later(grant, ticket) => Some(Ok(WaitsFor::Worker(pool, grant, ticket))),
            Choice::QueueFull => Some(Err(HttpError::AppQueueFull { retry_after: APP_RETRY_AFTER_SECONDS })),
        }
    }

    /// How late the event loop of the worker that would answer was at its last report, or is at least; `None` where no
    /// worker reports that.
    fn reported_lag(&self, now: Instant) -> Option<Duration> {
        self.pool?.reported_lag(now, self.affinity)
    }
}

impl<'g> Permits<'g> {
    /// Acquires all permits, if that is possible now.
    pub(crate) fn acquire(limiters: Limiters<'g>, core: usize, now: Instant) -> Acquired<'g> {
        Self { limiters, held: 0, paused: 0, core, since: None, in_flight_at_start: 0 }.acquire_missing(now)
    }

    /// No permits.
    pub(crate) fn none() -> Self {
        let (priority, affinity) = (Priority::Normal, Affinity::Any);
        let limiters = Limiters { site: &[], pool: None, wanted: 0, priority, affinity };
        Self { limiters, held: 0, paused: 0, core: 0, since: None, in_flight_at_start: 0 }
    }

    /// Acquires those of more limiters than were known at first; the request keeps what it holds.
    pub(crate) fn extend(mut self, limiters: Limiters<'g>) -> Acquired<'g> {
        self.limiters = limiters;
        self.acquire_missing(Instant::now())
    }

    /// How long the response takes is up to the client, and says nothing about the application.
    pub(crate) fn forget_time(&mut self) {
        self.since = None;
    }

    /// Whether others could use its permits.
    pub(crate) fn holds_any(&self) -> bool {
        self.held != 0
    }

    /// Releases the permits while the request waits for its client.
    pub(crate) fn pause(&mut self) {
        self.paused = self.held;
        self.release();
    }

    /// Counts the request again: its client continues.
    pub(crate) fn resume(&mut self) {
        self.held = std::mem::take(&mut self.paused);
        for limiter in self.innermost_first() {
            limiter.resume();
        }
    }

    /// Takes the permits back: the request waits for its client before it is admitted.
    fn undo(mut self, now: Instant) -> Limiters<'g> {
        let held = std::mem::take(&mut self.held);
        for number in (0..=OWN).filter(|number| held & (1 << number) != 0) {
            if let Some(limiter) = self.limiters.limiter(number) {
                limiter.cancel(now);
            }
        }
        self.limiters
    }

    /// The response's head is there. A response that may last for ever releases its permits.
    pub(crate) fn answered(&mut self, status: u16, lasts: bool) {
        // An application or an upstream rejects quickly, which is no sign that it could take more.
        if status >= 500 || status == 429 {
            self.since = None;
        }
        self.measure(false);
        if lasts {
            self.release();
        }
    }

    /// The call is over; `status` is that of a whole response.
    pub(crate) fn ended(&mut self, ended: Result<Ended, HttpError>, status: u16) {
        match ended {
            Ok(Ended::Complete) => self.answered(status, false),
            // The latency of the head was recorded.
            Ok(Ended::Sent | Ended::Broken(_) | Ended::Tunnelled) => {}
            Err(error) if error.is_of_overload() => self.measure(true),
            // How long a response would have taken is not known.
            Err(_) => self.since = None,
        }
    }

    fn acquire_missing(mut self, now: Instant) -> Acquired<'g> {
        loop {
            let missing = self.limiters.wanted & !self.held;
            let number = missing.trailing_zeros();
            let Some(limiter) = self.limiters.limiter(number).filter(|_| missing != 0) else {
                self.since = Some(now);
                let innermost = self.innermost_first().find(|limiter| limiter.is_adaptive());
                self.in_flight_at_start = innermost.map_or(0, |limiter| limiter.in_flight());
                return Acquired::Admitted(self);
            };
            if let Some(worker) = self.limiters.wait_for_worker(number, limiter) {
                self.cancel_before(number, now);
                return match worker {
                    Ok(waits_for) => Acquired::Queued(Queued { permits: self, number, waits_for }),
                    Err(error) => Acquired::Rejected(error, None),
                };
            }
            if self.limiters.is_late(limiter.limit(), now) {
                return Acquired::Rejected(limiter.reject(LimitCause::Lag, now), Some(limiter.limit()));
            }
            match limiter.acquire(self.limiters.priority, now, || self.limiters.reported_lag(now)) {
                Acquire::Admitted => self.held |= 1 << number,
                Acquire::Queued(queued) => {
                    self.cancel_before(number, now);
                    return Acquired::Queued(Queued {
                        permits: self,
                        number,
                        waits_for: WaitsFor::Permit(queued),
                    });
                }
                Acquire::Rejected(cause) => {
                    return Acquired::Rejected(limiter.reject(cause, now), Some(limiter.limit()));
                }
            }
        }
    }

    fn measure(&mut self, was_dropped: bool) {
        let Some(since) = self.since.take() else { return };
        let (mut now, mut in_flight_at_start) = (None, Some(self.in_flight_at_start));
        for limiter in self.innermost_first().filter(|limiter| limiter.is_adaptive()) {
            let now = *now.get_or_insert_with(Instant::now);
            let took = now.saturating_duration_since(since);
            let lag = || self.limiters.reported_lag(now);
            limiter.record(now, self.core, took, in_flight_at_start.take(), was_dropped, lag);
        }
    }

    /// The limiters of which it holds a permit, the innermost first.
    fn innermost_first(&self) -> impl Iterator<Item = &'g Arc<ConcurrencyLimiter>> + use<'g> {
        let (limiters, mut held) = (self.limiters, self.held);
        std::iter::from_fn(move || {
            let number = held.checked_ilog2()?;
            held &= !(1 << number);
            limiters.limiter(number)
        })
    }

    /// While queued, a request gives up the permits of outer limiters and reacquires them once admitted here; those acquired
    /// by then stay. So it queues at most once per limiter, the innermost first.
    fn cancel_before(&mut self, number: u32, now: Instant) {
        let before = self.held & ((1 << number) - 1);
        self.held &= !before;
        for number in (0..number).filter(|number| before & (1 << number) != 0) {
            if let Some(limiter) = self.limiters.limiter(number) {
                limiter.cancel(now);
            }
        }
    }

    fn release(&mut self) {
        for limiter in self.innermost_first() {
            limiter.release();
        }
        self.held = 0;
    }
}

/// The permits of a request that its handler and its response share.
pub(crate) struct SharedPermits<'g>(pub(crate) RefCell<Permits<'g>>);

impl SharedPermits<'_> {
    /// No permits.
    pub(crate) fn none() -> Self {
        Self(RefCell::new(Permits::none()))
    }
}

impl onehop_connection::Permits for SharedPermits<'_> {
    fn holds_any(&self) -> bool {
        self.0.borrow().holds_any()
    }

    fn pause(&self) {
        self.0.borrow_mut().pause();
    }

    fn resume(&self) {
        self.0.borrow_mut().resume();
    }

    fn response_started(&self, status: u16, extent: Extent) {
        self.0.borrow_mut().answered(status, extent == Extent::Stream);
    }
}

impl Drop for Permits<'_> {
    fn drop(&mut self) {
        self.release();
    }
}

/// The position of a waiting request in one of the queues.
#[derive(Clone, Copy)]
pub(crate) enum Position<'g> {
    InLimiter(QueuePosition<'g>),
    InPool(&'g Pool, Ticket),
}

impl Position<'_> {
    /// Notes that the client has closed its sending side, and may have left: under overload its request is the first to be
    /// rejected.
    pub(crate) fn half_closed(self) {
        match self {
            Position::InLimiter(position) => position.half_closed(),
            Position::InPool(pool, ticket) => pool.half_closed(ticket),
        }
    }
}

impl<'g> WaitsFor<'g> {
    fn position(&self) -> Position<'g> {
        match self {
            WaitsFor::Permit(queued) => Position::InLimiter(queued.position()),
            WaitsFor::Worker(pool, _, ticket) => Position::InPool(pool, *ticket),
        }
    }

    /// Waits; returns the permits that the request holds then, as bits.
    async fn over(self, number: u32, limiters: &Limiters<'_>) -> Result<u64, HttpError> {
        match self {
            WaitsFor::Permit(mut queued) => match queued.decided(|now| limiters.reported_lag(now)).await {
                Ok(()) => Ok(1 << number),
                Err(cause) => Err(queued.limiter().reject(cause, Instant::now())),
            },
            // The worker is given back at once: one is chosen when the request holds its permits.
            WaitsFor::Worker(pool, grant, _) => {
                match tokio::time::timeout(pool.app.queue_wait, grant).await {
                    Ok(Ok(_)) => Ok(0),
                    Ok(Err(_)) => {
                        let retry_after = pool.failing().unwrap_or(APP_RETRY_AFTER_SECONDS);
                        Err(HttpError::AppFailing { retry_after })
                    }
                    Err(_) => Err(HttpError::AppQueueTimeout { retry_after: APP_RETRY_AFTER_SECONDS }),
                }
            }
        }
    }
}

impl<'g> Acquired<'g> {
    /// The lowest bound of the request's limiters, if one has any.
    pub(crate) fn places(&self) -> Option<u64> {
        match self {
            Self::Admitted(permits) => permits.limiters.places(),
            Self::Queued(queued) => queued.permits.limiters.places(),
            Self::Rejected(..) => None,
        }
    }

    /// The limit that it waits for, or that rejects it.
    pub(crate) fn limit(&self) -> Option<&'g Arc<Limit>> {
        match self {
            Self::Admitted(_) => None,
            Self::Queued(queued) => Some(queued.permits.limiters.limiter(queued.number)?.limit()),
            Self::Rejected(_, limit) => *limit,
        }
    }

    /// Takes the permits of a request back that has to wait for its client first; the error if it is rejected.
    pub(crate) fn undo(self, now: Instant) -> Result<Limiters<'g>, HttpError> {
        match self {
            Self::Admitted(permits) => Ok(permits.undo(now)),
            Self::Queued(queued) => Ok(queued.permits.undo(now)),
            Self::Rejected(error, _) => Err(error),
        }
    }
}

impl<'g> Queued<'g> {
    /// Waits until the request is admitted or rejected. `gone` is called for each queue: it ends when the client has gone, and
    /// gets the request's position for when the client closes its sending side.
    pub(crate) async fn over(
        self,
        mut gone: impl AsyncFnMut(Position<'g>),
    ) -> Result<Permits<'g>, HttpError> {
        let mut queued = self;
        loop {
            let Queued { mut permits, number, waits_for } = queued;
            let (limiters, position) = (permits.limiters, waits_for.position());
            let held = tokio::select! {
                biased;
                held = waits_for.over(number, &limiters) => held?,
                () = gone(position) => return Err(HttpError::ClientGone),
            };
            permits.held |= held;
            queued = match permits.acquire_missing(Instant::now()) {
                Acquired::Admitted(permits) => return Ok(permits),
                Acquired::Queued(queued) => queued,
                Acquired::Rejected(error, _) => return Err(error),
            };
        }
    }
}

#[cfg(test)]
mod tests;
