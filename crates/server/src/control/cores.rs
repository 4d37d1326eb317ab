//! The core threads: started together, told through mailboxes, joined at the end.

use std::io;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError, mpsc as std_mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use onehop_metrics::Registry;
use onehop_metrics::counters::OTHER;
use onehop_supervisor::Attach;
use tokio::sync::{mpsc, watch};

use super::bind::Bound;
use crate::request::core::{Core, Shared};
use crate::request::listen::{self, Command, ListenSocket};

/// Commands that wait for a core. The control plane sends a handful at a start or reload; handed-over
/// connections find another way when it is full.
const MAILBOX_COMMANDS_MAX: usize = 256;

/// Events that a core takes from the kernel before it runs what they woke. Larger batches mean fewer
/// system calls under load; the bound keeps one round short.
const EVENTS_PER_POLL_MAX: usize = 256;

/// Tasks that a core runs before it asks the kernel again.
const TASKS_PER_POLL: u32 = 61;

/// Blocking threads of one core, for files that are not in memory.
const BLOCKING_THREADS_MAX: usize = 8;

/// How long an idle blocking thread is kept.
const BLOCKING_THREAD_IDLE: Duration = Duration::from_secs(5);

/// All cores.
pub(super) struct Cores {
    mailboxes: Vec<mpsc::Sender<Command>>,
    threads: Mutex<Vec<JoinHandle<usize>>>,
    /// Disconnected once every core has drained.
    drained: Mutex<std_mpsc::Receiver<()>>,
    /// Drained cores end when this is true.
    release: watch::Sender<bool>,
}

impl Cores {
    /// Starts so many cores.
    pub(super) fn start(count: usize, shared: &Arc<Shared>, registry: &Arc<Registry>) -> io::Result<Self> {
        let mut mailboxes = Vec::new();
        let mut threads = Vec::new();
        let (has_drained, drained) = std_mpsc::channel::<()>();
        let (release, released) = watch::channel(false);
        let (is_made, made) = std_mpsc::channel::<()>();
        for number in 0..count {
            let (sender, commands) = mpsc::channel(MAILBOX_COMMANDS_MAX);
            let (shared, registry) = (Arc::clone(shared), Arc::clone(registry));
            let end = End { made: is_made.clone(), drained: has_drained.clone(), released: released.clone() };
            let thread = std::thread::Builder::new().name(format!("core-{number}"));
            threads.push(thread.spawn(move || run(number, shared, &registry, commands, end))?);
            mailboxes.push(sender);
        }
        // Event loops take descriptors: once it is said that requests are answered, nothing of that is left to fail.
        drop(is_made);
        let _ = made.recv();
        Ok(Self { mailboxes, threads: Mutex::new(threads), drained: Mutex::new(drained), release })
    }

    /// How many.
    pub(super) fn count(&self) -> usize {
        self.mailboxes.len()
    }

    /// Accept here from now on.
    pub(super) fn listen(&self, number: usize, socket: Bound) {
        match socket {
            Bound::Tcp(sockets, _) => {
                for (mailbox, socket) in self.mailboxes.iter().zip(sockets) {
                    let _ = mailbox.blocking_send(Command::Listen(number, ListenSocket::Tcp(socket)));
                }
            }
            Bound::Unix(socket) => {
                let all = self.mailboxes.clone();
                if let Some(first) = self.mailboxes.first() {
                    let _ = first.blocking_send(Command::Listen(number, ListenSocket::Unix(socket, all)));
                }
            }
        }
    }

    /// Hands a worker's sockets to the cores.
    pub(super) fn attach(&self) -> Attach {
        let mailboxes = self.mailboxes.clone();
        Arc::new(move |worker, sockets| {
            let mailboxes = mailboxes.clone();
            Box::pin(async move {
                for (mailbox, socket) in mailboxes.iter().zip(sockets) {
                    // A core that has ended serves no requests any more.
                    let _ = mailbox.send(Command::Attach(Arc::clone(&worker), socket)).await;
                }
            })
        })
    }

    /// Accept there no more.
    pub(super) fn unlisten(&self, number: usize) {
        for mailbox in &self.mailboxes {
            let _ = mailbox.blocking_send(Command::Unlisten(number));
        }
    }

    /// Stop within the grace period.
    pub(super) fn stop(&self, grace: Duration) {
        for mailbox in &self.mailboxes {
            // A core that has ended already needs no telling; one that is busy is waited for.
            let _ = mailbox.blocking_send(Command::Stop(grace));
        }
    }

    /// Waits until every core has answered what it had. Their lanes to workers stay open: a worker takes a
    /// closed one for the end of its server, and others may still be answering.
    pub(super) fn wait_until_drained(&self) {
        let drained = self.drained.lock().unwrap_or_else(PoisonError::into_inner);
        // Nothing is ever sent: the last core to drop its end is what is waited for.
        let _ = drained.recv();
    }

    /// Waits until all have ended; the number of connections that were cut off.
    pub(super) fn join(&self) -> u64 {
        self.release.send_replace(true);
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.drain(..).map(|thread| thread.join().map_or(0, |cut_off| cut_off as u64)).sum()
    }
}

/// What the machine allows this process: affinity and cgroup quota count.
pub(super) fn cores_allowed() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// What a core does when it has drained.
struct End {
    /// Dropped once the core has its event loop.
    made: std_mpsc::Sender<()>,
    /// Dropped then.
    drained: std_mpsc::Sender<()>,
    released: watch::Receiver<bool>,
}

fn run(
    number: usize,
    shared: Arc<Shared>,
    registry: &Registry,
    commands: mpsc::Receiver<Command>,
    mut end: End,
) -> usize {
    let _end = EndTheProcess;
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder
        .enable_all()
        .event_interval(TASKS_PER_POLL)
        .max_io_events_per_tick(EVENTS_PER_POLL_MAX)
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .thread_keep_alive(BLOCKING_THREAD_IDLE);
    let ended = builder.build_local(tokio::runtime::LocalOptions::default()).and_then(|runtime| {
        drop(end.made);
        let counters = registry.cores.get(number).cloned().unwrap_or_default();
        let other = registry.site(OTHER).get(number).cloned().unwrap_or_default();
        let ended = runtime.block_on(async {
            let core = Rc::new(Core::new(number, shared, counters, other));
            let cut_off = listen::run(core, commands).await;
            drop(end.drained);
            // Connections that are cut off end with this; nothing else is worth waiting with them.
            if matches!(cut_off, Ok(0)) {
                let _ = end.released.wait_for(|is_released| *is_released).await;
            }
            cut_off
        });
        // A read that hangs on a lost network must not outlast the grace period.
        runtime.shutdown_background();
        ended
    });
    match ended {
        Ok(cut_off) => cut_off,
        Err(error) => {
            // As with any other defect, what follows ends the process.
            panic!("core {number} failed: {error}");
        }
    }
}

/// A core that dies by a defect leaves its connections and its accept queue behind; a supervisor that
/// starts the process anew is the better cure.
struct EndTheProcess;

impl Drop for EndTheProcess {
    #[expect(
        clippy::disallowed_methods,
        reason = "a server without one of its cores must end, whoever waits for what"
    )]
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::exit(1);
        }
    }
}
