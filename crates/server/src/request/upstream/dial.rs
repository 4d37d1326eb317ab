//! New connections: to an address, to a name that leads to several, to a Unix socket, and the handshake where they are
//! encrypted.
//!
//! Of several addresses the next is tried when one has failed or takes long, and the first that connects is taken
//! (RFC 8305, "happy eyeballs"). Keeps nothing, resolves nothing, and never sends a request.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use rustix::fs::{FileType, lstat};
use rustix::net::sockopt;
use rustls::HandshakeKind;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::connection::Connection;
use super::link::{Carrier, Link};
use super::peer::{Peer, Place, Side, Terms, Tls};
use super::pool::NoConnection;
use super::queue::Slot;
use crate::limits::{DIAL_ADDRESSES_MAX, UPSTREAM_BACKLOG_PAUSE, UPSTREAM_PROBE_MAX, UPSTREAM_PROBE_MIN};
use onehop_connection::socket::Socket;

/// A new connection in this place among those of the peer; what happens is counted on this side.
pub(super) async fn dial(peer: &Arc<Peer>, slot: Slot, side: &Side) -> Result<Connection, NoConnection> {
    side.dials.count();
    let mut failure = Failure { side, is_over: false };
    let begun = Instant::now();
    let dialled = dial_uncounted(peer, Some(slot), side).await;
    failure.is_over = dialled.is_ok();
    match &dialled {
        Ok(_) => peer.note_dial(begun.elapsed()),
        Err(reason) => {
            peer.note_failure(reason);
            // What was tried was an address that may not be the name's any more.
            peer.addresses.doubt();
        }
    }
    dialled
}

/// A new connection that is none of the pool's: nobody counts it, and it is not to be given back.
pub(crate) async fn dial_apart(peer: &Arc<Peer>) -> Result<Connection, NoConnection> {
    dial_uncounted(peer, None, &Side::default()).await
}

/// Counts a dial that came to nothing, also where nobody waited for its end.
struct Failure<'a> {
    side: &'a Side,
    is_over: bool,
}

impl Drop for Failure<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.side.dial_failures.count();
        }
    }
}

async fn dial_uncounted(
    peer: &Arc<Peer>,
    slot: Option<Slot>,
    side: &Side,
) -> Result<Connection, NoConnection> {
    let connected = timeout(peer.terms.dial_timeout, connect(peer)).await;
    let (socket, address, generation) = connected.map_err(|_| NoConnection::Late)??;
    let carrier = Carrier::new(socket);
    let link = match &peer.terms.tls {
        None => Link::Plain(carrier),
        Some(tls) => shake_hands(carrier, tls, side).await?,
    };
    Ok(Connection::new(link, slot, address, generation))
}

type Connected = (Socket, Option<SocketAddr>, u64);

async fn connect(peer: &Arc<Peer>) -> Result<Connected, NoConnection> {
    let terms = &peer.terms;
    match &peer.place {
        Place::Address(address) => {
            let stream = connect_tcp(*address, terms).await.map_err(NoConnection::Refused)?;
            Ok((Socket::Tcp(stream), Some(*address), 0))
        }
        Place::Name(..) => {
            let resolved = peer.addresses.resolved().await;
            let (addresses, generation) =
                resolved.map_err(|reason| NoConnection::Name(reason.as_ref().to_owned()))?;
            let (stream, address) = race(&addresses, terms).await.map_err(NoConnection::Refused)?;
            Ok((Socket::Tcp(stream), Some(address), generation))
        }
        Place::Unix(path, uid) => loop {
            match connect_unix(path, *uid).await {
                // The listener's backlog is full. Unlike TCP's the kernel does not wait by itself.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::time::sleep(UPSTREAM_BACKLOG_PAUSE).await;
                }
                connected => {
                    break Ok((Socket::Unix(connected.map_err(NoConnection::Refused)?), None, 0));
                }
            }
        },
    }
}

async fn connect_tcp(address: SocketAddr, terms: &Terms) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    // A head and the first piece of its body are one write already.
    stream.set_nodelay(true)?;
    if let Some(distance) = terms.probe {
        let distance = distance.clamp(UPSTREAM_PROBE_MIN, UPSTREAM_PROBE_MAX);
        sockopt::set_socket_keepalive(&stream, true)?;
        sockopt::set_tcp_keepidle(&stream, distance)?;
        sockopt::set_tcp_keepintvl(&stream, distance)?;
    }
    Ok(stream)
}

type Attempt<'a> = Pin<Box<dyn Future<Output = (SocketAddr, io::Result<TcpStream>)> + 'a>>;

/// The first of these that connects. The next is tried when one fails, or has not connected within the delay
/// (RFC 8305 section 5); without a delay, only when one fails.
async fn race(addresses: &[SocketAddr], terms: &Terms) -> io::Result<(TcpStream, SocketAddr)> {
    let mut rest = in_turn(addresses).into_iter().take(DIAL_ADDRESSES_MAX);
    let mut attempts: Vec<Attempt<'_>> = Vec::new();
    let mut first_error = None;
    loop {
        let next = rest.next();
        if let Some(address) = next {
            attempts.push(Box::pin(async move { (address, connect_tcp(address, terms).await) }));
        } else if attempts.is_empty() {
            return Err(first_error.unwrap_or_else(|| io::ErrorKind::AddrNotAvailable.into()));
        }
        let ended = poll_fn(|context| poll_any(&mut attempts, context));
        let ended = match terms.fallback_delay.filter(|_| rest.len() > 0) {
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
        attempts.iter_mut().enumerate().find_map(|(place, attempt)| match attempt.as_mut().poll(context) {
            Poll::Ready(ended) => Some((place, ended)),
            Poll::Pending => None,
        });
    match ended {
        Some((place, ended)) => {
            drop(attempts.swap_remove(place));
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
pub(crate) async fn connect_unix(path: &Path, uid: Option<u32>) -> io::Result<UnixStream> {
    let Some(uid) = uid else { return UnixStream::connect(path).await };
    let refused = |what: String| {
        let what = format!("{} {what}, which is not connected to", path.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
    };
    // So that nobody else's listener sees as much as a connection; what counts is asked afterwards.
    if FileType::from_raw_mode(lstat(path)?.st_mode) != FileType::Socket {
        return refused("is no socket but a link or a file".to_owned());
    }
    let stream = UnixStream::connect(path).await?;
    // Who called listen(2), however the path came to lead there (SO_PEERCRED, unix(7)).
    let listener = stream.peer_cred()?.uid();
    if listener != uid {
        return refused(format!("belongs to a process of user {listener} instead of {uid}"));
    }
    Ok(stream)
}

async fn shake_hands(carrier: Carrier, tls: &Tls, side: &Side) -> Result<Link, NoConnection> {
    let connecting = TlsConnector::from(Arc::clone(&tls.config)).connect(tls.name.clone(), carrier);
    let stream = match timeout(tls.timeout, connecting).await {
        Err(_) => return Err(NoConnection::Late),
        Ok(Err(error)) => return Err(NoConnection::Tls(error.to_string())),
        Ok(Ok(stream)) => stream,
    };
    let session = stream.get_ref().1;
    if let Some(other) = session.alpn_protocol().filter(|protocol| *protocol != b"http/1.1") {
        // It was not offered; what follows would be no HTTP/1 (RFC 7301 section 3.2).
        return Err(NoConnection::Tls(format!("it speaks {} instead of http/1.1", other.escape_ascii())));
    }
    side.handshakes.count();
    if session.handshake_kind() == Some(HandshakeKind::Resumed) {
        side.resumptions.count();
    }
    Ok(Link::Tls(Box::new(stream)))
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
