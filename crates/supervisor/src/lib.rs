//! Starts the processes of applications, watches, replaces and ends them.
//!
//! A [`Supervisor`] carries out what a start, a reload and a stop of the server want. It knows no route and never touches a
//! request: cores see the workers that it admits to a [`onehop_workers::Pool`] and withdraws from it, and it hands them the
//! sockets on which they speak to a worker ([`Attach`]). What happens it reports as an [`AppEvent`].
//!
//! | module | owns |
//! | --- | --- |
//! | `supervisor` | the thread, and what the server asks of all applications |
//! | `app` | one application: which workers it has, starts, replaces and drains |
//! | `lifecycle` | one worker: from the start of its process to the reason of its end |
//! | `handler`, `program`, `elsewhere` | how a worker is ready, how it is, how it ends: over the worker protocol, over HTTP, or without a process of ours |
//! | `launch`, `environment`, `account`, `data`, `embedded`, `port` | what a process is started with |
//! | `process`, `output`, `stack`, `reason` | the process, what it writes, why it ended |
//! | `backoff` | how long a worker that failed is not started again |
//! | `unpacked` | what a pack holds for workers, before the first of them starts |
//! | [`loaded`] | which files the workers run, and whether one has changed |
//! | `guard`, `leftovers`, `sweep` | end what a killed server leaves behind |
//!
//! Read `supervisor.rs` first, then `app.rs` and `lifecycle.rs`. Nothing of a process group outlives its worker: see
//! `process.rs`. `examples/supervise.rs` runs an application alone.
#![forbid(unsafe_code)]

mod account;
mod app;
mod backoff;
mod capacity;
mod control_connection;
pub mod data;
mod elsewhere;
mod embedded;
mod environment;
mod events;
mod folder;
mod guard;
mod handler;
mod launch;
mod leftovers;
mod lifecycle;
pub mod limits;
pub mod loaded;
mod messages;
mod options;
mod output;
mod port;
mod probe;
mod process;
mod program;
mod progress;
mod reason;
mod shared;
mod stack;
mod status;
mod supervisor;
mod sweep;
mod unpacked;
mod view;

pub use capacity::{descriptors, worker_connections};
pub use events::{AppEvent, AppEventSink};
pub use guard::guard_workers;
pub use options::{ProgramLine, SuperviseOptions};
pub use shared::Attach;
pub use status::{AppStatus, WorkerStatus};
pub use supervisor::{Change, Restart, SuperviseError, Supervisor};
