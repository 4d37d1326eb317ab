//! `cargo xtask bench`: measurements against other servers on this machine.
//!
//! `arms.rs` names who is measured and how each is started, `process.rs` starts, pins and weighs them,
//! `load.rs` makes the load, `probe.rs` asks one question at a time, `report.rs` prints and keeps
//! the figures; `files.rs`, `app/`, `idle.rs` and `tree.rs` are the measurements.
//! No measurement may start while another one runs: there are two cores, one for each side.

mod app;
mod arms;
mod files;
mod idle;
mod load;
mod probe;
mod process;
mod report;
mod tree;

pub(crate) use app::{frameworks, run as app};
pub(crate) use files::run as files;
pub(crate) use idle::run as idle;
pub(crate) use tree::run as tree;
