//! One core's connections to peers: those that are idle, those that are to be open, those that are waited for.
//!
//! A connection is taken from the idle ones, else borrowed from another core, else dialled; where the peer has as many
//! as it may, one is waited for, within a bound. Never sends anything.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use super::connection::Connection;
use super::peer::Peer;
use crate::request::core::Core;

/// Which of the kept connections a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Any: the request may be sent again should the connection turn out to be dead.
    Any,
    /// One of which it is all but certain that it lives: the request may be sent once only.
    Alive,
    /// None: one has just turned out to be dead.
    Fresh,
}

/// Why there is no connection. Nothing of the request has left.
#[derive(Debug)]
pub(crate) enum NoConnection {
    /// Nobody listens there, or it is out of reach.
    Refused(io::Error),
    /// It took too long.
    Late,
    /// The name leads nowhere.
    Name(String),
    /// The handshake failed: the reason, for logs.
    Tls(String),
    /// As many requests wait for a connection as may.
    QueueFull,
    /// None became free in time.
    QueueLate,
}

/// A connection for one exchange. Give it back with [`give_back`], or drop it to close it. Dropping the future is safe
/// at any time.
pub(crate) async fn get(core: &Rc<Core>, peer: &Arc<Peer>, wish: Wish) -> Result<Connection, NoConnection> {
    let _ = (core, peer, wish);
    Err(NoConnection::Late)
}

/// Keeps a connection that [`Connection::reuse`] has found ready for another request.
pub(crate) fn give_back(core: &Rc<Core>, peer: &Arc<Peer>, connection: Connection) {
    let _ = (core, peer, connection);
}
