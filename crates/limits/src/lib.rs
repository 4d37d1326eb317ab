//! How much a server takes on at a time, and how often a client may ask.
//!
//! A [`ConcurrencyLimiter`] bounds the requests in flight. A request acquires a permit, waits for one in a queue bounded
//! in length and time, or is rejected with a cause; a permit that is released admits the next request that waits. The
//! bound is a number, or follows what the requests take ([`adaptive`]). The queue serves the highest priority first, and
//! under a lasting overload the newest first, so that those served still have a client ([`queue`]). How late the event
//! loop of an application is comes in as a number that the caller measures ([`event_loop_lag`]).
//!
//! A [`RateLimiter`] bounds the requests per key and time. A key is a number: the caller hashes into it what it counts
//! by. It never waits; a check admits the request or says when the next one would be.
//!
//! | module | reads and decides |
//! | --- | --- |
//! | [`concurrency`] | the limiter: one atomic word for the permits, a queue for those that wait |
//! | [`wait_queue`] | the protocol of any queue of requests: none is forgotten; model-checked in `tests/model.rs` |
//! | [`queue`] | which request is next, and which have waited for too long |
//! | [`adaptive`] | TCP Vegas over the latencies of answers |
//! | [`retry_after`] | when asking again makes sense |
//! | [`rate`] | GCRA over a bounded table of keys, and the fields that tell a client about it |
//! | [`client`] | the key of a client's network |
//! | [`log_sampling`] | how many rejections are logged |
//! | [`limits`] | every bound of these |
//!
//! Knows no route, no handler and no connection. All limiters are shared by all threads; the common path of an admitted
//! request is one atomic addition and one subtraction. `examples/limiter.rs` uses a limiter alone.
#![forbid(unsafe_code)]

pub mod adaptive;
pub mod client;
pub mod concurrency;
pub mod event_loop_lag;
pub mod limits;
pub mod log_sampling;
pub mod queue;
pub mod rate;
pub mod retry_after;
mod sync;
pub mod wait_queue;

pub use concurrency::ConcurrencyLimiter;
pub use rate::RateLimiter;
