//! Why a request got no connection.

use std::fmt;
use std::io;

/// Why there is no connection. Nothing of the request was sent.
#[derive(Debug)]
pub enum ConnectError {
    /// No process listens there, or it is out of reach.
    Refused(io::Error),
    /// Dialling or the handshake took too long.
    Timeout,
    /// The name was not resolved: the reason, for logs.
    Name(String),
    /// The handshake failed: the reason, for logs.
    Tls(String),
    /// As many requests wait for a connection as may.
    QueueFull,
    /// No connection became free in time.
    QueueTimeout,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Refused(error) => write!(out, "no connection: {error}"),
            ConnectError::Timeout => out.write_str("no connection in time"),
            ConnectError::Name(reason) => out.write_str(reason),
            ConnectError::Tls(reason) => write!(out, "no TLS: {reason}"),
            ConnectError::QueueFull => out.write_str("too many requests wait for a connection"),
            ConnectError::QueueTimeout => out.write_str("no connection became free in time"),
        }
    }
}
