//! The owner of one application: orders all that happens to its workers.
//!
//! One task, messages only. After each message it compares the workers that it wants with those that it has, and starts or
//! drains the difference. A worker that is to be replaced (by a reload, or the settings' `recycle`) is marked as old: a new
//! one serves before an old one goes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use onehop_config::checked::{App, AppProtocol, AppRun};
use onehop_workers::limits::{APP_RETRY_AFTER_SECONDS, WORKERS_MAX};
use onehop_workers::{Pool, Transport, Worker, WorkerId, WorkerIndex};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until};

use crate::backoff::Backoff;
use crate::capacity::configured_workers;
use crate::events::AppEvent;
use crate::limits::{APP_MESSAGES_MAX, CRASH_LOOP_LIFE, ELSEWHERE_PROBE_PERIOD, WORKER_DRAIN_LOOK_PERIOD};
use crate::loaded::Loaded;
use crate::messages::{AppCommand, End, ReadySender, Task, Withdrawal, WorkerCommand, WorkerEvent};
use crate::shared::Shared;
use crate::view::{Member as Seen, State, View};
use crate::{elsewhere, lifecycle};

/// The state of an application.
pub(crate) struct Owner {
    app: Arc<App>,
    pool: Arc<Pool>,
    shared: Arc<Shared>,
    view: View,
    /// Given to each worker's task.
    report: mpsc::Sender<(WorkerId, WorkerEvent)>,
    events: mpsc::Receiver<(WorkerId, WorkerEvent)>,
    wanted: usize,
    members: BTreeMap<WorkerId, Member>,
    backoff: Backoff,
    /// No worker is started before.
    next_start: Instant,
    roll: Option<Roll>,
    /// The new workers of the last roll did not start.
    has_failed_roll: bool,
    /// Grows with every roll.
    generation: u64,
    loaded: Arc<Loaded>,
    waiting: Vec<ReadySender>,
    /// The runtime of the worker that became ready last, `node 20.20.2`.
    runtime: String,
    /// When the first worker was started, until the application is reported as ready.
    unreported_since: Option<Instant>,
    is_failing: bool,
    /// The first line of the reason that was reported last: further failures for it are not.
    reported: Option<String>,
    /// A worker serves again; unless it fails before, the application counts as well at this time.
    is_well_from: Option<Instant>,
    /// The last of its handler's workers that became ready speaks HTTP, and that was reported.
    speaks_http: bool,
    stopping: Option<Vec<oneshot::Sender<()>>>,
    /// It is being stopped, and its workers still serve the requests that wait, no longer than until then.
    serves_queue_until: Option<Instant>,
    /// The server has begun to stop.
    server_stops: bool,
}

/// A worker, as its owner sees it.
struct Member {
    state: State,
    index: WorkerIndex,
    /// It is to be replaced.
    is_old: bool,
    round: u64,
    started: Instant,
    generation: u64,
    ready: Option<Instant>,
    pid: u32,
    worker: Option<Arc<Worker>>,
    commands: mpsc::Sender<WorkerCommand>,
}

/// All workers are being replaced.
struct Roll {
    started: Instant,
    waiting: Vec<ReadySender>,
}

impl Owner {
    pub(crate) fn new(
        app: Arc<App>,
        pool: Arc<Pool>,
        shared: Arc<Shared>,
        view: View,
        loaded: Arc<Loaded>,
    ) -> Self {
        let (report, events) = mpsc::channel(APP_MESSAGES_MAX);
        let wanted = configured_workers(&app, shared.cores);
        let now = Instant::now();
        Self {
            app,
            pool,
            shared,
            view,
            report,
            events,
            wanted,
            members: BTreeMap::new(),
            backoff: Backoff::default(),
            next_start: now,
            roll: None,
            has_failed_roll: false,
            generation: 0,
            loaded,
            waiting: Vec::new(),
            runtime: String::new(),
            unreported_since: Some(now),
            is_failing: false,
            reported: None,
            is_well_from: None,
            speaks_http: false,
            stopping: None,
            serves_queue_until: None,
            server_stops: false,
        }
    }

    /// Owns the application until it has been stopped and its last worker has ended.
    pub(crate) async fn run(mut self, mut commands: mpsc::Receiver<AppCommand>) {
        let mut is_owned = true;
        loop {
            self.settle();
            self.show();
            if self.stopping.is_some() && self.members.is_empty() {
                break;
            }
            let waits = self.stopping.is_none() && self.missing() > 0;
            tokio::select! {
                command = commands.recv(), if is_owned => match command {
                    Some(command) => self.obey(command),
                    None => {
                        is_owned = false;
                        self.stop();
                    }
                },
                Some((id, event)) = self.events.recv() => self.handle(id, event),
                () = sleep_until(self.next_start), if waits => {}
                () = until(self.is_well_from) => self.is_well(),
                () = sleep(WORKER_DRAIN_LOOK_PERIOD), if self.server_stops && self.stopping.is_none() => {}
                () = sleep(WORKER_DRAIN_LOOK_PERIOD), if self.serves_queue_until.is_some() => self.leave_once_empty(),
            }
        }
        // The last worker may have ended while requests waited for it, and no other is started.
        self.pool.set_failing(APP_RETRY_AFTER_SECONDS, None);
        for waiting in self.stopping.take().into_iter().flatten() {
            let _ = waiting.send(());
        }
    }

    fn obey(&mut self, command: AppCommand) {
        match command {
            AppCommand::Workers(count, taken) => {
                if !matches!(self.app.run, AppRun::Elsewhere { .. }) {
                    self.wanted = count.clamp(1, WORKERS_MAX);
                }
                self.settle();
                self.show();
                let _ = taken.send(());
            }
            AppCommand::Roll(waiting) => self.begin_roll(Some(waiting)),
            AppCommand::Keep(waiting) if self.runs() => {
                self.wanted = configured_workers(&self.app, self.shared.cores);
                let _ = waiting.send(Ok(()));
            }
            AppCommand::Keep(waiting) => self.begin_roll(Some(waiting)),
            AppCommand::AwaitReady(waiting) => self.waiting.push(waiting),
            AppCommand::AnnounceStop => {
                self.server_stops = true;
                if self.has_control_connection() {
                    self.members.values().for_each(Member::announce_stop);
                }
            }
            AppCommand::Stop(waiting) => {
                self.stop();
                self.stopping.get_or_insert_default().push(waiting);
            }
        }
    }

    fn begin_roll(&mut self, waiting: Option<ReadySender>) {
        if matches!(self.app.run, AppRun::Elsewhere { .. }) {
            // The service manager that starts it replaces it.
            return waiting.into_iter().for_each(|waiting| drop(waiting.send(Ok(()))));
        }
        self.wanted = configured_workers(&self.app, self.shared.cores);
        let roll = self.roll.get_or_insert_with(|| Roll { started: Instant::now(), waiting: Vec::new() });
        roll.waiting.extend(waiting);
        self.generation += 1;
        self.loaded.begin_roll();
        self.backoff.forget();
        self.next_start = Instant::now();
        for member in self.members.values_mut() {
            match member.state {
                State::Serving => member.is_old = true,
                // It may have read what was there before.
                State::Starting => member.leave(State::Draining, WorkerCommand::Kill),
                State::Draining | State::Stuck | State::Ending => {}
            }
        }
    }

    /// The workers stay until no request waits for one: what was accepted under the old settings is answered.
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

    /// Called first one look period after the stop: a request may be on its way from the old settings to the queue.
    fn leave_once_empty(&mut self) {
        let is_over = self.serves_queue_until.is_some_and(|until| Instant::now() >= until);
        let may_serve = self.count(State::Serving) + self.count(State::Starting) > 0;
        if self.pool.waiting() > 0 && may_serve && !is_over {
            return;
        }
        self.serves_queue_until = None;
        for (id, member) in &mut self.members {
            let command = if member.worker.is_some() { WorkerCommand::Drain } else { WorkerCommand::Kill };
            self.pool.withdraw(*id);
            member.leave(State::Draining, command);
        }
        // No more requests come; those that wait all the same fail now.
        self.pool.set_failing(APP_RETRY_AFTER_SECONDS, None);
    }

    fn handle(&mut self, id: WorkerId, event: WorkerEvent) {
        let is_handler = self.has_control_connection();
        let Some(member) = self.members.get_mut(&id) else { return };
        match event {
            WorkerEvent::Started { pid } => member.pid = pid,
            WorkerEvent::Loaded(loaded) => {
                let is_next = self.roll.is_some() && member.generation == self.generation;
                // Files of workers that were replaced do not count any more.
                if is_next
                    || member.generation == self.generation
                    || self.roll.is_some()
                    || self.has_failed_roll
                {
                    self.loaded.add(loaded, is_next);
                }
            }
            WorkerEvent::Health { resident_bytes, lag, is_due } => {
                self.view.health(id, resident_bytes, lag);
                member.is_old |=
                    is_due && member.state == State::Serving && Instant::now() >= self.next_start;
            }
            WorkerEvent::Ready { worker, runtime } => {
                member.worker = Some(Arc::clone(&worker));
                if member.state == State::Starting {
                    member.state = State::Serving;
                    member.ready = Some(Instant::now());
                    if self.server_stops && is_handler {
                        member.announce_stop();
                    }
                    self.report_http(&worker, &runtime);
                    // A request that it answers finds it where workers are listed.
                    self.show();
                    self.pool.admit(worker);
                    self.runtime = runtime;
                    self.is_ready();
                } else {
                    // The owner wanted it to end meanwhile.
                    member.command(WorkerCommand::Drain);
                }
            }
            WorkerEvent::Withdraw(why) => {
                self.pool.withdraw(id);
                match why {
                    Withdrawal::Requested => member.leave(State::Draining, WorkerCommand::Drain),
                    Withdrawal::Stuck => member.state = State::Stuck,
                    // One that another service manager starts may come back; a process of ours reports its end.
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
            WorkerEvent::Ended(end) => self.ended(id, end),
        }
    }

    fn is_ready(&mut self) {
        self.view.fails(None);
        // One that fails again and again may be ready for a moment each time.
        if self.backoff.is_crash_loop() {
            self.is_well_from = Some(Instant::now() + CRASH_LOOP_LIFE);
        } else {
            self.is_well();
        }
    }

    fn is_well(&mut self) {
        self.is_well_from = None;
        self.is_failing = false;
        self.reported = None;
        if let Some(since) = self.unreported_since.take() {
            let (app, workers, runtime) = (self.app.name.clone(), self.wanted, self.runtime.clone());
            let (took, failures) = (since.elapsed(), self.backoff.futile());
            self.shared.report(AppEvent::Ready { app, runtime, workers, took, failures });
        }
    }

    /// Programs do not know that the server stops until they are ended.
    fn has_control_connection(&self) -> bool {
        matches!(self.app.run, AppRun::Handler { .. })
    }

    /// Reports that a handler's worker is not spoken to in frames, which is slower.
    fn report_http(&mut self, worker: &Worker, runtime: &str) {
        let speaks = self.has_control_connection() && worker.transport != Transport::Frames;
        if speaks && !std::mem::replace(&mut self.speaks_http, speaks) {
            let (app, runtime) = (self.app.name.clone(), runtime.to_owned());
            let is_asked = self.app.protocol == AppProtocol::Http;
            self.shared.report(AppEvent::SpeaksHttp { app, runtime, is_asked });
        }
        self.speaks_http = speaks;
    }

    fn ended(&mut self, id: WorkerId, end: End) {
        let Some(member) = self.members.remove(&id) else { return };
        self.pool.withdraw(id);
        if self.stopping.is_some() || !end.failed {
            return self.report_ended(end, None);
        }
        // Workers of a server that stops end as they were asked to.
        if self.server_stops {
            self.pause_after(&member);
            return self.report_ended(End { failed: false, ..end }, None);
        }
        self.view.failed();
        let was_serving = member.ready.is_some();
        if member.state == State::Stuck {
            // Another was started when it stopped responding.
            return self.report_ended(end, None);
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
            self.report_ended(end, Some(pause).filter(|_| is_missed));
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

    /// How long no worker is started, now that this one has failed.
    fn pause_after(&mut self, member: &Member) -> Duration {
        let life = member.ready.map(|ready| ready.elapsed());
        let pause = self.backoff.ended(member.round, life, self.shared.random());
        self.next_start = Instant::now() + pause;
        pause
    }

    /// The new workers do not start: the old ones continue to serve.
    fn roll_failed(&mut self, reason: &str) {
        if let Some(roll) = self.roll.take() {
            self.has_failed_roll = true;
            self.loaded.abandon_roll();
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
        let watch = self.shared.options.watch;
        let shown = watch.then(|| reason.to_owned());
        let is_hopeless = self.backoff.is_crash_loop() || never_ran || (watch && !was_serving);
        if serving > 0 {
            if self.backoff.is_crash_loop() && !self.is_reported(reason) {
                self.reported = Some(first_line(reason));
                let (app, failures) = (self.app.name.clone(), self.backoff.futile());
                self.shared.report(AppEvent::CrashLoop { app, reason: reason.to_owned(), failures });
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
            // That it is well again is reported, too.
            self.unreported_since.get_or_insert_with(Instant::now);
            let (app, failures) = (self.app.name.clone(), self.backoff.futile());
            self.shared.report(AppEvent::Failing { app, reason, retry_in, failures });
        }
    }

    fn is_reported(&self, reason: &str) -> bool {
        self.reported.as_ref().is_some_and(|reported| *reported == first_line(reason))
    }

    fn report_ended(&self, end: End, restart_in: Option<Duration>) {
        let End { pid, reason, failed, .. } = end;
        let app = self.app.name.clone();
        self.shared.report(AppEvent::WorkerEnded { app, pid, reason, restart_in, failed });
    }

    /// Whether the application runs, so that its workers stay where nothing has changed.
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

    /// How many workers may be started as soon as the pause allows.
    fn missing(&self) -> usize {
        let (starting, old) = (self.count(State::Starting), self.old());
        // A worker that is ending is replaced once it has reported how: that decides about the pause.
        let new = self.count(State::Serving) - old + starting + self.count(State::Ending);
        let missing = self.wanted.saturating_sub(new);
        if self.server_stops && (self.count(State::Serving) > 0 || self.pool.waiting() == 0) {
            // The server stops: no request would come to one more.
            return 0;
        }
        // While others serve, one at a time: replacing must not take the memory of twice as many.
        if old > 0 { missing.min(1_usize.saturating_sub(starting)) } else { missing }
    }

    /// Starts workers that are missing, drains those that are too many.
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
                member.leave(State::Draining, WorkerCommand::Drain);
            }
        }
        let (old, serving) = (self.old(), self.count(State::Serving));
        let starting = self.count(State::Starting);
        for _ in self.wanted..(serving - old + starting).max(self.wanted) {
            // The number was lowered while they start.
            let Some((_, member)) = self.members.iter_mut().find(|(_, m)| m.state == State::Starting) else {
                break;
            };
            member.leave(State::Draining, WorkerCommand::Kill);
        }
        // No reload waits for what another service manager starts.
        let is_looked_for = self.is_failing && matches!(self.app.run, AppRun::Elsewhere { .. });
        if (old == 0 && serving >= self.wanted) || is_looked_for {
            self.all_serve();
        }
    }

    /// The worker that goes first where too many serve: old ones, of them the one whose index a newer one has taken, then
    /// those whose index is out of range, then those that were started first.
    fn dispensable(&self) -> Option<WorkerId> {
        let serving = || self.members.iter().filter(|(_, member)| member.state == State::Serving);
        let order = |(id, member): &(&WorkerId, &Member)| {
            let is_succeeded = serving().any(|(newer, other)| newer > *id && other.index == member.index);
            (!member.is_old, !is_succeeded, member.index.0 < self.wanted, **id)
        };
        serving().min_by_key(order).map(|(id, _)| *id)
    }

    /// The lowest index that no worker that stays has: a successor takes over its predecessor's.
    fn free_index(&self) -> WorkerIndex {
        let stays =
            |member: &&Member| matches!(member.state, State::Starting | State::Serving) && !member.is_old;
        let is_taken =
            |index: &usize| self.members.values().filter(stays).any(|member| member.index.0 == *index);
        WorkerIndex((0..).find(|index| !is_taken(index)).unwrap_or_default())
    }

    fn all_serve(&mut self) {
        if let Some(roll) = self.roll.take() {
            self.has_failed_roll = false;
            self.loaded.finish_roll();
            let (app, workers) = (self.app.name.clone(), self.wanted);
            self.shared.report(AppEvent::Rolled { app, workers, took: roll.started.elapsed() });
            for waiting in roll.waiting {
                let _ = waiting.send(Ok(()));
            }
        }
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(Ok(()));
        }
    }

    fn start(&mut self) {
        let id = self.shared.next_id();
        let index = self.free_index();
        let (commands, receiver) = mpsc::channel(COMMANDS_MAX);
        let task = Task {
            id,
            index,
            app: Arc::clone(&self.app),
            shared: Arc::clone(&self.shared),
            events: self.report.clone(),
            commands: receiver,
        };
        let round = self.backoff.round();
        let started = Instant::now();
        let member = Member {
            state: State::Starting,
            index,
            is_old: false,
            round,
            started,
            generation: self.generation,
            ready: None,
            pid: 0,
            worker: None,
            commands,
        };
        self.members.insert(id, member);
        match &self.app.run {
            AppRun::Handler { .. } | AppRun::Command { .. } => drop(tokio::spawn(lifecycle::run(task))),
            AppRun::Elsewhere { address } => drop(tokio::spawn(elsewhere::run(task, address.clone()))),
        }
    }

    fn show(&self) {
        let members = self.members.iter().map(|(id, member)| {
            (
                *id,
                Seen {
                    pid: member.pid,
                    state: member.state,
                    started: member.started,
                    worker: member.worker.clone(),
                },
            )
        });
        self.view.show(self.wanted, members);
        self.loaded.set_running(self.runs());
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

/// Commands that a worker's task is sent in its life: that the server stops, to drain, and to end at once.
const COMMANDS_MAX: usize = 4;

impl Member {
    fn command(&self, command: WorkerCommand) {
        // A full channel holds the command to end already.
        let _ = self.commands.try_send(command);
    }

    fn announce_stop(&self) {
        if self.state == State::Serving {
            self.command(WorkerCommand::AnnounceStop);
        }
    }

    fn leave(&mut self, state: State, command: WorkerCommand) {
        if !matches!(self.state, State::Stuck | State::Ending) {
            self.state = state;
        }
        self.command(command);
    }
}
