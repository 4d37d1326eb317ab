//! HTTP/1 heads and bodies, both directions: bytes in, events out.
//!
//! Owns the grammar of RFC 9112 and what it refuses. Knows no socket, no clock and no runtime; never
//! guesses where framing is ambiguous. Read `head.rs` first, then `server.rs` and `client.rs`.
//!
//! What happens to the bytes of a request, in order: `scan.rs` finds the end of the head without looking
//! at a byte twice, `tokenise.rs` finds the fields in it, `target.rs` checks where it wants to go,
//! `framing.rs` decides how long its body is, `body.rs` reads that body, `send.rs` frames the answer.
#![forbid(unsafe_code)]

mod body;
mod fields;
mod framing;
mod grammar;
mod scan;
mod send;
mod target;
mod tokenise;
mod translated;

pub mod client;
pub mod head;
pub mod known;
pub mod limits;
pub mod refuse;
pub mod response;
pub mod server;

pub use body::{BodyLength, BodyRead};
pub use client::{AnswerBody, AnswerRead, AskHead, ClientCodec};
pub use fields::{Field, Span};
pub use head::{Method, RequestHead, Version};
pub use known::Known;
pub use limits::Limits;
pub use refuse::Refusal;
pub use response::ResponseHead;
pub use send::reason;
pub use server::{AnswerHead, BodyEnd, EofMeaning, Next, ServerCodec};
pub use translated::{read_translated, read_translated_response, with_fields};
