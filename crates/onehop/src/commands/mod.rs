//! One file per command; `serving.rs` is what `run`, `serve`, `app` and `proxy` share.

pub(crate) mod app;
pub(crate) mod bench;
mod certificate_store;
pub(crate) mod certs;
pub(crate) mod control;
pub(crate) mod exec_worker;
pub(crate) mod forms;
pub(crate) mod guard;
pub(crate) mod help;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod logs;
pub(crate) mod pack;
pub(crate) mod packed;
pub(crate) mod proxy;
pub(crate) mod routes;
pub(crate) mod run;
pub(crate) mod serve;
mod serving;
pub(crate) mod side_by_side;
pub(crate) mod standard_output;
pub(crate) mod status;
pub(crate) mod top;
pub(crate) mod trust;
pub(crate) mod validate;
pub(crate) mod why;
pub(crate) mod workers;
