//! The owner of one application: orders all that happens to its workers.
//!
//! One task, messages only. What is wanted and what is there are compared after each message, and what is
//! missing is started, what is too much drained. Replacing a worker (a reload, a change of the folder, the
//! settings' `recycle`) marks it as old: a new one serves before an old one goes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use onehop_config::checked::{App, AppProtocol, AppRun, WorkerCount};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until};

use super::Surroundings;
use super::messages::{Command, End, News, Order, Task, Told, Withdrawal};
use super::pause::Pause;
use super::view::{Member as Seen, State, View};
use super::{handler, program};
use crate::control::events::Event;
use crate::control::loaded::Loaded;
use crate::limits::{
    APP_MESSAGES_MAX, APP_RETRY_AFTER_SECONDS, CRASH_LOOP_LIFE, ELSEWHERE_PROBE_PERIOD,
    WORKER_DRAIN_LOOK_PERIOD,
};
use onehop_workers::limits::WORKERS_MAX;
use onehop_workers::{Pool, Transport, Worker, WorkerId, WorkerIndex};

/// The state of an application.
pub(super) struct Owner {
    app: Arc<App>,
    pool: Arc<Pool>,
    surroundings: Arc<Surroundings>,
    view: View,
    tell: mpsc::Sender<Told>,
    told: mpsc::Receiver<Told>,
    wanted: usize,
    members: BTreeMap<WorkerId, Member>,
    pause: Pause,
    /// Nobody is started before.
    next_start: Instant,
    roll: Option<Roll>,
    /// The last time all workers were to be replaced the new ones did not start.
    has_failed_roll: bool,
    /// Grows with every roll.
    generation: u64,
    loaded: Arc<Loaded>,
    waiting: Vec<oneshot::Sender<Result<(), String>>>,
    /// Of the worker that became ready last, `node 20.20.2`.
    runtime: String,
    /// When the first worker was started, until the application was said to be ready.
    said_ready: Option<Instant>,
    is_failing: bool,
    /// Why workers fail again and again, as it was reported: the first line.
    reported: Option<String>,
    /// A worker serves again; the application counts as well from then on.
    is_well_from: Option<Instant>,
    /// The last of its handler's workers that became ready is spoken to in HTTP, and it was said so.
    speaks_http: bool,
    stopping: Option<Vec<oneshot::Sender<()>>>,
    /// It is being stopped, and its workers still serve those who wait; no longer than until then.
    serves_queue_until: Option<Instant>,
    /// The server has begun to stop.
    is_leaving: bool,
}

/// A worker, as its owner sees it.
struct Member {
    state: State,
    seat: WorkerIndex,
    /// It is to be replaced.
    is_old: bool,
    round: u64,
    begun: Instant,
    generation: u64,
    ready: Option<Instant>,
    pid: u32,
    worker: Option<Arc<Worker>>,
    commands: mpsc::Sender<Command>,
}

/// All workers are being replaced.
struct Roll {
    begun: Instant,
    waiting: Vec<oneshot::Sender<Result<(), String>>>,
}

impl Owner {
    pub(super) fn new(
        app: Arc<App>,
        pool: Arc<Pool>,
        surroundings: Arc<Surroundings>,
        view: View,
        loaded: Arc<Loaded>,
    ) -> Self {
        let (tell, told) = mpsc::channel(APP_MESSAGES_MAX);
        let wanted = configured(&app, surroundings.cores);
        let now = Instant::now();
        Self {
            app,
            pool,
            surroundings,
            view,
            tell,
            told,
            wanted,
            members: BTreeMap::new(),
            pause: Pause::default(),
            next_start: now,
            roll: None,
            has_failed_roll: false,
            generation: 0,
            loaded,
            waiting: Vec::new(),
            runtime: String::new(),
            said_ready: Some(now),
            is_failing: false,
            reported: None,
            is_well_from: None,
            speaks_http: false,
            stopping: None,
            serves_queue_until: None,
            is_leaving: false,
        }
    }

    /// Until it has been stopped and its last worker has ended.
    pub(super) async fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        let mut has_orders = true;
        loop {
            self.settle();
            self.show();
            if self.stopping.is_some() && self.members.is_empty() {
                break;
            }
            let waits = self.stopping.is_none() && self.missing() > 0;
            tokio::select! {
                order = orders.recv(), if has_orders => match order {
                    Some(order) => self.obey(order),
                    None => {
                        has_orders = false;
                        self.stop();
                    }
                },
                Some(told) = self.told.recv() => self.hear(told),
                () = sleep_until(self.next_start), if waits => {}
                () = until(self.is_well_from) => self.is_well(),
                () = sleep(WORKER_DRAIN_LOOK_PERIOD), if self.is_leaving && self.stopping.is_none() => {}
                () = sleep(WORKER_DRAIN_LOOK_PERIOD), if self.serves_queue_until.is_some() => self.leave_once_empty(),
            }
        }
        // The last one may have ended while others waited for it, and nobody is started any more.
        self.pool.set_failing(APP_RETRY_AFTER_SECONDS, None);
        for waiting in self.stopping.take().into_iter().flatten() {
            let _ = waiting.send(());
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Workers(count, taken) => {
                if !matches!(self.app.run, AppRun::Elsewhere { .. }) {
                    self.wanted = count.clamp(1, WORKERS_MAX);
                }
                self.settle();
                self.show();
                let _ = taken.send(());
            }
            Order::Roll(waiting) => self.begin_roll(Some(waiting)),
            Order::Keep(waiting) if self.runs() => {
                self.wanted = configured(&self.app, self.surroundings.cores);
                let _ = waiting.send(Ok(()));
            }
            Order::Keep(waiting) => self.begin_roll(Some(waiting)),
            Order::AwaitReady(waiting) => self.waiting.push(waiting),
            Order::TakeLeave => {
                self.is_leaving = true;
                let speaks = self.has_control_lane();
                self.members.values().filter(|_| speaks).for_each(Member::take_leave);
            }
            Order::Stop(waiting) => {
                self.stop();
                self.stopping.get_or_insert_default().push(waiting);
            }
        }
    }

    fn begin_roll(&mut self, waiting: Option<oneshot::Sender<Result<(), String>>>) {
        if matches!(self.app.run, AppRun::Elsewhere { .. }) {
            // Whoever starts it replaces it.
            return waiting.into_iter().for_each(|waiting| drop(waiting.send(Ok(()))));
        }
        self.wanted = configured(&self.app, self.surroundings.cores);
        let roll = self.roll.get_or_insert_with(|| Roll { begun: Instant::now(), waiting: Vec::new() });
        roll.waiting.extend(waiting);
        self.generation += 1;
        self.loaded.begin();
        self.pause.forget();
        self.next_start = Instant::now();
        for member in self.members.values_mut() {
            match member.state {
                State::Serving => member.is_old = true,
                // It may have read what was there before.
                State::Starting => member.leave(State::Draining, Command::Kill),
                State::Draining | State::Stuck | State::Ending => {}
            }
        }
    }

    /// The workers stay until nobody waits for one: what was accepted under the old settings is answered.
    fn stop(&mut self) {
        if self.stopping.is_some() {
            return;
        }
        self.stopping = Some(Vec::new());
        self.serves_queue_until = Some(Instant::now() + self.app.stop_timeout);
        let gone = || Err("the application is being stopped".to_owned());
        let rolling = self.roll.take().map(|roll| roll.waiting).unwrap_or_default();
        for waiting in rolling.into_iter().chain(self.waiting.drain(..)) {
            let _ = waiting.send(gone());
        }
    }

    /// Not asked at once, but a look later: a request may be on its way from the old settings to the queue.
    fn leave_once_empty(&mut self) {
        let is_over = self.serves_queue_until.is_some_and(|until| Instant::now() >= until);
        let may_serve = self.count(State::Serving) + self.count(State::Starting) > 0;
        if self.pool.waiting() > 0 && may_serve && !is_over {
            return;
        }
        self.serves_queue_until = None;
        for (id, member) in &mut self.members {
            let command = if member.worker.is_some() { Command::Drain } else { Command::Kill };
            self.pool.withdraw(*id);
            member.leave(State::Draining, command);
        }
        // Nobody comes any more: who waits all the same is told so now.
        self.pool.set_failing(APP_RETRY_AFTER_SECONDS, None);
    }

    fn hear(&mut self, told: Told) {
        let is_handler = self.has_control_lane();
        let Some(member) = self.members.get_mut(&told.id) else { return };
        match told.what {
            News::Started { pid } => member.pid = pid,
            News::Loaded(news) => {
                let is_next = self.roll.is_some() && member.generation == self.generation;
                // Of those that were replaced it does not count any more.
                if is_next
                    || member.generation == self.generation
                    || self.roll.is_some()
                    || self.has_failed_roll
                {
                    self.loaded.add(news, is_next);
                }
            }
            News::Health { resident_bytes, lag, is_due } => {
                self.view.health(told.id, resident_bytes, lag);
                member.is_old |=
                    is_due && member.state == State::Serving && Instant::now() >= self.next_start;
            }
            News::Ready { worker, runtime } => {
                member.worker = Some(Arc::clone(&worker));
                if member.state == State::Starting {
                    member.state = State::Serving;
                    member.ready = Some(Instant::now());
                    if self.is_leaving && is_handler {
                        member.take_leave();
                    }
                    self.say_http(&worker, &runtime);
                    // Who is answered by it finds it where workers are listed.
                    self.show();
                    self.pool.admit(worker);
                    self.runtime = runtime;
                    self.is_ready();
                } else {
                    // It was told to end meanwhile.
                    member.command(Command::Drain);
                }
            }
            News::Withdraw(why) => {
                self.pool.withdraw(told.id);
                match why {
                    Withdrawal::Asked => member.leave(State::Draining, Command::Drain),
                    Withdrawal::Stuck => member.state = State::Stuck,
                    // One that somebody else starts may come back; a process of ours tells its end.
                    Withdrawal::Lost if matches!(self.app.run, AppRun::Elsewhere { .. }) => {
                        member.state = State::Starting;
                        let reason = "nobody answers there; it is tried again every two seconds".to_owned();
                        self.fails(reason, ELSEWHERE_PROBE_PERIOD, None);
                    }
                    Withdrawal::Lost if matches!(member.state, State::Starting | State::Serving) => {
                        member.state = State::Ending;
                    }
                    Withdrawal::Lost => {}
                }
            }
            News::Ended(end) => self.ended(told.id, end),
        }
    }

    fn is_ready(&mut self) {
        self.view.fails(None);
        // One that fails again and again may be ready for a moment each time.
        if self.pause.is_crash_loop() {
            self.is_well_from = Some(Instant::now() + CRASH_LOOP_LIFE);
        } else {
            self.is_well();
        }
    }

    fn is_well(&mut self) {
        self.is_well_from = None;
        self.is_failing = false;
        self.reported = None;
        if let Some(begun) = self.said_ready.take() {
            let (app, workers, runtime) = (self.app.name.clone(), self.wanted, self.runtime.clone());
            let (took, failures) = (begun.elapsed(), self.pause.futile());
            self.surroundings.say(Event::AppReady { app, runtime, workers, took, failures });
        }
    }

    /// Programs know nothing of the server's leaving until they are ended.
    fn has_control_lane(&self) -> bool {
        matches!(self.app.run, AppRun::Handler { .. })
    }

    /// That a handler's worker is not spoken to in frames should not stay unseen: it is slower.
    fn say_http(&mut self, worker: &Worker, runtime: &str) {
        let speaks = self.has_control_lane() && worker.transport != Transport::Frames;
        if speaks && !std::mem::replace(&mut self.speaks_http, speaks) {
            let (app, runtime) = (self.app.name.clone(), runtime.to_owned());
            let is_asked = self.app.protocol == AppProtocol::Http;
            self.surroundings.say(Event::AppSpeaksHttp { app, runtime, is_asked });
        }
        self.speaks_http = speaks;
    }

    fn ended(&mut self, id: WorkerId, end: End) {
        let Some(member) = self.members.remove(&id) else { return };
        self.pool.withdraw(id);
        if self.stopping.is_some() || !end.failed {
            return self.say_ended(end, None);
        }
        // Of a server that stops, workers end in whatever way they were told to.
        if self.is_leaving {
            self.pause_after(&member);
            return self.say_ended(End { failed: false, ..end }, None);
        }
        self.view.failed();
        let was_serving = member.ready.is_some();
        if member.state == State::Stuck {
            // Another was started when it stood still.
            return self.say_ended(end, None);
        }
        let pause = self.pause_after(&member);
        let serving = self.count(State::Serving);
        let reason = end.reason.clone();
        let never_ran = end.never_ran;
        if !was_serving {
            self.roll_failed(&reason);
        }
        let is_missed = self.missing() > 0;
        if !self.is_reported(&reason) {
            self.say_ended(end, Some(pause).filter(|_| is_missed));
        }
        if self.count(State::Serving) == 0 {
            self.is_well_from = None;
        }
        if !was_serving {
            for waiting in self.waiting.drain(..) {
                let _ = waiting.send(Err(reason.clone()));
            }
        }
        self.consider_failing(&reason, pause, serving, was_serving, never_ran);
    }

    /// How long nobody is started, now that this one has failed.
    fn pause_after(&mut self, member: &Member) -> Duration {
        let life = member.ready.map(|ready| ready.elapsed());
        let pause = self.pause.ended(member.round, life, self.surroundings.chance());
        self.next_start = Instant::now() + pause;
        pause
    }

    /// The new ones do not start: the old ones serve on.
    fn roll_failed(&mut self, reason: &str) {
        if let Some(roll) = self.roll.take() {
            self.has_failed_roll = true;
            self.loaded.abandon();
            for waiting in roll.waiting {
                let _ = waiting.send(Err(reason.to_owned()));
            }
        }
        for member in self.members.values_mut() {
            member.is_old = false;
        }
    }

    fn consider_failing(
        &mut self,
        reason: &str,
        pause: Duration,
        serving: usize,
        was_serving: bool,
        never_ran: bool,
    ) {
        let watch = self.surroundings.options.watch;
        let shown = watch.then(|| reason.to_owned());
        let is_hopeless = self.pause.is_crash_loop() || never_ran || (watch && !was_serving);
        if serving > 0 {
            if self.pause.is_crash_loop() && !self.is_reported(reason) {
                self.reported = Some(first_line(reason));
                let (app, failures) = (self.app.name.clone(), self.pause.futile());
                self.surroundings.say(Event::CrashLoop { app, reason: reason.to_owned(), failures });
            }
            if watch && !was_serving {
                self.pool.set_failing(0, shown);
                self.view.fails(Some(reason.to_owned()));
            }
            return;
        }
        if !is_hopeless {
            return;
        }
        self.fails(reason.to_owned(), pause, shown);
    }

    fn fails(&mut self, reason: String, retry_in: Duration, shown: Option<String>) {
        let seconds = u32::try_from(retry_in.as_secs()).unwrap_or(u32::MAX).saturating_add(1);
        self.pool.set_failing(seconds, shown);
        self.view.fails(Some(reason.clone()));
        self.reported = Some(first_line(&reason));
        if !std::mem::replace(&mut self.is_failing, true) {
            // That it is well again is worth saying too.
            self.said_ready.get_or_insert_with(Instant::now);
            let (app, failures) = (self.app.name.clone(), self.pause.futile());
            self.surroundings.say(Event::AppFailing { app, reason, retry_in, failures });
        }
    }

    fn is_reported(&self, reason: &str) -> bool {
        self.reported.as_ref().is_some_and(|reported| *reported == first_line(reason))
    }

    fn say_ended(&self, end: End, restart_in: Option<Duration>) {
        let End { pid, reason, failed, .. } = end;
        let app = self.app.name.clone();
        self.surroundings.say(Event::WorkerEnded { app, pid, reason, restart_in, failed });
    }

    /// Whether its workers are to stay where nothing has changed.
    fn runs(&self) -> bool {
        let is_failing = self.is_failing && self.is_well_from.is_none();
        self.count(State::Serving) > 0 && !is_failing && !self.has_failed_roll
    }

    fn count(&self, state: State) -> usize {
        self.members.values().filter(|member| member.state == state).count()
    }

    fn old(&self) -> usize {
        self.members.values().filter(|member| member.is_old && member.state == State::Serving).count()
    }

    /// How many may be started as soon as the pause allows.
    fn missing(&self) -> usize {
        let (starting, old) = (self.count(State::Starting), self.old());
        // Who is ending is replaced when it has told how: that decides about the pause.
        let new = self.count(State::Serving) - old + starting + self.count(State::Ending);
        let missing = self.wanted.saturating_sub(new);
        if self.is_leaving && (self.count(State::Serving) > 0 || self.pool.waiting() == 0) {
            // The server stops: one more would be started for nobody.
            return 0;
        }
        // While others serve, one at a time: replacing must not take the memory of twice as many.
        if old > 0 { missing.min(1_usize.saturating_sub(starting)) } else { missing }
    }

    /// Makes what is there what is wanted.
    fn settle(&mut self) {
        self.pool.set_worker_count(self.wanted);
        if self.stopping.is_some() {
            return;
        }
        if Instant::now() >= self.next_start {
            for _ in 0..self.missing() {
                self.start();
            }
        }
        let serving = self.count(State::Serving);
        for _ in self.wanted..serving {
            let Some(id) = self.dispensable() else { break };
            self.pool.withdraw(id);
            if let Some(member) = self.members.get_mut(&id) {
                member.leave(State::Draining, Command::Drain);
            }
        }
        let (old, serving) = (self.old(), self.count(State::Serving));
        let starting = self.count(State::Starting);
        for _ in self.wanted..(serving - old + starting).max(self.wanted) {
            // The number was lowered while they start.
            let Some((_, member)) = self.members.iter_mut().find(|(_, m)| m.state == State::Starting) else {
                break;
            };
            member.leave(State::Draining, Command::Kill);
        }
        // No reload waits for what somebody else starts.
        let is_looked_for = self.is_failing && matches!(self.app.run, AppRun::Elsewhere { .. });
        if (old == 0 && serving >= self.wanted) || is_looked_for {
            self.all_serve();
        }
    }

    /// Who goes first where too many serve: old ones, of them the one whose seat a newer one has taken, then
    /// those whose seat is no longer there, then the ones that were started first.
    fn dispensable(&self) -> Option<WorkerId> {
        let serving = || self.members.iter().filter(|(_, member)| member.state == State::Serving);
        let order = |(id, member): &(&WorkerId, &Member)| {
            let is_succeeded = serving().any(|(newer, other)| newer > *id && other.seat == member.seat);
            (!member.is_old, !is_succeeded, member.seat.0 < self.wanted, **id)
        };
        serving().min_by_key(order).map(|(id, _)| *id)
    }

    /// The lowest that nobody has who stays: a successor takes over its predecessor's.
    fn free_seat(&self) -> WorkerIndex {
        let stays =
            |member: &&Member| matches!(member.state, State::Starting | State::Serving) && !member.is_old;
        let is_taken =
            |seat: &usize| self.members.values().filter(stays).any(|member| member.seat.0 == *seat);
        WorkerIndex((0..).find(|seat| !is_taken(seat)).unwrap_or_default())
    }

    fn all_serve(&mut self) {
        if let Some(roll) = self.roll.take() {
            self.has_failed_roll = false;
            self.loaded.finish();
            let (app, workers) = (self.app.name.clone(), self.wanted);
            self.surroundings.say(Event::AppRolled { app, workers, took: roll.begun.elapsed() });
            for waiting in roll.waiting {
                let _ = waiting.send(Ok(()));
            }
        }
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(Ok(()));
        }
    }

    fn start(&mut self) {
        let id = self.surroundings.next_id();
        let seat = self.free_seat();
        let (commands, receiver) = mpsc::channel(COMMANDS_MAX);
        let task = Task {
            id,
            seat,
            app: Arc::clone(&self.app),
            surroundings: Arc::clone(&self.surroundings),
            tell: self.tell.clone(),
            commands: receiver,
        };
        let round = self.pause.round();
        let begun = Instant::now();
        let member = Member {
            state: State::Starting,
            seat,
            is_old: false,
            round,
            begun,
            generation: self.generation,
            ready: None,
            pid: 0,
            worker: None,
            commands,
        };
        self.members.insert(id, member);
        match &self.app.run {
            AppRun::Handler { .. } => drop(tokio::spawn(handler::live(task))),
            AppRun::Command { .. } => drop(tokio::spawn(program::live(task))),
            AppRun::Elsewhere { address } => {
                drop(tokio::spawn(program::live_elsewhere(task, address.clone())));
            }
        }
    }

    fn show(&self) {
        let members = self.members.iter().map(|(id, member)| {
            (
                *id,
                Seen {
                    pid: member.pid,
                    state: member.state,
                    begun: member.begun,
                    worker: member.worker.clone(),
                },
            )
        });
        self.view.show(self.wanted, members);
        self.loaded.set_sound(self.runs());
    }
}

fn first_line(reason: &str) -> String {
    reason.lines().next().unwrap_or_default().to_owned()
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// As many workers as the settings want.
pub(super) fn configured(app: &App, cores: usize) -> usize {
    let wanted = match (&app.run, app.workers) {
        (AppRun::Elsewhere { .. }, _) => 1,
        (_, WorkerCount::Auto) => cores,
        (_, WorkerCount::Exactly(count)) => usize::from(count.get()),
    };
    wanted.clamp(1, WORKERS_MAX)
}

/// Commands that a worker's task is sent in its life: to take leave, to drain, and to end at once.
const COMMANDS_MAX: usize = 4;

impl Member {
    fn command(&self, command: Command) {
        // Full, it has heard enough.
        let _ = self.commands.try_send(command);
    }

    fn take_leave(&self) {
        if self.state == State::Serving {
            self.command(Command::TakeLeave);
        }
    }

    fn leave(&mut self, state: State, command: Command) {
        if !matches!(self.state, State::Stuck | State::Ending) {
            self.state = state;
        }
        self.command(command);
    }
}
