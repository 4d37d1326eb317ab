//! Binding addresses, so that a second start is an error and not a second owner.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use onehop_config::checked::ListenAddress;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};

use super::admin::bind_control_socket;
use super::start_error::StartError;
use crate::limits::{
    ACCEPT_BACKLOG, CLIENT_KEEP_ALIVE_IDLE, CLIENT_KEEP_ALIVE_INTERVAL, CLIENT_KEEP_ALIVE_PROBES,
    PROBE_COPY_PAUSE, PROBE_COPY_TRIES, UNSENT_BYTES_MAX,
};

/// Permissions of a Unix socket where the file says nothing: Caddy's.
const UNIX_MODE: u32 = 0o200;

/// Bound sockets of one address.
pub(super) enum Bound {
    /// One socket for each core.
    Tcp(Vec<TcpListener>, SocketAddr),
    /// One socket.
    Unix(UnixListener),
}

/// Brings an address that stays in use up to date.
pub(super) fn adjust(address: &ListenAddress) -> io::Result<()> {
    match address {
        ListenAddress::Unix { path, mode } => {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode.unwrap_or(UNIX_MODE)))
        }
        ListenAddress::Tcp { .. } => Ok(()),
    }
}

/// Binds an address for so many cores. `ours` are the addresses of now.
pub(super) fn bind(
    address: &ListenAddress,
    cores: usize,
    ours: &[ListenAddress],
) -> Result<Bound, StartError> {
    match address {
        ListenAddress::Tcp { host, port } => bind_tcp(*host, *port, cores, shares_port(*port, ours))
            .map(|(sockets, bound)| Bound::Tcp(sockets, bound))
            .map_err(|error| refused(&name(address), &error, *port)),
        ListenAddress::Unix { path, mode } => bind_unix(path, mode.unwrap_or(UNIX_MODE))
            .map(Bound::Unix)
            .map_err(|error| refused(&name(address), &error, 0)),
    }
}

/// Binds the control socket, which only its owner may use.
pub(super) fn bind_control(path: &Path) -> Result<UnixListener, StartError> {
    bind_control_socket(path).map_err(|error| StartError::Bind {
        address: format!("{} (control socket)", path.display()),
        reason: match error.kind() {
            io::ErrorKind::AddrInUse => format!("{error}; `onehop status` asks it"),
            _ => error.to_string(),
        },
    })
}

/// An address as people write it.
pub(super) fn name(address: &ListenAddress) -> String {
    match address {
        ListenAddress::Tcp { host: None, port } => format!(":{port}"),
        ListenAddress::Tcp { host: Some(host), port } => SocketAddr::new(*host, *port).to_string(),
        ListenAddress::Unix { path, .. } => format!("unix/{}", path.display()),
    }
}

fn refused(address: &str, error: &io::Error, port: u16) -> StartError {
    let next = match error.kind() {
        io::ErrorKind::AddrInUse if port > 0 => {
            format!("another program listens there; `ss -ltnp 'sport = :{port}'` shows which")
        }
        io::ErrorKind::PermissionDenied if port > 0 && port < 1024 => {
            "ports below 1024 need CAP_NET_BIND_SERVICE or root; choose a higher one or grant it".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => "this machine has no interface with that address".to_owned(),
        _ => error.to_string(),
    };
    StartError::Bind { address: address.to_owned(), reason: next }
}

/// Whether this process already listens on that port, at whichever interface: then a probe would only
/// find ourselves.
fn shares_port(port: u16, ours: &[ListenAddress]) -> bool {
    ours.iter().any(|own| matches!(own, ListenAddress::Tcp { port: own, .. } if *own == port))
}

fn bind_tcp(
    host: Option<IpAddr>,
    port: u16,
    cores: usize,
    is_shared: bool,
) -> io::Result<(Vec<TcpListener>, SocketAddr)> {
    let host = host.unwrap_or_else(every_interface);
    let wanted = SocketAddr::new(host, port);
    if port != 0 && !is_shared {
        // SO_REUSEPORT would let a second process of the same user share the address in silence. A
        // socket without it is refused as long as anybody listens there.
        let probe = open(wanted, false)?;
        net::listen(&probe, 1)?;
        drop(probe);
    }
    let first = listening_soon(wanted)?;
    let bound = first.local_addr()?;
    let mut sockets = vec![first];
    for _ in 1..cores {
        sockets.push(listening(bound)?);
    }
    Ok((sockets, bound))
}

/// `::` takes IPv4 too where the machine has IPv6 at all.
fn every_interface() -> IpAddr {
    match open(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0), true) {
        Ok(_) => Ipv6Addr::UNSPECIFIED.into(),
        Err(_) => Ipv4Addr::UNSPECIFIED.into(),
    }
}

/// A process that another thread has just begun holds a copy of the probe until it runs its program.
fn listening_soon(address: SocketAddr) -> io::Result<TcpListener> {
    let mut tries = PROBE_COPY_TRIES;
    loop {
        match listening(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries > 0 => {
                tries -= 1;
                std::thread::sleep(PROBE_COPY_PAUSE);
            }
            bound => return bound,
        }
    }
}

fn listening(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = open(address, true)?;
    net::listen(&socket, ACCEPT_BACKLOG)?;
    Ok(TcpListener::from(socket))
}

fn open(address: SocketAddr, shared: bool) -> io::Result<std::os::fd::OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, shared)?;
    // Accepted sockets inherit it: no system call for each connection.
    sockopt::set_tcp_nodelay(&socket, true)?;
    // The same: clients that vanish in silence must not keep tunnels and streams of events for ever.
    sockopt::set_socket_keepalive(&socket, true)?;
    sockopt::set_tcp_keepidle(&socket, CLIENT_KEEP_ALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(&socket, CLIENT_KEEP_ALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(&socket, CLIENT_KEEP_ALIVE_PROBES)?;
    // A bound, and no promise: where the kernel does not have it, it keeps more.
    let _ = socket2::SockRef::from(&socket).set_tcp_notsent_lowat(UNSENT_BYTES_MAX);
    if address.is_ipv6() {
        let every = address.ip() == IpAddr::from(Ipv6Addr::UNSPECIFIED);
        sockopt::set_ipv6_v6only(&socket, !every)?;
    }
    net::bind(&socket, &address)?;
    Ok(socket)
}

fn bind_unix(path: &Path, mode: u32) -> io::Result<UnixListener> {
    match std::fs::symlink_metadata(path) {
        Ok(there) if !there.file_type().is_socket() => {
            return Err(io::Error::other(
                "a file that is no socket stands there; remove it or choose another path",
            ));
        }
        Ok(_) if UnixStream::connect(path).is_ok() => return Err(io::ErrorKind::AddrInUse.into()),
        // Left behind by a process that is gone.
        Ok(_) => std::fs::remove_file(path)?,
        Err(_) => {}
    }
    let socket = UnixListener::bind(path)?;
    socket.set_nonblocking(true)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_sockets_ask_by_themselves_whether_their_client_is_still_there() {
        let listener = listening(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let accepted = loop {
            match listener.accept() {
                Ok((accepted, _)) => break accepted,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        };
        assert!(sockopt::socket_keepalive(&accepted).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&accepted).unwrap(), CLIENT_KEEP_ALIVE_IDLE);
        assert_eq!(sockopt::tcp_keepintvl(&accepted).unwrap(), CLIENT_KEEP_ALIVE_INTERVAL);
        assert_eq!(sockopt::tcp_keepcnt(&accepted).unwrap(), CLIENT_KEEP_ALIVE_PROBES);
    }

    #[test]
    fn the_kernel_keeps_little_for_a_client_that_does_not_take_it() {
        use std::io::Write;
        let listener = listening(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut accepted = loop {
            match listener.accept() {
                Ok((accepted, _)) => break accepted,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        };
        accepted.set_nonblocking(true).unwrap();
        assert_eq!(socket2::SockRef::from(&accepted).tcp_notsent_lowat().unwrap(), UNSENT_BYTES_MAX);
        let piece = vec![0; 1024 * 1024];
        let mut taken = 0;
        while let Ok(count) = accepted.write(&piece) {
            taken += count;
        }
        // What is on its way to the client's own buffer comes beside it.
        assert!(taken < 8 * 1024 * 1024, "{taken} bytes");
    }
}
