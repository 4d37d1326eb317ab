//! Connections to those that speak HTTP/1.1 ([`peer`]): one at a time ([`connection`], over a [`link`]), and those of
//! a core ([`pool`]), from the idle ones, from other cores ([`lend`]), from the waiting queue ([`queue`]) or new
//! ([`dial`]). [`floor`] looks after those that rest, [`rest`] knows for how long they may. What happens on one between
//! a request and the end of its answer is [`exchange`].
//!
//! All but [`exchange`] know nothing of clients, routes and answers. Whoever has a request leads it
//! (`handle/app/program/`, `handle/proxy/`).

mod addresses;
pub(crate) mod connection;
pub(crate) mod dial;
pub(crate) mod exchange;
pub(crate) mod floor;
pub(crate) mod lend;
mod link;
pub mod peer;
pub(crate) mod pool;
pub(crate) mod queue;
mod rest;
#[cfg(test)]
mod tests;
