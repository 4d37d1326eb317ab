//! Connections: from a socket to requests and from responses to a socket.
//!
//! Owns deadlines, buffers and draining. [`h1`] and [`h2`] make requests of what a client sends; [`exchange`] serves one of
//! them, whatever its version. Everything behind it sees a head and a response and does not know the protocol version.

mod exchange;
pub(crate) mod h1;
pub(crate) mod h2;
pub(crate) mod handshake;
pub(crate) mod proxy_protocol;
