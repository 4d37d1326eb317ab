//! The server of onehop: sockets in front, an immutable snapshot behind, a control plane beside.
//!
//! The way of a request is `request/mod.rs`; what may be slow or may fail is `control/`; every
//! bound stands in `limits.rs`. `request/` never imports `control/`.
#![forbid(unsafe_code)]

pub mod control;
pub mod limits;
pub mod request;

pub use control::{Event, Options, Running, Server, StartError};
