//! What the server counts and logs.
//!
//! Each core writes counters of its own with plain loads and stores, and gathers access-log lines of its own. A reader of
//! the metrics adds the cores up; no request writes to memory that cores share. Labels come from the configuration, never
//! from a request, so the number of series is bounded.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`counters`] | the counters of sites and cores, and the registry of them all |
//! | [`handler`] | the handlers as labels |
//! | [`stats`] | what other crates count (workers, upstreams, limits), as plain data that the caller fills in |
//! | [`prometheus`] | both as the text of `/metrics` |
//! | [`access_log`] | one JSON line for each request: what is in it, the batches, the writer thread, rotation |
//! | [`limits`] | every bound of these |
//!
//! Knows no socket, no route and no worker. `examples/counters.rs` counts on two threads and prints the text.
#![forbid(unsafe_code)]

pub mod access_log;
pub mod counters;
mod exposition;
pub mod handler;
pub mod limits;
pub mod prometheus;
pub mod stats;

pub use counters::Registry;
pub use handler::Handler;
