//! Connections to those that speak HTTP/1.1 ([`peer`]): one at a time ([`connection`]), those of a core
//! ([`pool`]), and those that wait for their next request ([`idle`]); what happens on one between a request and the end
//! of its answer ([`exchange`]).
//!
//! All but [`exchange`] know nothing of clients, routes and answers. Whoever has a request leads it
//! (`handle/app/program/`, `handle/proxy/`).

pub(crate) mod connection;
pub(crate) mod exchange;
pub(crate) mod idle;
pub mod peer;
pub(crate) mod pool;
