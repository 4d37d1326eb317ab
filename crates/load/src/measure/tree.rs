//! Processes that belong together: a server with its workers.
//!
//! Owns who is a member. A process that was a member once stays one until it ends, also when its parent has
//! ended, or when it moved into a group or session of its own: servers that go to the background (daemon(7)) do.
//! Never takes a shell or the system's first process for a part of a server.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use super::process::{self, Life, Process};
use super::sockets;
use crate::url::Address;

/// The variable by which a process is recognised that was never seen as a child of those that started it.
pub(crate) const MARK: &str = "ONEHOP_MEASURED_AS";

/// The process that the system starts first, and to which orphans fall.
const FIRST_PROCESS: u32 = 1;

/// Processes and all that descend from them. Clones share what was seen.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Every member that has not been found ended, by number.
    members: BTreeMap<u32, Life>,
    /// Values of [`MARK`] by which members are known.
    marks: Vec<String>,
    /// Processes whose environment was looked at and is none of ours.
    strangers: BTreeSet<Life>,
}

impl Tree {
    /// This process and its descendants. Where there is no such process, the tree is empty.
    pub fn of(pid: u32) -> Tree {
        Tree::from_roots(Process::with_number(pid).into_iter().map(|process| process.life))
    }

    /// The processes that listen at an address, with those above them that hold the same socket or that are the
    /// parents of all of them, and all that descend from these. `None` where nobody was found, be it that the
    /// processes are another user's.
    pub fn listening_at(address: &Address) -> Option<Tree> {
        let inodes = sockets::inodes_at(address);
        if inodes.is_empty() {
            return None;
        }
        let all = process::all();
        let holds = |process: &&Process| !sockets::inodes_of(process.life.number).is_disjoint(&inodes);
        let holders: Vec<Process> = all.iter().filter(holds).copied().collect();
        let tops = tops_of(holders);
        let tree =
            master_of(&tops, &all).unwrap_or_else(|| Tree::from_roots(tops.iter().map(|top| top.life)));
        // The first process with all there is, this one included, is no server.
        let is_everything = || {
            let members = tree.processes();
            members.contains(&FIRST_PROCESS) && members.contains(&std::process::id())
        };
        (!tops.is_empty() && !is_everything()).then_some(tree)
    }

    /// Both together.
    #[must_use]
    pub fn with(self, other: Tree) -> Tree {
        let both = Tree::from_roots(self.lives().into_iter().chain(other.lives()));
        for tree in [&self, &other] {
            let marks = tree.locked().marks.clone();
            both.locked().marks.extend(marks);
        }
        both
    }

    /// The numbers of all members that run now.
    pub fn processes(&self) -> Vec<u32> {
        self.look().iter().map(|process| process.life.number).collect()
    }

    /// Where members listen over TCP.
    pub fn listening(&self) -> Vec<SocketAddr> {
        let inodes: BTreeSet<u64> = self.processes().into_iter().flat_map(sockets::inodes_of).collect();
        let listening = sockets::listening().into_iter();
        let own = listening.filter(|listening| inodes.contains(&listening.inode));
        let mut addresses: Vec<SocketAddr> = own.map(|listening| listening.address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }

    /// A tree of the processes that carry this mark, and of the first one.
    pub(crate) fn marked(first: u32, mark: String) -> Tree {
        let tree = Tree::of(first);
        tree.locked().marks.push(mark);
        tree
    }

    /// Takes these in.
    pub(crate) fn adopt_those<'all>(&self, processes: impl Iterator<Item = &'all Process>) {
        let lives = processes.map(|process| (process.life.number, process.life));
        self.locked().members.extend(lives);
    }

    /// Members that run now.
    pub(crate) fn look(&self) -> Vec<Process> {
        self.look_among(&process::all())
    }

    /// Members among these, which are all processes that there are.
    pub(crate) fn look_among(&self, all: &[Process]) -> Vec<Process> {
        let mut seen = self.locked();
        seen.renew(all);
        let members = &seen.members;
        let is_member = |process: &&Process| members.get(&process.life.number) == Some(&process.life);
        all.iter().filter(is_member).filter(|process| !process.is_zombie).copied().collect()
    }

    /// Members by their lives, ended ones with a zombie included.
    pub(crate) fn lives(&self) -> Vec<Life> {
        self.look();
        self.locked().members.values().copied().collect()
    }

    fn from_roots(roots: impl IntoIterator<Item = Life>) -> Tree {
        let members = roots.into_iter().map(|life| (life.number, life)).collect();
        Tree { seen: Arc::new(Mutex::new(Seen { members, ..Seen::default() })) }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Seen> {
        // What is in there stays true whoever panicked.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those that listen and whose parents do not: the others are reached from there. The system's first process holds
/// the sockets of services that it starts when somebody connects (systemd.socket(5)), and is none of them.
fn tops_of(mut holders: Vec<Process>) -> Vec<Process> {
    if holders.len() > 1 {
        holders.retain(|holder| holder.life.number != FIRST_PROCESS);
    }
    let is_held_above = |process: &Process| holders.iter().any(|other| other.life.number == process.parent);
    holders.iter().filter(|process| !is_held_above(process)).copied().collect()
}

/// The parent of several that each listen with a socket of their own (SO_REUSEPORT), where it is the same program:
/// a shell or a service manager that started them is not.
fn master_of(tops: &[Process], all: &[Process]) -> Option<Tree> {
    let (first, others) = tops.split_first()?;
    if others.is_empty()
        || first.parent <= FIRST_PROCESS
        || others.iter().any(|top| top.parent != first.parent)
    {
        return None;
    }
    let program = |number: u32| std::fs::read_link(format!("/proc/{number}/exe")).ok();
    let parent = all.iter().find(|process| process.life.number == first.parent)?;
    (program(parent.life.number)? == program(first.life.number)?).then(|| Tree::from_roots([parent.life]))
}

impl Seen {
    /// Forgets the ended, takes in whoever descends from a member or carries a mark.
    fn renew(&mut self, all: &[Process]) {
        let by_number: BTreeMap<u32, &Process> =
            all.iter().map(|process| (process.life.number, process)).collect();
        let is_now = |life: &Life| by_number.get(&life.number).is_some_and(|process| process.life == *life);
        self.members.retain(|_, life| is_now(life));
        self.strangers.retain(|life| is_now(life));
        if !self.marks.is_empty() {
            for process in all {
                self.look_for_marks(process);
            }
        }
        // Numbers do not grow with descent (they wrap), so this goes on until nothing is found.
        loop {
            let is_new = |process: &&Process| {
                !self.members.contains_key(&process.life.number)
                    && self
                        .members
                        .get(&process.parent)
                        .is_some_and(|parent| parent.started <= process.life.started)
            };
            let found: Vec<Life> = all.iter().filter(is_new).map(|process| process.life).collect();
            if found.is_empty() {
                return;
            }
            self.members.extend(found.into_iter().map(|life| (life.number, life)));
        }
    }

    fn look_for_marks(&mut self, process: &Process) {
        let life = process.life;
        if self.members.contains_key(&life.number) || self.strangers.contains(&life) || process.is_zombie {
            return;
        }
        let environment = std::fs::read(format!("/proc/{}/environ", life.number)).unwrap_or_default();
        let is_marked = |variable: &[u8]| {
            let value = variable.strip_prefix(MARK.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
            value.is_some_and(|value| self.marks.iter().any(|mark| mark.as_bytes() == value))
        };
        if environment.split(|byte| *byte == 0).any(is_marked) {
            self.members.insert(life.number, life);
        } else {
            self.strangers.insert(life);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;
    use std::process::{Child, Command, Stdio};

    use super::super::sample::wait_for;
    use super::*;

    struct Ended(Child);

    impl Drop for Ended {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn shell(script: &str) -> Ended {
        Ended(Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap())
    }

    #[test]
    fn grandchildren_belong_and_the_ended_do_not() {
        // Each reads from the pipe, whose end comes with this test's.
        let mut first = shell("exec 3<&0; sh -c 'cat; true' <&3 & cat");
        let tree = Tree::of(first.0.id());
        let all = wait_for("four processes", || Some(tree.processes()).filter(|all| all.len() == 4));
        assert!(all.contains(&first.0.id()) && !all.contains(&std::process::id()));
        drop(first.0.stdin.take());
        first.0.wait().unwrap();
        wait_for("an empty tree", || tree.processes().is_empty().then_some(()));
    }

    #[test]
    fn a_member_stays_one_when_its_parent_ends() {
        let mut first = shell("setsid sh -c 'sleep 60; true' & read line; exit 0");
        let tree = Tree::of(first.0.id());
        wait_for("three processes", || (tree.processes().len() == 3).then_some(()));
        std::io::Write::write_all(first.0.stdin.as_mut().unwrap(), b"go\n").unwrap();
        first.0.wait().unwrap();
        let left = tree.look();
        assert_eq!(left.len(), 2);
        assert!(left.iter().all(|process| process.life.number != first.0.id()));
        for process in left {
            super::super::server::kill(process.life, rustix::process::Signal::KILL);
        }
        wait_for("an empty tree", || tree.processes().is_empty().then_some(()));
    }

    #[test]
    fn who_listens_is_found_over_tcp_and_unix_sockets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a socket.sock");
        let unix = UnixListener::bind(&path).unwrap();
        let four = TcpListener::bind("127.0.0.1:0").unwrap();
        let any = TcpListener::bind("0.0.0.0:0").unwrap();
        let at_any = std::net::SocketAddr::from(([127, 0, 0, 1], any.local_addr().unwrap().port()));
        let addresses =
            [Address::Tcp(four.local_addr().unwrap()), Address::Tcp(at_any), Address::Unix(path.clone())];
        for address in &addresses {
            let tree = Tree::listening_at(address).unwrap();
            assert!(tree.processes().contains(&std::process::id()), "{address}");
        }
        assert!(Tree::of(std::process::id()).listening().contains(&four.local_addr().unwrap()));
        drop((unix, four, any));
        assert!(Tree::listening_at(&Address::Unix(path)).is_none());
    }

    #[test]
    fn a_tree_of_nobody_is_empty() {
        assert!(Tree::of(0).processes().is_empty());
        assert!(Tree::of(u32::MAX).processes().is_empty());
        assert!(Tree::of(0).with(Tree::of(u32::MAX)).listening().is_empty());
    }

    #[test]
    fn a_process_that_began_before_its_parents_number_was_given_is_no_child() {
        let process = |number, parent, started| Process {
            life: Life { number, started },
            parent,
            group: 0,
            session: 0,
            is_zombie: false,
            ticks: 0,
            children_ticks: 0,
            threads: 1,
        };
        let all =
            [process(5, 1, 50), process(7, 5, 60), process(8, 7, 61), process(9, 5, 40), process(6, 1, 0)];
        let tree = Tree::from_roots([Life { number: 5, started: 50 }]);
        let found: Vec<u32> = tree.look_among(&all).iter().map(|process| process.life.number).collect();
        assert_eq!(found, [5, 7, 8]);
        // Number 5 is another process now, and 7 stays what it was.
        let found = tree.look_among(&[process(5, 1, 99), process(7, 1, 60), process(10, 5, 100)]);
        assert_eq!(found.iter().map(|process| process.life.number).collect::<Vec<_>>(), [7]);
    }
}
