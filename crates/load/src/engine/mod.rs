//! The load: many connections, few threads, and a note of everything that came.
//!
//! Owns the threads of a run and what becomes of their notes. In the order of a request: `schedule.rs` and
//! `order.rs` say when and what is asked, `thread.rs` and `thread/exchange.rs` ask, `connection.rs` reads the answer (`encryption.rs` and `thread/encrypted.rs` between where it is https), `record.rs` notes it;
//! over HTTP/2 `thread/streams.rs`, `thread/sessions.rs` and `session.rs` share a connection among requests;
//! `series.rs` and `verdict.rs` put the notes of all threads together. Never counts what it did not see whole,
//! and never spins: a load that takes the server's core measures itself.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle, scope};
use std::time::{Instant, SystemTime};

use crate::client::UnsendableRequest;
use crate::outcome::Run;
use crate::plan::{Pace, Plan, Protocol, Reuse};
use crate::progress::Observer;

pub(crate) use descriptors::make_room;
pub use descriptors::make_room_early;
use limits::{PIECES_WAITING_MAX, STREAMS_TOGETHER_MAX};
use record::{Piece, Record, Times};
use request::{Destination, PreparedRequest};
use schedule::Schedule;
use series::Cut;
use thread::{Orders, Seen, Shared, Thread, Work, nanoseconds};
use turns::Cycle;
use watch::Watch;

pub(crate) use socket::open as open_socket;

mod connection;
mod descriptors;
mod encryption;
mod gather;
mod limits;
mod processor;
mod record;
mod request;
mod schedule;
mod series;
mod session;
mod socket;
mod thread;
mod turns;
mod verdict;
mod watch;

/// Why there was no load. Its text is for a person.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The plan asks for nothing.
    #[error("there is nothing to do: {0}")]
    Nothing(&'static str),
    /// Each connection is a descriptor.
    #[error(
        "{needed} descriptors are needed and {allowed} are allowed: raise the limit (`ulimit -n {needed}`), or use fewer connections"
    )]
    Descriptors {
        /// For connections and what is open beside them.
        needed: u64,
        /// The hard limit.
        allowed: u64,
    },
    /// A request that would not be one.
    #[error("the request `{name}` cannot be sent: {why}")]
    Unsendable {
        /// The request's name.
        name: String,
        /// What is wrong with it.
        why: UnsendableRequest,
    },
    /// A path that would break the request's line.
    #[error(
        "the request `{name}` cannot be sent: its path holds {odd:?}, which has to be written percent-encoded"
    )]
    Path {
        /// The request's name.
        name: String,
        /// The letter.
        odd: char,
    },
    /// A load that cannot be put on a server over HTTP/2.
    #[error("this load cannot use HTTP/2: {0}")]
    Http2(&'static str),
    /// The system would not.
    #[error("the load could not start ({what}): {why}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        why: std::io::Error,
    },
}

/// Puts the load of `plan` on its servers, and tells what came of it.
///
/// Which requests count, and how long a run was: whatever began in the measured time counts, and is waited for, also
/// beyond its end, as long as the plan's timeout lasts. So no stall at the end is lost, and answers that take
/// long are no less likely to be counted than others. [`Run::rate`] is another figure: that of the answers that ended
/// in the measured time, whenever they were due. Where a number of requests was the end, that time lasts to the last
/// answer.
///
/// Several addresses: in a closed loop each connection belongs to one, and they are spread by the weights; with fewer
/// connections than addresses each connection takes turns. In an open loop the weights are exact.
///
/// # Errors
/// Where the load cannot even begin. Servers that fail are no error here: they are what was measured.
pub fn run(plan: &Plan, observer: &mut dyn Observer) -> Result<Run, LoadError> {
    check(plan)?;
    let (requests, destinations) = request::prepare(plan)?;
    check_http2(plan, destinations.len())?;
    let connections = plan.pace.connections();
    let threads = plan.threads.clamp(1, connections);
    descriptors::make_room(connections, threads)?;
    let warm_up = nanoseconds(plan.warm_up);
    let shared = Shared {
        end: AtomicU64::new(
            plan.until.time.map_or(u64::MAX, |time| warm_up.saturating_add(nanoseconds(time))),
        ),
        abrupt: AtomicBool::new(false),
        budget: plan.until.requests.map(AtomicU64::new),
        spent: AtomicBool::new(false),
        failure: Mutex::new(None),
    };
    let cut = Cut::of(plan.until);
    let (pieces, received) = sync_channel(PIECES_WAITING_MAX.saturating_mul(threads));
    scope(|scope| {
        let mut spawner =
            Spawner { plan, requests: &requests, destinations: &destinations, shared: &shared, threads, cut };
        let started: Vec<Started<'_>> = (0..threads)
            .map(|thread| spawner.start(scope, thread, pieces.clone()))
            .collect::<Result<_, _>>()?;
        drop(pieces);
        // Whoever could not get ready says so; the others end with their channels.
        for thread in &started {
            thread.ready.recv().unwrap_or_else(|_| Err(died()))?;
        }
        let (begun, origin) = (SystemTime::now() + plan.warm_up, Instant::now());
        for thread in &started {
            // One that is gone is told when it is joined.
            let _ = thread.go.send(origin);
        }
        let watch = Watch::new(plan, &shared, cut, threads, origin);
        let (end, series) = watch.until_over(&received, observer);
        let seen: Vec<Seen> = started
            .into_iter()
            .map(|thread| thread.handle.join().map_err(|_| died()).and_then(|seen| seen.ok_or_else(died)))
            .collect::<Result<_, _>>()?;
        Ok(gather::gather(plan, begun, end, series, &shared, &seen))
    })
}

/// What cannot be done.
fn check(plan: &Plan) -> Result<(), LoadError> {
    let until = plan.until;
    if plan.requests.is_empty() {
        return Err(LoadError::Nothing("no request is given"));
    }
    if plan.pace.connections() == 0 {
        return Err(LoadError::Nothing("no connection is allowed"));
    }
    if until.time.is_none() && until.requests.is_none() && until.narrow.is_none() {
        return Err(LoadError::Nothing("no end is given: a time, a number of requests or a width"));
    }
    if until.time.is_some_and(|time| time.is_zero()) || until.requests == Some(0) {
        return Err(LoadError::Nothing("the end is at the begin"));
    }
    if let Pace::Open { arrivals, .. } = &plan.pace {
        let is_rate = |rate: f64| rate.is_finite() && rate >= 0.0;
        if !arrivals.phases.iter().all(|phase| is_rate(phase.from) && is_rate(phase.to)) {
            return Err(LoadError::Nothing("a rate is no number from 0"));
        }
        if !arrivals.phases.iter().any(|phase| phase.from > 0.0 || phase.to > 0.0) {
            return Err(LoadError::Nothing("no rate is above 0"));
        }
    }
    Ok(())
}

/// What cannot be done over HTTP/2.
fn check_http2(plan: &Plan, servers: usize) -> Result<(), LoadError> {
    let protocol = plan.protocol();
    if plan.requests.iter().any(|request| request.protocol != protocol) {
        return Err(LoadError::Http2("all its requests have to be sent over the same version of HTTP"));
    }
    if protocol == Protocol::Http1 {
        return Ok(());
    }
    let connections = plan.pace.connections();
    if connections.saturating_mul(protocol.streams() as usize) > STREAMS_TOGETHER_MAX {
        return Err(LoadError::Http2("connections times streams is more than a million"));
    }
    if plan.reuse == Reuse::New && protocol.streams() > 1 {
        return Err(LoadError::Http2(
            "a new connection for each request has one stream: leave --streams out",
        ));
    }
    match &plan.pace {
        Pace::Open { .. } if servers > 1 => {
            Err(LoadError::Http2("at a rate it asks one server only, not yet several: leave --rate out"))
        }
        Pace::Closed { .. } if connections < servers => {
            Err(LoadError::Http2("each server needs a connection of its own: give more with -c"))
        }
        _ => Ok(()),
    }
}

fn died() -> LoadError {
    LoadError::System { what: "a thread of the load", why: std::io::Error::other("it ended early") }
}

/// The threads of a run, before they begin.
struct Spawner<'a> {
    plan: &'a Plan,
    requests: &'a [PreparedRequest],
    destinations: &'a [Destination],
    shared: &'a Shared,
    threads: usize,
    cut: Cut,
}

/// A thread that gets ready.
struct Started<'scope> {
    ready: Receiver<Result<(), LoadError>>,
    go: SyncSender<Instant>,
    handle: ScopedJoinHandle<'scope, Option<Seen>>,
}

impl<'a> Spawner<'a> {
    fn start<'scope>(
        &mut self,
        scope: &'scope Scope<'scope, '_>,
        thread: usize,
        pieces: SyncSender<Piece>,
    ) -> Result<Started<'scope>, LoadError>
    where
        'a: 'scope,
    {
        let orders = self.orders(thread);
        let times = Times { measured_from: orders.measured_from, piece: self.cut.piece };
        let core = self.plan.cores.get(thread % self.plan.cores.len().max(1)).copied();
        let is_open = matches!(orders.work, Work::Open { .. });
        let (ready_sender, ready) = sync_channel(1);
        let (go, go_receiver) = sync_channel::<Instant>(1);
        let work = move || {
            let system = |what| move |why: rustix::io::Errno| LoadError::System { what, why: why.into() };
            let record = Record::new(orders.requests.len(), is_open, thread, times, pieces);
            let prepared = processor::settle_in(core)
                .map_err(system("binding a thread to a core"))
                .and_then(|()| Thread::new(orders, record).map_err(system("epoll")));
            let (reported, thread) = match prepared {
                Ok(thread) => (Ok(()), Some(thread)),
                Err(error) => (Err(error), None),
            };
            ready_sender.send(reported).ok()?;
            let origin = go_receiver.recv().ok()?;
            Some(thread?.run(origin))
        };
        let handle = Builder::new()
            .name(format!("load-{thread}"))
            .spawn_scoped(scope, work)
            .map_err(|why| LoadError::System { what: "starting a thread", why })?;
        Ok(Started { ready, go, handle })
    }

    fn orders(&self, thread: usize) -> Orders<'a> {
        let plan = self.plan;
        let cycle_of = assign(plan, self.requests, self.destinations.len());
        let mine = |place: &usize| place % self.threads == thread;
        let connections: Vec<usize> =
            (0..cycle_of.len()).filter(mine).filter_map(|place| cycle_of.get(place).copied()).collect();
        // Threads begin at different places of the cycle, and another seed at others.
        let start = (thread as f64 / self.threads as f64 + fastrand::Rng::with_seed(plan.seed).f64()).fract();
        let requests = || self.requests.iter().zip(&plan.requests).enumerate();
        let all: Vec<(usize, u32)> =
            requests().map(|(request, (_, asked))| (request, asked.weight)).collect();
        let mut cycles: Vec<Cycle> = vec![Cycle::new(&all, start)];
        for address in 0..self.destinations.len() {
            let here = requests().filter(|(_, (request, _))| request.address == address);
            let here: Vec<(usize, u32)> = here.map(|(request, (_, asked))| (request, asked.weight)).collect();
            cycles.push(Cycle::new(&here, start));
        }
        let work = match &plan.pace {
            Pace::Closed { think, .. } => Work::Closed { think: *think },
            Pace::Open { arrivals, .. } => Work::Open {
                schedule: Schedule::new(arrivals, plan.warm_up, (thread, self.threads), plan.seed),
            },
        };
        Orders {
            shared: self.shared,
            requests: self.requests,
            destinations: self.destinations,
            timeouts: plan.timeouts,
            reuse: plan.reuse,
            measured_from: nanoseconds(plan.warm_up),
            work,
            cycles,
            connections,
            protocol: plan.protocol(),
        }
    }
}

/// The cycle of each connection: 0 is that of all requests, 1 and above those of the addresses.
fn assign(plan: &Plan, requests: &[PreparedRequest], addresses: usize) -> Vec<usize> {
    let connections = plan.pace.connections();
    if matches!(plan.pace, Pace::Open { .. }) || addresses < 2 || connections < addresses {
        return vec![0; connections];
    }
    let mut weights = vec![0.0; addresses];
    for (prepared, request) in requests.iter().zip(&plan.requests) {
        if let Some(weight) = weights.get_mut(prepared.address) {
            *weight += f64::from(request.weight.max(1));
        }
    }
    // Each address has one; each further connection goes where the fewest are for the weight (D'Hondt).
    let mut counts = vec![1.0; addresses];
    let mut assigned: Vec<usize> = (1..=addresses).collect();
    for _ in addresses..connections {
        let due = weights.iter().zip(&counts).map(|(weight, count): (&f64, &f64)| weight / (count + 1.0));
        let most = due.enumerate().max_by(|one, other| one.1.total_cmp(&other.1));
        let place = most.map_or(0, |(place, _)| place);
        if let Some(count) = counts.get_mut(place) {
            *count += 1.0;
        }
        assigned.push(place + 1);
    }
    assigned
}
