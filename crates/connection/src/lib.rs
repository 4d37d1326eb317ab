//! A client's connection as handlers use it, and the part of a core that connections need.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`core`] | per core: deadlines, buffers, the date, request numbers; per process: timeouts, the stop |
//! | [`socket`] | TCP or a Unix socket |
//! | [`buffers`], [`buffer_pool`] | what a busy connection holds, and an idle one does not |
//! | [`deadline`] | all deadlines of a core in one table |
//! | [`write`](mod@write) | writing with a deadline on progress |
//! | [`slow_clients`] | what slow clients may hold of what others wait for |
//! | [`limits`] | every bound of these |
//!
//! Never routes, never chooses a target, and never logs or counts requests.
#![forbid(unsafe_code)]

pub mod buffer_pool;
pub mod buffers;
pub mod core;
pub mod deadline;
pub mod limits;
pub mod slow_clients;
pub mod socket;
pub mod write;

pub use core::{Core, Shared};
