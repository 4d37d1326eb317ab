//! Files from memory, and from disk where memory is not enough.

pub mod budget;
pub mod store;
