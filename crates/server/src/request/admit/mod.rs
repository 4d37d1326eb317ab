//! Admission: of what comes, as much is let in as can be answered; the rest waits for a moment, or is refused at once.
//!
//! A request that waits for others (an application, an upstream, the disk) passes the gates that its way has gathered,
//! outermost first: the whole server's, its site's, those of its routes, its application's own. [`Pass`] is its way
//! through them and the guard of what it is in. [`gate`] is one bound, [`queue`] those who wait for it, [`drain`] says
//! when asking again makes sense, [`refusal`] what those are told that are not let in, [`adaptive`] finds a bound out,
//! [`lag`] is the rule for event loops that are late. Whoever asks too often is refused by [`rate`], whoever would answer.
//!
//! What is answered from memory meets no gate. Never answers, and knows neither applications nor upstreams but for
//! how late they are.

pub mod adaptive;
mod drain;
pub mod gate;
pub mod lag;
mod queue;
pub mod rate;
pub mod refusal;

use std::sync::Arc;
use std::time::{Duration, Instant};

use onehop_config::checked::limit::{Limit, Priority};
use onehop_message::error::{HttpError, LimitCause};
use tokio::sync::oneshot;

use super::handle::Ended;
use super::handle::app::pool::{self, Choice, Pool, Wish};
use crate::limits::{APP_RETRY_AFTER_SECONDS, SITE_LIMITS_MAX};
use gate::{Entry, Gate, Ticketed, Waiting};

/// The bit of the callee's own gate, which comes last.
const OWN: u32 = SITE_LIMITS_MAX as u32;

/// The gates of one site, in the order in which requests pass them.
#[derive(Default)]
pub struct Gates {
    all: Box<[Arc<Gate>]>,
    /// Those that every request of the site passes, as bits.
    always: u64,
    /// One of them asks how late an application is.
    asks_for_lag: bool,
}

/// What the way of a request has gathered: the gates that it is to pass, and what it is to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gathered {
    /// Bits of numbers among its site's gates.
    gates: u64,
    priority: Priority,
}

/// The gates that a request passes, in their order.
#[derive(Clone, Copy)]
pub(crate) struct Way<'g> {
    gates: &'g [Arc<Gate>],
    /// Who is called, if that is an application.
    pool: Option<&'g Arc<Pool>>,
    wanted: u64,
    priority: Priority,
    /// The worker to which it goes, as far as that matters.
    wish: Wish,
}

/// A request's place behind the gates that it has passed. Dropped, others have their turn.
pub(crate) struct Pass<'g> {
    way: Way<'g>,
    /// Those that it is in; as bits of its way.
    held: u64,
    core: usize,
    /// Those that it has left for as long as its client keeps it waiting.
    paused: u64,
    /// Since when it is in all of them; `None` too once it is known how long its answer took.
    since: Option<Instant>,
    /// How many were then in the innermost gate that finds its bound out; 0 where none does.
    crowd: u32,
}

/// What comes of asking to be let in.
pub(crate) enum Entrance<'g> {
    /// It is in.
    In(Pass<'g>),
    /// It has to wait.
    Later(Later<'g>),
    /// It is not let in.
    Shed(HttpError),
}

/// A request that waits before one of its gates; of those before it it is in none.
pub(crate) struct Later<'g> {
    pass: Pass<'g>,
    number: u32,
    waiting: Wait<'g>,
}

/// What it waits for.
enum Wait<'g> {
    /// For room in the gate.
    Room(Waiting<'g>),
    /// For a worker, in the application's own queue: without one there is nobody from whom a bound could be learned.
    Worker(&'g Arc<Pool>, oneshot::Receiver<pool::Grant>, pool::Ticket),
}

impl Gates {
    /// Gates in their order, at most [`SITE_LIMITS_MAX`]; every request passes the first one where `has_server` says
    /// that it is the whole server's.
    pub fn new(all: Vec<Arc<Gate>>, has_server: bool) -> Self {
        let asks_for_lag = all.iter().any(|gate| gate.limit.lag.is_some());
        Self { all: all.into(), always: u64::from(has_server), asks_for_lag }
    }
}

impl Gathered {
    /// The way leads through one more.
    pub(crate) fn add(&mut self, number: u8) {
        self.gates |= 1u64.checked_shl(u32::from(number)).unwrap_or(0);
    }

    /// What it is to those, and to all others.
    pub(crate) fn set_priority(&mut self, priority: Priority) {
        self.priority = priority;
    }
}

impl<'g> Way<'g> {
    /// The way of a request of this site (none: no gate), up to an application or to somebody else.
    pub(crate) fn new(site: Option<&'g Gates>, gathered: Gathered, pool: Option<&'g Arc<Pool>>) -> Self {
        let (gates, always) = site.map_or((&[][..], 0), |site| (&*site.all, site.always));
        // While an application fails its own answer is due, not a place. A bound that the file names always holds.
        let has_own = pool.is_some_and(|pool| {
            pool.gate.as_ref().is_some_and(|gate| !gate.is_adaptive() || pool.failing().is_none())
        });
        let wanted = gathered.gates | always | (u64::from(has_own) << OWN);
        Self { gates, pool, wanted, priority: gathered.priority, wish: Wish::Any }
    }

    /// The same for a request that goes to one worker: that one's lag counts. Asked only where some lag does.
    pub(crate) fn wishing(self, site: Option<&Gates>, wish: impl FnOnce(&Pool) -> Wish) -> Self {
        let of_pool = |pool: &&Arc<Pool>| {
            let own = pool.gate.as_ref().is_some_and(|gate| gate.limit.lag.is_some());
            pool.sticky.is_some() && (own || site.is_some_and(|site| site.asks_for_lag))
        };
        let wish = self.pool.filter(of_pool).map_or(Wish::Any, |pool| wish(pool));
        Self { wish, ..self }
    }

    /// How many requests its narrowest gate lets in, where one does not let in all.
    pub(crate) fn places(&self) -> Option<u64> {
        let gates = (0..=OWN).filter(|number| self.wanted & (1 << number) != 0);
        let bounds = gates.filter_map(|number| self.gate(number)).map(|gate| gate.bound());
        bounds.filter(|bound| *bound < u32::MAX).min().map(u64::from)
    }

    fn gate(&self, number: u32) -> Option<&'g Arc<Gate>> {
        match number {
            OWN => self.pool?.gate.as_ref(),
            number => self.gates.get(number as usize),
        }
    }

    /// Whether those who would answer are later than this limit allows.
    fn is_late(&self, limit: &Limit, now: Instant) -> bool {
        let (Some(max), Some(pool)) = (limit.lag, self.pool) else { return false };
        let lag = pool.lag(now, self.wish);
        lag > max && lag::refuses(lag, max, fastrand::f64())
    }

    /// Where no worker serves yet the application's queue waits for one, however long its own queue and wait are: what
    /// comes during a start meets the adaptive bound when it is over, and not all at once the first worker.
    fn wait_for_worker(&self, number: u32, gate: &Gate) -> Option<Result<Wait<'g>, HttpError>> {
        let pool = self.pool.filter(|pool| number == OWN && gate.is_adaptive() && !pool.has_workers())?;
        match pool.choose(0, None, Wish::Any) {
            // It has come in this moment.
            Choice::Now(worker) => {
                pool.give_back(&worker);
                None
            }
            Choice::Failing(_) => None,
            Choice::Later(grant, ticket) => Some(Ok(Wait::Worker(pool, grant, ticket))),
            Choice::QueueFull => Some(Err(HttpError::AppQueueFull { retry_after: APP_RETRY_AFTER_SECONDS })),
        }
    }

    /// How late the event loop of the worker that would answer was at its last report, or is at least; `None` where no
    /// worker reports that.
    fn reported_lag(&self, now: Instant) -> Option<Duration> {
        self.pool?.reported_lag(now, self.wish)
    }
}

impl<'g> Pass<'g> {
    /// Lets a request in, if that is possible now.
    pub(crate) fn ask(way: Way<'g>, core: usize, now: Instant) -> Entrance<'g> {
        Self { way, held: 0, paused: 0, core, since: None, crowd: 0 }.go_on(now)
    }

    /// A place behind nothing.
    pub(crate) fn nowhere() -> Self {
        let (priority, wish) = (Priority::Normal, Wish::Any);
        let way = Way { gates: &[], pool: None, wanted: 0, priority, wish };
        Self { way, held: 0, paused: 0, core: 0, since: None, crowd: 0 }
    }

    /// The request's way was longer than it had seemed; it keeps what it is in.
    pub(crate) fn go_further(mut self, way: Way<'g>) -> Entrance<'g> {
        self.way = way;
        self.go_on(Instant::now())
    }

    /// How long the answer takes is its client's doing, and says nothing of those who answer.
    pub(crate) fn forget_time(&mut self) {
        self.since = None;
    }

    /// Whether others could have its turn.
    pub(crate) fn holds_any(&self) -> bool {
        self.held != 0
    }

    /// The request has to wait for its client, and others have their turn meanwhile.
    pub(crate) fn pause(&mut self) {
        self.paused = self.held;
        self.leave();
    }

    /// Its client goes on.
    pub(crate) fn resume(&mut self) {
        self.held = std::mem::take(&mut self.paused);
        for gate in self.behind() {
            gate.come_back();
        }
    }

    /// It waits for its client before it is let in: it was never in.
    fn undo(mut self, now: Instant) -> Way<'g> {
        let held = std::mem::take(&mut self.held);
        for number in (0..=OWN).filter(|number| held & (1 << number) != 0) {
            if let Some(gate) = self.way.gate(number) {
                gate.give_back(now);
            }
        }
        self.way
    }

    /// The answer's head is there. Those that may last for ever make room for others.
    pub(crate) fn answered(&mut self, status: u16, lasts: bool) {
        // What an application or an upstream refuses is soon said, and no sign that it could take more.
        if status >= 500 || status == 429 {
            self.since = None;
        }
        self.measure(false);
        if lasts {
            self.leave();
        }
    }

    /// The call is over; `status` is that of a whole answer.
    pub(crate) fn ended(&mut self, ended: Result<Ended, HttpError>, status: u16) {
        match ended {
            Ok(Ended::Complete) => self.answered(status, false),
            // The time of their heads is known.
            Ok(Ended::Sent | Ended::Broken(_) | Ended::Tunnelled) => {}
            Err(fault) if fault.is_of_overload() => self.measure(true),
            // How long another answer would have taken is not known.
            Err(_) => self.since = None,
        }
    }

    fn go_on(mut self, now: Instant) -> Entrance<'g> {
        loop {
            let missing = self.way.wanted & !self.held;
            let number = missing.trailing_zeros();
            let Some(gate) = self.way.gate(number).filter(|_| missing != 0) else {
                self.since = Some(now);
                self.crowd = self.behind().find(|gate| gate.is_adaptive()).map_or(0, |gate| gate.in_flight());
                return Entrance::In(self);
            };
            if let Some(waiting) = self.way.wait_for_worker(number, gate) {
                self.give_back_before(number, now);
                return match waiting {
                    Ok(waiting) => Entrance::Later(Later { pass: self, number, waiting }),
                    Err(fault) => Entrance::Shed(fault),
                };
            }
            if self.way.is_late(&gate.limit, now) {
                return Entrance::Shed(gate.refuse(LimitCause::Lag, now));
            }
            match gate.enter(self.way.priority, now, || self.way.reported_lag(now)) {
                Entry::In => self.held |= 1 << number,
                Entry::Wait(waiting) => {
                    self.give_back_before(number, now);
                    return Entrance::Later(Later { pass: self, number, waiting: Wait::Room(waiting) });
                }
                Entry::Shed(cause) => return Entrance::Shed(gate.refuse(cause, now)),
            }
        }
    }

    fn measure(&mut self, was_dropped: bool) {
        let Some(since) = self.since.take() else { return };
        let (mut now, mut crowd) = (None, Some(self.crowd));
        for gate in self.behind().filter(|gate| gate.is_adaptive()) {
            let now = *now.get_or_insert_with(Instant::now);
            let took = now.saturating_duration_since(since);
            let lag = || self.way.reported_lag(now);
            gate.sample(now, self.core, took, crowd.take(), was_dropped, lag);
        }
    }

    /// The gates that it is in, the innermost first.
    fn behind(&self) -> impl Iterator<Item = &'g Arc<Gate>> + use<'g> {
        let (way, mut held) = (self.way, self.held);
        std::iter::from_fn(move || {
            let number = held.checked_ilog2()?;
            held &= !(1 << number);
            way.gate(number)
        })
    }

    /// Who waits takes no place of the gates before: they are asked again once he is in here, and those that he is in
    /// by then stay. So he waits at each gate once at most, the innermost first.
    fn give_back_before(&mut self, number: u32, now: Instant) {
        let before = self.held & ((1 << number) - 1);
        self.held &= !before;
        for number in (0..number).filter(|number| before & (1 << number) != 0) {
            if let Some(gate) = self.way.gate(number) {
                gate.give_back(now);
            }
        }
    }

    fn leave(&mut self) {
        for gate in self.behind() {
            gate.leave();
        }
        self.held = 0;
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The place of a waiting request in one of the queues.
#[derive(Clone, Copy)]
pub(crate) enum Waits<'g> {
    InGate(Ticketed<'g>),
    InPool(&'g Pool, pool::Ticket),
}

impl Waits<'_> {
    /// Its client has closed its sending side, and may have left: under overload it is the first to be refused.
    pub(crate) fn half_closed(self) {
        match self {
            Waits::InGate(ticketed) => ticketed.half_closed(),
            Waits::InPool(pool, ticket) => pool.half_closed(ticket),
        }
    }
}

impl<'g> Wait<'g> {
    fn place(&self) -> Waits<'g> {
        match self {
            Wait::Room(waiting) => Waits::InGate(waiting.ticketed()),
            Wait::Worker(pool, _, ticket) => Waits::InPool(pool, *ticket),
        }
    }

    /// Waits; the bits of the gates that the request is in then.
    async fn over(self, number: u32, way: &Way<'_>) -> Result<u64, HttpError> {
        match self {
            Wait::Room(mut waiting) => match waiting.over(|now| way.reported_lag(now)).await {
                Ok(()) => Ok(1 << number),
                Err(cause) => Err(waiting.gate.refuse(cause, Instant::now())),
            },
            // The place that comes is given back: it is taken behind the gate.
            Wait::Worker(pool, grant, _) => match tokio::time::timeout(pool.app.queue_wait, grant).await {
                Ok(Ok(_)) => Ok(0),
                Ok(Err(_)) => {
                    let retry_after = pool.failing().unwrap_or(APP_RETRY_AFTER_SECONDS);
                    Err(HttpError::AppFailing { retry_after })
                }
                Err(_) => Err(HttpError::AppQueueTimeout { retry_after: APP_RETRY_AFTER_SECONDS }),
            },
        }
    }
}

impl<'g> Entrance<'g> {
    /// How many requests the narrowest gate of its way lets in, where one does not let in all.
    pub(crate) fn places(&self) -> Option<u64> {
        match self {
            Self::In(pass) => pass.way.places(),
            Self::Later(later) => later.pass.way.places(),
            Self::Shed(_) => None,
        }
    }

    /// The way of one that has to wait for its client first; the error of one that is not let in.
    pub(crate) fn undo(self, now: Instant) -> Result<Way<'g>, HttpError> {
        match self {
            Self::In(pass) => Ok(pass.undo(now)),
            Self::Later(later) => Ok(later.pass.undo(now)),
            Self::Shed(fault) => Err(fault),
        }
    }
}

impl<'g> Later<'g> {
    /// Waits until the request is in, or it is known that it will not be. `gone` is called at each gate: it ends when the
    /// client has gone, and calls what it is given when the client has closed its sending side.
    pub(crate) async fn over(self, mut gone: impl AsyncFnMut(Waits<'g>)) -> Result<Pass<'g>, HttpError> {
        let mut later = self;
        loop {
            let Later { mut pass, number, waiting } = later;
            let (way, place) = (pass.way, waiting.place());
            let held = tokio::select! {
                biased;
                held = waiting.over(number, &way) => held?,
                () = gone(place) => return Err(HttpError::ClientGone),
            };
            pass.held |= held;
            later = match pass.go_on(Instant::now()) {
                Entrance::In(pass) => return Ok(pass),
                Entrance::Later(later) => later,
                Entrance::Shed(fault) => return Err(fault),
            };
        }
    }
}

#[cfg(test)]
mod tests;
