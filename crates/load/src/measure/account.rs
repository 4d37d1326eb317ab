//! What the processes of a tree used between two moments.
//!
//! Owns the sum. The kernel counts by thread, exactly, for as long as the thread lives (`schedstat`), and by process,
//! in ticks of a hundredth of a second, with the threads that ended and the children that were waited for
//! (proc(5), `/proc/PID/stat`). The first is the figure; the second fills in what ended unseen. Never adds what
//! was before the begin.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::process::{Life, Process, number_behind, numbers_in, read, time_of};
use super::tree::Tree;

/// Two figures in ticks, each rounded down at both ends: what they may say too much.
const ROUNDING_TICKS: u64 = 2;

/// Processes that are remembered, ended ones included. What further ones used is known from their parents.
const PROCESSES_MAX: usize = 65_536;
/// Parents of parents that are asked for: a tree that is deeper is a circle of numbers that were used again.
const DEPTH_MAX: usize = 64;

/// The books on the processes of a tree.
#[derive(Debug, Default)]
pub(crate) struct Account {
    entries: BTreeMap<Life, Entry>,
    /// Ticks from the machine's start to the first reading.
    begin_ticks: Option<u64>,
    /// What processes used before the first reading counts too.
    is_from_birth: bool,
    /// What could not be read.
    refused: Option<String>,
}

/// Sums over all processes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Sums {
    pub(crate) cpu: Duration,
    pub(crate) switches_voluntary: u64,
    pub(crate) switches_involuntary: u64,
    pub(crate) io_bytes: u64,
}

#[derive(Debug, Default)]
struct Entry {
    parent: u32,
    is_there: bool,
    threads_now: usize,
    ticks: Span,
    children_ticks: Span,
    io_bytes: Span,
    threads: BTreeMap<u32, Thread>,
}

#[derive(Debug, Default)]
struct Thread {
    nanoseconds: Span,
    voluntary: Span,
    involuntary: Span,
}

/// A figure that grows: at the begin and when it was last seen.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    begin: u64,
    last: u64,
    /// What a user of the same number before this one had come to.
    before: u64,
}

/// CPU time of a tree's members from their birth to now, with those of their children that ended and were waited for.
pub fn cpu_of(tree: &Tree) -> Duration {
    let mut account = Account { is_from_birth: true, ..Account::default() };
    account.read(&tree.lives(), false);
    account.sums().cpu
}

impl Account {
    /// Reads the CPU time of these members, and where `deeply` what costs more to read.
    pub(crate) fn read(&mut self, members: &[Life], deeply: bool) {
        let begin_ticks = *self.begin_ticks.get_or_insert_with(ticks_now);
        let is_first = self.entries.is_empty();
        for entry in self.entries.values_mut() {
            entry.is_there = false;
        }
        for life in members {
            let Some(process) = life.now() else { continue };
            let is_new = !self.entries.contains_key(life);
            if is_new && self.entries.len() >= PROCESSES_MAX {
                continue;
            }
            // A process that was there before, and was found late, brings what it used before.
            let was_there = is_new && !self.is_from_birth && (is_first || life.started < begin_ticks);
            let entry = self.entries.entry(*life).or_default();
            entry.read(&process, deeply || is_new, was_there);
            if deeply || is_new {
                match io_bytes_of(life.number) {
                    Ok(bytes) => entry.io_bytes.set(bytes, was_there),
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        self.refused = Some(format!("process {} may not be looked into", life.number));
                    }
                    // It ended meanwhile, or the kernel does not count this.
                    Err(_) => {}
                }
            }
        }
    }

    /// Why there is no true sum, if so.
    pub(crate) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Whether a process was ever read.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Processes and threads at the last reading.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let there = self.entries.values().filter(|entry| entry.is_there);
        there.fold((0, 0), |(processes, threads), entry| (processes + 1, threads + entry.threads_now))
    }

    /// What was used from the first reading to the last.
    pub(crate) fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        for entry in self.entries.values() {
            for thread in entry.threads.values() {
                sums.switches_voluntary += thread.voluntary.used();
                sums.switches_involuntary += thread.involuntary.used();
            }
        }
        // Of those with one number the last.
        let by_number: BTreeMap<u32, Life> = self.entries.keys().map(|life| (life.number, *life)).collect();
        let mut ended_under: BTreeMap<Option<Life>, Vec<&Entry>> = BTreeMap::new();
        for entry in self.entries.values().filter(|entry| !entry.is_there) {
            ended_under.entry(self.waiting_for(entry, &by_number)).or_default().push(entry);
        }
        for (life, entry) in self.entries.iter().filter(|(_, entry)| entry.is_there) {
            let ended = ended_under.remove(&Some(*life)).unwrap_or_default();
            let (cpu, io_bytes) = entry.used_with(&ended);
            sums.cpu += cpu;
            sums.io_bytes += io_bytes;
        }
        for entry in ended_under.into_values().flatten() {
            sums.cpu += entry.cpu();
            sums.io_bytes += entry.io_bytes.used();
        }
        sums
    }

    /// The nearest process above that is still there: it was told what an ended one had used.
    fn waiting_for(&self, ended: &Entry, by_number: &BTreeMap<u32, Life>) -> Option<Life> {
        let mut number = ended.parent;
        for _ in 0..DEPTH_MAX {
            let life = by_number.get(&number)?;
            let entry = self.entries.get(life)?;
            if entry.is_there {
                return Some(*life);
            }
            number = entry.parent;
        }
        None
    }
}

impl Entry {
    fn read(&mut self, process: &Process, deeply: bool, was_there: bool) {
        self.is_there = true;
        self.parent = process.parent;
        self.threads_now = process.threads;
        self.ticks.set(process.ticks, was_there);
        self.children_ticks.set(process.children_ticks, was_there);
        let number = process.life.number;
        let threads = numbers_in(Path::new(&format!("/proc/{number}/task")));
        for thread in threads {
            let folder = format!("/proc/{number}/task/{thread}");
            let Some(spent) = nanoseconds_of(&folder) else { continue };
            let entry = self.threads.entry(thread).or_default();
            entry.nanoseconds.set(spent, was_there);
            if deeply && let Some(status) = read(&format!("{folder}/status")) {
                let count = |name| number_behind(&status, name).unwrap_or(0);
                entry.voluntary.set(count("voluntary_ctxt_switches:"), was_there);
                entry.involuntary.set(count("nonvoluntary_ctxt_switches:"), was_there);
            }
        }
    }

    /// Its own CPU time, with threads that ended.
    fn cpu(&self) -> Duration {
        let by_thread = self.threads.values().map(|thread| thread.nanoseconds.used()).sum();
        let by_thread = Duration::from_nanos(by_thread);
        let by_process = time_of(self.ticks.used());
        if by_process > by_thread + time_of(ROUNDING_TICKS) { by_process } else { by_thread }
    }

    /// CPU time and bytes, with those of descendants that ended.
    fn used_with(&self, ended: &[&Entry]) -> (Duration, u64) {
        let seen: Duration = ended.iter().map(|entry| entry.cpu()).sum();
        let known_before: u64 =
            ended.iter().map(|entry| entry.ticks.begin + entry.children_ticks.begin).sum();
        let waited_ticks = self.children_ticks.used();
        let waited = time_of(waited_ticks.saturating_sub(known_before));
        let children = if waited > seen + time_of(ROUNDING_TICKS) { waited } else { seen };
        // A parent that does not wait (SIGCHLD ignored) is told nothing.
        let all_seen: u64 = ended.iter().map(|entry| entry.ticks.last).sum();
        let was_reported = waited_ticks + ROUNDING_TICKS * (ended.len() as u64 + 1) >= all_seen;
        let own_bytes = self.io_bytes.used();
        let bytes = if was_reported {
            own_bytes.saturating_sub(ended.iter().map(|entry| entry.io_bytes.begin).sum())
        } else {
            own_bytes + ended.iter().map(|entry| entry.io_bytes.used()).sum::<u64>()
        };
        (self.cpu() + children, bytes)
    }
}

impl Span {
    fn set(&mut self, now: u64, was_there: bool) {
        if was_there {
            self.begin = now;
        }
        if now < self.last {
            self.before = self.used();
            self.begin = 0;
        }
        self.last = now;
    }

    fn used(&self) -> u64 {
        self.before + self.last.saturating_sub(self.begin)
    }
}

/// `4711 12 3`: on a core, waiting for one, turns.
pub(crate) fn nanoseconds_of(folder: &str) -> Option<u64> {
    read(&format!("{folder}/schedstat"))?.split_whitespace().next()?.parse().ok()
}

fn io_bytes_of(number: u32) -> io::Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{number}/io"))?;
    let count = |name| number_behind(&text, name).unwrap_or(0);
    Ok(count("rchar:").saturating_add(count("wchar:")))
}

/// Ticks since the machine's start, as processes' starts are counted.
fn ticks_now() -> u64 {
    let uptime = read("/proc/uptime").unwrap_or_default();
    let seconds: f64 = uptime.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    (seconds * rustix::param::clock_ticks_per_second() as f64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(parent: u32, is_there: bool, own_ms: u64, ticks: (u64, u64), children: (u64, u64)) -> Entry {
        let span = |(begin, last)| Span { begin, last, before: 0 };
        let nanoseconds = span((0, own_ms * 1_000_000));
        let threads = BTreeMap::from([(1, Thread { nanoseconds, ..Thread::default() })]);
        let (ticks, children_ticks) = (span(ticks), span(children));
        Entry { parent, is_there, threads, ticks, children_ticks, ..Entry::default() }
    }

    fn cpu_of(entries: Vec<(u32, Entry)>) -> u128 {
        let entries =
            entries.into_iter().map(|(number, entry)| (Life { number, started: 0 }, entry)).collect();
        Account { entries, ..Account::default() }.sums().cpu.as_millis()
    }

    #[test]
    fn threads_are_the_figure_unless_the_process_knows_of_more() {
        assert_eq!(cpu_of(vec![(5, entry(1, true, 100, (7, 18), (0, 0)))]), 100);
        assert_eq!(cpu_of(vec![(5, entry(1, true, 100, (7, 57), (0, 0)))]), 500);
    }

    #[test]
    fn an_ended_child_is_counted_once() {
        // Seen until just before its end, and by its parent in whole.
        let child = || (6, entry(5, false, 290, (0, 29), (0, 0)));
        let parent = |children| (5, entry(1, true, 100, (0, 10), children));
        assert_eq!(cpu_of(vec![parent((0, 30)), child()]), 390);
        // The parent knows of one more that nobody saw.
        assert_eq!(cpu_of(vec![parent((0, 60)), child()]), 700);
        // The parent does not wait.
        assert_eq!(cpu_of(vec![parent((0, 0)), child()]), 390);
        // A grandchild, whose parent ended too.
        let grandchild = (7, entry(6, false, 200, (0, 20), (0, 0)));
        assert_eq!(cpu_of(vec![parent((0, 50)), child(), grandchild]), 590);
        // What it had used before the begin is in its parent's figure, and is taken off.
        let old = (6, entry(5, false, 100, (40, 50), (10, 10)));
        assert_eq!(cpu_of(vec![parent((0, 60)), old]), 200);
    }

    #[test]
    fn orphans_and_circles_are_counted_by_what_was_seen() {
        assert_eq!(cpu_of(vec![(6, entry(1, false, 70, (0, 7), (0, 0)))]), 70);
        let circle = vec![(6, entry(7, false, 70, (0, 7), (0, 0))), (7, entry(6, false, 30, (0, 3), (0, 0)))];
        assert_eq!(cpu_of(circle), 100);
    }

    #[test]
    fn a_number_that_is_used_again_starts_anew() {
        let mut span = Span::default();
        span.set(50, true);
        span.set(80, false);
        span.set(10, false);
        span.set(15, false);
        assert_eq!(span.used(), 45);
    }
}
