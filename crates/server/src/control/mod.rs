//! The control plane: rare, slow, may fail. Publishes what the data plane reads.

pub mod store;
