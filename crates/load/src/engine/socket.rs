//! Sockets that never block.
//!
//! Owns opening them and putting them under the watch of a thread's epoll. Edge-triggered and registered once: a
//! request costs one write, one read and its share of a wait, and no change of the watch.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::url::Address;

/// A socket that is being connected, or is.
pub(crate) fn open(address: &Address) -> Result<OwnedFd, Errno> {
    let family = match address {
        Address::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
        Address::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
        Address::Unix(_) => AddressFamily::UNIX,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    let connecting = match address {
        Address::Tcp(address) => {
            rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
            rustix::net::connect(&socket, address)
        }
        Address::Unix(path) => rustix::net::connect(&socket, &SocketAddrUnix::new(path)?),
    };
    match connecting {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

/// Has epoll tell of this socket with `data`.
pub(super) fn watch(epoll: &OwnedFd, socket: impl AsFd, address: &Address, data: u64) -> Result<(), Errno> {
    let mut flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    // A TCP socket tells that it may be written to after it refused some bytes. A Unix socket tells so whenever
    // the other side has read, which would be once a request: it is asked for only where it is needed.
    if matches!(address, Address::Tcp(_)) {
        flags |= EventFlags::OUT;
    }
    epoll::add(epoll, socket, EventData::new_u64(data), flags)
}

/// Has epoll tell also when this socket takes bytes again.
pub(super) fn watch_for_room(epoll: &OwnedFd, socket: impl AsFd, data: u64) -> Result<(), Errno> {
    let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
    epoll::modify(epoll, socket, EventData::new_u64(data), flags)
}
