//! Connections to programs that speak HTTP/1.1: one at a time ([`connection`]), and those that wait for
//! their next request ([`idle`]).
//!
//! Knows nothing of clients, routes and answers: whoever has a request leads it (`handle/app/program/`).

pub(crate) mod connection;
pub(crate) mod idle;
