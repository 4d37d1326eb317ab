//! Whose connection it is, as a load balancer in front says with the PROXY protocol before the first byte.
//!
//! The header is looked at where the kernel holds it and then taken to the byte, so that whatever reads the connection next,
//! TLS or HTTP, finds its own beginning. What the bytes mean says [`onehop_message::proxy_protocol`].

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;

use onehop_config::checked::{HeaderPolicy, ProxyProtocol};
use onehop_connection::deadline::{Deadline, Waiting};
use onehop_connection::socket::Socket;
use onehop_message::proxy_protocol::{self, Beginning, HEADER_BYTES_MAX};
use onehop_metrics::counters::HeaderRefusal;
use rustix::net::RecvFlags;
use tokio::io::{Interest, Ready};

use crate::request::core::Core;

/// Reads the header of a connection under this policy, which is not [`HeaderPolicy::Skip`]. `Ok`: the client, where the header is
/// believed and names one. `Err`: the connection is over.
pub(crate) async fn read(
    core: &Rc<Core>,
    socket: &Socket,
    settings: &ProxyProtocol,
    policy: HeaderPolicy,
) -> Result<Option<SocketAddr>, HeaderRefusal> {
    let deadline = core.connection.deadline();
    deadline.set(Waiting::Head, settings.timeout);
    match (beginning(socket, &deadline).await?, policy) {
        (Beginning::Header { .. }, HeaderPolicy::Reject) => Err(HeaderRefusal::Rejected),
        (Beginning::Header { length, client }, _) => {
            take(socket, length)?;
            Ok(client.filter(|_| policy.believes()))
        }
        (_, HeaderPolicy::Require) => Err(HeaderRefusal::Missing),
        _ => Ok(None),
    }
}

/// What the connection begins with. One that says nothing for so long has no header: clients open connections in reserve.
async fn beginning(socket: &Socket, deadline: &Deadline) -> Result<Beginning, HeaderRefusal> {
    loop {
        let late =
            poll_fn(|context| if deadline.poll_over(context) { Poll::Ready(()) } else { Poll::Pending });
        let ready = tokio::select! {
            biased;
            ready = readable(socket) => Some(ready.map_err(|_| HeaderRefusal::Gone)?),
            () = late => None,
        };
        let mut bytes = [0; HEADER_BYTES_MAX];
        let count = match receive(socket, &mut bytes, RecvFlags::PEEK) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            looked => looked.map_err(|_| HeaderRefusal::Gone)?,
        };
        let read = proxy_protocol::read(bytes.get(..count).unwrap_or_default());
        let read = read.map_err(|_| HeaderRefusal::Malformed)?;
        let is_over = ready.is_none_or(Ready::is_read_closed);
        match read {
            Beginning::Incomplete if !is_over => wait_for_more(socket),
            Beginning::Incomplete if count == 0 => return Ok(Beginning::NoHeader),
            Beginning::Incomplete if ready.is_none() => return Err(HeaderRefusal::Timeout),
            Beginning::Incomplete => return Err(HeaderRefusal::Malformed),
            known => return Ok(known),
        }
    }
}

/// Takes the bytes of a header that is there.
fn take(socket: &Socket, length: usize) -> Result<(), HeaderRefusal> {
    let mut bytes = [0; HEADER_BYTES_MAX];
    let header = bytes.get_mut(..length).unwrap_or_default();
    match receive(socket, header, RecvFlags::empty()) {
        Ok(taken) if taken == length => Ok(()),
        _ => Err(HeaderRefusal::Gone),
    }
}

async fn readable(socket: &Socket) -> io::Result<Ready> {
    match socket {
        Socket::Tcp(stream) => stream.ready(Interest::READABLE).await,
        Socket::Unix(stream) => stream.ready(Interest::READABLE).await,
        Socket::Tls(tls) => tls.stream().ready(Interest::READABLE).await,
    }
}

/// Takes bytes that are not enough for none: the event loop tells of those that come behind them.
fn wait_for_more(socket: &Socket) {
    let nothing = || io::Result::<()>::Err(io::ErrorKind::WouldBlock.into());
    let _ = match socket {
        Socket::Tcp(stream) => stream.try_io(Interest::READABLE, nothing),
        Socket::Unix(stream) => stream.try_io(Interest::READABLE, nothing),
        Socket::Tls(tls) => tls.stream().try_io(Interest::READABLE, nothing),
    };
}

fn receive(socket: &Socket, bytes: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
    let flags = flags | RecvFlags::DONTWAIT;
    let received = match socket {
        Socket::Tcp(stream) => rustix::net::recv(stream, bytes, flags),
        Socket::Unix(stream) => rustix::net::recv(stream, bytes, flags),
        Socket::Tls(tls) => rustix::net::recv(tls.stream(), bytes, flags),
    };
    Ok(received.map(|(count, _)| count)?)
}
