//! The server's side and the machine's: processes, cores, memory, what the kernel counts.
//!
//! Owns reading /proc and starting and ending what is measured. Never ends a process that it, or what it
//! started, did not start, and never gives a figure for a process that it could not read.
//!
//! `process.rs` reads one process, `tree.rs` knows which belong together and `sockets.rs` who listens where;
//! `account.rs` adds up what they used, `memory.rs` what they hold, and `meter.rs` samples both; `idle.rs` holds idle connections. `stage.rs` sets up what a
//! server needs around it, `server.rs` starts and ends it, `ready.rs` waits for the first answer. `machine.rs`, `cores.rs`, `steal.rs` and `version.rs` say what a measurement was made on.

use std::path::PathBuf;
use std::time::Duration;

use crate::url::Address;

mod account;
mod cgroup;
mod cores;
mod idle;
mod log;
mod machine;
mod memory;
mod meter;
mod port;
mod process;
mod ready;
#[cfg(test)]
mod sample;
mod server;
mod sockets;
mod stage;
mod steal;
mod tree;
mod version;

pub use account::cpu_of;
pub use cores::{bind_to, core_caveats, split_cores};
pub use idle::{IdleConnections, IdleError, IdleMemory};
pub use machine::look;
pub use memory::{Memory, forget_peak, memory_of};
pub use meter::{Measured, Meter};
pub use port::free_port;
pub use ready::{wait_until_ready, wait_until_ready_unless};
pub use server::{Server, StartError};
pub use stage::{Behind, Stage, Staged};
pub use steal::StealMeter;
pub use tree::Tree;

pub use version::{output_of, version_of};

/// How a server is started.
#[derive(Debug, Clone)]
pub struct Start {
    /// The program and its arguments. `{port}` is replaced by a free port, which is in `PORT` too.
    pub words: Vec<String>,
    /// Variables beside those of this process.
    pub environment: Vec<(String, String)>,
    /// The folder in which it runs.
    pub directory: Option<PathBuf>,
    /// The port, where it cannot be chosen.
    pub port: Option<u16>,
    /// Servers that run already and work for it: the processes that listen there are weighed with its own.
    pub behind: Vec<Address>,
    /// How long it may take until its first whole answer.
    pub ready_within: Duration,
}

/// What a server's processes used during a run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// CPU time over all processes and threads.
    pub cpu: Duration,
    /// The time in which that was.
    pub wall: Duration,
    /// Median of the samples of resident memory, bytes: the processes' proportional shares where the kernel tells
    /// them, else their resident pages.
    pub memory_median: u64,
    /// 99th percentile of the same.
    pub memory_p99: u64,
    /// Context switches, voluntary.
    pub switches_voluntary: u64,
    /// Context switches, involuntary.
    pub switches_involuntary: u64,
    /// Bytes that went through read and write calls (`rchar` and `wchar` of proc(5)); sockets' are among them where
    /// read and write are used for them.
    pub io_bytes: u64,
    /// Processes at the end.
    pub processes: usize,
    /// Threads at the end.
    pub threads: usize,
}

/// What machine a measurement was made on.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// The kernel's release.
    pub kernel: String,
    /// The distribution's name.
    pub system: String,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// `container`, `virtual machine` or `none found`, with what gave it away.
    pub inside: String,
    /// What scales the cores' clock, where the kernel tells.
    pub governor: Option<String>,
    /// The load average over a minute, at the time of looking.
    pub load_average: f64,
}
