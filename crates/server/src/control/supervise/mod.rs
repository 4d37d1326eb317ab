//! The supervisor: starts the workers of applications, watches, replaces and ends them.
//!
//! A [`Supervisor`] carries out what a start, a reload and a stop want. It never touches a request: cores see the workers that it
//! admits to a pool and withdraws from it.
//!
//! | module | owns |
//! | --- | --- |
//! | `supervisor` | the thread, and what the control plane asks of all applications |
//! | `app` | one application: which workers it has, starts, replaces and drains |
//! | `lifecycle` | one worker: from the start of its process to the reason of its end |
//! | `handler`, `program`, `elsewhere` | what differs with the protocol: how a worker is ready, how it reports, how it ends |
//! | `launch`, `environment`, `account`, `data`, `embedded`, `port` | what a process is started with |
//! | `process`, `output`, `stack`, `reason` | the process, what it writes, why it ended |
//! | `backoff` | how long a failed worker is not replaced |
//! | `unpacked` | unpacks what a pack holds for workers before the first of them starts |
//! | `loaded` | which files the workers run, and whether one has changed |
//! | `guard`, `leftovers`, `sweep` | end what a killed server would leave behind |

mod account;
mod app;
mod backoff;
mod capacity;
mod control_connection;
mod data;
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
pub use supervisor::{Restart, Supervisor};
