//! The data plane, in the order in which a request travels.

pub mod answer;
pub mod handle;
pub mod rescue;
