//! The client side of HTTP: connections to upstreams, and what is known of those.
//!
//! A [`Peer`] is one server, as all cores see it. Each core has its own [`Pools`] of idle connections: a request takes
//! the one that was used last, else one of another core, else a new one; where the peer has as many as it may, the
//! request waits in a bounded queue. At each tick the pools close what is of no more use and keep a minimum open.
//!
//! | module | owns |
//! | --- | --- |
//! | [`peer`] | one server: where it is, its settings, what is counted of it over all cores |
//! | [`acquire`] | how a request gets a connection |
//! | [`pool`] | one core's idle connections |
//! | [`maintenance`] | what a core does at each tick: closes, replaces, opens |
//! | `multiplexed`, `streams`, `acquire_stream` | connections of HTTP/2, which requests share |
//! | `ping_check` | whether the peer of such a connection is still there |
//! | [`link`], [`codec`] | what one exchange runs on, whichever version the upstream speaks |
//! | `refill` | how many connections one core may open for the minimum |
//! | `steal`, [`mailboxes`] | connections between cores |
//! | [`slots`] | the maximum of connections, and the requests that wait under it |
//! | [`connection`], `transport` | one connection: its codec, its socket or TLS stream |
//! | [`dial`] | new connections: addresses raced, TLS handshakes, Unix sockets |
//! | `addresses` | what a peer's name resolves to |
//! | `learned_timeout` | an upstream's idle timeout, learned from the connections that it closes |
//! | [`names`] | resolves names, on a thread of its own |
//! | [`tls`] | which certificates to trust and to show |
//! | [`member`], [`health`], `latency` | one upstream of one directive, what is known of its health and how fast it is |
//! | [`health_check`] | active checks, on a thread of their own |
//! | [`balance`] | which of several members a request goes to |
//! | [`exchange`] | one request and its response on a connection, body and tunnel both ways at once |
//! | [`limits`] | every bound of these |
//!
//! Never sends a request twice and never chooses between attempts: that is for the caller. Knows no route and no handler.
//! `examples/pool.rs` sends requests over a pool.
#![forbid(unsafe_code)]

pub mod acquire;
mod acquire_stream;
mod addresses;
pub mod balance;
pub mod codec;
pub mod connect_error;
pub mod connection;
pub mod dial;
pub mod epoch;
pub mod exchange;
pub mod health;
pub mod health_check;
pub mod latency;
mod learned_timeout;
pub mod limits;
pub mod link;
pub mod mailboxes;
pub mod maintenance;
pub mod member;
mod multiplexed;
pub mod names;
pub mod peer;
mod ping_check;
pub mod pool;
mod refill;
pub mod slots;
mod steal;
mod streams;
#[cfg(test)]
mod test_members;
#[cfg(test)]
mod tests;
pub mod tls;
mod transport;

pub use acquire::WaitingClient;
pub use connect_error::ConnectError;
pub use connection::Connection;
pub use link::Link;
pub use mailboxes::Mailboxes;
pub use peer::Peer;
pub use pool::Pools;
pub use slots::Reuse;
