//! `cargo xtask bench`: measurements against other servers on this machine.
//!
//! Servers are started, bound to cores and weighed by `onehop_load::measure`, and loaded by its engine.
//! `arms.rs` names who is measured and how each is started, `servers.rs` on which cores, `load.rs` says what the
//! engine is to ask and `outside.rs` has wrk check it, `probe.rs` asks one question at a time, `report.rs` prints and
//! keeps the figures; `files.rs`, `app/`, `idle.rs` and `tree.rs` are the measurements.
//! No measurement may start while another one runs: there are two cores, one for each side.

mod app;
mod arms;
mod files;
mod idle;
mod load;
mod outside;
mod probe;
mod report;
mod servers;
mod tree;
mod trust;

pub(crate) use app::{frameworks, run as app};
pub(crate) use files::run as files;
pub(crate) use idle::run as idle;
pub(crate) use tree::run as tree;
pub(crate) use trust::run as trust;
