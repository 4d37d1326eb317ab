//! `app`: calls an application's handlers in its worker processes.

pub(crate) mod lane;
pub mod pool;
