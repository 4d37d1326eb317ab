//! A core at work: it accepts, serves what it accepted, and stops when told.
//!
//! Every core has its own SO_REUSEPORT socket for each TCP address; a Unix socket has one acceptor
//! that hands over. What the control plane wants comes through a bounded mailbox.

use std::cell::Cell;
use std::collections::HashMap;
use std::io;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use onehop_config::checked::{HeaderPolicy, ProxyProtocol};
use onehop_message::origin::Origin;
use onehop_workers::Worker;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Notify, mpsc};

use super::conn::{h1, h2, handshake, proxy_protocol};
use super::core::{Admission, Core, NoAdmission};
use crate::limits::ACCEPT_BATCH_MAX;
use onehop_connection::limits::DEADLINE_TICK;
use onehop_connection::socket::Socket;

/// What a core is told.
pub enum Command {
    /// Accept here, as listener of that number.
    Listen(usize, ListenSocket),
    /// Accept there no more, after taking what has been queued.
    Unlisten(usize),
    /// Serve a connection that another core accepted.
    Adopt(usize, StdUnixStream),
    /// Serve this worker connection.
    Attach(Arc<Worker>, StdUnixStream),
    /// Accept no more, finish what is in flight, and end within the grace period.
    Stop(Duration),
}

/// A bound socket.
pub enum ListenSocket {
    /// One of several of the same address.
    Tcp(std::net::TcpListener),
    /// The only one of its path, and the cores that it hands connections to.
    Unix(std::os::unix::net::UnixListener, Vec<mpsc::Sender<Command>>),
}

/// Runs a core until it has stopped; gives the number of connections that were cut off.
pub async fn run(core: Rc<Core>, mut commands: mpsc::Receiver<Command>) -> io::Result<usize> {
    let mut acceptors: HashMap<usize, Rc<Notify>> = HashMap::new();
    let open_here = Rc::new(OpenHere::default());
    tokio::task::spawn_local(Rc::clone(&core.upstreams).serve_other_cores());
    let mut ticks = tokio::time::interval(DEADLINE_TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let grace = loop {
        // Not a task of its own: a core without its ticks has no deadlines, and must end.
        let command = tokio::select! {
            command = commands.recv() => command,
            _ = ticks.tick() => {
                core.tick();
                continue;
            }
        };
        match command {
            Some(Command::Listen(number, socket)) => {
                let closing = Rc::new(Notify::new());
                acceptors.insert(number, Rc::clone(&closing));
                let acceptor =
                    Acceptor { core: Rc::clone(&core), number, closing, open_here: Rc::clone(&open_here) };
                match socket {
                    ListenSocket::Tcp(socket) => {
                        let socket = TcpListener::from_std(socket)?;
                        tokio::task::spawn_local(acceptor.accept_tcp(socket));
                    }
                    ListenSocket::Unix(socket, cores) => {
                        let socket = UnixListener::from_std(socket)?;
                        tokio::task::spawn_local(acceptor.accept_unix(socket, cores));
                    }
                }
            }
            Some(Command::Unlisten(number)) => {
                if let Some(closing) = acceptors.remove(&number) {
                    closing.notify_one();
                }
            }
            Some(Command::Adopt(number, stream)) => adopt(&core, &open_here, number, stream),
            Some(Command::Attach(worker, socket)) => core.workers.attach(worker, socket),
            Some(Command::Stop(grace)) => break grace,
            None => break Duration::ZERO,
        }
    };
    for closing in acceptors.values() {
        closing.notify_one();
    }
    let cut_off = drain(&core, &open_here, &mut commands, &mut ticks, grace).await;
    core.logs.finish();
    Ok(cut_off)
}

/// Waits until every connection of this core has ended, or the grace period is over.
async fn drain(
    core: &Rc<Core>,
    open_here: &Rc<OpenHere>,
    commands: &mut mpsc::Receiver<Command>,
    ticks: &mut tokio::time::Interval,
    grace: Duration,
) -> usize {
    let end = tokio::time::Instant::now() + grace;
    // Acceptors take what the kernel has queued before they close; they run at the next turn.
    tokio::task::yield_now().await;
    loop {
        core.connection.deadlines.wake_idle();
        while let Ok(command) = commands.try_recv() {
            match command {
                Command::Adopt(number, stream) => adopt(core, open_here, number, stream),
                // A worker that dies now is replaced: requests wait for it.
                Command::Attach(worker, socket) => core.workers.attach(worker, socket),
                Command::Listen(..) | Command::Unlisten(_) | Command::Stop(_) => {}
            }
        }
        tokio::task::yield_now().await;
        if open_here.count.get() == 0 || tokio::time::Instant::now() >= end {
            return open_here.count.get();
        }
        tokio::select! {
            () = tokio::time::sleep(DRAIN_LOOK.min(grace)) => {}
            _ = ticks.tick() => core.tick(),
        }
    }
}

/// What a connection over the bound is told, without reading its request. [`onehop_message::error_response`] has the same
/// status for the counters.
const TOO_MANY_CONNECTIONS: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// How often a stopping core looks whether its connections have ended.
const DRAIN_LOOK: Duration = Duration::from_millis(5);

struct Acceptor {
    core: Rc<Core>,
    number: usize,
    closing: Rc<Notify>,
    open_here: Rc<OpenHere>,
}

impl Acceptor {
    async fn accept_tcp(self, socket: TcpListener) {
        let mut batch = 0;
        loop {
            let accepted = tokio::select! {
                biased;
                accepted = socket.accept() => accepted,
                () = self.closing.notified() => break,
            };
            match accepted {
                Ok((stream, peer)) => self.serve_tcp(stream, peer),
                Err(error) => {
                    if self.is_closed_after(&error).await {
                        break;
                    }
                }
            }
            batch += 1;
            if batch % ACCEPT_BATCH_MAX == 0 {
                tokio::task::yield_now().await;
            }
        }
        // What the kernel completed before the socket closes belongs to clients that were let in.
        let Ok(socket) = socket.into_std() else { return };
        while let Ok((stream, peer)) = socket.accept() {
            if stream.set_nonblocking(true).is_ok()
                && let Ok(stream) = TcpStream::from_std(stream)
            {
                self.serve_tcp(stream, peer);
            }
        }
    }

    fn serve_tcp(&self, stream: TcpStream, peer: std::net::SocketAddr) {
        let tls = self.core.view().snapshot.tls.is_encrypted(self.number);
        let origin = Origin { tls, ..Origin::plain(Some(peer), self.number) };
        spawn(&self.core, &self.open_here, Socket::Tcp(stream), origin);
    }

    async fn accept_unix(self, socket: UnixListener, cores: Vec<mpsc::Sender<Command>>) {
        let mut turn = 0usize;
        loop {
            let accepted = tokio::select! {
                biased;
                accepted = socket.accept() => accepted,
                () = self.closing.notified() => break,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    if self.is_closed_after(&error).await {
                        break;
                    }
                    continue;
                }
            };
            turn = turn.wrapping_add(1);
            let to = turn % cores.len().max(1);
            // A stopping core may not look into its mailbox again.
            let others_listen = !self.core.connection.is_stopping();
            match cores.get(to).filter(|_| to != self.core.number && others_listen) {
                None => self.serve_unix(stream),
                Some(other) => {
                    let Ok(stream) = stream.into_std() else { continue };
                    // A core whose mailbox is full is busy: this one serves the connection itself.
                    if let Err(refused) = other.try_send(Command::Adopt(self.number, stream))
                        && let Command::Adopt(_, stream) = refused.into_inner()
                    {
                        adopt(&self.core, &self.open_here, self.number, stream);
                    }
                }
            }
        }
        let Ok(socket) = socket.into_std() else { return };
        while let Ok((stream, _)) = socket.accept() {
            if stream.set_nonblocking(true).is_ok() {
                adopt(&self.core, &self.open_here, self.number, stream);
            }
        }
    }

    fn serve_unix(&self, stream: UnixStream) {
        let origin = Origin::plain(None, self.number);
        spawn(&self.core, &self.open_here, Socket::Unix(stream), origin);
    }

    /// Waits before the next try, and says whether the listener closes meanwhile. Without descriptors or memory
    /// (EMFILE, ENFILE, ENOBUFS, ENOMEM) accepting again at once would only spin; the clients wait in the kernel's queue.
    /// A connection of this core that ends has left a descriptor: then it is tried at once.
    async fn is_closed_after(&self, error: &io::Error) -> bool {
        self.core.counters.accept_failed();
        if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
            // That client has gone; the next one may be there.
            return false;
        }
        tokio::select! {
            biased;
            () = self.closing.notified() => true,
            () = self.open_here.ended() => false,
            () = tokio::time::sleep(DEADLINE_TICK) => false,
        }
    }
}

fn adopt(core: &Rc<Core>, open_here: &Rc<OpenHere>, number: usize, stream: StdUnixStream) {
    if let Ok(stream) = UnixStream::from_std(stream) {
        let origin = Origin::plain(None, number);
        spawn(core, open_here, Socket::Unix(stream), origin);
    }
}

fn spawn(core: &Rc<Core>, open_here: &Rc<OpenHere>, socket: Socket, mut origin: Origin) {
    let headers = headers(core, &origin);
    // Whose connection it is, the header says.
    let is_of_another = headers.as_ref().is_some_and(|(_, policy)| policy.believes());
    let counted = origin.peer.filter(|_| !is_of_another);
    let mut admission = match Admission::take(core, counted) {
        Ok(admission) => admission,
        Err(why) => return turn_away(core, &socket, origin.tls, why),
    };
    let open = Open::new(open_here);
    let core = Rc::clone(core);
    let Some((settings, policy)) = headers else { return begin(core, socket, origin, admission, open) };
    tokio::task::spawn_local(Box::pin(async move {
        match proxy_protocol::read(&core, &socket, &settings, policy).await {
            Ok(client) => origin.peer = client.or(origin.peer),
            Err(refusal) => {
                core.counters.header_refused(refusal);
                return socket.reset_when_closed();
            }
        }
        if is_of_another && let Err(why) = admission.count_for(origin.peer) {
            return turn_away(&core, &socket, origin.tls, why);
        }
        begin(core, socket, origin, admission, open);
    }));
}

/// What holds for a header of the PROXY protocol on this connection; `None` where nobody looks for one.
fn headers(core: &Core, origin: &Origin) -> Option<(Arc<ProxyProtocol>, HeaderPolicy)> {
    let view = core.view();
    let settings = view.snapshot.proxy_protocol.as_ref()?;
    let policy = settings.policy(origin.peer.map(|peer| peer.ip().to_canonical()));
    (policy != HeaderPolicy::Skip).then(|| (Arc::clone(settings), policy))
}

fn turn_away(core: &Core, socket: &Socket, is_encrypted: bool, why: NoAdmission) {
    match why {
        NoAdmission::TooMany => {
            core.counters.too_many_connections();
            core.counters.refused(onehop_message::error::HttpError::TooManyConnections);
            if !is_encrypted {
                socket.send_at_once(TOO_MANY_CONNECTIONS);
            }
            socket.drop_unread();
        }
        // Whoever opens them without end is told nothing, and leaves nothing behind in the kernel.
        NoAdmission::TooManyOfAddress => {
            core.counters.too_many_of_address();
            socket.reset_when_closed();
        }
    }
}

/// Serves a connection of which it is known whose it is.
fn begin(core: Rc<Core>, socket: Socket, origin: Origin, admission: Admission, open: Open) {
    match socket {
        // Boxed, so that only handshakes pay for their size.
        Socket::Tcp(stream) if origin.tls => {
            tokio::task::spawn_local(Box::pin(async move {
                if let Some((stream, policy, session)) =
                    handshake::handshake(&core, stream, origin.listener).await
                {
                    let socket = Socket::Tls(Box::new(stream));
                    let origin = Origin { policy, session: Some(Rc::new(session)), ..origin };
                    tokio::task::spawn_local(serve(core, socket, origin, admission, open));
                }
            }));
        }
        socket => {
            tokio::task::spawn_local(serve(core, socket, origin, admission, open));
        }
    }
}

async fn serve(core: Rc<Core>, socket: Socket, origin: Origin, admission: Admission, open: Open) {
    let is_http2 = matches!(&socket, Socket::Tls(tls) if tls.session().alpn_protocol() == Some(b"h2"));
    if is_http2 {
        Box::pin(h2::serve(core, socket, origin, admission, Vec::new())).await;
    } else {
        h1::serve(core, socket, origin, admission).await;
    }
    drop(open);
}

/// Connections of this core.
#[derive(Default)]
struct OpenHere {
    count: Cell<usize>,
    /// Acceptors that wait for one to end; a connection's end costs nothing while there are none.
    waiting: Cell<usize>,
    ended: Notify,
}

impl OpenHere {
    /// Ends when a connection does.
    async fn ended(&self) {
        let _waiting = Raised::new(&self.waiting);
        self.ended.notified().await;
    }
}

/// A number that is higher by one while this lives.
struct Raised<'n>(&'n Cell<usize>);

impl<'n> Raised<'n> {
    fn new(number: &'n Cell<usize>) -> Self {
        number.set(number.get() + 1);
        Self(number)
    }
}

impl Drop for Raised<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

/// Counts a connection of this core while it lives, also through a panic.
struct Open(Rc<OpenHere>);

impl Open {
    fn new(here: &Rc<OpenHere>) -> Self {
        here.count.set(here.count.get() + 1);
        Self(Rc::clone(here))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let here = &self.0;
        here.count.set(here.count.get().saturating_sub(1));
        if here.waiting.get() > 0 {
            here.ended.notify_waiters();
        }
    }
}
