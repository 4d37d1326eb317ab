//! What a tree of processes uses while it is measured.
//!
//! Owns the thread that samples. It is on the cores of whoever starts it, and is to stay away from the server's;
//! it looks at what changed only, and at memory so seldom that this takes a fiftieth of a core at most.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Usage;
use super::account::{Account, nanoseconds_of};
use super::cgroup::Group;
use super::memory::weight_of;
use super::process::{Census, Life};
use super::tree::Tree;

/// Between two looks at CPU time: what a thread that ends used since the last one is known in ticks only.
const CPU_EVERY: Duration = Duration::from_millis(50);
/// Between two looks at memory, at least.
const MEMORY_EVERY: Duration = Duration::from_millis(250);
/// Memory is looked at so seldom that the looking takes one part of so many.
const MEMORY_PART: u32 = 50;
/// Samples of memory that are kept: over an hour of them. After that only the begin is known.
const MEMORY_SAMPLES_MAX: usize = 16_384;

/// Weighs a tree until it is stopped.
#[derive(Debug)]
pub struct Meter {
    stop: Sender<()>,
    thread: Option<JoinHandle<Result<Measured, String>>>,
}

/// What was weighed.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The figures.
    pub usage: Usage,
    /// What a reader has to know about them, for people.
    pub notes: Vec<String>,
    /// CPU time that the measuring itself took, on the cores of whoever measures.
    pub own_cpu: Duration,
}

struct Sampler {
    tree: Tree,
    census: Census,
    account: Account,
    group: Option<Group>,
    members: Vec<Life>,
    memory: Vec<u64>,
    is_memory_resident: bool,
    begun: Instant,
}

impl Meter {
    /// Begins: when this returns, the first figures are taken.
    pub fn start(tree: Tree) -> Meter {
        let mut sampler = Sampler::begin(tree);
        let (stop, stopped) = mpsc::channel();
        let sample = move || {
            let mut memory_at = Instant::now() + MEMORY_EVERY;
            while stopped.recv_timeout(CPU_EVERY) == Err(RecvTimeoutError::Timeout) {
                let is_memory_due = Instant::now() >= memory_at;
                sampler.count(is_memory_due);
                if is_memory_due {
                    memory_at = Instant::now() + pause_after(sampler.weigh());
                }
            }
            sampler.finish()
        };
        let thread = std::thread::Builder::new().name("meter".to_owned()).spawn(sample).ok();
        Meter { stop, thread }
    }

    /// The figures since the start; `None` where processes could not be found or read.
    pub fn stop(self) -> Option<Usage> {
        self.finish().ok().map(|measured| measured.usage)
    }

    /// The same with what is to be known about them.
    ///
    /// # Errors
    /// For people: why there are no figures.
    pub fn finish(mut self) -> Result<Measured, String> {
        // The thread may have ended only by breaking, which joining tells.
        let _ = self.stop.send(());
        let thread = self.thread.take().ok_or("the system gave no thread for measuring")?;
        thread.join().map_err(|_| "the measuring thread broke".to_owned())?
    }
}

impl Sampler {
    fn begin(tree: Tree) -> Sampler {
        let mut sampler = Sampler {
            tree,
            census: Census::default(),
            account: Account::default(),
            group: None,
            members: Vec::new(),
            memory: Vec::new(),
            is_memory_resident: false,
            begun: Instant::now(),
        };
        sampler.members = sampler.lives();
        sampler.weigh();
        sampler.group = Group::of(&sampler.members);
        sampler.begun = Instant::now();
        sampler.account.read(&sampler.members, true);
        sampler
    }

    fn count(&mut self, deeply: bool) {
        if deeply || self.census.is_old() {
            self.members = self.lives();
        }
        self.account.read(&self.members, deeply);
    }

    fn lives(&mut self) -> Vec<Life> {
        let members = self.tree.look_among(self.census.look());
        members.iter().map(|process| process.life).collect()
    }

    /// Takes a sample of memory; gives how long that took.
    fn weigh(&mut self) -> Duration {
        let begun = Instant::now();
        let mut sum: u64 = 0;
        let mut is_whole = !self.members.is_empty();
        for life in &self.members {
            let weight = weight_of(life.number);
            self.is_memory_resident |= weight.is_some_and(|(_, is_share)| !is_share);
            // One that ends meanwhile has nothing.
            let bytes = weight.map_or(0, |(bytes, _)| bytes);
            is_whole &= bytes > 0 || life.now().is_none();
            sum = sum.saturating_add(bytes);
        }
        if is_whole && sum > 0 && self.memory.len() < MEMORY_SAMPLES_MAX {
            self.memory.push(sum);
        }
        begun.elapsed()
    }

    fn finish(mut self) -> Result<Measured, String> {
        self.members = self.lives();
        let wall = self.begun.elapsed();
        self.account.read(&self.members, true);
        self.weigh();
        if let Some(why) = self.account.refused() {
            return Err(format!("{why}: measure as its user, or as root"));
        }
        if self.account.is_empty() {
            return Err("there was no process to measure".to_owned());
        }
        let sums = self.account.sums();
        let (processes, threads) = self.account.counts();
        let mut notes: Vec<String> = self.group.iter().map(|group| group.note(sums.cpu)).collect();
        if self.is_memory_resident {
            notes.push(
                "the kernel does not tell proportional shares: shared memory counts for each".to_owned(),
            );
        }
        if processes == 0 {
            notes.push("no process was left at the end".to_owned());
        }
        self.memory.sort_unstable();
        let usage = Usage {
            cpu: sums.cpu,
            wall,
            memory_median: ranked(&self.memory, 0.5),
            memory_p99: ranked(&self.memory, 0.99),
            switches_voluntary: sums.switches_voluntary,
            switches_involuntary: sums.switches_involuntary,
            io_bytes: sums.io_bytes,
            processes,
            threads,
        };
        let own = nanoseconds_of("/proc/thread-self").unwrap_or(0);
        Ok(Measured { usage, notes, own_cpu: Duration::from_nanos(own) })
    }
}

/// How long memory is left alone after a look at it that took so long.
fn pause_after(look: Duration) -> Duration {
    MEMORY_EVERY.max(look.saturating_mul(MEMORY_PART))
}

/// The nearest rank of sorted values.
fn ranked(sorted: &[u64], share: f64) -> u64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::process::read;
    use super::super::sample::{NODE_SERVER, TIMEOUTS, request, response_of, started, wait_for};
    use super::super::server::Server;
    use super::super::wait_until_ready;
    use super::*;
    use crate::plan::Timeouts;

    const MIB: u64 = 1 << 20;

    fn node() -> Server {
        let mut server = started(&["node", "-e", NODE_SERVER]);
        let request = request("/", server.port());
        wait_until_ready(&mut server, &request, Timeouts::default(), TIMEOUTS).unwrap();
        server
    }

    fn spent(number: u32) -> Duration {
        let text = read(&format!("/proc/{number}/schedstat")).unwrap();
        Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
    }

    #[test]
    fn cpu_time_is_what_the_kernel_counted_between_begin_and_end() {
        let server = started(&["sh", "-c", "while :; do :; done"]);
        let number = server.pid();
        let before = spent(number);
        let meter = Meter::start(server.tree());
        let (inner, begun) = (spent(number), Instant::now());
        wait_for("300 ms of work", || (spent(number) - inner > Duration::from_millis(300)).then_some(()));
        let (inner, least_wall) = (spent(number) - inner, begun.elapsed());
        let usage = meter.stop().unwrap();
        let outer = spent(number) - before;
        assert!(inner <= usage.cpu && usage.cpu <= outer, "{inner:?} {usage:?} {outer:?}");
        assert!(usage.wall >= least_wall, "{usage:?}");
        assert_eq!((usage.processes, usage.threads), (1, 1));
        assert!(usage.memory_median > 64 * 1024 && usage.memory_median <= usage.memory_p99, "{usage:?}");
    }

    #[test]
    fn threads_that_ended_are_counted() {
        let server = node();
        let meter = Meter::start(server.tree());
        let reported: u64 = response_of("/burn", server.port()).parse().unwrap();
        let usage = meter.stop().unwrap();
        let reported = Duration::from_micros(reported);
        // One thread less would be a sixth less, one twice a sixth more. The process's own word is without what it
        // took to ask and to answer, and what ended threads used is known in ticks.
        let (low, high) = (reported.mul_f64(0.9), reported.mul_f64(1.1) + Duration::from_millis(100));
        assert!(low <= usage.cpu && usage.cpu <= high, "{reported:?} {usage:?}");
        assert!(reported >= Duration::from_millis(360), "{reported:?}");
        assert!(usage.io_bytes > 0 && usage.switches_voluntary > 0, "{usage:?}");
    }

    #[test]
    fn from_birth_all_counts() {
        let server = started(&[
            "sh",
            "-c",
            "sh -c 'while [ $((i+=1)) -lt 100000 ]; do :; done'; echo on; exec sleep 60",
        ]);
        wait_for("its word", || server.log_tail().contains("on").then_some(()));
        let spent = spent(server.pid());
        let all = super::super::cpu_of(&server.tree());
        assert!(
            all > spent + Duration::from_millis(20) && all < spent + Duration::from_secs(5),
            "{all:?} {spent:?}"
        );
    }

    #[test]
    fn short_processes_are_counted_by_their_parents() {
        let child = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done";
        let script =
            format!("read x; n=0; while [ $n -lt 60 ]; do sh -c '{child}'; n=$((n+1)); done; times; cat");
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("go");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let server = started(&["sh", "-c", &format!("exec < {}; {script}", pipe.display())]);
        let mut go = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        let meter = Meter::start(server.tree());
        std::io::Write::write_all(&mut go, b"go\n").unwrap();
        let times =
            wait_for("its times", || Some(server.log_tail()).filter(|text| text.lines().count() == 2));
        let usage = meter.stop().unwrap();
        let reported: f64 = times.split_whitespace().map(seconds_of).sum();
        let (low, high) = (reported * 0.9 - 0.025, reported * 1.1 + 0.025);
        assert!((low..=high).contains(&usage.cpu.as_secs_f64()), "{reported} {usage:?}");
    }

    /// `0m0.120s`, as shells tell times.
    fn seconds_of(text: &str) -> f64 {
        let (minutes, seconds) = text.trim_end_matches('s').split_once('m').unwrap();
        minutes.parse::<f64>().unwrap() * 60.0 + seconds.parse::<f64>().unwrap()
    }

    #[test]
    fn memory_is_the_proportional_share() {
        const BLOCK: usize = 50 << 20;
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("data");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        // It shares little with other processes: of a runtime that others run too, the share grows when they end.
        let (input, block) = (format!("if={}", pipe.display()), format!("bs={BLOCK}"));
        let server = started(&["dd", &input, "of=/dev/null", &block, "count=1", "iflag=fullblock"]);
        let mut data = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        let weigh = || Meter::start(server.tree()).stop().unwrap().memory_median;
        let before = weigh();
        std::io::Write::write_all(&mut data, &vec![1; BLOCK - 1]).unwrap();
        let grown = weigh().saturating_sub(before);
        assert!((45 * MIB..55 * MIB).contains(&grown), "{before} {grown}");
    }

    #[test]
    fn a_server_that_ends_meanwhile_is_counted_until_then() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("go");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let work = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done; read x";
        let server = started(&["sh", "-c", &format!("exec < {}; read x; {work}", pipe.display())]);
        let mut go = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        // The looks are taken by hand: when the meter's thread gets a core is not known.
        let before = spent(server.pid());
        let mut sampler = Sampler::begin(server.tree());
        let inner = spent(server.pid());
        std::io::Write::write_all(&mut go, b"go\n").unwrap();
        wait_for("its work", || server.log_tail().contains("done").then_some(()));
        let least = spent(server.pid()) - inner;
        sampler.count(false);
        let most = spent(server.pid()) - before;
        std::io::Write::write_all(&mut go, b"end\n").unwrap();
        wait_for("its end", || server.ended());
        sampler.count(false);
        let measured = sampler.finish().unwrap();
        assert!(least <= measured.usage.cpu && measured.usage.cpu <= most, "{least:?} {measured:?} {most:?}");
        assert!(least > Duration::from_millis(20), "{least:?}");
        assert_eq!(measured.usage.processes, 0);
        assert!(measured.notes.iter().any(|note| note.contains("no process was left")), "{measured:?}");
    }

    #[test]
    fn what_measuring_takes_itself_is_reported_and_memory_is_left_alone_for_long() {
        // How little it is shows on a quiet machine only: `cargo xtask bench trust` looks.
        let own = || Duration::from_nanos(nanoseconds_of("/proc/thread-self").unwrap());
        let server = started(&["sleep", "60"]);
        let before = own();
        let measured = Sampler::begin(server.tree()).finish().unwrap();
        assert!(before < measured.own_cpu && measured.own_cpu <= own(), "{before:?} {measured:?}");
        let milliseconds = Duration::from_millis;
        assert_eq!(pause_after(milliseconds(1)), MEMORY_EVERY);
        assert_eq!(pause_after(milliseconds(30)), milliseconds(1500));
        assert_eq!(pause_after(Duration::MAX), Duration::MAX);
    }

    #[test]
    fn nobody_to_measure_gives_no_figure() {
        assert_eq!(Meter::start(Tree::of(0)).stop(), None);
    }

    #[test]
    fn the_samples_rank_is_the_nearest() {
        let sorted: Vec<u64> = (1..=100).collect();
        assert_eq!((ranked(&sorted, 0.5), ranked(&sorted, 0.99), ranked(&[], 0.5)), (50, 99, 0));
        assert_eq!((ranked(&[7], 0.5), ranked(&[7], 0.99)), (7, 7));
    }
}
