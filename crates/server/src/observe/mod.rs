//! What is counted and logged.
//!
//! Each core writes its own counters, with plain loads and stores; `/metrics` adds them up. Labels
//! come from the configuration only, never from a request.

pub mod access_log;
mod counters;
mod limits;
mod prometheus;
mod rate_limits;
mod upstreams;

pub use counters::{CoreCounters, OTHER, Registry, SiteCounters};
pub use limits::render_limits;
pub use prometheus::{render, render_apps, render_connections_max};
pub use rate_limits::render_rate_limits;
pub use upstreams::render_upstreams;
