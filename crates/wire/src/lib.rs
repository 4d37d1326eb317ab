//! The worker protocol (docs/worker-protocol.md), the server's side: bytes in, frames out.
//!
//! Owns how a frame looks, which names a head block shortens, which slots are taken and how much may be on
//! its way. Knows no socket, no clock and no runtime, and not what an exchange is waiting for. Read
//! `frame.rs` first, then `decode.rs` and `encode.rs`.
#![forbid(unsafe_code)]

mod broken;
mod credit;
mod decode;
mod frame;
mod head;
mod names;
mod slots;

pub mod encode;
pub mod limits;

pub use broken::Broken;
pub use credit::{Meter, Window};
pub use decode::decode;
pub use encode::{FileParts, HeadWriter, RequestParts, ResponseParts};
pub use frame::{
    Blocked, ConnectionKind, Facts, File, FilePart, Frame, Hello, Informational, Payload, Pong, Ready,
    Request, RequestLine, ResetCode, Response, Sender, Transport,
};
pub use head::{Field, FieldName, FieldRecords, HeadBlock, Records};
pub use names::{Interned, NAMES};
pub use slots::{Known, Slots};
