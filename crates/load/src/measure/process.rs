//! One process as /proc shows it (proc(5)).
//!
//! Owns the reading of these texts. A number is used again by the kernel, a number with its start is not: whoever
//! remembers a process remembers a [`Life`].

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// A process as it can be found again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Life {
    /// Its number.
    pub(crate) number: u32,
    /// Clock ticks from the machine's start to its own.
    pub(crate) started: u64,
}

/// A process now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) life: Life,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    /// It has ended and waits for its parent to hear of it.
    pub(crate) is_zombie: bool,
    /// CPU ticks of all its threads, those that ended included.
    pub(crate) ticks: u64,
    /// CPU ticks of its children that ended and were waited for, and of theirs.
    pub(crate) children_ticks: u64,
    pub(crate) threads: usize,
}

impl Process {
    /// The process with this number, where there is one.
    pub(crate) fn with_number(number: u32) -> Option<Process> {
        Self::parse(number, &read(&format!("/proc/{number}/stat"))?)
    }

    /// A process from its line. Its name may hold anything, so what counts is behind the last parenthesis.
    fn parse(number: u32, line: &str) -> Option<Process> {
        let words: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
        let word = |place: usize| words.get(place)?.parse::<u64>().ok();
        // A process that is in no group or session has -1 or 0 there.
        let number_at = |place: usize| word(place).and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
        Some(Process {
            life: Life { number, started: word(19)? },
            parent: number_at(1),
            group: number_at(2),
            session: number_at(3),
            // The first thread may end before the others.
            is_zombie: matches!(*words.first()?, "Z" | "X" | "x") && word(17)? <= 1,
            ticks: word(11)?.saturating_add(word(12)?),
            children_ticks: word(13)?.saturating_add(word(14)?),
            threads: usize::try_from(word(17)?).unwrap_or(usize::MAX),
        })
    }
}

impl Life {
    /// The process, where it still is the same one and has not ended.
    pub(crate) fn now(self) -> Option<Process> {
        Process::with_number(self.number).filter(|process| process.life == self && !process.is_zombie)
    }
}

/// All processes, looked at again and again: a process that is known is not read anew each time.
#[derive(Debug, Default)]
pub(crate) struct Census {
    known: BTreeMap<u32, Process>,
    all: Vec<Process>,
    last_number: Option<u32>,
    read_at: Option<Instant>,
}

/// After this time everything is read anew: parents change, and numbers are used again.
const CENSUS_AGE_MAX: Duration = Duration::from_secs(1);

impl Census {
    /// Whether a process or thread may have begun since the last look: the kernel tells the last number that it
    /// gave (proc(5), `/proc/loadavg`).
    pub(crate) fn is_old(&self) -> bool {
        let last = last_number();
        last.is_none() || last != self.last_number
    }

    /// All processes that there are; of those known, the state may be as old as a second.
    pub(crate) fn look(&mut self) -> &[Process] {
        self.last_number = last_number();
        if self.read_at.is_none_or(|at| at.elapsed() > CENSUS_AGE_MAX) {
            self.read_at = Some(Instant::now());
            self.known.clear();
        }
        let numbers = numbers_in(Path::new("/proc"));
        let known = std::mem::take(&mut self.known);
        let read = |number: u32| {
            let process = known.get(&number).copied().or_else(|| Process::with_number(number));
            process.map(|process| (number, process))
        };
        self.known = numbers.into_iter().filter_map(read).collect();
        self.all.clear();
        self.all.extend(self.known.values());
        &self.all
    }
}

fn last_number() -> Option<u32> {
    read("/proc/loadavg")?.split_whitespace().last()?.parse().ok()
}

/// All processes that there are.
pub(crate) fn all() -> Vec<Process> {
    numbers_in(Path::new("/proc")).into_iter().filter_map(Process::with_number).collect()
}

/// The numbers that are names in a folder, as those of processes, threads and descriptors are.
pub(crate) fn numbers_in(folder: &Path) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// A text of the kernel's; `None` where it is not there or may not be read.
pub(crate) fn read(path: &str) -> Option<String> {
    std::fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The number behind a name, as in `VmRSS:   12 kB`.
pub(crate) fn number_behind(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// Ticks as time.
pub(crate) fn time_of(ticks: u64) -> Duration {
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let line = "7 (a ) S 1 b) S 5 6 4 0 -1 4194304 0 0 0 0 1 2 3 4 20 0 9 0 4711 1000 10";
        let process = Process::parse(7, line).unwrap();
        assert_eq!(process.life, Life { number: 7, started: 4711 });
        assert_eq!((process.parent, process.group, process.session, process.threads), (5, 6, 4, 9));
        assert_eq!((process.ticks, process.children_ticks, process.is_zombie), (3, 7, false));
        assert_eq!(Process::parse(7, "7 (short) S 1 2"), None);
        assert_eq!(Process::parse(7, ""), None);
    }

    #[test]
    fn a_life_is_none_of_another_start() {
        let own = Process::with_number(std::process::id()).unwrap();
        assert!(own.life.now().is_some());
        assert_eq!(Life { started: own.life.started + 1, ..own.life }.now(), None);
    }

    #[test]
    fn a_number_is_found_behind_its_name() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(number_behind(status, "VmRSS:"), Some(1024));
        assert_eq!(number_behind(status, "VmSwap:"), None);
    }
}
