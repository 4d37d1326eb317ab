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

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onehop_config::checked::limit::{Limit, Priority};

use super::handle::Ended;
use super::handle::app::pool::{Pool, Wish};
use super::rescue::Fault;
use crate::limits::SITE_LIMITS_MAX;
use adaptive::EventLoop;
use gate::{Entry, Gate, Waiting};

/// The bit of the callee's own gate, which comes last.
const OWN: u32 = SITE_LIMITS_MAX as u32;

/// An event loop that is not later than this has time for others: one turn of 50 ms is a handler that computes.
const LAG_ON_TIME: Duration = Duration::from_millis(50);

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
    pool: Option<&'g Pool>,
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
    Shed(Fault),
}

/// A request that waits before one of its gates; of those before it it is in none.
pub(crate) struct Later<'g> {
    pass: Pass<'g>,
    number: u32,
    waiting: Waiting<'g>,
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
    pub(crate) fn new(site: Option<&'g Gates>, gathered: Gathered, pool: Option<&'g Pool>) -> Self {
        let (gates, always) = site.map_or((&[][..], 0), |site| (&*site.all, site.always));
        // Where no worker serves yet there is nobody whose bound could be found out, and it is the application's queue
        // that waits for one. A bound that the file names always holds.
        let has_own = pool.is_some_and(|pool| {
            pool.gate.as_ref().is_some_and(|gate| !gate.is_adaptive() || pool.has_workers())
        });
        let wanted = gathered.gates | always | (u64::from(has_own) << OWN);
        Self { gates, pool, wanted, priority: gathered.priority, wish: Wish::Any }
    }

    /// The same for a request that goes to one worker: that one's lag counts. Asked only where some lag does.
    pub(crate) fn wishing(self, site: Option<&Gates>, wish: impl FnOnce(&Pool) -> Wish) -> Self {
        let of_pool = |pool: &&Pool| {
            let own = pool.gate.as_ref().is_some_and(|gate| gate.limit.lag.is_some());
            pool.sticky.is_some() && (own || site.is_some_and(|site| site.asks_for_lag))
        };
        let wish = self.pool.filter(of_pool).map_or(Wish::Any, wish);
        Self { wish, ..self }
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

    /// How those who would answer are doing.
    fn event_loop(&self, now: Instant) -> EventLoop {
        let lag = self.pool.map(|pool| pool.lag(now, self.wish)).unwrap_or_default();
        // No lag at all means that nobody tells it.
        if !lag.is_zero() && lag <= LAG_ON_TIME { EventLoop::OnTime } else { EventLoop::Unknown }
    }
}

impl<'g> Pass<'g> {
    /// Lets a request in, if that is possible now.
    pub(crate) fn ask(way: Way<'g>, core: usize, now: Instant) -> Entrance<'g> {
        Self { way, held: 0, core, since: None, crowd: 0 }.go_on(now)
    }

    /// A place behind nothing.
    pub(crate) fn nowhere() -> Self {
        let (priority, wish) = (Priority::Normal, Wish::Any);
        let way = Way { gates: &[], pool: None, wanted: 0, priority, wish };
        Self { way, held: 0, core: 0, since: None, crowd: 0 }
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
    pub(crate) fn ended(&mut self, ended: Result<Ended, Fault>, status: u16) {
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
            if self.way.is_late(&gate.limit, now) {
                return Entrance::Shed(gate.refuse(refusal::Cause::Lag, now));
            }
            match gate.enter(self.way.priority, now, || self.way.event_loop(now)) {
                Entry::In => self.held |= 1 << number,
                Entry::Wait(waiting) => {
                    self.give_back_before(number, now);
                    return Entrance::Later(Later { pass: self, number, waiting });
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
            gate.sample(now, self.core, now.saturating_duration_since(since), crowd.take(), was_dropped);
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

impl<'g> Later<'g> {
    /// Waits until the request is in, or it is known that it will not be; `gone` ends when its client has.
    pub(crate) async fn over(self, mut gone: Pin<&mut impl Future<Output = ()>>) -> Result<Pass<'g>, Fault> {
        let mut later = self;
        loop {
            let Later { mut pass, number, mut waiting } = later;
            let word = tokio::select! {
                biased;
                word = waiting.over(|now| pass.way.event_loop(now)) => word,
                () = gone.as_mut() => return Err(Fault::ClientGone),
            };
            let now = Instant::now();
            if let Err(cause) = word {
                return Err(waiting.gate.refuse(cause, now));
            }
            pass.held |= 1 << number;
            later = match pass.go_on(now) {
                Entrance::In(pass) => return Ok(pass),
                Entrance::Later(later) => later,
                Entrance::Shed(fault) => return Err(fault),
            };
        }
    }
}

#[cfg(test)]
mod tests;
