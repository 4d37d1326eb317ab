//! The control plane: rare, slow, may fail.
//!
//! Starts and stops the cores, builds snapshots and publishes them. Never answers a request.

pub mod admin;

mod events;
mod running;

pub use events::{Event, EventSink};
pub use running::{Options, ReloadSummary, Running, Server, SiteStatus, StartError, Status, StoreStatus};
