//! Files from memory, and from disk where memory is not enough.

pub mod store;
