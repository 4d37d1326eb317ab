//! Processes under measurement: started on one core, in a group of their own, weighed with all their
//! threads and children, ended for certain.
//!
//! Figures come from /proc. This file must never end a process that it did not start.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::Outcome;

/// The core on which servers run.
pub(crate) const SERVER_CORE: usize = 0;
/// The core on which the load, and we, run.
pub(crate) const LOAD_CORE: usize = 1;

/// A server needs milliseconds to be ready; ten seconds mean that it never will be.
const READY_DEADLINE: Duration = Duration::from_secs(10);
/// What a server gets to end by itself before it is killed.
const END_DEADLINE: Duration = Duration::from_secs(5);

/// Nanoseconds on a core, per thread.
pub(crate) type Times = BTreeMap<(u32, u32), u64>;

/// A server that runs; ended when dropped.
pub(crate) struct Server {
    child: Child,
    group: Pid,
}

/// Resident memory of all processes of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// Sum of resident pages; pages that processes share count for each.
    pub(crate) resident_kib: u64,
    /// Sum of proportional shares: shared pages count once.
    pub(crate) proportional_kib: u64,
    /// Highest resident size so far, summed.
    pub(crate) peak_kib: u64,
}

/// Puts this process, and what it starts from now on, on the load's core.
pub(crate) fn move_to_load_core() {
    let mut cores = CpuSet::new();
    cores.set(LOAD_CORE);
    // On a machine with one core there is nothing to choose; the report says how many there were.
    let _ = sched_setaffinity(None, &cores);
}

/// A port of the loopback address that is free now.
pub(crate) fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

impl Server {
    /// Starts a command on the servers' core with its output in `log`.
    pub(crate) fn start(line: &[String], environment: &[(String, String)], log: &Path) -> Outcome<Server> {
        let out = std::fs::File::create(log)?;
        let core = SERVER_CORE.to_string();
        let mut command = Command::new("taskset");
        command.args(["-c", &core]).args(line).envs(environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out).process_group(0);
        let child = command.spawn().map_err(|error| format!("cannot start {}: {error}", line.join(" ")))?;
        let group =
            i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or("a process without an id")?;
        Ok(Server { child, group })
    }

    /// Waits until somebody accepts connections at an address.
    pub(crate) fn wait_until_it_accepts(&mut self, address: SocketAddr) -> Outcome {
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("the server ended at once with {status}").into());
            }
            if begun.elapsed() > READY_DEADLINE {
                return Err(format!("nobody listens on {address} after {READY_DEADLINE:?}").into());
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    /// Time that each thread has spent on a core until now.
    pub(crate) fn times(&self) -> Times {
        let mut times = Times::new();
        for process in self.processes() {
            for thread in entries(&format!("/proc/{process}/task")) {
                let text = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/schedstat"));
                let spent = text.ok().and_then(|text| text.split_whitespace().next()?.parse().ok());
                times.extend(spent.map(|spent| ((process, thread), spent)));
            }
        }
        times
    }

    /// Resident memory now.
    pub(crate) fn memory(&self) -> Memory {
        let mut memory = Memory { resident_kib: 0, proportional_kib: 0, peak_kib: 0 };
        for process in self.processes() {
            let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
            let shares = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
            memory.resident_kib += kib_of(&status, "VmRSS:");
            memory.peak_kib += kib_of(&status, "VmHWM:");
            memory.proportional_kib += kib_of(&shares, "Pss:");
        }
        memory
    }

    /// Starts the count of the highest resident size anew.
    pub(crate) fn forget_peak(&self) {
        for process in self.processes() {
            let _ = std::fs::write(format!("/proc/{process}/clear_refs"), "5");
        }
    }

    /// The first process and all that descend from it.
    fn processes(&self) -> Vec<u32> {
        let mut found = vec![self.child.id()];
        let mut next = 0;
        while let Some(&process) = found.get(next) {
            for thread in entries(&format!("/proc/{process}/task")) {
                let path = format!("/proc/{process}/task/{thread}/children");
                let text = std::fs::read_to_string(path).unwrap_or_default();
                found.extend(text.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
            }
            next += 1;
        }
        found
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = kill_process_group(self.group, Signal::TERM);
        let begun = Instant::now();
        while begun.elapsed() < END_DEADLINE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = kill_process_group(self.group, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Nanoseconds on a core between two readings; threads that began in between count in full.
pub(crate) fn spent_between(before: &Times, after: &Times) -> u64 {
    after.iter().map(|(thread, end)| end.saturating_sub(before.get(thread).copied().unwrap_or(0))).sum()
}

fn entries(folder: &str) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn kib_of(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_begin_and_end_are_counted_sanely() {
        let before = Times::from([((1, 1), 100), ((1, 2), 50)]);
        let after = Times::from([((1, 1), 180), ((1, 3), 7)]);
        assert_eq!(spent_between(&before, &after), 87);
    }

    #[test]
    fn memory_is_read_from_status_text() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(kib_of(status, "VmRSS:"), 1024);
        assert_eq!(kib_of(status, "VmSwap:"), 0);
    }
}
