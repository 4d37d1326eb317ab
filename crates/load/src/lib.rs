//! Puts load on HTTP servers, times every response, and measures the server's processes meanwhile.
//!
//! A [`Plan`] says which requests are sent, how often and for how long; [`engine::run`] sends them and returns a
//! [`Run`]: counts, latencies, and whether the generator itself was the bottleneck. Synchronous: threads and epoll, no
//! runtime. The crate is optimised in every profile, since a slow generator measures itself.
//!
//! | module | owns |
//! | --- | --- |
//! | [`url`] | URLs and the address behind them |
//! | [`plan`] | the settings of a load, checked |
//! | [`engine`] | connections, arrivals, clocks; over [`tls`] and [`http2`] where the plan says so |
//! | [`outcome`] | what a run found; [`latency`] holds its durations |
//! | [`measure`] | starts servers; CPU time and memory of their processes, the machine, its cores |
//! | [`client`] | one request at a time, waited for |
//! | [`progress`] | how far a measurement is, and how it is interrupted |
//! | [`caveat`] | what a reader must know before believing figures: codes and sentences |
//!
//! Never guesses what it did not see: a response that was cut off is no response, a request that should have been sent
//! and was not is counted. Draws no conclusion: comparing runs is `crates/bench`. `examples/closed_loop.rs` uses it alone.
#![forbid(unsafe_code)]

pub mod caveat;
pub mod client;
pub mod engine;
pub mod http2;
pub mod latency;
pub mod measure;
pub mod outcome;
pub mod plan;
pub mod progress;
pub mod tls;
pub mod url;

pub use caveat::{Caveat, CaveatCode};
pub use client::{Client, RequestError, Response};
pub use latency::Latencies;
pub use outcome::Run;
pub use plan::Plan;
pub use progress::{Observer, Progress, Unobserved};
pub use url::{Address, Endpoint, Url};
