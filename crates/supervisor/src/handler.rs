//! What a worker reports on its control connection (docs/worker-protocol.md): that it is ready, how it is, that it drains.
//!
//! Starts and ends nothing: `lifecycle.rs` does.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use onehop_config::checked::{App, AppAddress};
use onehop_wire::{Blocked, Broken, Transport as Spoken};
use onehop_workers::limits::{HANDLER_CONCURRENCY, SERVER_CONCURRENCY};
use onehop_workers::{Transport, Worker};
use tokio::time::{Instant, sleep_until};

use crate::control_connection::{ControlConnection, Message};
use crate::events::AppEvent;
use crate::launch::HandlerSockets;
use crate::limits::{
    WORKER_BUSY_PING_PERIOD, WORKER_LAG_SETTLED, WORKER_OUTPUT_END_DEADLINE, WORKER_PING_PERIOD,
};
use crate::loaded::LoadedFiles;
use crate::probe::connects;
use crate::progress::{Cause, Ready, Signal};
use crate::reason;
use crate::shared::Shared;

/// Our end of a worker that speaks the worker protocol.
pub(crate) struct Handler {
    control: ControlConnection,
    /// Our ends of its connections, until the cores have them. Where it speaks HTTP nothing uses them, but at their end the
    /// worker would give itself up.
    sockets: Vec<UnixStream>,
    /// Where it listens if it speaks HTTP, and as which user.
    http: (PathBuf, Option<u32>),
    /// What is loaded from now on was loaded after this.
    since: SystemTime,
    has_announced_drain: bool,
    ping: Ping,
}

/// When a worker is asked how it is: often while requests come. (Requests that stay, as tunnels do, are no reason.)
struct Ping {
    next: Instant,
    /// Requests that the worker was handed until the last one.
    requests: u64,
    token: u64,
    /// When the worker was asked, until it answers.
    sent: Option<Instant>,
}

impl Handler {
    pub(crate) fn new(sockets: HandlerSockets) -> Result<Self, String> {
        let HandlerSockets { control, data, http, uid } = sockets;
        let control = ControlConnection::new(control)
            .map_err(|error| format!("its control connection cannot be used: {error}"))?;
        let ping = Ping { next: Instant::now(), requests: 0, token: 0, sent: None };
        let since = SystemTime::now();
        Ok(Self { control, sockets: data, http: (http, uid), since, has_announced_drain: false, ping })
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.http.0
    }

    /// Waits for READY.
    pub(crate) async fn ready(&mut self, app: &App, shared: &Shared) -> Result<Ready, Cause> {
        self.control.hello(self.sockets.len(), shared.windows, &app.name).await;
        let (runtime, spoken) = match self.first_message().await {
            Ok(Message::Ready(runtime, spoken)) => (runtime, spoken),
            Ok(Message::Failed(why)) => return Err(Cause::Failed(why)),
            Ok(Message::End) => return Err(Cause::Exited),
            Ok(Message::Pong(_) | Message::Blocked(_) | Message::Drain | Message::Loaded) => {
                return Err(Cause::Broken(
                    "it broke the worker protocol: it spoke before it was ready".into(),
                ));
            }
            Err(broken) => return Err(not_a_frame(broken)),
        };
        if let Some(unsupported) = reason::unsupported(&runtime) {
            let message = format!("application {}: {unsupported}", app.name);
            shared.report(AppEvent::Warning { message });
        }
        let usual = match spoken {
            Spoken::Frames => HANDLER_CONCURRENCY,
            Spoken::Http | Spoken::FramesForServer => SERVER_CONCURRENCY,
        };
        let concurrency = app.concurrency.map_or(usual, |written| written as usize);
        let (transport, sockets) = match spoken {
            Spoken::Frames | Spoken::FramesForServer => {
                (Transport::Frames, std::mem::take(&mut self.sockets))
            }
            Spoken::Http => (self.over_http().await?, Vec::new()),
        };
        Ok(Ready { runtime, transport, concurrency, sockets })
    }

    /// How a worker is reached that asks for HTTP. Whether it listens is checked once; afterwards its control connection
    /// reports how it is.
    async fn over_http(&self) -> Result<Transport, Cause> {
        let (path, uid) = self.http.clone();
        let address = AppAddress::Unix(path);
        match connects(&address, uid).await {
            Ok(()) => Ok(Transport::Http { address, uid }),
            Err(error) => Err(Cause::Broken(format!(
                "it is ready to be spoken to in HTTP, and the socket that $ONEHOP_HTTP_SOCKET named takes no connection: {error}"
            ))),
        }
    }

    /// Why the process ended before it was ready. What it said last may not have been read yet.
    pub(crate) async fn last_message(&mut self) -> Cause {
        match tokio::time::timeout(WORKER_OUTPUT_END_DEADLINE, self.first_message()).await {
            Ok(Ok(Message::Failed(why))) => Cause::Failed(why),
            Ok(Err(broken)) => not_a_frame(broken),
            _ => Cause::Exited,
        }
    }

    /// The first message that is not about loaded files.
    async fn first_message(&mut self) -> Result<Message, Broken> {
        loop {
            match self.control.receive().await {
                Ok(Message::Loaded) => {}
                message => return message,
            }
        }
    }

    /// Waits for what happens next. May be cancelled and called again.
    pub(crate) async fn signal(&mut self, worker: &Worker, stuck_after: Duration) -> Result<Signal, Cause> {
        loop {
            // A worker that answers requests is not stuck, however long its turn lasts.
            let silent_since = self.ping.sent.map(|sent| sent.max(worker.last_heard().into()));
            let stuck_at = silent_since.map(|since| since + stuck_after);
            tokio::select! {
                biased;
                message = self.control.receive() => match message {
                    Ok(Message::Blocked(blocked)) => note_stall(worker, blocked),
                    message => return self.understand(message, worker),
                },
                () = until(stuck_at) => {
                    if silent_since.is_none_or(|since| since >= worker.last_heard().into()) {
                        return Err(Cause::Stuck(self.ping.sent.map_or(Duration::ZERO, |sent| sent.elapsed())));
                    }
                }
                () = self.ping.due(worker) => return Ok(Signal::Due),
            }
        }
    }

    fn understand(&mut self, message: Result<Message, Broken>, worker: &Worker) -> Result<Signal, Cause> {
        match when_ready(message)? {
            Message::Pong(pong) => {
                if self.ping.sent.take().is_none() || pong.token != self.ping.token {
                    return Err(Cause::Broken("it answered a PING that was not asked".into()));
                }
                let lag = Duration::from_micros(pong.delay_us.into());
                worker.measured_lag(lag);
                self.since = SystemTime::now();
                let requests = worker.started().max(pong.begun);
                Ok(Signal::Health { resident_bytes: pong.resident_bytes, lag, requests })
            }
            Message::Drain => Ok(Signal::Drain),
            _ => Ok(Signal::Loaded),
        }
    }

    /// Asks how the worker is, unless it has not answered the last time.
    pub(crate) async fn ping(&mut self, worker: &Worker) {
        if self.ping.sent.is_none() {
            self.ping.token += 1;
            let now = Instant::now();
            self.ping.sent = Some(now);
            worker.was_pinged(now.into_std());
            self.control.ping(self.ping.token).await;
        }
    }

    /// The files that the worker has reported since the last time.
    pub(crate) fn loaded(&mut self) -> LoadedFiles {
        let since = std::mem::replace(&mut self.since, SystemTime::now());
        LoadedFiles::after(self.control.take_loaded(), since)
    }

    pub(crate) async fn announce_drain(&mut self) {
        if !std::mem::replace(&mut self.has_announced_drain, true) {
            self.control.drain().await;
        }
    }

    /// Reads what the worker still says, until that breaks the protocol. May be cancelled and called again.
    pub(crate) async fn broken(&mut self) -> Cause {
        loop {
            if let Err(cause) = when_ready(self.control.receive().await) {
                return cause;
            }
            self.control.take_loaded();
        }
    }

    /// Lets the worker end.
    pub(crate) async fn retire(&mut self) {
        self.control.retire().await;
    }

    /// Reads whatever the worker still says; never returns.
    pub(crate) async fn discard(&mut self) {
        while !matches!(self.control.receive().await, Ok(Message::End) | Err(_)) {
            self.control.take_loaded();
        }
        std::future::pending().await
    }
}

impl Ping {
    /// Waits until the worker is to be asked. A wait that is cancelled is continued by the next call.
    async fn due(&mut self, worker: &Worker) {
        sleep_until(self.next).await;
        let requests = worker.started();
        let is_busy =
            requests != self.requests || worker.lag(Instant::now().into_std()) >= WORKER_LAG_SETTLED;
        self.requests = requests;
        self.next = Instant::now() + if is_busy { WORKER_BUSY_PING_PERIOD } else { WORKER_PING_PERIOD };
    }
}

/// A worker reports a stall of its event loop as soon as it is over.
fn note_stall(worker: &Worker, blocked: Blocked) {
    let until = Instant::now().into_std().checked_sub(Duration::from_micros(blocked.ended_us_ago.into()));
    if let Some(until) = until {
        worker.stalled(until, Duration::from_micros(blocked.duration_us.into()));
    }
}

/// The message of a worker that is ready.
fn when_ready(message: Result<Message, Broken>) -> Result<Message, Cause> {
    match message {
        Ok(message @ (Message::Pong(_) | Message::Blocked(_) | Message::Drain | Message::Loaded)) => {
            Ok(message)
        }
        Ok(Message::End) => Err(Cause::Exited),
        Ok(Message::Ready(..) | Message::Failed(_)) => {
            Err(Cause::Broken("it was ready a second time".into()))
        }
        Err(broken) => Err(Cause::Broken(format!("its control connection is broken: {broken}"))),
    }
}

fn not_a_frame(broken: Broken) -> Cause {
    Cause::Broken(format!("its first frame is none of the worker protocol: {broken}"))
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
