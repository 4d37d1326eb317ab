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
    /// The server does not speak HTTP/2: the reason, for logs.
    Http2(String),
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
            ConnectError::Http2(reason) => write!(out, "no HTTP/2: {reason}"),
            ConnectError::QueueFull => out.write_str("too many requests wait for a connection"),
            ConnectError::QueueTimeout => out.write_str("no connection became free in time"),
        }
    }
}

impl ConnectError {
    /// The same for another request that has waited for the same connection.
    pub(crate) fn shared(&self) -> Self {
        match self {
            ConnectError::Refused(error) => ConnectError::Refused(match error.raw_os_error() {
                Some(number) => io::Error::from_raw_os_error(number),
                None => io::Error::new(error.kind(), error.to_string()),
            }),
            ConnectError::Timeout => ConnectError::Timeout,
            ConnectError::Name(reason) => ConnectError::Name(reason.clone()),
            ConnectError::Tls(reason) => ConnectError::Tls(reason.clone()),
            ConnectError::Http2(reason) => ConnectError::Http2(reason.clone()),
            ConnectError::QueueFull => ConnectError::QueueFull,
            ConnectError::QueueTimeout => ConnectError::QueueTimeout,
        }
    }
}
