//! A client's connection as handlers use it, and the part of a core that connections need.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`request_body`] | the body of a request, read piece by piece |
//! | [`response_writer`] | the response, written piece by piece; `slow_reader`: what becomes of its slot meanwhile |
//! | [`exchange_io`] | what both share of the connection |
//! | [`slot`], [`edits`] | what they need of those that answer and of the routes |
//! | [`compressor`] | compresses a body on its way |
//! | [`core`] | per core: deadlines, buffers, the date, request numbers; per process: timeouts, the stop |
//! | [`codec`] | how requests and responses are framed: HTTP/1 or a stream of HTTP/2 |
//! | [`client_stream`] | a socket, or a stream of HTTP/2 |
//! | [`socket`] | TCP, a Unix socket, or TLS |
//! | [`buffers`], [`buffer_pool`] | what a busy connection holds, and an idle one does not |
//! | [`deadline`] | all deadlines of a core in one table |
//! | [`tls_stream`] | an encrypted connection: records in and out of a TCP stream |
//! | [`write`](mod@write) | writing with a deadline on progress |
//! | [`slow_clients`] | what slow clients may hold of what others wait for |
//! | [`limits`] | every bound of these |
//!
//! Never routes, never chooses a target, and never logs or counts requests.
#![forbid(unsafe_code)]

pub mod buffer_pool;
pub mod buffers;
pub mod client_stream;
pub mod codec;
pub mod compressor;
pub mod core;
pub mod deadline;
pub mod edits;
pub mod exchange_io;
pub mod limits;
pub mod request_body;
pub mod response_writer;
pub mod slot;
pub mod slow_clients;
mod slow_reader;
pub mod socket;
pub mod tls_stream;
pub mod write;

pub use core::{Core, Shared};
pub use edits::ResponseEdits;
pub use exchange_io::{ExchangeIo, Extent, Permits};
pub use request_body::RequestBody;
pub use response_writer::{Ended, ResponseWriter, Sent};
pub use slot::{Slot, SlotHolder, YieldSlot};
