//! The client side of the worker protocol: pools of worker processes, connections to them, requests on these.
//!
//! An application has a [`pool::Pool`] of [`worker::Worker`]s, which all cores share. A request takes a slot at one of
//! them, or waits until one is free. Each core has a worker connection of its own to each worker
//! ([`connection::WorkerConnections`]): the bytes of a request never change threads, and the only shared write of a
//! request is its worker's counter. An exchange on a connection is a [`stream::Stream`] of frames.
//!
//! | module | owns |
//! | --- | --- |
//! | [`worker`] | one process as requests see it: its slots, its event loop's lag |
//! | [`pool`] | which worker a request gets, and the queue of those that wait |
//! | [`affinity`] | which requests should go to the same worker |
//! | [`connection`] | one core's connection to one worker: frames to exchanges and back |
//! | [`stream`] | one exchange: frames that came, credit to send |
//! | `stalls` | when the event loop of a worker stood still |
//! | [`call`] | what one request brings: its slot, its affinity, what has arrived of its body |
//! | [`exchange`] | one request over frames: the body follows the head, the response comes back, or a tunnel |
//! | [`program`] | the same with a program that speaks HTTP |
//! | [`file`] | files that an application names and the server sends |
//! | [`failure_page`] | shown to browsers while a developer works on the application |
//! | [`limits`] | every bound of these |
//!
//! Starts and ends no process: the supervisor does, and hands over workers that are ready. Knows no route. A request that
//! was handed over counts as started: only a worker's refusal, or the settings, let another worker have it.
#![forbid(unsafe_code)]

pub mod affinity;
pub mod call;
pub mod connection;
pub mod exchange;
pub mod failure_page;
pub mod file;
mod head;
pub mod limits;
pub mod pool;
pub mod program;
mod request_body;
mod response;
mod socket;
mod stalls;
pub mod stream;
mod stream_state;
mod tunnel;
pub mod worker;

pub use affinity::Affinity;
pub use connection::{Windows, WorkerConnections};
pub use pool::Pool;
pub use worker::{ConnectionEvent, Report, Transport, Worker, WorkerId, WorkerIndex};
