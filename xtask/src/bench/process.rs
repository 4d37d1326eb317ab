//! Processes under measurement: started on one core, in a group of their own, weighed with all their
//! threads and children, ended for certain.
//!
//! Figures come from /proc. This file must never end a process that it, or what it started, did not start.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
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

/// What the kernel counts CPU time in where it shows it to programs (USER_HZ).
const TICKS_PER_SECOND: f64 = 100.0;

/// Nanoseconds on a core, per thread.
pub(crate) type Times = BTreeMap<(u32, u32), u64>;

/// Which cores a command may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cores {
    /// The servers' core only.
    Server,
    /// All of them.
    All,
}

/// A process as it can be found again: numbers are used again, a number with its start is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    number: u32,
    parent: u32,
    /// Clock ticks from the machine's start to its own.
    started: u64,
}

/// A server that runs; ended when dropped, with all that descends from it.
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

/// CPU seconds of children of this process that have ended, in steps of a clock tick.
pub(crate) fn seconds_of_children() -> f64 {
    own_ticks(13) as f64 / TICKS_PER_SECOND
}

/// CPU seconds of this process itself, in steps of a clock tick.
pub(crate) fn seconds_of_self() -> f64 {
    own_ticks(11) as f64 / TICKS_PER_SECOND
}

/// The sum of a word and its neighbour behind the name in this process's line (proc(5)): in the program
/// and in the kernel.
fn own_ticks(first: usize) -> u64 {
    let line = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let words = line.rsplit_once(')').map_or("", |(_, words)| words).split_whitespace();
    words.skip(first).take(2).filter_map(|word| word.parse::<u64>().ok()).sum()
}

/// A port of the loopback address that is free now.
pub(crate) fn free_port() -> Outcome<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

impl Server {
    /// Starts a command on the given cores with its output in `log`.
    pub(crate) fn start(
        line: &[String],
        environment: &[(String, String)],
        log: &Path,
        cores: Cores,
    ) -> Outcome<Server> {
        let out = std::fs::File::create(log)?;
        let mut command = Command::new("taskset");
        command
            .args(["-c", &cores.list()])
            .args(line)
            .envs(environment.iter().map(|(name, value)| (name, value)));
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

    /// Resident memory of all its processes now.
    pub(crate) fn memory(&self) -> Memory {
        memory_of(&self.processes())
    }

    /// Resident memory of its first process alone, without those that it started.
    pub(crate) fn own_memory(&self) -> Memory {
        memory_of(&[self.child.id()])
    }

    /// Starts the count of the highest resident size anew.
    pub(crate) fn forget_peak(&self) {
        for process in self.processes() {
            let _ = std::fs::write(format!("/proc/{process}/clear_refs"), "5");
        }
    }

    /// The first process and all that descend from it. They are found by their parents: a worker may be in
    /// a process group of its own, and not every kernel lists a process's children.
    fn processes(&self) -> Vec<u32> {
        descendants(self.child.id(), &all_processes()).into_iter().map(|process| process.number).collect()
    }
}

impl Cores {
    /// The words that taskset understands.
    pub(crate) fn list(self) -> String {
        match self {
            Cores::Server => SERVER_CORE.to_string(),
            Cores::All => format!("0-{}", crate::ground::cores().saturating_sub(1)),
        }
    }
}

impl Memory {
    /// Nothing.
    pub(crate) const NONE: Memory = Memory { resident_kib: 0, proportional_kib: 0, peak_kib: 0 };
}

impl std::ops::Add for Memory {
    type Output = Memory;

    fn add(self, other: Memory) -> Memory {
        Memory {
            resident_kib: self.resident_kib + other.resident_kib,
            proportional_kib: self.proportional_kib + other.proportional_kib,
            peak_kib: self.peak_kib + other.peak_kib,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let descended = descendants(self.child.id(), &all_processes());
        let _ = kill_process_group(self.group, Signal::TERM);
        let begun = Instant::now();
        while begun.elapsed() < END_DEADLINE && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(2));
        }
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process_group(self.group, Signal::KILL);
            let _ = self.child.wait();
        }
        // Workers in groups of their own end with their server; one that hangs would spoil what is next.
        let is_left = |process: &Process| {
            all_processes().iter().any(|now| (now.number, now.started) == (process.number, process.started))
        };
        for process in
            descended.iter().filter(|process| process.number != self.child.id() && is_left(process))
        {
            let number = i32::try_from(process.number).ok().and_then(Pid::from_raw);
            let _ = number.map(|number| kill_process(number, Signal::KILL));
        }
    }
}

/// Nanoseconds on a core between two readings; threads that began in between count in full.
pub(crate) fn spent_between(before: &Times, after: &Times) -> u64 {
    after.iter().map(|(thread, end)| end.saturating_sub(before.get(thread).copied().unwrap_or(0))).sum()
}

fn all_processes() -> Vec<Process> {
    let read =
        |number: u32| process_in(number, &std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?);
    entries("/proc").into_iter().filter_map(read).collect()
}

/// A process from its line in /proc (proc(5)): its name may hold anything, so what counts is behind it.
fn process_in(number: u32, line: &str) -> Option<Process> {
    let words: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Process { number, parent: words.get(1)?.parse().ok()?, started: words.get(19)?.parse().ok()? })
}

/// A process, its children, theirs, and so on.
fn descendants(first: u32, all: &[Process]) -> Vec<Process> {
    let mut found: Vec<Process> = all.iter().filter(|process| process.number == first).copied().collect();
    let mut next = 0;
    while let Some(&Process { number, .. }) = found.get(next) {
        found.extend(all.iter().filter(|process| process.parent == number));
        next += 1;
    }
    found
}

fn memory_of(processes: &[u32]) -> Memory {
    let each = processes.iter().map(|process| {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let shares = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
        Memory {
            resident_kib: kib_of(&status, "VmRSS:"),
            proportional_kib: kib_of(&shares, "Pss:"),
            peak_kib: kib_of(&status, "VmHWM:"),
        }
    });
    each.fold(Memory::NONE, |sum, one| sum + one)
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
    fn a_process_belongs_to_the_tree_whose_member_started_it() {
        let line = "7 (a ) b) S 5 7 7 0 -1 4194304 0 0 0 0 1 2 3 4 20 0 1 0 4711 1000 10";
        assert_eq!(process_in(7, line), Some(Process { number: 7, parent: 5, started: 4711 }));
        let process = |number, parent| Process { number, parent, started: 0 };
        let all = [process(1, 0), process(5, 1), process(7, 5), process(8, 7), process(9, 1)];
        let found: Vec<u32> = descendants(5, &all).iter().map(|process| process.number).collect();
        assert_eq!(found, [5, 7, 8]);
    }

    #[test]
    fn memory_is_read_from_status_text() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(kib_of(status, "VmRSS:"), 1024);
        assert_eq!(kib_of(status, "VmSwap:"), 0);
    }
}
