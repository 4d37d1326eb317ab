//! Cores on threads of their own and upstreams on loopback, for the tests of the pool.

mod http2;
mod minimum;
mod sharing;
mod tls;
mod waiting;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc as std_mpsc;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use onehop_connection::buffers::Input;
use onehop_connection::core::{Core, Shared};
use onehop_connection::limits::Timeouts;
use tokio::sync::mpsc;

use crate::peer::{Endpoint, PeerSettings, Versions};
use crate::{ConnectError, Link, Mailboxes, Peer, Pools, Reuse};

/// How long a core of a test waits for another one, whose thread may not run for some milliseconds.
const STEAL_WAIT: Duration = Duration::from_millis(500);

/// The distance of ticks in a test.
const TICK: Duration = Duration::from_millis(10);

/// How long a test waits for what has to happen.
const DEADLINE: Duration = Duration::from_secs(20);

type Job = Box<dyn FnOnce(Rc<Pools>) + Send>;

/// Cores that run jobs.
struct Cores {
    jobs: Vec<mpsc::UnboundedSender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl Cores {
    /// Starts so many, which keep the minimum of these peers' connections open.
    fn start(count: usize, named: &[&Arc<Peer>]) -> Self {
        let shared = Arc::new(Shared::new(count, 64, Timeouts::default()));
        let mailboxes = Arc::new(Mailboxes::new(count).with_steal_timeout(STEAL_WAIT));
        let (mut jobs, mut threads) = (Vec::new(), Vec::new());
        for number in 0..count {
            let (sender, mut inbox) = mpsc::unbounded_channel::<Job>();
            let (shared, mailboxes) = (Arc::clone(&shared), Arc::clone(&mailboxes));
            let named: Vec<Arc<Peer>> = named.iter().map(|peer| Arc::clone(peer)).collect();
            jobs.push(sender);
            threads.push(std::thread::spawn(move || {
                let mut builder = tokio::runtime::Builder::new_current_thread();
                let runtime =
                    builder.enable_all().build_local(tokio::runtime::LocalOptions::default()).unwrap();
                runtime.block_on(async {
                    let pools = Pools::new(Rc::new(Core::new(number, shared)), mailboxes);
                    tokio::task::spawn_local(Rc::clone(&pools).serve_other_cores());
                    pools.keep_open(1, &named);
                    let mut ticks = tokio::time::interval(TICK);
                    loop {
                        tokio::select! {
                            job = inbox.recv() => match job {
                                Some(job) => job(Rc::clone(&pools)),
                                None => return,
                            },
                            _ = ticks.tick() => pools.tick(),
                        }
                    }
                });
            }));
        }
        Self { jobs, threads }
    }

    /// Starts a job on a core; its result is received later.
    fn start_on<T: Send + 'static, F: Future<Output = T> + 'static>(
        &self,
        core: usize,
        work: impl FnOnce(Rc<Pools>) -> F + Send + 'static,
    ) -> std_mpsc::Receiver<T> {
        let (done, result) = std_mpsc::channel();
        let job: Job = Box::new(move |pools| {
            let work = work(pools);
            tokio::task::spawn_local(async move {
                let _ = done.send(work.await);
            });
        });
        assert!(self.jobs[core].send(job).is_ok(), "core {core} has ended");
        result
    }

    /// Runs a job on a core.
    fn on<T: Send + 'static, F: Future<Output = T> + 'static>(
        &self,
        core: usize,
        work: impl FnOnce(Rc<Pools>) -> F + Send + 'static,
    ) -> T {
        self.start_on(core, work).recv_timeout(DEADLINE).expect("in time")
    }

    /// Takes a connection on a core and gives it back at once.
    fn use_once(&self, core: usize, peer: &Arc<Peer>, reuse: Reuse) {
        let peer = Arc::clone(peer);
        self.on(core, move |pools| async move {
            let connection = pools.get(&peer, reuse).await.expect("a connection");
            finish(&pools, &peer, connection);
        });
    }

    /// Takes a connection on a core, which keeps it until the test gives it back.
    fn hold(&self, core: usize, peer: &Arc<Peer>) -> Held {
        let (has, got) = std_mpsc::channel();
        let (release, released) = tokio::sync::oneshot::channel();
        let peer = Arc::clone(peer);
        let over = self.start_on(core, move |pools| async move {
            let connection = pools.get(&peer, Reuse::Any).await.expect("a connection");
            has.send(()).expect("still wanted");
            let _ = released.await;
            finish(&pools, &peer, connection);
        });
        got.recv_timeout(DEADLINE).expect("in time");
        Held { release, over }
    }
}

impl Drop for Cores {
    fn drop(&mut self) {
        self.jobs.clear();
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking(), "a core has panicked");
        }
    }
}

/// A connection in use.
struct Held {
    release: tokio::sync::oneshot::Sender<()>,
    over: std_mpsc::Receiver<()>,
}

impl Held {
    fn give_back(self) {
        let _ = self.release.send(());
        self.over.recv_timeout(DEADLINE).expect("in time");
    }
}

/// As an exchange does at its end.
fn finish(pools: &Pools, peer: &Arc<Peer>, connection: Link) {
    assert!(connection.reuse(0), "nothing was asked");
    pools.give_back(peer, connection);
}

/// Takes connections and keeps them.
struct Upstream {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    open: Arc<Mutex<Vec<TcpStream>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Upstream {
    fn start() -> Self {
        Self::start_at("127.0.0.1:0".parse().unwrap())
    }

    fn start_at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let open = Arc::new(Mutex::new(Vec::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (count, all, over) = (Arc::clone(&accepted), Arc::clone(&open), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                all.lock().unwrap().push(stream);
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { address, accepted, open, is_over, thread: Some(thread) }
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// So many came, and no more until now.
    #[track_caller]
    fn has_accepted(&self, count: usize) {
        wait_until("accepted", || self.accepted() >= count);
        assert_eq!(self.accepted(), count);
    }

    /// Its end of the connection that was accepted as the n-th, from 0.
    fn connection(&self, number: usize) -> TcpStream {
        wait_until("accepted", || self.accepted() > number);
        self.open.lock().unwrap()[number].try_clone().unwrap()
    }

    /// Takes no more, and closes what it has.
    fn stop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
        self.open.lock().unwrap().clear();
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.stop();
        }
    }
}

/// Without a minimum, a maximum and a handshake.
fn settings() -> PeerSettings {
    PeerSettings {
        tls: None,
        versions: Versions::Http1,
        dial_timeout: Duration::from_secs(5),
        fallback_delay: Some(Duration::from_millis(300)),
        probe_interval: Some(Duration::from_secs(30)),
        idle_timeout: Duration::from_secs(60),
        idle_max: 64,
        connections_min: 0,
        connections_max: None,
        queue: (1_000, Duration::from_secs(10)),
    }
}

fn peer_at(address: SocketAddr, settings: PeerSettings) -> Arc<Peer> {
    Peer::new(address.to_string(), Endpoint::Address(address), settings)
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends bytes that the other side sends back.
async fn echo(connection: &Link, bytes: &[u8]) -> Vec<u8> {
    connection.write(bytes, &[]).await.expect("written");
    let mut input = Input::new();
    while input.unread().len() < bytes.len() {
        let count = std::future::poll_fn(|context| connection.poll_fill(&mut input, context)).await;
        assert!(count.expect("read") > 0, "closed");
    }
    input.unread().to_vec()
}
