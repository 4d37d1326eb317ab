//! The primitives of which the wait queue is made. `tests/model.rs` puts those of a scheduler in their place that
//! explores interleavings.

pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use tokio::time::timeout_at;
