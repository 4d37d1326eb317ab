//! Connections: from a socket to requests and from answers to a socket.
//!
//! Owns deadlines, buffers and draining. Everything behind it sees a head and an answer and does not
//! know the protocol version.

mod arrival;
pub(crate) mod h1;
pub(crate) mod handshake;
