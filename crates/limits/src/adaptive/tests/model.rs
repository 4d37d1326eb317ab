//! A queueing model in simulated time: arrivals that do not care, a limiter with a queue, servers behind it.
//!
//! Everything random comes from one seed, so that a run is the same each time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet, VecDeque};
use std::time::Duration;

use super::super::sums::{Quickest, Sample, Sums};
use super::super::vegas::{Seen, Vegas, Verdict};

/// How long a request takes of a server's time, in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Service {
    /// Always so long.
    Constant(f64),
    /// In the mean, exponentially distributed.
    Exponential(f64),
    /// A fast and a slow route, and the share of the slow one.
    Routes(f64, f64, f64),
    /// All take a server's time for so long, and this share of them waits for something else afterwards.
    Waits { busy: f64, waits: f64, share: f64 },
    /// Always so long, and what came meanwhile is answered all at once, as by an event loop that does the work in a
    /// row and writes when its turn is over.
    Turns(f64),
}

/// What holds for some seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Phase {
    pub(super) seconds: usize,
    /// Arrivals a second.
    pub(super) rate: f64,
    pub(super) servers: usize,
    pub(super) service: Service,
    /// Arrivals a second of requests that take 25 s and no server's time.
    pub(super) long_polls: f64,
}

/// The limiter's settings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limiter {
    pub(super) min: u32,
    pub(super) max: u32,
    pub(super) queue: usize,
    pub(super) wait: f64,
    /// Seconds after which clients are gone; the work is done all the same.
    pub(super) client_timeout: f64,
    /// Long polls that come together in the first instant.
    pub(super) at_once: usize,
    /// The server is an event loop that reports how long requests wait before they begin.
    pub(super) reports_lag: bool,
}

/// As an `app` has it by default.
pub(super) const LIMITER: Limiter = Limiter {
    min: 1,
    max: 4_096,
    queue: 4_096,
    wait: 3.0,
    client_timeout: f64::INFINITY,
    at_once: 0,
    reports_lag: false,
};

/// The same with a shorter queue: what is behind the bound is looked at, and soon after an overload nothing is left of it.
pub(super) const SHORT: Limiter = Limiter { queue: 128, wait: 1.0, ..LIMITER };

/// What happened in one second.
#[derive(Debug, Clone, Default)]
pub(super) struct Second {
    pub(super) arrived: usize,
    pub(super) answered: usize,
    pub(super) refused: usize,
    /// From being let in to the answer; without long polls.
    pub(super) took: Vec<f64>,
    /// The same from the arrival.
    pub(super) took_in_all: Vec<f64>,
    /// At its end.
    pub(super) bound: u32,
    pub(super) in_flight: usize,
    /// The most at once.
    pub(super) in_flight_most: usize,
}

/// How often those who wait look whether their time is over, in seconds.
const WAITERS_LOOK: f64 = 0.010;

/// What one turn of an event loop takes at most.
const TURN_MOST: usize = 300;

/// How long a long poll takes, in seconds.
const LONG_POLL: f64 = 25.0;

impl Service {
    /// Requests a second that so many servers answer.
    pub(super) fn capacity(self, servers: usize) -> f64 {
        let mean = match self {
            Service::Constant(mean) | Service::Exponential(mean) | Service::Turns(mean) => mean,
            Service::Routes(fast, slow, share) => fast * (1.0 - share) + slow * share,
            Service::Waits { busy, .. } => busy,
        };
        servers as f64 / mean
    }

    /// 99 of 100 take less, where nobody waits.
    pub(super) fn p99(self) -> f64 {
        match self {
            Service::Constant(mean) | Service::Turns(mean) => mean,
            Service::Exponential(mean) => mean * 100.0_f64.ln(),
            Service::Routes(_, slow, _) => slow,
            Service::Waits { busy, waits, .. } => busy + waits,
        }
    }

    /// What it waits for afterwards, and nobody is busy with.
    fn wait(self, random: &mut fastrand::Rng) -> f64 {
        match self {
            Service::Waits { waits, share, .. } if random.f64() < share => waits,
            _ => 0.0,
        }
    }

    fn draw(self, random: &mut fastrand::Rng) -> f64 {
        match self {
            Service::Constant(mean) | Service::Turns(mean) => mean,
            Service::Exponential(mean) => exponential(mean, random),
            Service::Waits { busy, .. } => busy,
            Service::Routes(fast, slow, share) => {
                if random.f64() < share {
                    slow
                } else {
                    fast
                }
            }
        }
    }
}

/// What is about to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival {
        is_long_poll: bool,
    },
    /// A server is free again.
    Served {
        let_in: Entered,
    },
    /// The end of an event loop's turn.
    Turned,
    Answer {
        let_in: Entered,
        is_long_poll: bool,
    },
    /// A client has no more client_timeout.
    Gone {
        number: u64,
    },
    /// Those who wait look.
    Waiters,
}

/// When, how many were in flight with it, who, and when it had come.
type Entered = (u64, u32, u64, u64);

struct World {
    now: u64,
    random: fastrand::Rng,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    sequence: u64,
    phase: Phase,
    limiter: Limiter,
    vegas: Vegas,
    verdict: Verdict,
    is_met: bool,
    sums: Sums,
    in_flight: usize,
    /// Since when, and whether it is a long poll.
    queue: VecDeque<(u64, bool)>,
    busy: usize,
    /// Let in, but no server is free.
    backlog: VecDeque<Entered>,
    /// What is answered at the end of this turn.
    turn: Vec<Entered>,
    /// Those in flight whose clients are there.
    clients: HashSet<u64>,
    second: Second,
}

/// Runs the phases one after the other; one entry a second.
pub(super) fn run(seed: u64, limiter: Limiter, phases: &[Phase]) -> Vec<Second> {
    let vegas = Vegas::new(limiter.min, limiter.max);
    let verdict = vegas.verdict();
    let mut world = World {
        now: 0,
        random: fastrand::Rng::with_seed(seed),
        events: BinaryHeap::new(),
        sequence: 0,
        phase: phases[0],
        limiter,
        vegas,
        verdict,
        is_met: false,
        sums: Sums::default(),
        in_flight: 0,
        queue: VecDeque::new(),
        busy: 0,
        backlog: VecDeque::new(),
        turn: Vec::new(),
        clients: HashSet::new(),
        second: Second::default(),
    };
    let mut seconds = Vec::new();
    let mut has_long_polls = false;
    world.arrive_later(false);
    world.after(WAITERS_LOOK, Event::Waiters);
    for _ in 0..limiter.at_once {
        world.comes(true);
    }
    for phase in phases {
        world.phase = *phase;
        if phase.long_polls > 0.0 && !has_long_polls {
            has_long_polls = true;
            world.arrive_later(true);
        }
        for _ in 0..phase.seconds {
            let end = (seconds.len() as u64 + 1) * 1_000_000_000;
            world.until(end);
            let mut second = std::mem::take(&mut world.second);
            second.bound = world.verdict.bound;
            second.in_flight = world.in_flight;
            seconds.push(second);
        }
    }
    seconds
}

impl World {
    fn until(&mut self, end: u64) {
        while let Some(Reverse((at, _, event))) = self.events.peek().copied() {
            if at >= end {
                break;
            }
            self.events.pop();
            self.now = at;
            match event {
                Event::Arrival { is_long_poll } => self.arrival(is_long_poll),
                Event::Served { let_in } => self.served(let_in),
                Event::Turned => self.turned(),
                Event::Gone { number } => self.gone(number),
                Event::Waiters => self.waiters(),
                Event::Answer { let_in, is_long_poll } => self.answer(let_in, is_long_poll),
            }
        }
    }

    fn arrival(&mut self, is_long_poll: bool) {
        self.arrive_later(is_long_poll);
        self.comes(is_long_poll);
    }

    fn comes(&mut self, is_long_poll: bool) {
        self.second.arrived += 1;
        if self.in_flight >= self.verdict.bound as usize {
            self.is_met = true;
            self.look();
        }
        self.queue.push_back((self.now, is_long_poll));
        self.let_in();
        if self.queue.len() > self.limiter.queue {
            self.queue.pop_back();
            self.second.refused += 1;
        }
    }

    fn waiters(&mut self) {
        self.after(WAITERS_LOOK, Event::Waiters);
        while self.queue.front().is_some_and(|(since, _)| (self.now - since) as f64 / 1e9 > self.limiter.wait)
        {
            self.queue.pop_front();
            self.second.refused += 1;
        }
        if !self.queue.is_empty() {
            self.is_met = true;
            self.look();
            self.let_in();
        }
    }

    fn gone(&mut self, number: u64) {
        if self.clients.remove(&number) {
            self.in_flight -= 1;
            self.let_in();
        }
    }

    fn answer(&mut self, let_in: Entered, is_long_poll: bool) {
        if !self.clients.remove(&let_in.2) {
            return;
        }
        let took = self.now - let_in.0;
        let quickest = Quickest { took: Duration::from_nanos(took), in_flight_at_start: let_in.1 };
        let is_stale = Duration::from_nanos(let_in.0) < self.verdict.since;
        self.sums.add(if is_stale { Sample::Stale(quickest.took) } else { Sample::Answered(quickest) });
        self.look();
        self.in_flight -= 1;
        if !is_long_poll {
            self.second.answered += 1;
            self.second.took.push(took as f64 / 1e9);
            self.second.took_in_all.push((self.now - let_in.3) as f64 / 1e9);
        }
        self.let_in();
    }

    fn turned(&mut self) {
        self.busy -= 1;
        for let_in in std::mem::take(&mut self.turn) {
            self.answer(let_in, false);
        }
        self.serve();
    }

    fn served(&mut self, let_in: Entered) {
        self.busy -= 1;
        self.serve();
        let wait = self.phase.service.wait(&mut self.random);
        if wait > 0.0 {
            self.after(wait, Event::Answer { let_in, is_long_poll: false });
        } else {
            self.answer(let_in, false);
        }
    }

    fn let_in(&mut self) {
        while self.in_flight < self.verdict.bound as usize {
            let Some((since, is_long_poll)) = self.queue.pop_front() else { return };
            if (self.now - since) as f64 / 1e9 > self.limiter.wait {
                self.second.refused += 1;
                continue;
            }
            self.in_flight += 1;
            self.second.in_flight_most = self.second.in_flight_most.max(self.in_flight);
            let let_in = (self.now, self.in_flight as u32, self.sequence, since);
            self.clients.insert(let_in.2);
            if self.limiter.client_timeout.is_finite() && !is_long_poll {
                self.after(
                    self.limiter.client_timeout - (self.now - since) as f64 / 1e9,
                    Event::Gone { number: let_in.2 },
                );
            }
            self.sequence += 1;
            if is_long_poll {
                self.after(LONG_POLL, Event::Answer { let_in, is_long_poll });
            } else {
                self.backlog.push_back(let_in);
                self.serve();
            }
        }
    }

    fn serve(&mut self) {
        if let Service::Turns(each) = self.phase.service {
            if self.busy == 0 && !self.backlog.is_empty() {
                self.busy = 1;
                self.turn.extend(self.backlog.drain(..self.backlog.len().min(TURN_MOST)));
                self.after(each * self.turn.len() as f64, Event::Turned);
            }
            return;
        }
        while self.busy < self.phase.servers {
            let Some(let_in) = self.backlog.pop_front() else { return };
            self.busy += 1;
            let service = self.phase.service.draw(&mut self.random);
            self.after(service, Event::Served { let_in });
        }
    }

    fn look(&mut self) {
        if self.time() < self.verdict.look_at {
            return;
        }
        let seen = Seen {
            now: self.time(),
            totals: self.sums.totals(),
            least: self.sums.take_least(),
            in_flight: self.in_flight as u32,
            is_met: std::mem::take(&mut self.is_met),
            lag: self.limiter.reports_lag.then(|| self.lag()),
        };
        self.verdict = self.vegas.look(seen, || self.sums.take_quickest());
    }

    /// For how long the first one has waited that has not begun.
    fn lag(&self) -> Duration {
        let oldest = self.backlog.front().map_or(self.now, |let_in| let_in.0);
        // What is in the middle of a turn began with it.
        let turn = self.turn.first().map_or(self.now, |let_in| let_in.0);
        Duration::from_nanos(self.now - oldest.min(turn))
    }

    fn arrive_later(&mut self, is_long_poll: bool) {
        let rate = if is_long_poll { self.phase.long_polls } else { self.phase.rate };
        let gap = exponential(1.0 / rate.max(0.001), &mut self.random);
        self.after(gap, Event::Arrival { is_long_poll });
    }

    fn after(&mut self, seconds: f64, event: Event) {
        self.sequence += 1;
        let at = self.now + (seconds * 1e9) as u64;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    fn time(&self) -> Duration {
        Duration::from_nanos(self.now)
    }
}

fn exponential(mean: f64, random: &mut fastrand::Rng) -> f64 {
    -mean * (1.0 - random.f64()).ln()
}
