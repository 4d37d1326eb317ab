//! Connections to those that speak HTTP/1.1 ([`peer`]): one at a time ([`connection`]), those of a core
//! ([`pool`]), and those that wait for their next request ([`idle`]).
//!
//! Knows nothing of clients, routes and answers: whoever has a request leads it (`handle/app/program/`).

pub(crate) mod connection;
pub(crate) mod idle;
pub mod peer;
pub(crate) mod pool;
