//! The control plane: rare, slow, may fail.
//!
//! Starts and stops the cores, reads and watches trees, builds snapshots and publishes them, answers on
//! the control socket. Never answers a request of a site.

pub mod admin;

mod bind;
mod check;
mod cores;
mod descriptors;
mod events;
mod limiters;
pub mod loaded;
mod memory;
mod publish;
mod running;
mod stats;
mod status;
mod supervise;
mod trees;
mod upstreams;

pub use check::{Refusal, check};
pub use events::{Event, EventSink};
pub use memory::check_memory;
use running::cores_allowed;
pub use running::{AppFiles, Load, Options, Restart, Running, Server, StartError};
pub use status::{
    AppStatus, ProxyStatus, ReloadSummary, SiteStatus, Status, StoreStatus, UpstreamStatus, WorkerStatus,
};
pub use supervise::{ProgramLine, SuperviseOptions, guard_workers};
