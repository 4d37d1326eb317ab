//! What the server counts and logs.
//!
//! Each core writes counters of its own with plain loads and stores, and gathers access-log lines of its own. A reader of
//! the metrics adds the cores up; no request writes to memory that cores share. Labels come from the configuration, never
//! from a request, so the number of series is bounded.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`site`] | the counters and latency histograms of a site, by handler and route |
//! | [`counters`] | the counters of cores, and the registry of them all |
//! | [`histogram`] | durations in buckets, and what readers take of them |
//! | [`frequent`] | the most frequent of many texts |
//! | [`handler`], [`route`] | the handlers and the routes of a site as labels |
//! | [`stats`] | what other crates count (workers, upstreams, limits), as plain data that the caller fills in |
//! | [`collect`] | both as metric families |
//! | [`families`] | what a family is |
//! | [`exposition`] | families as the text of `/metrics` |
//! | [`access_log`] | one line for each request: what is in it, the batches, the writer thread, rotation |
//! | [`recent`] | the last lines of requests, applications and events, in memory |
//! | [`limits`] | every bound of these |
//!
//! Knows no socket, no matcher and no worker. `examples/counters.rs` counts on two threads and prints the text.
#![forbid(unsafe_code)]

pub mod access_log;
pub mod collect;
mod counter;
pub mod counters;
pub mod exposition;
pub mod families;
pub mod frequent;
pub mod handler;
pub mod histogram;
mod json_string;
pub mod limits;
pub mod recent;
pub mod route;
pub mod site;
pub mod stats;

pub use counters::Registry;
pub use handler::Handler;
