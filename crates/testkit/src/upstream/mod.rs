//! A scripted upstream: a server that does exactly what a test says, right or wrong, and keeps what it saw.
//!
//! Owns its listener, a thread for each connection and the record of what came. A script is a function that plays one
//! connection ([`Connection`]) from its beginning to its end; most tests want [`Upstream::answering`]. It must never
//! mend what it is sent: a request is shown as it stood on the wire.

mod connection;
mod encryption;
mod names;
mod socket;

use std::collections::{HashMap, HashSet};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

pub use connection::{Connection, Received};
pub use encryption::{AUTHORITY_PEM, tls_settings, tls_settings_offering};
pub use names::Names;
use socket::{Handle, Socket};

/// Stack of a thread that plays one connection: TLS, unoptimised, wants some. A thousand of them are 256 MiB of
/// addresses and a few of memory.
const STACK_BYTES: usize = 256 * 1024;

/// Requests whose text is kept; later ones are only counted.
const KEPT_MAX: usize = 20_000;

/// A server that plays a script on each connection. It ends, with all its connections, when this is dropped.
pub struct Upstream {
    shared: Arc<Shared>,
    place: Listening,
    acceptor: Option<JoinHandle<()>>,
}

/// Encrypts the connections of an [`Upstream`].
pub type TlsSettings = Arc<rustls::ServerConfig>;

type Script = dyn Fn(&mut Connection) + Send + Sync;

#[derive(Clone)]
enum Listening {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// What the acceptor and all connections have in common.
struct Shared {
    is_ending: AtomicBool,
    accepted: AtomicUsize,
    ready: AtomicUsize,
    requests: AtomicUsize,
    seen: Mutex<Vec<Received>>,
    /// The connections that are open, by their number.
    open: Mutex<HashMap<usize, Handle>>,
    /// The numbers of those on which a request has begun, also when they are closed.
    used: Mutex<HashSet<usize>>,
}

enum Listener {
    Tcp(TcpListener, Option<TlsSettings>),
    Unix(UnixListener),
}

impl Upstream {
    /// On a free port of 127.0.0.1.
    ///
    /// # Panics
    /// Where there is none.
    pub fn start(script: impl Fn(&mut Connection) + Send + Sync + 'static) -> Upstream {
        Self::start_at("127.0.0.1:0", script)
    }

    /// At this address, where another one was before, for example.
    ///
    /// # Panics
    /// Where somebody else is there.
    pub fn start_at(address: &str, script: impl Fn(&mut Connection) + Send + Sync + 'static) -> Upstream {
        Self::listen_tcp(address, None, script)
    }

    /// Encrypted, on a free port of 127.0.0.1.
    ///
    /// # Panics
    /// Where there is none.
    pub fn start_tls(
        settings: TlsSettings,
        script: impl Fn(&mut Connection) + Send + Sync + 'static,
    ) -> Upstream {
        Self::listen_tcp("127.0.0.1:0", Some(settings), script)
    }

    /// On a Unix socket.
    ///
    /// # Panics
    /// Where it cannot be made.
    pub fn start_unix(path: &Path, script: impl Fn(&mut Connection) + Send + Sync + 'static) -> Upstream {
        let listener = UnixListener::bind(path)
            .unwrap_or_else(|error| panic!("cannot listen at {}: {error}", path.display()));
        Self::accept(Listener::Unix(listener), Listening::Unix(path.to_owned()), script)
    }

    /// Answers each whole request with what this gives for it, and keeps connections until their clients close them.
    pub fn answering(answer: impl Fn(&Received) -> Vec<u8> + Send + Sync + 'static) -> Upstream {
        Self::start(keeping(answer))
    }

    /// The same at this address.
    pub fn answering_at(
        address: &str,
        answer: impl Fn(&Received) -> Vec<u8> + Send + Sync + 'static,
    ) -> Upstream {
        Self::start_at(address, keeping(answer))
    }

    /// An address at which nobody listens. It is nobody else's either: each call has an address of loopback for itself
    /// alone, so that no other test is given the port in between.
    ///
    /// # Panics
    /// Where there is no free port.
    pub fn nobody() -> String {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::SeqCst);
        let byte = |shift: usize| u8::try_from((number >> shift) & 0xff).unwrap_or(0);
        let address = std::net::Ipv4Addr::new(127, 77, byte(8), byte(0));
        let listener = TcpListener::bind((address, 0)).expect("a free port");
        listener.local_addr().expect("its address").to_string()
    }

    /// `127.0.0.1:43121`, or the path of a Unix socket.
    pub fn address(&self) -> String {
        match &self.place {
            Listening::Tcp(address) => address.to_string(),
            Listening::Unix(path) => path.display().to_string(),
        }
    }

    /// Its port.
    ///
    /// # Panics
    /// Where it listens on a Unix socket.
    pub fn port(&self) -> u16 {
        match &self.place {
            Listening::Tcp(address) => address.port(),
            Listening::Unix(path) => panic!("{} has no port", path.display()),
        }
    }

    /// The requests that came whole, the first 20,000 of them.
    pub fn seen(&self) -> Vec<Received> {
        self.shared.seen().clone()
    }

    /// How many requests came whole.
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Connections that were ever accepted.
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Connections that were ever accepted and whose TLS handshake, where there is one, was done.
    pub fn ready(&self) -> usize {
        self.shared.ready.load(Ordering::SeqCst)
    }

    /// Connections that are open: neither the script nor the client has ended them, as far as the script has noticed.
    pub fn open(&self) -> usize {
        self.shared.open().len()
    }

    /// Whether the connection with this number is open.
    pub fn is_open(&self, connection: usize) -> bool {
        self.shared.open().contains_key(&connection)
    }

    /// Connections on which a request has ever begun.
    pub fn used(&self) -> usize {
        self.shared.used().len()
    }

    /// Those of them that are open: whoever keeps connections without a request has others besides.
    pub fn used_and_open(&self) -> usize {
        let used = self.shared.used().clone();
        self.shared.open().keys().filter(|number| used.contains(number)).count()
    }

    /// Ends it as a process that is killed: nobody listens any more, and each connection is reset.
    pub fn kill(mut self) {
        self.end();
    }

    fn listen_tcp(
        address: &str,
        tls: Option<TlsSettings>,
        script: impl Fn(&mut Connection) + Send + Sync + 'static,
    ) -> Upstream {
        // A process that another test is starting holds a copy of whatever is open until it becomes another program:
        // the listener that was killed may be among that for a moment.
        let listener = crate::wait_for(address, || match TcpListener::bind(address) {
            Ok(listener) => Some(listener),
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => None,
            Err(error) => panic!("cannot listen at {address}: {error}"),
        });
        let place = Listening::Tcp(listener.local_addr().expect("an address"));
        Self::accept(Listener::Tcp(listener, tls), place, script)
    }

    fn accept(
        listener: Listener,
        place: Listening,
        script: impl Fn(&mut Connection) + Send + Sync + 'static,
    ) -> Upstream {
        let shared = Arc::new(Shared {
            is_ending: AtomicBool::new(false),
            accepted: AtomicUsize::new(0),
            ready: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            seen: Mutex::default(),
            open: Mutex::default(),
            used: Mutex::default(),
        });
        let script: Arc<Script> = Arc::new(script);
        let acceptor = {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.accept(&listener, &script))
        };
        Upstream { shared, place, acceptor: Some(acceptor) }
    }

    fn end(&mut self) {
        self.shared.is_ending.store(true, Ordering::SeqCst);
        // The acceptor waits in accept(2): a connection wakes it.
        match &self.place {
            Listening::Tcp(address) => drop(std::net::TcpStream::connect(address)),
            Listening::Unix(path) => drop(std::os::unix::net::UnixStream::connect(path)),
        }
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        for handle in self.shared.open().values() {
            handle.reset();
        }
        if let Listening::Unix(path) = &self.place {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.end();
    }
}

/// Requests and answers in turn, until the client closes the connection.
fn keeping(answer: impl Fn(&Received) -> Vec<u8> + Send + Sync + 'static) -> impl Fn(&mut Connection) {
    move |connection| {
        while let Some(request) = connection.request() {
            let bytes = answer(&request);
            let is_last = request.lists("Connection", "close")
                || String::from_utf8_lossy(&bytes).to_ascii_lowercase().contains("\r\nconnection: close\r\n");
            if !connection.send(bytes) || is_last {
                return;
            }
        }
    }
}

impl Listener {
    fn next(&self) -> Option<Socket> {
        match self {
            Listener::Tcp(listener, tls) => {
                let (stream, _) = listener.accept().ok()?;
                let _ = stream.set_nodelay(true);
                Socket::of_tcp(stream, tls.as_ref())
            }
            Listener::Unix(listener) => Some(Socket::Unix(listener.accept().ok()?.0)),
        }
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, listener: &Listener, script: &Arc<Script>) {
        loop {
            let socket = listener.next();
            if self.is_ending.load(Ordering::SeqCst) {
                return;
            }
            let Some(socket) = socket else { continue };
            let number = self.accepted.fetch_add(1, Ordering::SeqCst);
            let Some(handle) = socket.handle() else { continue };
            self.open().insert(number, handle);
            let (shared, script) = (Arc::clone(self), Arc::clone(script));
            let play = move || {
                let mut connection = Connection::new(socket, number, Arc::clone(&shared));
                script(&mut connection);
                // The handle keeps the socket open: it goes first.
                shared.open().remove(&number);
            };
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(play);
            if thread.is_err() {
                self.open().remove(&number);
            }
        }
    }

    fn keep(&self, request: &Received) {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let mut seen = self.seen();
        if seen.len() < KEPT_MAX {
            seen.push(request.clone());
        }
    }

    fn seen(&self) -> MutexGuard<'_, Vec<Received>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn used(&self) -> MutexGuard<'_, HashSet<usize>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<usize, Handle>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Client, wait_for};

    #[test]
    fn requests_are_kept_as_they_stood_on_the_wire() {
        let upstream = Upstream::answering(|request| {
            let length = request.body.len();
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{length}", length.to_string().len()).into()
        });
        let mut client = Client::connect(&upstream.address());
        client.send("POST /a?b HTTP/1.1\r\nHOST: x\r\nContent-Length: 3\r\n\r\nabc");
        assert_eq!(client.read().text(), "3");
        client.send("PUT /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\nde\r\n0\r\nT: v\r\n\r\n");
        assert_eq!(client.read().text(), "2");
        let seen = upstream.seen();
        assert_eq!(seen[0].head, "POST /a?b HTTP/1.1\r\nHOST: x\r\nContent-Length: 3");
        assert_eq!((seen[0].body.as_slice(), seen[1].body.as_slice()), (&b"abc"[..], &b"de"[..]));
        assert_eq!(seen[1].trailers, ["T: v"]);
        assert_eq!((seen[0].connection, seen[1].connection, seen[1].on_connection), (0, 0, 1));
        assert_eq!((upstream.accepted(), upstream.open()), (1, 1));
        drop(client);
        wait_for("the end of the connection", || (upstream.open() == 0).then_some(()));
    }

    #[test]
    fn one_that_is_killed_resets_its_connections_and_leaves_its_address_free() {
        let upstream = Upstream::answering(|_| Vec::new());
        let address = upstream.address();
        let mut client = Client::connect(&address);
        client.send("GET / HTTP/1.1\r\n\r\n");
        wait_for("the request", || (upstream.requests() == 1).then_some(()));
        upstream.kill();
        assert!(client.try_read_for("GET").is_err());
        let again = Upstream::answering_at(&address, |_| b"HTTP/1.1 204 No Content\r\n\r\n".to_vec());
        assert_eq!(Client::connect(&again.address()).get("/").status, 204);
    }
}
