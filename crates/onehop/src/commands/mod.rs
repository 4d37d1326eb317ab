//! One file per command; `serving.rs` is what `run` and `serve` share.

pub(crate) mod control;
pub(crate) mod exec_worker;
pub(crate) mod forms;
pub(crate) mod pages;
pub(crate) mod run;
pub(crate) mod serve;
mod serving;
pub(crate) mod status;
pub(crate) mod validate;
