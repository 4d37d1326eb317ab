//! Measures servers as an honest engineer would: `onehop bench` and `onehop try`.
//!
//! Owns the load and what is learned from it. Never guesses what it did not see: an answer that was cut off
//! is no answer, a request that should have been sent and was not is counted, and a figure that the load
//! generator itself limited is said to be none of the server's.
//!
//! The way of a measurement, in order: `url.rs` where to, `tls/` how that is encrypted, `http2/` how streams share a connection, `plan.rs` what is asked and how often, `engine/`
//! asks, `outcome.rs` is what was seen; `measure/` weighs the server's processes meanwhile, `compare/` repeats it
//! for several targets, `scenario/` reads comparisons from a file, `repeat.rs` for one, `statistics` says what may be concluded, `report/` tells it. `quantity.rs`
//! and `foreign/` read what was typed.
#![forbid(unsafe_code)]

pub mod basic;
pub mod caveat;
pub mod client;
pub mod collection;
pub mod compare;
pub mod engine;
pub mod foreign;
pub mod http2;
pub mod latency;
pub mod measure;
pub mod outcome;
pub mod plan;
pub mod progress;
pub mod quantity;
pub mod repeat;
pub mod report;
pub mod saturation;
pub mod scenario;
pub mod shell_words;
pub mod side_by_side;
pub mod tls;
pub mod url;

pub use onehop_statistics as statistics;

pub use caveat::{Caveat, CaveatCode};
pub use client::{Client, RequestError, Response};
pub use latency::Latencies;
pub use outcome::Run;
pub use plan::Plan;
pub use progress::{Observer, Progress, Unobserved};
pub use url::{Address, Endpoint, Url};
