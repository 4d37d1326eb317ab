//! HTTP/2: what the server adds to the `h2` crate, which owns frames, HPACK and flow control.
//!
//! | module | owns |
//! | --- | --- |
//! | [`transport`] | the bytes of a connection below h2: frames counted as they come, writes gathered |
//! | [`frames`] | how many frames of which kind a peer may send in a time |
//! | [`outgoing`] | how much of a connection waits to be written, and which stream is next (RFC 9218) |
//! | [`stream`] | one stream as bytes in and out |
//! | [`codec`] | one request on a stream, as the HTTP/1 codec has it on a connection |
//! | [`client`] | the other side: connections to servers, a request and its response on a stream |
//! | [`head`] | heads, from and to those of the `http` crate |
//! | [`limits`] | every bound of these |
//!
//! A request's head is written in the form of HTTP/1.1 and read by the code that reads HTTP/1.1, so that both are checked
//! alike. Knows no socket, no clock but that of the frame counts, and no handler.
#![forbid(unsafe_code)]

pub mod client;
pub mod codec;
pub mod frames;
pub mod head;
pub mod limits;
pub mod outgoing;
pub mod stream;
pub mod transport;

pub use codec::StreamCodec;
pub use h2::Reason;
pub use stream::Stream;
pub use transport::Transport;
