//! The server's side and the machine's: processes, cores, memory, what the kernel counts.
//!
//! Owns reading /proc and starting and ending what is measured. Never ends a process that it, or what it
//! started, did not start.

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
