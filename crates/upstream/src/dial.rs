//! Dials connections: to an address, to a name with several addresses, to a Unix socket, with the TLS handshake where
//! they are encrypted.
//!
//! Of several addresses the next is tried when one has failed or takes long, and the first that connects is taken
//! (RFC 8305, Happy Eyeballs). Keeps nothing, resolves nothing, and never sends a request.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use onehop_connection::socket::Socket;
use rustix::fs::{FileType, lstat};
use rustix::net::sockopt;
use rustls::HandshakeKind;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::connect_error::ConnectError;
use crate::connection::{Connection, ConnectionPermit};
use crate::limits::{BACKLOG_PAUSE, DIAL_ADDRESSES_MAX, PROBE_INTERVAL_MAX, PROBE_INTERVAL_MIN};
use crate::link::Link;
use crate::multiplexed::{self, Multiplexed};
use crate::peer::{CoreCounters, Endpoint, Peer, PeerSettings, Tls, Versions};
use crate::transport::{MovableSocket, Transport};

/// Dials a connection that holds this permit, and counts what happens.
pub(crate) async fn dial(
    peer: &Arc<Peer>,
    permit: ConnectionPermit,
    counters: &CoreCounters,
) -> Result<Dialled, ConnectError> {
    counters.dials.count();
    let mut failure = Failure { counters, is_over: false };
    let started = Instant::now();
    let dialled = connect_and_encrypt(peer, Some(permit), counters).await;
    failure.is_over = dialled.is_ok();
    match &dialled {
        Ok(_) => peer.note_dial_time(started.elapsed()),
        Err(reason) => {
            peer.note_failure(reason);
            // The name may resolve to other addresses by now.
            peer.doubt();
        }
    }
    dialled
}

/// Dials a connection that no pool counts and that must not be given back.
pub async fn dial_uncounted(peer: &Arc<Peer>) -> Result<Link, ConnectError> {
    match connect_and_encrypt(peer, None, &CoreCounters::default()).await? {
        Dialled::Http1(connection) => Ok(Link::Http1(connection)),
        Dialled::Http2(connection) => {
            let over = || ConnectError::Http2("it closed the connection".to_owned());
            connection.stream().map(Link::Http2).ok_or_else(over)
        }
    }
}

/// A connection that was just made.
pub(crate) enum Dialled {
    Http1(Box<Connection>),
    Http2(Rc<Multiplexed>),
}

/// Counts a dial that failed, also where its future is dropped before its end.
struct Failure<'a> {
    counters: &'a CoreCounters,
    is_over: bool,
}

impl Drop for Failure<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.counters.dial_failures.count();
        }
    }
}

async fn connect_and_encrypt(
    peer: &Arc<Peer>,
    permit: Option<ConnectionPermit>,
    counters: &CoreCounters,
) -> Result<Dialled, ConnectError> {
    let connected = timeout(peer.settings.dial_timeout, connect(peer)).await;
    let (socket, address, generation) = connected.map_err(|_| ConnectError::Timeout)??;
    let socket = MovableSocket::new(socket);
    let versions = peer.settings.versions;
    let (transport, is_http2) = match &peer.settings.tls {
        None => (Transport::Plain(socket), versions == Versions::Http2),
        Some(tls) => handshake(socket, tls, versions, counters).await?,
    };
    if versions == Versions::Negotiated {
        peer.note_negotiated(!is_http2);
    }
    if is_http2 {
        let (timeout, is_kept) = (peer.settings.dial_timeout, !peer.settings.idle_timeout.is_zero());
        let begun = multiplexed::begin(transport, permit, (address, generation), timeout, is_kept);
        return begun.await.map(Dialled::Http2);
    }
    Ok(Dialled::Http1(Box::new(Connection::new(transport, permit, address, generation))))
}

type Connected = (Socket, Option<SocketAddr>, u64);

async fn connect(peer: &Arc<Peer>) -> Result<Connected, ConnectError> {
    let settings = &peer.settings;
    match &peer.endpoint {
        Endpoint::Address(address) => {
            let stream = connect_tcp(*address, settings).await.map_err(ConnectError::Refused)?;
            Ok((Socket::Tcp(stream), Some(*address), 0))
        }
        Endpoint::Name(..) => {
            let resolved = peer.addresses.resolved().await;
            let (addresses, generation) =
                resolved.map_err(|reason| ConnectError::Name(reason.as_ref().to_owned()))?;
            let (stream, address) = race(&addresses, settings).await.map_err(ConnectError::Refused)?;
            Ok((Socket::Tcp(stream), Some(address), generation))
        }
        Endpoint::Unix(path, uid) => loop {
            match connect_unix(path, *uid).await {
                // The listener's backlog is full. Unlike TCP's the kernel does not wait by itself.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::time::sleep(BACKLOG_PAUSE).await;
                }
                connected => {
                    break Ok((Socket::Unix(connected.map_err(ConnectError::Refused)?), None, 0));
                }
            }
        },
    }
}

async fn connect_tcp(address: SocketAddr, settings: &PeerSettings) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    // A head and the first piece of its body are one write already.
    stream.set_nodelay(true)?;
    if let Some(interval) = settings.probe_interval {
        let interval = interval.clamp(PROBE_INTERVAL_MIN, PROBE_INTERVAL_MAX);
        sockopt::set_socket_keepalive(&stream, true)?;
        sockopt::set_tcp_keepidle(&stream, interval)?;
        sockopt::set_tcp_keepintvl(&stream, interval)?;
    }
    Ok(stream)
}

type Attempt<'a> = Pin<Box<dyn Future<Output = (SocketAddr, io::Result<TcpStream>)> + 'a>>;

/// The first of these that connects. The next is tried when one fails, or has not connected within the delay
/// (RFC 8305 section 5); without a delay, only when one fails.
async fn race(addresses: &[SocketAddr], settings: &PeerSettings) -> io::Result<(TcpStream, SocketAddr)> {
    let mut remaining = in_turn(addresses).into_iter().take(DIAL_ADDRESSES_MAX);
    let mut attempts: Vec<Attempt<'_>> = Vec::new();
    let mut first_error = None;
    loop {
        let next = remaining.next();
        if let Some(address) = next {
            attempts.push(Box::pin(async move { (address, connect_tcp(address, settings).await) }));
        } else if attempts.is_empty() {
            return Err(first_error.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into()));
        }
        let ended = poll_fn(|context| poll_any(&mut attempts, context));
        let ended = match settings.fallback_delay.filter(|_| remaining.len() > 0) {
            Some(delay) => timeout(delay, ended).await.ok(),
            None => Some(ended.await),
        };
        match ended {
            Some((address, Ok(stream))) => return Ok((stream, address)),
            Some((_, Err(error))) => {
                first_error.get_or_insert(error);
            }
            None => {}
        }
    }
}

/// The first attempt that has ended; it is taken out.
fn poll_any(
    attempts: &mut Vec<Attempt<'_>>,
    context: &mut Context<'_>,
) -> Poll<(SocketAddr, io::Result<TcpStream>)> {
    let ended =
        attempts.iter_mut().enumerate().find_map(|(index, attempt)| match attempt.as_mut().poll(context) {
            Poll::Ready(ended) => Some((index, ended)),
            Poll::Pending => None,
        });
    match ended {
        Some((index, ended)) => {
            drop(attempts.swap_remove(index));
            Poll::Ready(ended)
        }
        None => Poll::Pending,
    }
}

/// The families in turn, beginning with that of the first address (RFC 8305 section 4).
fn in_turn(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let Some(first) = addresses.first() else { return Vec::new() };
    let of_first = |address: &&SocketAddr| address.is_ipv6() == first.is_ipv6();
    let mut one = addresses.iter().filter(of_first);
    let mut other = addresses.iter().filter(|address| !of_first(address));
    let mut all = Vec::with_capacity(addresses.len());
    loop {
        let pair = [one.next(), other.next()];
        if pair == [None, None] {
            return all;
        }
        all.extend(pair.into_iter().flatten());
    }
}

/// Connects to a Unix socket; where a user is given, only to one that lies at the path itself and that a process
/// of this user listens on.
pub async fn connect_unix(path: &Path, uid: Option<u32>) -> io::Result<UnixStream> {
    let Some(uid) = uid else { return UnixStream::connect(path).await };
    let refused = |what: String| {
        let what = format!("{} {what}, which is not connected to", path.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
    };
    // So that a listener of another user does not even see a connection; the check that counts comes afterwards.
    if FileType::from_raw_mode(lstat(path)?.st_mode) != FileType::Socket {
        return refused("is no socket but a link or a file".to_owned());
    }
    let stream = UnixStream::connect(path).await?;
    // The user that called listen(2), however the path came to lead there (SO_PEERCRED, unix(7)).
    let listener = stream.peer_cred()?.uid();
    if listener != uid {
        return refused(format!("belongs to a process of user {listener} instead of {uid}"));
    }
    Ok(stream)
}

async fn handshake(
    socket: MovableSocket,
    tls: &Tls,
    versions: Versions,
    counters: &CoreCounters,
) -> Result<(Transport, bool), ConnectError> {
    let connecting = TlsConnector::from(Arc::clone(&tls.config)).connect(tls.name.clone(), socket);
    let stream = match timeout(tls.timeout, connecting).await {
        Err(_) => return Err(ConnectError::Timeout),
        Ok(Err(error)) => return Err(ConnectError::Tls(error.to_string())),
        Ok(Ok(stream)) => stream,
    };
    let session = stream.get_ref().1;
    let is_http2 = match session.alpn_protocol() {
        Some(b"h2") if versions != Versions::Http1 => true,
        Some(b"http/1.1") | None if versions != Versions::Http2 => false,
        Some(other) => {
            // It was not offered; what follows would be something else (RFC 7301 section 3.2).
            let (other, wanted) =
                (other.escape_ascii(), if versions == Versions::Http1 { "http/1.1" } else { "h2" });
            return Err(ConnectError::Tls(format!("it speaks {other} instead of {wanted}")));
        }
        None => return Err(ConnectError::Http2("it does not negotiate h2 (ALPN)".to_owned())),
    };
    counters.handshakes.count();
    if session.handshake_kind() == Some(HandshakeKind::Resumed) {
        counters.resumptions.count();
    }
    Ok((Transport::Tls(Box::new(stream)), is_http2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns_beginning_with_the_first() {
        let all =
            |texts: &[&str]| -> Vec<SocketAddr> { texts.iter().map(|text| text.parse().unwrap()).collect() };
        let given = all(&["[::1]:1", "[::2]:1", "[::3]:1", "1.0.0.1:1", "1.0.0.2:1"]);
        assert_eq!(in_turn(&given), all(&["[::1]:1", "1.0.0.1:1", "[::2]:1", "1.0.0.2:1", "[::3]:1"]));
        let given = all(&["1.0.0.1:1", "[::1]:1"]);
        assert_eq!(in_turn(&given), given);
        assert_eq!(in_turn(&[]), []);
    }

    #[tokio::test]
    async fn only_a_socket_on_which_the_right_user_listens_is_connected_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let (socket, link) = (folder.path().join("app.sock"), folder.path().join("link.sock"));
        let listener = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
        std::os::unix::fs::symlink(&socket, &link).expect("linked");
        let own = rustix::process::geteuid().as_raw();
        let failed = async |path, uid| connect_unix(path, uid).await.err().map(|error| error.to_string());
        assert_eq!(failed(&socket, Some(own)).await, None);
        assert_eq!(failed(&link, None).await, None);
        let other = failed(&socket, Some(own + 1)).await.expect("refused");
        assert!(other.contains(&format!("a process of user {own} instead of {}", own + 1)), "{other}");
        listener.set_nonblocking(true).expect("set");
        while listener.accept().is_ok() {}
        let linked = failed(&link, Some(own)).await.expect("refused");
        assert!(linked.contains("is no socket but a link"), "{linked}");
        assert!(listener.accept().is_err(), "not even connected to");
    }
}
