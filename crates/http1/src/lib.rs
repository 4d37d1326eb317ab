//! HTTP/1 heads and bodies, both directions: bytes in, events out.
//!
//! Owns the grammar of RFC 9112 and what it refuses. Knows no socket, no clock and no runtime; never
//! guesses where framing is ambiguous. Read `head.rs` first, then `server.rs` and `client.rs`.
#![forbid(unsafe_code)]

pub mod head;
pub mod known;

pub use head::{Field, Method, RequestHead, Span, Version};
pub use known::Known;
