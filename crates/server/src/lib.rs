//! The server of onehop.
#![forbid(unsafe_code)]

pub mod control;
pub mod limits;
pub mod request;
